"""Lists, dictionaries and texts, as Python has them; and warnings and assertions."""

from __future__ import annotations

import operator
import warnings
from typing import Any

from tenfold.base.errors import ArgumentError, IndexOutOfRange, TenfoldError
from tenfold.ops.plain.table import plain

plain("add.t(t[] a, t[] b) -> t[]")(lambda a, b: [*a, *b])
plain("mul.left_t(t[] l, int n) -> t[]")(lambda values, n: list(values) * n)
plain("list.t(t[] l) -> t[]")(list)
plain("len.t(t[] a) -> int", "len.str(str s) -> int", "len.Dict_str(Dict(str, t) self) -> int")(len)
plain("eq.int_list(int[] a, int[] b) -> bool")(lambda a, b: list(a) == list(b))
plain("ne.int_list(int[] a, int[] b) -> bool")(lambda a, b: list(a) != list(b))
plain("eq.device(Device a, Device b) -> bool")(operator.eq)
plain("all.bool(bool[] self) -> bool")(all)
plain("any.bool(bool[] self) -> bool")(any)
plain("prim::max.self_int(int[] self) -> int")(lambda values: _extreme(max, values))
plain("prim::min.self_int(int[] self) -> int")(lambda values: _extreme(min, values))
plain(
    "__contains__.int_list(int[] l, int item) -> bool",
    "__contains__.str_list(str[] l, str item) -> bool",
    "__contains__.str(Dict(str, t) dict, str key) -> bool",
)(operator.contains)
plain("keys.str(Dict(str, t) self) -> str[](*)")(list)
plain("get.default_str(Dict(str, t) self, str key, t default_value) -> t(*)")(dict.get)
plain("str(t elem) -> str")(str)
plain("join(str self, str[] values) -> str")(str.join)
plain("format(str self, ...) -> str")(lambda text, *values: text.format(*values))


def _extreme(function: Any, values: list[int]) -> int:
    if not values:
        raise ArgumentError("an empty list has no largest and no smallest")
    return function(values)


def _place(values: Any, index: int) -> int:
    if not -len(values) <= index < len(values):
        raise IndexOutOfRange(f"index {index} is out of range for a list of {len(values)}")
    return index


@plain("__getitem__.t(t[](a) list, int idx) -> t(*)")
def item_of_list(values: Any, index: int) -> Any:
    return values[_place(values, index)]


@plain("__getitem__.Dict_str(Dict(str, t) self, str key) -> t(*)")
def item_of_dictionary(values: dict[str, Any], key: str) -> Any:
    if key not in values:
        raise IndexOutOfRange(f"the dictionary has no key {key!r}")
    return values[key]


@plain("_set_item.t(t[](a!) l, int idx, t(b -> *) el) -> t[](a!)")
def set_item(values: list[Any], index: int, element: Any) -> list[Any]:
    values[_place(values, index)] = element
    return values


@plain("_set_item.str(Dict(str, t)(a!) l, str(b -> *) idx, t(c -> *) v) -> ()")
def set_key(values: dict[str, Any], key: str, value: Any) -> None:
    values[key] = value


@plain("Delete.Dict_str(Dict(str, t)(a!) self, str key) -> ()")
def delete(values: dict[str, Any], key: str) -> None:
    item_of_dictionary(values, key)
    del values[key]


@plain("append.t(t[](a!) self, t(c -> *) el) -> t[](a!)")
def append(values: list[Any], element: Any) -> list[Any]:
    values.append(element)
    return values


@plain("insert.t(t[](a!) self, int idx, t(b -> *) el) -> ()")
def insert(values: list[Any], index: int, element: Any) -> None:
    values.insert(index, element)


@plain("sort.int(int[](a!) self, bool reverse=False) -> ()")
def sort(values: list[int], reverse: bool) -> None:
    values.sort(reverse=reverse)


@plain("slice.t(t[] l, int? start=None, int? end=None, int step=1) -> t[]")
def sliced(values: Any, start: int | None, end: int | None, step: int) -> list[Any]:
    if step == 0:
        raise ArgumentError("the step of a slice must not be zero")
    return list(values)[start:end:step]


@plain("warn(str message, int stacklevel=2) -> ()")
def warn(message: str, stacklevel: int) -> None:
    warnings.warn(message, stacklevel=stacklevel + 1)


class Late:
    """A number that is not known before an exported program runs: what is asserted of it is not checked, as
    nothing is there, but taken for a promise."""

    __slots__ = ()

    def promise(self, least: int | None, most: int | None) -> None:
        """Note what is promised of it."""

    def assume(self) -> None:
        """Note that it is true."""


@plain("_assert_scalar(Scalar self, str assert_msg) -> ()")
def assert_scalar(number: Any, message: str) -> None:
    if isinstance(number, Late):
        number.assume()
    elif not number:
        raise ArgumentError(message)


@plain("prim::RaiseException(str msg, str? cls=None) -> ()")
def raise_exception(message: str, kind: str | None) -> None:
    raise TenfoldError(message)


@plain(
    "sym_constrain_range(Scalar size, *, int? min=None, int? max=None) -> ()",
    "sym_constrain_range_for_size(Scalar size, *, int? min=None, int? max=None) -> ()",
)
def constrain_range(size: Any, lowest: int | None, highest: int | None) -> None:
    """A promise about a size, which is checked where it is known."""
    if isinstance(size, Late):
        size.promise(lowest, highest)
        return
    if (lowest is not None and size < lowest) or (highest is not None and size > highest):
        raise ArgumentError(f"{size} is not between {lowest} and {highest}, as promised")
