"""Rows that read at computed places, and `index_put`, which writes where `index` reads.

Indices are checked as the program runs: one that is out of range raises where the results are read. Rows that
scatter along a dimension are in `scatter.py`, those that go by a mask in `masks.py`.
"""

import numpy as np

from tenfold import flat
from tenfold.base import dtypes
from tenfold.base.errors import ArgumentError, DTypeError, IndexOutOfRange, ShapeError, UnsupportedError
from tenfold.ops.masks import masked_fill, ranks_of_true
from tenfold.ops.samples import S, T
from tenfold.ops.table import op

INT64 = (dtypes.int64,)
INTEGERS = (dtypes.int64, dtypes.int32)


def check_integers(index, accepts=INTEGERS):
    if index.dtype not in accepts:
        wanted = " or ".join(accept.name for accept in accepts)
        raise DTypeError(
            f"indices must be {wanted}, not {index.dtype.name}", help="convert them with .long()"
        )


def places(index, extent, dim, *, wrap=False, accepts=INTEGERS):
    """Indices into a dimension as int64, checked; `wrap` says that negative ones count from the end."""
    check_integers(index, accepts)
    index = flat.convert(index, dtypes.int64)
    inside = (index >= (-extent if wrap else 0)) & (index < extent)
    index = flat.check(
        index, inside, IndexOutOfRange, f"an index is out of range for dimension {dim} of size {extent}"
    )
    return flat.where(index < 0, index + extent, index) if wrap else index


def vector(index):
    """A one-dimensional tensor of indices; a zero-dimensional one counts as such."""
    if index.rank > 1:
        raise ShapeError(f"the index must have one dimension, not {index.rank}")
    return flat.reshape(index, (index.numel,))


def same_dtype(x, source):
    if source.dtype is not x.dtype:
        raise DTypeError(
            f"the tensor is {x.dtype.name}, but what goes into it is {source.dtype.name}",
            help=f"convert it with .to({x.dtype.name})",
        )


# Several indices at once: index and index_put


class Spots:
    """Where index tensors point: `starts` holds the coordinates in `dims`, `shape` is of what lies there.

    The dimensions of the broadcast indices stand in that shape where the indexed ones stood, if these are
    neighbours, and otherwise in front.
    """

    def __init__(self, x, indices):
        if len(indices) > x.rank:
            raise IndexOutOfRange(f"{len(indices)} indices for {x.type}, which has {x.rank} dimensions")
        self.dims = tuple([dim for dim, index in enumerate(indices) if index is not None])
        if not self.dims:
            raise ArgumentError("no tensor among the indices", help="give at least one")
        given = [indices[dim] for dim in self.dims]
        for each in given:
            check_integers(each)
        try:
            self.batch = flat.broadcast_shapes(*[each.shape for each in given])
        except ShapeError as error:
            raise IndexOutOfRange(f"the indices do not go together: {error.message}") from None
        first, last = self.dims[0], self.dims[-1]
        front = first if last - first + 1 == len(self.dims) else 0
        kept = [extent for dim, extent in enumerate(x.shape) if dim not in self.dims]
        self.shape = (*kept[:front], *self.batch, *kept[front:])
        self.windows = (*range(front), *range(front + len(self.batch), len(self.shape)))
        self.empty = 0 in self.shape
        empty = next((dim for dim in self.dims if x.shape[dim] == 0), None)
        if empty is not None and 0 not in self.batch:
            raise IndexOutOfRange(f"nothing can be indexed in dimension {empty} of {x.type}, which is empty")
        if not self.empty:
            found = [places(each, x.shape[dim], dim, wrap=True) for dim, each in zip(self.dims, given)]
            found = [flat.broadcast_to(each, self.batch) for each in found]
            columns = [flat.unsqueeze(each, each.rank) for each in found]
            self.starts = found[0] if len(found) == 1 else flat.concatenate(columns, len(self.batch))


def At(*shape, size=1, low=0, dtype="int64"):
    """A sample of indices into a dimension of this size."""
    return T(*shape, dtype=dtype, low=low, high=size)


def _reads():
    return [
        S(T(4, 3), (At(5, size=4, low=-4),)),
        S(T(4, 3), (At(5, size=4, dtype="int32"),)),
        S(T(4, 3), (None, At(2, 2, size=3, low=-3))),
        S(T(4, 3, 2), (At(2, 1, size=4), At(4, size=3, low=-3))),
        S(T(4, 3, 2), (At(4, size=4), None, At(size=2))),
        S(T(4, 3, 2), (None, At(4, size=3), At(4, size=2))),
        S(T(4, 3), (At(0),)),
        S(T(0, 3), (At(0),)),
        S(T(3, 0), (At(2, size=3),)),
    ]


