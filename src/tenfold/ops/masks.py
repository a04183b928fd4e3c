"""Rows that choose by a condition: where, masks, and the places that are not zero.

What `nonzero` and `masked_select` give depends on data in its shape, so these run on the host; inside a
compiled function they have rows up to a bound, the first of them valid.
"""

import numpy as np

from tenfold import flat
from tenfold.base import dtypes
from tenfold.base.errors import ArgumentError, DTypeError, ShapeError
from tenfold.ops.numbers import number_in
from tenfold.ops.promote import promotion, result_dtype
from tenfold.ops.samples import S, T
from tenfold.ops.table import Sized, op


def value_in(value, x):
    """A number or a zero-dimensional value in the dtype of x; evaluating raises if it does not fit."""
    dtype = x.dtype
    if not isinstance(value, flat.Value):
        return flat.constant(number_in(value, dtype), dtype)
    if value.rank:
        raise ShapeError(f"the value must be a number or have no dimensions, not {value.type}")
    if dtype.kind == "bool" or dtype.is_complex or value.dtype is dtype:
        return flat.convert(value, dtype)
    message = f"the value does not fit {dtype.name}"
    if value.dtype.is_complex:
        value = flat.check(flat.real(value), flat.eq(flat.imag(value), 0), DTypeError, message)
    result = flat.convert(value, dtype)
    if value.dtype.kind == "bool":
        return result
    if dtype.kind == "float":
        fits = flat.is_finite(result)
        fits = fits | ~flat.is_finite(value) if value.dtype.kind == "float" else fits
    else:
        if value.dtype.kind == "float":
            limits = dtypes.iinfo(dtype)
            wide = flat.convert(value, dtypes.float64)
            fits = (wide >= float(limits.min)) & (wide <= float(limits.max))
        else:
            # A negative integer wraps around into an unsigned dtype.
            size = value if dtype.is_signed or not value.dtype.is_signed else flat.abs(value)
            fits = flat.eq(flat.convert(flat.convert(size, dtype), size.dtype), size)
    return flat.check(result, fits, DTypeError, message)


# where


def _condition(condition):
    if condition.dtype is dtypes.uint8:
        return flat.ne(condition, 0)
    if condition.dtype is not dtypes.bool_:
        raise DTypeError(f"the condition must be bool, not {condition.dtype.name}", help="compare it: x != 0")
    return condition


SIDES = promotion(lambda dtype: dtype, "self", "other")
CONDITION = T(3, 4, dtype="bool")


@op(
    "where.self(Tensor condition, Tensor self, Tensor other) -> Tensor",
    promote=SIDES,
    method=True,
    samples=lambda: [
        S(CONDITION, T(3, 4), T(3, 4)),
        S(CONDITION, T(4), T(3, 1)),
        S(CONDITION, T(), T()),
        S(CONDITION, T(3, 4), T(dtype="float64")),
        S(CONDITION, T(3, 4, dtype="int32"), T(4)),
        S(T(dtype="bool"), T(3, 4), T(4)),
        S(T(0, 1, dtype="bool"), T(), T(3)),
    ],
    casts_out=False,
)
@op(
    "where.ScalarSelf(Tensor condition, Scalar self, Tensor other) -> Tensor",
    promote=SIDES,
    samples=lambda: [S(CONDITION, number, T(4)) for number in (2, -1.5, True, 1j)],
)
@op(
    "where.ScalarOther(Tensor condition, Tensor self, Scalar other) -> Tensor",
    promote=SIDES,
    method=True,
    samples=lambda: [S(CONDITION, T(4), number) for number in (2, -1.5, True, 1j)],
)
@op(
    "where.Scalar(Tensor condition, Scalar self, Scalar other) -> Tensor",
    promote=SIDES,
    samples=lambda: [
        S(CONDITION, 1, 2),
        S(CONDITION, True, 2.5),
        S(CONDITION, True, False),
        S(CONDITION, 1j, 2),
    ],
)
def where(condition, x, other):
    """self where the condition is true, other elsewhere."""
    dtype = result_dtype((x, other))

    def side(each):
        if type(each) is flat.LateNumber:
            return flat.convert(flat.plain(each), dtype)
        return each if isinstance(each, flat.Value) else flat.constant(number_in(each, dtype, True), dtype)

    return flat.where(_condition(condition), side(x), side(other))


# Masks


MASKED = [
    S(T(3, 4), T(3, 4, dtype="bool")),
    S(T(3, 4), T(4, dtype="bool")),
    S(T(4), T(3, 1, dtype="bool")),
    S(T(), T(dtype="bool")),
    S(T(), T(3, dtype="bool")),
    S(T(0, 3), T(3, dtype="bool")),
]


def _masked(*more):
    return lambda: [S(*each.args, *rest) for each in MASKED for rest in more]


def _mask(mask):
    if mask.dtype is not dtypes.bool_:
        raise DTypeError(f"the mask must be bool, not {mask.dtype.name}", help="compare it: mask != 0")
    return mask


@op(
    "masked_fill.Scalar(Tensor self, Tensor mask, Scalar value) -> Tensor",
    inplace=True,
    samples=_masked((2,), (-1.5,), (True,)),
)
@op(
    "masked_fill.Tensor(Tensor self, Tensor mask, Tensor value) -> Tensor",
    inplace=True,
    samples=_masked((T(),), (T(dtype="int64", low=0, high=9),)),
)
def masked_fill(x, mask, value):
    """value where the mask is true, self elsewhere."""
    return flat.where(_mask(mask), value_in(value, x), x)


