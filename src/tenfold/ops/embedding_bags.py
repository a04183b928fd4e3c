"""Rows of a table, each by itself or gathered into bags: their sum, mean or maximum; and their gradients.

In bags, indices stand one after another; `offsets` says where each bag begins.
"""

from __future__ import annotations

from tenfold import flat
from tenfold.base import dtypes
from tenfold.base.errors import ArgumentError, DTypeError, IndexOutOfRange, ShapeError, UnsupportedError
from tenfold.flat import ScatterDimensions, Value
from tenfold.ops.indexing import At, places, taken
from tenfold.ops.samples import S, T
from tenfold.ops.scans import cumsum
from tenfold.ops.statistics import SPECIAL_ORDERS, linalg_vector_norm
from tenfold.ops.table import op

SUM, MEAN, MAX = 0, 1, 2


def _folded(rows: Value, where: Value, count: int, kind: str) -> Value:
    """rows (n, …) combined by a monoid into `count` places."""
    start = flat.full((count, *rows.shape[1:]), flat.identity(kind, rows.dtype), rows.dtype)
    numbers = ScatterDimensions(tuple(range(1, rows.rank)), (0,), (0,), 1)
    return flat.scatter(start, flat.unsqueeze(where, 1), rows, numbers, kind)


def _rows_rule(cotangent, result, weight, indices, padding_idx, scale_grad_by_freq):
    rows = embedding_dense_backward(cotangent, indices, weight.shape[0], padding_idx, scale_grad_by_freq)
    return rows, None


@flat.differentiated(_rows_rule)
def _rows(weight, indices, padding_idx, scale_grad_by_freq):
    """weight[indices]; the row of padding_idx gets no gradient, and frequent ones on request less."""
    return flat.take(weight, indices, 0)


@op(
    "embedding(Tensor weight, Tensor indices, SymInt padding_idx=-1, bool scale_grad_by_freq=False, "
    "bool sparse=False) -> Tensor",
    method=False,
    samples=lambda: [
        S(T(5, 3), At(2, 4, size=5)),
        S(T(5, 3), At(size=5, dtype="int32"), 2),
        S(T(5, 3), At(0)),
        S(T(5, 3), At(2, 6, size=5), 1, True),
        S(T(5, 3), At(2, 6, size=5), 3),
    ],
)
def embedding(weight, indices, padding_idx, scale_grad_by_freq, sparse):
    """The rows of weight at the indices. The row of padding_idx gets no gradient; scale_grad_by_freq divides
    a row's gradient by how often its index occurs."""
    if weight.rank != 2:
        raise ShapeError(f"the weight must have two dimensions, not {weight.rank}")
    index = places(indices, weight.shape[0], 0)
    if padding_idx < 0 and not scale_grad_by_freq:
        return taken(weight, index, 0)
    return _rows(weight, index, padding_idx, scale_grad_by_freq)


_GRADIENTS = lambda *more: (
    lambda: (
        [
            S(T(8, 3, dtype=d), At(8, size=6), 6, padding, frequent, *more)
            for d in ("float32", "float64")
            for padding, frequent in ((-1, False), (4, True))
        ]
        + [S(T(2, 4, 3, dtype="float32"), At(2, 4, size=6, dtype="int32"), 6, 0, False, *more)]
    )
)


@op(
    "embedding_dense_backward(Tensor grad_output, Tensor indices, SymInt num_weights, SymInt padding_idx, "
    "bool scale_grad_by_freq) -> Tensor",
    function=False,
    samples=_GRADIENTS(),
    needs="indices_of_weights",
)
def embedding_dense_backward(gradient, indices, num_weights, padding_idx, scale_grad_by_freq):
    """The sum of the cotangents of each row of the table, over the places where it was taken."""
    width = gradient.shape[-1] if gradient.rank else 0
    if gradient.numel != indices.numel * width or not gradient.rank:
        raise ShapeError(
            f"embedding_dense_backward: {gradient.type} is not one row for each of {indices.type}"
        )
    wide = dtypes.float32 if gradient.dtype in (dtypes.float16, dtypes.bfloat16) else gradient.dtype
    rows = flat.convert(flat.reshape(gradient, (indices.numel, width)), wide)
    where = flat.reshape(places(indices, num_weights, 0), (indices.numel,))
    if scale_grad_by_freq:
        one = flat.full(where.shape, 1, wide)
        often = flat.take(_folded(one, where, num_weights, "add"), where, 0)
        rows = rows / flat.unsqueeze(often, 1)
    if padding_idx >= 0:  # whatever its cotangent is, NaN too
        rows = flat.where(flat.unsqueeze(flat.eq(where, padding_idx), 1), 0, rows)
    return flat.convert(_folded(rows, where, num_weights, "add"), gradient.dtype)


