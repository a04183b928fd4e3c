"""Weights as a length and a direction, computed before each call of the module: `weight = g·v / ‖v‖`."""

from __future__ import annotations

from typing import Any

from tenfold.autograd.grad_mode import no_grad
from tenfold.base.errors import ArgumentError, located
from tenfold.nn.parameter import Parameter
from tenfold.tensor import Tensor
from tenfold.tensor.dispatch import aten


def norm_except_dim(v: Tensor, dim: int | None) -> Tensor:
    """The norm of each slice of v along a dimension, or of all of v if that is None or -1."""
    if dim is None or dim == -1:
        return aten("linalg_vector_norm")(v, 2.0)
    others = [each for each in range(v.ndim) if each != dim % v.ndim]
    return aten("linalg_vector_norm")(v, 2.0, others, True) if others else v.abs()


def weighted(v: Tensor, g: Tensor, dim: int | None) -> Tensor:
    """The weight of a length and a direction."""
    return v * (g / norm_except_dim(v, dim))


class WeightNorm:
    """The hook that computes the weight."""

    def __init__(self, name: str, dim: int | None):
        self.name = name
        self.dim = dim

    def compute_weight(self, module: Any) -> Tensor:
        return weighted(getattr(module, f"{self.name}_v"), getattr(module, f"{self.name}_g"), self.dim)

    def __call__(self, module: Any, inputs: Any) -> None:
        setattr(module, self.name, self.compute_weight(module))


@located
def weight_norm(module: Any, name: str = "weight", dim: int | None = 0) -> Any:
    """Replace a parameter by two, its length NAME_g and its direction NAME_v.

    There is one length for each slice along `dim`; if `dim` is None, there is one for the whole parameter.
    `nn.utils.parametrizations.weight_norm` does the same by a parametrization.
    """
    if _hook(module, name) is not None:
        raise ArgumentError(f"{name} has a weight norm already")
    if name not in module._parameters:
        raise ArgumentError(f"{type(module).__name__} has no parameter {name!r}")
    norm = WeightNorm(name, dim)
    weight = module._parameters.pop(name)
    with no_grad():
        length = norm_except_dim(weight, dim)
    module.register_parameter(f"{name}_g", Parameter(length))
    module.register_parameter(f"{name}_v", Parameter(weight.detach()))
    setattr(module, name, norm.compute_weight(module))
    module.register_forward_pre_hook(norm)
    return module


@located
def remove_weight_norm(module: Any, name: str = "weight") -> Any:
    """Replace the two parameters by the weight that they make."""
    found = _hook(module, name)
    if found is None:
        raise ArgumentError(f"{name} of {type(module).__name__} has no weight norm")
    key, norm = found
    with no_grad():
        weight = norm.compute_weight(module)
    delattr(module, name)
    del module._parameters[f"{name}_g"], module._parameters[f"{name}_v"], module._forward_pre_hooks[key]
    setattr(module, name, Parameter(weight))
    return module


def _hook(module: Any, name: str) -> tuple[int, WeightNorm] | None:
    for key, hook in module._forward_pre_hooks.items():
        if isinstance(hook, WeightNorm) and hook.name == name:
            return key, hook
    return None
