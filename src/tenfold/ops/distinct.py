"""Rows that give the distinct elements or slices of a tensor.

How many there are depends on data: the rows run on the host, on NumPy arrays. Inside a compiled function they
are FlatIR, and the size of their results is open.
"""

import math

import numpy as np

from tenfold import flat
from tenfold.base import dtypes
from tenfold.base.errors import DTypeError, IndexOutOfRange, ShapeError, UnsupportedError
from tenfold.ops.masks import ranks_of_true
from tenfold.ops.reductions import finite
from tenfold.ops.samples import S, T
from tenfold.ops.sorting import order
from tenfold.ops.table import Sized, op

MOST_COLUMNS = 64  # of slices that are sorted in a compiled function: each is one more sort

# On the host


def _comparable(x):
    """The array in a dtype that NumPy sorts and compares natively."""
    if x.dtype.kind == "c":
        raise DTypeError("unique is not defined for complex tensors", help="complex numbers have no order")
    return x.astype(np.float32) if x.dtype.kind == "V" or x.dtype.isbuiltin != 1 else x


def _runs(rows):
    """Where along the first dimension runs of equal entries begin. NaN equals nothing."""
    changed = rows[1:] != rows[:-1]
    return np.concatenate([np.ones(min(len(rows), 1), bool), changed.any(axis=tuple(range(1, rows.ndim)))])


def _distinct(x, permutation, inverse_shape):
    """The first of each run of x[permutation], the run of each entry of x, and the lengths of runs."""
    rows = x[permutation]
    begins = _runs(_comparable(rows))
    inverse = np.empty(len(x), np.int64)
    inverse[permutation] = np.cumsum(begins) - 1
    counts = np.diff(np.append(np.flatnonzero(begins), len(rows)))
    return rows[begins], inverse.reshape(inverse_shape), counts.astype(np.int64)


def _wanted(result, return_inverse, return_counts):
    values, inverse, counts = result
    nothing = np.empty(0, np.int64)
    return values, inverse if return_inverse else nothing, counts if return_counts else nothing


# Inside a compiled function


def _grouped(size, rows, permutation, inverse_shape, return_inverse, return_counts):
    """What `_distinct` gives, if there were so many runs of rows[permutation]; and how many there are."""
    count = rows.shape[0]
    nothing = flat.full((0,), 0, dtypes.int64)
    if not count:
        empty = flat.full((size, *rows.shape[1:]), 0, rows.dtype)
        inverse = flat.full(inverse_shape, 0, dtypes.int64) if return_inverse else nothing
        counts = flat.full((size,), 0, dtypes.int64) if return_counts else nothing
        return (empty, inverse, counts), flat.constant(0, dtypes.int64)
    rows = rows if permutation is None else flat.take(rows, permutation, 0)
    before = flat.concatenate([flat.slice_dim(rows, 0, 0, 1), flat.slice_dim(rows, 0, 0, count - 1)], 0)
    changed = flat.ne(rows, before)
    if rows.rank > 1:
        changed = flat.reduce(changed, "or", tuple(range(1, rows.rank)))
    places = flat.iota((count,), 0, dtypes.int64)
    begins = flat.eq(places, 0) | changed
    run, runs = ranks_of_true(begins)
    run = run + flat.convert(begins, dtypes.int64) - 1
    numbers = flat.ScatterDimensions((), (0,), (0,), 1)
    index = flat.unsqueeze(run, 1)
    # Where each run begins is the first of its places. They ascend, so that is their minimum.
    first = flat.scatter(flat.full((size,), count, dtypes.int64), index, places, numbers, "min")
    values = flat.take(rows, flat.minimum(first, count - 1), 0)
    inverse = counts = nothing
    if return_inverse:
        inverse = run
        if permutation is not None:
            target = flat.unsqueeze(permutation, 1)
            inverse = flat.scatter(flat.full((count,), 0, dtypes.int64), target, run, numbers)
        inverse = flat.reshape(inverse, inverse_shape)
    if return_counts:
        ones = flat.full((count,), 1, dtypes.int64)
        counts = flat.scatter(flat.full((size,), 0, dtypes.int64), index, ones, numbers, "add")
    return (values, inverse, counts), runs


def _require_order(x):
    if x.dtype.is_complex:
        raise DTypeError("unique is not defined for complex tensors", help="complex numbers have no order")


def _unique_sized(size, x, sorted, return_inverse, return_counts=False):
    _require_order(x)
    entries = flat.reshape(x, (x.numel,))
    return _grouped(size, entries, order(entries, 0), x.shape, return_inverse, return_counts)


def _pair_sized(size, x, sorted, return_inverse):
    (values, inverse, _), count = _unique_sized(size, x, sorted, return_inverse)
    return (values, inverse), count


def _consecutive_sized(size, x, return_inverse, return_counts, dim):
    _require_order(x)
    if dim is None:
        entries = flat.reshape(x, (x.numel,))
        return _grouped(size, entries, None, x.shape, return_inverse, return_counts)
    return _dim_consecutive_sized(size, x, dim, return_inverse, return_counts)


def _dim_consecutive_sized(size, x, dim, return_inverse, return_counts):
    rows, dim = _rows(x, dim)
    (values, *rest), count = _grouped(size, rows, None, (rows.shape[0],), True, True)
    return (flat.move(values, 0, dim), *rest), count


