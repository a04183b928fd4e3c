"""Rows that make tensors from sizes and numbers, and copies. Windows and Vandermonde matrices are here too."""

from __future__ import annotations

import math

from tenfold import dtypes, flat
from tenfold.dtypes import DType
from tenfold.errors import ArgumentError, DTypeError, ShapeError
from tenfold.ops.samples import S, T
from tenfold.ops.table import op

# The keyword arguments of every row that makes a tensor.
MADE = "*, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None"
LIKE = f"{MADE}, MemoryFormat? memory_format=None"


def number_for(value: flat.Number, dtype: DType) -> flat.Number:
    """A number about to fill a tensor of this dtype: floats are cut to integers; one that does not fit is an error.

    A negative number wraps once around into an unsigned dtype, as in PyTorch.
    """
    if dtype.kind == "bool":
        return bool(value)
    if dtype.kind == "complex":
        return value
    if isinstance(value, complex):
        if value.imag:
            raise _misfit(value, dtype)
        value = value.real
    if dtype.kind == "float":
        limit = dtypes.finfo(dtype).max
        if math.isfinite(value) and abs(value) > limit:
            raise _misfit(value, dtype)
        return value
    limits = dtypes.iinfo(dtype)
    low = -limits.max if not dtype.is_signed and isinstance(value, int) else limits.min
    if value != value or not low <= value <= limits.max:
        raise _misfit(value, dtype)
    return int(value) % (limits.max + 1) if not dtype.is_signed else int(value)


def _misfit(value: flat.Number, dtype: DType) -> DTypeError:
    return DTypeError(f"the number {value} does not fit {dtype.name}", help="choose a wider dtype")


def _filled(size: tuple[int, ...], value: flat.Number, dtype: DType) -> flat.Value:
    if any(extent < 0 for extent in size):
        raise ShapeError(f"a tensor cannot have the shape {list(size)}: {min(size)} is negative")
    return flat.full(size, number_for(value, dtype), dtype)


_SIZES = lambda: [S((2, 3)), S(()), S((0, 3))]


@op(
    f"full(SymInt[] size, Scalar fill_value, {MADE}) -> Tensor",
    samples=lambda: [S((2, 3), 1.5), S((), 2), S((0, 3), True), S((2,), 3, dtype=dtypes.int8)],
)
def full(size, fill_value, dtype):
    return _filled(size, fill_value, dtype or dtypes.of_python(fill_value))


@op(f"zeros(SymInt[] size, {MADE}) -> Tensor", samples=_SIZES)
def zeros(size, dtype):
    return _filled(size, 0, dtype or dtypes.get_default_dtype())


@op(f"ones(SymInt[] size, {MADE}) -> Tensor", samples=_SIZES)
def ones(size, dtype):
    return _filled(size, 1, dtype or dtypes.get_default_dtype())


UNSET = "PyTorch leaves whatever the memory held; here it is zeros"


@op(f"empty.memory_format(SymInt[] size, {LIKE}) -> Tensor", samples=_SIZES, differs=UNSET)
def empty(size, dtype):
    return zeros(size, dtype)


@op(f"full_like(Tensor self, Scalar fill_value, {LIKE}) -> Tensor", method=False)
def full_like(x, fill_value, dtype):
    return _filled(x.shape, fill_value, dtype or x.dtype)


@op(f"zeros_like(Tensor self, {LIKE}) -> Tensor", method=False)
def zeros_like(x, dtype):
    return full_like(x, 0, dtype)


@op(f"ones_like(Tensor self, {LIKE}) -> Tensor", method=False)
def ones_like(x, dtype):
    return full_like(x, 1, dtype)


@op(f"empty_like(Tensor self, {LIKE}) -> Tensor", method=False, differs=UNSET)
def empty_like(x, dtype):
    return full_like(x, 0, dtype)


_NEW = lambda: [S(T(2), (2, 3)), S(T(3, 4), ()), S(T(0), (0, 2), dtype=dtypes.int16)]


@op(
    f"new_full(Tensor self, SymInt[] size, Scalar fill_value, {MADE}) -> Tensor",
    function=False,
    samples=lambda: [S(T(2), (2, 3), 1), S(T(3, 4), (), True), S(T(0), (0, 2), 1.5, dtype=dtypes.float64)],
)
def new_full(x, size, fill_value, dtype):
    return _filled(size, fill_value, dtype or x.dtype)


