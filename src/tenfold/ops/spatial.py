"""What rows over spatial dimensions share: numbers given for each dimension, and the windows of a pool."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tenfold.base.errors import ArgumentError, ShapeError
from tenfold.flat import Value

Ints = tuple[int, ...]


def each(numbers: Sequence[int], dims: int, what: str, least: int) -> Ints:
    """One number for each spatial dimension, where a single one stands for all."""
    found = tuple(numbers) * (dims if len(numbers) == 1 else 1)
    if len(found) != dims:
        raise ArgumentError(f"{what} has {len(found)} numbers for {dims} spatial dimensions")
    if min(found) < least:
        raise ArgumentError(f"{what} {list(found)} must be at least {least}")
    return found


class Pool(NamedTuple):
    """The windows of a pool over the last dimensions, and how many there are along each."""

    kernel: Ints
    stride: Ints
    padding: Ints
    dilation: Ints
    counts: Ints

    def overhang(self, shape: Ints) -> Ints:
        """How far to pad the end of each dimension: as its start, or farther where windows reach farther."""
        last = [(n - 1) * s - p for n, s, p in zip(self.counts, self.stride, self.padding, strict=True)]
        ends = [start + (k - 1) * d + 1 for start, k, d in zip(last, self.kernel, self.dilation, strict=True)]
        return tuple([max(end - extent, p) for end, extent, p in zip(ends, shape, self.padding, strict=True)])


def pool(
    x: Value,
    dims: int,
    kernel: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    ceil_mode: bool,
) -> Pool:
    """The windows over the last dimensions of x, checked; no stride means the kernel's extent."""
    kernel = each(kernel, dims, "kernel_size", 1)
    stride = each(stride, dims, "stride", 1) if stride else kernel
    padding, dilation = each(padding, dims, "padding", 0), each(dilation, dims, "dilation", 1)
    image(x, dims)
    for k, p, d in zip(kernel, padding, dilation, strict=True):
        if 2 * p > (k - 1) * d + 1:
            raise ArgumentError(f"padding {p} is more than half of a window of {(k - 1) * d + 1}")
    counts = []
    for n, k, s, p, d in zip(x.shape[x.rank - dims :], kernel, stride, padding, dilation, strict=True):
        count = (n + 2 * p - d * (k - 1) - 1 + (s - 1 if ceil_mode else 0)) // s + 1
        # A window may overhang the end, but not start outside.
        counts.append(count - 1 if ceil_mode and (count - 1) * s >= n + p else count)
    if min(counts) < 1:
        raise ShapeError(
            f"the result would be of spatial shape {counts}", help="pad, or use a smaller kernel"
        )
    return Pool(kernel, stride, padding, dilation, tuple(counts))


def image(x: Value, dims: int) -> None:
    """Check that x is channels of images, or a batch of them."""
    if x.rank not in (dims + 1, dims + 2) or 0 in x.shape[x.rank - dims - 1 :]:
        raise ShapeError(
            f"takes {dims + 1} or {dims + 2} dimensions, of which only the batch may be empty, not {x.type}"
        )


def spatial(x: Value, dims: int) -> Ints:
    return x.shape[x.rank - dims :]
