"""Rows that look at memory by strides, and those that write so: diagonals, sliding windows, as_strided; and
those that fill or copy a whole tensor. The facts of views are explained in `tenfold/tensor/views.py`.
"""

import math

from tenfold import flat
from tenfold.base import dtypes
from tenfold.base.errors import IndexOutOfRange, ShapeError
from tenfold.flat.strides import contiguous
from tenfold.ops.numbers import number_in
from tenfold.ops.parts import fitted
from tenfold.ops.samples import S, T
from tenfold.ops.table import op

# Diagonals


def _corner(x, offset, dim1, dim2):
    """The two dimensions, where the diagonal starts in them, and its length."""
    first, second = flat.axis(dim1, x.rank), flat.axis(dim2, x.rank)
    if x.rank < 2 or first == second:
        raise ShapeError(f"a diagonal needs two different dimensions, not {dim1} and {dim2} of {x.type}")
    row, column = max(-offset, 0), max(offset, 0)
    return first, second, row, column, max(min(x.shape[first] - row, x.shape[second] - column), 0)


def on_diagonal(place, strides, offset, shift, dim1, dim2):
    first, second = [flat.axis(dim, len(strides)) for dim in (dim1, dim2)]
    kept = [s for d, s in enumerate(strides) if d not in (first, second)]
    start = max(-shift, 0) * strides[first] + max(shift, 0) * strides[second] if place.result[-1] else 0
    return (*kept, strides[first] + strides[second]), offset + start


def _diagonals():
    return [
        S(T(3, 4)),
        S(T(4, 3), 1),
        S(T(3, 4), -1),
        S(T(3, 4), 9),
        S(T(2, 3, 4), 0, 1, 2),
        S(T(2, 3, 4), 1, -1, 0),
        S(T(0, 3)),
    ]


@op(
    "diagonal(Tensor(a) self, int offset=0, int dim1=0, int dim2=1) -> Tensor(a)",
    strides=on_diagonal,
    write=lambda call, base, new, *arguments: call("diagonal_scatter", base, new, *arguments),
    samples=_diagonals,
)
@op(
    "diagonal_copy(Tensor self, int offset=0, int dim1=0, int dim2=1) -> Tensor",
    method=False,
    samples=_diagonals,
)
def diagonal(x, offset, dim1, dim2):
    """The elements x[i, i + offset] of two dimensions, as a last dimension."""
    first, second, row, column, length = _corner(x, offset, dim1, dim2)
    others = [d for d in range(x.rank) if d not in (first, second)]
    x = flat.transpose(x, (*others, first, second))
    if length == 0:
        return flat.full((*x.shape[:-2], 0), 0, x.dtype)
    x = flat.slice_dim(flat.slice_dim(x, -2, row, row + length), -1, column, column + length)
    # In a square read as one row, the diagonal is every (n + 1)th element.
    line = flat.reshape(x, (*x.shape[:-2], length * length))
    return flat.slice_dim(line, -1, 0, length * length, length + 1)


@op(
    "linalg_diagonal(Tensor(a) A, *, int offset=0, int dim1=-2, int dim2=-1) -> Tensor(a)",
    strides=on_diagonal,
    steps=lambda place, *arguments: (("diagonal", *arguments),),
    samples=lambda: [S(T(3, 4)), S(T(2, 3, 4), offset=1)],
)
def linalg_diagonal(x, offset, dim1, dim2):
    """The elements A[i, i + offset] of two dimensions, as a last dimension."""
    return diagonal(x, offset, dim1, dim2)


