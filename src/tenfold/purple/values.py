"""Values that Python lacks. The others are Python's own: int, float, bool, str (strings), list
(vectors), Tensor.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any


class Symbol:
    """A name; equal ones are the same object."""

    __slots__ = ("name",)
    name: str
    _known: dict[str, Symbol] = {}

    def __new__(cls, name: str) -> Symbol:
        symbol = cls._known.get(name)
        if symbol is None:
            symbol = object.__new__(cls)
            symbol.name = name
            cls._known[name] = symbol
        return symbol

    @classmethod
    def unread(cls, name: str) -> Symbol:
        """A symbol that is the same as no other, whatever its name."""
        symbol = object.__new__(cls)
        symbol.name = name
        return symbol

    def __repr__(self) -> str:
        return self.name


class Keyword:
    """`name` is without the colon."""

    __slots__ = ("name",)
    name: str
    _known: dict[str, Keyword] = {}

    def __new__(cls, name: str) -> Keyword:
        keyword = cls._known.get(name)
        if keyword is None:
            keyword = object.__new__(cls)
            keyword.name = name
            cls._known[name] = keyword
        return keyword

    def __repr__(self) -> str:
        return ":" + self.name


class Char:
    """One Unicode code point; equal ones are the same object."""

    __slots__ = ("code",)
    code: int
    _known: dict[int, Char] = {}

    def __new__(cls, code: int) -> Char:
        char = cls._known.get(code)
        if char is None:
            char = object.__new__(cls)
            char.code = code
            cls._known[code] = char
        return char


class Nil:
    """The empty list; `NIL` is the only one."""

    __slots__ = ()

    def __bool__(self) -> bool:
        return False

    def __iter__(self) -> Iterator[Any]:
        return iter(())

    def __repr__(self) -> str:
        return "()"


class Unspecified:
    """What a form gives that has nothing to say; `UNSPECIFIED` is the only one."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "#<unspecified>"


NIL = Nil()
UNSPECIFIED = Unspecified()


class Pair:
    __slots__ = ("__weakref__", "car", "cdr")

    def __init__(self, car: Any, cdr: Any):
        self.car, self.cdr = car, cdr

    def __iter__(self) -> Iterator[Any]:
        """The elements of a proper list; what follows the last pair is not looked at."""
        pair: Any = self
        while type(pair) is Pair:
            yield pair.car
            pair = pair.cdr


class Box:
    __slots__ = ("__weakref__", "value")

    def __init__(self, value: Any):
        self.value = value


class Record:
    """`type` is a `RecordType` of the interpreter; `values` are in the order of its fields."""

    __slots__ = ("__weakref__", "type", "values")

    def __init__(self, type: Any, values: list[Any]):
        self.type, self.values = type, values


class Table:
    """A hash table in order of insertion. `entries` maps what `key_of` makes of a key to (key, value)."""

    __slots__ = ("__weakref__", "entries")

    def __init__(self) -> None:
        self.entries: dict[Any, tuple[Any, Any]] = {}


class Values:
    """Several values at once: what `(values a b)` gives to `let-values`."""

    __slots__ = ("items",)

    def __init__(self, items: list[Any]):
        self.items = items


class ErrorValue:
    """What `error` makes and a handler receives. `origin` is the PurpleError that it came with."""

    __slots__ = ("__weakref__", "irritants", "kind", "message", "origin", "place")

    def __init__(self, message: str, kind: str, place: str, irritants: Any, origin: Any = None):
        self.message, self.kind, self.place, self.irritants = message, kind, place, irritants
        self.origin = origin


class Environment:
    """What names mean to `eval`: those of a module of the expander's."""

    __slots__ = ("module",)

    def __init__(self, module: Any):
        self.module = module


class Pointer:
    """An address that a foreign function gave."""

    __slots__ = ("__weakref__", "address")

    def __init__(self, address: int):
        self.address = address


def list_of(items: Iterable[Any], tail: Any = NIL) -> Any:
    """A Purple list of what a Python iterable gives."""
    result = tail
    for item in reversed(list(items)):
        result = Pair(item, result)
    return result


def is_list(value: Any) -> bool:
    """Whether a value is nil or a pair that ends in nil."""
    slow = value
    while type(value) is Pair:
        value = value.cdr
        if type(value) is not Pair:
            break
        value, slow = value.cdr, slow.cdr
        if value is slow:
            return False  # it bites its own tail
    return value is NIL
