"""XLA and tier 0 side by side: ops that share one program, run by both."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tenfold.base import dtypes
from tenfold.engines import numpy as tier0, xla
from tenfold.flat.ir import Function, Op, TensorType, Value
from tenfold.mlir import stablehlo
from tests.flat.machine import CPU


class Both:
    """Ops that share one program, run by XLA and by tier 0."""

    def __init__(self) -> None:
        self.params: list[Value] = []
        self.arrays: list[np.ndarray] = []
        self.values: list[Value] = []

    def input(self, array: np.ndarray) -> Value:
        self.params.append(Value(TensorType(dtypes.from_numpy(array.dtype), array.shape)))
        self.arrays.append(array)
        return self.params[-1]

    def add(self, op: Op) -> None:
        self.values += op.results

    def run(self) -> Iterator[tuple[Op, np.ndarray, np.ndarray]]:
        """Each op with XLA's result and tier 0's."""
        function = Function(self.params, self.values)
        executable = xla.compile(stablehlo.emit(function), CPU)
        theirs = [xla.fetch(each) for each in executable([xla.put(each, CPU) for each in self.arrays])]
        for value, one, other in zip(self.values, theirs, tier0.run(function, self.arrays), strict=True):
            assert one.dtype == other.dtype and one.shape == other.shape, value.op
            assert value.op is not None
            yield value.op, one, other


def close(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Whether results are the same, but for the last bits of floats."""
    with np.errstate(all="ignore"):
        if x.dtype.kind in "biu":
            return x == y
        if x.dtype.kind == "c":
            same = (x == y) | (np.isnan(x) & np.isnan(y))
            return same | (np.abs(x - y) <= 1e-5 * np.maximum(np.abs(x), 1))
        eps = float(dtypes.finfo(dtypes.from_numpy(x.dtype)).eps)
        x, y = x.astype(np.float64), y.astype(np.float64)
        near = np.abs(x - y) <= max(4 * eps, 1e-14) * np.maximum(np.abs(x), 1)
        return (x == y) | near | (np.isnan(x) & np.isnan(y))
