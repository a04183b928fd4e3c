"""Expansions that read or write elements at computed places: strides, classes, pools, patches, and images
that are resampled.

Rows name these functions in `torch_dialect`, as they do those of `expansion_steps.py`. Places are computed by
ops, from `arange`, since an expansion has no literals.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

from tenfold.base.dtypes import DType, float32, float64, int64, uint8
from tenfold.exporting.expansion_parts import reduced, widened
from tenfold.flat.strides import contiguous
from tenfold.tensor import Tensor
from tenfold.tensor.dispatch import aten


def _count(number: int, like: Tensor, dtype: DType = int64) -> Tensor:
    """0, 1, … up to a number."""
    return aten("arange")(number, dtype=dtype, device=like.device)


def _along(x: Tensor, dim: int, rank: int) -> Tensor:
    """A vector in the given one of several dimensions."""
    return x.view([-1 if i == dim else 1 for i in range(rank)])


# Memory by strides


def _addresses(self: Tensor, size: Sequence[int], stride: Sequence[int], offset: int) -> Tensor:
    """Where each element lies in the memory."""
    places = aten("full")((), offset, dtype=int64, device=self.device)
    for dim, (extent, step) in enumerate(zip(size, stride, strict=True)):
        places = places + _along(_count(extent, self) * step, dim, len(size))
    return places.expand(size)


def gathered_by_strides(
    self: Tensor, size: Sequence[int], stride: Sequence[int], storage_offset: int | None = None
) -> list[Tensor]:
    line, offset = self.reshape(-1), storage_offset or 0
    if 0 in size:
        return [self.new_zeros(size)]
    if tuple(stride) == contiguous(size):
        return [line.narrow(0, offset, math.prod(size)).view(size)]
    return [aten("index")(line, [_addresses(self, size, stride, offset)])]


def scattered_by_strides(
    self: Tensor, src: Tensor, size: Sequence[int], stride: Sequence[int], storage_offset: int | None
) -> list[Tensor]:
    """A tensor with `src` written to the places in its memory that a size and strides name."""
    if 0 in size:
        return [self]
    line, offset = self.reshape(-1), storage_offset or 0
    if tuple(stride) == contiguous(size):
        end = offset + math.prod(size)
        whole = aten("slice_scatter")(line, src.expand(size).reshape(-1), 0, offset, end)
        return [whole.view(self.shape)]
    places = _addresses(self, size, stride, offset).reshape(-1)
    return [aten("index_put")(line, [places], src.expand(size).reshape(-1)).view(self.shape)]


def scattered_on_diagonal(self: Tensor, src: Tensor, offset: int, dim1: int, dim2: int) -> list[Tensor]:
    places = _count(math.prod(self.shape), self).view(self.shape).diagonal(offset, dim1, dim2)
    if 0 in places.shape:
        return [self]
    written = [self.reshape(-1), [places.reshape(-1)], src.expand(places.shape).reshape(-1)]
    return [aten("index_put")(*written).view(self.shape)]


# Losses of classes


def likelihood_by_gather(
    self: Tensor, target: Tensor, weight: Tensor | None, reduction: int, ignore_index: int
) -> list[Tensor]:
    """The loss, and the weight it is divided by."""
    dim = 1 if self.ndim > 1 else 0
    x = widened(self)
    if not dim:
        target = target.reshape(())
    counts = target != ignore_index
    places = aten("where")(counts, target, 0).to(int64)
    if weight is None or not self.shape[dim]:
        weights = counts.to(x.dtype)
    else:
        chosen = widened(weight).index_select(0, places.reshape(-1)).view(places.shape)
        weights = aten("where")(counts, chosen, 0)
    total, loss = weights.sum(), x.new_zeros(target.shape)
    if math.prod(self.shape):
        loss = aten("where")(counts, -x.gather(dim, places.unsqueeze(dim)).squeeze(dim) * weights, 0)
    if reduction == 0:
        found = [loss, total if not dim else aten("zeros_like")(total)]
    else:
        found = [loss.sum() / total if reduction == 1 else loss.sum(), total]
    return [each.to(self.dtype) for each in found]


def entropy_by_gather(
    self: Tensor, target: Tensor, weight: Tensor | None, reduction: int, ignore_index: int,
    label_smoothing: Any,
) -> list[Tensor]:  # fmt: skip
    """The cross entropy of scores, by classes or by the chances of each class."""
    dim = 1 if self.ndim > 1 else 0
    classes = self.shape[dim]
    logs = widened(self).log_softmax(dim)
    by_class = 1 if weight is None else _along(widened(weight), dim, self.ndim)
    if target.shape == self.shape:
        chances = target.to(logs.dtype) * (1 - label_smoothing) + label_smoothing / classes
        return [reduced(-(logs * chances * by_class).sum(dim), reduction).to(self.dtype)]
    wide = None if weight is None else widened(weight)
    exact, _ = likelihood_by_gather(logs, target, wide, reduction, ignore_index)
    if isinstance(label_smoothing, (int, float)) and label_smoothing <= 0:
        return [exact.to(self.dtype)]
    counts = (target if dim else target.reshape(())) != ignore_index
    smooth = aten("where")(counts, -(logs * by_class).sum(dim), 0)
    if reduction == 1:
        smooth = smooth.sum() / likelihood_by_gather(logs, target, wide, 2, ignore_index)[1]
    else:
        smooth = reduced(smooth, reduction)
    loss = exact * (1 - label_smoothing) + smooth * (label_smoothing / max(classes, 1))
    return [loss.to(self.dtype)]


# Pools


def in_a_batch(pool: Callable[..., Any], dims: int, self: Tensor, *settings: Any) -> list[Tensor]:
    """A pool over images in a batch of one, if they are in no batch: torch-mlir demands one."""
    alone = self.ndim == dims + 1
    found = pool(self.unsqueeze(0) if alone else self, *settings)
    results = [found] if isinstance(found, Tensor) else list(found)
    return [result.squeeze(0) for result in results] if alone else results


def _evenly(self: Tensor, counts: Sequence[int]) -> bool:
    """Whether windows divide an image into parts of one size; torch-mlir knows no others."""
    return 0 not in counts and not any(n % count for n, count in zip(self.shape[-len(counts) :], counts))


def _windows(extent: int, count: int, like: Tensor) -> tuple[Tensor, Tensor]:
    """Where the windows over one dimension have their elements, and where each ends. Shorter windows meet
    their last element again."""
    longest = max(-(-(i + 1) * extent // count) - i * extent // count for i in range(count))
    each = _count(count, like)
    starts = aten("floor_divide")(each * extent, count)
    ends = aten("floor_divide")((each + 1) * extent + (count - 1), count)
    places = starts.unsqueeze(1) + _count(longest, like)
    return places, ends.unsqueeze(1)


def adaptive_mean(pool: Callable[..., Any], self: Tensor, output_size: Sequence[int]) -> list[Tensor]:
    """Means over windows that divide an image as evenly as can be, one dimension after the other."""
    dims = len(output_size)
    if _evenly(self, output_size) or not math.prod(self.shape) or 0 in output_size:
        return in_a_batch(pool, dims, self, output_size)
    x = widened(self)
    for dim, count in enumerate(output_size, self.ndim - dims):
        extent = x.shape[dim]
        places, ends = _windows(extent, count, self)
        shape = [*x.shape[:dim], *places.shape, *x.shape[dim + 1 :]]
        parts = x.index_select(dim, places.clamp(max=extent - 1).reshape(-1)).view(shape)
        along = [1] * dim + list(places.shape) + [1] * (x.ndim - dim - 1)
        inside = places < ends
        lengths = inside.sum(1).to(x.dtype).view(along[: dim + 1] + along[dim + 2 :])
        x = aten("where")(inside.view(along), parts, 0).sum(dim + 1) / lengths
    return [x.to(self.dtype)]


def adaptive_largest(pool: Callable[..., Any], self: Tensor, output_size: Sequence[int]) -> list[Tensor]:
    """The largest elements of such windows, and where in the image they are."""
    dims = len(output_size)
    if _evenly(self, output_size) or not math.prod(self.shape) or 0 in output_size:
        return in_a_batch(pool, dims, self, output_size)
    image = self.shape[-dims:]
    table = aten("zeros")((), dtype=int64, device=self.device)
    widths = []
    for dim, (extent, count) in enumerate(zip(image, output_size)):
        places, ends = _windows(extent, count, self)
        along = [1] * (2 * dims)
        along[dim], along[dims + dim] = places.shape
        widths.append(places.shape[1])
        step = math.prod(image[dim + 1 :])
        table = table + aten("minimum")(places, ends - 1).view(along) * step
    table = table.reshape(math.prod(output_size), math.prod(widths))
    before = list(self.shape[:-dims])
    parts = self.reshape([*before, math.prod(image)]).index_select(-1, table.reshape(-1))
    best, at = parts.view([*before, *table.shape]).max(-1)
    spread = table.expand([*before, *table.shape])
    place = spread.gather(-1, at.unsqueeze(-1)).squeeze(-1)
    return [each.view([*before, *output_size]) for each in (best, place)]


# Patches


def columns_by_slices(
    self: Tensor, kernel_size: Sequence[int], dilation: Sequence[int], padding: Sequence[int],
    stride: Sequence[int],
) -> list[Tensor]:  # fmt: skip
    """The patches of an image as columns: a slice of it for each place in the kernel, stacked."""
    (top, left), dims = padding, range(self.ndim - 2, self.ndim)
    x = aten("constant_pad_nd")(self, [left, left, top, top])
    counts = [
        (x.shape[dim] - d * (k - 1) - 1) // s + 1 for dim, d, k, s in zip(dims, dilation, kernel_size, stride)
    ]
    taps = []
    for tap in itertools.product(*map(range, kernel_size)):
        part = x
        for dim, i, d, s, count in zip(dims, tap, dilation, stride, counts):
            part = aten("slice")(part, dim, i * d, i * d + (count - 1) * s + 1, s)
        taps.append(part)
    before, channels = self.shape[:-3], self.shape[-3]
    stacked = aten("stack")(taps, self.ndim - 2)
    return [stacked.reshape([*before, channels * len(taps), math.prod(counts)])]


# Images


def _weighed(x: Tensor, dim: int, count: int, align: bool, scale: float | None) -> Tensor:
    """x with a dimension resampled to so many elements, each of the two around its place."""
    extent, real = x.shape[dim], float64 if x.dtype is float64 else float32
    if extent == count:
        return x
    places = _count(count, x, real)
    if align:
        at = places * ((extent - 1) / (count - 1) if count > 1 else 0.0)
    else:
        at = (places + 0.5) * (1 / scale if scale else extent / count) - 0.5
    at = at.clamp(min=0)
    low = at.to(int64).clamp(max=extent - 1)
    share = _along((at - low.to(real)).clamp(0, 1), dim, x.ndim).to(x.dtype)
    first, second = x.index_select(dim, low), x.index_select(dim, (low + 1).clamp(max=extent - 1))
    return first * (1 - share) + second * share


def resampled(
    resample: Callable[..., Tensor],
    self: Tensor,
    output_size: Sequence[int],
    align: bool,
    *scales: float | None,
) -> list[Tensor]:
    """Linearly; images of bytes, which are rounded in between, by the op itself."""
    if self.dtype is uint8:
        return [resample(self, output_size, align, *scales)]
    x = widened(self)
    for i, (count, scale) in enumerate(zip(output_size, scales)):
        x = _weighed(x, i + 2, count, align, scale)
    return [x.to(self.dtype)]


def resampled_by_factor(
    resample: Callable[..., Tensor], input: Tensor, output_size: Sequence[int] | None, align: bool,
    scale_factors: Sequence[float] | None,
) -> list[Tensor]:  # fmt: skip
    image = input.shape[2:]
    if scale_factors is None:
        return resampled(resample, input, output_size or (), align, *[None] * len(image))
    size = [int(n * factor) for n, factor in zip(image, scale_factors)]
    return resampled(resample, input, size, align, *scale_factors)
