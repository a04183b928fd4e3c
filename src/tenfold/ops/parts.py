"""Rows whose results are parts of their argument's memory, and those that put a part back.

Splitting is in `splitting.py`, strided parts are in `strided.py`. The facts of views are explained in
`tenfold/tensor/views.py`.
"""

from tenfold import flat
from tenfold.base.errors import ArgumentError, IndexOutOfRange, ShapeError
from tenfold.ops.samples import S, T
from tenfold.ops.table import op


def place_in(index, dim, x):
    """An index along `dim`, counted from the front."""
    if isinstance(index, flat.LateNumber):
        index = flat.plain(index)
        return flat.where(index < 0, index + x.shape[dim], index)
    if not x.rank:
        raise IndexOutOfRange("a zero-dimensional tensor cannot be indexed", help="use item() for its value")
    extent = x.shape[dim]
    if not -extent <= index < extent:
        raise IndexOutOfRange(f"index {index} is out of range for dimension {dim} of {x.type}")
    return index % extent


def bounds(extent, start, end):
    """A slice's start and end, brought inside as Python does."""
    start = 0 if start is None else start
    end = extent if end is None else end
    start, end = (start + extent if start < 0 else start), (end + extent if end < 0 else end)
    start = min(max(start, 0), extent)
    return start, min(max(end, start), extent)


def fitted(src, wanted, x):
    """What is put into x must have the shape of the place it goes to, and its dtype."""
    if src.shape != wanted:
        raise ShapeError(
            f"the source {src.type} has not the shape {list(wanted)} of the part of {x.type} that it replaces"
        )
    return flat.convert(src, x.dtype)


def late_part(x, dim, start, length):
    """`length` elements along dim from a start that is known when the program runs."""
    starts = [start if d == dim else 0 for d in range(x.rank)]
    return flat.dynamic_slice(x, starts, [length if d == dim else n for d, n in enumerate(x.shape)])


def late_start(types, arguments):
    """A slice whose start may come late: its length, which decides the shape, then stands for `end`."""
    *before, dim, start, end, step = arguments
    if step != 1:
        return arguments, ()
    start, end = bounds(types[0].shape[dim], start, end)
    return (*before, dim, int, end - start, step), (start,)


# One index


def selected(place, strides, offset, dim, index):
    dim = flat.axis(dim, len(strides))
    return (*strides[:dim], *strides[dim + 1 :]), offset + strides[dim] * (index % place.shape[dim])


@op(
    "select.int(Tensor(a) self, int dim, SymInt index) -> Tensor(a)",
    strides=selected,
    write=lambda call, base, new, dim, index: call("select_scatter", base, new, dim, index),
    samples=lambda: [
        S(T(3, 4), 0, 1),
        S(T(3, 4), -1, -1),
        S(T(2, 3, 4), 1, 2),
        S(T(3), 0, 0),
        S(T(0, 3), 1, 1),
    ],
)
def select(x, dim, index):
    """x[..., index, ...] along dim."""
    dim = flat.axis(dim, x.rank)
    start = place_in(index, dim, x)
    if isinstance(start, flat.Value):
        return flat.squeeze(late_part(x, dim, start, 1), dim)
    return flat.squeeze(flat.slice_dim(x, dim, start, start + 1), dim)


@op(
    "select_scatter(Tensor self, Tensor src, int dim, SymInt index) -> Tensor",
    samples=lambda: [S(T(3, 4), T(4), 0, 1), S(T(3, 4), T(3), -1, -1), S(T(3), T(), 0, 2)],
    torch_dialect="select_scatter(self, src, dim, index % self.shape[dim])",
)
def select_scatter(x, src, dim, index):
    """x with src at `index` along dim."""
    dim = flat.axis(dim, x.rank)
    starts = [0] * x.rank
    starts[dim] = place_in(index, dim, x)
    src = fitted(src, (*x.shape[:dim], *x.shape[dim + 1 :]), x)
    return flat.dynamic_update_slice(x, flat.unsqueeze(src, dim), starts)


@op(
    "unbind.int(Tensor(a -> *) self, int dim=0) -> Tensor(a)[]",
    steps=lambda place, dim: (("select.int", dim, place.which),),
    samples=lambda: [S(T(3, 4)), S(T(3, 4), 1), S(T(2, 3, 1), -1), S(T(2, 0)), S(T(3))],
)
def unbind(x, dim):
    """The slices x[..., i, ...] along dim."""
    dim = flat.axis(dim, x.rank)
    if not x.rank:
        raise IndexOutOfRange("unbind: a zero-dimensional tensor has no dimension to take apart")
    return [flat.squeeze(flat.slice_dim(x, dim, i, i + 1), dim) for i in range(x.shape[dim])]


# Ranges


def sliced(place, strides, offset, dim, start, end, step):
    dim = flat.axis(dim, len(strides))
    first, _ = bounds(place.shape[dim], start, end)
    return (*strides[:dim], strides[dim] * step, *strides[dim + 1 :]), offset + strides[dim] * first


def _slices():
    return [
        S(T(5, 4)),
        S(T(5, 4), 0, 1, 4),
        S(T(5, 4), -1, -3),
        S(T(5, 4), 0, None, -1, 2),
        S(T(5, 4), 1, 3, 2),
        S(T(5, 4), 0, 2, 99, 3),
        S(T(5), 0, -99, 9223372036854775807, 2),
        S(T(0, 3), 1, 1),
    ]