@op(
    "embedding_backward(Tensor grad, Tensor indices, SymInt num_weights, SymInt padding_idx, "
    "bool scale_grad_by_freq, bool sparse) -> Tensor",
    function=False,
    samples=_GRADIENTS(False),
    needs="indices_of_weights",
)
def embedding_backward(gradient, indices, num_weights, padding_idx, scale_grad_by_freq, sparse):
    """For each of num_weights rows the sum of grad where indices name it, on request over how often they do;
    0 for the row of padding_idx."""
    if sparse:
        raise UnsupportedError("a sparse gradient is not there yet", help="use sparse=False")
    return embedding_dense_backward(gradient, indices, num_weights, padding_idx, scale_grad_by_freq)


class _Bags:
    """Indices and the bags they are in, checked."""

    def __init__(self, weight: Value, indices: Value, offsets: Value, include_last: bool, padding_idx: int):
        if not weight.dtype.is_floating_point or weight.dtype.itemsize < 2:
            raise DTypeError(f"embedding_bag is not defined for a weight of dtype {weight.dtype.name}")
        if weight.rank != 2 or indices.rank != 1 or offsets.rank != 1:
            raise ShapeError(
                f"embedding_bag takes a matrix, indices and offsets of one dimension, not {weight.type}, "
                f"{indices.type} and {offsets.type}"
            )
        if offsets.dtype not in (dtypes.int32, dtypes.int64):
            raise DTypeError(f"embedding_bag: offsets are int32 or int64, not {offsets.dtype.name}")
        if include_last and not offsets.shape[0]:
            raise ShapeError("embedding_bag: include_last_offset needs at least one offset")
        self.dtype = dtypes.promote_types(indices.dtype, offsets.dtype)
        self.size, self.count = indices.shape[0], offsets.shape[0] - int(include_last)
        self.index = places(indices, weight.shape[0], 0)
        offsets = flat.convert(offsets, dtypes.int64)
        if offsets.shape[0]:
            first = flat.eq(flat.slice_dim(offsets, 0, 0, 1), 0)
            offsets = flat.check(offsets, first, ArgumentError, "embedding_bag: the first offset is not 0")
            inside = (offsets >= 0) & (offsets <= self.size)
            message = f"embedding_bag: an offset is not between 0 and the number of indices, {self.size}"
            offsets = flat.check(offsets, inside, ArgumentError, message)
        # How many bags have begun: what the last offset begins, if it only ends the last bag, is none.
        starts = flat.slice_dim(offsets, 0, 0, self.count)
        begun = _folded(flat.full((self.count,), 1, dtypes.int64), starts, self.size, "add")
        self.bag = cumsum(begun, 0, None) - 1
        self.counts = flat.ne(self.index, padding_idx) if padding_idx >= 0 else None
        one = flat.full((self.size,), 1, dtypes.int64)
        if self.counts is not None:
            one = flat.where(self.counts, one, 0)
        self.sizes = _folded(one, self.bag, self.count, "add")


