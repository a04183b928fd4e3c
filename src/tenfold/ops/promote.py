"""PyTorch's type promotion, applied to a row's arguments before its lowering sees them.

A promotion takes a schema's argument names and the arguments, finds one dtype for those that take
part, and converts the tensors among them. Python numbers stay numbers: FlatIR's builders give them the
dtype of the values beside them.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from tenfold import flat
from tenfold.base import dtypes
from tenfold.base.dtypes import DType
from tenfold.ops.numbers import of_number

Promotion = Callable[[Sequence[str], list[Any]], list[Any]]

# Python numbers under these names are operands; others (alpha, value, eps) only scale or fill.
NUMBERS = {"self", "other", "exponent", "min", "max"}


def result_dtype(operands: Sequence[Any]) -> DType:
    """The dtype to which values and Python numbers promote together."""
    entries: list[tuple[DType, Any]] = []
    for operand in operands:
        if type(operand) is flat.LateNumber:
            entries.append((operand.dtype, "number"))
        elif isinstance(operand, flat.Value):
            entries.append((operand.dtype, "tensor" if operand.rank else "scalar"))
        elif isinstance(operand, (tuple, list)):
            entries += [
                (v.dtype, "tensor" if v.rank else "scalar") for v in operand if isinstance(v, flat.Value)
            ]
        elif isinstance(operand, (bool, int, float, complex)):
            entries.append((of_number(operand), "number"))
    return _result_dtype(tuple(entries), dtypes.get_default_dtype())


@functools.lru_cache(4096)
def _result_dtype(entries: tuple[tuple[DType, Any], ...], default: DType) -> DType:
    """What `result_type` says while this is the default dtype."""
    return dtypes.result_type(entries)


def promotion(rule: Callable[[DType], DType], *only: str) -> Promotion:
    """Promote those in `only`, or all tensors and operand numbers, to `rule` of their common dtype."""

    def takes_part(name: str, argument: Any) -> bool:
        if only:
            return name in only
        is_tensor = isinstance(argument, flat.Value) and type(argument) is not flat.LateNumber
        return is_tensor or _is_values(argument) or name in NUMBERS

    def apply(names: Sequence[str], arguments: list[Any]) -> list[Any]:
        chosen = [i for i, name in enumerate(names) if takes_part(name, arguments[i])]
        dtype = rule(result_dtype([arguments[i] for i in chosen]))
        promoted = list(arguments)
        for i in chosen:
            promoted[i] = convert(arguments[i], dtype)
        return promoted

    return apply


def convert(argument: Any, dtype: DType) -> Any:
    if isinstance(argument, flat.Value) and type(argument) is not flat.LateNumber:
        return flat.convert(argument, dtype)
    if isinstance(argument, (tuple, list)):
        return tuple([convert(each, dtype) for each in argument])
    return argument


def _is_values(argument: Any) -> bool:
    return isinstance(argument, (tuple, list)) and bool(argument) and isinstance(argument[0], flat.Value)


def floating(dtype: DType) -> DType:
    """Integers and bool compute in the default float dtype."""
    return dtypes.get_default_dtype() if dtype.kind in ("bool", "int") else dtype


common = promotion(lambda dtype: dtype)
to_float = promotion(floating)


def exact_other(promote: Promotion) -> Promotion:
    """As `promote`, but a second operand without dimensions is not rounded to a half type: it stays a
    float32, in which PyTorch computes with such an operand."""

    def apply(names: Sequence[str], arguments: list[Any]) -> list[Any]:
        promoted = promote(names, arguments)
        dtype, other = promoted[0].dtype if isinstance(promoted[0], flat.Value) else None, arguments[1]
        is_tensor = isinstance(other, flat.Value) and type(other) is not flat.LateNumber
        if dtype in (dtypes.float16, dtypes.bfloat16) and is_tensor and not other.rank:
            promoted[1] = other if other.dtype is dtype else flat.convert(other, dtypes.float32)
        return promoted

    return apply
