"""Kernels of arithmetic, rounding, bits and comparison: what is exact, or rounded once, in every dtype.

Integers wrap around. Division by zero gives -1 (all bits set), the remainder of it the dividend; a shift by
the width or more shifts everything out: so XLA has it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tenfold.base.dtypes import DType
from tenfold.engines.numpy.kernels import Array, Kernel, owned, widened, working


def plain(ufunc: Kernel) -> Any:
    """A rule for what one function of NumPy's computes, whatever the dtype. A large result is written over
    an operand that nothing needs any more: fresh memory costs more than the arithmetic."""

    def rule(op: Any) -> Kernel:
        result = op.result
        if result.numel * result.dtype.itemsize < LARGE or working(result.dtype) != result.dtype.numpy:
            return widened(ufunc, op.x.dtype)
        return _reusing_two(ufunc) if len(op.operands) == 2 else _reusing_one(ufunc)

    return rule


LARGE = 1 << 17  # bytes that the allocator asks the system for


def _reusing_one(ufunc: Kernel) -> Kernel:
    return lambda x: ufunc(x, out=x) if owned(x) else ufunc(x)


def _reusing_two(ufunc: Kernel) -> Kernel:
    def kernel(x: Array, y: Array) -> Array:
        if owned(x):
            return ufunc(x, y, out=x)
        return ufunc(x, y, out=y) if owned(y) else ufunc(x, y)

    return kernel


def divide(op: Any) -> Kernel:
    if op.x.dtype.kind == "int":
        return _integer_quotient
    return complex_quotient if op.x.dtype.is_complex else plain(np.divide)(op)


def complex_quotient(x: Array, y: Array) -> Array:
    """By the rules of C's Annex G where NumPy gives NaN: a number by 0, and with infinities."""
    result = np.asarray(np.divide(x, y))
    if not np.isnan(result).any():
        return result
    a, b, c, d = x.real, x.imag, y.real, y.imag
    infinite_x, infinite_y = np.isinf(a) | np.isinf(b), np.isinf(c) | np.isinf(d)
    finite_x, finite_y = np.isfinite(a) & np.isfinite(b), np.isfinite(c) & np.isfinite(d)
    lost = np.isnan(result.real) & np.isnan(result.imag)
    by_zero = (y == 0) & ~(np.isnan(a) & np.isnan(b))
    upwards, downwards = infinite_x & finite_y & lost & ~by_zero, infinite_y & finite_x & lost
    a, b = (np.where(upwards, np.copysign(np.isinf(each), each), each) for each in (a, b))
    c, d = (np.where(downwards, np.copysign(np.isinf(each), each), each) for each in (c, d))
    scale = np.where(upwards, np.inf, 0.0)
    real, imag = scale * (a * c + b * d), scale * (b * c - a * d)
    ordinary = ~(upwards | downwards)
    infinity = np.copysign(np.inf, y.real)
    real = np.where(by_zero, infinity * x.real, np.where(ordinary, result.real, real))
    imag = np.where(by_zero, infinity * x.imag, np.where(ordinary, result.imag, imag))
    fixed = np.empty(result.shape, result.dtype)
    fixed.real, fixed.imag = real, imag
    return fixed


def _integer_quotient(x: Array, y: Array) -> Array:
    """Towards zero. NumPy's rounds down, and gives 0 for a division by zero."""
    quotient = np.floor_divide(x, y)
    if x.dtype.kind == "i":
        inexact = np.remainder(x, y) != 0
        quotient = quotient + (inexact & ((x < 0) != (y < 0))).astype(x.dtype)
    return np.where(y == 0, np.array(-1).astype(x.dtype), quotient)


def remainder(op: Any) -> Kernel:
    if op.x.dtype.kind == "int":
        return lambda x, y: np.where(y == 0, x, np.fmod(x, y))
    return widened(np.fmod, op.x.dtype)


def maximum(op: Any) -> Kernel:
    return widened(_larger if op.x.dtype.is_complex else np.maximum, op.x.dtype)


def minimum(op: Any) -> Kernel:
    return widened(_smaller if op.x.dtype.is_complex else np.minimum, op.x.dtype)


def _larger(x: Array, y: Array) -> Array:
    """Complex numbers have the order of their real parts, then of their imaginary ones."""
    return np.where(_before(y, x), x, y)


def _smaller(x: Array, y: Array) -> Array:
    return np.where(_before(x, y), x, y)


def _before(x: Array, y: Array) -> Array:
    return (x.real < y.real) | ((x.real == y.real) & (x.imag < y.imag))


def power_of_integers(x: Array, y: Array) -> Array:
    """By squaring. A negative exponent leaves 1 and -1 what they are, and makes 0 of the others."""
    negative = y < 0
    exponent = np.where(negative, y & 1, y)
    result, base = np.ones(np.broadcast_shapes(x.shape, y.shape), x.dtype), x
    while exponent.any():
        result = np.where(exponent & 1, result * base, result)
        base = base * base
        exponent = exponent >> 1
    return np.where(negative & (np.abs(x) != 1), np.zeros((), x.dtype), result) if negative.any() else result


