"""`tenfold.overrides`: `__torch_function__`, by which a type overrides functions on its instances, and modes,
which intercept every function that is called in a `with` block."""

from __future__ import annotations

import functools
import sys
import types
from collections.abc import Callable, Iterable
from typing import Any, Self

from tenfold import fft, linalg, special
from tenfold.base.absent import AbsentModule
from tenfold.nn import functional, init
from tenfold.tensor import Tensor
from tenfold.tensor.overriding import hand_over, overridable, overriding
from tenfold.tensor.subclasses import nowrap_functions
from tenfold.trace.context import context

__all__ = [
    "BaseTorchFunctionMode", "TorchFunctionMode", "get_default_nowrap_functions", "get_ignored_functions",
    "get_overridable_functions", "get_testing_overrides", "handle_torch_function", "has_torch_function",
    "is_tensor_like", "is_tensor_method_or_property", "resolve_name", "wrap_torch_function",
]  # fmt: skip

_absent = AbsentModule.of("torch._C")


def is_tensor_like(inp: Any) -> bool:
    """Whether it is a tensor, or of a type that overrides functions."""
    return type(inp) is Tensor or hasattr(inp, "__torch_function__")


def has_torch_function(relevant_args: Iterable[Any]) -> bool:
    """Whether one of the arguments is of a type that overrides functions, or a mode is active."""
    return bool(context.modes) or (context.heeds and bool(overriding(relevant_args)))


def has_torch_function_unary(arg: Any) -> bool:
    """`has_torch_function` of one argument."""
    return has_torch_function((arg,))


def has_torch_function_variadic(*args: Any) -> bool:
    """`has_torch_function` of these arguments."""
    return has_torch_function(args)


def handle_torch_function(
    public_api: Callable[..., Any], relevant_args: Iterable[Any], *args: Any, **kwargs: Any
) -> Any:
    """Offer a call to the types of its arguments, and return the first result that is not NotImplemented."""
    return hand_over(public_api, args, kwargs, overriding(relevant_args, with_tensors=True))


def wrap_torch_function(
    dispatcher: Callable[..., Any],
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Make a function overridable; `dispatcher` returns the arguments whose types are asked.

    >>> @tenfold.overrides.wrap_torch_function(lambda x: (x,))
    ... def double(x):
    ...     return x + x
    """

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            relevant = dispatcher(*args, **kwargs)
            if has_torch_function(relevant):
                return handle_torch_function(call, relevant, *args, **kwargs)
            return function(*args, **kwargs)

        return call

    return decorate


class TorchFunctionMode:
    """A `with` block in which this object's `__torch_function__` receives every call of a function.

    While it runs, only the outer modes are active, so calling the function itself continues with those.
    """

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        raise NotImplementedError

    def __enter__(self) -> Self:
        context.modes = (*context.modes, self)
        return self

    def __exit__(self, *error: Any) -> None:
        context.modes = context.modes[:-1]

    @classmethod
    def push(cls, *args: Any, **kwargs: Any) -> Self:
        return cls(*args, **kwargs)


class BaseTorchFunctionMode(TorchFunctionMode):
    """A mode that calls each function as it is."""

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        return func(*args, **(kwargs or {}))


def _get_current_function_mode() -> TorchFunctionMode | None:
    return context.modes[-1] if context.modes else None


def _get_current_function_mode_stack() -> list[TorchFunctionMode]:
    return list(context.modes)


@functools.cache
def _overridable() -> dict[Any, list[Callable[..., Any]]]:
    found: dict[Any, list[Callable[..., Any]]] = {}
    for module in (sys.modules["tenfold"], functional, init, linalg, fft, special):
        found[module] = [each for each in vars(module).values() if overridable(each)]
    found[Tensor] = [
        each.__get__ if isinstance(each, property) else each
        for base in reversed(Tensor.__mro__[:-1])
        for name, each in vars(base).items()
        if isinstance(each, (property, types.FunctionType))
        and (not name.startswith("_") or name.endswith("__"))
    ]
    return found


def get_overridable_functions() -> dict[Any, list[Callable[..., Any]]]:
    """The functions that types can override, by the module or class that holds them."""
    return _overridable()


def get_testing_overrides() -> dict[Callable[..., Any], Callable[..., Any]]:
    """A function with each overridable function's signature that returns -1, for tests of overrides."""
    return {each: lambda *args, **kwargs: -1 for every in _overridable().values() for each in every}


def get_ignored_functions() -> set[Callable[..., Any]]:
    """The functions of the package that no type can override."""
    package = sys.modules["tenfold"]
    return {
        each
        for each in vars(package).values()
        if isinstance(each, types.FunctionType) and not overridable(each)
    }


def is_tensor_method_or_property(func: Callable[..., Any]) -> bool:
    """Whether it is a method of Tensor, or the `__get__` of an attribute of it."""
    return func in _overridable()[Tensor] or getattr(func, "__name__", "") in ("__get__", "__set__")


def resolve_name(f: Callable[..., Any]) -> str | None:
    """The qualified name of a function, such as "torch.Tensor.add"."""
    if isinstance(getattr(f, "__self__", None), property):
        named = {id(each): name for base in Tensor.__mro__ for name, each in vars(base).items()}
        return f"torch.Tensor.{named.get(id(f.__self__), '?')}.{f.__name__}"  # type: ignore[attr-defined]
    if any(vars(base).get(getattr(f, "__name__", "")) is f for base in Tensor.__mro__):
        return f"torch.Tensor.{f.__name__}"
    name = getattr(f, "__qualname__", None)
    if name is None:
        return None
    module = next((each.__name__ for each, known in _overridable().items() if f in known), None)
    module = module or getattr(f, "__module__", None) or "torch"
    return f"{module.replace('tenfold', 'torch', 1)}.{name}"


def get_default_nowrap_functions() -> set[Any]:
    """Functions whose results keep their own type."""
    return set(nowrap_functions())


def __getattr__(name: str) -> Any:
    return getattr(_absent, name)
