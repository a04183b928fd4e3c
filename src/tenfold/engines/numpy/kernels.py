"""What a kernel is, and what kernels of several families share.

A kernel is a function from NumPy arrays to an array, or to a tuple of arrays where its op has several
results. It is made once from an op, and knows its types and attributes. Kernels never write to what they are
given, except where `owned` says that nobody else has it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from tenfold.base.dtypes import DType, float32
from tenfold.flat.ir import Op

Array = np.ndarray
Kernel = Callable[..., Any]

# For each class of FlatIR ops, what makes the kernel of one of them: `table.py` fills it.
KERNELS: dict[type[Op], Callable[[Any], Kernel]] = {}


def working(dtype: DType) -> np.dtype[Any]:
    """The dtype that kernels compute in: float32 for narrower floats, as XLA does on CPUs, else its own."""
    return float32.numpy if dtype.is_floating_point and dtype.itemsize < 4 else dtype.numpy


def widened(kernel: Kernel, dtype: DType, result: DType | None = None) -> Kernel:
    """A kernel on floats as one that also takes those narrower than float32: it rounds once, at the end."""
    wide, narrow = working(dtype), (result or dtype).numpy
    if wide == dtype.numpy:
        return kernel
    return lambda *arrays: np.asarray(kernel(*[array.astype(wide) for array in arrays])).astype(narrow)


def owned(array: Array) -> bool:
    """Whether a kernel, which asks this of an argument of its own, may write over it: it is the memory of an
    intermediate that nothing but this call refers to."""
    return sys.getrefcount(array) <= REFERENCES and array.base is None and array.flags.writeable


def call(kernel: Kernel, arrays: tuple[Array, ...]) -> Any:
    """Call a kernel as plans do: `arrays` has the only references to those that are not used again."""
    return kernel(*arrays)


# How many references `owned` sees to an array that only its call has: these depend on Python's version.
REFERENCES = 1 << 30
REFERENCES = call(lambda array: (sys.getrefcount(array), owned(array))[0] + 1, (np.empty(1),))