def shift(op: Any) -> Kernel:
    """Shifts by bits: an amount is read as unsigned, and what is as wide as the number shifts all out."""
    bits, kind = op.x.dtype.itemsize * 8, op.name.rpartition(".")[2]
    unsigned, signed = np.dtype(f"u{bits // 8}"), np.dtype(f"i{bits // 8}")
    last, none = unsigned.type(bits - 1), unsigned.type(0)

    def arithmetic(x: Array, y: Array) -> Array:
        amount = np.minimum(_as(y, unsigned), last)
        return _as(_as(x, signed) >> _as(amount, signed), x.dtype)

    def logical(x: Array, y: Array) -> Array:
        amount = _as(y, unsigned)
        shifted = np.left_shift if kind == "shift_left" else np.right_shift
        return _as(
            np.where(amount > last, none, shifted(_as(x, unsigned), np.minimum(amount, last))), x.dtype
        )

    return arithmetic if kind == "shift_right_arithmetic" else logical


def _as(x: Any, dtype: np.dtype[Any]) -> Array:
    """The bits of integers as others of the same width."""
    return np.asarray(x).view(dtype)


def count_leading_zeros(op: Any) -> Kernel:
    bits, dtype = op.x.dtype.itemsize * 8, op.x.dtype.numpy

    def kernel(x: Array) -> Array:
        rest = _as(x, np.dtype(f"u{bits // 8}")).astype(np.uint64)
        count = np.full(x.shape, bits, np.int64)
        for step in (32, 16, 8, 4, 2, 1):
            if step < bits:
                high = rest >> np.uint64(step)
                count = np.where(high != 0, count - step, count)
                rest = np.where(high != 0, high, rest)
        return (count - (rest != 0)).astype(dtype)

    return kernel


def absolute(op: Any) -> Kernel:
    if op.x.dtype.is_complex:
        return lambda x: np.hypot(x.real, x.imag)
    return widened(np.abs, op.x.dtype)


def sign(op: Any) -> Kernel:
    """-1, 0 or 1; NaN and the zeros of floats stay what they are."""
    dtype: DType = op.x.dtype
    if dtype.is_complex:
        return _direction
    if dtype.kind == "int":
        return np.sign
    return widened(lambda x: np.where((x == 0) | np.isnan(x), x, np.copysign(x.dtype.type(1), x)), dtype)


def _direction(x: Array) -> Array:
    length = np.hypot(x.real, x.imag)
    return np.where(length == 0, x, x / length).astype(x.dtype)


def real(op: Any) -> Kernel:
    return (lambda x: x.real) if op.x.dtype.is_complex else (lambda x: x)


def imag(op: Any) -> Kernel:
    return (lambda x: x.imag) if op.x.dtype.is_complex else np.zeros_like


def is_finite(op: Any) -> Kernel:
    dtype = op.x.dtype
    return np.isfinite if dtype.itemsize >= 4 else lambda x: np.isfinite(x.astype(np.float32))


def complex_of(op: Any) -> Kernel:
    dtype = op.result.dtype.numpy

    def kernel(real: Array, imag: Array) -> Array:
        result = np.empty(np.broadcast_shapes(real.shape, imag.shape), dtype)
        result.real, result.imag = real, imag
        return result

    return kernel


def select(op: Any) -> Kernel:
    return _select_few if op.result.numel <= FEW and op.result.rank else np.where


FEW = 1 << 11  # elements, for which starting `np.where` takes longer than two copies


def _select_few(mask: Array, x: Array, y: Array) -> Array:
    result = y.copy()
    np.copyto(result, x, where=mask)
    return result


def clamp(op: Any) -> Kernel:
    return widened(lambda low, x, high: np.minimum(np.maximum(low, x), high), op.x.dtype)


COMPARISONS: dict[str, Kernel] = {
    "EQ": np.equal,
    "NE": np.not_equal,
    "GE": np.greater_equal,
    "GT": np.greater,
    "LE": np.less_equal,
    "LT": np.less,
}


def compare(op: Any) -> Kernel:
    ufunc, dtype = COMPARISONS[op.direction], op.x.dtype
    if op.total_order:
        return lambda x, y: ufunc(total_order(x), total_order(y))
    if dtype.is_floating_point and dtype.itemsize < 4:
        return lambda x, y: ufunc(x.astype(np.float32), y.astype(np.float32))
    return ufunc


def total_order(x: Array) -> Array:
    """Integers in the order that IEEE gives all floats: -NaN, -inf, ..., -0, 0, ..., inf, NaN."""
    bits = np.asarray(x).view(f"i{x.dtype.itemsize}")
    return np.where(bits < 0, bits ^ np.iinfo(bits.dtype).max, bits)


def next_after(op: Any) -> Kernel:
    """The next float from x towards y, one step in the bits; also for floats that C has no function for."""
    dtype = op.x.dtype.numpy
    if dtype.kind == "f" and dtype.itemsize >= 4:
        return np.nextafter
    signed = np.dtype(f"i{dtype.itemsize}")
    largest = np.iinfo(signed).max

    def kernel(x: Array, y: Array) -> Array:
        from_, to = x.astype(np.float32), y.astype(np.float32)
        bits = x.view(signed)
        away = (to > from_) == (bits >= 0)
        step = (bits + np.where(away, 1, -1).astype(signed)).view(dtype)
        smallest = np.where(to > 0, signed.type(1), signed.type(1) | ~largest).astype(signed).view(dtype)
        moved = np.where(from_ == 0, smallest, step)
        result = np.where(from_ == to, y, moved)
        unordered = np.isnan(from_) | np.isnan(to)
        return np.where(unordered, np.array(np.nan).astype(dtype), result)

    return kernel
