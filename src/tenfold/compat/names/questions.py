"""Functions of PyTorch's that ask about a tensor or a size, and those on sizes that may be symbols there:
here sizes are plain numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from tenfold import cpu, cuda
from tenfold.base.devices import Device
from tenfold.base.errors import DeviceError, located
from tenfold.functional import require_tensor
from tenfold.ops.plain.containers import constrain_range
from tenfold.tensor import Tensor


@located
def is_conj(input: Tensor) -> bool:
    """False: conjugation is computed at once."""
    return require_tensor(input).is_conj()


@located
def is_neg(input: Tensor) -> bool:
    """False: negation is computed at once."""
    return require_tensor(input).is_neg()


@located
def is_inference(input: Tensor) -> bool:
    """False: a tensor made in inference mode is like any other."""
    require_tensor(input)
    return False


@located
def is_distributed(input: Tensor) -> bool:
    require_tensor(input)
    return False


def is_storage(obj: Any) -> bool:
    """False: the memory behind a tensor is not shown."""
    return False


@located
def get_device(input: Tensor) -> int:
    """The index of the GPU that a tensor is on; -1 for the CPU."""
    return require_tensor(input).get_device()


@located
def get_device_module(device: Any = None) -> Any:
    """The module with the functions for a kind of device: `tenfold.cuda` or `tenfold.cpu`."""
    chosen = ("cuda" if cuda.is_available() else "cpu") if device is None else device
    kind = Device(chosen).type
    modules = {"cuda": cuda, "cpu": cpu}
    if kind not in modules:
        raise DeviceError(f"there is no module for the {kind}", help="tenfold.cuda and tenfold.cpu are some")
    return modules[kind]


def typename(obj: Any, /) -> str:
    """The name of an object's type with its module; of a tensor the older name, "tenfold.FloatTensor"."""
    if isinstance(obj, Tensor):
        return obj.type()
    kind = obj if isinstance(obj, type) or hasattr(obj, "__qualname__") else type(obj)
    module = getattr(kind, "__module__", None)
    prefix = "" if module in (None, "builtins") else f"{module}."
    return prefix + kind.__qualname__


@located
def to_dlpack(tensor: Tensor) -> Any:
    """A DLPack capsule that shares the tensor's memory."""
    return require_tensor(tensor).detach().__dlpack__()


# Sizes


def sym_int(a: Any) -> int:
    return int(a)


def sym_float(a: Any) -> float:
    return float(a)


def sym_max(a: Any, b: Any) -> Any:
    """The larger one; a float if either is one."""
    larger = max(a, b)
    return float(larger) if isinstance(a, float) or isinstance(b, float) else larger


def sym_min(a: Any, b: Any) -> Any:
    """The smaller one; a float if either is one."""
    smaller = min(a, b)
    return float(smaller) if isinstance(a, float) or isinstance(b, float) else smaller


def sym_not(a: Any) -> bool:
    return not a


def sym_sqrt(a: Any) -> float:
    return math.sqrt(a)


def sym_sum(args: Sequence[Any]) -> Any:
    return sum(args)


def sym_ite(b: bool, t: Any, f: Any) -> Any:
    return t if b else f


@located
def sym_constrain_range(size: Any, *, min: int | None = None, max: int | None = None) -> None:
    """Refuse a size outside of what is promised."""
    constrain_range(size, min, max)


sym_constrain_range_for_size = sym_constrain_range
