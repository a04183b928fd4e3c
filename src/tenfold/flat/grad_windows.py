"""Gradient rules of ops that slide a window, but for convolution, which is among the products."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tenfold.base import dtypes
from tenfold.base.errors import UnsupportedError
from tenfold.flat import build as b, data_builders as mv, data_ops as m, folding as f
from tenfold.flat.build import constant, eq, full_like, where
from tenfold.flat.data_ops import Ints
from tenfold.flat.grad_folds import Cotangents, scattered, total
from tenfold.flat.indexed import GatherDimensions, ScatterDimensions
from tenfold.flat.ir import Function, TensorType, Value
from tenfold.flat.windows import Pairs, ReduceWindow, SelectAndScatter, dilated


def reduce_window(cts: Cotangents, op: ReduceWindow) -> list[Any]:
    ct, kind = cts[0], op.body.name
    if len(op.inputs) > 1 or kind not in ("add", "max", "min"):
        raise UnsupportedError(
            "windows folded by a function of its own have no gradient", help="detach the argument"
        )
    assert ct is not None
    if kind == "add":
        return [lambda: _sums(ct, op), lambda: _start(ct, op)]
    return [lambda: _extremes(ct, op), lambda: _refuse_start(kind)]


def _refuse_start(kind: str) -> Value:
    raise UnsupportedError(f"the start of {kind} windows has no gradient", help="make it a constant")


def _sums(ct: Value, op: ReduceWindow) -> Value:
    """To each element the cotangents of the windows that it is in: again sums of windows."""
    (x,) = op.inputs
    if not x.numel or not ct.numel:
        return full_like(x, 0)
    low, high = [], []
    for extent, base, window, spacing, stride, count, (before, _) in zip(
        x.shape,
        op.base_dilations,
        op.window_dimensions,
        op.window_dilations,
        op.window_strides,
        ct.shape,
        op.padding,
    ):
        reach = (window - 1) * spacing
        low.append(reach - before)
        high.append(dilated(extent, base) + reach - low[-1] - dilated(count, stride))
    apart = mv.pad(ct, low, high, 0, [stride - 1 for stride in op.window_strides])
    sums = f.reduce_window(apart, "add", op.window_dimensions, dilation=op.window_dilations)
    return mv.slice(sums, [0] * x.rank, sums.shape, op.base_dilations)


def _start(ct: Value, op: ReduceWindow) -> Value:
    """The start is in each window once, and once more for each place of it that lies in the padding."""
    zeros = full_like(op.inputs[0], 0)
    settings = (op.window_dimensions, op.window_strides, op.base_dilations, op.window_dilations, op.padding)
    counts = ReduceWindow((zeros,), (constant(1, ct.dtype),), *settings, op.body).result
    return total(ct * counts, range(ct.rank))


def _extremes(ct: Value, op: ReduceWindow) -> Value:
    """To the first extreme element of each window, as PyTorch's pools do."""
    (x,), further = op.inputs, b.ge if op.body.name == "max" else b.le
    if not x.numel or not ct.numel:
        return full_like(x, 0)
    plain = all(dilation == 1 for dilation in (*op.base_dilations, *op.window_dilations))
    if plain and all(w <= s for w, s in zip(op.window_dimensions, op.window_strides)):
        return _apart(ct, op)
    select = f.function(lambda kept, new: further(kept, new) | b.isnan(kept), [TensorType(x.dtype, ())] * 2)
    if plain:
        scatter = f.monoid("add", x.dtype)
        sizes, zero = (op.window_dimensions, op.window_strides, op.padding), constant(0, x.dtype)
        return SelectAndScatter(x, ct, zero, *sizes, select, scatter).result
    settings = (op.window_dimensions, op.window_strides, op.base_dilations, op.window_dilations, op.padding)
    places = mv.reshape(winners(x, select, *settings), (ct.numel, 1))
    # A window that lies in the padding has no winner: its place, -1, is outside and left out.
    line = b.full((x.numel,), 0, x.dtype)
    numbers = ScatterDimensions((), (0,), (0,), 1)
    return mv.reshape(scattered(line, places, mv.reshape(ct, (ct.numel,)), numbers), x.shape)


