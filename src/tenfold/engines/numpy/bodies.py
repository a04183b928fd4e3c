"""The functions inside of ops, such as what a reduction folds by, as functions on whole arrays.

A body takes scalars. One of elementwise ops alone runs on arrays of any shape, element by element; another is
called once for each element. The bodies of the common monoids are functions of NumPy's own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tenfold.base.dtypes import DType
from tenfold.engines.numpy.kernels import Array
from tenfold.engines.numpy.plan import plan
from tenfold.flat import data_ops as movement, elementwise as e
from tenfold.flat.ir import Function

Body = Callable[..., tuple[Array, ...]]

UFUNCS: dict[type, Any] = {
    e.Add: np.add,
    e.Multiply: np.multiply,
    e.Maximum: np.maximum,
    e.Minimum: np.minimum,
    e.And: np.bitwise_and,
    e.Or: np.bitwise_or,
    e.Xor: np.bitwise_xor,
}
_SCALAR = (e.Compare, e.Select, e.Clamp, e.Complex, e.Convert, e.ReducePrecision, movement.Constant)


def ufunc(function: Function) -> np.ufunc | None:
    """NumPy's function for a body that is one op on its two parameters, which can reduce and accumulate."""
    if len(function.params) != 2 or len(function.results) != 1 or len(function.ops) != 1:
        return None
    op, dtype = function.ops[0], function.params[0].dtype
    found = UFUNCS.get(type(op))
    if found is None or set(op.operands) != set(function.params):
        return None
    if dtype.is_complex and found in (np.maximum, np.minimum):
        return None
    if dtype.kind == "bool":  # NumPy would count
        return {np.add: np.logical_or, np.multiply: np.logical_and}.get(found, found)
    return found


def replaces(function: Function) -> bool:
    """Whether a body gives its last parameters as they are."""
    half = len(function.params) // 2
    return function.results == function.params[half:]


def vectorised(function: Function) -> Body:
    """The body as a function from arrays that broadcast together to the arrays of its results."""
    function = function.expanded()
    made = plan(function)
    if all(isinstance(op, (e.Elementwise, *_SCALAR)) for op in function.ops):
        return lambda *arrays: tuple(made(arrays))
    types = [each.dtype.numpy for each in function.results]

    def each_element(*arrays: Array) -> tuple[Array, ...]:
        together = np.broadcast_arrays(*arrays)
        results = tuple([np.empty(together[0].shape, dtype) for dtype in types])
        for place in np.ndindex(together[0].shape):
            found = made([np.asarray(each[place]) for each in together])
            for result, value in zip(results, found, strict=True):
                result[place] = value
        return results

    return each_element


def combiner(function: Function) -> Body:
    """What folds pairs of accumulators: of a monoid, NumPy's function."""
    found = ufunc(function)
    if found is None:
        return vectorised(function)
    return lambda x, y: (found(x, y),)


def accumulating(dtype: DType) -> np.dtype[Any]:
    """The dtype that sums are kept in: narrow floats are added up in float32 and rounded once."""
    return np.dtype(np.float32) if dtype.is_floating_point and dtype.itemsize < 4 else dtype.numpy
