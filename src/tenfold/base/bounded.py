"""A memo with a bound: a long run meets ever new shapes."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any, TypeVar

Result = TypeVar("Result")
BOUND = 2048


class Bounded:
    """Results by key. When there are more than the bound, the least recently used goes."""

    def __init__(self, bound: int = BOUND):
        self.bound = bound
        self._results: OrderedDict[Hashable, Any] = OrderedDict()

    def get(self, key: Hashable, make: Callable[[], Result]) -> Result:
        """What was made for a key, or is made now."""
        result = self._results.get(key)
        if result is None:
            result = self._results[key] = make()
            while len(self._results) > self.bound:
                self._results.popitem(last=False)
        else:
            try:
                self._results.move_to_end(key)
            except KeyError:  # another thread let it go meanwhile
                self._results[key] = result
        return result

    def __len__(self) -> int:
        return len(self._results)
