"""The Python signature of an overload, with types, as a stub or a help page writes it."""

from __future__ import annotations

import keyword
from collections.abc import Sequence

from tenfold.ops.order import in_torch_order, python_name
from tenfold.ops.schema import MISSING, Argument, Return, Schema, Type
from tenfold.ops.table import Row

__all__ = ["overloads", "result_class", "result_text"]

# Names with an underscore, because a stub has functions called `float`, `int` and `dtype`.
TYPES = {
    "Tensor": "Tensor", "Scalar": "_Number", "int": "_int", "float": "_float", "bool": "_bool", "str": "_str",
    "complex": "_complex", "ScalarType": "_DType | _type[_Any]", "Device": "_Device | _str | _int",
    "Layout": "_str", "MemoryFormat": "_str", "QScheme": "_str", "Dimname": "_str", "Generator": "_Generator",
}  # fmt: skip


def overloads(rows: Sequence[Row], *, method: bool, writes: bool = False) -> list[str]:
    """The parameter lists and results of a name's overloads, in the order in which they are tried:
    `(input: Tensor, dim: _int) -> Tensor`. With `writes`, those of the form in place."""
    by_schema = {id(row.schema): row for row in rows}
    numbers = any(row.numbers for row in rows)
    texts: list[str] = []
    for schema in in_torch_order([row.schema for row in rows], method):
        row = by_schema[id(schema)]
        result = "Tensor" if writes else result_text(row)
        for spread in (False, True)[: 1 + _spreads(schema, method)]:
            parts = _parameters(row, method, numbers, spread, out=not (method or writes))
            texts.append(f"({', '.join(parts)}) -> {result}")
    return list(dict.fromkeys(texts))


def _parameters(row: Row, method: bool, numbers: bool, spread: bool, out: bool) -> list[str]:
    arguments = row.schema.arguments
    if method:
        arguments = tuple(sorted(arguments, key=lambda each: each.name != "self"))
    parts = ["self"] if method else []
    starred = optional = False
    for argument in arguments[method:]:
        if argument.keyword_only and not starred and not spread:
            parts.append("*")
            starred = True
        if spread and not argument.keyword_only:
            parts.append(f"*{_name(argument, method)}: _int")
            continue
        text = f"{_name(argument, method)}: {_type_text(argument.type, numbers)}"
        optional = argument.default is not MISSING or (optional and not argument.keyword_only)
        parts.append(f"{text} = {_default(argument)}" if optional else text)
    return parts + _further(row, out, starred or spread)


def _default(argument: Argument) -> str:
    """A default as Python writes it, where it has a short form there."""
    value = argument.default
    plain = value is None or (isinstance(value, (bool, int, float, str)) and argument.type.kind in _WRITTEN)
    return repr(value) if plain and str(value) not in ("inf", "-inf", "nan") else "..."


_WRITTEN = ("bool", "int", "float", "Scalar", "str")


def _further(row: Row, out: bool, starred: bool) -> list[str]:
    """The keywords that every function takes, or every one that makes a tensor."""
    further = []
    tensors = [each for each in row.schema.returns if each.type.kind == "Tensor"]
    if out and len(tensors) == len(row.schema.returns) and tensors and not row.schema.is_view:
        several = len(tensors) > 1 or tensors[0].type.is_list
        further.append(f"out: {'_Sequence[Tensor]' if several else 'Tensor'} | None = None")
    if "pin_memory" in row.text:
        further.append("requires_grad: _bool = False")
    return further if starred or not further else ["*", *further]


def _spreads(schema: Schema, method: bool) -> bool:
    """Whether a list of ints stands alone, so that it may be given one by one: `x.view(2, 3)`."""
    positional = [each for each in schema.positional if not (method and each.name == "self")]
    return len(positional) == 1 and positional[0].type.is_list and positional[0].type.kind == "int"


def _name(argument: Argument, method: bool) -> str:
    name = python_name(argument, method)
    return f"{name}_" if keyword.iskeyword(name) else name


def _type_text(type: Type, numbers: bool) -> str:
    text = TYPES.get(type.kind, "_Any")
    if type.kind == "Scalar":
        text = "_Number | Tensor"
    if type.kind == "Tensor" and numbers and not type.is_list:
        text = "Tensor | _Number"
    if type.is_list:
        element = f"{text} | None" if type.element_optional else text
        several = f"_Sequence[{element}]"
        text = f"{text} | {several}" if type.list_size is not None and type.list_size > 0 else several
    return f"{text} | None" if type.optional else text


def result_text(row: Row) -> str:
    returns = row.schema.returns
    if len(returns) > 1:
        named = all(each.name for each in returns)
        return result_class(row) if named else f"tuple[{', '.join(map(_one, returns))}]"
    return _one(returns[0]) if returns else "None"


def _one(each: Return) -> str:
    if each.type.is_list:
        return "tuple[Tensor, ...]"
    return (
        "_int | _float | _bool | _complex"
        if each.type.kind == "Scalar"
        else TYPES.get(each.type.kind, "_Any")
    )


def result_class(row: Row) -> str:
    """The name of the class of several results that have names."""
    return f"_{row.qualified.strip('_').replace('.', '_')}"
