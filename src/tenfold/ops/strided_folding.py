"""Convolutions with strides over few channels, as ones without strides over more.

An image of three channels fills no tensor core: cuDNN pads and copies it, and is slow even then. What a
stride of 2 × 2 steps over is four images of half the extents; together they are one of four times the
channels, which a kernel of half the extents convolves without strides, with the very same products.
`sliding.py` asks for this on GPUs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tenfold import flat
from tenfold.flat import Value

if TYPE_CHECKING:
    from tenfold.ops.sliding import Window

Ints = tuple[int, ...]

FEW = 8  # channels, fewer of which a tensor core's tile would hold beside zeros


def fits(x: Value, window: Window) -> bool:
    """Whether a convolution of x is better folded."""
    plain = window.groups == 1 and max(window.dilation) == max(window.spread) == 1
    return x.dtype.itemsize == 2 and x.shape[1] < FEW and x.numel > 0 and plain and max(window.strides) > 1


def folded(window: Window) -> Window:
    """The window of the folded convolution."""
    count = len(window.strides)
    return window._replace(strides=(1,) * count, padding=((0, 0),) * count)


def folded_taps(kernel: Ints, window: Window) -> Ints:
    return tuple([-(-k // s) for k, s in zip(kernel, window.strides, strict=True)])


def folded_image(x: Value, kernel: Ints, counts: Ints, window: Window) -> Value:
    """x[N, C, H, W] as [N, sh · sw · C', H', W'], padded as the window and the channels ask for."""
    strides, taps = window.strides, folded_taps(kernel, window)
    extents = [count - 1 + tap for count, tap in zip(counts, taps, strict=True)]
    lows = [low for low, _ in window.padding]
    highs = [
        extent * s - low - n for extent, s, low, n in zip(extents, strides, lows, x.shape[2:], strict=True)
    ]
    x = flat.pad(x, (0, 0, *lows), (0, _missing(x.shape[1], strides), *highs), 0)
    return _folded(x, extents, strides)


def folded_kernel(kernel: Value, window: Window) -> Value:
    """kernel[O, C, h, w] as [O, sh · sw · C', h', w']."""
    strides, taps = window.strides, folded_taps(kernel.shape[2:], window)
    highs = [tap * s - k for tap, s, k in zip(taps, strides, kernel.shape[2:], strict=True)]
    kernel = flat.pad(kernel, (0,) * kernel.rank, (0, _missing(kernel.shape[1], strides), *highs), 0)
    return _folded(kernel, taps, strides)


def unfolded_kernel(kernel: Value, channels: int, shape: Ints, window: Window) -> Value:
    """The kernel[O, C, h, w] that was folded."""
    strides, taps = window.strides, kernel.shape[2:]
    count = len(strides)
    wide = channels + _missing(channels, strides)
    apart = flat.reshape(kernel, (kernel.shape[0], *strides, wide, *taps))
    pairs = [place for d in range(count) for place in (count + 2 + d, 1 + d)]
    whole = [tap * s for tap, s in zip(taps, strides, strict=True)]
    joined = flat.reshape(flat.transpose(apart, (0, count + 1, *pairs)), (kernel.shape[0], wide, *whole))
    return flat.slice(joined, (0,) * kernel.rank, (kernel.shape[0], channels, *shape))


def _missing(channels: int, strides: Ints) -> int:
    """How many channels of zeros make those of the folded image a multiple of what tensor cores take."""
    steps = 1
    for stride in strides:
        steps *= stride
    return next(more for more in range(FEW) if (channels + more) * steps % FEW == 0)


def _folded(x: Value, extents: Ints | list[int], strides: Ints) -> Value:
    """x[N, C, H' · sh, W' · sw] as [N, sh · sw · C, H', W']: channels stay nearest."""
    count = len(strides)
    pairs = [size for pair in zip(extents, strides, strict=True) for size in pair]
    apart = flat.reshape(x, (*x.shape[:2], *pairs))
    steps, places = range(3, 3 + 2 * count, 2), range(2, 2 + 2 * count, 2)
    joined = flat.transpose(apart, (0, *steps, 1, *places))
    return flat.reshape(joined, (x.shape[0], -1, *extents))
