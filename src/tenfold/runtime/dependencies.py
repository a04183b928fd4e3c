"""The Python state that a compiled function depends on: found while it is recorded, compared at each call.

The stage has three parts. `reach.py` reads from the function's code which names it comes to; `guards.py`
compares what was found there with what is there now; `bindings.py` follows names that the function binds to
tensors, which are results of its program. docs/guards.md describes what is compared, and what it costs.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Sequence
from types import ModuleType
from typing import Any, NamedTuple

from tenfold.base.hooks import CHANGES
from tenfold.base.package import is_ours
from tenfold.runtime.argument_containers import Passed
from tenfold.runtime.bindings import Bindings, Change, Place, keys_of
from tenfold.runtime.containers import Has
from tenfold.runtime.guards import Guard, contents_of, hold, is_setting
from tenfold.runtime.reach import Reach
from tenfold.trace import tree
from tenfold.trace.record import Recording


class Found(NamedTuple):
    """What a recorded function must compare and look up at each call."""

    guards: list[Guard]
    places: list[Place]  # where further arguments are looked up
    tensors: list[Any]  # that were found there
    bound: list[tuple[Any, Any]]  # containers and names that it binds to tensors
    steady: bool  # whether it left other Python state as it was


class Dependencies:
    """Listens to a recording for the Python state that it depends on."""

    def __init__(
        self, function: Callable[..., Any], arguments: Any, tensor: type, keeps_changes: bool = True
    ):
        """With `keeps_changes`, what the function puts into containers among its arguments is a result."""
        self._function = function
        self._keeps_changes = keeps_changes
        self._arguments = arguments
        self._tensor = tensor
        self._bindings = Bindings(tensor)
        self._guards: dict[tuple[int, Any], Guard] = {}
        self._changes: list[Change] = []

    def call(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function and listen. Besides its result, return what it binds to names and what it puts
        into containers among its arguments."""
        self._listen()
        passed = Passed((args, kwargs)) if self._keeps_changes else None
        result = self._function(*args, **kwargs)
        if passed is not None:
            result = passed.noted(result, self._arguments)
        self._changes = self._bindings.changes()
        return (result, [change.after for change in self._changes]) if self._changes else result

    def guard(self, container: Any, key: Any, contents: bool = False) -> None:
        """Require another program if this key has another value; with `contents`, also if the same list or
        dict has other contents. Attributes are what `__dict__` contains."""
        value = contents_of(container[key]) if contents else container[key]
        self._guards.setdefault((id(container), key), (container, key, value))

    def watch(self, container: Any, apart: Collection[Any] = (), of_object: bool = False) -> None:
        """Expect the function to bind names of this container, except those `apart`, to other tensors."""
        self._bindings.watch(container, apart=apart, of_object=of_object)

    def put_back(self) -> None:
        """Bind all names to what they were bound to before the function was recorded."""
        self._bindings.put_back()

    def found(self, arguments: Sequence[Any], recording: Recording) -> Found:
        """What to compare and look up at each call of the recorded function."""
        recorder, changes = recording.recorder, self._changes
        places, tensors, same = self._bindings.places(
            changes, recorder.before, arguments, recorder.reads.values()
        )
        looked_up = keys_of(places)
        # Not what the function changed itself while it was recorded, and for good.
        kept = [guard for key, guard in self._guards.items() if key not in looked_up and hold([guard])]
        guards = self._bindings.opened(kept, changes) + same
        steady = len(kept) == len([key for key in self._guards if key not in looked_up])
        return Found(guards, places, tensors, [(change.container, change.name) for change in changes], steady)

    def _listen(self) -> None:
        """Depend on what the function's code comes to by name, and on the attributes of modules and objects
        among the arguments; notice what it binds there."""
        tensor = self._tensor
        objects: list[Any] = []
        stays = lambda leaf: _guards_itself(leaf) or _stays_itself(leaf)
        structure = tree.flatten(self._arguments, stays, objects)
        for instance in objects:
            if _guards_itself(instance):
                instance._guard()
        reach = Reach(self._function, [*objects, *tree.kinds(structure)], tensor)
        for instance in reach.objects:
            if not _guards_itself(instance):
                self.watch(vars(instance), of_object=True)
        if _guards_itself(reach.owner):
            reach.owner._guard()
        apart = {id(vars(instance)) for instance in reach.objects if _guards_itself(instance)}
        for container, names in reach.containers():
            if id(container) not in apart:
                self._bindings.watch(container, names)
            for name in names:
                self._guard_name(container, name)
        for container, name in reach.absent():
            self.guard(Has(container), name)
        for container, key in reach.unbound():
            self.guard(container, key)
        if apart:
            self.guard(CHANGES, "count")

    def _guard_name(self, container: Any, name: Any) -> None:
        with contextlib.suppress(LookupError):
            value = container[name]
            if _guards_itself(value):
                value._guard()
            if not issubclass(type(value), (self._tensor, ModuleType)):
                self.guard(container, name, contents=is_setting(value))


def _stays_itself(argument: Any) -> bool:
    """Whether this is one of the user's objects, which stays the same object while its attributes change."""
    kind: Any = type(argument)
    known = isinstance(argument, (type, ModuleType)) or _guards_itself(argument)
    by_identity: Any = object.__hash__
    return kind.__hash__ is by_identity and not known


def _guards_itself(value: Any) -> bool:
    return is_ours(type(value)) and hasattr(type(value), "_guard")
