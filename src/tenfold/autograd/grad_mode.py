"""Whether gradients are recorded: `no_grad`, `enable_grad`, `set_grad_enabled`, `inference_mode`. Each is a
context manager and a decorator, and applies to its own thread."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from tenfold.trace.context import context


class _Mode:
    """A setting for the time of a `with` block, or of the function that it decorates."""

    enabled: bool = True
    inference: bool | None = None

    def __enter__(self) -> None:
        stack = self.__dict__.setdefault("_before", [])  # one object may be entered again inside itself
        stack.append((context.grad_enabled, context.inference))
        context.grad_enabled = self.enabled
        if self.inference is not None:
            context.inference = self.inference

    def __exit__(self, *error: Any) -> None:
        context.grad_enabled, inference = self.__dict__["_before"].pop()
        if context.inference is not inference:
            context.inference = inference

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        if inspect.isgeneratorfunction(function):
            return self._stepwise(function)

        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            with self.copy():
                return function(*args, **kwargs)

        return call

    def _stepwise(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """A generator for which the setting holds while it runs, and not while its user does."""

        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            generator = function(*args, **kwargs)
            resume: Callable[..., Any] = generator.send
            sent: Any = None
            while True:
                try:
                    with self.copy():
                        yielded = resume(sent)
                except StopIteration as end:
                    return end.value
                try:
                    sent, resume = (yield yielded), generator.send
                except GeneratorExit:
                    with self.copy():
                        generator.close()
                    raise
                except BaseException as error:
                    sent, resume = error, generator.throw

        return call

    def copy(self) -> _Mode:
        return type(self)()


class _Decorating(_Mode):
    """A mode whose class itself may decorate: `@no_grad` as well as `@no_grad()`."""

    def __new__(cls, function: Callable[..., Any] | None = None) -> Any:
        mode = super().__new__(cls)
        return mode if function is None else mode(function)


class no_grad(_Decorating):
    """Do not record gradients: results do not require them."""

    enabled = False


class enable_grad(_Decorating):
    """Record gradients, also inside `no_grad`."""

    enabled = True


class set_grad_mode(_Mode):
    """Record gradients or not, inside a `with` block only."""

    def __init__(self, enabled: bool):
        self.enabled = bool(enabled)

    def copy(self) -> _Mode:
        return type(self)(self.enabled)


class set_grad_enabled(set_grad_mode):
    """Record gradients or not, from now on, or until the end of a `with` block."""

    def __init__(self, mode: bool):
        super().__init__(mode)
        self._before = [(context.grad_enabled, context.inference)]
        context.grad_enabled = self.enabled

    def __enter__(self) -> None:
        pass  # it holds since it was made

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        self.__exit__()
        return set_grad_mode(self.enabled)(function)


class inference_mode(_Mode):
    """Do not record gradients, like `no_grad`."""

    def __new__(cls, mode: Any = True) -> Any:
        decorator = super().__new__(cls)
        if callable(mode):
            decorator.__init__(True)  # type: ignore[misc]
            return decorator(mode)
        return decorator

    def __init__(self, mode: bool = True):
        if not callable(mode):
            self.inference = bool(mode)
            # Inside another inference_mode, turning it off follows gradients again.
            self.enabled = not mode and (context.grad_enabled or context.inference)

    def copy(self) -> _Mode:
        return type(self)(bool(self.inference))
