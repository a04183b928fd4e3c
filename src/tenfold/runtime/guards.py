"""What a recorded function depends on besides its arguments, such as attributes of modules and options of
optimizers: compared at every call, since any of it may have changed."""

from __future__ import annotations

import operator
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
