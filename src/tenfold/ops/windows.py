"""Rows for the windows of signal processing. A periodic one is a symmetric one without its last point."""

from __future__ import annotations

import math
from collections.abc import Callable

from tenfold import flat
from tenfold.base import dtypes
from tenfold.base.dtypes import DType
from tenfold.base.errors import ArgumentError, DTypeError
from tenfold.flat import Value
from tenfold.ops.creation import MADE
from tenfold.ops.samples import S
from tenfold.ops.table import op, written

_LENGTHS = lambda: [S(5), S(1), S(0), S(8, dtype=dtypes.float64), S(6, dtype=dtypes.float16)]
_MODES = lambda: [S(5, False), S(6, True), S(1, False), S(7, False, dtype=dtypes.float64)]


def _window(
    name: str, length: int, periodic: bool, dtype: DType | None, shape: Callable[[Value, int], Value]
) -> Value:
    """`shape(places, last)` on the places of a symmetric window that ends at `last`, at least in float32."""
    dtype = dtype or dtypes.get_default_dtype()
    if not dtype.is_floating_point and not (dtype.is_complex and length < 2):
        raise DTypeError(f"{name} is made of floating-point numbers, not {dtype.name}")
    if length < 0:
        raise ArgumentError(f"{name}: a length of {length} cannot be")
    if length < 2:
        return flat.full((length,), 1.0, dtype)
    wide = dtypes.float64 if dtype is dtypes.float64 else dtypes.float32
    return flat.convert(shape(flat.arange(length, wide), length - 1 + periodic), dtype)


@op(f"bartlett_window(int window_length, {MADE}) -> Tensor", samples=_LENGTHS)
def bartlett_window(length, dtype):
    """1 - |2n / N - 1|: a triangle; N is window_length."""
    return bartlett_window_periodic(length, True, dtype)


@op(f"bartlett_window.periodic(int window_length, bool periodic, {MADE}) -> Tensor", samples=_MODES)
def bartlett_window_periodic(length, periodic, dtype):
    """1 - |2n / N - 1|: a triangle; N is window_length, less 1 if not periodic."""
    return _window(
        "bartlett_window", length, periodic, dtype, lambda n, last: 1.0 - flat.abs(n * (2 / last) - 1.0)
    )


@op(f"blackman_window(int window_length, {MADE}) -> Tensor", samples=_LENGTHS)
def blackman_window(length, dtype):
    """0.42 - 0.5 · cos(2πn / N) + 0.08 · cos(4πn / N); N is window_length."""
    return blackman_window_periodic(length, True, dtype)


@op(f"blackman_window.periodic(int window_length, bool periodic, {MADE}) -> Tensor", samples=_MODES)
def blackman_window_periodic(length, periodic, dtype):
    """0.42 - 0.5 · cos(2πn / N) + 0.08 · cos(4πn / N); N is window_length, less 1 if not periodic."""

    def shape(n: Value, last: int) -> Value:
        angle = n * (math.pi / last)
        return flat.cos(angle * 4.0) * 0.08 - flat.cos(angle * 2.0) * 0.5 + 0.42

    return _window("blackman_window", length, periodic, dtype, shape)


@op(f"hamming_window(int window_length, {MADE}) -> Tensor", samples=_LENGTHS)
def hamming_window(length, dtype):
    """0.54 - 0.46 · cos(2πn / N); N is window_length."""
    return hamming_window_alpha_beta(length, True, 0.54, 0.46, dtype)


@op(f"hamming_window.periodic(int window_length, bool periodic, {MADE}) -> Tensor", samples=_MODES)
def hamming_window_periodic(length, periodic, dtype):
    """0.54 - 0.46 · cos(2πn / N); N is window_length, less 1 if not periodic."""
    return hamming_window_alpha_beta(length, periodic, 0.54, 0.46, dtype)


@op(
    f"hamming_window.periodic_alpha(int window_length, bool periodic, float alpha, {MADE}) -> Tensor",
    samples=lambda: [S(5, True, 0.6)],
)
def hamming_window_alpha(length, periodic, alpha, dtype):
    """alpha - 0.46 · cos(2πn / N); N is window_length, less 1 if not periodic."""
    return hamming_window_alpha_beta(length, periodic, alpha, 0.46, dtype)


@op(
    "hamming_window.periodic_alpha_beta(int window_length, bool periodic, float alpha, float beta, "
    f"{MADE}) -> Tensor",
    samples=lambda: [S(5, True, 0.6, 0.3)],
)
def hamming_window_alpha_beta(length, periodic, alpha, beta, dtype):
    """alpha - beta · cos(2πn / N); N is window_length, less 1 if not periodic."""
    shape = lambda n, last: alpha - flat.cos(n * (math.tau / last)) * beta
    return _window("hamming_window", length, periodic, dtype, shape)


@op(f"hann_window(int window_length, {MADE}) -> Tensor", samples=_LENGTHS)
def hann_window(length, dtype):
    """0.5 - 0.5 · cos(2πn / N); N is window_length."""
    return hamming_window_alpha_beta(length, True, 0.5, 0.5, dtype)


@op(f"hann_window.periodic(int window_length, bool periodic, {MADE}) -> Tensor", samples=_MODES)
def hann_window_periodic(length, periodic, dtype):
    """0.5 - 0.5 · cos(2πn / N); N is window_length, less 1 if not periodic."""
    return hamming_window_alpha_beta(length, periodic, 0.5, 0.5, dtype)


@op(f"kaiser_window(int window_length, {MADE}) -> Tensor", samples=_LENGTHS)
def kaiser_window(length, dtype):
    """I₀(12 · sqrt(1 - (2n / N - 1)²)) / I₀(12); N is window_length."""
    return kaiser_window_beta(length, True, 12.0, dtype)


@op(f"kaiser_window.periodic(int window_length, bool periodic, {MADE}) -> Tensor", samples=_MODES)
def kaiser_window_periodic(length, periodic, dtype):
    """I₀(12 · sqrt(1 - (2n / N - 1)²)) / I₀(12); N is window_length, less 1 if not periodic."""
    return kaiser_window_beta(length, periodic, 12.0, dtype)


@op(
    f"kaiser_window.beta(int window_length, bool periodic, float beta, {MADE}) -> Tensor",
    samples=lambda: [S(5, True, 3.0), S(8, False, 14.0)],
    late=written,
)
def kaiser_window_beta(length, periodic, beta, dtype):
    """I₀(beta · sqrt(1 - (2n / N - 1)²)) / I₀(beta); N is window_length, less 1 if not periodic."""

    def shape(n: Value, last: int) -> Value:
        place = n * (2 / last) - 1.0
        height = flat.sqrt(flat.maximum(1.0 - place * place, 0.0)) * beta
        return _bessel(height, beta) / _bessel(flat.full((), beta, n.dtype), beta)

    return _window("kaiser_window", length, periodic, dtype, shape)


def _bessel(x: Value, bound: float) -> Value:
    """I₀(x) · exp(-bound), for 0 ≤ x ≤ bound: the mean of exp(x · cos θ - bound) over a half circle.

    The trapezoidal rule converges faster than any power of the number of points once these outnumber `bound`.
    """
    count = 32 + 2 * math.ceil(abs(bound))
    angles = (flat.arange(count, x.dtype) + 0.5) * (math.pi / count)
    return flat.sum(flat.exp(flat.unsqueeze(x, x.rank) * flat.cos(angles) - bound), (-1,)) * (1 / count)
