"""Python numbers as elements of a dtype: what an op that fills, limits or scales by one takes."""

from __future__ import annotations

import functools
import math
from typing import Any

from tenfold import flat
from tenfold.base import dtypes
from tenfold.base.dtypes import DType
from tenfold.base.errors import NumberOutOfRange


def require_width(kind: str, number: Any) -> None:
    """Refuse integers that no argument of a schema holds: an int has 64 bits, a Scalar may be unsigned."""
    if type(number) is tuple:
        for each in number:
            require_width(kind, each)
    elif type(number) is int and not -(1 << 63) <= number < 1 << (63 if kind == "int" else 64):
        raise _misfit(number, dtypes.int64 if kind == "int" or number < 0 else dtypes.uint64)


def of_number(number: Any) -> DType:
    """The dtype that a Python number promotes as."""
    return dtypes.uint64 if type(number) is int and number >= 1 << 63 else dtypes.of_python(number)


def number_in(number: Any, dtype: DType, single: bool = False) -> Any:
    """A number as one that fits dtype: for integers it loses its fraction; out of range it is an error.

    As in PyTorch a negative integer wraps once around into an unsigned dtype, and a number that is to be the
    `single` element of a tensor becomes infinite where it exceeds a half type.
    """
    if not flat.known(number):
        return number  # one like it was checked when the op was recorded
    if dtype.kind == "bool" or dtype.is_complex:
        return bool(number) if dtype.kind == "bool" else number
    if isinstance(number, complex):
        if number.imag:
            raise _misfit(number, dtype)
        number = number.real
    low, high = _limits(dtype)
    if dtype.kind == "float":
        if math.isfinite(number) and abs(number) > high:
            if not single or dtype.itemsize >= 4:
                raise _misfit(number, dtype)
            return math.copysign(math.inf, number)
        return float(number)
    if not dtype.is_signed and not isinstance(number, float):
        low = -high
    if number != number or not low <= number <= high:
        raise _misfit(number, dtype)
    return int(number) if dtype.is_signed else int(number) % (high + 1)


@functools.cache
def _limits(dtype: DType) -> tuple[Any, Any]:
    """The least and the largest finite number of a dtype."""
    limits: Any = dtypes.finfo(dtype) if dtype.kind == "float" else dtypes.iinfo(dtype)
    return limits.min, limits.max


def _misfit(number: Any, dtype: DType) -> NumberOutOfRange:
    return NumberOutOfRange(
        f"the number {number} does not fit {dtype.name}", help="use a number in its range, or a wider dtype"
    )
