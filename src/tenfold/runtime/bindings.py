"""Names that a recorded function binds to tensors: attributes of modules and of objects, variables that its
own code reads, and entries of the lists and dicts found there.

What the function binds is a result of its program, and is bound at each call. What it found under such a name
is looked up at each call, like one more argument.
"""

from __future__ import annotations

import operator
from collections import Counter, deque
from collections.abc import Collection, Iterable, Sequence
from types import FunctionType, ModuleType
from typing import Any, NamedTuple

from tenfold.base.package import is_ours
from tenfold.runtime.containers import ALL, LENGTHS, MISSING, Entries, Has, Queue, bound_to
from tenfold.runtime.guards import Contents, Guard, contents_of
from tenfold.trace import tree

FAR = 10_000  # containers that are watched, and entries of one


class Change(NamedTuple):
    """A name that is bound to other tensors than before; for a list that grew, ALL of its entries."""

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
    """Where a function finds tensors at each call, which must have the same types and the same need of
    gradients."""

    def __init__(self, container: Any, name: Any, structure: Any, tensors: Sequence[Any], is_tensor: Any):
        self._is_tensor = is_tensor
        self.container = container
        self.name = name
        self._structure = structure
        values = [tensor.current() for tensor in tensors]
        self._kinds = [(value.type, value.device, value.origin is None) for value in values]

    def find(self, written: Collection[Any]) -> list[Any] | None:
        """What is there now; None if that needs another program: other types, or memory that it writes."""
        tensors: list[Any] = []
        bound = bound_to(self.container, self.name)
        if tree.flatten(bound, self._is_tensor, tensors) != self._structure:
            return None
        for tensor, kind in zip(tensors, self._kinds, strict=True):
            value = tensor.current()
            if (value.type, value.device, value.origin is None) != kind:
                return None
            if tensor._leaf is not None or tensor.memory in written:
                return None
        return tensors


class Bindings:
    """What names were bound to when a function began to be recorded."""

    def __init__(self, tensor: type):
        self._tensor = tensor
        self._watched: dict[int, tuple[Any, Any, bool]] = {}
        self._objects: set[int] = set()  # of the watched, attributes of objects and what is in them
        # Under which names each container was found: what that is in, the name, and what is bound to it.
        self._paths: dict[int, list[tuple[Any, Any, Any]]] = {}

    def watch(
        self,
        container: Any,
        names: Iterable[Any] | None = None,
        apart: Collection[Any] = (),
        of_object: bool = False,
    ) -> None:
        """Notice what is bound to these names, or to any, or what a list holds; and what is in the lists,
        dicts and objects there, but for names that stand apart. What is read of an object is looked up."""
        waiting = deque([(container, names, apart, of_object)])
        while waiting:
            container, names, apart, of_object = waiting.popleft()
            _, known, whole = self._watched.get(id(container), (None, {}, False))
            if whole or len(self._watched) > FAR:
                continue
            new = _before(container, None if names is None else [name for name in names if name not in known])
            all_of_it = names is None or not isinstance(new, dict)  # a list or tuple always is
            self._watched[id(container)] = (container, known | new if known else new, all_of_it)
            if of_object:
                self._objects.add(id(container))
            for name, bound in _entries(new):
                inside = None if name in apart else _inside(bound)
                if inside is not None:
                    self._paths.setdefault(id(inside), []).append((container, name, bound))
                    within = of_object or not isinstance(bound, (tuple, list, dict, deque))
                    waiting.append((inside, None, (), within))

    def changes(self) -> list[Change]:
        """The names that are bound to other tensors than they were, or to tensors and were not."""
        changes = []
        for container, before, whole in self._watched.values():
            if type(container) is Queue or (type(container) is list and len(container) != len(before)):
                after = container[ALL]
                same = len(after) == len(before) and all(map(operator.is_, after, before))
                changed = [] if same else [Change(container, ALL, before, after)]
            else:
                names = [name for name, _ in _entries(before)]
                if whole and isinstance(container, dict):
                    names += [name for name in container if name not in before]
                pairs = [(name, bound_to(before, name), bound_to(container, name)) for name in names]
                changed = [Change(container, *pair) for pair in pairs if pair[1] is not pair[2]]
            changes += [
                change for change in changed if self._tensors(change.before) or self._tensors(change.after)
            ]
        return [change for change in changes if change.after is not MISSING]

    def put_back(self) -> None:
        for change in self.changes():
            change.undo()

    def places(
        self,
        changes: Sequence[Change],
        written: Collection[Any],
        arguments: Sequence[Any],
        read: Iterable[Any],
    ) -> tuple[list[Place], list[Any], list[Guard]]:
        """Where to look up at each call what the function found under the names that it binds, and those of
        the variables it reads, and the tensors that were there; and what must be the very same at each call:
        tensors that are written in place, that gradients are collected for, that are found in two places or
        by steps from other memory; and what these names are found in."""
        places, held, guards = [], [], []
        count = Counter(
            id(tensor.memory)
            for _, before, _ in self._watched.values()
            for _, bound in _entries(before)
            for tensor in self._tensors(bound, self._watched)
        )
        count.update([id(tensor.memory) for tensor in arguments])
        names = [*changes, *self._others(changes, {id(tensor) for tensor in read})]
        for name in names:
            tensors: list[Any] = []
            structure = tree.flatten(name.before, self._is_tensor, tensors)
            alone = all(
                count[id(one.memory)] == 1
                and one._leaf is None
                and not (one._alias is not None and one._alias.steps)
                and one.memory not in written
                for one in tensors
            )
            if tensors and alone:
                places.append(Place(name.container, name.name, structure, tensors, self._is_tensor))
                held += tensors
            else:
                guards.append(name.guard())
        bound = keys_of(names)
        above = [path for path in self._above(names) if (id(path[0]), path[1]) not in bound]
        return places, held, guards + above

    def opened(self, guards: Iterable[Guard], changes: Sequence[Change]) -> list[Guard]:
        """Of guards of all that is in lists and dicts, those of what the function does not bind there."""
        opens = {id(guard[2]) for guard in self._above(changes)}
        bound = keys_of(changes)
        stack, opened = list(guards), []
        while stack:
            container, name, expected = guard = stack.pop()
            if type(expected) is not Contents or id(container[name]) not in opens:
                opened.append(guard)
                continue
            inner = container[name]
            opened.append((container, name, inner))
            if isinstance(inner, deque):
                continue  # all that is in it is looked up
            opened.append((LENGTHS, inner, len(inner)))
            derived = isinstance(inner, dict) and type(inner) is not dict
            holder = Entries(inner) if derived else inner
            entries = [(holder, key, contents_of(entry)) for key, entry in _entries(inner)]
            stack += [entry for entry in entries if (id(inner), entry[1]) not in bound]
        return opened

    def _above(self, names: Iterable[Change]) -> list[Guard]:
        """Under which names the containers of these are found, and the containers of those, and so on."""
        paths: dict[tuple[int, Any], Guard] = {}
        stack = [name.container for name in names]
        while stack:
            for path in self._paths.get(id(stack.pop()), ()):
                if (id(path[0]), path[1]) not in paths:
                    paths[id(path[0]), path[1]] = path
                    stack.append(path[0])
        return list(paths.values())

    def _others(self, changes: Sequence[Change], read: Collection[int]) -> list[Change]:
        """The names of variables, and of objects where that is read, that are bound to tensors, as if they
        were changed."""
        known = keys_of(changes)
        known_all = {id(change.container) for change in changes if change.name is ALL}
        others = []
        for container, before, whole in self._watched.values():
            if id(container) in known_all:
                continue
            if type(container) is Queue:
                if any(id(tensor) in read for tensor in self._tensors(before)):
                    others.append(Change(container, ALL, before, before))
            elif not isinstance(container, tuple) and (not whole or id(container) in self._objects):
                for name, bound in _entries(before):
                    tensors = self._tensors(bound) if issubclass(type(bound), (self._tensor, tuple)) else []
                    used = tensors and (not whole or any(id(tensor) in read for tensor in tensors))
                    if used and (id(container), name) not in known:
                        others.append(Change(container, name, bound, bound))
        return others

    def _is_tensor(self, leaf: Any) -> bool:
        return issubclass(type(leaf), self._tensor)

    def _tensors(self, bound: Any, apart: Collection[int] = ()) -> list[Any]:
        """The tensors that are bound, but for those in some containers."""
        leaves: list[Any] = []
        stays = lambda leaf: self._is_tensor(leaf) or id(leaf) in apart or _is_watched_inside(leaf)
        tree.flatten(bound, stays, leaves)
        return [leaf for leaf in leaves if self._is_tensor(leaf)]


