"""How precisely lowerings compute: half types in float32 as PyTorch does, delicate functions in float64."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from tenfold import flat
from tenfold.base import dtypes
from tenfold.base.dtypes import DType
from tenfold.ops.table import Lowering


def computed_in(wide: DType) -> Callable[[Lowering], Lowering]:
    """Decorate a lowering: it computes narrower floats in `wide`, and its results are rounded back."""

    def decorate(lowering: Lowering) -> Lowering:
        @functools.wraps(lowering)
        def widened(*arguments: Any) -> Any:
            floats = [a.dtype for a in arguments if isinstance(a, flat.Value) and a.dtype.is_floating_point]
            narrow = next((dtype for dtype in floats if dtype.itemsize < wide.itemsize), None)
            if narrow is None:
                return lowering(*arguments)
            results = lowering(*[_converted(argument, narrow, wide) for argument in arguments])
            return _converted(results, wide, narrow)

        return widened

    return decorate


def _converted(argument: Any, source: DType, target: DType) -> Any:
    if isinstance(argument, tuple):
        return tuple([_converted(each, source, target) for each in argument])
    if isinstance(argument, flat.Value) and argument.dtype is source:
        return flat.convert(argument, target)
    return argument


widened = computed_in(dtypes.float32)
doubled = computed_in(dtypes.float64)


def is_number(argument: Any) -> bool:
    """Whether an operand is a Python number, known now or later."""
    return type(argument) is flat.LateNumber or not isinstance(argument, flat.Value)


def exact_number(lowering: Lowering) -> Lowering:
    """Decorate a lowering of two operands: where the second is a Python number, or a float32 beside a half
    type (`promote.exact_other`), half types compute in float32, so that the number is not rounded to theirs.
    A number that comes first is rounded, as in PyTorch."""
    wide = widened(lowering)

    @functools.wraps(lowering)
    def computed(x: Any, y: Any) -> Any:
        exact = is_number(y) or (not is_number(x) and x.dtype is not y.dtype)
        return wide(x, y) if exact else lowering(x, y)

    return computed


def rounded_numbers(lowering: Lowering) -> Lowering:
    """Decorate a lowering: half types compute in float32, with Python numbers rounded to their dtype."""
    wide = widened(lowering)

    @functools.wraps(lowering)
    def computed(*operands: Any) -> Any:
        dtype = next(each.dtype for each in operands if not is_number(each))
        if dtype.is_floating_point and dtype.itemsize < dtypes.float32.itemsize:
            operands = tuple([flat.constant(each, dtype) if is_number(each) else each for each in operands])
        return wide(*operands)

    return computed
