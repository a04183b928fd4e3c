"""Builders of FlatIR values: what lowerings call. Broadcasting and Python numbers are handled here, once.

In every builder an operand may be a Python number: it takes the dtype of the values beside it. Dimensions may
be negative. The classes are in the files beside this one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tenfold.base import dtypes
from tenfold.base.dtypes import DType
from tenfold.base.errors import IndexOutOfRange, ShapeError
from tenfold.flat import data_ops as m, elementwise as e
from tenfold.flat.ir import LateNumber, Value

Number = bool | int | float | complex
Operand = Value | Number
Ints = tuple[int, ...]


# Constants and dimensions


def constant(value: Any, dtype: DType) -> Value:
    """A literal scalar or small array; a late number in this dtype."""
    if type(value) is LateNumber:
        return convert(plain(value), dtype)
    return m.Constant(m.array(value, dtype), dtype).result


def full(shape: Sequence[int], value: Number, dtype: DType) -> Value:
    return broadcast_to(constant(value, dtype), shape)


def full_like(x: Value, value: Number) -> Value:
    return full(x.shape, value, x.dtype)


def iota(shape: Sequence[int], dim: int, dtype: DType = dtypes.int64) -> Value:
    """Each element is its own place along `dim`. bool is not a dtype that counts."""
    return m.Iota(dtype, tuple(shape), dim).result


def arange(count: int, dtype: DType = dtypes.int64) -> Value:
    return iota((count,), 0, dtype)


def lowest(dtype: DType) -> Number:
    """The identity of maximum: -inf for floats that have it."""
    if dtype.kind == "bool":
        return False
    if dtype is dtypes.float8_e4m3fn:
        return dtypes.finfo(dtype).min
    return int(np.iinfo(dtype.numpy).min) if dtype.kind == "int" else float("-inf")


def highest(dtype: DType) -> Number:
    """The identity of minimum: inf for floats that have it."""
    if dtype.kind == "bool":
        return True
    if dtype is dtypes.float8_e4m3fn:
        return dtypes.finfo(dtype).max
    return int(np.iinfo(dtype.numpy).max) if dtype.kind == "int" else float("inf")


def axis(dim: int, rank: int) -> int:
    """`dim` counted from the front; zero-dimensional tensors accept 0 and -1, as in PyTorch."""
    extent = max(rank, 1)
    if not -extent <= dim < extent:
        raise IndexOutOfRange(
            f"dimension {dim} is out of range for a tensor of {rank} dimensions",
            help=f"use {-extent} to {extent - 1}",
        )
    return dim % extent


def axes(dims: int | Sequence[int] | None, rank: int) -> Ints:
    """Distinct dimensions counted from the front; None and () mean all, as in PyTorch's reductions."""
    if dims is None or (not isinstance(dims, int) and len(dims) == 0):
        return tuple(range(rank))
    places = tuple([axis(d, rank) for d in ((dims,) if isinstance(dims, int) else dims)])
    if len(set(places)) != len(places):
        raise ShapeError(
            f"dimension {next(d for d in places if places.count(d) > 1)} appears twice in {list(places)}"
        )
    return places if rank else ()


# Broadcasting


def broadcast_shapes(*shapes: Ints) -> Ints:
    """The shape to which all of these stretch, by NumPy's rule."""
    result: list[int] = []
    for shape in shapes:
        if len(shape) > len(result):
            result = [1] * (len(shape) - len(result)) + result
        for back in range(1, len(shape) + 1):
            extent = shape[-back]
            if extent != 1:
                if result[-back] not in (1, extent):
                    raise _mismatch(shapes, back, result[-back], extent)
                result[-back] = extent
    return tuple(result)


def _mismatch(shapes: Sequence[Ints], back: int, left: int, right: int) -> ShapeError:
    where = "the last dimension" if back == 1 else f"dimension -{back}"
    texts = " with ".join(str(list(shape)) for shape in shapes)
    return ShapeError(
        f"cannot broadcast {texts}: {left} and {right} differ in {where}",
        help="unsqueeze or slice one operand so that the trailing dimensions agree",
    )


def broadcast_to(x: Value, shape: Sequence[int]) -> Value:
    """x stretched to `shape`, aligned at the last dimension."""
    shape = tuple(shape)
    if x.type.shape == shape:
        return x
    if x.rank > len(shape):
        raise ShapeError(f"cannot broadcast {x.type} to {list(shape)}: it has more dimensions")
    return m.BroadcastInDim(x, shape, tuple(range(len(shape) - x.rank, len(shape)))).result