def _bagged(weight, indices, offsets, by_frequency, mode, sparse, sample_weights, include_last, padding_idx):
    """The bags; the bag of each index; the size of each bag; and the index of each maximum."""
    if mode not in (SUM, MEAN, MAX):
        raise ArgumentError(f"embedding_bag: the mode is 0 (sum), 1 (mean) or 2 (max), not {mode}")
    if sample_weights is not None:
        if mode != SUM:
            raise ArgumentError("embedding_bag: per_sample_weights go with sums alone", help='use mode="sum"')
        if sample_weights.shape != indices.shape or sample_weights.dtype is not weight.dtype:
            raise ShapeError(f"embedding_bag: per_sample_weights {sample_weights.type} for {indices.type}")
    bags = _Bags(weight, indices, offsets, include_last, padding_idx)
    whole = lambda x: flat.convert(x, bags.dtype)
    if mode == MAX:
        result, chosen = _largest(weight, bags)
        return result, whole(bags.bag), whole(bags.sizes), whole(chosen)
    wide = dtypes.float32 if weight.dtype in (dtypes.float16, dtypes.bfloat16) else weight.dtype
    rows = flat.convert(_rows(weight, bags.index, padding_idx, by_frequency), wide)
    if sample_weights is not None:
        rows = rows * flat.unsqueeze(flat.convert(sample_weights, wide), 1)
    if bags.counts is not None:
        rows = flat.where(flat.unsqueeze(bags.counts, 1), rows, 0)
    result = _folded(rows, bags.bag, bags.count, "add")
    if mode == MEAN:
        shares = flat.convert(flat.maximum(bags.sizes, 1), wide)
        result = flat.convert(result / flat.unsqueeze(shares, 1), weight.dtype)
        return result, whole(bags.bag), whole(bags.sizes), whole(bags.sizes)
    # What PyTorch leaves out for sums: sizes, and without padding, except of float64, bags.
    short = padding_idx < 0 and weight.dtype is not dtypes.float64
    bag = flat.full((0,), 0, bags.dtype) if short else whole(bags.bag)
    zeros = flat.full(offsets.shape, 0, bags.dtype)
    return flat.convert(result, weight.dtype), bag, zeros, zeros


def _largest(weight: Value, bags: _Bags) -> tuple[Value, Value]:
    """The maximum of each bag, and the index it comes from: the first, where there are several."""
    width = weight.shape[1]
    rows = flat.take(weight, bags.index, 0)
    if bags.counts is not None:
        rows = flat.where(flat.unsqueeze(bags.counts, 1), rows, float("-inf"))
    best = flat.take(_folded(rows, bags.bag, bags.count, "max"), bags.bag, 0)
    holds = flat.eq(rows, best)
    if bags.counts is not None:
        holds = holds & flat.unsqueeze(bags.counts, 1)
    place = flat.where(holds, flat.iota((bags.size, width), 0), bags.size)
    first = _folded(place, bags.bag, bags.count, "min")
    empty = flat.unsqueeze(flat.eq(bags.sizes, 0), 1)
    if not bags.size:
        return flat.full((bags.count, width), 0, weight.dtype), flat.full(
            (bags.count, width), 0, dtypes.int64
        )
    chosen = flat.take(bags.index, flat.minimum(flat.where(empty, 0, first), bags.size - 1), 0)
    chosen = flat.where(empty, 0, chosen)
    return flat.where(empty, 0, flat.take_along(weight, chosen, 0)), chosen


def _bags(*padding):
    """Samples: all indices in one bag, which may have an empty one before it."""
    weight = lambda d=None: T(6, 3, dtype=d)
    single = weight("float32")
    # As int32: of int64 the tests also try places that are none, by which PyTorch reads what is not its own.
    begin = lambda bags: At(bags, size=1, dtype="int32")
    found = [
        S(weight(d), At(8, size=6, dtype="int32"), begin(bags), False, mode, False, None, False, *padding)
        for mode in (SUM, MEAN, MAX) for bags, d in ((1, "float32"), (2, "float64"))
    ]  # fmt: skip
    return lambda: [
        *found, S(weight(), At(0, size=6), begin(1), False, MEAN, False, None, False, *padding),
        S(weight(), At(8, size=6), begin(2), False, MEAN, False, T(8), False, *padding),
        S(single, At(8, size=6), At(2, size=1), False, MEAN, False, None, False, *padding),
        S(single, At(8, size=6), begin(2), False, SUM, False, T(8, dtype="float32"), False, *padding),
        S(single, At(8, size=6), begin(2), False, 3, False, None, False, *padding),
    ]  # fmt: skip


_TABLE = "Tensor weight, Tensor indices, Tensor offsets, "
_PLAIN = (
    "bool scale_grad_by_freq=False, int mode=0, bool sparse=False, Tensor? per_sample_weights=None, "
    "bool include_last_offset=False"
)
_FOUR = "(Tensor, Tensor, Tensor, Tensor)"


