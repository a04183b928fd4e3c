"""Random numbers for new parameters, drawn on the host: XLA would compile a program for every shape, which takes
far longer than the drawing.

The bits are Philox's, under a key made of the generator's state, which then moves on: so `manual_seed` decides
them. While a function is recorded by `tenfold.compile` there is no state to read, and the ops of the table draw.
"""

from __future__ import annotations

import numpy as np

from tenfold.random import Generator, default_generator, lock
from tenfold.tensor import Tensor, leaf
from tenfold.trace import graph


def uniform_(tensor: Tensor, low: float, high: float, generator: Generator | None = None) -> Tensor:
    """Fill with draws that are evenly spread between the bounds."""
    if graph.active() is not None or tensor.dtype.kind != "float":
        return tensor.uniform_(low, high, generator=generator)
    drawn = _unit(_bits(tensor, tensor.numel(), generator))
    return write(tensor, drawn * (high - low) + low)


def normal_(tensor: Tensor, mean: float, std: float, generator: Generator | None = None) -> Tensor:
    """Fill with draws from a normal distribution."""
    if graph.active() is not None or tensor.dtype.kind != "float":
        return tensor.normal_(mean, std, generator=generator)
    pairs = (tensor.numel() + 1) // 2
    bits = _bits(tensor, 2 * pairs, generator)
    # Box and Muller: a radius and an angle give two independent draws.
    radius = np.sqrt(-2 * np.log1p(-_unit(bits[:pairs])))
    angle = 2 * np.pi * _unit(bits[pairs:])
    drawn = np.concatenate([radius * np.cos(angle), radius * np.sin(angle)])
    return write(tensor, drawn[: tensor.numel()] * std + mean)


def permutation(tensor: Tensor, count: int, generator: Generator | None = None) -> np.ndarray:
    """The numbers below `count` in random order, drawn for this tensor."""
    return np.argsort(_bits(tensor, count, generator), kind="stable")


def write(tensor: Tensor, array: np.ndarray) -> Tensor:
    """Let a tensor hold an array's numbers, in its own shape and dtype."""
    host = np.ascontiguousarray(array.reshape(tuple(tensor.shape)), tensor.dtype.numpy)
    tensor.assign(leaf(host, tensor.device, tensor.dtype).current())
    return tensor


def _unit(bits: np.ndarray) -> np.ndarray:
    """Numbers in [0, 1): the 53 upper bits, as many as a float64 holds. float32 may still round up to 1."""
    return (bits >> np.uint64(11)).astype(np.float64) * 2.0**-53


def _bits(tensor: Tensor, count: int, generator: Generator | None) -> np.ndarray:
    with lock:
        source = generator or default_generator(tensor.device)
        seed, drawn = source.state.tolist()
        moved = np.array([seed, (drawn + count) % 2**64], np.uint64)
        source.state.assign(leaf(moved, source.device).current())
    return np.random.Philox(key=drawn << 64 | seed).random_raw(count)
