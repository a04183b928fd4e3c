"""The containers among the arguments of a compiled function.

The recorded function is given copies of them. What it adds to a container, or removes from it, is a result of
its program, and is applied to the caller's own container after each run.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from tenfold.base.errors import TraceError
from tenfold.base.source import capture
from tenfold.trace import tree

Path = tuple[Any, ...]  # keys, places and names, from the arguments inwards


class Kept(NamedTuple):
    """In the new contents of a container, stands for a container that the caller has."""

    path: Path


class Changed(NamedTuple):
    """A result of the function, and the new contents of the containers that it changed, each by its path."""

    result: Any
    changes: tuple[tuple[Path, Any], ...]

    def done_to(self, arguments: Any) -> Any:
        """The result, once the caller's containers are changed."""
        _refuse_twice(arguments)
        found = [(_find(arguments, path), contents) for path, contents in self.changes]
        new = [(container, _with_own(contents, arguments)) for container, contents in found]
        for container, contents in new:
            _fill(container, contents)
        return self.result


class Passed:
    """The containers that a function is called with, as they are before the call."""

    def __init__(self, arguments: Any):
        self._containers = list(_containers(arguments, ()))
        self._before = [_contents(container) for _, container in self._containers]

    def noted(self, result: Any, arguments: Any) -> Any:
        """What the recorded function returned, and what it changed; `arguments` are the caller's."""
        changed = [
            (path, container, contents)
            for (path, container), before in zip(self._containers, self._before, strict=True)
            if not _same(before, contents := _contents(container))
        ]
        if not changed:
            return result
        _refuse_twice(arguments)
        paths = {id(container): path for path, container in self._containers}
        return Changed(result, tuple([(path, _with_kept(contents, paths)) for path, _, contents in changed]))


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


def _with_kept(contents: Any, paths: Mapping[int, Path]) -> Any:
    return _mapped(contents, lambda entry: Kept(paths[id(entry)]) if id(entry) in paths else entry)


def _with_own(contents: Any, arguments: Any) -> Any:
    own = lambda entry: _find(arguments, entry.path) if type(entry) is Kept else entry
    return _mapped(contents, own)


def _mapped(contents: Any, function: Any) -> Any:
    if isinstance(contents, dict):
        return {key: function(entry) for key, entry in contents.items()}
    return [function(entry) for entry in contents]


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