@op(
    "slice.Tensor(Tensor(a) self, int dim=0, SymInt? start=None, SymInt? end=None, SymInt step=1)"
    " -> Tensor(a)",
    function=False,
    method=False,
    strides=sliced,
    samples=_slices,
    late=late_start,
    write=lambda call, base, new, dim, start, end, step: call(
        "slice_scatter", base, new, dim, start, end, step
    ),
)
def slice(x, dim, start, end, step):
    """x[..., start:end:step, ...] along dim."""
    dim = flat.axis(dim, x.rank)
    if not x.rank:
        raise IndexOutOfRange("a zero-dimensional tensor cannot be sliced")
    if step < 1:
        raise ArgumentError(
            f"slice: a step must be positive, not {step}", help="use flip to reverse a dimension"
        )
    if isinstance(start, flat.LateNumber):
        return late_part(x, dim, flat.plain(start), end)
    first, last = bounds(x.shape[dim], start, end)
    return flat.slice_dim(x, dim, first, last, step)


@op(
    "slice_scatter(Tensor self, Tensor src, int dim=0, SymInt? start=None, SymInt? end=None, SymInt step=1)"
    " -> Tensor",
    samples=lambda: [
        S(T(5, 4), T(2, 4), 0, 1, 3),
        S(T(5, 4), T(5, 2), 1, 0, None, 2),
        S(T(5), T(2), 0, -3, -1),
        S(T(5, 4), T(5, 4)),
        S(T(5, 4), T(0, 4), 0, 2, 2),
        S(T(6), T(2), 0, 1, 6, 3),
    ],
    late=late_start,
)
def slice_scatter(x, src, dim, start, end, step):
    """x with src in the place of x[..., start:end:step, ...]."""
    dim = flat.axis(dim, x.rank)
    if step < 1:
        raise ArgumentError(f"slice_scatter: a step must be positive, not {step}")
    if not x.rank:
        raise IndexOutOfRange("a zero-dimensional tensor cannot be sliced")
    if isinstance(start, flat.LateNumber):
        src = fitted(src, (*x.shape[:dim], end, *x.shape[dim + 1 :]), x)
        return flat.dynamic_update_slice(
            x, src, [flat.plain(start) if d == dim else 0 for d in range(x.rank)]
        )
    extent = x.shape[dim]
    first, last = bounds(extent, start, end)
    count = -(-(last - first) // step)
    src = fitted(src, (*x.shape[:dim], count, *x.shape[dim + 1 :]), x)
    if count == extent:
        return src
    if count == 0:
        return x
    if step == 1 or count == 1:
        starts = [0] * x.rank
        starts[dim] = first
        return flat.dynamic_update_slice(x, src, starts)
    # Spread the source over the range, and choose it where a step lands.
    low, interior = [0] * x.rank, [0] * x.rank
    low[dim], interior[dim] = first, step - 1
    high = [0] * x.rank
    high[dim] = extent - first - (count - 1) * step - 1
    spread = flat.pad(src, low, high, 0, interior)
    places = flat.iota(x.shape, dim)
    lands = (places >= first) & (places < last) & flat.eq(flat.rem(places - first, step), 0)
    return flat.where(lands, spread, x)


def _narrowed(dim, start, length, x):
    dim = flat.axis(dim, x.rank)
    if not x.rank:
        raise ShapeError("narrow: a zero-dimensional tensor has no dimension to narrow")
    extent = x.shape[dim]
    first = start + extent if start < 0 else start
    if length < 0 or not 0 <= first <= extent or first + length > extent:
        raise IndexOutOfRange(
            f"narrow: {length} elements from {start} do not lie in dimension {dim} of {x.type}"
        )
    return flat.slice_dim(x, dim, first, first + length)


def _late_narrow(types, arguments):
    """Where a part begins may come late, counted from the front."""
    slot, dim, start, length = arguments
    if not length:
        return arguments, ()
    first = start + types[0].shape[flat.axis(dim, types[0].rank)] if start < 0 else start
    return (slot, dim, int, length), (first,)


def as_narrow(place, dim, start, length):
    first = start + place.shape[dim] if start < 0 else start
    return (("slice.Tensor", dim, first, first + length),)


def _narrows():
    return [S(T(5, 4), 0, 1, 3), S(T(5, 4), -1, -2, 2), S(T(5, 4), 1, 4, 0), S(T(0, 3), 0, 0, 0)]


# narrow.Tensor, whose start is computed, is in indexing.py: it stays lazy.
@op(
    "narrow(Tensor(a) self, int dim, SymInt start, SymInt length) -> Tensor(a)",
    steps=as_narrow,
    late=_late_narrow,
    samples=_narrows,
    torch_dialect="narrow_from_start",
)
@op(
    "narrow_copy(Tensor self, int dim, SymInt start, SymInt length) -> Tensor",
    late=_late_narrow,
    samples=_narrows,
)
def narrow(x, dim, start, length):
    """`length` elements of dimension dim from `start`."""
    if isinstance(start, flat.LateNumber):
        return late_part(x, flat.axis(dim, x.rank), flat.plain(start), length)
    return _narrowed(dim, start, length, x)
