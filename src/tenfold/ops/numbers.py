"""Python numbers as elements of a dtype: what an op that fills, limits or scales by one takes."""

from __future__ import annotations

import math
from typing import Any

from tenfold import flat
from tenfold.base import dtypes
from tenfold.base.dtypes import DType
from tenfold.base.errors import NumberOutOfRange


def number_in(number: Any, dtype: DType, single: bool = False) -> Any:
    """A number as one that fits dtype: for integers it loses its fraction; out of range it is an error.

    As in PyTorch a negative integer wraps once around into an unsigned dtype, and a number that is to be the
    `single` element of a tensor becomes infinite where it exceeds a half type.
    """
    if not flat.known(number):
        return number  # one like it was checked when the op was recorded
    if dtype.kind == "bool" or dtype.is_complex:
        return bool(number) if dtype.kind == "bool" else number
    misfit = NumberOutOfRange(
        f"the number {number} does not fit {dtype.name}", help="use a number in its range, or a wider dtype"
    )
    if isinstance(number, complex):
        if number.imag:
            raise misfit
        number = number.real
    if dtype.kind == "float":
        if math.isfinite(number) and abs(number) > dtypes.finfo(dtype).max:
            if not single or dtype.itemsize >= 4:
                raise misfit
            return math.copysign(math.inf, number)
        return float(number)
    limits = dtypes.iinfo(dtype)
    low = limits.min if dtype.is_signed or isinstance(number, float) else -limits.max
    if number != number or not low <= number <= limits.max:
        raise misfit
    return int(number) if dtype.is_signed else int(number) % (limits.max + 1)
