"""Random numbers for new parameters, drawn on the host: XLA would compile a program for every shape, which
takes far longer than the drawing.

The bits are Philox's, under a key made of the generator's state, which then moves on: so `manual_seed`
decides them. While a function is recorded by `tenfold.compile` there is no state to read, and the ops of the
table draw.
"""

from __future__ import annotations

import numpy as np

from tenfold.grad_mode import no_grad
from tenfold.random import Generator, default_generator, lock
from tenfold.tensor import Tensor, leaf
from tenfold.trace import graph


def uniform_(tensor: Tensor, low: float, high: float, generator: Generator | None = None) -> Tensor:
    """Fill with draws that are evenly spread between the bounds."""
    if graph.active() is not None or tensor.dtype.kind != "float":
        with no_grad():
            return tensor.uniform_(low, high, generator=generator)
    return write(tensor, uniform(tensor, tensor.numel(), generator) * (high - low) + low)


def normal_(tensor: Tensor, mean: float, std: float, generator: Generator | None = None) -> Tensor:
    """Fill with draws from a normal distribution."""
    if graph.active() is not None or tensor.dtype.kind != "float":
        with no_grad():
            return tensor.normal_(mean, std, generator=generator)
    return write(tensor, normal(tensor, tensor.numel(), generator) * std + mean)


def write(tensor: Tensor, array: np.ndarray) -> Tensor:
    """Let a tensor hold an array's numbers, in its own shape and dtype."""
    host = np.ascontiguousarray(array.reshape(tuple(tensor.shape)), tensor.dtype.numpy)
    with no_grad():
        tensor.assign(leaf(host.reshape(tuple(tensor.shape)), tensor.device, tensor.dtype).current())
    return tensor


def uniform(tensor: Tensor, count: int, generator: Generator | None = None) -> np.ndarray:
    """Numbers in [0, 1), drawn for this tensor: of 53 bits, as many as a float64 holds, or of 24 if the
    tensor holds no more than a float32 does."""
    if tensor.dtype.itemsize == 8:
        return (bits(tensor, count, generator) >> np.uint64(11)).astype(np.float64) * 2.0**-53
    halves = bits(tensor, (count + 1) // 2, generator).view(np.uint32)[:count]
    return (halves >> np.uint32(8)).astype(np.float32) * np.float32(2.0**-24)


def normal(tensor: Tensor, count: int, generator: Generator | None = None) -> np.ndarray:
    """Numbers of mean 0 and deviation 1: by Box and Muller, who get two from a radius and an angle."""
    pairs = (count + 1) // 2
    drawn = uniform(tensor, 2 * pairs, generator)
    radius, angle = np.sqrt(-2 * np.log1p(-drawn[:pairs])), drawn[pairs:] * drawn.dtype.type(2 * np.pi)
    return np.concatenate([radius * np.cos(angle), radius * np.sin(angle)])[:count]


def bits(tensor: Tensor, count: int, generator: Generator | None = None) -> np.ndarray:
    """Numbers of 64 random bits, drawn for this tensor."""
    with lock:
        source = generator or default_generator(tensor.device)
        seed, drawn = source.state.tolist()
        moved = np.array([seed, (drawn + count) % 2**64], np.uint64)
        source.state.assign(leaf(moved, source.device).current())
    return np.random.Philox(key=drawn << 64 | seed).random_raw(count)
