"""Guards: the Python state that a recorded function depends on besides its arguments, such as attributes of
modules and options of optimizers. They are compared at every call."""

from __future__ import annotations

import gc
import operator
import reprlib
import sys
from collections.abc import Sequence
from typing import Any

from tenfold.trace import tree

Guard = tuple[Any, Any, Any]  # a container, a key, and what was there
# What may be another object of the same value; of anything else it must be the same object. What is in lists
# and dicts may change, and is compared each time.
PLAIN = frozenset([bool, int, float, complex, str, tuple])
CONTAINERS = frozenset([list, dict])
MANY = 100  # entries of a list or dict that are not looked through at every call


class Contents:
    """What was in a list or a dict: plain values, and the very objects that are none."""

    __slots__ = ("objects", "structure")

    def __init__(self, container: Any):
        self.objects: list[Any] = []
        known = PLAIN | CONTAINERS
        self.structure = tree.flatten(container, lambda each: type(each) not in known, self.objects)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Contents) or self.structure != other.structure:
            return False
        return len(self.objects) == len(other.objects) and all(map(operator.is_, self.objects, other.objects))


def contents_of(value: Any) -> Any:
    """What is to be compared of a value: of a list or dict what is in it."""
    return Contents(value) if type(value) in CONTAINERS else value


def hold(guards: Sequence[Guard]) -> bool:
    """Whether there is in each container, under the key, what there was."""
    try:
        for container, key, value in guards:
            found = container[key]
            if found is not value and not _is_as_it_was(found, value):
                return False
    except LookupError:
        return False
    return True


def _is_as_it_was(found: Any, value: Any) -> bool:
    """Whether another object is no other value: 2.0 is another than 2, and -0.0 than 0.0."""
    if type(value) is Contents:
        return type(found) in CONTAINERS and Contents(found) == value
    return type(value) in PLAIN and type(found) is type(value) and Contents(found) == Contents(value)


def broken(guards: Sequence[Guard]) -> Guard | None:
    """The first guard that no longer holds."""
    return next((guard for guard in guards if not hold([guard])), None)


def described(guard: Guard) -> str:
    """A guard in the user's words: "`config.depth` is 3"."""
    container, key, value = guard
    if type(value) is bool and hasattr(container, "label") and label(container, key).startswith("whether"):
        return f"{label(container, key)}: {'yes' if value else 'no'}"
    return f"{label(container, key)} is {_shown(value)}"


def change(guard: Guard) -> str:
    """How what is there now differs from what a guard expects."""
    container, key, value = guard
    try:
        return f"{label(container, key)} was {_shown(value)} and is {_shown(container[key])}"
    except LookupError:
        return f"{label(container, key)} was {_shown(value)} and is no longer there"


def label(container: Any, key: Any) -> str:
    """What a user calls the place under a key of a container. Containers of our own say so themselves."""
    if hasattr(type(container), "label"):
        return container.label(key)
    if isinstance(container, dict):
        if "__builtins__" in container or sys.modules.get(container.get("__name__", "")) is not None:
            return f"the global `{key}` of {container.get('__name__')}"
        owner = _owner(container)
        if owner is not None:
            return f"the attribute `{key}` of a {type(owner).__qualname__}"
        entry = f"[{key!r}]" if type(key) in PLAIN else f"[a {type(key).__qualname__}]"
        for around in gc.get_referrers(container):
            owner = _owner(around) if isinstance(around, dict) else None
            if owner is not None:
                name = next((name for name, value in around.items() if value is container), "")
                return f"`{name}{entry}` of a {type(owner).__qualname__}"
        return f"the entry {entry} of a {type(container).__name__}"
    if isinstance(container, (tuple, list)):
        return f"entry {key} of a {type(container).__name__}"
    return f"{type(container).__name__}[{key!r}]"


def _owner(attributes: dict[Any, Any]) -> Any:
    """The object whose attributes these are."""
    referrers = gc.get_referrers(attributes)
    return next(
        (referrer for referrer in referrers if getattr(referrer, "__dict__", None) is attributes), None
    )


def _shown(value: Any) -> str:
    if type(value) is Contents:
        return f"a container with the entries it had ({len(value.objects)} of them objects)"
    if type(value) in PLAIN or value is None:
        return reprlib.repr(value)
    return f"the same {type(value).__qualname__}"
