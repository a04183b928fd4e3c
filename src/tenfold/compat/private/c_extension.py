"""`torch._C`, and `torch._C._nn` in it: the names of PyTorch's C++ module that libraries touch."""

from __future__ import annotations

import contextlib
import sys
from typing import Any

from tenfold.autograd.grad_mode import no_grad
from tenfold.base.absent import AbsentModule
from tenfold.base.devices import Device as device, get_default_device
from tenfold.base.dtypes import DType as dtype
from tenfold.base.layouts import layout
from tenfold.base.size import Size
from tenfold.compat.overloads import NAMESPACES
from tenfold.nn import functional
from tenfold.tensor import Tensor
from tenfold.tensor.generators import Generator
from tenfold.tensor.overriding import DisableTorchFunction, DisableTorchFunctionSubclass, disabled
from tenfold.trace.context import context

__all__ = [
    "DisableTorchFunction", "DisableTorchFunctionSubclass", "Generator", "Size", "TensorBase", "device",
    "dtype", "layout",
]  # fmt: skip

_absent = AbsentModule.of("torch._C")

TensorBase = _TensorBase = Tensor
_nn = sys.modules[__name__]
_functions = _variables = _VariableFunctions = NAMESPACES["aten"]


class DispatchKeySet(frozenset[Any]):
    """A set of PyTorch's dispatch keys, as a name of such a set: nothing is dispatched by keys here."""

    def __new__(cls, *keys: Any) -> DispatchKeySet:
        return super().__new__(cls, keys)

    def __or__(self, other: Any) -> DispatchKeySet:
        return DispatchKeySet(*super().__or__(other))


_AutoDispatchBelowAutograd = no_grad  # below autograd nothing is recorded for gradients
_ExcludeDispatchKeyGuard = _IncludeDispatchKeyGuard = contextlib.nullcontext


def _log_api_usage_once(event: str) -> None:
    """Does nothing: no one counts."""


def _get_tracing_state() -> None:
    """None: no TorchScript is being traced."""


def _is_tracing() -> bool:
    return False


def _are_functorch_transforms_active() -> bool:
    """Whether a function is being recorded, for a transform of `tenfold.func` or to compile it: then no
    choice may depend on values."""
    return context.recorder is not None


def _get_default_device() -> str:
    return get_default_device().type


def _is_torch_function_mode_enabled() -> bool:
    return bool(context.modes)


def _len_torch_dispatch_stack() -> int:
    return 0


def _switch(*arguments: Any) -> bool:
    """What chooses how TorchScript is run is kept by no one; TorchScript is run by libtorch as it comes."""
    return False


_jit_set_texpr_fuser_enabled = _jit_set_profiling_mode = _jit_set_profiling_executor = _switch
_jit_override_can_fuse_on_cpu = _jit_override_can_fuse_on_gpu = _jit_set_nvfuser_enabled = _switch
_jit_can_fuse_on_cpu = _jit_can_fuse_on_gpu = _jit_set_nvfuser_guard_mode = _switch

_disabled_torch_function_impl = disabled
_TensorMeta = type(Tensor)


def _is_torch_function_enabled() -> bool:
    return context.heeds


def _is_torch_function_all_disabled() -> bool:
    return not context.heeds and not context.modes


def _len_torch_function_stack() -> int:
    return len(context.modes)


def _parse_to(*args: Any, **kwargs: Any) -> tuple[Any, Any, bool, Any]:
    """What the arguments of `Tensor.to` say: the device, the dtype, non_blocking and the memory format."""
    given = dict(kwargs)
    rest = list(args)
    if rest and isinstance(rest[0], Tensor):
        other = rest.pop(0)
        given |= {"device": other.device, "dtype": other.dtype}
    elif rest and not isinstance(rest[0], dtype):
        given["device"] = rest.pop(0)
    if rest and (rest[0] is None or isinstance(rest[0], dtype)):
        given["dtype"] = rest.pop(0)
    if rest:
        given["non_blocking"] = rest.pop(0)
    place = given.get("device")
    return (
        None if place is None else device(place),
        given.get("dtype"),
        bool(given.get("non_blocking", False)),
        given.get("memory_format"),
    )


def _get_privateuse1_backend_name() -> str:
    return "privateuseone"


def __getattr__(name: str) -> Any:
    if not name.startswith("_"):
        if hasattr(functional, name):
            return getattr(functional, name)
        if name in dir(NAMESPACES["aten"]):
            return getattr(NAMESPACES["aten"], name)
    return getattr(_absent, name)
