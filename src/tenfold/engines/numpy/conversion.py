"""Kernels that change the dtype or the precision of numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from tenfold.base.dtypes import DType
from tenfold.engines.numpy.kernels import Array, Kernel


def convert(op: Any) -> Kernel:
    return converter(op.x.dtype, op.dtype)


def converter(source: DType, target: DType) -> Kernel:
    """From one dtype to another: floats become integers towards zero, at most the largest and at least the
    smallest that there is, NaN 0; wider integers lose their upper bits; of a complex number the real part
    stays, and it is true if either part is not zero."""
    dtype = target.numpy
    if source is target:
        return lambda x: x
    if target.kind == "bool":
        return lambda x: x != 0
    if source.is_complex and not target.is_complex:
        real = converter(source.to_real(), target)
        return lambda x: real(x.real)
    if source.is_floating_point and target.kind == "int":
        return _saturating(source, target)
    if source.is_floating_point and source.itemsize < 4 and (target.is_complex or target.itemsize < 4):
        return lambda x: x.astype(np.float32).astype(dtype)
    if source.kind == "int" and target.is_floating_point and target.itemsize < 4:
        # ml_dtypes would go by way of float32, and round twice.
        return lambda x: _rounded_to_odd(x).astype(dtype)
    return lambda x: x.astype(dtype)


def _rounded_to_odd(x: Array) -> Array:
    """Integers as float64 whose last bit says whether something was lost, so that rounding again is exact."""
    if x.dtype.itemsize < 8:
        return x.astype(np.float64)
    wide = x.astype(np.float64)
    lost = (x & x.dtype.type(0x3FF)) != 0
    large = np.abs(wide) >= 2.0**53
    bits = np.trunc(wide).view(np.int64)
    return np.where(large & lost, bits | 1, bits).view(np.float64)


def _saturating(source: DType, target: DType) -> Kernel:
    limits, dtype = np.iinfo(target.numpy), target.numpy
    wide = np.dtype(np.float32 if source.itemsize < 4 else source.numpy)
    # As floats, 2**31 - 1 is 2**31: what is not below it is the largest.
    low, high = wide.type(limits.min), wide.type(float(limits.max) + 1)

    def kernel(x: Array) -> Array:
        x = x.astype(wide, copy=False)
        inside = (x > low) & (x < high)
        result = np.where(inside, x, 0).astype(dtype)
        return np.where(x >= high, dtype.type(limits.max), np.where(x <= low, dtype.type(limits.min), result))

    return kernel


def bitcast(op: Any) -> Kernel:
    dtype, shape = op.dtype.numpy, op.result.shape
    if op.x.dtype.itemsize == op.dtype.itemsize:
        return lambda x: np.asarray(x).view(dtype)
    if op.x.dtype.itemsize > op.dtype.itemsize:
        return lambda x: np.ascontiguousarray(x).reshape(*x.shape, 1).view(dtype).reshape(shape)
    return lambda x: np.ascontiguousarray(x).view(dtype).reshape(shape)


def reduce_precision(op: Any) -> Kernel:
    """Floats rounded to fewer bits of exponent and mantissa, as bits are: to nearest, ties to even."""
    dtype: DType = op.x.dtype
    numpy, exponent, mantissa = dtype.numpy, op.exponent_bits, op.mantissa_bits
    if dtype.itemsize < 4:
        return lambda x: _rounded(x.astype(np.float32), exponent, mantissa).astype(numpy)
    return lambda x: _rounded(x, exponent, mantissa)


def _rounded(x: Array, exponent: int, mantissa: int) -> Array:
    kept, width = (23, 8) if x.dtype.itemsize == 4 else (52, 11)
    unsigned = np.dtype(f"u{x.dtype.itemsize}").type
    bits = x.view(unsigned)
    dropped = kept - mantissa
    if dropped > 0:
        last = (bits >> unsigned(dropped)) & unsigned(1)
        half = unsigned((1 << (dropped - 1)) - 1)
        bits = (bits + half + last) & ~unsigned((1 << dropped) - 1)
    if exponent < width:
        sign = bits & unsigned(1 << (kept + width))
        field = bits & unsigned(((1 << width) - 1) << kept)
        bias, narrow = (1 << (width - 1)) - 1, (1 << (exponent - 1)) - 1
        infinite = unsigned(((1 << width) - 1) << kept)
        bits = np.where(field > unsigned((bias + narrow) << kept), sign | infinite, bits)
        bits = np.where(field <= unsigned((bias - narrow) << kept), sign, bits)
    return np.where(np.isnan(x), x, bits.view(x.dtype))
