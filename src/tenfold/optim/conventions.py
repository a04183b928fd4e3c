"""What PyTorch's optimizers share besides their base class, by the names under which optimizers of other
people import it: questions about the tensors of a step, and their grouping."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from tenfold.autograd.grad_mode import set_grad_enabled
from tenfold.base import dtypes
from tenfold.base.dtypes import DType
from tenfold.base.errors import ArgumentError
from tenfold.tensor import Tensor
from tenfold.tensor.dispatch import aten

__all__ = [
    "_capturable_doc", "_default_to_fused_or_foreach", "_device_dtype_check_for_fused",
    "_differentiable_doc", "_disable_dynamo_if_unsupported", "_dispatch_sqrt", "_foreach_doc", "_fused_doc",
    "_get_capturable_supported_devices", "_get_foreach_kernels_supported_devices",
    "_get_fused_kernels_supported_devices", "_get_scalar_dtype", "_get_value",
    "_group_tensors_by_device_and_dtype", "_has_foreach_support", "_maximize_doc", "_params_doc",
    "_stack_if_compiling", "_to_scalar", "_use_grad_for_differentiable", "_view_as_real",
]  # fmt: skip

Function = TypeVar("Function", bound=Callable[..., Any])
Lists = Sequence[Sequence[Any]]

# Sentences about the options that most optimizers have, for docstrings.
_params_doc = "params (iterable): parameters, pairs of a name and a parameter, or groups of them as dicts"
_foreach_doc = "foreach (bool, optional): whether to update all parameters by one call for each operation"
_fused_doc = "fused (bool, optional): whether to update all parameters by one kernel"
_capturable_doc = "capturable (bool, optional): whether a step can be captured in a CUDA graph"
_differentiable_doc = "differentiable (bool, optional): whether gradients flow through a step"
_maximize_doc = "maximize (bool, optional): whether to go up the gradient instead of down"


def _use_grad_for_differentiable(function: Function) -> Function:
    """Let a step record gradients where the optimizer is differentiable, and else not."""

    @functools.wraps(function)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        with set_grad_enabled(bool(self.defaults["differentiable"])):
            return function(self, *args, **kwargs)

    return call  # type: ignore[return-value]


def _get_value(x: Any) -> Any:
    """The number that a tensor holds."""
    return x.item() if isinstance(x, Tensor) else x


def _to_scalar(x: Any) -> Any:
    """A tensor of one number without dimensions; anything else as it is."""
    return x.squeeze() if isinstance(x, Tensor) and x.ndim else x


def _stack_if_compiling(x: Any) -> Any:
    return x


def _dispatch_sqrt(x: Any) -> Any:
    """The square root of a tensor or number."""
    return x.sqrt() if isinstance(x, Tensor) else x**0.5


def _get_scalar_dtype(is_fused: bool | None = None) -> DType:
    """The dtype in which an optimizer counts its steps."""
    wide = not is_fused and dtypes.get_default_dtype() is dtypes.float64
    return dtypes.float64 if wide else dtypes.float32


def _view_as_real(params: list[Tensor], *state_and_grads: list[Tensor]) -> None:
    """Replace complex tensors by their views of pairs of real numbers, in all lists at the same place."""
    for i, param in enumerate(params):
        if param.is_complex():
            for each in (params, *state_and_grads):
                each[i] = aten("view_as_real")(each[i])


def _disable_dynamo_if_unsupported(single_tensor_fn: Any = None) -> Callable[[Function], Function]:
    """The function itself: none needs to be kept from a compiler here."""
    return lambda function: function


def _default_to_fused_or_foreach(
    params: Sequence[Tensor | None], differentiable: bool, use_fused: bool = False
) -> tuple[bool, bool]:
    """Whether an optimizer whose user did not say should use its fused way, and whether its way over lists:
    on GPUs, as in PyTorch."""
    if differentiable:
        return False, False
    given = [each for each in params if each is not None]
    fused = use_fused and all(each.is_floating_point() for each in given)
    return fused, not fused and _has_foreach(given, ("cuda",))


def _has_foreach(tensors: Sequence[Tensor], devices: Sequence[str]) -> bool:
    return all(each.device.type in devices for each in tensors)


def _has_foreach_support(tensors: Sequence[Tensor | None], device: Any) -> bool:
    """Whether these tensors can be given to functions of lists of tensors."""
    return device.type in ("cuda", "cpu")


def _device_dtype_check_for_fused(p: Tensor, cuda_unsupported: bool = False) -> None:
    if not p.is_floating_point() or p.device.type not in ("cpu", *(() if cuda_unsupported else ("cuda",))):
        raise ArgumentError(
            f"fused=True is for floating-point parameters on the CPU or a GPU, not {p.dtype} on {p.device}"
        )


def _get_capturable_supported_devices(supports_xla: bool = True) -> list[str]:
    return ["cuda", "xpu", "hpu", *(["xla"] if supports_xla else [])]


def _get_foreach_kernels_supported_devices() -> list[str]:
    return ["cuda"]


def _get_fused_kernels_supported_devices() -> list[str]:
    return ["cuda", "cpu"]


def _group_tensors_by_device_and_dtype(
    tensorlistlist: Lists, with_indices: bool = False
) -> dict[tuple[Any, DType], tuple[list[list[Any]], list[int]]]:
    """Lists of tensors, split by the device and dtype of those in the first list, and for each group where
    its tensors stood if `with_indices` asks so. An empty list stays empty in each group."""
    groups: dict[tuple[Any, DType], tuple[list[list[Any]], list[int]]] = {}
    for index, first in enumerate(tensorlistlist[0]):
        key = (first.device, first.dtype)
        lists, indices = groups.setdefault(key, ([[] for _ in tensorlistlist], []))
        for group, tensors in zip(lists, tensorlistlist, strict=True):
            if len(tensors):
                group.append(tensors[index])
        if with_indices:
            indices.append(index)
    return groups
