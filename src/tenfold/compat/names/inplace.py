"""Functions that write to their first argument, `tenfold.relu_(x)`: PyTorch has them beside the methods, and
a few of them alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tenfold.base.errors import ArgumentError
from tenfold.base.source import capture
from tenfold.compat.names import INPLACE
from tenfold.ops.table import TABLE
from tenfold.tensor import Tensor, dispatch


def _of_method(name: str) -> Callable[..., Tensor]:
    def call(input: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        return getattr(_tensor(name, input), name)(*args, **kwargs)

    return _named(call, name)


def _of_op(name: str) -> Callable[..., Tensor]:
    write = dispatch.inplace_method(name, TABLE[name], method=False)

    def call(input: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        return write(_tensor(name, input), *args, **kwargs)

    return _named(call, name + "_")


def _tensor(name: str, argument: Any) -> Tensor:
    if not isinstance(argument, Tensor):
        raise ArgumentError(f"writes to a Tensor, not to a {type(argument).__name__}").located(
            name, capture()
        )
    return argument


def _named(call: Callable[..., Tensor], name: str) -> Callable[..., Tensor]:
    call.__name__ = call.__qualname__ = name
    call.__doc__ = f"`{name.removesuffix('_')}`, written into its first argument."
    return call


def __getattr__(name: str) -> Callable[..., Tensor]:
    """The function of a name, made when it is first asked for."""
    stem = name.removesuffix("_")
    if name not in INPLACE:
        raise AttributeError(name)
    call = globals()[name] = _of_method(name) if hasattr(Tensor, name) else _of_op(stem)
    return call
