"""Rows that find and count: binary search, sets of distinct elements, membership.

How many distinct elements there are depends on data: those rows run on the host, on NumPy arrays.
"""

import numpy as np

from tenfold import flat
from tenfold.base import dtypes
from tenfold.base.errors import ArgumentError, DTypeError, IndexOutOfRange, ShapeError
from tenfold.ops.promote import promotion
from tenfold.ops.reductions import finite, real
from tenfold.ops.samples import S, T
from tenfold.ops.sorting import order
from tenfold.ops.table import op, written

# Binary search


def search(name, sequence, x, right, out_int32):
    """How many elements of the last dimension of `sequence`, which is sorted, go before each of x."""
    real(name, sequence)
    n = sequence.shape[-1]
    low, high = flat.full(x.shape, 0, dtypes.int64), flat.full(x.shape, n, dtypes.int64)
    # PyTorch's steps exactly: even a sequence that is not sorted gives the same answer.
    for _ in range(n.bit_length() if x.numel else 0):
        middle = flat.shift_right(low + high, 1)
        probe = flat.minimum(middle, n - 1)
        pivot = (
            flat.take(sequence, probe, 0)
            if sequence.rank == 1
            else flat.take_along(sequence, probe, x.rank - 1)
        )
        # Written with a negation so that NaN goes after everything.
        before = flat.invert(flat.gt(pivot, x) if right else flat.ge(pivot, x))
        open = flat.lt(low, high)
        low, high = (
            flat.where(open & before, middle + 1, low),
            flat.where(open & flat.invert(before), middle, high),
        )
    return flat.convert(low, dtypes.int32) if out_int32 else low


SEARCH = "*, bool out_int32=False, bool right=False"
SORTER = "str? side=None, Tensor? sorter=None) -> Tensor"
to_common = promotion(lambda dtype: dtype, "sorted_sequence", "self", "boundaries")


def search_samples():
    return [
        S(T(7), T(3)), S(T(7), T(2, 3), right=True), S(T(8), T(3), out_int32=True),
        S(T(20), T(), side="right"), S(T(2, 5), T(2, 4)), S(T(0), T(3)), S(T(6), 2),
        S(T(6), -1.5, right=True), S(T(6), T(3), sorter=T(6, dtype="int64", low=0, high=6)),
    ]  # fmt: skip


@op(
    f"searchsorted.Tensor(Tensor sorted_sequence, Tensor self, {SEARCH}, {SORTER}",
    f"searchsorted.Scalar(Tensor sorted_sequence, Scalar self, {SEARCH}, {SORTER}",
    promote=to_common,
    method=False,
    samples=search_samples,
)
def searchsorted(sequence, x, out_int32, right, side, sorter):
    """Where in a sorted sequence each element of x would go: before equal ones, or after if `right`."""
    if side not in (None, "left", "right"):
        raise ArgumentError(f"searchsorted: side must be 'left' or 'right', not {side!r}")
    if side == "left" and right:
        raise ArgumentError("searchsorted: side='left' contradicts right=True", help="give one of them")
    if not isinstance(x, flat.Value):
        x = flat.constant(x, sequence.dtype)
    if not sequence.rank or (sequence.rank > 1 and sequence.shape[:-1] != x.shape[:-1]):
        raise ShapeError(
            f"searchsorted: a sequence {sequence.type} does not fit values {x.type}",
            help="the sequence must be one-dimensional, or agree in all dimensions but the last",
        )
    if sorter is not None:
        sequence = _sorted_by(sequence, sorter)
    return search("searchsorted", sequence, x, right or side == "right", out_int32)


def _sorted_by(sequence, sorter):
    if sorter.dtype is not dtypes.int64 or sorter.shape != sequence.shape:
        raise ShapeError(f"searchsorted: the sorter must be int64 of the sequence's shape, not {sorter.type}")
    if not sequence.numel:
        return sequence
    inside = flat.ge(sorter, 0) & flat.lt(sorter, sequence.shape[-1])
    sorter = flat.check(
        sorter, inside, IndexOutOfRange, "searchsorted: the sorter has places outside of the sequence"
    )
    return flat.take_along(sequence, sorter, sequence.rank - 1)


@op(
    f"bucketize.Tensor(Tensor self, Tensor boundaries, {SEARCH}) -> Tensor",
    f"bucketize.Scalar(Scalar self, Tensor boundaries, {SEARCH}) -> Tensor",
    promote=to_common,
    method=False,
    samples=lambda: [
        S(T(3), T(6)),
        S(T(2, 3), T(9), right=True),
        S(T(), T(1)),
        S(2, T(5)),
        S(0.5, T(5), out_int32=True),
    ],
)
def bucketize(x, boundaries, out_int32, right):
    """The number of the bucket each element falls in, between sorted boundaries."""
    if boundaries.rank != 1:
        raise ShapeError(f"bucketize: the boundaries must be one-dimensional, not {boundaries.type}")
    return searchsorted(boundaries, x, out_int32, right, None, None)


