"""Functions of single elements that are 0 at 0: they apply to the stored elements alone.

Whether an op is one is read off its lowering: each FlatIR op in it must compute element by element, and its
result on 0, computed by NumPy, must be 0. So no list of such ops has to be kept.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from tenfold.base.errors import TenfoldError
from tenfold.flat import elementwise
from tenfold.flat.composite import Composite
from tenfold.flat.data_ops import BroadcastInDim, Constant
from tenfold.flat.ir import Function, Op, TensorType, in_order
from tenfold.ops.callee import OpCall
from tenfold.ops.table import TABLE
from tenfold.tensor import Tensor
from tenfold.tensor.dispatch import aten


def is_zero_at_zero(name: str, values: Tensor, shape: tuple[int, ...], args: Any, kwargs: Any) -> bool:
    """Whether the op of a name, with these further arguments, maps a tensor of a shape element by element and
    0 to 0, and the values that the tensor stores in the same way."""
    if name not in TABLE or any(isinstance(each, Tensor) for each in (*args, *kwargs.values())):
        return False
    if any(row.random or row.host or row.strides for row in TABLE[name]):
        return False
    try:
        result = aten(name)(values.detach().new_zeros(()), *args, **kwargs)
        node = result._value.node if isinstance(result, Tensor) else None
        if node is None or not isinstance(node.callee, OpCall):
            return False
        call: OpCall = node.callee
        return _is_zero(call) and all(
            _is_pointwise(call.row.call((TensorType(values.dtype, each),), call.arguments).fragment, each)
            for each in (shape, tuple(values.shape))
        )
    except TenfoldError:  # on a single element
        return False


@functools.lru_cache(1024)
def _is_zero(call: OpCall) -> bool:
    """Whether a call on one element gives 0 for 0."""
    from tenfold.engines.numpy.plan import run

    results = run(call.fragment, [np.zeros((), each.dtype.numpy) for each in call.types])
    return len(results) == 1 and not results[0].shape and not results[0]


def _is_pointwise(function: Function, shape: tuple[int, ...]) -> bool:
    """Whether the result of a function has a shape, and each element depends on that of the operand alone."""
    return all(result.type.shape == shape for result in function.results) and all(
        _computes_each(op) for op in in_order(function.results)
    )


def _computes_each(op: Op) -> bool:
    if isinstance(op, Composite):
        return all(_computes_each(each) for each in in_order(op.body.results))
    if isinstance(op, (Constant, BroadcastInDim)):  # one number for all elements
        return all(not each.type.shape for each in op.operands or op.results)
    if isinstance(op, elementwise.BitcastConvert):
        return op.operands[0].type.shape == op.results[0].type.shape
    return type(op) in ELEMENTWISE


ELEMENTWISE = {
    member for member in vars(elementwise).values() if isinstance(member, type) and issubclass(member, Op)
}
