"""Records at run time: their types, and checked access to their fields."""

from __future__ import annotations

import weakref
from fractions import Fraction
from types import FunctionType
from typing import Any

from tenfold.base import owners
from tenfold.purple import core, messages
from tenfold.purple.errors import PurpleError
from tenfold.purple.printing import brief
from tenfold.purple.values import (
    NIL,
    UNSPECIFIED,
    Box,
    Char,
    ErrorValue,
    Pair,
    Pointer,
    Record,
    Symbol,
    Table,
)
from tenfold.tensor import Tensor

TESTS: dict[str, Any] = {
    "any": lambda value: True,
    "int": lambda value: type(value) is int,
    "float": lambda value: type(value) is float,
    "number": lambda value: type(value) in (int, float, Fraction),
    "bool": lambda value: type(value) is bool,
    "string": lambda value: type(value) is str,
    "char": lambda value: type(value) is Char,
    "symbol": lambda value: type(value) is Symbol,
    "list": lambda value: value is NIL or type(value) is Pair,
    "vector": lambda value: type(value) is list,
    "tensor": lambda value: isinstance(value, Tensor),
    "procedure": callable,
}
OWNED = (Record, Pair, Box, Table, ErrorValue, Pointer)  # what a weak field can look at without owning it
COUNTED = (list, str, bytearray)  # to which Python has no weak references


class RecordType:
    """`checks` are those of the fields that ask for a type: their index, and what tells whether a value
    fits.
    """

    __slots__ = ("checks", "fields", "name", "place", "shown", "weak")

    def __init__(self, declared: core.DefType):
        self.name, self.fields, self.place = declared.name, declared.fields, declared.place
        self.shown = core.shown(declared.name)
        self.checks = [(i, field) for i, field in enumerate(declared.fields) if field.type != "any"]
        self.weak = [i for i, field in enumerate(declared.fields) if field.weak]

    def check(self, index: int, value: Any) -> None:
        field = self.fields[index]
        test = TESTS.get(field.type)
        if test is not None:
            fits = test(value)
        else:  # a record type; nil stands for none of them
            fits = value is NIL or (type(value) is Record and value.type.name == field.type)
        if not fits:
            kind = field.type if test else core.shown(field.type)
            raise self.misused(messages.wrong_field(self.shown, field.name, kind, brief(value)))

    def misused(self, message: str) -> PurpleError:
        return PurpleError(message, "type").defined(self.shown, self.place)

    def wrong_record(self, index: int, value: Any) -> PurpleError:
        accessor = f"{self.shown}-{self.fields[index].name}"
        return self.misused(messages.wrong_type(accessor, self.shown, brief(value)))


def make_record(type_: RecordType, values: list[Any]) -> Record:
    for index, _ in type_.checks:
        type_.check(index, values[index])
    for index in type_.weak:
        values[index] = _weakened(values[index])
    return Record(type_, values)


def is_record(value: Any, type_: RecordType) -> bool:
    return type(value) is Record and value.type is type_


def get_field(record: Any, type_: RecordType, index: int) -> Any:
    if type(record) is not Record or record.type is not type_:
        raise type_.wrong_record(index, record)
    value = record.values[index]
    if type(value) is weakref.ReferenceType:
        found = value()
        return NIL if found is None else found
    return value.seen() if type(value) is Watched else value


def set_field(record: Any, type_: RecordType, index: int, value: Any) -> Any:
    if type(record) is not Record or record.type is not type_:
        raise type_.wrong_record(index, record)
    type_.check(index, value)
    record.values[index] = _weakened(value) if index in type_.weak else value
    return UNSPECIFIED


class Watched:
    """A value that Python has no weak references to, for all weak fields that look at it: once nobody else
    owns it, it is gone."""

    __slots__ = ("__weakref__", "value")

    def __init__(self, value: Any):
        self.value = value

    def seen(self) -> Any:
        value = self.value
        if owners.count(value) == owners.NAMED + 1:
            self.value = value = NIL
        return value


_watched: weakref.WeakValueDictionary[int, Watched] = weakref.WeakValueDictionary()  # by the value's identity


def _weakened(value: Any) -> Any:
    """What a weak field holds of a value: a number, and what never goes, itself."""
    kind = type(value)
    if kind in OWNED or isinstance(value, Tensor) or (kind is FunctionType and value.__closure__):
        return weakref.ref(value)
    if kind not in COUNTED:
        return value
    watched = _watched.get(id(value))
    if watched is None or watched.value is not value:
        watched = _watched[id(value)] = Watched(value)
    return watched
