"""Names that a recorded function binds to tensors: attributes of modules and of objects, and the variables
that its own code reads.

What it binds is a result of its program, bound at each call. What it found under such a name is looked up at
each call, as if it were one more argument.
"""

from __future__ import annotations

import operator
from collections import Counter, deque
from collections.abc import Collection, Iterable, Sequence
from types import CellType
from typing import Any, NamedTuple

from tenfold.runtime import tree
from tenfold.runtime.guards import Guard, contents_of

MISSING = object()
ALL = slice(None)


class Cells:
    """The variables of the functions around one, as a container: by their places."""

    def __init__(self, cells: Sequence[CellType]):
        self._cells = cells

    def __getitem__(self, place: int) -> Any:
        try:
            return self._cells[place].cell_contents
        except ValueError:  # it has no value yet, or no longer
            raise LookupError(place) from None

    def __setitem__(self, place: int, value: Any) -> None:
        self._cells[place].cell_contents = value

    def __delitem__(self, place: int) -> None:
        del self._cells[place].cell_contents


class Has:
    """A container by its names: whether something is bound to each."""

    def __init__(self, container: Any):
        self._container = container

    def __getitem__(self, name: Any) -> bool:
        return _bound_to(self._container, name) is not MISSING


class Change(NamedTuple):
    """A name that is bound to other tensors than it was; of a list, ALL that is in it."""

    container: Any
    name: Any
    before: Any
    after: Any

    def undo(self) -> None:
        if self.before is MISSING:
            del self.container[self.name]
        else:
            self.container[self.name] = self.before

    def guard(self) -> Guard:
        """That there is what was there, the very same tensors."""
        if self.before is MISSING:
            return Has(self.container), self.name, False
        return self.container, self.name, contents_of(self.before)


class Place:
    """Where a function finds tensors at each call: of the types that they had, with gradients or without."""

    def __init__(self, container: Any, name: Any, structure: Any, tensors: Sequence[Any], is_tensor: Any):
        self._is_tensor = is_tensor
        self.container = container
        self.name = name
        self._structure = structure
        values = [each.current() for each in tensors]
        self._kinds = [(each.type, each.device, each.origin is None) for each in values]

    def find(self, written: Collection[Any]) -> list[Any] | None:
        """What is there now; None if that needs another program: other types, or memory that it writes."""
        found: list[Any] = []
        bound = _bound_to(self.container, self.name)
        if tree.flatten(bound, self._is_tensor, found) != self._structure:
            return None
        for each, kind in zip(found, self._kinds, strict=True):
            value = each.current()
            if (value.type, value.device, value.origin is None) != kind:
                return None
            if each._leaf is not None or memory_under(each) in written:
                return None
        return found


class Bindings:
    """What names were bound to when a function began to be recorded."""

    def __init__(self, tensor: type):
        self._tensor = tensor
        self._watched: dict[int, tuple[Any, Any, bool]] = {}

    def watch(self, container: Any, names: Iterable[Any] | None = None) -> None:
        """Notice what is bound to these names, or to any, or what a list holds."""
        if id(container) in self._watched:
            return
        if type(container) is list:
            before: Any = list(container)
        else:
            before = {name: _bound_to(container, name) for name in (container if names is None else names)}
        self._watched[id(container)] = (container, before, names is None)

    def changes(self) -> list[Change]:
        """The names that are bound to other tensors than they were, or to tensors and were not."""
        found = []
        for container, before, whole in self._watched.values():
            if type(container) is list:
                same = len(before) == len(container) and all(map(operator.is_, before, container))
                changed = [] if same else [Change(container, ALL, before, list(container))]
            else:
                names = [*before, *[name for name in container if name not in before]] if whole else [*before]
                pairs = [(name, before.get(name, MISSING), _bound_to(container, name)) for name in names]
                changed = [Change(container, *each) for each in pairs if each[1] is not each[2]]
            found += [each for each in changed if self._tensors(each.before) or self._tensors(each.after)]
        return [each for each in found if each.after is not MISSING]

    def put_back(self) -> None:
        for each in self.changes():
            each.undo()

    def places(
        self, changes: Sequence[Change], written: Collection[Any], given: Sequence[Any]
    ) -> tuple[list[Place], list[Any], list[Guard]]:
        """Where to look up at each call what the function found under the names that it binds, and those of
        the variables it reads, and the tensors that were there; and what must be the very same tensors at
        each call: what is written in place, what gradients are collected for, what is found in two places
        or by steps from other memory."""
        places, found, guards = [], [], []
        count = Counter(
            id(memory_under(each))
            for container, before, _ in self._watched.values()
            for bound in (before if type(container) is list else before.values())
            for each in self._tensors(bound)
        )
        count.update([id(memory_under(each)) for each in given])
        for each in [*changes, *self._variables()]:
            tensors: list[Any] = []
            structure = tree.flatten(each.before, self._is_tensor, tensors)
            alone = all(
                count[id(memory_under(one))] == 1
                and one._leaf is None
                and not (one._alias is not None and one._alias.steps)
                and memory_under(one) not in written
                for one in tensors
            )
            if tensors and alone and each.name is not ALL:
                places.append(Place(each.container, each.name, structure, tensors, self._is_tensor))
                found += tensors
            else:
                guards.append(each.guard())
        return places, found, guards

    def _variables(self) -> list[Change]:
        """The names that are watched one by one and bound to tensors, as if they were changed."""
        known = {(id(each.container), each.name) for each in self.changes()}
        return [
            Change(container, name, bound, bound)
            for container, before, whole in self._watched.values()
            if not whole
            for name, bound in before.items()
            if isinstance(bound, self._tensor) and (id(container), name) not in known
        ]

    def _is_tensor(self, each: Any) -> bool:
        return isinstance(each, self._tensor)

    def _tensors(self, bound: Any) -> list[Any]:
        found: list[Any] = []
        tree.flatten(bound, self._is_tensor, found)
        return found


def bind(names: Sequence[tuple[Any, Any]], values: Iterable[Any]) -> None:
    """Bind the names, each in its container; all of them, whatever interrupts Python."""
    containers, keys = [each[0] for each in names], [each[1] for each in names]
    deque(map(operator.setitem, containers, keys, values), maxlen=0)


def memory_under(holder: Any) -> Any:
    """The memory that a tensor lies in, be it all of it or a part."""
    alias = getattr(holder, "_alias", None)
    return holder if alias is None else alias.storage


def _bound_to(container: Any, name: Any) -> Any:
    try:
        return container[name]
    except LookupError:
        return MISSING
