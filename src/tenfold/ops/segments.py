"""Reductions over segments of a dimension, whose lengths or ends are given."""

import math

from tenfold import flat
from tenfold.base import dtypes
from tenfold.base.errors import ArgumentError, DTypeError, ShapeError
from tenfold.ops.samples import S, T
from tenfold.ops.scans import cumsum
from tenfold.ops.scatter import index_add, index_reduce
from tenfold.ops.searching import searchsorted
from tenfold.ops.table import op, written

# What an empty segment gives, and the fold of those that are no sums.
START = {"sum": 0.0, "mean": 0.0, "prod": 1.0, "max": -math.inf, "min": math.inf}
FOLDS = {"prod": "prod", "max": "amax", "min": "amin"}


def _samples():
    data, ones = T(6, 3), T(6, dtype="int64", low=1, high=1)
    return [S(data, name, lengths=ones) for name in START] + [
        S(data, name, lengths=ones, initial=1.5, unsafe=True) for name in START
    ]


@op(
    "segment_reduce(Tensor data, str reduce, *, Tensor? lengths=None, Tensor? indices=None, "
    "Tensor? offsets=None, int axis=0, bool unsafe=False, Scalar? initial=None) -> Tensor",
    method=False,
    samples=_samples,
    positions="not indices",
    needs="segments",
    late=written,
)
def segment_reduce(x, reduce, lengths, indices, offsets, axis, unsafe, initial):
    """The sum, mean, prod, max or min of each segment of a dimension, `initial` with it"""
    if reduce not in START:
        raise ArgumentError(f"reduce={reduce!r}", help=f"use one of {', '.join(START)}")
    if x.dtype.kind != "float" or x.dtype.itemsize < 2:
        raise DTypeError(f"segment_reduce is not defined for {x.dtype.name}", help="it takes float tensors")
    if indices is not None or (lengths is None) == (offsets is None):
        raise ArgumentError("give either lengths or offsets of the segments")
    given = lengths if offsets is None else offsets
    axis = flat.axis(axis, x.rank)
    told = x.rank and given.rank and given.dtype in (dtypes.int32, dtypes.int64)
    if not told or given.shape[:-1] != x.shape[:axis]:
        raise ShapeError(f"segments of dimension {axis} of {x.type} are not told by {given.type}")
    batch, size, rest = x.shape[:axis], x.shape[axis], x.shape[axis + 1 :]
    groups = math.prod(batch)
    rows = flat.reshape(flat.convert(given, dtypes.int64), (groups, given.shape[-1]))
    if offsets is None:
        ends = cumsum(rows, 1, None)
        starts = ends - rows
        if not unsafe:
            fits = flat.eq(flat.reduce(rows, "add", [1]), size) & flat.reduce(flat.ge(rows, 0), "and", [1])
            x = flat.check(x, fits, ArgumentError, "segment_reduce: lengths do not add up to the dimension")
    else:
        starts, ends = (
            flat.slice_dim(rows, 1, 0, rows.shape[1] - 1),
            flat.slice_dim(rows, 1, 1, rows.shape[1]),
        )
    count = ends.shape[1]
    owner = searchsorted(ends, flat.iota((groups, size), 1, dtypes.int64), False, True, None, None)
    # One row more for each group: what lies beyond the last segment goes there.
    place = flat.reshape(owner + flat.iota((groups, size), 0, dtypes.int64) * (count + 1), (groups * size,))
    start = START[reduce] if initial is None else float(initial)
    base = flat.full((groups * (count + 1), *rest), start, x.dtype)
    source = flat.reshape(x, (groups * size, *rest))
    if reduce in FOLDS:
        found = index_reduce(base, 0, place, source, FOLDS[reduce], True)
    else:
        found = index_add(base, 0, place, source, 1)
    found = flat.slice_dim(flat.reshape(found, (groups, count + 1, *rest)), 1, 0, count)
    if reduce == "mean":
        held = flat.reshape(flat.convert(ends - starts, x.dtype), (groups, count, *[1] * len(rest)))
        empty = flat.eq(held, 0.0)
        alone = math.nan if initial is None else start
        found = flat.where(empty, alone, found / flat.where(empty, 1.0, held))
    return flat.reshape(found, (*batch, count, *rest))