# Membership

# Up to this many, comparing with each is faster than sorting and searching.
FEW = 64


def _member(elements, tests, invert):
    real("isin", elements)
    tests = flat.reshape(tests, (-1,))
    if tests.shape[0] <= FEW:
        found = flat.reduce(flat.eq(flat.unsqueeze(elements, elements.rank), tests), "or", elements.rank)
    else:
        ordered = flat.take(tests, order(tests, 0), 0)
        place = flat.minimum(search("isin", ordered, elements, False, False), tests.shape[0] - 1)
        found = flat.eq(flat.take(ordered, place, 0), elements)
    return flat.invert(found) if invert else found


IN = "*, bool assume_unique=False, bool invert=False) -> Tensor"
_members = promotion(lambda dtype: dtype, "elements", "element", "test_elements", "test_element")


def to_members(names, arguments):
    if any(isinstance(each, flat.Value) and each.dtype.kind == "bool" for each in arguments):
        raise DTypeError("isin is not defined for bool tensors", help="convert them with .int()")
    return _members(names, arguments)


@op(
    f"isin.Tensor_Tensor(Tensor elements, Tensor test_elements, {IN}",
    f"isin.Tensor_Scalar(Tensor elements, Scalar test_element, {IN}",
    f"isin.Scalar_Tensor(Scalar element, Tensor test_elements, {IN}",
    promote=to_members,
    samples=lambda: [
        S(T(3, 4), T(5)), S(T(3), T(2, 2), invert=True), S(T(), T(0)), S(finite(40), finite(100)),
        S(T(3, 4), 2), S(T(4), 1.5, invert=True), S(2, T(5)), S(0.5, T(3)),
    ], late=written)  # fmt: skip
def isin(elements, tests, assume_unique, invert):
    """Whether each element is among the test elements; NaN never is."""
    if not isinstance(tests, flat.Value):
        tests = flat.constant(tests, elements.dtype)
    if not isinstance(elements, flat.Value):
        elements = flat.constant(elements, tests.dtype)
    return _member(elements, tests, invert)


# Histograms


@op(
    "bincount(Tensor self, Tensor? weights=None, SymInt minlength=0) -> Tensor",
    host=True,
    samples=lambda: [
        S(T(9, low=0, high=5)), S(T(9, low=0, high=5), None, 8), S(T(0), minlength=2),
        S(T(9, dtype="int64", low=0, high=5), T(9)),
    ],
    positions="self",
)  # fmt: skip
def bincount(x, weights, minlength):
    """How often each of 0, 1, 2, ... occurs, or the sum of the weights where it does."""
    if x.dtype.kind not in "iu":
        raise DTypeError(f"bincount takes integer tensors, not {dtypes.from_numpy(x.dtype).name}")
    if x.ndim != 1 or (x.size and x.min() < 0):
        raise ArgumentError("bincount takes a one-dimensional tensor of integers that are not negative")
    if minlength < 0:
        raise ArgumentError(f"bincount: minlength must not be negative, not {minlength}")
    if weights is not None and weights.shape != x.shape:
        raise ShapeError(f"bincount: {x.size} elements need as many weights, not {list(weights.shape)}")
    if weights is None or not x.size:
        return np.bincount(x.astype(np.int64), minlength=minlength).astype(np.int64)
    kept = weights.dtype if weights.dtype == np.float32 else np.float64
    return np.bincount(x.astype(np.int64), weights.astype(np.float64), minlength).astype(kept)


# Distinct elements, on the host


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


UNIQUE = "bool sorted=True, bool return_inverse=False"


@op(
    f"_unique2(Tensor self, {UNIQUE}, bool return_counts=False) -> (Tensor, Tensor, Tensor)",
    host=True,
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
    method=False,
    samples=lambda: [S(T(3, 4), True, True), S(T(9))],
    positions="-> 1",
)
def _unique(x, sorted, return_inverse):
    return _unique2(x, sorted, return_inverse, False)[:2]


def _slices(x, dim):
    """The slices of x along a dimension, as the first dimension of an array."""
    if not x.ndim:
        raise IndexOutOfRange(f"unique: a tensor of no dimensions has no dimension {dim}")
    dim = flat.axis(dim, x.ndim)
    if 0 in x.shape[:dim] + x.shape[dim + 1 :] and x.shape[dim]:
        raise ShapeError(f"unique: the slices of {list(x.shape)} along dimension {dim} are empty")
    return np.moveaxis(x, dim, 0), dim


@op(
    f"unique_dim(Tensor self, int dim, {UNIQUE}, bool return_counts=False) -> (Tensor, Tensor, Tensor)",
    host=True,
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