def ranks_of_true(mask):
    """For each place how many true ones come before it in row-major order, and how many there are in all."""
    counts = flat.convert(flat.reshape(mask, (mask.numel,)), dtypes.int64)
    size = max(mask.numel, 1)
    through = flat.reduce_window(counts, "add", (size,), padding=((size - 1, 0),))
    return flat.reshape(through - counts, mask.shape), flat.reduce(counts, "add")


@op(
    "masked_scatter(Tensor self, Tensor mask, Tensor source) -> Tensor",
    inplace=True,
    samples=_masked((T(3, 4),), (T(20),)),
)
def masked_scatter(x, mask, source):
    """self with the elements of source put, in order, where the mask is true."""
    if source.dtype is not x.dtype:
        raise DTypeError(f"self is {x.dtype.name}, source {source.dtype.name}: they must be the same")
    x, mask = flat.broadcast(x, _mask(mask))
    ranks, total = ranks_of_true(mask)
    message = f"source has {source.numel} elements, fewer than the places where the mask is true"
    x = flat.check(x, total <= source.numel, ShapeError, message)
    if not source.numel or not x.numel:
        return x
    elements = flat.take(flat.reshape(source, (source.numel,)), flat.minimum(ranks, source.numel - 1), 0)
    return flat.where(mask, elements, x)


def _selected(size, x, mask):
    x, mask = flat.broadcast(x, _mask(mask))
    elements = flat.reshape(x, (x.numel,))
    (places,), count = _places(size, flat.reshape(mask, (x.numel,)))
    return (flat.take(elements, places, 0) if x.numel else flat.full((size,), 0, x.dtype),), count


@op(
    "masked_select(Tensor self, Tensor mask) -> Tensor",
    host=True,
    chooses=True,
    sized=Sized(_selected, lambda x, mask: flat.broadcast(x, mask)[0].numel),
    samples=_masked(()),
)
def masked_select(x, mask):
    """The elements of self where the mask is true, in one dimension."""
    if mask.dtype != bool:
        raise DTypeError(f"the mask must be bool, not {mask.dtype}", help="compare it: mask != 0")
    try:
        x, mask = np.broadcast_arrays(x, mask)
    except ValueError:
        raise ShapeError(f"cannot broadcast {list(x.shape)} with a mask of {list(mask.shape)}") from None
    return x[mask]


# Places that are not zero


def _coordinates(size, x):
    """Coordinates of what is not zero, and how many there are."""
    rows = nonzero_static(x, size, 0)
    return (rows,), flat.reduce(flat.convert(flat.reshape(_nonzero(x), (x.numel,)), dtypes.int64), "add")


def _places(size, x):
    """The same, one vector for each dimension."""
    x = x if x.rank else flat.reshape(x, (1,))
    (rows,), count = _coordinates(size, x)
    return [flat.reshape(flat.slice_dim(rows, 1, d, d + 1), (size,)) for d in range(x.rank)], count


def _nonzero(x):
    return x if x.dtype.kind == "bool" else flat.ne(x, 0)


def _elements(x):
    return x.numel


@op(
    "nonzero(Tensor self) -> Tensor",
    "argwhere(Tensor self) -> Tensor",
    host=True,
    sized=Sized(_coordinates, _elements),
    positions="-> 0",
)
def nonzero(x):
    """The places that are not zero: one row of coordinates for each."""
    return np.argwhere(x).astype(np.int64)


@op(
    "nonzero_numpy(Tensor self) -> Tensor[]",
    host=True,
    sized=Sized(_places, _elements),
    function=False,
    method=False,
    positions="-> 0",
)
@op(
    "where(Tensor condition) -> Tensor[]",
    host=True,
    sized=Sized(_places, _elements),
    method=False,
    positions="-> 0",
)
def nonzero_numpy(x):
    """The places that are not zero: one tensor for each dimension."""
    return [each.astype(np.int64) for each in np.nonzero(np.atleast_1d(x))]


@op(
    "nonzero_static(Tensor self, *, SymInt size, int fill_value=-1) -> Tensor",
    samples=lambda: [
        S(T(3, 4), size=5),
        S(T(3, 4, dtype="bool"), size=5),
        S(T(3, 4, dtype="bool"), size=20, fill_value=7),
        S(T(6, dtype="bool"), size=0),
        S(T(), size=2),
        S(T(0, 3), size=2),
    ],
    positions="-> 0",
)
def nonzero_static(x, size, fill_value):
    """`nonzero` with a given number of rows: the first ones, and fill_value after the last."""
    if size < 0:
        raise ArgumentError(f"size must not be negative, not {size}")
    mask = _nonzero(x)
    rows = flat.full((size, x.rank), fill_value, dtypes.int64)
    if not size or not x.rank or not x.numel:
        return rows
    ranks, _ = ranks_of_true(mask)
    # Scatter leaves out rows beyond the last, so that is where places that are zero go.
    target = flat.reshape(flat.where(mask, ranks, size), (x.numel,))
    coordinates = flat.concatenate(
        [flat.reshape(flat.iota(x.shape, d), (x.numel, 1)) for d in range(x.rank)], 1
    )
    numbers = flat.ScatterDimensions((1,), (0,), (0,), 1)
    return flat.scatter(rows, target, coordinates, numbers)
