"""`__torch_function__`: types that override what functions do to them.

A public function looks at the types of its arguments before it runs. Those of tensors and plain Python values
say nothing; a class with `__torch_function__` is handed the function and its arguments instead. A mode, which
is a `with` block, is handed every function that is called in it."""

from __future__ import annotations

import functools
import sys
import types
from collections.abc import Callable, Iterable, MutableMapping
from typing import Any, TypeVar, cast

from tenfold.trace.context import context

# The types of arguments that have nothing to say; `Tensor` and `Parameter` enter themselves.
PLAIN: set[type] = {int, float, bool, complex, str, types.NoneType, slice, types.EllipsisType}

Declared = TypeVar("Declared", bound=Callable[..., Any])


def disabled(func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: Any = None) -> Any:
    """The function on its arguments: the `__torch_function__` of a class that has nothing to say."""
    return func(*args, **(kwargs or {}))


def overrides(kind: type) -> bool:
    """Whether a type says what functions do to its instances."""
    own = getattr(kind, "__torch_function__", None)
    return own is not None and own is not disabled


def overriding(
    args: Iterable[Any], kwargs: dict[str, Any] | None = None, with_tensors: bool = False
) -> list[Any]:
    """The arguments, also inside lists and tuples, whose types override functions: one of each type, an
    instance of a subclass before that of its base. Plain tensors are among them only on request."""
    overriders: list[Any] = []
    for argument in args if not kwargs else (*args, *kwargs.values()):
        kind = argument.__class__
        if kind in PLAIN and not (with_tensors and overrides(kind)):
            continue
        if kind is tuple or kind is list:
            for part in argument:
                if part.__class__ not in PLAIN and overrides(part.__class__):
                    _insert(overriders, part)
        elif not isinstance(argument, type) and overrides(kind):
            _insert(overriders, argument)
    return overriders


def _insert(overriders: list[Any], argument: Any) -> None:
    kind = type(argument)
    if any(type(other) is kind for other in overriders):
        return
    place = next((i for i, other in enumerate(overriders) if issubclass(kind, type(other))), len(overriders))
    overriders.insert(place, argument)


def hand_over(function: Callable[..., Any], args: Any, kwargs: Any, overriders: list[Any]) -> Any:
    """What the innermost mode, or else the arguments' types, make of a call; the first that does not decline
    with NotImplemented is taken."""
    kinds = tuple(map(type, overriders))
    if context.modes:
        *outer, mode = context.modes
        with _modes(tuple(outer)):
            result = mode.__torch_function__(function, kinds, args, kwargs)
        if result is not NotImplemented:
            return result
    for overrider in overriders:
        result = type(overrider).__torch_function__(function, kinds, args, kwargs)
        if result is not NotImplemented:
            return result
    asked = [kind.__name__ for kind in (*kinds, *map(type, context.modes[-1:]))]
    raise TypeError(
        f"no implementation found for {getattr(function, '__name__', function)!r} on types that implement "
        f"__torch_function__: {', '.join(asked)}"
    )


class _modes:
    """A `with` block in which other modes are in force."""

    def __init__(self, modes: tuple[Any, ...]):
        self.modes = modes

    def __enter__(self) -> None:
        self.before, context.modes = context.modes, self.modes

    def __exit__(self, *error: Any) -> None:
        context.modes = self.before


class DisableTorchFunctionSubclass:
    """A `with` block in which types have no say; modes still have."""

    def __enter__(self) -> None:
        self.before, context.heeds = context.heeds, False

    def __exit__(self, *error: Any) -> None:
        context.heeds = self.before


class DisableTorchFunction(DisableTorchFunctionSubclass):
    """A `with` block in which neither types nor modes have a say."""

    def __enter__(self) -> None:
        super().__enter__()
        self.modes, context.modes = context.modes, ()

    def __exit__(self, *error: Any) -> None:
        super().__exit__(*error)
        context.modes = self.modes


def heeding(function: Declared) -> Declared:
    """A public function written in Python, which hands its call over to the types that override it."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        overriders = overriding(args, kwargs) if context.heeds else []
        if overriders or context.modes:
            return hand_over(call, args, kwargs, overriders)
        return function(*args, **kwargs)

    call.__torch_overridable__ = True  # type: ignore[attr-defined]
    return cast("Declared", call)


def seen_by_modes(function: Declared) -> Declared:
    """A function that makes a tensor of anything: modes are handed its call, its arguments' types are not."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        return hand_over(call, args, kwargs, []) if context.modes else function(*args, **kwargs)

    call.__torch_overridable__ = True  # type: ignore[attr-defined]
    return cast("Declared", call)


def publish(namespace: MutableMapping[str, Any], module: str, decorate: Any = heeding) -> None:
    """Let the public Python functions that come from a module, or from one named after it, heed the types of
    their arguments."""
    for name, function in list(namespace.items()):
        if not isinstance(function, types.FunctionType) or name.startswith("_"):
            continue
        if (
            (function.__module__ or "").startswith(module)
            and function.__name__ not in IGNORED
            and not overridable(function)
        ):
            function = namespace[name] = decorate(function)
        if vars(sys.modules[function.__module__]).get(function.__name__) is not function:
            function.__module__ = namespace["__name__"]  # where pickle finds it


# Questions and settings, which no type answers.
IGNORED = frozenset(
    ["is_tensor", "eval_", "broadcast_shapes", "can_cast", "promote_types", "install", "calculate_gain"]
)


CODES: set[types.CodeType] = set()  # of functions made from the op table, which look at types themselves


def inner_code(factory: Callable[..., Any]) -> types.CodeType:
    """The code of the functions that a function makes, and returns."""
    inner = [each for each in factory.__code__.co_consts if isinstance(each, types.CodeType)]
    (code,) = [each for each in inner if not each.co_name.startswith("<")]
    return code


def overridable(function: Any) -> bool:
    """Whether a function hands its call over to types that override it."""
    code = getattr(function, "__code__", None)
    return code in CODES or hasattr(function, "__torch_overridable__")