@op(
    "diagonal_scatter(Tensor self, Tensor src, int offset=0, int dim1=0, int dim2=1) -> Tensor",
    samples=lambda: [
        S(T(3, 4), T(3)),
        S(T(4, 3), T(2), 1),
        S(T(3, 4), T(2), -1),
        S(T(2, 3, 4), T(2, 3), 0, 1, 2),
    ],
    torch_dialect="scattered_on_diagonal",
)
def diagonal_scatter(x, src, offset, dim1, dim2):
    """x with src on a diagonal of two dimensions."""
    first, second, row, _, length = _corner(x, offset, dim1, dim2)
    others = [d for d in range(x.rank) if d not in (first, second)]
    src = fitted(src, (*[x.shape[d] for d in others], length), x)
    if length == 0:
        return x
    # Along `first` the source stands where its rows are; the mask chooses the columns.
    low, high = [0] * src.rank, [0] * src.rank
    low[-1], high[-1] = row, x.shape[first] - row - length
    src = flat.pad(src, low, high)
    order = sorted([*others, first])
    src = flat.transpose(src, [[*others, first].index(d) for d in order])
    spread = flat.broadcast_to(flat.unsqueeze(src, second), x.shape)
    rows, columns = flat.iota(x.shape, first), flat.iota(x.shape, second)
    lands = flat.eq(rows + offset, columns) & (rows >= row) & (rows < row + length)
    return flat.where(lands, spread, x)


# Sliding windows


def windowed(place, strides, offset, dimension, size, step):
    if not strides:
        return (1,), offset
    dim = flat.axis(dimension, len(strides))
    return (*strides[:dim], strides[dim] * step, *strides[dim + 1 :], strides[dim]), offset


@op(
    "unfold(Tensor(a) self, int dimension, int size, int step) -> Tensor(a)",
    function=False,
    strides=windowed,
    samples=lambda: [
        S(T(7), 0, 3, 1),
        S(T(7, 2), 0, 2, 3),
        S(T(2, 7), -1, 7, 1),
        S(T(), 0, 1, 1),
        S(T(5), 0, 0, 2),
    ],
)
@op(
    "unfold_copy(Tensor self, int dimension, int size, int step) -> Tensor",
    method=False,
    samples=lambda: [S(T(7), 0, 3, 1), S(T(7, 2), 0, 2, 3), S(T(), 0, 1, 1)],
)
def unfold(x, dimension, size, step):
    """Windows of `size` elements along a dimension, one every `step`, each as a new last dimension."""
    dim = flat.axis(dimension, x.rank)
    extent = x.shape[dim] if x.rank else 1
    if not 0 <= size <= extent or step < 1:
        raise ShapeError(
            f"unfold: windows of {size} every {step} do not fit dimension {dimension} of {x.type}"
        )
    if not x.rank:
        return flat.reshape(x, (1,)) if size else flat.full((0,), 0, x.dtype)
    count = (extent - size) // step + 1
    if not size or not x.numel:
        return flat.full((*x.shape[:dim], count, *x.shape[dim + 1 :], size), 0, x.dtype)
    starts = flat.broadcast_to(flat.unsqueeze(flat.iota((count,), 0) * step, 1), (count, size))
    windows = flat.take(x, starts + flat.iota((count, size), 1), dim)
    return flat.move(windows, dim + 1, -1)


# Strides


def given_strides(place, strides, offset, size, stride, storage_offset):
    return tuple(stride), storage_offset


def _addresses(x, size, stride, offset):
    """Where each element lies in x, read as one row."""
    if len(size) != len(stride):
        raise ShapeError(f"as_strided: size {list(size)} and stride {list(stride)} differ in length")
    if any(s < 0 for s in stride) or any(n < 0 for n in size) or offset < 0:
        raise ShapeError(
            f"as_strided: negative sizes, strides or offsets are not supported: {size}, {stride}, {offset}"
        )
    last = offset + sum((n - 1) * s for n, s in zip(size, stride, strict=True))
    if 0 not in size and last >= x.numel:
        raise IndexOutOfRange(
            f"as_strided: element {last} is outside of the {x.numel} elements of the storage of {x.type}"
        )
    places = flat.full(size, offset, dtypes.int64)
    for dim, step in enumerate(stride):
        places = places + flat.iota(size, dim) * step
    return places


def _strided():
    return [
        S(T(3, 4), (2, 2), (4, 1)),
        S(T(12), (3, 3), (1, 2), 1),
        S(T(4), (2, 3), (1, 0)),
        S(T(), (), ()),
        S(T(6), (0, 2), (1, 1)),
    ]


