"""Rounds quotients on a CPU as IEEE 754 requires: 49 / 49 is 1, even where 49 is broadcast.

XLA would multiply by the reciprocal of a divisor that is a constant or a broadcast, and of what is computed
from one. A barrier keeps it from seeing that; it is gone before XLA's CPU compiler fuses ops, so that the
program stays as fast. Inside loops and branches quotients are as XLA makes them."""

from __future__ import annotations

import numpy as np

from tenfold.flat.data_ops import BroadcastInDim, Constant
from tenfold.flat.elementwise import Divide, OptimizationBarrier
from tenfold.flat.ir import Function, Op, Value, replay


def rounded_once(function: Function) -> Function:
    """The same program, every divisor of floats behind a barrier."""
    if not any(map(_rewritten, function.ops)):
        return function
    values: dict[Value, Value] = {}
    for op in function.ops:
        if _rewritten(op):
            values[op.result] = _apart(op, values)
        elif any(operand in values for operand in op.operands):
            replay((op,), values, whole=True)
    return Function(
        function.params, [values.get(result, result) for result in function.results], function.name
    )


def _apart(op: Op, values: dict[Value, Value]) -> Value:
    dividend, divisor = [values.get(operand, operand) for operand in op.operands]
    hidden = OptimizationBarrier((divisor,))
    quotient = Divide(dividend, hidden.result)
    for value in (hidden, quotient):
        value.__dict__["source"] = op.source
    return quotient.result


def _rewritten(op: Op) -> bool:
    """Whether XLA might multiply here by a reciprocal that is not exact."""
    return isinstance(op, Divide) and op.operands[1].dtype.kind == "float" and not _exact(op.operands[1])


def _exact(divisor: Value) -> bool:
    """Whether a divisor is one that a program gets as it is, or a power of two."""
    op = divisor.op
    while isinstance(op, BroadcastInDim):
        op = op.x.op
    if not isinstance(op, Constant):
        return divisor.op is None
    fractions, _ = np.frexp(op.value.astype(np.float64))
    return bool((np.abs(fractions) == 0.5).all())