def broadcast(*operands: Operand, dtype: DType | None = None) -> list[Value]:
    """The operands as values of one shape; numbers become constants of the dtype of values beside them."""
    values = [
        operand for operand in operands if isinstance(operand, Value) and type(operand) is not LateNumber
    ]
    if dtype is None:
        if not values:
            raise TypeError("an op needs a value beside its numbers")
        dtype = values[0].dtype
    first = values[0].type.shape if values else ()
    if all(value.type.shape == first for value in values):
        shape = first
    else:
        try:
            shape = broadcast_shapes(*[value.type.shape for value in values])
        except ShapeError as error:
            texts = " with ".join(str(value.type) for value in values)
            raise ShapeError(
                f"cannot broadcast {texts}:{error.message.rpartition(':')[2]}", help=error.help
            ) from None
    result = []
    for operand in operands:
        if type(operand) is LateNumber:
            operand = convert(operand, dtype)
        result.append(
            broadcast_to(operand, shape) if isinstance(operand, Value) else full(shape, operand, dtype)
        )
    return result


# Elementwise


def _unary(op: type[e.Unary]) -> Callable[[Value], Value]:
    def build(x: Value) -> Value:
        result = op(x).result
        return LateNumber.of(result) if type(x) is LateNumber else result

    build.__name__ = op.__name__
    return build


def _binary(op: type[e.Binary]) -> Callable[[Operand, Operand], Value]:
    def build(x: Operand, y: Operand) -> Value:
        if _numbers(x, y):
            return _of_numbers(op, x, y)
        x, y = broadcast(x, y)
        return op(x, y).result

    build.__name__ = op.__name__
    return build


def _numbers(*operands: Operand) -> bool:
    """Whether there are late numbers among these, and no values beside them."""
    kinds = [type(operand) for operand in operands if isinstance(operand, Value)]
    return bool(kinds) and Value not in kinds


def _of_numbers(op: type[e.Binary], x: Operand, y: Operand) -> LateNumber:
    """A late number, computed as Python would."""
    kinds = {
        operand.dtype.kind if isinstance(operand, Value) else dtypes.of_python(operand).kind
        for operand in (x, y)
    }
    dtype = dtypes.float64 if "float" in kinds or op is e.Divide else dtypes.int64
    return LateNumber.of(op(constant(x, dtype), constant(y, dtype)).result)


abs = _unary(e.Abs)
acos = _unary(e.Acos)
acosh = _unary(e.Acosh)
asin = _unary(e.Asin)
asinh = _unary(e.Asinh)
atan = _unary(e.Atan)
atanh = _unary(e.Atanh)
bessel_i1e = _unary(e.BesselI1e)
cbrt = _unary(e.Cbrt)
ceil = _unary(e.Ceil)
cos = _unary(e.Cosine)
cosh = _unary(e.Cosh)
count_leading_zeros = _unary(e.CountLeadingZeros)
digamma = _unary(e.Digamma)
erf = _unary(e.Erf)
erfc = _unary(e.Erfc)
erfinv = _unary(e.ErfInv)
exp = _unary(e.Exponential)
expm1 = _unary(e.ExponentialMinusOne)
floor = _unary(e.Floor)
imag = _unary(e.Imag)
is_finite = _unary(e.IsFinite)
lgamma = _unary(e.Lgamma)
log = _unary(e.Log)
log1p = _unary(e.LogPlusOne)
logistic = _unary(e.Logistic)
neg = _unary(e.Negate)
invert = _unary(e.Not)
real = _unary(e.Real)
round_half_even = _unary(e.RoundNearestEven)
rsqrt = _unary(e.Rsqrt)
sign = _unary(e.Sign)
sin = _unary(e.Sine)
sinh = _unary(e.Sinh)
sqrt = _unary(e.Sqrt)
tan = _unary(e.Tan)
tanh = _unary(e.Tanh)

atan2 = _binary(e.Atan2)
div = _binary(e.Divide)
maximum = _binary(e.Maximum)
minimum = _binary(e.Minimum)
nextafter = _binary(e.NextAfter)
polygamma = _binary(e.Polygamma)
rem = _binary(e.Remainder)
shift_left = _binary(e.ShiftLeft)
shift_right = _binary(e.ShiftRightArithmetic)
shift_right_logical = _binary(e.ShiftRightLogical)
sub = _binary(e.Subtract)
logical_and = _binary(e.And)
logical_or = _binary(e.Or)
logical_xor = _binary(e.Xor)
zeta = _binary(e.Zeta)


