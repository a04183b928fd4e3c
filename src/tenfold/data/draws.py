"""Random choices of indices, made on the host: no program is compiled for the size of a data set.

A Tenfold generator gives one 64-bit key for each series of draws; the series itself is the raw bits of
Philox, as NumPy has it, under that key. NumPy keeps those bits for good, but not its permutations.
"""

from __future__ import annotations

import numpy as np

from tenfold.base.devices import Device
from tenfold.base.philox import raw_bits
from tenfold.tensor import generators, leaf
from tenfold.tensor.generators import Generator


def key(generator: Generator | None) -> int:
    """A number from the generator (or from the default one of the CPU), whose state moves on."""
    device = Device("cpu") if generator is None else generator.device
    drawn = leaf(np.zeros((), np.int64), device).random_(generator=generator)
    return int(drawn.item())


def worker_seed(generator: Generator | None, epoch: int) -> int:
    """A seed for the workers of an epoch. It takes nothing from the generator: the order in which samples are
    drawn must not depend on how many threads fetch them."""
    started = generators.initial_seed() if generator is None else generator.initial_seed()
    return int(raw_bits(started, 1, epoch)[0] >> 1)


def _bits(count: int, key: int) -> np.ndarray:
    return raw_bits(key, count)


def _uniform(count: int, key: int) -> np.ndarray:
    """Numbers in (0, 1): the middles of 2**53 equal parts."""
    return ((_bits(count, key) >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53


def permutation(count: int, key: int) -> np.ndarray:
    return np.argsort(_bits(count, key), kind="stable")


def with_replacement(below: int, count: int, key: int) -> np.ndarray:
    # The remainder favours small numbers by less than one part in 2**64 / below.
    return (_bits(count, key) % np.uint64(below)).astype(np.int64)


def weighted(weights: np.ndarray, count: int, replacement: bool, key: int) -> np.ndarray:
    """Indices in proportion to their weights; one of weight zero is never drawn."""
    if replacement:
        bounds = np.cumsum(weights)
        return np.searchsorted(bounds, _uniform(count, key) * bounds[-1], side="right")
    # Each index waits for an exponential time at the rate of its weight: who comes first is drawn first.
    possible = np.flatnonzero(weights)
    times = -np.log(_uniform(len(possible), key)) / weights[possible]
    return possible[np.argsort(times, kind="stable")[:count]]
