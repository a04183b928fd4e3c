"""Rows that choose between numbers by size: maximum to clamp, and the step function."""

from tenfold import flat
from tenfold.base.errors import ArgumentError, DTypeError
from tenfold.ops.numbers import number_in
from tenfold.ops.precision import is_number
from tenfold.ops.promote import common
from tenfold.ops.samples import S, T
from tenfold.ops.table import op


def _ordered(name, x):
    if x.dtype.is_complex:
        raise DTypeError(f"{name} is not defined for complex numbers, which have no order")


def _extreme(name, fname, which, build):
    """Rows for an extreme of two numbers: the plain one propagates NaN, the `f` one prefers numbers."""
    chosen = f"The {which} of self and other"

    @op(
        f"{name}(Tensor self, Tensor other) -> Tensor",
        promote=common,
        forms="foreach",
        meaning=f"{chosen}; NaN if either is",
    )
    def extreme(x, y):
        _ordered(name, x if isinstance(x, flat.Value) else y)
        return build(x, y)

    @op(
        f"{fname}(Tensor self, Tensor other) -> Tensor",
        promote=common,
        meaning=f"{chosen}; NaN only if both are",
    )
    def number(x, y):
        x, y = flat.broadcast(x, y)
        _ordered(fname, x)
        if not x.dtype.is_floating_point:
            return build(x, y)
        # A choice, so that the gradient goes to one of them: to the first where they are equal.
        first = flat.isnan(y) | flat.eq(x, build(x, y))
        return flat.where(first, x, y)


_extreme("maximum", "fmax", "larger", flat.maximum)
_extreme("minimum", "fmin", "smaller", flat.minimum)


def _bounds():
    return [S(T(3, 4), T(3, 4), T(3, 4)), S(T(3, 4), T(4)), S(T(3, 4), None, T(3, 1)), S(T(), T(2, 3), T(3))]


def _numbers():
    return [S(T(3, 4), 1, 3), S(T(3, 4), -0.5), S(T(3, 4), None, 1.5), S(T(), 2, 1), S(T(0, 3), max=2)]


@op(
    "clamp(Tensor self, Scalar? min=None, Scalar? max=None) -> Tensor",
    "clip(Tensor self, Scalar? min=None, Scalar? max=None) -> Tensor",
    promote=common,
    inplace=True,
    samples=_numbers,
    forms="function_",
    grad_fn="ClampBackward1",
    casts_out=False,
)
@op(
    "clamp.Tensor(Tensor self, Tensor? min=None, Tensor? max=None) -> Tensor",
    "clip.Tensor(Tensor self, Tensor? min=None, Tensor? max=None) -> Tensor",
    promote=common,
    inplace=True,
    samples=_bounds,
    forms="function_",
)
def clamp(x, low, high):
    """min(max(self, low), high)"""
    if low is None and high is None:
        raise ArgumentError("clamp needs at least one of min and max")
    _ordered("clamp", x)
    low = flat.lowest(x.dtype) if low is None else _limit(low, x.dtype)
    high = flat.highest(x.dtype) if high is None else _limit(high, x.dtype)
    if x.dtype.is_floating_point and is_number(low) and is_number(high):
        return _between(x, low, high)
    return flat.clamp(x, low, high)


def _of_between(cotangent, result, x, low, high):
    return (flat.where(flat.ge(x, low) & flat.le(x, high), cotangent, 0),)


@flat.differentiated(_of_between)
def _between(x, low, high):
    return between(x, low, high)


def between(x, low, high):
    """x between two numbers. A zero that equals one of them keeps its own sign."""
    nearest = flat.clamp(x, low, high)
    return flat.where(flat.eq(x, nearest), x, nearest) if x.dtype.is_floating_point else nearest


def _limit(limit, dtype):
    return limit if isinstance(limit, flat.Value) else number_in(limit, dtype)


@op(
    "clamp_min(Tensor self, Scalar min) -> Tensor",
    promote=common,
    inplace=True,
    forms="function_ foreach",
    casts_out=False,
)
@op(
    "clamp_min.Tensor(Tensor self, Tensor min) -> Tensor",
    promote=common,
    inplace=True,
    forms="function_ foreach",
)
def clamp_min(x, low):
    """max(self, min)"""
    return clamp(x, low, None)


@op(
    "clamp_max(Tensor self, Scalar max) -> Tensor",
    promote=common,
    inplace=True,
    forms="function_ foreach",
    casts_out=False,
)
@op(
    "clamp_max.Tensor(Tensor self, Tensor max) -> Tensor",
    promote=common,
    inplace=True,
    forms="function_ foreach",
)
def clamp_max(x, high):
    """min(self, max)"""
    return clamp(x, None, high)


@op("heaviside(Tensor self, Tensor values) -> Tensor", inplace=True)
def heaviside(x, values):
    """0 below zero, 1 above it, `values` at it"""
    if x.dtype is not values.dtype:
        raise DTypeError(f"heaviside needs tensors of one dtype, not {x.dtype.name} and {values.dtype.name}")
    _ordered("heaviside", x)
    x, values = flat.broadcast(x, values)
    return flat.where(flat.eq(x, 0), values, flat.convert(flat.gt(x, 0), x.dtype))
