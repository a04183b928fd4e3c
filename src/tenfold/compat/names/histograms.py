"""Histograms of samples of several dimensions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from tenfold.base import dtypes
from tenfold.base.errors import ArgumentError, ShapeError, located
from tenfold.tensor import Tensor
from tenfold.tensor.dispatch import aten


class Histogram(NamedTuple):
    """How many samples are in each bin, and for each dimension where its bins begin and end."""

    hist: Tensor
    bin_edges: tuple[Tensor, ...]


@located
def histogramdd(
    input: Tensor,
    bins: Any,
    range: Sequence[float] | None = None,
    weight: Tensor | None = None,
    density: bool = False,
) -> Histogram:
    """Count samples, the rows of the last dimension, in bins of each of their dimensions.

    `bins` is a number of bins, one number for each dimension, or the edges for each; `range` has the lowest
    and the highest edge for each dimension, else those of the samples are taken.
    """
    if not isinstance(input, Tensor) or input.ndim < 2 or not input.is_floating_point():
        raise ShapeError("takes samples of several dimensions: a float Tensor of two dimensions or more")
    count = input.shape[-1]
    samples = input.reshape(-1, count)
    given = [bins] * count if isinstance(bins, int) else list(bins)
    if len(given) != count or (range is not None and len(range) != 2 * count):
        raise ArgumentError(f"samples of {count} dimensions need bins for each, and a range of {2 * count}")
    edges = [
        each if isinstance(each, Tensor) else _even(samples[:, d], each, range and range[2 * d : 2 * d + 2])
        for d, each in enumerate(given)
    ]
    place = aten("zeros")((samples.shape[0],), dtype=dtypes.int64, device=input.device)
    inside = aten("ones")((samples.shape[0],), dtype=dtypes.bool_, device=input.device)
    sizes = [edge.shape[0] - 1 for edge in edges]
    for d, (edge, size) in enumerate(zip(edges, sizes, strict=True)):
        column = samples[:, d].contiguous()
        at = aten("searchsorted")(edge, column, right=True) - 1
        at = aten("where")(column == edge[-1], size - 1, at)  # the last bin has both of its edges
        inside = inside & (column >= edge[0]) & (column <= edge[-1])
        place = place * size + at.clamp(0, size - 1)
    amounts = aten("ones_like")(samples[:, 0]) if weight is None else weight.reshape(-1).to(samples.dtype)
    amounts = aten("where")(inside, amounts, 0.0)
    flat = aten("zeros")((math.prod(sizes),), dtype=samples.dtype, device=input.device)
    hist = flat.index_add(0, place, amounts).reshape(sizes)
    if density:
        hist = hist / hist.sum()
        for d, edge in enumerate(edges):
            widths = edge[1:] - edge[:-1]
            hist = hist / widths.reshape([-1 if i == d else 1 for i, _ in enumerate(edges)])
    return Histogram(hist, tuple(edges))


def _even(column: Tensor, bins: Any, ends: Sequence[float] | None) -> Tensor:
    """Edges at even distances between two ends."""
    if not isinstance(bins, int) or bins < 1:
        raise ArgumentError(f"a number of bins is a positive int, not {bins!r}")
    if ends is not None:
        low, high = [aten("full")((), float(end), dtype=column.dtype, device=column.device) for end in ends]
    elif not column.numel():
        low, high = [aten("full")((), end, dtype=column.dtype, device=column.device) for end in (0.0, 1.0)]
    else:
        low, high = column.min(), column.max()
    same = low == high
    low, high = aten("where")(same, low - 0.5, low), aten("where")(same, high + 0.5, high)
    steps = aten("arange")(bins + 1, dtype=column.dtype, device=column.device) / bins
    return aten("where")(steps == 1, high, low + (high - low) * steps)
