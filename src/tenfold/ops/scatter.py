"""Rows that write at computed places along one dimension: element by element (`scatter`), or slice by slice
(`index_add` and its kin), or in row-major order (`put`).

Where several elements go to one place, the last in row-major order stays, and sums add up in that order.
"""

from tenfold import flat
from tenfold.base import dtypes
from tenfold.base.errors import ArgumentError, DTypeError, IndexOutOfRange, ShapeError
from tenfold.flat.strides import contiguous
from tenfold.ops.indexing import (
    INT64,
    INTEGERS,
    At,
    at_least_1d,
    check_integers,
    fits_beside,
    places,
    same_dtype,
    vector,
)
from tenfold.ops.masks import value_in
from tenfold.ops.numbers import number_in
from tenfold.ops.samples import S, T
from tenfold.ops.table import op, written

# The names of reductions, and the monoids that fold by them; a mean is a sum, divided at the end.
MONOIDS = {"sum": "add", "mean": "add", "prod": "mul", "amax": "max", "amin": "min"}


def fold(x, source, write, reduce, include_self):
    """Fold `source` into x by a reduction; `write(x, updates, monoid)` puts such updates into place."""
    if not source.numel:
        return x
    if (x.dtype.is_complex and reduce in ("amax", "amin")) or (x.dtype.kind == "bool" and reduce == "mean"):
        raise DTypeError(f"{reduce} is not defined for {x.dtype.name}")
    monoid = MONOIDS[reduce]
    start = x if include_self else write(x, flat.full_like(source, flat.identity(monoid, x.dtype)), "set")
    folded = write(start, source, monoid)
    if reduce != "mean":
        return folded
    ones = flat.full(source.shape, 1, dtypes.int64)
    counts = write(flat.full(x.shape, int(include_self), dtypes.int64), ones, "add")
    counts = flat.convert(flat.maximum(counts, 1), x.dtype)
    if x.dtype.kind != "int":
        return folded / counts
    # Integers divide towards minus infinity.
    quotient = folded / counts
    return flat.where(folded % counts < 0, quotient - 1, quotient) if x.dtype.is_signed else quotient


# Element by element


def scatter_into(x, dim, index, updates, monoid):
    """x with updates folded in where index, standing for `dim`, points: one flat scatter.

    Half floats are folded in float32 and rounded once, as in PyTorch; `index_add` and kin round each time.
    """
    if x.dtype in (dtypes.float16, dtypes.bfloat16) and monoid in ("add", "mul"):
        wide = [flat.convert(each, dtypes.float32) for each in (x, updates)]
        return flat.convert(scatter_into(wide[0], dim, index, wide[1], monoid), x.dtype)
    strides = contiguous(x.shape)
    spots = [each * stride if stride != 1 else each for each, stride in zip(flat.grid(index, dim), strides)]
    spot = spots[0]
    for each in spots[1:]:
        spot = spot + each
    numbers = flat.ScatterDimensions((), (0,), (0,), index.rank)
    updates = flat.slice(updates, [0] * index.rank, index.shape) if updates.shape != index.shape else updates
    return flat.reshape(flat.scatter(flat.reshape(x, (x.numel,)), spot, updates, numbers, monoid), x.shape)


def _elements(monoid):
    return lambda x, dim, index, source: scatter_into(x, dim, index, source, monoid)


def _scatter(x, dim, index, source, act):
    """Check a scatter's arguments, give each a dimension, and `act(x, dim, index, source)` on them."""
    dim = flat.axis(dim, x.rank)
    is_tensor = isinstance(source, flat.Value) and flat.known(source)
    if is_tensor:
        same_dtype(x, source)
    if not index.numel:
        return x
    whole, index = at_least_1d(x), at_least_1d(index)
    fits_beside(whole, index, dim)
    if is_tensor:
        source = at_least_1d(source)
        if source.rank != index.rank or any(have > n for have, n in zip(index.shape, source.shape)):
            raise ShapeError(f"the index {list(index.shape)} is larger than the source {source.type}")
    else:
        source = flat.full(index.shape, number_in(source, x.dtype), x.dtype)
    index = places(index, whole.shape[dim], dim)
    return flat.reshape(act(whole, dim, index, source), x.shape)


def _samples(*rest, source=True, **keywords):
    """Calls with indices that repeat; `rest` and `keywords` follow the index and the source."""
    shapes = [
        (T(4, 3), 0, At(6, 3, size=4), T(6, 3)),
        (T(4, 3), -1, At(2, 5, size=3, dtype="int32"), T(4, 6)),
        (T(2, 3, 4), 1, At(2, 5, 1, size=3), T(2, 5, 2)),
        (T(), 0, At(size=1), T()),
        (T(5), 0, At(2, size=5), T(3)),
        (T(4, 3), 0, At(0, 3), T(2, 3)),
    ]
    return [S(*(shape if source else shape[:3]), *rest, **keywords) for shape in shapes]


