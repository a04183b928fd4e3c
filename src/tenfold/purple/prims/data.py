"""Truth, equality, lists, symbols, characters, strings, vectors and boxes."""

from __future__ import annotations

import itertools
from fractions import Fraction
from types import FunctionType
from typing import Any

from tenfold.purple import messages
from tenfold.purple.errors import PurpleError
from tenfold.purple.prims.procedures import is_same_procedure
from tenfold.purple.prims.registry import (
    in_range,
    part,
    primitive,
    want,
    want_int,
    want_list,
    want_string,
)
from tenfold.purple.prims.truth import is_same_tensor, is_true
from tenfold.purple.reader import is_code_point
from tenfold.purple.values import (
    NIL,
    UNSPECIFIED,
    Box,
    Char,
    Keyword,
    Pair,
    Record,
    Symbol,
    Table,
    is_list,
    list_of,
)
from tenfold.tensor import Tensor

primitive("not")(lambda value: not is_true(value))
primitive("boolean?")(lambda value: type(value) is bool)
primitive("pair?")(lambda value: type(value) is Pair)
primitive("null?")(lambda value: value is NIL)
primitive("symbol?")(lambda value: type(value) is Symbol)
primitive("keyword?")(lambda value: type(value) is Keyword)
primitive("char?")(lambda value: type(value) is Char)
primitive("string?")(lambda value: type(value) is str)
primitive("vector?")(lambda value: type(value) is list)
primitive("hash-table?")(lambda value: type(value) is Table)
primitive("box?")(lambda value: type(value) is Box)


@primitive("eq?")
def is_same(left: Any, right: Any) -> bool:
    if left is right:
        return True
    kind = type(left)
    if kind is not type(right):
        return False
    if kind is float:  # by bits, but for nan, which is one value
        return (left == right and str(left) == str(right)) or (left != left and right != right)
    if kind is FunctionType:
        return is_same_procedure(left, right, is_same)
    return kind in (int, str, Fraction) and left == right


primitive("eqv?")(lambda left, right: is_same(left, right))


@primitive("equal?")
def is_equal(left: Any, right: Any) -> bool:
    stack = [(left, right)]
    seen: set[tuple[int, int]] = set()
    while stack:
        left, right = stack.pop()
        if is_same(left, right):
            continue
        kind = type(left)
        if kind is not type(right):
            return False
        if kind in (Pair, list, Record, Table, Box):
            if (id(left), id(right)) in seen:
                continue
            seen.add((id(left), id(right)))
        if kind is Pair:
            stack += [(left.cdr, right.cdr), (left.car, right.car)]
        elif kind is list and len(left) == len(right):
            stack += zip(left, right)
        elif kind is Record and left.type is right.type:
            strong = [i for i, field in enumerate(left.type.fields) if not field.weak]
            stack += [(left.values[i], right.values[i]) for i in strong]
        elif kind is Box:
            stack.append((left.value, right.value))
        elif kind is bytearray:
            if left != right:
                return False
        elif kind is Tensor:
            if not is_same_tensor(left, right):
                return False
        elif kind is Table and left.entries.keys() == right.entries.keys():
            stack += [(left.entries[key][1], right.entries[key][1]) for key in left.entries]
        else:
            return False
    return True


# Lists

primitive("cons")(lambda car, cdr: Pair(car, cdr))


@primitive("car")
def car(pair: Any) -> Any:
    return want("car", "pair", Pair, pair).car


@primitive("cdr")
def cdr(pair: Any) -> Any:
    return want("cdr", "pair", Pair, pair).cdr


def _path(name: str) -> None:
    """`cadr` and its like: the letters between c and r, from the last to the first."""
    steps = [{"a": "car", "d": "cdr"}[letter] for letter in reversed(name[1:-1])]

    def call(value: Any) -> Any:
        for step in steps:
            value = getattr(want(name, "pair", Pair, value), step)
        return value

    primitive(name)(call)


for _name in ("caar", "cadr", "cdar", "cddr", "caddr"):
    _path(_name)


@primitive("set-car!")
def set_car(pair: Any, value: Any) -> Any:
    want("set-car!", "pair", Pair, pair).car = value
    return UNSPECIFIED


@primitive("set-cdr!")
def set_cdr(pair: Any, value: Any) -> Any:
    want("set-cdr!", "pair", Pair, pair).cdr = value
    return UNSPECIFIED


primitive("list?")(lambda value: is_list(value))


@primitive("list")
def make_list(*items: Any) -> Any:
    return list_of(items)


@primitive("length")
def length(items: Any) -> int:
    return len(want_list("length", items))


@primitive("append")
def append(*lists: Any) -> Any:
    if not lists:
        return NIL
    result = lists[-1]
    for items in reversed([want_list("append", each) for each in lists[:-1]]):
        result = list_of(items, result)
    return result


@primitive("reverse")
def reverse(items: Any) -> Any:
    result: Any = NIL
    for item in want_list("reverse", items):
        result = Pair(item, result)
    return result