def bind(names: Sequence[tuple[Any, Any]], values: Iterable[Any]) -> None:
    """Bind the names, each in its container; all of them, whatever interrupts Python."""
    containers, keys = [name[0] for name in names], [name[1] for name in names]
    deque(map(operator.setitem, containers, keys, values), maxlen=0)


def keys_of(names: Iterable[Change | Place]) -> set[tuple[int, Any]]:
    """The names as guards have them: each by itself, and in which container."""
    return {(id(name.container), name.name) for name in names if name.name is not ALL}


def _before(container: Any, names: Iterable[Any] | None) -> Any:
    """The contents of a container, or what its names are bound to, as a copy that does not change with it."""
    if type(container) in (list, Queue):
        return container[ALL]
    if isinstance(container, tuple):
        return container
    return {name: bound_to(container, name) for name in (container if names is None else names)}


def _entries(container: Any) -> Iterable[tuple[Any, Any]]:
    return enumerate(container) if isinstance(container, (list, tuple)) else container.items()


def _is_watched_inside(bound: Any) -> bool:
    """Whether its contents are watched under names of their own, rather than compared as a whole."""
    kind = type(bound)  # of a proxy its own: what it stands for may be gone
    return issubclass(kind, (deque, set, frozenset)) or tree.is_object(bound)


def _inside(bound: Any) -> Any:
    """The list or dict itself, or an object's attributes; None for what is too large to look through, or not
    of the user's own making."""
    kind = type(bound)  # of a proxy its own: what it stands for may be gone
    if issubclass(kind, tuple):
        return bound if any(_inside(entry) is not None for entry in bound[:FAR]) else None
    if kind is list or issubclass(kind, (dict, deque)):
        looked_through = len(bound) <= FAR and not is_ours(kind)
        return None if not looked_through else Queue(bound) if isinstance(bound, deque) else bound
    if issubclass(kind, (type, ModuleType, FunctionType)) or is_ours(kind) or not kind.__dictoffset__:
        return None
    return vars(bound) if len(vars(bound)) <= FAR else None
