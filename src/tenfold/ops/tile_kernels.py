"""Kernels of our own, over tiles: see `mlir/triton.py` for what they are written in.

Each takes the writer, its operands and then its results, and computes what one program of a grid does. Rows
lie one after another, `width` elements each; a tile has room for `block` of them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from tenfold import flat
from tenfold.base import dtypes
from tenfold.flat import TensorType, Value

TARGET = "__gpu$xla.gpu.triton"
LIMIT = 2**31  # elements that a place in a tensor counts
WIDEST = 16384  # elements of a row that one program holds
STRIP = 1024  # elements of a longer row that it looks at together
LONG_STRIP, LONG_WARPS = 2048, 16  # where two programs are to fill a multiprocessor
UNROLLED = 4  # strips at a time
PROGRAMS = 512  # that add up columns of whole rows
PAIR = 2  # of rows, which a program loads together
GROUPS = 256  # of rows, whose columns are added up strip by strip
SMALLEST = 1 << 20  # elements of an elementwise function's argument, below which XLA fuses it with others
ROOT = math.sqrt(2 / math.pi)
LOWEST = float(np.finfo(np.float32).min)


KERNELS: dict[str, Any] = {}  # by name


def kernel(function: Any) -> Any:
    """Registers a kernel."""
    KERNELS[function.__name__] = function
    return function


def block_of(width: int, least: int = 128) -> int:
    return max(least, 1 << (width - 1).bit_length())


def warps_of(block: int) -> int:
    return max(1, min(16, block // 256))


def call(
    function: Any,
    inputs: Sequence[Value],
    results: Sequence[TensorType],
    grid: int,
    warps: int,
    /,
    **options: Any,
) -> tuple[Value, ...]:
    config = (("grid", grid), ("warps", warps), *options.items())
    by_rows = [False] * (len(inputs) + len(results))
    return flat.custom_call(f"{TARGET}#{function.__name__}", inputs, results, config, (), by_rows)


@kernel
def norm(k, x, weight, bias, *others, width, block, eps, residual=False, biased=False):
    """The layer norm of a row, its mean and its variance. With a `residual` the row is the sum of two, which
    is stored too; the second may be `biased`, by a vector that is added to it first."""
    row, columns = k.program(), k.range(block)
    inside = None if block == width else columns < width
    places = columns + row * width
    values = k.load(x, places, inside)
    if residual:
        *addends, out, mean, variance, total = others
        addend = k.load(addends[0], places, inside)
        if biased:
            addend = k.rounded(addend + k.load(addends[1], columns, inside), total)
        values = k.rounded(values + addend, total)
        k.store(total, places, values, inside)
    else:
        out, mean, variance = others
    middle = k.sum(values) * (1 / width)
    centred = values - middle
    if inside is not None:
        centred = k.where(inside, centred, 0.0)
    spread = k.sum(centred * centred) * (1 / width)
    standard = centred * k.rsqrt(spread + eps)
    scaled = standard * k.load(weight, columns, inside) + k.load(bias, columns, inside)
    k.store(out, places, scaled, inside)
    k.store(mean, row, middle)
    k.store(variance, row, spread)


@kernel
def norm_gradient(
    k, to_out, x, mean, variance, weight, *others,
    width, block, rows, each, eps, residual=False, narrow=False,
):  # fmt: skip
    """The cotangents of `each` rows that a layer norm took; and what they add to three rows of sums: those of
    its weight, its bias, and the columns of the rounded copy that `narrow` asks for. With a `residual`
    another cotangent of the rows is added."""
    addend = others[0] if residual else None
    to_x, sums, *rounded = others[1:] if residual else others
    columns, program = k.range(block), k.program()
    inside = None if block == width else columns < width
    scale = k.load(weight, columns, inside)

    def loaded(row):
        there = row < rows
        filled = k.stretched(there, block) if inside is None else k.both(inside, there)
        places = columns + row * width
        cotangent, standard = k.load(to_out, places, filled), k.load(x, places, filled)
        further = None if addend is None else k.load(addend, places, filled)
        return (
            places,
            filled,
            cotangent,
            standard,
            further,
            k.load(mean, row, there),
            k.load(variance, row, there),
        )

    def body(i, weights, biases, *totals):
        # All are loaded before any is stored, so that they are on their way together.
        for places, filled, cotangent, row, further, middle, spread in [
            loaded(program * each + i * PAIR + turn) for turn in range(PAIR)
        ]:
            rstd = k.rsqrt(spread + eps)
            standard = (row - middle) * rstd
            if inside is not None:
                standard = k.where(inside, standard, 0.0)
            scaled = cotangent * scale
            along = k.sum(scaled * standard) * (1 / width)
            moved = rstd * (scaled - k.sum(scaled) * (1 / width) - standard * along)
            moved = moved if further is None else moved + further
            k.store(to_x, places, moved, filled)
            if narrow:
                k.store(rounded[0], places, moved, filled)
                totals = (totals[0] + k.where(filled, k.rounded(moved, rounded[0]), 0.0),)
            weights, biases = weights + cotangent * standard, biases + cotangent
        return weights, biases, *totals

    found = k.loop(each // PAIR, [k.full(0.0, block) for _ in range(3 if narrow else 2)], body)
    for part, total in enumerate(found):
        k.store(sums, columns + program * (3 * width) + part * width, total, inside)


def _strips(k, width, strip, body, carry):
    """`carry = body(places, masks, *carry)` for all columns, several strips at a time."""
    columns = k.range(strip)
    count = -(-width // (strip * UNROLLED))

    def turn(i, *carry):
        places = [columns + (i * (strip * UNROLLED) + number * strip) for number in range(UNROLLED)]
        return body(places, [place < width for place in places], *carry)

    return k.loop(count, carry, turn)


def _totals(k, x, start, width, strip):
    """The largest element of a row, and the logarithm of the sum of exponentials above it. Every lane keeps a
    largest element and a sum of its own until the end."""

    def body(places, masks, most, total):
        parts = [k.load(x, at + start, mask, float("-inf")) for at, mask in zip(places, masks, strict=True)]
        now = most
        for part in parts:
            now = k.maximum(now, part)
        finite = k.maximum(now, LOWEST)  # -inf less -inf is no number
        total = total * k.exp(most - finite)
        for part in parts:
            total = total + k.exp(part - finite)
        return now, total

    lanes, totals = _strips(k, width, strip, body, [k.full(float("-inf"), strip), k.full(0.0, strip)])
    most = k.max(lanes)
    return most, k.log(k.sum(totals * k.exp(lanes - k.maximum(most, LOWEST))))


def _store_chances(k, x, to_x, start, width, strip, chosen, shift, flow):
    """1 at the chosen column less the chances of all, times what flows back."""

    def body(places, masks):
        scores = [k.load(x, at + start, mask) for at, mask in zip(places, masks, strict=True)]
        for at, mask, score in zip(places, masks, scores, strict=True):
            chance = k.exp(score - shift)
            k.store(to_x, at + start, k.where(at == chosen, flow, 0.0) - chance * flow, mask)
        return ()

    _strips(k, width, strip, body, [])


@kernel
def likelihood(k, x, target, picked, largest, log_total, *, width):
    """log_softmax of a row at its target; the largest element, and the logarithm of the sum of exponentials
    above it."""
    row = k.program()
    start = row * width
    most, log = _totals(k, x, start, width, STRIP)
    chosen = k.load(x, start + k.to_int32(k.load(target, row)))
    k.store(picked, row, chosen - most - log)
    k.store(largest, row, most)
    k.store(log_total, row, log)


@kernel
def likelihood_gradient(k, x, target, largest, log_total, flows, to_x, *, width):
    """The cotangent of a row that `likelihood` took."""
    row = k.program()
    chosen, flow = k.to_int32(k.load(target, row)), k.load(flows, row)
    shift = k.load(largest, row) + k.load(log_total, row)
    _store_chances(k, x, to_x, row * width, width, STRIP, chosen, shift, flow)


@kernel
def likelihood_and_gradient(k, x, target, flows, picked, largest, log_total, to_x, *, width, strip):
    """What `likelihood` gives of a row, and the row's cotangent, which may lie where the row does. Few rows
    are under way together, so that each is still in the cache when it is read again."""
    row = k.program()
    start, chosen, flow = row * width, k.to_int32(k.load(target, row)), k.load(flows, row)
    score = k.load(x, start + chosen)  # before any thread may write there
    most, log = _totals(k, x, start, width, strip)
    k.store(picked, row, score - most - log)
    k.store(largest, row, most)
    k.store(log_total, row, log)
    _store_chances(k, x, to_x, start, width, strip, chosen, most + log, flow)


def _gelu(k, x):
    """gelu by tanh: x · sigmoid(2u), where u = √(2 / π) · (x + 0.044715 x³); and its derivative."""
    square = x * x
    inner = x * (square * (2 * ROOT * 0.044715) + 2 * ROOT)
    chance = k.full(1.0) / (k.exp(inner * -1.0) + 1.0)
    slope = square * (6 * ROOT * 0.044715) + 2 * ROOT
    return x * chance, lambda: chance + x * chance * (k.full(1.0) - chance) * slope


FUNCTIONS = {"gelu": _gelu}


@kernel
def pointwise(k, x, out, *, function, count):
    """An elementwise function."""
    first = k.program() * (STRIP * UNROLLED)
    strips = []
    for strip in range(UNROLLED):
        places = k.range(STRIP) + (first + strip * STRIP)
        mask = None if count % (STRIP * UNROLLED) == 0 else places < count
        strips.append((places, mask, k.load(x, places, mask)))
    for places, mask, argument in strips:
        k.store(out, places, FUNCTIONS[function](k, argument)[0], mask)


@kernel
def pointwise_gradient(k, to_out, x, to_x, *others, function, width, rows, each, sums=False):
    """The cotangents of `each` rows of an elementwise function's argument, along one strip; with `sums` also
    what they add to the sums of the columns, as they are stored."""
    program, strips = k.program(), -(-width // STRIP)
    group = k.quotient(program, strips)
    columns = k.range(STRIP) + (program - group * strips) * STRIP
    inside = None if width % STRIP == 0 else columns < width

    def loaded(row):
        there = row < rows
        filled = k.stretched(there, STRIP) if inside is None else k.both(inside, there)
        places = columns + row * width
        return places, filled, k.load(x, places, filled), k.load(to_out, places, filled)

    def body(i, total):
        first = group * each + i * UNROLLED
        for places, filled, argument, cotangent in [loaded(first + turn) for turn in range(UNROLLED)]:
            cotangent = cotangent * FUNCTIONS[function](k, argument)[1]()
            k.store(to_x, places, cotangent, filled)
            if sums:
                total = total + k.rounded(cotangent, to_x)
        return (total,)

    (total,) = k.loop(each // UNROLLED, [k.full(0.0, STRIP)], body)
    if sums:
        k.store(others[0], columns + group * width, total, inside)


# The calls, which take and give float32; what surrounds them is absorbed later


def _fits(x: Value, width: int) -> bool:
    return x.dtype is dtypes.float32 and 0 < x.numel < LIMIT and width > 0


def fits_norm(x: Value, width: int) -> bool:
    return _fits(x, width) and width <= WIDEST


def call_norm(x: Value, weight: Value, bias: Value, width: int, eps: float) -> tuple[Value, Value, Value]:
    rows, block = x.numel // width, block_of(width)
    warps = max(1, min(16, block // 1024))  # few: a row's sums wait for all of them
    number = TensorType(dtypes.float32, (rows,))
    out, mean, variance = call(
        norm, [x, weight, bias], [x.type, number, number], rows, warps,
        width=width, block=block, eps=float(eps),
    )  # fmt: skip
    return out, mean, variance


def call_norm_gradient(
    to_out: Value, x: Value, mean: Value, variance: Value, weight: Value, width: int, eps: float
) -> tuple[Value, Value, Value]:
    rows, block = x.numel // width, block_of(width)
    each = -(-rows // (PROGRAMS * PAIR)) * PAIR
    grid = -(-rows // each)
    to_x, sums = call(
        norm_gradient, [to_out, x, mean, variance, weight],
        [x.type, TensorType(dtypes.float32, (grid, 3 * width))], grid, warps_of(block),
        width=width, block=block, rows=rows, each=each, eps=float(eps),
    )  # fmt: skip
    return to_x, column_sum(sums, 0, width), column_sum(sums, 1, width)


def column_sum(sums: Value, part: int, width: int) -> Value:
    """A part of the sums that programs have added up."""
    return flat.slice(flat.sum(sums, (0,)), (part * width,), ((part + 1) * width,))


def fits_pointwise(x: Value) -> bool:
    return x.dtype.itemsize == 2 and SMALLEST <= x.numel < LIMIT and x.rank > 0


def call_pointwise(function: str, x: Value) -> Value:
    grid = -(-x.numel // (STRIP * UNROLLED))
    wide = flat.convert(x, dtypes.float32)
    found = call(pointwise, [wide], [wide.type], grid, 8, function=function, count=x.numel)[0]
    return flat.convert(found, x.dtype)


def call_pointwise_gradient(function: str, cotangent: Value, x: Value) -> Value:
    width = x.shape[-1]
    rows = x.numel // width
    each = max(1, -(-rows // (GROUPS * UNROLLED))) * UNROLLED
    grid = -(-rows // each) * -(-width // STRIP)
    inputs = [flat.convert(cotangent, dtypes.float32), flat.convert(x, dtypes.float32)]
    found = call(
        pointwise_gradient, inputs, [inputs[0].type], grid, 8,
        function=function, width=width, rows=rows, each=each,
    )[0]  # fmt: skip
    return flat.convert(found, x.dtype)


def fits_likelihood(x: Value, dim: int) -> bool:
    return _fits(x, x.shape[dim]) and dim == x.rank - 1 and x.shape[dim] > STRIP


def call_likelihood(x: Value, target: Value) -> tuple[Value, Value, Value]:
    number = TensorType(dtypes.float32, target.shape)
    width = x.shape[-1]
    picked, largest, log_total = call(
        likelihood, [x, target], [number] * 3, x.numel // width, warps_of(STRIP), width=width
    )
    return picked, largest, log_total


def call_likelihood_gradient(
    x: Value, target: Value, largest: Value, log_total: Value, flows: Value
) -> Value:
    width = x.shape[-1]
    inputs = [x, target, largest, log_total, flows]
    rows = x.numel // width
    return call(likelihood_gradient, inputs, [x.type], rows, warps_of(STRIP), width=width)[0]
