"""Uniform values, all of whose elements are equal whatever a program is given: ones, a number that is
broadcast, and what is computed from such values alone."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from tenfold.flat.data_ops import BroadcastInDim, Constant, Reshape, Reverse, Slice, Transpose
from tenfold.flat.elementwise import Elementwise, OptimizationBarrier
from tenfold.flat.ir import Function, Value
from tenfold.flat.structured import Case, DotGeneral, Reduce, While
from tenfold.flat.windows import Convolution

KEEPING = (BroadcastInDim, Elementwise, OptimizationBarrier, Reduce, Reshape, Reverse, Slice, Transpose)


def multiplies_uniform(function: Function, given: Iterable[Value] = ()) -> bool:
    """Whether a product or a convolution of the program has a uniform operand. Parameters are not uniform but
    those that are `given` as such, and single numbers."""
    uniform = {*given, *[param for param in function.params if param.type.numel == 1]}
    for op in function.ops:
        if isinstance(op, (DotGeneral, Convolution)):
            if any(operand in uniform for operand in op.operands[:2]):
                return True
        elif isinstance(op, Constant) and isinstance(op.value, np.ndarray):  # else it follows from open sizes
            if op.value.size and (op.value == op.value.flat[0]).all():
                uniform.add(op.result)
        elif isinstance(op, KEEPING) and all(operand in uniform for operand in op.operands):
            uniform.update(op.results)
        elif isinstance(op, Case):
            if any(_in_region(branch, op.arguments, uniform) for branch in op.branches):
                return True
        elif isinstance(op, While) and _in_region(op.body, op.carry, uniform):
            return True
        uniform.update(result for result in op.results if result.type.numel == 1)
    return False


def _in_region(region: Function, operands: Sequence[Value], uniform: set[Value]) -> bool:
    region = region.expanded()
    pairs = zip(region.params, operands, strict=True)
    return multiplies_uniform(region, [param for param, operand in pairs if operand in uniform])
