"""`tenfold.overrides`: whether an object's type has its own say in how functions run on it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from tenfold.base.absent import AbsentModule
from tenfold.tensor import Tensor

__all__ = [
    "get_default_nowrap_functions", "handle_torch_function", "has_torch_function", "is_tensor_like",
    "resolve_name",
]  # fmt: skip

_absent = AbsentModule.of("torch._C")


def is_tensor_like(inp: Any) -> bool:
    """Whether it is a tensor, or of a type that says what functions do to it."""
    return type(inp) is Tensor or hasattr(inp, "__torch_function__")


def _overriding(arguments: Iterable[Any]) -> list[Any]:
    """Those arguments whose type is no plain tensor's, subclasses first, as PyTorch asks them."""
    found: list[Any] = []
    for each in arguments:
        kind = type(each)
        if not hasattr(kind, "__torch_function__") or kind.__torch_function__ in _PLAIN:
            continue
        if any(type(other) is kind for other in found):
            continue
        place = next((i for i, other in enumerate(found) if issubclass(kind, type(other))), len(found))
        found.insert(place, each)
    return found


_PLAIN = (getattr(Tensor, "__torch_function__", None),)


def has_torch_function(relevant_args: Iterable[Any]) -> bool:
    """Whether one of the arguments is of a type that says what functions do to it."""
    return bool(_overriding(relevant_args))


def has_torch_function_unary(arg: Any) -> bool:
    return has_torch_function((arg,))


def has_torch_function_variadic(*args: Any) -> bool:
    return has_torch_function(args)


def handle_torch_function(
    public_api: Callable[..., Any], relevant_args: Iterable[Any], *args: Any, **kwargs: Any
) -> Any:
    """What the arguments' types make of a call; the first that does not decline is taken."""
    asked = _overriding(relevant_args)
    types = tuple(map(type, asked))
    for each in asked:
        result = each.__torch_function__(public_api, types, args, kwargs)
        if result is not NotImplemented:
            return result
    names = ", ".join([kind.__name__ for kind in types])
    raise TypeError(
        f"no implementation found for {resolve_name(public_api)} on types that implement "
        f"__torch_function__: {names}"
    )


def resolve_name(f: Callable[..., Any]) -> str | None:
    """What a function is called, with its module."""
    name = getattr(f, "__qualname__", None)
    return None if name is None else f"{getattr(f, '__module__', None) or 'torch'}.{name}"


def get_default_nowrap_functions() -> set[Any]:
    """Functions whose results keep their own type."""
    return set()


def __getattr__(name: str) -> Any:
    return getattr(_absent, name)
