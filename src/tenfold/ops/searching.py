"""Rows that find and count: binary search, membership, bins."""

import numpy as np

from tenfold import flat
from tenfold.base import dtypes
from tenfold.base.errors import ArgumentError, DTypeError, IndexOutOfRange, ShapeError
from tenfold.ops.promote import promotion
from tenfold.ops.reductions import finite, real
from tenfold.ops.samples import S, T
from tenfold.ops.sorting import order
from tenfold.ops.table import Sized, op, written

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
    casts_out=False,
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
    casts_out=False,
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
    if any(isinstance(argument, flat.Value) and argument.dtype.kind == "bool" for argument in arguments):
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
    ], late=written, casts_out=False)  # fmt: skip
def isin(elements, tests, assume_unique, invert):
    """Whether each element is among the test elements; NaN never is."""
    if not isinstance(tests, flat.Value):
        tests = flat.constant(tests, elements.dtype)
    if not isinstance(elements, flat.Value):
        elements = flat.constant(elements, tests.dtype)
    return _member(elements, tests, invert)


# Histograms


def _bins(size, x, weights, minlength):
    """The counts of so many numbers, and how many there are."""
    if x.dtype.kind != "int":
        raise DTypeError(f"bincount takes integer tensors, not {x.dtype.name}")
    negative = "bincount takes a one-dimensional tensor of integers that are not negative"
    if x.rank != 1:
        raise ArgumentError(negative)
    if minlength < 0:
        raise ArgumentError(f"bincount: minlength must not be negative, not {minlength}")
    if weights is not None and weights.shape != x.shape:
        raise ShapeError(f"bincount: {x.numel} elements need as many weights, not {list(weights.shape)}")
    x = flat.convert(x, dtypes.int64)
    x = flat.check(x, x >= 0, ArgumentError, negative)
    kept = dtypes.int64 if weights is None or not x.numel else dtypes.float64
    kept = dtypes.float32 if kept is dtypes.float64 and weights.dtype is dtypes.float32 else kept
    each = flat.full(x.shape, 1, kept) if kept is dtypes.int64 else flat.convert(weights, kept)
    bins = flat.scatter(
        flat.full((size,), 0, kept),
        flat.unsqueeze(x, 1),
        each,
        flat.ScatterDimensions((), (0,), (0,), 1),
        "add",
    )
    most = flat.reduce(x, "max") + 1 if x.numel else flat.constant(0, dtypes.int64)
    return (bins,), flat.maximum(most, minlength)


@op(
    "bincount(Tensor self, Tensor? weights=None, SymInt minlength=0) -> Tensor",
    host=True,
    sized=Sized(_bins, None),
    samples=lambda: [
        S(T(9, low=0, high=5)), S(T(9, low=0, high=5), None, 8), S(T(0), minlength=2), S(T(0)),
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
