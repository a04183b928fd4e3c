"""The table of plain ops: a row is a schema and a Python function of its arguments."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tenfold.base.devices import Device
from tenfold.base.dtypes import DType
from tenfold.base.errors import ArgumentError
from tenfold.ops.schema import MISSING, Schema, Type, parse

Function = Callable[..., Any]


class PlainRow:
    """One overload, computed by a Python function."""

    def __init__(self, text: str, function: Function):
        self.text = text
        head = text[: text.index("(")]
        self.namespace, _, self.qualified = head.rpartition("::")
        self.namespace = self.namespace or "aten"
        self.name, _, self.overload = self.qualified.partition(".")
        self.function = function
        self._schema: Schema | None = None

    @property
    def schema(self) -> Schema:
        if self._schema is None:
            self._schema = parse(self.text)
        return self._schema

    def bind(self, args: Sequence[Any], kwargs: dict[str, Any]) -> list[Any] | None:
        """A value for each argument of the schema, then the variadic ones; None if the call does not fit."""
        schema = self.schema
        if len(args) > len(schema.positional) and not schema.variadic:
            return None
        given = dict(zip([each.name for each in schema.positional], args, strict=False))
        if given.keys() & kwargs.keys() or kwargs.keys() - {each.name for each in schema.arguments}:
            return None
        given |= kwargs
        values = []
        for argument in schema.arguments:
            value = given.get(argument.name, argument.default)
            if value is MISSING or (value is not argument.default and not fits(argument.type, value)):
                return None
            values.append(value)
        return values + list(args[len(schema.positional) :])

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        bound = self.bind(args, kwargs)
        if bound is None:
            given = ", ".join([type(each).__name__ for each in (*args, *kwargs.values())])
            raise ArgumentError(f"takes {self.schema}, not ({given})")
        return self.function(*bound)

    def __repr__(self) -> str:
        return f"<PlainRow {self.namespace}::{self.qualified}>"


PLAIN: dict[str, dict[str, list[PlainRow]]] = {"aten": {}, "prim": {}}


def plain(*schemas: str) -> Callable[[Function], Function]:
    """Declare plain rows: one for each schema, all computed by the decorated function."""

    def declare(function: Function) -> Function:
        for text in schemas:
            row = PlainRow(text, function)
            PLAIN.setdefault(row.namespace, {}).setdefault(row.name, []).append(row)
        return function

    return declare


def _is_tensor(value: Any) -> bool:
    return hasattr(value, "requires_grad") and hasattr(value, "item")


KINDS: dict[str, Callable[[Any], bool]] = {
    "int": lambda value: isinstance(value, int) and not isinstance(value, bool),
    "float": lambda value: isinstance(value, float),
    "bool": lambda value: isinstance(value, bool),
    "Scalar": lambda value: isinstance(value, (bool, int, float, complex)),
    "str": lambda value: isinstance(value, str),
    "Tensor": _is_tensor,
    "Device": lambda value: isinstance(value, (Device, str)),
    "ScalarType": lambda value: isinstance(value, DType),
}


def fits(type: Type, value: Any) -> bool:
    """Whether a value is one of a schema's type; type variables and what has no Python type take any."""
    if value is None:
        return type.optional or type.kind in ("t1", "t2", "t")
    if type.is_list:
        return isinstance(value, (list, tuple)) and all(
            KINDS.get(type.kind, lambda each: True)(each) for each in value
        )
    if type.base.startswith("Dict("):
        return isinstance(value, dict)
    return KINDS.get(type.kind, lambda each: True)(value)
