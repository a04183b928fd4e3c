"""Memos with a bound: a long run meets ever new shapes."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping
from types import MappingProxyType
from typing import Any, TypeVar

from tenfold.base.forking import forkable

Result = TypeVar("Result")
BOUND = 2048


class Bounded:
    """Results by key. When they weigh more than the bound, the least recently used go; each weighs 1 unless
    `weight` says what it does."""

    def __init__(self, bound: int = BOUND, weight: Callable[[Any], int] = lambda result: 1):
        self.bound = bound
        self.weight = weight
        self.total = 0
        self._lock = forkable(threading.Lock())
        self._results: OrderedDict[Hashable, Any] = OrderedDict()

    def get(self, key: Hashable, make: Callable[[], Result]) -> Result:
        """What was made for a key, or is made now."""
        result = self._results.get(key)
        if result is None:
            result = make()
            self._keep(key, result)
        else:
            try:
                self._results.move_to_end(key)
            except KeyError:  # another thread let it go meanwhile
                self._keep(key, result)
        return result

    def _keep(self, key: Hashable, result: Any) -> None:
        with self._lock:
            before = self._results.pop(key, None)  # another thread made it meanwhile
            self.total += self.weight(result) - (0 if before is None else self.weight(before))
            self._results[key] = result
            while self.total > self.bound and self._results:
                self.total -= self.weight(self._results.popitem(last=False)[1])

    def __len__(self) -> int:
        return len(self._results)


class Generations(dict[Any, Any]):
    """A memo for hot paths: `get` is a dict's own. When it is full, its entries become the older generation,
    in which `older` finds them; those that nobody asks for until it is full again are forgotten. It is full
    when its entries weigh as much as the bound: each 1, unless `weight` says what it does."""

    bound = BOUND // 2  # of each generation
    _older: Mapping[Any, Any] = MappingProxyType({})
    _total = 0

    def __init__(self, weight: Callable[[Any], int] = lambda result: 1):
        super().__init__()
        self._weight = weight

    def older(self, key: Hashable) -> Any:
        """What the older generation has under a key, which is thereby kept; None if it has nothing."""
        result = self._older.get(key)
        return None if result is None else self.keep(key, result)

    def keep(self, key: Hashable, result: Any) -> Any:
        """Remember a result, and give it back, or what another thread has remembered meanwhile."""
        if self._total >= self.bound:
            self._older = dict(self)
            super().clear()
            self._total = 0
        self._total += self._weight(result)
        return self.setdefault(key, result)

    def clear(self) -> None:
        super().clear()
        self._older = {}
        self._total = 0