def _apart(ct: Value, op: ReduceWindow) -> Value:
    """Windows that do not overlap: compare each element with its window's result, and take the first."""
    (x,), counts, windows, strides = op.inputs, ct.shape, op.window_dimensions, op.window_strides
    low = [before for before, _ in op.padding]
    high = [n * s - before - extent for n, s, before, extent in zip(counts, strides, low, x.shape)]
    filled = mv.pad(x, low, high, op.inits[0])
    blocks = mv.reshape(filled, [amount for pair in zip(counts, strides) for amount in pair])
    inner = tuple(range(1, 2 * x.rank, 2))
    limits = [n for pair in zip(counts, windows) for n in pair]
    blocks = mv.slice(blocks, [0] * blocks.rank, limits)
    outer = tuple(range(0, 2 * x.rank, 2))
    result = m.BroadcastInDim(op.result, blocks.shape, outer).result
    extreme = eq(blocks, result) | b.isnan(blocks)
    place = mv.reshape(b.iota((_count(windows),), 0, dtypes.int32), windows)
    place = m.BroadcastInDim(place, blocks.shape, inner).result
    first = f.reduce(where(extreme, place, _count(windows)), "min", inner)
    chosen = eq(place, m.BroadcastInDim(first, blocks.shape, outer).result)
    back = where(chosen, m.BroadcastInDim(ct, blocks.shape, outer).result, 0)
    rest = [n for s, w in zip(strides, windows) for n in (0, s - w)]
    back = mv.reshape(mv.pad(back, [0] * back.rank, rest), filled.shape)
    return mv.pad(back, [-each for each in low], [-each for each in high])


def _count(extents: Sequence[int]) -> int:
    count = 1
    for extent in extents:
        count *= extent
    return count


def winners(
    x: Value, select: Function, window: Ints, strides: Ints, base: Ints, spacing: Ints, padding: Pairs
) -> Value:
    """The place in x, counted through all dimensions, of the element that `select` prefers in each window;
    -1 for a window that holds none."""
    places = mv.reshape(b.iota((x.numel,), 0, dtypes.int64), x.shape)

    def body(kept: Value, at: Value, new: Value, new_at: Value) -> tuple[Value, Value]:
        (preferred,) = select.inline([kept, new])
        stays = (at >= 0) & (preferred | (new_at < 0))
        return where(stays, kept, new), where(stays, at, new_at)

    inits = constant(0, x.dtype), constant(-1, dtypes.int64)
    scalars = [init.type for init in inits]
    fold = f.function(body, scalars * 2)
    return ReduceWindow((x, places), inits, window, strides, base, spacing, padding, fold).results[1]


def select_and_scatter(ct: Value, op: SelectAndScatter) -> tuple[Any, ...]:
    """Linear in its source: each element reads the cotangent of the place where it went."""
    if op.scatter.name != "add":
        raise UnsupportedError(
            "select_and_scatter has a gradient only where it adds", help="detach its arguments"
        )

    def by_source() -> Value:
        if not op.source_.numel:
            return full_like(op.source_, 0)
        ones = (1,) * op.x.rank
        settings = (op.window_dimensions, op.window_strides, ones, ones, op.padding)
        places = mv.unsqueeze(winners(op.x, op.select, *settings), op.x.rank)
        line = mv.reshape(ct, (ct.numel,))
        read = mv.gather(line, places, GatherDimensions((), (0,), (0,), op.x.rank), (1,))
        return where(mv.squeeze(places, op.x.rank) >= 0, read, 0)

    return None, by_source, lambda: total(ct, range(ct.rank))