def as_mask(index):
    """A tensor's own index; uint8 is the dtype that masks once had."""
    return index.bool() if index is not None and index.dtype is dtypes.uint8 else index


def masks_as_places(x, indices, *others):
    """Tensors' own indices with each mask as the places where it is true, which evaluates it."""
    found: list = []
    for index in map(as_mask, indices):
        mask = index is not None and index.dtype is dtypes.bool_
        found += index.nonzero(as_tuple=True) if mask else [index]
    return x, tuple(found), *others


def lone_mask_or_places(x, indices, *others):
    """A mask that is the only index stays one: values are put by it without evaluating it."""
    lone = sum([index is not None for index in indices]) == 1
    return (x, tuple(map(as_mask, indices)), *others) if lone else masks_as_places(x, indices, *others)


@op(
    "index.Tensor(Tensor self, Tensor?[] indices) -> Tensor",
    function=False,
    method=False,
    prepare=masks_as_places,
    samples=_reads,
)
def index(x, indices):
    """self[indices[0], indices[1], …], where None stands for a whole dimension."""
    if any(each is not None and each.dtype.kind == "bool" for each in indices):
        raise UnsupportedError(
            "a mask reads a shape that depends on data", help="write x[mask] or masked_select"
        )
    spots = Spots(x, indices)
    if spots.empty:
        return flat.full(spots.shape, 0, x.dtype)
    numbers = flat.GatherDimensions(spots.windows, spots.dims, spots.dims, len(spots.batch))
    return flat.gather(x, spots.starts, numbers, [1 if d in spots.dims else n for d, n in enumerate(x.shape)])


def _puts():
    shapes = [(5, 3), (1, 3), (4, 2, 2), (2, 4, 2), (4, 3), (4,), (1,), (3,), (2, 0)]
    summed = [S(*read.args, T(*shape), True) for read, shape in zip(_reads(), shapes)]
    # PyTorch does not promise which of several values stays: places are distinct, or in the first dimension.
    plain = [
        S(T(4, 3), (At(5, size=4, low=-4),), T(5, 3)),
        S(T(4, 3), (At(5, size=4, dtype="int32"),), T()),
        S(T(4, 3), (None, At(1, 1, size=3, low=-3)), T(4, 1, 1)),
        S(T(4, 3, 2), (At(1, size=4), None, At(size=2)), T(1, 3)),
        S(T(4, 3, 2), (None, At(1, size=3), At(size=2)), T(4, 1)),
        S(T(4, 3), (At(0),), T(3)),
        S(T(3, 0), (At(2, size=3),), T(2, 0)),
    ]
    masked = [
        S(T(4, 3), (T(4, 3, dtype="bool"),), T()),
        S(T(4, 3), (T(4, dtype="bool"),), T(3)),
        S(T(4, 3), (None, T(3, dtype="bool")), T(4, 1)),
        S(T(4, 3), (None, T(3, dtype="bool")), T(4, 1), True),
    ]
    return plain + summed + masked


@op(
    "index_put(Tensor self, Tensor?[] indices, Tensor values, bool accumulate=False) -> Tensor",
    inplace=True,
    prepare=lone_mask_or_places,
    samples=_puts,
    autocast="cuda: widest",
    forms="function_",
    torch_dialect="put_from_start",
)
def index_put(x, indices, values, accumulate):
    """self after self[indices] = values, or += values; of several at one place the last stays."""
    if any(index is not None and index.dtype.kind == "bool" for index in indices):
        return _put_by_mask(x, indices, values, accumulate)
    same_dtype(x, values)
    spots = Spots(x, indices)
    try:
        values = flat.broadcast_to(values, spots.shape)
    except ShapeError:
        raise ShapeError(
            f"{values.type} does not broadcast to the {list(spots.shape)} that is indexed"
        ) from None
    if spots.empty:
        return x
    numbers = flat.ScatterDimensions(spots.windows, spots.dims, spots.dims, len(spots.batch))
    return flat.scatter(x, spots.starts, values, numbers, "add" if accumulate else "set")


