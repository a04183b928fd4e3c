"""Random bits by the counter-based generator Philox 4x32, in ten rounds: the same bits as XLA's."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tenfold.engines.numpy.kernels import Array, Kernel

MULTIPLIERS = (np.uint64(0xD2511F53), np.uint64(0xCD9E8D57))
WEYL = (0x9E3779B9, 0xBB67AE85)
ROUNDS = 10
LOW = np.uint64(0xFFFFFFFF)
HALF = np.uint64(32)


def rng_bit_generator(op: Any) -> Kernel:
    shape, dtype = op.shape, op.dtype.numpy
    count = math.prod(shape)
    words = count * 2 if dtype.itemsize == 8 else count

    def kernel(state: Array) -> tuple[Array, Array]:
        blocks = (words + 3) // 4
        # Of a state of two numbers the key is the upper half of the counter as well.
        key, low = int(state[0]), int(state[1])
        bits = philox(key, low, int(state[2]) if len(state) > 2 else key, blocks)[:words]
        numbers = bits.view(np.uint64) if dtype.itemsize == 8 else bits.astype(dtype)
        return _advanced(state, blocks), numbers.reshape(shape)

    return kernel


def _advanced(state: Array, blocks: int) -> Array:
    """The state with its counter, of 64 or 128 bits, so many blocks further."""
    result = state.copy()
    counter = int(state[1]) + blocks
    result[1] = counter & 0xFFFFFFFFFFFFFFFF
    if len(state) > 2:
        result[2] = (int(state[2]) + (counter >> 64)) & 0xFFFFFFFFFFFFFFFF
    return result


def philox(key: int, first: int, upper: int, blocks: int) -> Array:
    """So many blocks of four 32-bit numbers, from a counter of 128 bits: `first`, and `upper` above it."""
    low: Any = np.uint64(first) + np.arange(blocks, dtype=np.uint64)
    high: Any = np.uint64(upper) + (low < np.uint64(first)).astype(np.uint64)
    x0, x1, x2, x3 = low & LOW, low >> HALF, high & LOW, high >> HALF
    k0, k1 = key & 0xFFFFFFFF, key >> 32
    for _ in range(ROUNDS):
        first, second = MULTIPLIERS[0] * x0, MULTIPLIERS[1] * x2
        x0, x1, x2, x3 = (
            (second >> HALF) ^ x1 ^ np.uint64(k0),
            second & LOW,
            (first >> HALF) ^ x3 ^ np.uint64(k1),
            first & LOW,
        )
        k0, k1 = (k0 + WEYL[0]) & 0xFFFFFFFF, (k1 + WEYL[1]) & 0xFFFFFFFF
    return np.stack([x0, x1, x2, x3], axis=1).astype(np.uint32).reshape(-1)
