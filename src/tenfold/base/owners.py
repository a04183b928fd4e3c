"""Ownership: whether anybody else holds an object, so that its memory may be written over or donated.

CPython counts the references to every object. What it counts besides the owners (the asker's own name, the
call that asks) differs between its versions, so that part is measured here, once.

A count of our own would need a finalizer for every tensor and node, which makes recording an op 10 %
slower. It would also be less safe: a reference that such a count misses lets a run overwrite memory that is
still read, while an unexpected reference in CPython's count only costs a copy.
"""

from __future__ import annotations

from sys import getrefcount as count
from typing import Any

__all__ = ["CONSTRUCTED", "NAMED", "PASSED", "count"]


def _named() -> int:
    thing = object()
    return count(thing)


def _passed(thing: object) -> int:
    return count(thing)


def _passed_by_name() -> int:
    thing = object()
    return _passed(thing)


class _Constructed:
    def __init__(self, thing: Any = None):
        self.references = count(thing)


# What `count` gives for an object that nobody owns:
NAMED = _named()  # asked for a local name
PASSED = _passed_by_name()  # asked for an argument, which is a local name of the caller
CONSTRUCTED = _Constructed(object()).references  # asked for a constructor's argument, made for it