def add(x: Operand, y: Operand) -> Value:
    """A sum; of truths, whether either holds. XLA folds a sum of two constants of truth as one of bits."""
    if _numbers(x, y):
        return _of_numbers(e.Add, x, y)
    x, y = broadcast(x, y)
    return (e.Or if x.dtype is dtypes.bool_ else e.Add)(x, y).result


def mul(x: Operand, y: Operand) -> Value:
    if _numbers(x, y):
        return _of_numbers(e.Multiply, x, y)
    x, y = broadcast(x, y)
    return (e.And if x.dtype is dtypes.bool_ else e.Multiply)(x, y).result


def conj(x: Value) -> Value:
    return e.Conj(x).result if x.dtype.is_complex else x


def compare(x: Operand, y: Operand, direction: str, total_order: bool = False) -> Value:
    x, y = broadcast(x, y, dtype=dtypes.float64 if _numbers(x, y) else None)
    return e.Compare(x, y, direction, total_order).result


def eq(x: Operand, y: Operand) -> Value:
    return compare(x, y, "EQ")


def ne(x: Operand, y: Operand) -> Value:
    return compare(x, y, "NE")


def lt(x: Operand, y: Operand) -> Value:
    return compare(x, y, "LT")


def le(x: Operand, y: Operand) -> Value:
    return compare(x, y, "LE")


def gt(x: Operand, y: Operand) -> Value:
    return compare(x, y, "GT")


def ge(x: Operand, y: Operand) -> Value:
    return compare(x, y, "GE")


def isnan(x: Value) -> Value:
    return ne(x, x)


def isinf(x: Value) -> Value:
    return eq(abs(x), float("inf"))


def where(predicate: Value, on_true: Operand, on_false: Operand) -> Value:
    """Elementwise choice, all three broadcast together; at least one side is a value."""
    sides = [
        choice
        for choice in (on_true, on_false)
        if isinstance(choice, Value) and type(choice) is not LateNumber
    ]
    if _numbers(on_true, on_false) and not predicate.rank:
        on_true, on_false = (constant(choice, dtypes.float64) for choice in (on_true, on_false))
        return LateNumber.of(e.Select(predicate, on_true, on_false).result)
    if not sides:
        raise TypeError("a choice between numbers alone has no dtype")
    predicate, on_true, on_false = broadcast(predicate, on_true, on_false, dtype=sides[0].dtype)
    return e.Select(predicate, on_true, on_false).result


def clamp(x: Value, low: Operand, high: Operand) -> Value:
    x, low, high = broadcast(x, low, high)
    if x.dtype is dtypes.bool_:  # for which not all of XLA's code generators know it
        return minimum(maximum(x, low), high)
    return e.Clamp(low, x, high).result


def complex(re: Operand, im: Operand) -> Value:
    re, im = broadcast(re, im)
    return e.Complex(re, im).result


def convert(x: Value, dtype: DType) -> Value:
    """x in another dtype, as in PyTorch: complex loses its imaginary part, floats wrap into narrow ints."""
    if x.type.dtype is dtype:
        return x
    if x.dtype.is_complex and not dtype.is_complex:
        if dtype.kind == "bool":
            return ne(x, 0)
        return convert(real(x), dtype)
    if x.dtype.kind == "bool" and dtype.kind in ("float", "complex"):
        # XLA folds convert(p) * y into select(p, y, 0), which loses the NaN of 0 * inf.
        return where(x, full(x.shape, 1, dtype), 0)
    if x.dtype.is_floating_point and dtype.kind == "int" and dtype.itemsize < 4:
        x = e.Convert(x, dtypes.int32).result
    elif x.dtype.is_floating_point and dtype.kind == "int" and not dtype.is_signed:
        wrapped = e.Convert(x, dtypes.int64).result
        if dtype is dtypes.uint64:
            return where(lt(x, 0), e.Convert(wrapped, dtype).result, e.Convert(x, dtype).result)
        x = wrapped
    if dtype is dtypes.float8_e4m3fn:
        # It has no infinity: PyTorch stops at its largest number, where XLA would give NaN.
        x = clamp(x, -448.0, 448.0) if x.dtype.is_floating_point else x
    return e.Convert(x, dtype).result


def known(*numbers: Any) -> bool:
    """Whether these numbers are known while a lowering runs. What a late one stands for was checked when the
    op was recorded."""
    return not any(type(number) is LateNumber for number in numbers)


def plain(number: LateNumber) -> Value:
    """A late number as an ordinary zero-dimensional value."""
    return e.Convert(number, number.dtype).result


def bitcast(x: Value, dtype: DType) -> Value:
    return e.BitcastConvert(x, dtype).result


def barrier(*values: Value) -> tuple[Value, ...]:
    return e.OptimizationBarrier(values).results