@op(
    "scatter.src(Tensor self, int dim, Tensor index, Tensor src) -> Tensor",
    inplace=True,
    samples=lambda: _samples(),
)
@op(
    "scatter.value(Tensor self, int dim, Tensor index, Scalar value) -> Tensor",
    inplace=True,
    samples=lambda: _samples(2, source=False) + _samples(True, source=False),
)
def scatter(x, dim, index, source):
    """self with self[index[i][j]][j] = src[i][j] for dim 0, and so on."""
    return _scatter(x, dim, index, source, _elements("set"))


@op(
    "scatter.reduce(Tensor self, int dim, Tensor index, Tensor src, *, str reduce) -> Tensor",
    inplace=True,
    samples=lambda: _samples(reduce="add") + _samples(reduce="multiply"),
)
@op(
    "scatter.value_reduce(Tensor self, int dim, Tensor index, Scalar value, *, str reduce) -> Tensor",
    inplace=True,
    samples=lambda: _samples(2, source=False, reduce="add") + _samples(2, source=False, reduce="multiply"),
)
def scatter_by(x, dim, index, source, reduce):
    """`scatter` that adds to what is there, or multiplies it."""
    monoid = {"add": "add", "multiply": "mul"}.get(reduce)
    if monoid is None:
        raise ArgumentError(
            f"reduce={reduce!r}", help='use "add" or "multiply", or scatter_reduce for others'
        )
    return _scatter(x, dim, index, source, _elements(monoid))


@op(
    "scatter_add(Tensor self, int dim, Tensor index, Tensor src) -> Tensor",
    inplace=True,
    samples=lambda: _samples(),
    autocast="cuda: widest",
)
def scatter_add(x, dim, index, source):
    """self with src[i][j] added to self[index[i][j]][j] for dim 0, and so on."""
    return _scatter(x, dim, index, source, _elements("add"))


@op(
    "scatter_reduce.two(Tensor self, int dim, Tensor index, Tensor src, str reduce, *, "
    "bool include_self=True) -> Tensor",
    inplace=True,
    samples=lambda: [
        sample for name in MONOIDS for own in (True, False) for sample in _samples(name, include_self=own)
    ],
)
def scatter_reduce(x, dim, index, source, reduce, include_self):
    """self with src folded in by sum, prod, mean, amax or amin, with or without what was there before."""
    reduce = {"max": "amax", "min": "amin"}.get(reduce, reduce)
    if reduce not in MONOIDS:
        raise ArgumentError(f"reduce={reduce!r}", help=f"use one of {', '.join(MONOIDS)}")

    def act(x, dim, index, source):
        updates = flat.slice(source, [0] * index.rank, index.shape)
        return fold(
            x, updates, lambda *rest: scatter_into(rest[0], dim, index, *rest[1:]), reduce, include_self
        )

    return _scatter(x, dim, index, source, act)


# Slice by slice


def put_slices(x, dim, index, slices, monoid):
    """x with the slices along `dim` folded into those that index names."""
    if not slices.numel:
        return x
    others = tuple([d for d in range(x.rank) if d != dim])
    return flat.scatter(x, index, slices, flat.ScatterDimensions(others, (dim,), (dim,), 1), monoid)


def _whole_slices(monoid):
    return lambda x, dim, index, source: put_slices(x, dim, index, source, monoid)


def _slices(x, dim, index, source, act, accepts=INTEGERS, wrap=False):
    """Check the arguments of `index_add` and kin, give each a dimension, and `act(x, dim, index, source)`."""
    dim = flat.axis(dim, x.rank)
    same_dtype(x, source)
    if source.rank != x.rank:
        raise ShapeError(f"the source {source.type} must have as many dimensions as {x.type}")
    index, whole, source = vector(index), at_least_1d(x), at_least_1d(source)
    expected = (*whole.shape[:dim], index.numel, *whole.shape[dim + 1 :])
    if source.shape != expected:
        raise ShapeError(f"the source must be {list(expected)} for {index.numel} indices, not {source.type}")
    if index.numel and not whole.shape[dim]:
        raise IndexOutOfRange(f"nothing can be indexed in dimension {dim} of {x.type}, which is empty")
    index = places(index, whole.shape[dim], dim, accepts=accepts, wrap=wrap)
    return flat.reshape(act(whole, dim, index, source), x.shape)


def _slice_samples(*rest, **keywords):
    shapes = [
        (T(4, 3), 0, At(6, size=4), T(6, 3)),
        (T(4, 3), -1, At(2, size=3), T(4, 2)),
        (T(2, 3, 4), 1, At(5, size=3), T(2, 5, 4)),
        (T(4, 3), 1, At(size=3), T(4, 1)),
        (T(), 0, At(1, size=1), T()),
        (T(4, 3), 0, At(0), T(0, 3)),
        (T(4, 0), 0, At(2, size=4), T(2, 0)),
    ]
    return [S(*shape, *rest, **keywords) for shape in shapes]