def _put_by_mask(x, indices, values, accumulate):
    """A mask instead of indices: values go, in order, to the places where it is true."""
    if sum(index is not None for index in indices) > 1:
        raise UnsupportedError("a mask beside other indices", help="use mask.nonzero(as_tuple=True)")
    start, mask = next((dim, index) for dim, index in enumerate(indices) if index is not None)
    stop = start + mask.rank
    if x.shape[start:stop] != mask.shape:
        raise IndexOutOfRange(f"a mask of shape {list(mask.shape)} at dimension {start} of {x.type}")
    after = x.rank - stop
    where = flat.reshape(mask, (*mask.shape, *[1] * after))
    if values.numel == 1 and not accumulate:
        return masked_fill(x, where, flat.reshape(values, ()))
    same_dtype(x, values)
    # The dimension of values that runs over the places, unless they broadcast along it.
    along = values.rank - 1 - after
    if along < 0 or values.shape[along] == 1:
        cut = max(along, 0)
        spread = flat.reshape(
            values, (*values.shape[:cut], *[1] * mask.rank, *values.shape[cut + (along >= 0) :])
        )
        chosen = flat.broadcast_to(spread, x.shape)
    else:
        count = values.shape[along]
        values = flat.broadcast_to(values, (*x.shape[:start], count, *x.shape[stop:]))
        ranks, total = ranks_of_true(mask)
        message = f"there are {count} values, but the mask is true at another number of places"
        if not count:
            return flat.check(x, flat.eq(total, 0), ShapeError, message)
        ranks = flat.check(ranks, flat.eq(total, count), ShapeError, message)
        chosen = flat.take(values, flat.clamp(ranks, 0, count - 1), start)
    return flat.where(where, x + chosen if accumulate else chosen, x)


# One index


@op(
    "index_select(Tensor self, int dim, Tensor index) -> Tensor",
    samples=lambda: [
        S(T(4, 3), 0, At(5, size=4)),
        S(T(4, 3), -1, At(5, size=3, dtype="int32")),
        S(T(2, 3, 4), 1, At(size=3)),
        S(T(), 0, At(1, size=1)),
        S(T(4, 3), 0, At(0)),
        S(T(0, 3), 1, At(2, size=3)),
    ],
)
def index_select(x, dim, index):
    """The slices of self along dim that index names, in its order."""
    dim = flat.axis(dim, x.rank)
    index = vector(index)
    if not x.rank:
        if index.numel != 1:
            raise ShapeError(f"a zero-dimensional tensor takes one index, not {index.numel}")
        return flat.reshape(index_select(flat.reshape(x, (1,)), 0, index), ())
    index = places(index, x.shape[dim], dim)
    return taken(x, index, dim)


def taken(x, index, dim):
    """x at checked indices of one dimension, which may be empty."""
    shape = (*x.shape[:dim], *index.shape, *x.shape[dim + 1 :])
    if index.numel and not x.shape[dim]:
        raise IndexOutOfRange(f"nothing can be indexed in dimension {dim} of {x.type}, which is empty")
    return flat.full(shape, 0, x.dtype) if 0 in shape else flat.take(x, index, dim)


@op(
    "gather(Tensor self, int dim, Tensor index, *, bool sparse_grad=False) -> Tensor",
    samples=lambda: [
        S(T(4, 3), 0, At(2, 3, size=4)),
        S(T(4, 3), -1, At(3, 5, size=3, dtype="int32")),
        S(T(2, 3, 4), 1, At(2, 7, 1, size=3)),
        S(T(), 0, At(size=1)),
        S(T(), 0, At(3, size=1)),
        S(T(5), 0, At(size=5)),
        S(T(4, 3), 0, At(0, 3)),
        S(T(4, 3), 0, At(0)),
    ],
)
def gather(x, dim, index, sparse_grad):
    """result[i][j] = self[index[i][j]][j] for dim 0, and so on."""
    dim = flat.axis(dim, x.rank)
    if not index.numel:
        return flat.full(index.shape, 0, x.dtype)
    x, rows = at_least_1d(x), at_least_1d(index)
    fits_beside(x, rows, dim)
    rows = places(rows, x.shape[dim], dim)
    return flat.reshape(flat.take_along(x, rows, dim), index.shape)


def at_least_1d(x):
    return x if x.rank else flat.reshape(x, (1,))


def fits_beside(x, index, dim):
    """Refuse an index that does not lie inside x in all dimensions but one."""
    if index.rank != x.rank:
        raise ShapeError(f"the index has {index.rank} dimensions, the tensor {x.rank}: they must be as many")
    for d, (have, extent) in enumerate(zip(index.shape, x.shape)):
        if d != dim and have > extent:
            raise ShapeError(
                f"the index {list(index.shape)} is larger than {x.type} in dimension {d}",
                help=f"only in dimension {dim} may it be",
            )
    if not x.shape[dim]:
        raise IndexOutOfRange(f"nothing can be indexed in dimension {dim} of {x.type}, which is empty")


@op(
    "take(Tensor self, Tensor index) -> Tensor",
    samples=lambda: [
        S(T(4, 3), At(2, 2, size=12, low=-12)),
        S(T(4, 3), At(size=12)),
        S(T(), At(2, size=1, low=-1)),
        S(T(0), At(0)),
    ],
)
def take(x, index):
    """Elements of self by their places in row-major order."""
    index = places(index, x.numel, 0, wrap=True, accepts=INT64)
    return taken(flat.reshape(x, (x.numel,)), index, 0)


