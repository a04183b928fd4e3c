"""Random numbers for new parameters, drawn on the host: XLA would compile a program for every shape, which
takes far longer than the drawing.

The bits are Philox's, under a key made of the generator's state, which then moves on: so `manual_seed`
decides them. While a function is recorded by `tenfold.compile` there is no state to read, and the ops of the
table draw.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any, TypeVar, cast

import numpy as np

from tenfold.autograd.grad_mode import no_grad
from tenfold.base.philox import raw_bits
from tenfold.tensor import Tensor, leaf, sharding
from tenfold.tensor.generators import Generator, default_generator, lock
from tenfold.trace.context import context

# How many numbers are computed at a time: so few stay in the processor's cache from step to step.
AT_A_TIME = 1 << 16


Fill = TypeVar("Fill", bound=Callable[..., Tensor])


def unless_meta(fill: Fill) -> Fill:
    """A function that fills a tensor; one on the meta device it leaves as it is, since there is nothing to
    fill."""

    @functools.wraps(fill)
    def filled(tensor: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        return tensor if tensor.is_meta else fill(tensor, *args, **kwargs)

    return cast(Fill, filled)


@unless_meta
def uniform_(tensor: Tensor, low: float, high: float, generator: Generator | None = None) -> Tensor:
    """Fill with draws that are evenly spread between the bounds."""
    if context.recorder is not None or tensor.dtype.kind != "float":
        with no_grad():
            return tensor.uniform_(low, high, generator=generator)
    return write(tensor, uniform(tensor, tensor.numel(), generator, low, high))


@unless_meta
def normal_(tensor: Tensor, mean: float, std: float, generator: Generator | None = None) -> Tensor:
    """Fill with draws from a normal distribution."""
    if context.recorder is not None or tensor.dtype.kind != "float":
        with no_grad():
            return tensor.normal_(mean, std, generator=generator)
    return write(tensor, normal(tensor, tensor.numel(), generator, mean, std))


@unless_meta
def write(tensor: Tensor, array: np.ndarray) -> Tensor:
    """Let a tensor hold an array's numbers, in its own shape, dtype and sharding."""
    shape = tuple(tensor.shape)
    host = np.ascontiguousarray(array.reshape(shape), tensor.dtype.numpy).reshape(shape)
    if tensor.device.mesh is None:
        written = leaf(host, tensor.device, tensor.dtype)
    else:
        written = sharding.leaf_like(host, tensor, tensor.dtype)
    with no_grad():
        tensor.assign(written.current())
    return tensor


def uniform(
    tensor: Tensor, count: int, generator: Generator | None = None, low: float = 0.0, high: float = 1.0
) -> np.ndarray:
    """Numbers between the bounds, drawn for this tensor: in float64 if it is one, else in float32. Each is
    written over its bits."""
    words = _words(tensor, count, generator)
    made = words.view(_FLOATS[words.itemsize])
    for some in _pieces(count):
        made[some] = _fractions(words[some]) * (high - low) + low
    return made


def normal(
    tensor: Tensor, count: int, generator: Generator | None = None, mean: float = 0.0, std: float = 1.0
) -> np.ndarray:
    """Numbers of this mean and deviation: by Box and Muller, who get two from a radius and an angle."""
    pairs = (count + 1) // 2
    words = _words(tensor, 2 * pairs, generator)
    made = words.view(_FLOATS[words.itemsize])
    for some in _pieces(pairs):
        others = slice(pairs + some.start, pairs + some.stop)
        radius = std * np.sqrt(-2 * np.log(1 - _fractions(words[some])))
        angle = _fractions(words[others]) * (2 * np.pi)
        made[some] = radius * np.cos(angle) + mean
        made[others] = radius * np.sin(angle) + mean
    return made[:count]


_FLOATS: dict[int, Any] = {8: np.dtype(np.float64), 4: np.dtype(np.float32)}


def _pieces(count: int) -> Iterator[slice]:
    return (slice(i, min(i + AT_A_TIME, count)) for i in range(0, count, AT_A_TIME))


def _words(tensor: Tensor, count: int, generator: Generator | None) -> np.ndarray:
    """As many random bits as a float has that is drawn for this tensor, and where it goes, too."""
    if tensor.dtype.itemsize == 8:
        return bits(tensor, count, generator)
    return bits(tensor, (count + 1) // 2, generator).view(np.uint32)[:count]


def _fractions(words: np.ndarray) -> np.ndarray:
    """Numbers in [0, 1): of 53 bits, as many as a float64 holds, or of 24 for a float32."""
    if words.dtype == np.uint64:
        return (words >> np.uint64(11)).astype(np.float64) * 2.0**-53
    return (words >> np.uint32(8)).astype(np.float32) * np.float32(2.0**-24)


def bits(tensor: Tensor, count: int, generator: Generator | None = None) -> np.ndarray:
    """Numbers of 64 random bits, drawn for this tensor."""
    with lock:
        source = generator or default_generator(tensor.device)
        seed, drawn = source.state.tolist()
        moved = np.array([seed, (drawn + count) % 2**64], np.uint64)
        source.state.assign(leaf(moved, source.device).current())
    return raw_bits(drawn << 64 | seed, count)
