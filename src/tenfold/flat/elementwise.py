"""Elementwise FlatIR ops: a table of names for the plain ones, code for the others.

Operands have one shape and, but for `Select`, `Clamp` and `Complex`, one dtype: broadcasting and Python
numbers are handled by the builders in `build.py`.
"""

from __future__ import annotations

import functools
from typing import ClassVar

from tenfold.base import dtypes
from tenfold.base.dtypes import DType
from tenfold.base.errors import ArgumentError, DTypeError, ShapeError
from tenfold.flat.ir import Op, TensorType, Value

DIRECTIONS = ("EQ", "NE", "GE", "GT", "LE", "LT")


def same_shape(op: Op, *operands: Value) -> None:
    first = operands[0]
    for other in operands[1:]:
        if other.type.shape != first.type.shape:
            raise ShapeError(f"{op.name}: operands differ in shape: {first.type} and {other.type}")


def same_dtype(op: Op, *operands: Value) -> None:
    first = operands[0]
    for other in operands[1:]:
        if other.type.dtype is not first.type.dtype:
            raise DTypeError(
                f"{op.name}: operands differ in dtype: {first.type} and {other.type}",
                help="convert one of them, for example with .to(dtype)",
            )


class Elementwise(Op):
    """One dtype in, one dtype out: `kinds` says which, `result_dtype` what comes out if not the same."""

    kinds: ClassVar[str] = ""
    accepted: ClassVar[frozenset[DType]] = frozenset()
    result_dtype: ClassVar[DType | str | None] = None

    def infer(self) -> TensorType:
        first = self.operands[0]
        if len(self.operands) > 1:
            same_shape(self, *self.operands)
            same_dtype(self, *self.operands)
        if first.type.dtype not in self.accepted:
            raise DTypeError(
                f"{self.name.split('.')[1]} is not defined for {first.type.dtype.name}",
                help=f"it takes {self.kinds.replace('signed', 'signed int').replace(' ', ', ')} tensors",
            )
        if self.result_dtype is None:
            return first.type
        if self.result_dtype == "real":
            return TensorType(first.dtype.to_real(), first.shape)
        assert isinstance(self.result_dtype, DType)
        return TensorType(self.result_dtype, first.shape)


class Unary(Elementwise):
    x: Value


class Binary(Elementwise):
    x: Value
    y: Value


def _declare(base: type, name: str, kinds: str, result: DType | str | None = None) -> type:
    class_name = "".join(part.capitalize() for part in name.split(".")[1].split("_"))
    body = {
        "name": name,
        "kinds": kinds,
        "accepted": _dtypes(kinds),
        "result_dtype": result,
        "__module__": __name__,
    }
    return type(class_name, (base,), body)


@functools.cache
def _dtypes(kinds: str) -> frozenset[DType]:
    words = kinds.split()
    signed = [dtype for dtype in dtypes.ALL if dtype.kind == "int" and dtype.is_signed and "signed" in words]
    return frozenset(signed + [dtype for dtype in dtypes.ALL if dtype.kind in words])


def _unary(name: str, kinds: str, result: DType | str | None = None) -> type[Unary]:
    return _declare(Unary, name, kinds, result)


def _binary(name: str, kinds: str, result: DType | str | None = None) -> type[Binary]:
    return _declare(Binary, name, kinds, result)


Abs = _unary("stablehlo.abs", "signed float complex", "real")
Cbrt = _unary("stablehlo.cbrt", "float")
Ceil = _unary("stablehlo.ceil", "float")
CountLeadingZeros = _unary("stablehlo.count_leading_zeros", "int")
Cosine = _unary("stablehlo.cosine", "float complex")
Exponential = _unary("stablehlo.exponential", "float complex")
ExponentialMinusOne = _unary("stablehlo.exponential_minus_one", "float complex")
Floor = _unary("stablehlo.floor", "float")
Imag = _unary("stablehlo.imag", "float complex", "real")
IsFinite = _unary("stablehlo.is_finite", "float", dtypes.bool_)
Log = _unary("stablehlo.log", "float complex")
LogPlusOne = _unary("stablehlo.log_plus_one", "float complex")
Logistic = _unary("stablehlo.logistic", "float complex")
Negate = _unary("stablehlo.negate", "int float complex")
Not = _unary("stablehlo.not", "bool int")
Real = _unary("stablehlo.real", "float complex", "real")
RoundNearestEven = _unary("stablehlo.round_nearest_even", "float")
Rsqrt = _unary("stablehlo.rsqrt", "float complex")
Sign = _unary("stablehlo.sign", "signed float complex")
Sine = _unary("stablehlo.sine", "float complex")
Sqrt = _unary("stablehlo.sqrt", "float complex")
Tan = _unary("stablehlo.tan", "float complex")
Tanh = _unary("stablehlo.tanh", "float complex")

Acos = _unary("chlo.acos", "float complex")
Acosh = _unary("chlo.acosh", "float complex")
Asin = _unary("chlo.asin", "float complex")
Asinh = _unary("chlo.asinh", "float complex")
Atan = _unary("chlo.atan", "float complex")
Atanh = _unary("chlo.atanh", "float complex")
BesselI1e = _unary("chlo.bessel_i1e", "float")
Conj = _unary("chlo.conj", "complex")
Cosh = _unary("chlo.cosh", "float complex")
Digamma = _unary("chlo.digamma", "float")
Erf = _unary("chlo.erf", "float")
Erfc = _unary("chlo.erfc", "float")
ErfInv = _unary("chlo.erf_inv", "float")
Lgamma = _unary("chlo.lgamma", "float")
Sinh = _unary("chlo.sinh", "float complex")

