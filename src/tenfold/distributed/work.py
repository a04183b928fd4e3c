"""`Work`: what a collective that is called with `async_op=True` gives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class Work:
    """A collective that is done."""

    def wait(self, timeout: Any = None) -> bool:
        return True

    def is_completed(self) -> bool:
        return True

    def is_success(self) -> bool:
        return True

    def exception(self) -> None:
        return None

    def synchronize(self) -> None:
        self.wait()

    def get_future(self) -> Done:
        self.wait()
        return Done(self)


class Done:
    """The future of a collective that is done."""

    def __init__(self, value: Any):
        self._value = value

    def wait(self) -> Any:
        return self._value

    value = wait

    def done(self) -> bool:
        return True

    def then(self, callback: Callable[[Done], Any]) -> Done:
        return Done(callback(self))
