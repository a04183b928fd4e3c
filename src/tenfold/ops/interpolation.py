"""How one dimension is resampled: which elements each result reads, and with what weights.

Both depend on extents alone, so they are computed here, once, by PyTorch's arithmetic: its indices come from
float32 unless the tensor is float64. The rows are in `resampling.py`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from tenfold import flat
from tenfold.base import dtypes
from tenfold.base.dtypes import DType
from tenfold.flat import Value


class Taps(NamedTuple):
    """The places that each result reads, one row for each, and the weights there; None where all are one."""

    places: np.ndarray
    weights: np.ndarray | None

    def turned(self, extent: int) -> Taps:
        """For each of `extent` elements the results that read it, and with what weights; none is -1."""
        count, width = self.places.shape
        weights = np.ones(self.places.shape) if self.weights is None else self.weights
        readers: list[list[tuple[int, float]]] = [[] for _ in range(extent)]
        for row in range(count):
            for column in range(width):
                place = int(self.places[row, column])
                if place >= 0:
                    readers[place].append((row, weights[row, column]))
        most = max(map(len, readers), default=0)
        places, turned = np.full((extent, max(most, 1)), -1), np.zeros((extent, max(most, 1)), weights.dtype)
        for i, found in enumerate(readers):
            for j, (row, weight) in enumerate(found):
                places[i, j], turned[i, j] = row, weight
        return Taps(places, turned if self.weights is not None else None)


def in_whole_numbers(taps: Taps) -> tuple[Taps, int]:
    """The taps with integers for weights, and of how many bits their fractions are: as PyTorch weighs bytes,
    the largest weight has 15 bits."""
    assert taps.weights is not None
    places, weights = taps.places, taps.weights.astype(np.float64)
    for later in range(1, places.shape[1]):  # an edge that is read twice is weighed once
        for column in range(later):
            same = places[:, column] == places[:, later]
            weights[same, column] += weights[same, later]
            weights[same, later] = 0
    bits = next(n for n in range(23) if n == 22 or int(0.5 + weights.max() * 2 ** (n + 1)) >= 2**15)
    return Taps(places, (weights * 2**bits + np.copysign(0.5, weights)).astype(np.int32)), bits


def _of_resample(cotangent, result, x, dim, taps):
    return (resample(cotangent, dim, taps.turned(x.shape[dim])),)


@flat.differentiated(_of_resample)
def resample(x, dim, taps):
    """Weighted sums of the elements of x along a dimension."""
    places, weights = taps
    width = places.shape[1]
    if width == 1 and weights is None and (places >= 0).all():
        return _taken(x, dim, places[:, 0])
    if width <= 4:
        total = None
        for column in range(width):
            weight = None if weights is None else weights[:, column]
            part = _weighted(x, dim, places[:, column], weight)
            total = part if total is None else total + part
        return total
    return flat.sum(_weighted(x, dim, places, weights), (dim + 1,))


def _weighted(x: Value, dim: int, places: np.ndarray, weights: np.ndarray | None) -> Value:
    """The elements at these places times their weights, zero where a place is -1."""
    shape = (*places.shape, *(1 for _ in x.shape[dim + 1 :]))
    part = _taken(x, dim, np.maximum(places, 0))
    if weights is not None:
        part = part * flat.reshape(flat.constant(weights, x.dtype), shape)
    if (places < 0).any():
        part = flat.where(flat.reshape(flat.constant(places >= 0, dtypes.bool_), shape), part, 0)
    return part


def _taken(x: Value, dim: int, places: np.ndarray) -> Value:
    extent, count = x.shape[dim], places.shape[0]
    if places.ndim == 1 and count % extent == 0 and (places == np.arange(count) // (count // extent)).all():
        wide = (*x.shape[: dim + 1], count // extent, *x.shape[dim + 1 :])
        repeated = flat.broadcast_to(flat.unsqueeze(x, dim + 1), wide)
        return flat.reshape(repeated, (*x.shape[:dim], count, *x.shape[dim + 1 :]))
    return flat.take(x, flat.constant(places, dtypes.int32), dim)


# Which elements, and which weights


def nearest(extent: int, count: int, scale: float | None, half: float) -> Taps:
    """The element at each result's place, or with `half` at its centre, scaled down."""
    places = np.arange(count)
    if count == 2 * extent:
        return Taps((places >> 1)[:, None], None)
    if count != extent:
        step = np.float32(1.0 / scale) if scale else np.float32(extent) / np.float32(count)
        found = np.floor((places.astype(np.float32) + np.float32(half)) * step).astype(np.int64)
        places = np.minimum(found, extent - 1)
    return Taps(places[:, None], None)


