"""Kernels of elementary functions: exponentials, logarithms, trigonometric and hyperbolic ones.

In float32 each lies within 2 units in the last place of XLA's on vectors. Where XLA rounds well, the function
is computed in float64 and rounded; where XLA's own formula loses more, it is used here as well. XLA joins a
product and a sum into one rounding, and so does `fused`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tenfold.base.dtypes import DType
from tenfold.engines.numpy import arithmetic
from tenfold.engines.numpy.kernels import Array, Kernel, widened


def function(real: Kernel, complex: Kernel | None = None) -> Callable[[Any], Kernel]:
    """A rule for a function of floats, and another for complex numbers if it is not the same."""

    def rule(op: Any) -> Kernel:
        dtype: DType = op.operands[0].dtype
        if dtype.is_complex:
            return complex or real
        return widened(in_blocks(real) if op.result.numel > BLOCK else real, dtype)

    return rule


BLOCK = 1 << 14  # elements that fit a processor's cache with what is computed on the way


def in_blocks(kernel: Kernel) -> Kernel:
    """A kernel of many steps on large arrays, one piece after the other."""

    def whole(*arrays: Array) -> Array:
        vectors = [array.reshape(-1) for array in arrays]
        result = np.empty_like(vectors[0])
        for start in range(0, len(result), BLOCK):
            part = slice(start, start + BLOCK)
            result[part] = kernel(*[vector[part] for vector in vectors])
        return result.reshape(arrays[0].shape)

    return whole


def precise(ufunc: Kernel) -> Kernel:
    """A function of NumPy's that rounds float32 once: it computes in float64."""

    def kernel(*arrays: Array) -> Array:
        if arrays[0].dtype != np.float32:
            return ufunc(*arrays)
        return ufunc(*[array.astype(np.float64) for array in arrays]).astype(np.float32)

    def of_one(x: Array) -> Array:
        if x.dtype.type is np.float32:
            result: Array = ufunc(x.astype(np.float64)).astype(np.float32)
            return result
        return ufunc(x)

    return of_one if getattr(ufunc, "nin", 0) == 1 else kernel


def fused(x: Array, y: Any, z: Any) -> Array:
    """x * y + z, which float32 rounds once: its products are exact in float64."""
    if x.dtype != np.float32:
        return x * y + z
    return (x.astype(np.float64) * y + z).astype(np.float32)


def polynomial(x: Array, coefficients: Sequence[float]) -> Array:
    """Horner's scheme; the coefficient of the highest power comes first. Each step rounds once."""
    wide, number = x.astype(np.float64, copy=False), x.dtype.type
    result, rounded = np.empty_like(wide), np.empty_like(x)
    result[...] = number(coefficients[0])
    for coefficient in coefficients[1:]:
        result *= wide
        result += number(coefficient)
        rounded[...] = result
        result[...] = rounded
    return rounded


log, precise_exp = precise(np.log), precise(np.exp)
LOG1P_NEAR = np.float32(np.sqrt(2) - 1)


def log1p(x: Array) -> Array:
    """Of float32 the logarithm of the rounded sum, unless x is near 0."""
    if x.dtype != np.float32:
        return np.log1p(x)
    near = np.abs(x) < LOG1P_NEAR
    return np.where(near, np.log1p(x.astype(np.float64)), log(x + np.float32(1))).astype(np.float32)


EXP = (1.9875691500e-4, 1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1, 5.0000001201e-1)
LOG2 = (np.float32(0.693359375), np.float32(-2.12194440e-4))  # together
EXP_LAST = np.float32(127.5 * np.log(2))


def exp(x: Array) -> Array:
    """Rounded once, except close to infinity, where XLA's float32 loses some."""
    result = precise_exp(x)
    if x.dtype.type is np.float32 and np.count_nonzero(last := x > EXP_LAST):
        result = np.where(last & np.isfinite(result), exp_by_steps(x), result)
    return result


def exp_by_steps(x: Array) -> Array:
    """Cephes' formula, by which XLA rounds float32: where exponentials are part of another function, it
    magnifies the difference."""
    if x.dtype != np.float32:
        return np.exp(x)
    count = np.minimum(np.floor(fused(x, np.float32(np.log2(np.e)), 0.5)), np.float32(127))
    rest = fused(-count, LOG2[1], fused(-count, LOG2[0], x))
    power = fused(polynomial(rest, EXP), rest * rest, rest) + np.float32(1)
    result = np.ldexp(power, np.clip(count, -200, 200).astype(np.int32))
    return np.where(np.isfinite(x) & (x > -150) & (x < 89), result, np.exp(x))


