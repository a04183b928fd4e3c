"""The op table's rows as primitives: `tensor-NAME` and, in place, `tensor-NAME!`."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

from tenfold.base import dtypes
from tenfold.base.errors import TenfoldError
from tenfold.ops.schema import Argument
from tenfold.ops.table import Row
from tenfold.purple import messages, names
from tenfold.purple.errors import PurpleError
from tenfold.purple.numerals import to_float
from tenfold.purple.prims.refused import told
from tenfold.purple.prims.registry import is_machine_int, too_wide, wrong_type
from tenfold.purple.printing import brief
from tenfold.purple.values import NIL, UNSPECIFIED, Keyword, Pair, is_list, list_of
from tenfold.tensor import Tensor, dispatch

NO_OVERLOAD = "no overload takes these"
REDUCTIONS = {"none": 0, "mean": 1, "sum": 2}


def row_function(name: str) -> Callable[..., Any]:
    """The primitive of a row's name."""
    found = names.row_of(name)
    assert found is not None
    rows, inplace = found
    aten = names.aten_name(name)
    if inplace:
        call = dispatch.inplace_method(aten, [row for row in rows if row.inplace])
    else:
        methods = [row for row in rows if row.method and _has_self(row)]
        # Methods take sizes one by one as well as in a list: (tensor-view x 2 3).
        call = dispatch.function(
            aten, methods if len(methods) == len(rows) else rows, method=len(methods) == len(rows)
        )
    nil_is_list = {key for key in _keys(rows) if _takes_list(rows, key)}
    sizes_first = rows[0].schema.arguments and rows[0].schema.arguments[0].name == "size"

    def primitive(*arguments: Any, **keywords: Any) -> Any:
        if not keywords and not inplace and all(type(argument) is Tensor for argument in arguments):
            result = call(*arguments)  # as most calls are
            return result if type(result) is Tensor else to_purple(result)
        if inplace:
            target = arguments[0] if arguments else keywords.get("self", keywords.get("input"))
            if not isinstance(target, Tensor):
                shown = None if target is None else brief(target)
                raise PurpleError(messages.not_writable(name, shown), "tensor")
        converted = [
            to_python(name, argument, i in nil_is_list, _argument(rows, i))
            for i, argument in enumerate(arguments)
        ]
        if sizes_first and len(converted) > 1 and all(type(each) is int for each in converted):
            converted = [converted]
        named = {
            key: to_python(name, value, key in nil_is_list, _argument(rows, key))
            for key, value in keywords.items()
        }
        return to_purple(call(*converted, **named))

    return told(name, primitive)


def _has_self(row: Row) -> bool:
    return any(argument.name == "self" for argument in row.schema.arguments)


def _argument(rows: list[Row], key: int | str) -> Argument | None:
    for row in rows:
        arguments = row.schema.arguments
        if isinstance(key, int):
            if key < len(arguments):
                return arguments[key]
        else:
            for argument in arguments:
                if argument.name == key:
                    return argument
    return None


def _keys(rows: list[Row]) -> set[int | str]:
    positions = {i for row in rows for i in range(len(row.schema.arguments))}
    return positions | {argument.name for row in rows for argument in row.schema.arguments}


def _takes_list(rows: list[Row], key: int | str) -> bool:
    """Whether nil there means an empty list, because no overload takes None."""
    found = [_argument([row], key) for row in rows]
    known = [each for each in found if each is not None]
    return bool(known) and all(each.type.is_list and not each.type.optional for each in known)


def to_python(name: str, value: Any, nil_is_list: bool, argument: Argument | None) -> Any:
    """A Purple value as the table's functions take it."""
    kind = type(value)
    if kind in (float, bool, str) or isinstance(value, Tensor):
        return value
    if kind is int:
        return value if is_machine_int(value) else too_wide(name, value)
    if kind is Fraction:
        return to_float(value)
    if value is NIL:
        return [] if nil_is_list else None
    if kind is Keyword:
        return keyword_value(name, value, argument)
    if kind is Pair:
        if not is_list(value):
            raise TenfoldError(NO_OVERLOAD)  # `told` says of what
        return [to_python(name, each, True, argument) for each in value]
    if kind is list:
        return [to_python(name, each, True, argument) for each in value]
    wrong_type(name, "number*", value)


def keyword_value(name: str, keyword: Keyword, argument: Argument | None) -> Any:
    if keyword.name in dtypes.BY_NAME:
        return dtypes.BY_NAME[keyword.name]
    if argument is not None and argument.name == "reduction" and keyword.name in REDUCTIONS:
        return REDUCTIONS[keyword.name]
    if argument is not None and argument.type.kind in ("str", "Layout", "MemoryFormat", "Device"):
        return keyword.name.replace("-", "_")
    raise PurpleError(messages.wrong_type(name, "number*", repr(keyword)), "type")


def to_purple(value: Any) -> Any:
    """A result of the table's functions as a Purple value."""
    if isinstance(value, (Tensor, bool, int, float, str)):
        return value
    if isinstance(value, (tuple, list)):
        return list_of([to_purple(each) for each in value])
    if value is None:
        return UNSPECIFIED
    if isinstance(value, complex):
        raise PurpleError("Purple has no complex numbers outside tensors", "type")
    return value
