"""Builders of products, convolutions, random bits, and calls into libraries."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tenfold.base import dtypes
from tenfold.base.dtypes import DType
from tenfold.flat import structured as s
from tenfold.flat.build import constant
from tenfold.flat.data_builders import pad
from tenfold.flat.ir import TensorType, Value
from tenfold.flat.windows import ConvDimensions, Convolution


def dot_general(
    x: Value,
    y: Value,
    contract: tuple[Sequence[int], Sequence[int]],
    batch: tuple[Sequence[int], Sequence[int]] = ((), ()),
    dtype: DType | None = None,
) -> Value:
    """Sums of products; `dtype` is the result's, by default the operands'."""
    numbers = s.DotDimensions(tuple(batch[0]), tuple(batch[1]), tuple(contract[0]), tuple(contract[1]))
    return s.DotGeneral(x, y, numbers, dtype or x.dtype).result


def convolution(
    x: Value,
    kernel: Value,
    numbers: ConvDimensions,
    *,
    strides: Sequence[int] | None = None,
    padding: Sequence[tuple[int, int]] | None = None,
    x_dilation: Sequence[int] | None = None,
    kernel_dilation: Sequence[int] | None = None,
    groups: int = 1,
    batch_groups: int = 1,
) -> Value:
    """Sums of products of a kernel with the windows of x; negative padding cuts x."""
    ones = (1,) * (x.rank - 2)
    padding = tuple(padding) if padding is not None else ((0, 0),) * (x.rank - 2)
    spread = tuple(x_dilation or ones)
    if any(low < 0 or high < 0 for low, high in padding):
        lows, highs, interior = [0] * x.rank, [0] * x.rank, [0] * x.rank
        for dim, (low, high), dilation in zip(numbers.input_spatial_dimensions, padding, spread, strict=True):
            lows[dim], highs[dim], interior[dim] = min(low, 0), min(high, 0), dilation - 1
        x, spread = pad(x, lows, highs, 0, interior), ones
        padding = tuple([(max(low, 0), max(high, 0)) for low, high in padding])
    settings = (tuple(strides or ones), padding, spread, tuple(kernel_dilation or ones), (False,) * len(ones))
    return Convolution(x, kernel, *settings, numbers, groups, batch_groups).result


def random_bits(state: Value, shape: Sequence[int], dtype: DType) -> tuple[Value, Value]:
    """A new state, and uniform random bits as unsigned integers."""
    new_state, bits = s.RngBitGenerator(state, dtype, tuple(shape)).results
    return new_state, bits


def fft(x: Value, kind: str, lengths: Sequence[int]) -> Value:
    return s.Fft(x, kind, tuple(lengths)).result


def cholesky(x: Value, lower: bool = True) -> Value:
    return s.Cholesky(x, lower).result


def triangular_solve(
    a: Value,
    b: Value,
    *,
    left: bool = True,
    lower: bool = True,
    unit: bool = False,
    transpose_a: str = "NO_TRANSPOSE",
) -> Value:
    return s.TriangularSolve(a, b, left, lower, unit, transpose_a).result


def custom_call(
    target: str,
    inputs: Sequence[Value],
    results: Sequence[TensorType],
    config: Sequence[tuple[str, object]] | str = (),
    aliases: Sequence[tuple[int, int]] = (),
    by_columns: Sequence[bool | tuple[int, ...]] = (),
) -> tuple[Value, ...]:
    options = config if isinstance(config, str) else tuple(config)
    settings = (tuple(results), options, tuple(aliases), tuple(by_columns))
    return s.CustomCall(tuple(inputs), target, *settings).results


def python_call(
    name: str, arguments: str, inputs: Sequence[Value], results: Sequence[TensorType]
) -> tuple[Value, ...]:
    """A call, when the program runs, of the Python function that `ops/kernels.py` knows by this name.

    `arguments` is the text of the others, besides the inputs. XLA's custom call gets both as its first input,
    so that a stored executable finds the function again in another process; the target's name has them for
    transforms.
    """
    text = constant(np.frombuffer(f"{name}#{arguments}".encode(), np.uint8), dtypes.uint8)
    by_rows = [False] * (1 + len(inputs) + len(results))
    target = f"{s.PYTHON}#{name}#{arguments}"
    return custom_call(target, (text, *inputs), results, (("index", "0 : ui64"),), (), by_rows)
