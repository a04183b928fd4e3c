"""The containers among the arguments of a compiled function.

The recorded function is given copies of them. What it adds to a container, or removes from it, is a result of
its program, and is applied to the caller's own container after each run.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from tenfold.base.errors import TraceError
from tenfold.base.source import capture
from tenfold.trace import tree
from tenfold.trace.record import is_holder

Path = tuple[Any, ...]  # keys, places and names, from the arguments inwards


class Kept(NamedTuple):
    """Stands in a result, or in the new contents of a container, for a container that the caller has."""

    path: Path


class Changed(NamedTuple):
    """A result of the function, and the new contents of the containers that it changed, each by its path."""

    result: Any
    changes: tuple[tuple[Path, Any], ...]

    def done_to(self, arguments: Any) -> Any:
        """The result, once the caller's containers are changed."""
        if self.changes:
            _refuse_twice(arguments)
        found = [(_find(arguments, path), contents) for path, contents in self.changes]
        new = [(container, _with_own(contents, arguments)) for container, contents in found]
        result = _with_own(self.result, arguments)
        for container, contents in new:
            _fill(container, contents)
        return result


class Passed:
    """The containers that a function is called with, as they are before the call."""

    def __init__(self, arguments: Any):
        self._containers = list(_containers(arguments, ()))
        self._before = [_contents(container) for _, container in self._containers]

    def noted(self, result: Any, arguments: Any) -> Any:
        """What the recorded function returned, and what it changed. Containers of the caller's `arguments`
        that are in its result stay the caller's own."""
        changed = [
            (path, container, contents)
            for (path, container), before in zip(self._containers, self._before, strict=True)
            if not _same(before, contents := _contents(container))
        ]
        paths = {id(container): path for path, container in self._containers}
        kept = _with_kept(result, paths)
        if changed:
            _refuse_twice(arguments)
        elif kept is result:
            return result
        found = Changed(kept, tuple([(path, _with_kept(contents, paths)) for path, _, contents in changed]))
        tensors: list[Any] = []
        tree.flatten(found, is_holder, tensors)
        # A program gives at least one tensor, and be it one that the caller has.
        return found if tensors else found._replace(result=result)


def _refuse_twice(arguments: Any) -> None:
    """Refuse one container in two places: a change of one copy would have to be seen in the other."""
    seen: set[int] = set()
    for _, container in _containers(arguments, ()):
        if id(container) in seen:
            raise TraceError(
                f"the function changes its arguments, and one {type(container).__name__} is given twice",
                help="pass it once, or a copy of it",
            ).located("compile", capture())
        seen.add(id(container))


def _containers(branch: Any, path: Path) -> Iterator[tuple[Path, Any]]:
    """The containers that can be changed, from the outside in."""
    if issubclass(type(branch), (list, dict, set, deque)) or tree.is_object(branch):
        yield path, branch
    for key, inside in _entries(branch):
        yield from _containers(inside, (*path, key))


def _entries(branch: Any) -> Iterable[tuple[Any, Any]]:
    kind = type(branch)  # of a proxy its own: what it stands for may be gone
    if issubclass(kind, (dict, MappingProxyType)):
        return branch.items()
    if issubclass(kind, (list, tuple, deque)):
        return enumerate(branch)
    return tree.attributes(branch).items() if tree.is_object(branch) else ()


def _contents(container: Any) -> Any:
    if isinstance(container, dict):
        return dict(container)
    return tree.attributes(container) if tree.is_object(container) else list(container)


def _same(before: Any, now: Any) -> bool:
    """Whether two contents are the very same."""
    if isinstance(before, dict):
        if list(before) != list(now):
            return False
        before, now = before.values(), now.values()
    return len(before) == len(now) and all(was is one for was, one in zip(before, now))


def _with_kept(branch: Any, paths: Mapping[int, Path]) -> Any:
    return _replaced(branch, lambda leaf: id(leaf) in paths, lambda own: Kept(paths[id(own)]))


def _with_own(branch: Any, arguments: Any) -> Any:
    return _replaced(branch, lambda leaf: type(leaf) is Kept, lambda kept: _find(arguments, kept.path))


def _replaced(branch: Any, is_leaf: Callable[[Any], bool], other: Callable[[Any], Any]) -> Any:
    """A nest of containers with others in the places of its leaves, wherever they are."""
    leaves: list[Any] = []
    structure = tree.flatten(branch, is_leaf, leaves)
    return tree.unflatten(structure, map(other, leaves)) if leaves else branch


def _find(branch: Any, path: Path) -> Any:
    for key in path:
        branch = getattr(branch, key) if tree.is_object(branch) else branch[key]
    return branch


def _fill(container: Any, contents: Any) -> None:
    """Let a container hold these contents alone."""
    if tree.is_object(container):
        for name in tree.attributes(container).keys() - contents.keys():
            object.__delattr__(container, name)
        for name, value in contents.items():
            object.__setattr__(container, name, value)
        return
    container.clear()
    if isinstance(container, dict):
        for key, value in contents.items():  # a Counter's `update` counts
            container[key] = value
    elif isinstance(container, set):
        container.update(contents)
    else:
        container.extend(contents)
