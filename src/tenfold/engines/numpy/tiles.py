"""The kernels of `ops/tile_kernels.py` on NumPy arrays, one program of the grid after another."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tenfold.engines.numpy.kernels import Array, Kernel
from tenfold.ops.tile_kernels import KERNELS

WIDE = np.float32


class Program:
    """What `mlir/triton.py`'s Writer offers a kernel, computed at once. A reference is an array of rank 1."""

    def __init__(self, place: int):
        self._place = place

    def program(self) -> Any:
        return np.int32(self._place)

    def range(self, size: int) -> Array:
        return np.arange(size, dtype=np.int32)

    def full(self, value: float, *shape: int) -> Any:
        return np.full(shape, value, WIDE) if shape else WIDE(value)

    def column(self, x: Array) -> Array:
        return x[:, None]

    def row(self, x: Array) -> Array:
        return x[None]

    def load(self, ref: Array, offsets: Any, mask: Any = None, other: float = 0.0) -> Any:
        if mask is None:
            return _widened(ref[offsets])
        found = _widened(ref[np.where(mask, offsets, 0)])
        return np.where(mask, found, found.dtype.type(other))

    def store(self, ref: Array, offsets: Any, value: Any, mask: Any = None) -> None:
        if mask is None:
            ref[offsets] = value
            return
        value, mask = (np.broadcast_to(each, np.shape(offsets)) for each in (value, mask))
        ref[np.asarray(offsets)[mask]] = value[mask].astype(ref.dtype)

    def sum(self, x: Array, axis: int = 0) -> Any:
        return x.sum(axis, WIDE)

    def max(self, x: Array, axis: int = 0) -> Any:
        return x.max(axis)

    def maximum(self, x: Any, y: Any) -> Any:
        return np.maximum(x, y)

    def exp(self, x: Any) -> Any:
        return np.exp(x)

    def log(self, x: Any) -> Any:
        return np.log(x)

    def rsqrt(self, x: Any) -> Any:
        return 1 / np.sqrt(x)

    def rounded(self, x: Any, ref: Array) -> Any:
        return x.astype(ref.dtype).astype(WIDE)

    def where(self, condition: Any, x: Any, y: Any) -> Any:
        found = np.where(condition, x, y)
        return found if found.dtype.kind == "i" else found.astype(WIDE)

    def quotient(self, x: Any, divisor: int) -> Any:
        return np.int32(x // divisor)

    def both(self, x: Any, y: Any) -> Any:
        return x & y

    def stretched(self, x: Any, size: int) -> Array:
        return np.full(size, x)

    def to_int32(self, x: Any) -> Any:
        return np.int32(x)

    def loop(self, count: int, carry: Sequence[Any], body: Callable[..., Sequence[Any]]) -> list[Any]:
        for i in range(count):
            carry = body(np.int32(i), *carry)
        return list(carry)

    def when(self, condition: Any, body: Callable[[], Sequence[Any]], otherwise: Sequence[Any]) -> list[Any]:
        return list(body() if condition else otherwise)


def _widened(x: Any) -> Any:
    return x.astype(WIDE) if x.dtype.itemsize == 2 else x


def tile_call(op: Any) -> Kernel:
    kernel = KERNELS[op.call_target_name.partition("#")[2]]
    options = dict(op.backend_config)
    grid, _, starts = options.pop("grid"), options.pop("warps"), dict(options.pop("starts", ()))
    types = op.result_types

    def run(*inputs: Array) -> Any:
        results = [np.empty(each.numel, each.dtype.numpy) for each in types]
        refs = [
            np.ascontiguousarray(operand).reshape(-1)[starts.get(i, 0) :] for i, operand in enumerate(inputs)
        ]
        for result, operand in op.aliases:
            results[result][:] = refs[operand]
        with np.errstate(all="ignore"):
            for place in range(grid):
                kernel(Program(place), *refs, *results, **options)
        shaped = [result.reshape(type.shape) for result, type in zip(results, types, strict=True)]
        return shaped[0] if len(shaped) == 1 else shaped

    return run
