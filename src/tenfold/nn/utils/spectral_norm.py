"""Weights divided by their largest singular value, which power iteration approximates: `w / (uᵀ w v)`."""

from __future__ import annotations

from typing import Any

import numpy as np

from tenfold.autograd.grad_mode import no_grad
from tenfold.base.errors import ArgumentError, located
from tenfold.nn import draws, functional as F
from tenfold.nn.convolution import _ConvTransposeNd
from tenfold.nn.parameter import Parameter, filled
from tenfold.tensor import Tensor
from tenfold.tensor.dispatch import aten


def as_matrix(weight: Tensor, dim: int) -> Tensor:
    """The weight with one dimension as its rows, and all others as its columns."""
    return weight.movedim(dim, 0).reshape(weight.shape[dim], -1)


def random_unit(count: int, like: Tensor) -> Tensor:
    """A random direction."""
    made = draws.normal_(filled((count,), 0, like.dtype, like.device), 0, 1)
    host = made.numpy()
    return draws.write(made, host / max(float((np.abs(host).astype(float) ** 2).sum()) ** 0.5, 1e-12))


def iterate(first: Tensor, second: Tensor, u: Tensor, v: Tensor, times: int, eps: float) -> None:
    """Bring u and v nearer to the first singular vectors, in place: v first, by one matrix from u, then u
    from v by the other, its transpose or adjoint."""
    with no_grad():
        for _ in range(times):
            v.copy_(F.normalize(first.mv(u), dim=0, eps=eps))
            u.copy_(F.normalize(second.mv(v), dim=0, eps=eps))


class SpectralNorm:
    """The hook that computes the weight; in training after some steps of power iteration."""

    def __init__(self, name: str, n_power_iterations: int, dim: int, eps: float):
        self.name = name
        self.n_power_iterations = n_power_iterations
        self.dim = dim
        self.eps = eps

    def compute_weight(self, module: Any, do_power_iteration: bool) -> Tensor:
        weight = getattr(module, f"{self.name}_orig")
        u, v = getattr(module, f"{self.name}_u"), getattr(module, f"{self.name}_v")
        matrix = as_matrix(weight, self.dim)
        if do_power_iteration:
            iterate(matrix.t(), matrix, u, v, self.n_power_iterations, self.eps)
        return weight / aten("dot")(u.clone(), matrix.mv(v.clone()))

    def __call__(self, module: Any, inputs: Any) -> None:
        setattr(module, self.name, self.compute_weight(module, module.training))


@located
def spectral_norm(
    module: Any, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12, dim: int | None = None
) -> Any:
    """Divide a parameter by its largest singular value before each call of the module.

    The parameter becomes NAME_orig; the buffers NAME_u and NAME_v hold the state of the power iteration.
    `nn.utils.parametrizations.spectral_norm` does the same by a parametrization.
    """
    if n_power_iterations <= 0:
        raise ArgumentError(f"n_power_iterations is positive, not {n_power_iterations}")
    if _hook(module, name) is not None:
        raise ArgumentError(f"{name} has a spectral norm already")
    if name not in module._parameters:
        raise ArgumentError(f"{type(module).__name__} has no parameter {name!r}")
    norm = SpectralNorm(name, n_power_iterations, rows_of(module) if dim is None else dim, eps)
    weight = module._parameters.pop(name)
    with no_grad():
        matrix = as_matrix(weight, norm.dim)
        u, v = (random_unit(extent, weight) for extent in matrix.shape)
        iterate(matrix.t(), matrix, u, v, 15, eps)
    module.register_parameter(f"{name}_orig", weight)
    setattr(module, name, weight.data)
    module.register_buffer(f"{name}_u", u)
    module.register_buffer(f"{name}_v", v)
    module.register_forward_pre_hook(norm)
    return module


def rows_of(module: Any) -> int:
    """The dimension of a module's weight that its outputs are along."""
    return 1 if isinstance(module, _ConvTransposeNd) else 0


@located
def remove_spectral_norm(module: Any, name: str = "weight") -> Any:
    """Keep the weight as it is now, as an ordinary parameter."""
    found = _hook(module, name)
    if found is None:
        raise ArgumentError(f"{name} of {type(module).__name__} has no spectral norm")
    key, norm = found
    with no_grad():
        weight = norm.compute_weight(module, False)
    delattr(module, name)
    for each in (f"{name}_u", f"{name}_v", f"{name}_orig"):
        delattr(module, each)
    del module._forward_pre_hooks[key]
    module.register_parameter(name, Parameter(weight.detach()))
    return module


def _hook(module: Any, name: str) -> tuple[int, SpectralNorm] | None:
    for key, hook in module._forward_pre_hooks.items():
        if isinstance(hook, SpectralNorm) and hook.name == name:
            return key, hook
    return None