@primitive("list-ref")
def list_ref(items: Any, index: Any) -> Any:
    want_int("list-ref", index)
    rest, left = items, index
    while left > 0 and type(rest) is Pair:
        rest, left = rest.cdr, left - 1
    if left == 0 and type(rest) is Pair:
        return rest.car
    raise PurpleError(messages.out_of_range("list-ref", index, len(want_list("list-ref", items))), "index")


def _rest(name: str, items: Any, count: Any) -> tuple[list[Any], Any]:
    """The first elements of a list, and what follows them."""
    want_int(name, count)
    first: list[Any] = []
    rest = items
    while len(first) < count and type(rest) is Pair:
        first.append(rest.car)
        rest = rest.cdr
    if len(first) == count:
        return first, rest
    raise PurpleError(messages.out_of_range(name, count, len(want_list(name, items))), "index")


primitive("list-tail")(lambda items, count: _rest("list-tail", items, count)[1])
primitive("drop")(lambda items, count: _rest("drop", items, count)[1])
primitive("take")(lambda items, count: list_of(_rest("take", items, count)[0]))


# Symbols and characters


@primitive("symbol->string")
def symbol_to_string(symbol: Any) -> str:
    return want("symbol->string", "symbol", Symbol, symbol).name


@primitive("string->symbol")
def string_to_symbol(text: Any) -> Symbol:
    return Symbol(want_string("string->symbol", text))


@primitive("string->keyword")
def string_to_keyword(text: Any) -> Keyword:
    return Keyword(want_string("string->keyword", text))


@primitive("keyword->string")
def keyword_to_string(keyword: Any) -> str:
    return want("keyword->string", "keyword", Keyword, keyword).name


@primitive("char->integer")
def char_to_integer(char: Any) -> int:
    return want("char->integer", "char", Char, char).code


@primitive("integer->char")
def integer_to_char(code: Any) -> Char:
    if not is_code_point(want_int("integer->char", code)):
        raise PurpleError(f"integer->char: {code} is no code point", "index")
    return Char(code)


# Strings


@primitive("string-length")
def string_length(text: Any) -> int:
    return len(want_string("string-length", text))


@primitive("string-ref")
def string_ref(text: Any, index: Any) -> Char:
    want_string("string-ref", text)
    return Char(ord(text[in_range("string-ref", index, len(text))]))


@primitive("substring")
def substring(text: Any, start: Any, end: Any = None) -> str:
    return part("substring", want_string("substring", text), start, end)


@primitive("string-append")
def string_append(*texts: Any) -> str:
    return "".join([want_string("string-append", text) for text in texts])


@primitive("string=?")
def string_equal(first: Any, *others: Any) -> bool:
    want_string("string=?", first)
    texts = [want_string("string=?", other) for other in others]
    return all(text == first for text in texts)


@primitive("string<?")
def string_less(first: Any, *others: Any) -> bool:
    texts = [want_string("string<?", text) for text in (first, *others)]
    return all(left < right for left, right in itertools.pairwise(texts))


@primitive("string->list")
def string_to_list(text: Any, start: Any = None, end: Any = None) -> Any:
    chosen = part("string->list", want_string("string->list", text), start, end)
    return list_of([Char(ord(each)) for each in chosen])


@primitive("list->string")
def list_to_string(items: Any) -> str:
    chars = want_list("list->string", items)
    return "".join([chr(want("list->string", "char", Char, char).code) for char in chars])


@primitive("string-search")
def string_search(pattern: Any, text: Any, start: Any = 0) -> int | bool:
    want_string("string-search", pattern)
    size = len(want_string("string-search", text))
    found = text.find(pattern, in_range("string-search", start, size, end=True))
    return False if found < 0 else found


# Vectors


@primitive("vector")
def vector(*items: Any) -> list[Any]:
    return list(items)


@primitive("make-vector")
def make_vector(count: Any, fill: Any = 0) -> list[Any]:
    if want_int("make-vector", count) < 0:
        raise PurpleError(f"make-vector: {count} is no length", "index")
    return [fill] * count


@primitive("vector-length")
def vector_length(items: Any) -> int:
    return len(want("vector-length", "vector", list, items))


@primitive("vector-ref")
def vector_ref(items: Any, index: Any) -> Any:
    want("vector-ref", "vector", list, items)
    return items[in_range("vector-ref", index, len(items))]


@primitive("vector-set!")
def vector_set(items: Any, index: Any, value: Any) -> Any:
    want("vector-set!", "vector", list, items)
    items[in_range("vector-set!", index, len(items))] = value
    return UNSPECIFIED


@primitive("vector->list")
def vector_to_list(items: Any, start: Any = None, end: Any = None) -> Any:
    return list_of(part("vector->list", want("vector->list", "vector", list, items), start, end))


@primitive("list->vector")
def list_to_vector(items: Any) -> list[Any]:
    return want_list("list->vector", items)


# Boxes

primitive("box")(lambda value: Box(value))


@primitive("unbox")
def unbox(box: Any) -> Any:
    return want("unbox", "box", Box, box).value


@primitive("set-box!")
def set_box(box: Any, value: Any) -> Any:
    want("set-box!", "box", Box, box).value = value
    return UNSPECIFIED