@op(f"embedding_bag({_TABLE}{_PLAIN}) -> {_FOUR}", samples=_bags(), positions="offsets", needs="bags")
def embedding_bag(weight, indices, offsets, by_frequency, mode, sparse, sample_weights, include_last):
    """The sum, mean or maximum of the rows of weight that each bag of indices names."""
    return _bagged(weight, indices, offsets, by_frequency, mode, sparse, sample_weights, include_last, -1)


@op(
    f"embedding_bag.padding_idx({_TABLE}bool scale_grad_by_freq, int mode, bool sparse, "
    f"Tensor? per_sample_weights, bool include_last_offset, int? padding_idx) -> {_FOUR}",
    samples=lambda: [*_bags(None)(), *_bags(4)(), *_bags(-2)(), *_bags(9)()],
    positions="offsets",
    needs="bags",
)
def embedding_bag_padding_idx(
    weight, indices, offsets, by_frequency, mode, sparse, sample_weights, include_last, padding_idx
):
    """`embedding_bag` that leaves one index out of every bag."""
    count = weight.shape[0] if weight.rank else 0
    if padding_idx is None:
        padding_idx = -1
    elif not -count <= padding_idx < count:
        raise ArgumentError(f"embedding_bag: padding_idx {padding_idx} is none of the {count} rows of weight")
    else:
        padding_idx %= count
    return _bagged(
        weight, indices, offsets, by_frequency, mode, sparse, sample_weights, include_last, padding_idx
    )


@op(
    f"_embedding_bag({_TABLE}{_PLAIN}, int padding_idx=-1) -> {_FOUR}",
    f"_embedding_bag_forward_only({_TABLE}{_PLAIN}, int padding_idx=-1) -> {_FOUR}",
    samples=lambda: [*_bags(-1)(), *_bags(4)()],
    positions="offsets not padding_idx",
    needs="bags",
    torch_dialect="own name",
)
def _embedding_bag(
    weight, indices, offsets, by_frequency, mode, sparse, sample_weights, include_last, padding_idx
):
    """The sum (mode 0), mean (1) or maximum (2) of the rows of weight in each bag; the bag of each index; the
    size of each bag; and the index of each maximum."""
    return _bagged(
        weight, indices, offsets, by_frequency, mode, sparse, sample_weights, include_last, padding_idx
    )


@op(
    "embedding_renorm(Tensor self, Tensor indices, float max_norm, float norm_type) -> Tensor",
    function=False,
    method=False,
    special=SPECIAL_ORDERS,
    samples=lambda: [
        S(T(5, 3), At(4, size=5), 1.0, 2.0),
        S(T(5, 3), At(2, 2, size=5), 0.5, 1.0),
    ],
    forms="function_",
)
def embedding_renorm(weight, indices, max_norm, norm_type):
    """The rows at the indices scaled down to a norm of max_norm if theirs is larger"""
    if weight.dtype.kind not in ("float", "complex") or weight.dtype.itemsize < 2:
        raise DTypeError(f"embedding_renorm is not defined for {weight.dtype.name}")
    if weight.rank != 2:
        raise ShapeError(f"embedding_renorm takes a matrix, not {weight.type}")
    if indices.dtype not in (dtypes.int32, dtypes.int64):
        raise DTypeError(f"embedding_renorm: indices are int32 or int64, not {indices.dtype.name}")
    count = weight.shape[0]
    place = flat.convert(flat.reshape(indices, (indices.numel,)), dtypes.int64)
    inside = flat.ge(place, 0) & flat.lt(place, count)
    place = flat.check(place, inside, IndexOutOfRange, "embedding_renorm: an index is outside of the rows")
    named = _folded(flat.full(place.shape, 1, dtypes.int64), place, count, "add")
    length = linalg_vector_norm(weight, norm_type, (1,), True, None)
    shrunk = weight * flat.convert(max_norm / (length + 1e-7), weight.dtype)
    chosen = flat.unsqueeze(flat.gt(named, 0), 1) & flat.gt(length, max_norm)
    return flat.where(flat.broadcast_to(chosen, weight.shape), shrunk, weight)