@op(
    "index_add(Tensor self, int dim, Tensor index, Tensor source, *, Scalar alpha=1) -> Tensor",
    inplace=True,
    samples=lambda: _slice_samples() + _slice_samples(alpha=3),
    late=written,
)
def index_add(x, dim, index, source, alpha):
    """self with alpha times the slices of source added to those of self that index names."""
    if alpha != 1:
        source = source * number_in(alpha, source.dtype)
    return _slices(x, dim, index, source, _whole_slices("add"))


@op(
    "index_copy(Tensor self, int dim, Tensor index, Tensor source) -> Tensor",
    inplace=True,
    samples=lambda: [
        *_slice_samples(),
        S(T(5), 0, At(1, size=5), T()),
        S(T(5), 0, At(size=5), T()),
        S(T(), 0, At(1, size=1), T(1)),
    ],
    autocast="cpu: widest",
    needs="all_strided",
)
def index_copy(x, dim, index, source):
    """self with the slices that index names replaced by those of source."""
    if source.rank + x.rank == 1 and source.numel == 1:
        source = flat.reshape(source, (1,) * x.rank)
    return _slices(x, dim, index, source, _whole_slices("set"), INT64)


def _fills(value):
    return lambda: [
        S(T(4, 3), 0, At(6, size=4, low=-4), value),
        S(T(2, 3, 4), -1, At(2, size=4), value),
        S(T(4, 3), 1, At(size=3), value),
        S(T(), 0, At(1, size=1), value),
        S(T(4, 3), 0, At(0), value),
    ]


@op(
    "index_fill.int_Scalar(Tensor self, int dim, Tensor index, Scalar value) -> Tensor",
    inplace=True,
    samples=lambda: [*_fills(2)(), *_fills(True)()],
)
@op(
    "index_fill.int_Tensor(Tensor self, int dim, Tensor index, Tensor value) -> Tensor",
    inplace=True,
    samples=_fills(T()),
)
def index_fill(x, dim, index, value):
    """self with every element of the slices that index names set to value."""
    value = value_in(value, x)
    whole, dim, index = at_least_1d(x), flat.axis(dim, x.rank), vector(index)
    check_integers(index, INT64)
    extent = whole.shape[dim]
    if index.numel and not extent:
        raise IndexOutOfRange(f"nothing can be indexed in dimension {dim} of {x.type}, which is empty")
    if not index.numel or not x.numel:
        return x
    index = places(index, extent, dim, accepts=INT64, wrap=True)
    none, each = (flat.full((n,), named, dtypes.bool_) for n, named in ((extent, False), (index.numel, True)))
    chosen = put_slices(none, 0, index, each, "set")
    # A slice that is named twice is filled once, also for the gradient of value.
    line = flat.reshape(chosen, (extent, *[1] * (whole.rank - dim - 1)))
    return flat.reshape(flat.where(line, value, whole), x.shape)


@op(
    "index_reduce(Tensor self, int dim, Tensor index, Tensor source, str reduce, *, bool include_self=True) "
    "-> Tensor",
    inplace=True,
    samples=lambda: [
        slice_sample
        for name in ("prod", "mean", "amax", "amin")
        for own in (True, False)
        for slice_sample in _slice_samples(name, include_self=own)
    ],
)
def index_reduce(x, dim, index, source, reduce, include_self):
    """self with the slices of source folded into those that index names by prod, mean, amax or amin."""
    if reduce not in ("prod", "mean", "amax", "amin"):
        raise ArgumentError(f"reduce={reduce!r}", help="use one of prod, mean, amax, amin")

    def act(x, dim, index, source):
        return fold(x, source, lambda *rest: put_slices(rest[0], dim, index, *rest[1:]), reduce, include_self)

    return _slices(x, dim, index, source, act)


# In row-major order


@op(
    "put(Tensor self, Tensor index, Tensor source, bool accumulate=False) -> Tensor",
    inplace=True,
    samples=lambda: [
        S(T(4, 3), At(2, 3, size=12, low=-12), T(6)),
        S(T(4, 3), At(6, size=12), T(2, 3), True),
        S(T(), At(size=1), T()),
        S(T(4, 3), At(0), T(0)),
    ],
)
def put(x, index, source, accumulate):
    """self with elements of source put, or added, at places counted in row-major order."""
    same_dtype(x, source)
    if source.numel != index.numel:
        raise ShapeError(f"{index.numel} indices, but {source.numel} elements")
    if index.numel and not x.numel:
        raise IndexOutOfRange(f"nothing can be put into {x.type}, which is empty")
    index = places(flat.reshape(index, (index.numel,)), x.numel, 0, wrap=True, accepts=INT64)
    elements = flat.reshape(source, (source.numel,))
    done = put_slices(flat.reshape(x, (x.numel,)), 0, index, elements, "add" if accumulate else "set")
    return flat.reshape(done, x.shape)