Add = _binary("stablehlo.add", "bool int float complex")
Atan2 = _binary("stablehlo.atan2", "float complex")
Divide = _binary("stablehlo.divide", "int float complex")
Maximum = _binary("stablehlo.maximum", "bool int float complex")
Minimum = _binary("stablehlo.minimum", "bool int float complex")
Multiply = _binary("stablehlo.multiply", "bool int float complex")
Power = _binary("stablehlo.power", "int float complex")
Remainder = _binary("stablehlo.remainder", "int float")
ShiftLeft = _binary("stablehlo.shift_left", "int")
ShiftRightArithmetic = _binary("stablehlo.shift_right_arithmetic", "int")
ShiftRightLogical = _binary("stablehlo.shift_right_logical", "int")
Subtract = _binary("stablehlo.subtract", "int float complex")
And = _binary("stablehlo.and", "bool int")
Or = _binary("stablehlo.or", "bool int")
Xor = _binary("stablehlo.xor", "bool int")
NextAfter = _binary("chlo.next_after", "float")
Polygamma = _binary("chlo.polygamma", "float")
Zeta = _binary("chlo.zeta", "float")


class Compare(Op):
    """`direction` is EQ, NE, GE, GT, LE or LT; floats compare as IEEE says, except under `total_order`."""

    name: ClassVar[str] = "stablehlo.compare"
    x: Value
    y: Value
    direction: str
    total_order: bool

    def infer(self) -> TensorType:
        same_shape(self, self.x, self.y)
        same_dtype(self, self.x, self.y)
        if self.direction not in DIRECTIONS:
            raise ArgumentError(f"compare: {self.direction!r} is not one of {', '.join(DIRECTIONS)}")
        if self.total_order and not self.x.dtype.is_floating_point:
            raise DTypeError(f"compare: a total order is one of floats, not of {self.x.dtype.name}")
        if self.x.dtype.is_complex and self.direction not in ("EQ", "NE"):
            raise DTypeError("complex numbers have no order", help="compare .abs(), .real or .imag")
        return TensorType(dtypes.bool_, self.x.shape)


class Select(Op):
    name: ClassVar[str] = "stablehlo.select"
    predicate: Value
    on_true: Value
    on_false: Value

    def infer(self) -> TensorType:
        if self.predicate.dtype is not dtypes.bool_:
            raise DTypeError(f"select: the condition must be bool, not {self.predicate.dtype.name}")
        same_shape(self, self.predicate, self.on_true, self.on_false)
        same_dtype(self, self.on_true, self.on_false)
        return self.on_true.type


class Clamp(Op):
    name: ClassVar[str] = "stablehlo.clamp"
    low: Value
    x: Value
    high: Value

    def infer(self) -> TensorType:
        same_shape(self, self.x, self.low, self.high)
        same_dtype(self, self.x, self.low, self.high)
        if self.x.dtype.is_complex:
            raise DTypeError("clamp is not defined for complex numbers")
        return self.x.type


class Complex(Op):
    name: ClassVar[str] = "stablehlo.complex"
    real: Value
    imag: Value

    def infer(self) -> TensorType:
        same_shape(self, self.real, self.imag)
        same_dtype(self, self.real, self.imag)
        if self.real.dtype not in (dtypes.float32, dtypes.float64):
            raise DTypeError(f"complex needs float32 or float64 parts, not {self.real.dtype.name}")
        return TensorType(self.real.dtype.to_complex(), self.real.shape)


class Convert(Op):
    name: ClassVar[str] = "stablehlo.convert"
    x: Value
    dtype: DType

    def infer(self) -> TensorType:
        return TensorType(self.dtype, self.x.shape)


class BitcastConvert(Op):
    """The same bits as another dtype; a change of width adds or removes a last dimension."""

    name: ClassVar[str] = "stablehlo.bitcast_convert"
    x: Value
    dtype: DType

    def infer(self) -> TensorType:
        kinds = {self.x.dtype.kind, self.dtype.kind}
        if len(kinds) > 1 and kinds != {"int", "float"}:
            raise DTypeError(
                f"the bits of {self.x.dtype.name} cannot be read as {self.dtype.name}",
                help="only those of integers and floats can be read as one another",
            )
        old, new = self.x.dtype.itemsize, self.dtype.itemsize
        if old == new:
            return TensorType(self.dtype, self.x.shape)
        if old > new:
            return TensorType(self.dtype, (*self.x.shape, old // new))
        if not self.x.shape or self.x.shape[-1] != new // old:
            raise ShapeError(
                f"cannot view {self.x.type} as {self.dtype.name}: the last dimension must be {new // old}"
            )
        return TensorType(self.dtype, self.x.shape[:-1])


class ReducePrecision(Op):
    name: ClassVar[str] = "stablehlo.reduce_precision"
    x: Value
    exponent_bits: int
    mantissa_bits: int

    def infer(self) -> TensorType:
        if not self.x.dtype.is_floating_point:
            raise DTypeError(
                f"reduce_precision is not defined for {self.x.dtype.name}", help="it takes float tensors"
            )
        if self.exponent_bits < 1 or self.mantissa_bits < 0:
            raise ArgumentError(
                f"reduce_precision: there are no floats of {self.exponent_bits} bits of exponent and "
                f"{self.mantissa_bits} of mantissa"
            )
        return self.x.type


class OptimizationBarrier(Op):
    """The operands unchanged, but XLA moves no computation across."""

    name: ClassVar[str] = "stablehlo.optimization_barrier"
    operands_: tuple[Value, ...]

    def infer(self) -> tuple[TensorType, ...]:
        return tuple(operand.type for operand in self.operands_)