@op(f"new_zeros(Tensor self, SymInt[] size, {MADE}) -> Tensor", function=False, samples=_NEW)
def new_zeros(x, size, dtype):
    return new_full(x, size, 0, dtype)


@op(f"new_ones(Tensor self, SymInt[] size, {MADE}) -> Tensor", function=False, samples=_NEW)
def new_ones(x, size, dtype):
    return new_full(x, size, 1, dtype)


@op(f"new_empty(Tensor self, SymInt[] size, {MADE}) -> Tensor", function=False, samples=_NEW, differs=UNSET)
def new_empty(x, size, dtype):
    return new_full(x, size, 0, dtype)


@op(f"scalar_tensor(Scalar s, {MADE}) -> Tensor", samples=lambda: [S(2), S(1.5), S(3, dtype=dtypes.int16)])
def scalar_tensor(s, dtype):
    return _filled((), s, dtype or dtypes.get_default_dtype())


@op("clone(Tensor self, *, MemoryFormat? memory_format=None) -> Tensor")
def clone(x):
    return x


@op(
    "_to_copy(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, "
    "bool? pin_memory=None, bool non_blocking=False, MemoryFormat? memory_format=None) -> Tensor",
    function=False,
    method=False,
)
def _to_copy(x, dtype):
    return flat.convert(x, dtype or x.dtype)


# Sequences


def _ramp(start: flat.Number, step: flat.Number, count: int, dtype: DType) -> flat.Value:
    """start + step · i, computed in a dtype wide enough and rounded once."""
    wide = dtypes.int64 if dtype.kind == "int" else dtypes.float64
    steps = flat.arange(count, wide)
    if step != 1:
        steps = steps * step
    return flat.convert(steps + start if start else steps, dtype)


def _sequence_dtype(name: str, dtype: DType | None, *numbers: flat.Number) -> DType:
    if dtype is None:
        whole = all(isinstance(each, int) for each in numbers)
        dtype = dtypes.int64 if whole else dtypes.get_default_dtype()
    if dtype.kind not in ("int", "float"):
        raise DTypeError(f"{name} does not count in {dtype.name}", help="use an integer or floating-point dtype")
    return dtype


@op(
    f"arange(Scalar end, {MADE}) -> Tensor",
    f"arange.start(Scalar start, Scalar end, {MADE}) -> Tensor",
    f"arange.start_step(Scalar start, Scalar end, Scalar step=1, {MADE}) -> Tensor",
    samples=list,
)
def arange(*arguments):
    """start, start + step, start + 2·step, … up to, and without, end."""
    *numbers, dtype = arguments
    start, end, step = [0, *numbers, 1] if len(numbers) == 1 else [*numbers, 1][:3]
    if any(isinstance(each, complex) for each in (start, end, step)):
        raise DTypeError("arange: complex numbers have no order")
    dtype = _sequence_dtype("arange", dtype, start, end, step)
    if not all(map(math.isfinite, (start, end, step))):
        raise ArgumentError(f"arange: no range from {start} to {end} by {step}")
    if dtype is dtypes.int64:
        start, end, step = int(start), int(end), int(step)
    if step == 0:
        raise ArgumentError("arange: the step is 0", help="give a step that leads from start to end")
    if (end - start) * step < 0:
        raise ArgumentError(f"arange: a step of {step} does not lead from {start} to {end}")
    count = -((start - end) // step) if dtype is dtypes.int64 else math.ceil((end - start) / step)
    if dtype.kind == "int":
        start, step = int(start), int(step)
    return _ramp(start, step, count, dtype)


@op(f"range.step(Scalar start, Scalar end, Scalar step=1, {MADE}) -> Tensor", samples=list)
def range_(start, end, step, dtype):
    """start, start + step, … up to, and with, end."""
    dtype = _sequence_dtype("range", dtype or dtypes.get_default_dtype())
    if step == 0 or (end - start) * step < 0 or not all(map(math.isfinite, (start, end, step))):
        raise ArgumentError(f"range: a step of {step} does not lead from {start} to {end}")
    return _ramp(start, step, int((end - start) / step) + 1, dtype)
