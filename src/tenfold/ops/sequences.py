"""Rows that make sequences of numbers: ranges, and evenly spaced numbers."""

from __future__ import annotations

import functools
import math

from tenfold import flat
from tenfold.base import dtypes
from tenfold.base.dtypes import DType
from tenfold.base.errors import ArgumentError, DTypeError, ShapeError
from tenfold.flat import Value
from tenfold.ops.creation import MADE
from tenfold.ops.numbers import number_in
from tenfold.ops.samples import S, T
from tenfold.ops.table import op, written


def _ramp(start: float, step: float, count: int, dtype: DType) -> Value:
    """start + step · i, computed in a dtype wide enough and rounded once."""
    wide = dtypes.int64 if dtype.kind == "int" else dtypes.float64
    steps = flat.arange(count, wide)
    if step < 0 and not start:
        steps = flat.where(flat.eq(steps, 0), 0, steps * step)  # 0 times the step would be -0.0
    elif step != 1:
        steps = steps * step
    return flat.convert(steps + start if start else steps, dtype)


# An op that fills a vector; an `out=` that holds as many elements is filled in its own shape.
sequence = functools.partial(op, fills_out=True)
# Of tensors: no gradient flows to them, as in PyTorch.
constants = functools.partial(sequence, differentiable=False)


def _countable(name: str, dtype: DType) -> DType:
    if dtype.kind not in ("int", "float"):
        raise DTypeError(f"{name} does not count in {dtype.name}", help="use an integer or float dtype")
    return dtype


@sequence(
    f"arange(Scalar end, {MADE}) -> Tensor",
    samples=lambda: [S(5), S(2.5), S(0), S(3, dtype=dtypes.float16)],
    late=written,
)
def arange(end, dtype):
    """0, 1, 2, … up to, and without, end."""
    return arange_step(0, end, 1, dtype)


@sequence(
    f"arange.start(Scalar start, Scalar end, {MADE}) -> Tensor",
    samples=lambda: [S(1, 5), S(0.5, 3), S(-3, 2)],
    late=written,
)
def arange_start(start, end, dtype):
    """start, start + 1, … up to, and without, end."""
    return arange_step(start, end, 1, dtype)


@sequence(
    f"arange.start_step(Scalar start, Scalar end, Scalar step=1, {MADE}) -> Tensor",
    samples=lambda: [
        S(1, 9, 3), S(5, 0, -2), S(0, 1, 0.1), S(0.5, 3.7, 1.5, dtype=dtypes.int64),
        S(0, 3, 1.5, dtype=dtypes.int32),
    ], needs="counted; out: counted_into", late=written, out_overload="start_out")  # fmt: skip