def _unique_dim_sized(size, x, dim, sorted, return_inverse, return_counts):
    """Slices are sorted by one column after the other, the last one first; each sort keeps what is equal."""
    _require_order(x)
    rows, dim = _rows(x, dim)
    width = math.prod(rows.shape[1:])
    columns = flat.reshape(rows, (rows.shape[0], width))
    if width > MOST_COLUMNS:
        raise UnsupportedError(
            f"unique of slices of {width} elements inside a compiled function",
            help=f"there slices have at most {MOST_COLUMNS} elements: call it outside of the function",
        )
    permutation = flat.iota((rows.shape[0],), 0, dtypes.int64)
    for column in reversed(range(width)):
        key = flat.reshape(flat.slice_dim(columns, 1, column, column + 1), (rows.shape[0],))
        permutation = flat.take(permutation, order(flat.take(key, permutation, 0), 0), 0)
    (values, *rest), count = _grouped(size, rows, permutation, (rows.shape[0],), True, True)
    return (flat.move(values, 0, dim), *rest), count


def _rows(x, dim):
    dim = _slice_axis(x.shape, dim)
    return flat.move(x, dim, 0), dim


def _extent(x, dim, *rest):
    return x.shape[flat.axis(dim, x.rank)] if x.rank else 1


def _elements(x, *rest):
    return x.numel


def _consecutive_bound(x, return_inverse, return_counts, dim):
    return _elements(x) if dim is None else _extent(x, dim)


UNIQUE = "bool sorted=True, bool return_inverse=False"


@op(
    f"_unique2(Tensor self, {UNIQUE}, bool return_counts=False) -> (Tensor, Tensor, Tensor)",
    host=True,
    sized=Sized(_unique_sized, _elements),
    method=False,
    samples=lambda: [
        S(T(3, 4), True, True, True),
        S(T(9)),
        S(T(), True, True, True),
        S(T(0), True, True, True),
    ],
    positions="-> 1",
)
def _unique2(x, sorted, return_inverse, return_counts):
    """The distinct elements in order, where each element's equal is among them, and how often each occurs."""
    entries = x.reshape(-1)
    permutation = np.argsort(_comparable(entries), kind="stable")
    return _wanted(_distinct(entries, permutation, x.shape), return_inverse, return_counts)


@op(
    f"_unique(Tensor self, {UNIQUE}) -> (Tensor, Tensor)",
    host=True,
    sized=Sized(_pair_sized, _elements),
    method=False,
    samples=lambda: [S(T(3, 4), True, True), S(T(9))],
    positions="-> 1",
)
def _unique(x, sorted, return_inverse):
    """The distinct elements in order, and where each element's equal is among them."""
    return _unique2(x, sorted, return_inverse, False)[:2]


def _slice_axis(shape, dim):
    """The dimension along which there are slices."""
    if not shape:
        raise IndexOutOfRange(f"unique: a tensor of no dimensions has no dimension {dim}")
    dim = flat.axis(dim, len(shape))
    if 0 in shape[:dim] + shape[dim + 1 :] and shape[dim]:
        raise ShapeError(f"unique: the slices of {list(shape)} along dimension {dim} are empty")
    return dim


def _slices(x, dim):
    """The slices of x along a dimension, as the first dimension of an array."""
    dim = _slice_axis(x.shape, dim)
    return np.moveaxis(x, dim, 0), dim


@op(
    f"unique_dim(Tensor self, int dim, {UNIQUE}, bool return_counts=False) -> (Tensor, Tensor, Tensor)",
    host=True,
    sized=Sized(_unique_dim_sized, _extent),
    function=False,
    method=False,
    samples=lambda: [
        S(finite(6, 2), 0),
        S(finite(2, 6), -1, True, True, True),
        S(finite(5), 0),
        S(T(0, 2), 0),
    ],
    positions="-> 1",
)
def unique_dim(x, dim, sorted, return_inverse, return_counts):
    """The distinct slices along a dimension in order, where each slice's equal is, and how often."""
    slices, dim = _slices(x, dim)
    keys = _comparable(slices)
    permutation = np.lexsort(keys.reshape(len(keys), -1).T[::-1]) if keys.size else np.arange(len(keys))
    values, inverse, counts = _distinct(slices, permutation, (len(slices),))
    return np.moveaxis(values, 0, dim), inverse, counts


@op(
    "unique_dim_consecutive(Tensor self, int dim, bool return_inverse=False, bool return_counts=False) "
    "-> (Tensor, Tensor, Tensor)",
    host=True,
    sized=Sized(_dim_consecutive_sized, _extent),
    function=False,
    method=False,
    samples=lambda: [S(T(6, 2), 0), S(T(2, 6), -1, True, True), S(T(5), 0), S(T(0, 2), 0, True, True)],
)
def unique_dim_consecutive(x, dim, return_inverse, return_counts):
    """The slices along a dimension without repetitions of the one before."""
    slices, dim = _slices(x, dim)
    values, inverse, counts = _distinct(slices, np.arange(len(slices)), (len(slices),))
    return np.moveaxis(values, 0, dim), inverse, counts


@op(
    "unique_consecutive(Tensor self, bool return_inverse=False, bool return_counts=False, int? dim=None) "
    "-> (Tensor, Tensor, Tensor)",
    host=True,
    sized=Sized(_consecutive_sized, _consecutive_bound),
    samples=lambda: [
        S(T(9)),
        S(T(9, low=0, high=2), True, True),
        S(T(3, 4), True, True),
        S(T(6, 1), True, True, 0),
        S(T()),
    ],
    positions="-> 1",
)
def unique_consecutive(x, return_inverse, return_counts, dim):
    """The elements, or the slices along a dimension, without repetitions of the one before."""
    if dim is not None:
        return unique_dim_consecutive(x, dim, return_inverse, return_counts)
    entries = x.reshape(-1)
    return _wanted(_distinct(entries, np.arange(entries.size), x.shape), return_inverse, return_counts)
