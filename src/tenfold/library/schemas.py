"""The schema of a function, read off its annotations."""

from __future__ import annotations

import inspect
import types
import typing
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tenfold.base.devices import Device
from tenfold.base.dtypes import DType
from tenfold.base.errors import ArgumentError
from tenfold.tensor import Tensor

__all__ = ["infer_schema", "takes_arrays"]

_SCHEMA_TYPES = {
    Tensor: "Tensor", np.ndarray: "Tensor", int: "SymInt", float: "float", bool: "bool", str: "str",
    complex: "Scalar", DType: "ScalarType", Device: "Device",
}  # fmt: skip


def infer_schema(
    function: Callable[..., Any], /, *, mutates_args: Any = (), op_name: str | None = None
) -> str:
    """The schema that a function's annotations tell: `(Tensor x, float scale=1.0) -> Tensor`.

    Those of `mutates_args` are written, `Tensor(a0!) x`; "unknown" says that every tensor may be.
    """
    hints = typing.get_type_hints(function)
    parts: list[str] = []
    parameters = inspect.signature(function).parameters
    if mutates_args != "unknown":
        mutates_args = set([mutates_args] if isinstance(mutates_args, str) else mutates_args) - {""}
        if unknown := mutates_args - parameters.keys():
            raise ArgumentError(
                f"mutates_args names {sorted(unknown)}, which the function does not take",
                help=f"it takes {', '.join(parameters)}",
            )
    for place, parameter in enumerate(parameters.values()):
        if parameter.name not in hints:
            raise ArgumentError(
                f"the parameter {parameter.name!r} has no annotation", help="write one, such as Tensor"
            )
        if parameter.kind is parameter.KEYWORD_ONLY and "*" not in parts:
            parts.append("*")
        default = "" if parameter.default is parameter.empty else f"={parameter.default!r}"
        kind = _schema_type(hints[parameter.name])
        holds_tensors = kind.startswith("Tensor")
        if holds_tensors if mutates_args == "unknown" else parameter.name in mutates_args:
            if not holds_tensors:
                raise ArgumentError(
                    f"mutates_args names {parameter.name!r}, which is a {kind}: only tensors are written"
                )
            kind = kind.replace("Tensor", f"Tensor(a{place}!)", 1)
        parts.append(f"{kind} {parameter.name}{default}")
    if "return" not in hints:
        raise ArgumentError(
            "the result has no annotation", help="write -> Tensor, -> tuple[Tensor, Tensor] or -> None"
        )
    result = hints["return"]
    if result is type(None):
        returns = "()"
    elif typing.get_origin(result) is tuple:
        returns = f"({', '.join(_schema_type(get_arg) for get_arg in typing.get_args(result))})"
    else:
        returns = _schema_type(result)
    return f"{op_name or ''}({', '.join(parts)}) -> {returns}"


def _schema_type(annotation: Any) -> str:
    if annotation in _SCHEMA_TYPES:
        return _SCHEMA_TYPES[annotation]
    origin, parameters = typing.get_origin(annotation), typing.get_args(annotation)
    if origin in (typing.Union, types.UnionType) and type(None) in parameters and len(parameters) == 2:
        (inner,) = [parameter for parameter in parameters if parameter is not type(None)]
        return f"{_schema_type(inner)}?"
    if origin in (list, Sequence) and len(parameters) == 1:
        return f"{_schema_type(parameters[0])}[]"
    if origin is np.ndarray:  # NDArray[np.float32]
        return "Tensor"
    if origin in (typing.Union, types.UnionType) and set(parameters) <= {int, float, bool, complex}:
        return "Scalar"
    raise ArgumentError(
        f"a schema has no type for {annotation!r}", help="give the schema yourself: schema=..."
    )


def takes_arrays(function: Callable[..., Any]) -> bool:
    """Whether the function is written for NumPy arrays, as its annotations say."""
    try:
        hints = typing.get_type_hints(function)
    except (NameError, TypeError):
        return False
    return any(
        hint is np.ndarray or typing.get_origin(hint) is np.ndarray
        for name, hint in hints.items()
        if name != "return"
    )
