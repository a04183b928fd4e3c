"""Classes derived from Tensor: how they are made, and how what is computed from them keeps their class.

A class that a program derives from Tensor gets `Subclassed` as one more base. Its methods are Tensor's own
that are written in Python, and hand their calls over to `__torch_function__`; those made from the op table
look at the types of their arguments themselves. So plain tensors pay nothing for it."""

from __future__ import annotations

import functools
import types
from collections.abc import Callable
from typing import Any

from tenfold.base.devices import Device, get_default_device
from tenfold.base.dtypes import DType, get_default_dtype
from tenfold.base.errors import ArgumentError, located
from tenfold.base.source import capture
from tenfold.flat.ir import TensorType
from tenfold.tensor import Tensor
from tenfold.tensor.overriding import (
    PLAIN,
    DisableTorchFunctionSubclass,
    disabled,
    hand_over,
    overridable,
    overrides,
    overriding,
)
from tenfold.tensor.parameter import Parameter
from tenfold.trace import graph
from tenfold.trace.context import context
from tenfold.trace.graph import Value


def made(cls: type[Tensor], value: Value, alias: Any = None) -> Any:
    """A tensor of a class, without calling the class."""
    new = object.__new__(cls)
    Tensor.__init__(new, value, alias)
    return new


# What `Tensor.__torch_function__` leaves as it is: results that are of a plain tensor's own.
NOWRAP = ("_base", "grad", "_grad")


@functools.cache
def nowrap_functions() -> frozenset[Any]:
    return frozenset([getattr(Tensor, name).__get__ for name in NOWRAP if hasattr(Tensor, name)])


def torch_function(
    cls: type[Tensor],
    func: Callable[..., Any],
    types: tuple[type, ...],
    args: tuple[Any, ...] = (),
    kwargs: dict[str, Any] | None = None,
) -> Any:
    """Run a function on tensors of this class as on plain ones; what comes out is of the class too."""
    if not all(issubclass(cls, overloaded) for overloaded in types):
        return NotImplemented
    with DisableTorchFunctionSubclass():
        result = func(*args, **(kwargs or {}))
        return result if func in nowrap_functions() else _converted(result, cls)


def _converted(result: Any, cls: type[Tensor]) -> Any:
    if cls is Tensor or result.__class__ in _SCALARS:
        return result
    if isinstance(result, Tensor) and not isinstance(result, cls):
        return result.as_subclass(cls)
    if isinstance(result, (tuple, list)):
        parts = [_converted(element, cls) for element in result]
        return type(result)(*parts) if hasattr(result, "_fields") else type(result)(parts)
    return result


_SCALARS = frozenset([int, float, bool, complex, str, type(None)])


@located
def make_subclass(cls: type[Tensor], data: Tensor, require_grad: bool = False, **options: Any) -> Tensor:
    """A tensor of a class that shares the memory of `data`, without its history."""
    if not isinstance(data, Tensor):
        raise ArgumentError(f"takes a Tensor, not {type(data).__name__}")
    with DisableTorchFunctionSubclass():
        shared = data.detach()
        shared.share()
        new = made(cls, graph.fresh(shared.current(), capture()), shared._alias)
        return new.requires_grad_() if require_grad else new


@located
def make_wrapper_subclass(
    cls: type[Tensor],
    size: Any,
    strides: Any = None,
    storage_offset: int | None = None,
    memory_format: Any = None,
    dtype: DType | None = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    **options: Any,
) -> Tensor:
    """A tensor of a class with a shape, a dtype and a device, and no data of its own: the class holds other
    tensors and says in `__torch_function__` what functions do to them."""
    place = (get_default_device() if device is None else Device(device)).resolved
    value = Value(TensorType(dtype or get_default_dtype(), tuple(size)), place, buffer=graph.NO_DATA)
    value.source = capture()
    new = made(cls, value)
    return new.requires_grad_() if requires_grad else new


# The class that programs' own classes are derived from


def _new(cls: type[Tensor], *args: Any, **kwargs: Any) -> Any:
    """As PyTorch's `Tensor.__new__`, from sizes, numbers or a tensor, whose memory is shared."""
    if args and isinstance(args[0], Tensor):
        return make_subclass(cls, args[0], args[0].requires_grad and args[0].is_leaf)
    new = object.__new__(cls)
    Tensor.__init__(new, *args, **kwargs)
    return new