@op(
    "take_along_dim(Tensor self, Tensor indices, int? dim=None) -> Tensor",
    samples=lambda: [
        S(T(4, 3), At(2, 3, size=4, low=-4), 0),
        S(T(4, 3), At(1, 5, size=3), -1),
        S(T(1, 3), At(4, 2, size=3), 1),
        S(T(4, 3), At(2, 2, size=12)),
    ],
)
def take_along_dim(x, indices, dim):
    """`gather` with the other dimensions broadcast; without dim, of the elements in row-major order."""
    if dim is None:
        x, indices, dim = flat.reshape(x, (x.numel,)), flat.reshape(indices, (indices.numel,)), 0
        wrap = False
    else:
        wrap = True
    if x.rank != indices.rank:
        raise ShapeError(
            f"the indices have {indices.rank} dimensions, the tensor {x.rank}: they must be as many"
        )
    dim = flat.axis(dim, x.rank)
    others = flat.broadcast_shapes(*[(*s[:dim], 1, *s[dim + 1 :]) for s in (x.shape, indices.shape)])
    size = x.shape[dim] if x.rank else 1
    indices = places(indices, size, dim, wrap=wrap, accepts=INT64)
    if not x.rank:
        return flat.reshape(gather(x, 0, indices, False), ())
    x = flat.broadcast_to(x, (*others[:dim], size, *others[dim + 1 :]))
    indices = flat.broadcast_to(indices, (*others[:dim], indices.shape[dim], *others[dim + 1 :]))
    return gather(x, dim, indices, False)


@op(
    "one_hot(Tensor self, int num_classes=-1) -> Tensor",
    module="nn",
    method=False,
    samples=lambda: [S(At(2, 3, size=5), 5), S(At(size=5), 7)],
    positions="self",
)
def one_hot(x, num_classes):
    """1 where a new last dimension's place is the element, 0 elsewhere."""
    if x.dtype is dtypes.int64 and num_classes < 0:
        raise ArgumentError("the number of classes would depend on data", help="give num_classes")
    index = places(x, num_classes, x.rank, accepts=INT64)
    hot = flat.eq(flat.unsqueeze(index, x.rank), flat.iota((*x.shape, num_classes), x.rank))
    return flat.convert(hot, dtypes.int64)


# A place that is data, seen as a view


def _narrowed_strides(place, strides, offset, dim, start, length):
    """Counted from the first element while the start is not computed: by `recodes` no write relies on it."""
    dim = flat.axis(dim, len(strides))
    first = (
        int(start.buffer) % place.shape[dim]
        if isinstance(start.buffer, np.ndarray) and place.shape[dim]
        else 0
    )
    return strides, offset + first * strides[dim]


def _put_narrowed(call, base, new, dim, start, length):
    before = (None,) * flat.axis(dim, base.type.rank)
    start = call("_to_copy", start, dtypes.int64)
    if length == 1:
        return call("index_put", base, (*before, start), call("select.int", new, dim, 0))
    counted = call("cumsum", call("ones_like", call("expand", start, (length,))), 0)
    return call("index_put", base, (*before, call("add.Tensor", start, call("add.Scalar", counted, -1))), new)


@op(
    "narrow.Tensor(Tensor(a) self, int dim, Tensor start, SymInt length) -> Tensor(a)",
    strides=_narrowed_strides,
    write=_put_narrowed,
    recodes=True,
    samples=lambda: [
        S(T(5, 4), 0, At(size=3), 3),
        S(T(5, 4), -1, At(size=0, low=-4), 1),
        S(T(3), 0, At(size=4), 0),
    ],
    positions="start",
)
def narrow(x, dim, start, length):
    """`length` elements of dimension dim from a start that is computed."""
    if start.rank or start.dtype.kind != "int":
        raise ArgumentError(f"the start must be one integer, not {start.type}")
    if not x.rank:
        raise ShapeError("a zero-dimensional tensor has no dimension to narrow")
    dim = flat.axis(dim, x.rank)
    extent = x.shape[dim]
    if not 0 <= length <= extent:
        raise IndexOutOfRange(f"{length} elements do not lie in dimension {dim} of {x.type}")
    start = flat.convert(start, dtypes.int64)
    start = flat.where(start < 0, start + extent, start)
    inside = (start >= 0) & (start <= extent - length)
    message = f"an index is out of range for dimension {dim} of size {extent}"
    start = flat.check(start, inside, IndexOutOfRange, message)
    starts, sizes = [0] * x.rank, list(x.shape)
    starts[dim], sizes[dim] = start, length
    return flat.dynamic_slice(x, starts, sizes)
