"""Hash tables, whose keys are compared by `equal?` and keep the order in which they came."""

from __future__ import annotations

from fractions import Fraction
from types import FunctionType
from typing import Any

from tenfold.purple import messages
from tenfold.purple.errors import PurpleError
from tenfold.purple.prims.data import is_equal, is_same
from tenfold.purple.prims.registry import primitive, want
from tenfold.purple.printing import brief
from tenfold.purple.values import NIL, UNSPECIFIED, Box, Char, Keyword, Pair, Record, Symbol, Table, list_of
from tenfold.tensor import Tensor


def key_of(value: Any) -> Any:
    """What stands for a key in a Python dictionary: equal exactly when the keys are by `equal?`."""
    kind = type(value)
    if kind is int or kind is str or kind is Symbol or kind is Char or kind is Keyword or value is NIL:
        return value
    if kind is bool:
        return (bool, value)
    if kind is Fraction:  # which Python takes for the float that it equals
        return (Fraction, value)
    if kind is float:
        return (float, str(value))
    if kind in (Pair, list, Record, bytearray):
        return ContainerKey(value)
    if kind in (Table, Box) or isinstance(value, Tensor):
        raise PurpleError(f"{brief(value)} cannot be a key of a hash table", "type")
    return ProcedureKey(value) if kind is FunctionType else value


class ProcedureKey:
    """A procedure as a key."""

    __slots__ = ("value",)

    def __init__(self, value: FunctionType):
        self.value = value

    def __hash__(self) -> int:
        return hash(self.value.__code__)

    def __eq__(self, other: object) -> bool:
        return type(other) is ProcedureKey and is_same(self.value, other.value)


class ContainerKey:
    """A pair, vector or record as a key. It is found by what it held first, and compared by what it holds."""

    __slots__ = ("first", "value")

    def __init__(self, value: Any):
        self.value, self.first = value, hash(shallow(value, 3))

    def __hash__(self) -> int:
        return self.first

    def __eq__(self, other: object) -> bool:
        return type(other) is ContainerKey and is_equal(self.value, other.value)


SHOWN = 8  # elements of a container that its hash looks at


def shallow(value: Any, depth: int) -> Any:
    """Alike for alike values: the first elements of containers, which may hold themselves, to some depth."""
    kind = type(value)
    if kind is Pair or kind is list:
        parts: list[Any] = [kind, len(value) if kind is list else 0]
        while depth and type(value) is Pair and len(parts) < SHOWN + 2:
            parts.append(shallow(value.car, depth - 1))
            value = value.cdr
        if kind is list and depth:
            parts += [shallow(each, depth - 1) for each in value[:SHOWN]]
        return tuple(parts)
    return kind if kind in (Record, Table, Box, bytearray) or isinstance(value, Tensor) else key_of(value)


primitive("make-hash-table")(lambda: Table())


@primitive("hash-table-ref")
def hash_table_ref(table: Any, key: Any, *default: Any) -> Any:
    found = want("hash-table-ref", "table", Table, table).entries.get(key_of(key))
    if found is not None:
        return found[1]
    if default:
        return default[0]
    raise PurpleError(messages.no_key(brief(key)), "key")


@primitive("hash-table-set!")
def hash_table_set(table: Any, key: Any, value: Any) -> Any:
    entries, found = want("hash-table-set!", "table", Table, table).entries, key_of(key)
    old = entries.get(found)
    entries[found] = (key if old is None else old[0], value)
    return UNSPECIFIED


@primitive("hash-table-delete!")
def hash_table_delete(table: Any, key: Any) -> Any:
    want("hash-table-delete!", "table", Table, table).entries.pop(key_of(key), None)
    return UNSPECIFIED


@primitive("hash-table-contains?")
def hash_table_contains(table: Any, key: Any) -> bool:
    return key_of(key) in want("hash-table-contains?", "table", Table, table).entries


@primitive("hash-table-count")
def hash_table_count(table: Any) -> int:
    return len(want("hash-table-count", "table", Table, table).entries)


@primitive("hash-table->list")
def hash_table_to_list(table: Any) -> Any:
    entries = want("hash-table->list", "table", Table, table).entries
    return list_of([Pair(key, value) for key, value in entries.values()])
