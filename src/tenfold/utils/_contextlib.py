"""`tenfold.utils._contextlib`: contexts that decorate functions too, which libraries derive theirs from."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable
from typing import Any


class _DecoratorContextManager(contextlib.ContextDecorator):
    """The base of a context that may decorate: each call of the function enters a `clone` of it."""

    def __enter__(self) -> Any:
        raise NotImplementedError

    def __exit__(self, *error: object) -> Any:
        raise NotImplementedError

    def clone(self) -> Any:
        return type(self)()

    def __call__(self, function: Callable[..., Any]) -> Any:
        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            with self.clone():
                return function(*args, **kwargs)

        return call


class _NoParamDecoratorContextManager(_DecoratorContextManager):
    """A context that may decorate without parentheses: `@context` is `@context()`."""

    def __new__(cls, function: Callable[..., Any] | None = None) -> Any:
        return super().__new__(cls) if function is None else cls()(function)