@op(
    "as_strided(Tensor(a) self, SymInt[] size, SymInt[] stride, SymInt? storage_offset=None) -> Tensor(a)",
    storage=True,
    inplace=True,
    strides=given_strides,
    samples=_strided,
    forms="function_",
    torch_dialect="gathered_by_strides",
)
@op(
    "as_strided_copy(Tensor self, SymInt[] size, SymInt[] stride, SymInt? storage_offset=None) -> Tensor",
    storage=True,
    method=False,
    samples=_strided,
    torch_dialect="gathered_by_strides",
)
def as_strided(x, size, stride, storage_offset):
    """The elements of x's memory at storage_offset + sum of index * stride."""
    places = _addresses(x, size, stride, storage_offset or 0)
    if 0 in size:
        return flat.full(size, 0, x.dtype)
    if tuple(stride) == contiguous(size):
        line = flat.slice_dim(
            flat.reshape(x, (x.numel,)), 0, storage_offset or 0, (storage_offset or 0) + places.numel
        )
        return flat.reshape(line, size)
    return flat.take(flat.reshape(x, (x.numel,)), places, 0)


@op(
    "as_strided_scatter(Tensor self, Tensor src, SymInt[] size, SymInt[] stride, SymInt? storage_offset=None)"
    " -> Tensor",
    storage=True,
    samples=lambda: [
        S(T(3, 4), T(2, 2), (2, 2), (4, 1)),
        S(T(12), T(3, 3), (3, 3), (1, 3), 1),
        S(T(4), T(0), (0,), (1,)),
        S(T(3), T(), (), (), 2),
    ],
    torch_dialect="scattered_by_strides",
)
def as_strided_scatter(x, src, size, stride, storage_offset):
    """x with src written at storage_offset + sum of index * stride of its memory."""
    places = _addresses(x, size, stride, storage_offset or 0)
    src = fitted(src, tuple(size), x)
    if 0 in size:
        return x
    line = flat.reshape(x, (x.numel,))
    numbers = flat.ScatterDimensions((), (0,), (0,), 1)
    places, src = flat.reshape(places, (places.numel, 1)), flat.reshape(src, (src.numel,))
    return flat.reshape(flat.scatter(line, places, src, numbers), x.shape)


# All of a tensor


@op(
    "copy(Tensor self, Tensor src, bool non_blocking=False) -> Tensor",
    function=False,
    method=False,
    inplace=True,
    numbers=True,
    samples=lambda: [
        S(T(3, 4), T(3, 4)),
        S(T(3, 4), T(4)),
        S(T(3, 4), T()),
        S(T(3), T(3, dtype="int64")),
        S(T(0, 3), T(3)),
    ],
    needs="strided; inplace: nothing",
)
def copy(x, src):
    """src, stretched to x's shape and converted to its dtype."""
    if not isinstance(src, flat.Value):
        return fill(x, src)
    return flat.broadcast_to(flat.convert(src, x.dtype), x.shape)


@op(
    "fill.Scalar(Tensor self, Scalar value) -> Tensor",
    method=False,
    inplace=True,
    uniform=True,
    forms="function_",
)
def fill(x, value):
    """value in every element, in self's shape and dtype."""
    return flat.full_like(x, number_in(value, x.dtype, math.prod(x.shape) == 1))


@op(
    "fill.Tensor(Tensor self, Tensor value) -> Tensor",
    method=False,
    inplace=True,
    uniform=True,
    samples=lambda: [S(T(3, 4), T()), S(T(), T()), S(T(2), T(dtype="float32"))],
    forms="function_",
)
def fill_with(x, value):
    """value, a zero-dimensional tensor, in every element, in self's shape and dtype."""
    if value.rank:
        raise ShapeError(f"fill: the value must be zero-dimensional, not {value.type}", help="use copy_")
    return copy(x, value)


@op(
    "zero(Tensor self) -> Tensor", function=False, method=False, inplace=True, uniform=True, forms="function_"
)
def zero(x):
    """0 in every element, in self's shape and dtype."""
    return flat.full_like(x, 0)
