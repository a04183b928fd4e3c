"""Operators of the table called directly: where the types of a call's operands are known and say which
overload it means, C calls libtenfold's function for it, and nothing is left to find out when it runs.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from tenfold.capi.typed import plain_name
from tenfold.ops.fitting import STANDS_FOR
from tenfold.ops.order import overloads_in_torch_order
from tenfold.ops.schema import MISSING, Argument, Schema
from tenfold.ops.table import Row
from tenfold.purple.ir import BOOL, FLOAT, INT, VALUE
from tenfold.purple.names import row_of
from tenfold.purple.natives import Form, one_tensor

REPS = {"int": INT, "float": FLOAT, "bool": BOOL}


@functools.lru_cache(4096)
def direct_row(name: str, types: tuple[str, ...], keywords: tuple[str, ...]) -> Form | None:
    """The call of libtenfold's own function; the last operands belong to `keywords`. None where the operands'
    types leave more than one overload, or one with arguments that only the runtime can bring into C."""
    found = row_of(name)
    if found is None or "requires-grad" in keywords:
        return None
    rows, inplace = found
    usable = [row for row in rows if not inplace or row.inplace]
    for row in overloads_in_torch_order(usable, lambda row: row.schema):
        schema = row.schema
        if is_spread(schema, len(types) - len(keywords)) or is_placed(schema):
            return None
        given = bind(schema, types, keywords)
        if given is None:
            continue
        if any(fits(argument, types[i]) is None for argument, i in given):
            return None  # what its operands are shows only when the program runs
        return call(row, rows, inplace, dict(given), types)
    return None


def is_spread(schema: Schema, positional: int) -> bool:
    """Whether the call may give a list's entries one by one: (tensor-view x 2 3)."""
    plain = schema.positional
    return positional > len(plain) > 0 and plain[-1].type.is_list


def is_placed(schema: Schema) -> bool:
    """Whether `with-device` says where the result is: it is made out of no other tensor."""
    kinds = [argument.type.kind for argument in schema.arguments]
    return "Device" in kinds and "Tensor" not in kinds


def bind(schema: Schema, types: Sequence[str], keywords: Sequence[str]) -> list[tuple[Argument, int]] | None:
    """Which operand each argument gets; None where the overload surely does not take them."""
    positional = len(types) - len(keywords)
    plain = schema.positional
    if positional > len(plain):
        return None
    given = list(zip(plain, range(positional)))
    left = {keyword: positional + i for i, keyword in enumerate(keywords)}
    for argument in [*plain[positional:], *schema.keyword_only]:
        at = left.pop(argument.name.replace("_", "-"), None)
        if at is not None:
            given.append((argument, at))
        elif argument.default is MISSING:
            return None
    refused = left or any(fits(argument, types[i]) is False for argument, i in given)
    return None if refused else given


def fits(argument: Argument, type_: str) -> bool | None:
    """Whether an argument takes what has this type; None where that is not known yet, or where a list, text
    or dtype would have to be looked into."""
    kind = argument.type
    if type_ not in ("tensor", "int", "float", "bool"):
        return None
    if kind.is_list or kind.kind not in TAKES:
        return False if type_ == "tensor" and kind.kind != "Tensor" else None
    return None if kind.kind == "Scalar" and type_ == "bool" else type_ in TAKES[kind.kind]


TAKES = {"Tensor": ("tensor",), **{kind: STANDS_FOR[kind] for kind in ("int", "float", "bool", "Scalar")}}


def call(
    row: Row, rows: Sequence[Row], inplace: bool, given: dict[Argument, int], types: Sequence[str]
) -> Form | None:
    schema = row.schema
    if not one_tensor(schema.returns):
        return None
    keyworded = any(argument.keyword_only for argument in given)
    taken = [a for a in schema.arguments if keyworded or not a.keyword_only]
    words = []
    for argument in taken:
        word = operand(argument, given[argument], types) if argument in given else default(argument)
        if word is None:
            return None
        words.append(word)
    reps = tuple(REPS.get(each, VALUE) for each in types)
    function = f"tn_{plain_name(row, rows)}{'_with' * keyworded}{'_' * inplace}({', '.join(words)})"
    if inplace:
        return Form(f'pu_in_place({{0}}, {function}, "{schema.name}_")', reps, VALUE, "zero")
    return Form(f'pu_of_tensor({function}, "{schema.name}")', reps, VALUE, "zero")


C_TYPES = {"int": "int64_t", "float": "double", "bool": "bool", "Scalar": "tn_scalar"}


def operand(argument: Argument, at: int, types: Sequence[str]) -> str:
    """C for an operand as libtenfold takes it: by its address where it might have been left out."""
    kind, nullable = argument.type.kind, argument.type.optional or argument.keyword_only
    if kind == "Tensor":
        return f"pu_handle({{{at}}})"
    word = f"{{{at}}}"
    if kind == "Scalar":
        word = f"tn_{'int' if types[at] == 'int' else 'double'}({word})"
        return f"(tn_scalar[]){{{{{word}}}}}" if nullable else word
    return f"({C_TYPES[kind]}[]){{{{{word}}}}}" if nullable else word


def default(argument: Argument) -> str | None:
    """C for an argument that is left out."""
    value: Any = argument.default
    if value is None or argument.keyword_only:
        return "NULL, 0" if argument.type.is_list else "NULL"
    if argument.type.is_list or argument.type.optional or argument.type.kind not in C_TYPES:
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    if argument.type.kind == "Scalar":
        return f"tn_{'int' if isinstance(value, int) else 'double'}({value!r})"
    return repr(float(value)) if argument.type.kind == "float" else f"INT64_C({value})"