TANH = (
    (
        -2.76076847742355e-16, 2.00018790482477e-13, -8.60467152213735e-11, 5.12229709037114e-8,
        1.48572235717979e-5, 6.37261928875436e-4, 4.89352455891786e-3,
    ),
    (1.19825839466702e-6, 1.18534705686654e-4, 2.268434632439e-3, 4.89352518554385e-3),
)  # fmt: skip
TANH_LARGEST, TANH_SMALLEST = np.float32(7.99881172180175781), np.float32(0.0004)


def tanh(x: Array) -> Array:
    """Of float32 a quotient of polynomials, and x itself near 0."""
    if x.dtype != np.float32:
        return np.tanh(x)
    clipped = np.minimum(np.maximum(x, -TANH_LARGEST), TANH_LARGEST)
    square = clipped * clipped
    result = clipped * polynomial(square, TANH[0]) / polynomial(square, TANH[1])
    return np.where(np.abs(x) < TANH_SMALLEST, x, result)


def expm1(x: Array) -> Array:
    """tanh(x/2) (exp(x) + 1) up to a half."""
    if x.dtype != np.float32:
        return np.expm1(x)
    half, one, power = np.float32(0.5), np.float32(1), exp_by_steps(x)
    return np.where(np.abs(x) > half, power - one, tanh(x * half) * (power + one))


def logistic(x: Array) -> Array:
    if x.dtype != np.float32:
        return 1 / (1 + np.exp(-x))
    return (1 / (1 + np.exp(-x.astype(np.float64)))).astype(np.float32)


def rsqrt(x: Array) -> Array:
    return x.dtype.type(1) / np.sqrt(x)


def complex_rsqrt(x: Array) -> Array:
    return arithmetic.complex_quotient(np.ones_like(x), np.sqrt(x))


def sinh(x: Array) -> Array:
    if x.dtype != np.float32:
        return np.sinh(x)
    half, one = np.float32(np.log(0.5)), np.float32(1)
    small = expm1(x)
    near = np.float32(0.5) * (small + small / (small + one))
    return np.where(np.abs(x) < one, near, exp_by_steps(x + half) - exp_by_steps(half - x))


def cosh(x: Array) -> Array:
    if x.dtype != np.float32:
        return np.cosh(x)
    half = np.float32(np.log(0.5))
    return exp_by_steps(x + half) + exp_by_steps(half - x)


def asinh(x: Array) -> Array:
    if x.dtype != np.float32:
        return np.arcsinh(x)
    one, size = np.float32(1), np.abs(x)
    square = size * size
    near = log1p(size + square / (one + np.sqrt(one + square)))
    far = np.float32(np.log(2)) + log(size)
    return np.copysign(np.where(size >= np.sqrt(np.finfo(np.float32).max), far, near), x)


def acosh(x: Array) -> Array:
    if x.dtype != np.float32:
        return np.arccosh(x)
    one = np.float32(1)
    below = np.sqrt(x - one)
    near = log1p(below * (np.sqrt(x + one) + below))
    return np.where(x >= np.finfo(np.float32).max / 2, np.float32(np.log(2)) + log(x), near)


def atanh(x: Array) -> Array:
    if x.dtype != np.float32:
        return np.arctanh(x)
    inside = np.float32(0.5) * (log1p(x) - log1p(-x))
    return np.where(np.abs(x) > 1, np.float32(np.nan), inside)


def power(op: Any) -> Kernel:
    dtype: DType = op.x.dtype
    if dtype.kind == "int":
        return arithmetic.power_of_integers
    return _complex_power if dtype.is_complex else widened(np.power, dtype)


def _complex_power(x: Array, y: Array) -> Array:
    """0 to the 0 is 1, and to anything with a positive real part 0."""
    result = np.exp(y * np.log(x))
    zero = (x == 0) & (y.real > 0)
    return np.where(y == 0, x.dtype.type(1), np.where(zero, x.dtype.type(0), result))


def complex_atan2(y: Array, x: Array) -> Array:
    """-i log((x + iy) / sqrt(x² + y²)), by the specification."""
    i = y.dtype.type(1j)
    return (-i * np.log((x + i * y) / np.sqrt(x * x + y * y))).astype(y.dtype)
