"""The derivatives of elementwise ops, for both modes of differentiation: `PARTIALS`.

For each operand of an op the table has a map `(t, op)` that multiplies t by the partial derivative, or None
where there is no derivative to speak of. A tangent goes through it as it is; a cotangent goes through its
conjugate (`pulled_back`), so that the gradient of a holomorphic f is ct * conj(f'(z)), as in PyTorch.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from tenfold.base import dtypes
from tenfold.base.errors import UnsupportedError
from tenfold.flat import build as b, data_ops as m, elementwise as e
from tenfold.flat.build import eq, full_like, where
from tenfold.flat.data_builders import squeeze, unsqueeze
from tenfold.flat.folding import power, sum
from tenfold.flat.ir import Op, Value

Map = Callable[[Value, Any], Value]


def carries(value: Value) -> bool:
    """Whether it can have a derivative."""
    return value.type.dtype.kind in ("float", "complex")


def conj(x: Value) -> Value:
    return x.op.x if isinstance(x.op, e.Conj) else b.conj(x)


def pulled_back(partial: Map, ct: Value, op: Op) -> Value:
    """ct times the conjugate of the partial derivative."""
    return conj(partial(conj(ct), op)) if ct.dtype.is_complex else partial(ct, op)


def number(value: Value) -> bool | int | float | complex | None:
    """The number that all its elements are, where the program says so."""
    op = value.op
    while isinstance(op, (m.BroadcastInDim, m.Reshape)):
        op = op.x.op
    return op.value.item() if isinstance(op, m.Constant) and op.value.size == 1 else None


def _same(t: Value, op: Any) -> Value:
    return t


def _minus(t: Value, op: Any) -> Value:
    return -t


def _by_base(t: Value, op: e.Binary) -> Value:
    """y * x^(y-1), and 0 where y is 0."""
    exponent = number(op.y)
    if exponent is None:
        origin = eq(op.x, 0) & eq(op.y, 0)
        return t * (op.y * power(op.x, where(origin, 0, op.y - 1)))
    if exponent == 0:
        return full_like(t, 0)
    if exponent == 1:
        return t
    few: dict[Any, int] = {2: 1, 3: 2, 4: 3, 5: 4}
    below = op.x ** few[exponent] if exponent in few else power(op.x, exponent - 1)
    return t * (below * exponent)


def _by_exponent(t: Value, op: e.Binary) -> Value:
    """x^y * log(x), and 0 where x is 0 and y is not negative."""
    y = op.y
    rising = eq(b.imag(y), 0) & (b.real(y) >= 0) if y.dtype.is_complex else y >= 0
    return t * (op.result * b.log(where(eq(op.x, 0) & rising, 1, op.x)))


def _circle(op: e.Binary) -> Value:
    """x^2 + y^2, but 1 at the origin: both derivatives are 0 there."""
    square = op.x * op.x + op.y * op.y
    return where(eq(square, 0), 1, square)


def _chosen(mine: str, other: str, lost: Callable[[Value, Value], Value]) -> Map:
    """Of the larger or smaller of two: half to each of equals."""

    def partial(t: Value, op: Any) -> Value:
        x, y = op.__dict__[mine], op.__dict__[other]
        return where(eq(x, y), t * 0.5, where(lost(x, y), 0, t))

    return partial


def _inside(t: Value, op: e.Clamp) -> Value:
    return where((op.low <= op.x) & (op.x <= op.high), t, 0)


def _below(t: Value, op: e.Clamp) -> Value:
    return where((op.x < op.low) & (op.low < op.high), t, 0)


def _above(t: Value, op: e.Clamp) -> Value:
    return where((op.x > op.high) | (op.high < op.low), t, 0)


def _quotient(op: e.Binary) -> Value:
    """x / y towards zero; of infinities and by zero, x / y."""
    rest = b.where(b.isnan(op.result), 0, op.result)
    return b.round_half_even((op.x - rest) / op.y)


def _undefined(what: str) -> Map:
    def partial(t: Value, op: Any) -> Value:
        raise UnsupportedError(f"{what} has no derivative here", help="detach it")

    return partial


def _by_bessel(t: Value, op: e.Unary) -> Value:
    """i0e(x) - i1e(x) * (sign(x) + 1 / x), and 1/2 at 0."""
    tiny = b.abs(op.x) < dtypes.finfo(op.x.dtype).eps
    x = where(tiny, 1, op.x)
    return where(tiny, t * 0.5, t * (_i0e(x) - op.result * (b.sign(x) + 1 / x)))


def _i0e(x: Value, nodes: int = 64, step: float = 0.4) -> Value:
    """exp(-|x|) times the modified Bessel function of order 0, by two integrals that the trapezoidal rule
    gets to full precision: over an angle, and far out over s where |x| * (1 - cos(angle)) is s^2."""
    size = unsqueeze(b.abs(x), x.rank)
    near = size <= 40.0
    angles = b.iota((nodes,), 0, x.dtype) * (2 * math.pi / nodes)
    around = sum(b.exp(where(near, size, 1) * (b.cos(angles) - 1)), -1) * (1 / nodes)
    squares = b.iota((16,), 0, x.dtype) * step
    squares = squares * squares
    twice = where(near, 80, size * 2)
    terms = b.exp(-squares) * b.rsqrt(1 - squares / twice) * b.rsqrt(twice)
    ends = where(eq(squares, 0), full_like(squares, 0.5), 1)
    far = sum(terms * ends, -1) * (2 * step / math.pi)
    return where(squeeze(near, x.rank), around, far)


def _by_acosh(t: Value, op: e.Unary) -> Value:
    """Of complex numbers one root of x^2 - 1 would take the wrong branch left of the imaginary axis."""
    if op.x.dtype.is_complex:
        return t * (b.rsqrt(op.x - 1) * b.rsqrt(op.x + 1))
    return t * b.rsqrt(op.x * op.x - 1)


PARTIALS: dict[type[Op], tuple[Map, ...]] = {
    e.Add: (_same, _same),
    e.Subtract: (_same, _minus),
    e.Multiply: (lambda t, op: t * op.y, lambda t, op: t * op.x),
    e.Divide: (lambda t, op: t / op.y, lambda t, op: -(t * (op.x / op.y / op.y))),
    e.Power: (_by_base, _by_exponent),
    e.Remainder: (_same, lambda t, op: -(t * _quotient(op))),
    e.Atan2: (lambda t, op: t * (op.y / _circle(op)), lambda t, op: -(t * (op.x / _circle(op)))),
    e.Maximum: (_chosen("x", "y", b.lt), _chosen("y", "x", b.lt)),
    e.Minimum: (_chosen("x", "y", b.gt), _chosen("y", "x", b.gt)),
    e.Clamp: (_below, _inside, _above),
    e.Polygamma: (_undefined("the order of polygamma"), lambda t, op: t * b.polygamma(op.x + 1, op.y)),
    e.Zeta: (_undefined("the exponent of zeta"), lambda t, op: -(t * (op.x * b.zeta(op.x + 1, op.y)))),
    e.Negate: (_minus,),
    e.ReducePrecision: (_same,),
    e.Exponential: (lambda t, op: t * op.result,),
    e.ExponentialMinusOne: (lambda t, op: t * (op.result + 1),),
    e.Log: (lambda t, op: t / op.x,),
    e.LogPlusOne: (lambda t, op: t / (op.x + 1),),
    e.Logistic: (lambda t, op: t * ((1 - op.result) * op.result),),
    e.Sqrt: (lambda t, op: t / (op.result * 2),),
    e.Rsqrt: (lambda t, op: t * (op.result**3 * -0.5),),
    e.Cbrt: (lambda t, op: t / (op.result * op.result * 3),),
    e.Sine: (lambda t, op: t * b.cos(op.x),),
    e.Cosine: (lambda t, op: -(t * b.sin(op.x)),),
    e.Tan: (lambda t, op: t * (op.result * op.result + 1),),
    e.Asin: (lambda t, op: t * b.rsqrt(1 - op.x * op.x),),
    e.Acos: (lambda t, op: -(t * b.rsqrt(1 - op.x * op.x)),),
    e.Atan: (lambda t, op: t / (op.x * op.x + 1),),
    e.Sinh: (lambda t, op: t * b.cosh(op.x),),
    e.Cosh: (lambda t, op: t * b.sinh(op.x),),
    e.Tanh: (lambda t, op: t * (1 - op.result * op.result),),
    e.Asinh: (lambda t, op: t * b.rsqrt(op.x * op.x + 1),),
    e.Acosh: (_by_acosh,),
    e.Atanh: (lambda t, op: t / (1 - op.x * op.x),),
    e.Erf: (lambda t, op: t * (b.exp(-(op.x * op.x)) * (2 / math.sqrt(math.pi))),),
    e.Erfc: (lambda t, op: t * (b.exp(-(op.x * op.x)) * (-2 / math.sqrt(math.pi))),),
    e.ErfInv: (lambda t, op: t * (b.exp(op.result * op.result) * (math.sqrt(math.pi) / 2)),),
    e.Lgamma: (lambda t, op: t * b.digamma(op.x),),
    e.Digamma: (lambda t, op: t * b.polygamma(1.0, op.x),),
    e.BesselI1e: (_by_bessel,),
}

# Constant between jumps, or not a function of numbers at all: nothing comes back through these. The sign of a
# complex number is not among them.
FLAT: frozenset[type[Op]] = frozenset(
    {
        *(e.Ceil, e.Floor, e.RoundNearestEven, e.NextAfter),
        *(e.Compare, e.IsFinite, e.BitcastConvert, m.Constant, m.Iota),
        *(e.And, e.Or, e.Xor, e.Not, e.CountLeadingZeros),
        *(e.ShiftLeft, e.ShiftRightArithmetic, e.ShiftRightLogical),
    }
)


def reached(ops: Sequence[Op], start: Iterable[Value]) -> tuple[list[Op], set[Value]]:
    """The ops through which derivatives by the values of `start` go, and the values that have such."""
    values = {value for value in start if carries(value)}
    live = []
    for op in ops:
        if type(op) not in FLAT and any(operand in values for operand in op.operands):
            carrying = [result for result in op.results if carries(result)]
            if carrying:
                values.update(carrying)
                live.append(op)
    return live, values