def step_between(extent: int, count: int, align_corners: bool, scale: float | None, real: Any) -> Any:
    """How far apart in the input neighbouring results lie."""
    if align_corners:
        return real(extent - 1) / real(count - 1) if count > 1 else real(0)
    return real(1.0 / scale) if scale else real(extent) / real(count)


def centres(extent: int, count: int, align_corners: bool, scale: float | None, real: Any) -> np.ndarray:
    """Where in the input each result lies."""
    step = step_between(extent, count, align_corners, scale, real)
    places = np.arange(count).astype(real)
    if align_corners:
        return places * step
    # PyTorch multiplies and subtracts with one rounding: float64 holds a product of float32 numbers whole.
    return (np.float64(step) * (places + real(0.5)).astype(np.float64) - 0.5).astype(real)


def linear(extent: int, count: int, align_corners: bool, scale: float | None, real: Any) -> Taps:
    """The two elements around each result."""
    if count == extent:
        return Taps(np.arange(count)[:, None], None)
    at = np.maximum(centres(extent, count, align_corners, scale, real), real(0))
    low = np.minimum(np.floor(at).astype(np.int64), extent - 1)
    share = np.clip(at - low.astype(real), real(0), real(1))
    high = np.minimum(low + 1, extent - 1)
    return Taps(np.stack([low, high], 1), np.stack([real(1) - share, share], 1))


def cubic(extent: int, count: int, align_corners: bool, scale: float | None, real: Any) -> Taps:
    """The four elements around each result, the edges repeated."""
    at = centres(extent, count, align_corners, scale, real)
    low = np.minimum(np.floor(at).astype(np.int64), extent - 1)
    share = np.clip(at - low.astype(real), real(0), real(1))
    places = np.clip(low[:, None] + np.arange(-1, 3), 0, extent - 1)
    distances = np.stack([share + 1, share, 1 - share, 2 - share], 1)
    return Taps(places, _keys(distances, real(-0.75)).astype(real))


def _keys(x: np.ndarray, a: Any) -> np.ndarray:
    """Keys' cubic kernel."""
    x = np.abs(x)
    inner = ((a + 2) * x - (a + 3)) * x * x + 1
    outer = ((x - 5) * x + 8) * x * a - 4 * a
    return np.where(x < 1, inner, np.where(x < 2, outer, 0))


def _triangle(x: np.ndarray) -> np.ndarray:
    return np.maximum(1 - np.abs(x), 0)


def _lanczos(x: np.ndarray) -> np.ndarray:
    return np.where(np.abs(x) < 3, np.sinc(x) * np.sinc(x / 3), 0)


# A kernel that widens with the step between results, and the extent on which it is not zero.
KERNELS: dict[str, tuple[Callable[[np.ndarray], np.ndarray], int]] = {
    "bilinear": (_triangle, 2),
    "bicubic": (lambda x: _keys(x, -0.5), 4),
    "lanczos": (_lanczos, 6),
}


def smooth(name: str, extent: int, count: int, align_corners: bool, scale: float | None, real: Any) -> Taps:
    """All elements under a kernel as wide as the step between results, so that none is skipped."""
    kernel, size = KERNELS[name]
    step = step_between(extent, count, align_corners, scale, real)
    widened = max(step, real(1))
    support = real(size * 0.5) * widened
    width = math.ceil(support) * 2 + 1
    centre = step * (np.arange(count).astype(real) + real(0.5))
    low = np.maximum((centre - support + real(0.5)).astype(np.int64), 0)
    sizes = np.clip(np.minimum((centre + support + real(0.5)).astype(np.int64), extent) - low, 0, width)
    offsets = np.arange(int(sizes.max()))
    inside = offsets < sizes[:, None]
    weights = kernel((offsets + low[:, None] - centre[:, None] + real(0.5)) / widened)
    weights = np.where(inside, weights, 0)
    total = weights.sum(1, keepdims=True)
    weights = np.divide(weights, total, out=weights, where=total != 0)
    return Taps(np.where(inside, low[:, None] + offsets, -1), weights.astype(real))


def real_of(dtype: DType) -> Any:
    """The type in which PyTorch computes places and weights for a tensor of this dtype."""
    return np.float64 if dtype in (dtypes.float64, dtypes.uint8) else np.float32
