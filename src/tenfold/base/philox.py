"""Random bits for draws on the host: those of NumPy's Philox 4x64 under a key."""

from __future__ import annotations

import sys

import numpy as np

FEW = 1024  # numbers that take less time here than numpy.random takes to be imported
MULTIPLIERS = (0xD2E7470EE14C6C93, 0xCA5A826395121157)
WEYL = (0x9E3779B97F4A7C15, 0xBB67AE8584CAA73B)
ROUNDS = 10
WORD = (1 << 64) - 1


def raw_bits(key: int, count: int, counter: int = 0) -> np.ndarray:
    """So many numbers of 64 random bits, as `np.random.Philox(key=key, counter=counter)` draws them."""
    if count > FEW or "numpy.random" in sys.modules:
        return np.random.Philox(key=key, counter=counter).random_raw(count)
    words: list[int] = []
    while len(words) < count:
        counter += 1
        words += _block(key, counter)
    return np.array(words[:count], np.uint64)


def _block(key: int, counter: int) -> tuple[int, int, int, int]:
    """The four numbers of a counter, by ten rounds of multiplications (Salmon et al., 2011)."""
    x0, x1, x2, x3 = [counter >> shift & WORD for shift in (0, 64, 128, 192)]
    k0, k1 = key & WORD, key >> 64 & WORD
    for _ in range(ROUNDS):
        first, second = MULTIPLIERS[0] * x0, MULTIPLIERS[1] * x2
        x0, x1, x2, x3 = second >> 64 ^ x1 ^ k0, second & WORD, first >> 64 ^ x3 ^ k1, first & WORD
        k0, k1 = k0 + WEYL[0] & WORD, k1 + WEYL[1] & WORD
    return x0, x1, x2, x3