def arange_step(start, end, step, dtype):
    """start, start + step, start + 2 · step, … up to, and without, end."""
    numbers = (start, end, step)
    if any(isinstance(number, complex) for number in numbers):
        raise DTypeError("arange: complex numbers have no order")
    if dtype is None:
        whole = all(isinstance(number, int) for number in numbers)
        dtype = dtypes.int64 if whole else dtypes.get_default_dtype()
    _countable("arange", dtype)
    if not all(map(math.isfinite, numbers)):
        raise ArgumentError(f"arange: no range leads from {start} to {end} by {step}")
    if dtype is dtypes.int64:
        start, end, step = (number_in(number, dtype) for number in numbers)
    if step == 0:
        raise ArgumentError("arange: the step is 0", help="give a step that leads from start to end")
    if (end - start) * step < 0:
        raise ArgumentError(f"arange: a step of {step} does not lead from {start} to {end}")
    count = -((start - end) // step) if dtype is dtypes.int64 else math.ceil((end - start) / step)
    if dtype.kind == "int":
        start, step = int(start), int(step)
    return _ramp(start, step, count, dtype)


@sequence(
    f"range(Scalar start, Scalar end, {MADE}) -> Tensor",
    samples=lambda: [S(1, 4), S(0.5, 3.2)],
    needs="out: out_in_memory",
    late=written,
)
def range_(start, end, dtype):
    """start, start + 1, … up to, and with, end."""
    return range_step(start, end, 1, dtype)


@sequence(
    f"range.step(Scalar start, Scalar end, Scalar step=1, {MADE}) -> Tensor",
    samples=lambda: [S(1, 4, 1.5), S(5, 1, -2), S(1, 9, 2)],
    needs="whole_step; out: whole_step_into",
    out_overload="out",
    late=written,
)
def range_step(start, end, step, dtype):
    """start, start + step, … up to, and with, end."""
    dtype = _countable("range", dtype or dtypes.get_default_dtype())
    if dtype.kind == "int" and all(map(math.isfinite, (start, end, step))):
        start, end, step = int(start), int(end), int(step)
    if not all(map(math.isfinite, (start, end, step))) or step == 0 or (end - start) * step < 0:
        raise ArgumentError(f"range: a step of {step} does not lead from {start} to {end}")
    return _ramp(start, step, int((end - start) / step) + 1, dtype)


# Evenly spaced numbers


def _spaced(
    name: str, start: flat.Operand, end: flat.Operand, steps: int, dtype: DType | None
) -> tuple[Value, DType]:
    """Numbers from start to end, reckoned from the nearer of the two, and the dtype wanted of them."""
    if steps < 0:
        raise ArgumentError(f"{name}: there are no {steps} steps")
    ends = (start, end)
    for each in ends:
        if isinstance(each, Value) and each.rank:
            raise ShapeError(f"{name} takes zero-dimensional tensors for its ends, not {each.type}")
    if dtype is None:
        complex_ends = any(
            each.dtype.is_complex if isinstance(each, Value) else isinstance(each, complex) for each in ends
        )
        dtype = dtypes.default_complex_dtype() if complex_ends else dtypes.get_default_dtype()
    if dtype.kind == "bool" and steps > 1:
        raise DTypeError(f"{name} does not space bools")
    first = _end(start, dtype)
    if steps < 2:
        return flat.slice(flat.reshape(first, (1,)), (0,), (steps,)), dtype
    last = _end(end, dtype)
    step = (last - first) / (steps - 1)
    if dtype in (dtypes.float16, dtypes.bfloat16):
        step = flat.convert(flat.convert(step, dtype), dtypes.float32)
    places = flat.arange(steps)
    forward = first + step * flat.convert(places, step.dtype)
    backward = last - step * flat.convert(steps - 1 - places, step.dtype)
    return flat.where(flat.lt(places, steps // 2), forward, backward), dtype


def _end(number: flat.Operand, dtype: DType) -> Value:
    """One end as the wanted dtype holds it, in one in which steps have fractions."""
    wide = dtype if dtype.is_complex or dtype is dtypes.float64 else dtypes.float64
    if dtype.is_floating_point and dtype is not dtypes.float64:
        wide = dtypes.float32
    if not isinstance(number, Value):
        number = number_in(number, dtype)
    held = number if isinstance(number, Value) else flat.constant(number, dtypes.of_python(number))
    if isinstance(number, float):
        held = flat.constant(number, dtypes.float64)
    return flat.convert(flat.convert(held, dtype), wide)


_LINES = lambda: [
    S(0, 1, 5), S(1, 0, 4), S(0, 1, 1), S(0, 1, 0), S(0, 10, 4, dtype=dtypes.int64),
    S(-3.5, 2, 8, dtype=dtypes.float64),
    S(0, 10, 4, dtype=dtypes.float16),
]  # fmt: skip
_T0 = T(dtype="float32", low=0, high=2)


@sequence(f"linspace(Scalar start, Scalar end, int steps, {MADE}) -> Tensor", samples=_LINES)
@constants(f"linspace.Tensor_Tensor(Tensor start, Tensor end, int steps, {MADE}) -> Tensor",
    samples=lambda: [S(_T0, _T0, 5), S(_T0, _T0, 1)])  # fmt: skip
@constants(
    f"linspace.Tensor_Scalar(Tensor start, Scalar end, int steps, {MADE}) -> Tensor",
    samples=lambda: [S(_T0, 3, 5)],
)
@constants(
    f"linspace.Scalar_Tensor(Scalar start, Tensor end, int steps, {MADE}) -> Tensor",
    samples=lambda: [S(3, _T0, 5)],
)
def linspace(start, end, steps, dtype):
    """`steps` numbers from start to end, both among them, evenly spaced."""
    numbers, dtype = _spaced("linspace", start, end, steps, dtype)
    return flat.convert(numbers, dtype)


@sequence(
    f"logspace(Scalar start, Scalar end, int steps, float base=10.0, {MADE}) -> Tensor",
    samples=lambda: [S(0, 1, 5), S(0, 3, 4, dtype=dtypes.int64), S(0, 3, 4, 2.0), S(1, 2, 1), S(0, 1, 0)],
)
@constants(f"logspace.Tensor_Tensor(Tensor start, Tensor end, int steps, float base=10.0, {MADE}) -> Tensor",
    samples=lambda: [S(_T0, _T0, 5)])  # fmt: skip
@constants(f"logspace.Tensor_Scalar(Tensor start, Scalar end, int steps, float base=10.0, {MADE}) -> Tensor",
    samples=lambda: [S(_T0, 2, 5)])  # fmt: skip
@constants(f"logspace.Scalar_Tensor(Scalar start, Tensor end, int steps, float base=10.0, {MADE}) -> Tensor",
    samples=lambda: [S(1, _T0, 5)])  # fmt: skip
def logspace(start, end, steps, base, dtype):
    """base to the power of evenly spaced numbers."""
    exponents, dtype = _spaced("logspace", start, end, steps, dtype)
    return flat.convert(flat.power(flat.full_like(exponents, base), exponents), dtype)
