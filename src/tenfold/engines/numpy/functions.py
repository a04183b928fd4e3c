"""Kernels of elementary functions: exponentials, logarithms, trigonometric and hyperbolic ones.

In float32 each lies within 2 units in the last place of XLA's: where XLA's own formula is less exact than
NumPy's, it is used here as well.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tenfold.base.dtypes import DType
from tenfold.engines.numpy import arithmetic
from tenfold.engines.numpy.kernels import Array, Kernel, widened


def function(real: Kernel, complex: Kernel | None = None) -> Callable[[Any], Kernel]:
    """A rule for a function of floats, and another for complex numbers if it is not the same."""

    def rule(op: Any) -> Kernel:
        dtype: DType = op.operands[0].dtype
        return (complex or real) if dtype.is_complex else widened(real, dtype)

    return rule


def logistic(x: Array) -> Array:
    one = x.dtype.type(1)
    return one / (one + np.exp(-x))


def rsqrt(x: Array) -> Array:
    return x.dtype.type(1) / np.sqrt(x)


def power(op: Any) -> Kernel:
    dtype: DType = op.x.dtype
    if dtype.kind == "int":
        return arithmetic.power_of_integers
    return _complex_power if dtype.is_complex else widened(np.power, dtype)


def _complex_power(x: Array, y: Array) -> Array:
    """By polar coordinates, as XLA: 0 to the 0 is 1, and to anything else 0."""
    result = np.exp(y * np.log(x))
    zero = (x == 0) & (y.real > 0)
    return np.where(y == 0, x.dtype.type(1), np.where(zero, x.dtype.type(0), result))


def complex_atan2(y: Array, x: Array) -> Array:
    """-i log((x + iy) / sqrt(x² + y²)), by the specification."""
    i = y.dtype.type(1j)
    return (-i * np.log((x + i * y) / np.sqrt(x * x + y * y))).astype(y.dtype)
