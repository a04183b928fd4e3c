"""What names are looked up in, each as a container: variables of enclosing functions, attributes of classes
and of objects with slots, deques, and whether names are bound at all."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from types import CellType
from typing import Any

MISSING = object()
ALL = slice(None)


class Cells:
    """The variables of functions around others, as a container: by the identities of their cells."""

    def __init__(self, cells: Iterable[tuple[str, CellType]]):
        cells = list(cells)
        self._cells = {id(cell): cell for _, cell in cells}
        self._names = {id(cell): name for name, cell in cells}

    def label(self, cell: int) -> str:
        return f"the variable `{self._names[cell]}` of an enclosing function"

    def __iter__(self) -> Iterator[int]:
        return iter(self._cells)

    def __getitem__(self, cell: int) -> Any:
        try:
            return self._cells[cell].cell_contents
        except ValueError:  # it has no value yet, or no longer
            raise LookupError(cell) from None

    def __setitem__(self, cell: int, value: Any) -> None:
        self._cells[cell].cell_contents = value

    def __delitem__(self, cell: int) -> None:
        del self._cells[cell].cell_contents


class Attributes:
    """The attributes of a class, as a container."""

    def __init__(self, kind: type):
        self._kind = kind

    def label(self, name: str) -> str:
        return f"`{self._kind.__qualname__}.{name}`"

    def __getitem__(self, name: str) -> Any:
        return vars(self._kind)[name]

    def __setitem__(self, name: str, value: Any) -> None:
        setattr(self._kind, name, value)

    def __delitem__(self, name: str) -> None:
        delattr(self._kind, name)


class Slots:
    """The attributes of an object that has no dict for them, as a container."""

    def __init__(self, owner: Any):
        self._owner = owner

    def label(self, name: str) -> str:
        return f"the attribute `{name}` of a {type(self._owner).__qualname__}"

    def __getitem__(self, name: str) -> Any:
        try:
            return getattr(self._owner, name)
        except AttributeError:
            raise LookupError(name) from None

    def __setitem__(self, name: str, value: Any) -> None:
        setattr(self._owner, name, value)

    def __delitem__(self, name: str) -> None:
        delattr(self._owner, name)


class Queue:
    """A deque as a container of one thing: ALL that is in it."""

    def __init__(self, queue: deque[Any]):
        self._queue = queue

    def label(self, name: Any) -> str:
        return "the contents of a deque"

    def __getitem__(self, name: Any) -> list[Any]:
        return list(self._queue)

    def __setitem__(self, name: Any, values: Any) -> None:
        self._queue.clear()
        self._queue.extend(values)


class Has:
    """A container whose values say whether each name is bound. `guards.label` puts it in words."""

    def __init__(self, container: Any):
        self.names_of = container

    def __getitem__(self, name: Any) -> bool:
        return bound_to(self.names_of, name) is not MISSING


class Absent:
    """The names that are not bound in a dict of attributes, as a container: whether none of several is."""

    def __init__(self, owner: str, attributes: Mapping[str, Any]):
        self._owner = owner
        self._bound = attributes.keys()

    def label(self, names: Iterable[str]) -> str:
        listed = ", ".join(f"`{name}`" for name in sorted(names))
        return f"whether {self._owner} has no attribute of its own called {listed}"

    def __getitem__(self, names: frozenset[str]) -> bool:
        return self._bound.isdisjoint(names)


class Count:
    """How many attributes an object has, as a container."""

    def __init__(self, owner: Any):
        self._owner = type(owner).__qualname__
        self._attributes = vars(owner)

    def label(self, name: Any) -> str:
        return f"the number of attributes of a {self._owner}"

    def __getitem__(self, name: Any) -> int:
        return len(self._attributes)


class Entries:
    """What is in a dict of a class derived from dict, as a container: it makes nothing that is missing."""

    def __init__(self, entries: dict[Any, Any]):
        self._entries = entries

    def label(self, key: Any) -> str:
        return f"the entry [{key!r}] of a {type(self._entries).__name__}"

    def __getitem__(self, key: Any) -> Any:
        return dict.get(self._entries, key, MISSING)


class _Lengths:
    """How much is in each list or dict, as a container."""

    def label(self, container: Any) -> str:
        return f"the number of entries of a {type(container).__name__}"

    def __getitem__(self, container: Any) -> int:
        return len(container)


LENGTHS = _Lengths()


def bound_to(container: Any, name: Any) -> Any:
    if isinstance(container, dict):
        return container.get(name, MISSING)  # a defaultdict makes nothing
    try:
        return container[name]
    except LookupError:
        return MISSING