def _new_parameter(cls: type[Parameter], data: Any = None, requires_grad: bool = True) -> Any:
    new = object.__new__(cls)
    Parameter.__init__(new, data, requires_grad)
    return new


def _no_init(self: Tensor, *args: Any, **kwargs: Any) -> None:
    """Does nothing: `__new__` has made the tensor."""


# Tenfold's own methods that PyTorch has not, and what makes an object or asks for its class.
_OURS = frozenset(
    [
        "__init__", "__new__", "__init_subclass__", "__torch_function__", "__class__", "__getattr__",
        "__iter__", "__hash__", "__copy__", "__reduce_ex__", "as_subclass", "current", "collector", "keeper",
        "memory", "shelf", "assign", "become", "replace", "share", "check_write", "eval", "show",
    ]
)  # fmt: skip
_PRIVATE = ("_is_view", "_base", "_version")


def _heeding_property(own: property) -> property:
    def get(self: Tensor) -> Any:
        if context.modes or (context.heeds and overrides(type(self))):
            return hand_over(own.__get__, (self,), {}, overriding((self,)))
        return own.__get__(self)

    def put(self: Tensor, value: Any) -> None:
        if context.modes or (context.heeds and overrides(type(self))):
            hand_over(own.__set__, (self, value), {}, overriding((self,)))
        else:
            own.__set__(self, value)

    return property(get, put if own.fset is not None else None, doc=own.__doc__)


@functools.cache
def subclassed() -> type[Tensor]:
    """The class with Tensor's methods that hand their calls over, made when a program first needs it."""
    members: dict[str, Any] = {"__slots__": (), "__module__": __name__, "__new__": _new, "__init__": _no_init}
    for base in Tensor.__mro__[-2::-1]:
        for name, own in vars(base).items():
            if name in _OURS or (name.startswith("_") and not name.endswith("__") and name not in _PRIVATE):
                continue
            if isinstance(own, property):
                members[name] = _heeding_property(own)
            elif isinstance(own, types.FunctionType) and not overridable(own):
                members[name] = _method(own)
    return type("Subclassed", (Tensor,), members)


def _method(own: types.FunctionType) -> Any:
    def call(self: Tensor, *args: Any, **kwargs: Any) -> Any:
        overriders = overriding((self, *args), kwargs) if context.heeds else []
        if overriders or context.modes:
            return hand_over(own, (self, *args), kwargs, overriders)
        return own(self, *args, **kwargs)

    return functools.wraps(own)(call)


@functools.cache
def subclassed_parameter() -> type[Parameter]:
    members = {"__slots__": (), "__module__": __name__, "__new__": _new_parameter, "__init__": _no_init}
    return type("SubclassedParameter", (Parameter,), members)


def adopt(cls: Any, /, **options: Any) -> None:
    """Give a program's own class the bases by which it is made and heard."""
    if cls.__module__.startswith("tenfold."):
        return
    adopted: list[type] = []
    for base in cls.__bases__:
        adopted.append(subclassed_parameter() if base is Parameter else base)
    if overrides(cls):
        adopted = [subclassed() if base is Tensor else base for base in adopted]
        if not any(issubclass(base, subclassed()) for base in adopted):
            adopted.append(subclassed())
    elif Tensor in adopted:
        adopted[adopted.index(Tensor)] = _silent()
    if tuple(adopted) != cls.__bases__:
        cls.__bases__ = tuple(adopted)


@functools.cache
def _silent() -> type[Tensor]:
    """The base of a class that turns `__torch_function__` off: what is computed from it is a plain tensor."""
    members = {"__slots__": (), "__module__": __name__, "__new__": _new, "__init__": _no_init}
    return type("SubclassedSilently", (Tensor,), members)


def install() -> None:
    """Let Tensor be derived from as PyTorch's is."""
    PLAIN.update((Tensor, Parameter))
    owner: Any = Tensor
    owner.__torch_function__ = classmethod(torch_function)
    owner.__init_subclass__ = classmethod(adopt)
    owner._make_subclass = staticmethod(make_subclass)
    owner._make_wrapper_subclass = staticmethod(make_wrapper_subclass)
    Parameter.__torch_function__ = staticmethod(disabled)  # type: ignore[attr-defined]
