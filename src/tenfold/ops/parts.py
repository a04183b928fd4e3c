"""Rows whose results are parts of their argument's memory, and those that put a part back: select, slice, diagonal,
split and the like. The facts of views are explained in `tenfold/views.py`.
"""

from tenfold import dtypes, flat
from tenfold.errors import ArgumentError, IndexOutOfRange, ShapeError
from tenfold.ops.samples import S, T
from tenfold.ops.table import op


def place_in(index, dim, x):
    """An index along `dim`, counted from the front."""
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
            f"the source {src.type} does not have the shape {list(wanted)} of the part of {x.type} it replaces"
        )
    return flat.convert(src, x.dtype)


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
    return flat.squeeze(flat.slice_dim(x, dim, start, start + 1), dim)


@op(
    "select_scatter(Tensor self, Tensor src, int dim, SymInt index) -> Tensor",
    samples=lambda: [S(T(3, 4), T(4), 0, 1), S(T(3, 4), T(3), -1, -1), S(T(3), T(), 0, 2)],
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
    steps=lambda place, dim: (("select.int", dim, place.index),),
    samples=lambda: [S(T(3, 4)), S(T(3, 4), 1), S(T(2, 3, 1), -1), S(T(2, 0)), S(T(3))],
)
def unbind(x, dim):
    """All x[..., i, ...] along dim."""
    dim = flat.axis(dim, x.rank)
    if not x.rank:
        raise ShapeError("unbind: a zero-dimensional tensor has no dimension to take apart")
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
    "slice.Tensor(Tensor(a) self, int dim=0, SymInt? start=None, SymInt? end=None, SymInt step=1) -> Tensor(a)",
    function=False,
    method=False,
    strides=sliced,
    samples=_slices,
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
    return flat.slice_dim(x, dim, *bounds(x.shape[dim], start, end), step)


@op(
    "slice_scatter(Tensor self, Tensor src, int dim=0, SymInt? start=None, SymInt? end=None, SymInt step=1) -> Tensor",
    samples=lambda: [
        S(T(5, 4), T(2, 4), 0, 1, 3),
        S(T(5, 4), T(5, 2), 1, 0, None, 2),
        S(T(5), T(2), 0, -3, -1),
        S(T(5, 4), T(5, 4)),
        S(T(5, 4), T(0, 4), 0, 2, 2),
        S(T(6), T(2), 0, 1, 6, 3),
    ],
)
def slice_scatter(x, src, dim, start, end, step):
    """x with src in the place of x[..., start:end:step, ...]."""
    dim = flat.axis(dim, x.rank)
    if step < 1:
        raise ArgumentError(f"slice_scatter: a step must be positive, not {step}")
    if not x.rank:
        raise IndexOutOfRange("a zero-dimensional tensor cannot be sliced")
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


def as_narrow(place, dim, start, length):
    first = start + place.shape[dim] if start < 0 else start
    return (("slice.Tensor", dim, first, first + length),)


def _narrows():
    return [S(T(5, 4), 0, 1, 3), S(T(5, 4), -1, -2, 2), S(T(5, 4), 1, 4, 0), S(T(0, 3), 0, 0, 0)]


# narrow.Tensor, whose start is computed, is in indexing.py: it stays lazy.
@op(
    "narrow(Tensor(a) self, int dim, SymInt start, SymInt length) -> Tensor(a)",
    steps=as_narrow,
    samples=_narrows,
)
@op("narrow_copy(Tensor self, int dim, SymInt start, SymInt length) -> Tensor", samples=_narrows)
def narrow(x, dim, start, length):
    """`length` elements of dimension dim from `start`."""
    return _narrowed(dim, start, length, x)


# Splitting


def _edges(sizes):
    edges = [0]
    for size in sizes:
        edges.append(edges[-1] + size)
    return edges


def as_split(sizes_of):
    """The step of one part: a slice, of the sizes that `sizes_of(extent, argument)` gives."""

    def steps(place, argument, dim=0):
        edges = _edges(sizes_of(place.shape[dim], argument))
        return (("slice.Tensor", dim, edges[place.index], edges[place.index + 1]),)

    return steps


def split_by(x, dim, sizes_of, argument):
    dim = flat.axis(dim, x.rank)
    if not x.rank:
        raise ShapeError("a zero-dimensional tensor has no dimension to split")
    edges = _edges(sizes_of(x.shape[dim], argument))
    return [flat.slice_dim(x, dim, first, last) for first, last in zip(edges, edges[1:], strict=False)]


def equal_sizes(extent, size):
    """Parts of `size`, the last perhaps smaller."""
    if size < 0 or (size == 0 and extent):
        raise ArgumentError(f"split: parts of {size} elements cannot make up {extent}")
    return [min(size, extent - first) for first in range(0, extent, size)] if extent else [0]


def given_sizes(extent, sizes):
    if any(size < 0 for size in sizes) or sum(sizes) != extent:
        raise ShapeError(f"split: sizes {list(sizes)} do not add up to {extent}, the extent of the dimension")
    return list(sizes)


def chunk_sizes(extent, chunks):
    """At most `chunks` parts of equal size, the last perhaps smaller."""
    if chunks < 1:
        raise ArgumentError(f"chunk: the number of chunks must be positive, not {chunks}")
    size = -(-extent // chunks)
    return [0] * chunks if size == 0 else equal_sizes(extent, size)


def section_sizes(extent, sections):
    """Just `sections` parts, as equal as can be, the larger first."""
    if sections < 1:
        raise ArgumentError(f"tensor_split: the number of sections must be positive, not {sections}")
    return [extent // sections + (i < extent % sections) for i in range(sections)]


def _splits(*arguments):
    return lambda: [S(T(7, 2), each) for each in arguments] + [S(T(2, 7), each, -1) for each in arguments]


@op(
    "split.Tensor(Tensor(a -> *) self, SymInt split_size, int dim=0) -> Tensor(a)[]",
    steps=as_split(equal_sizes),
    samples=_splits(1, 3, 7, 9),
)
@op("unsafe_split.Tensor(Tensor self, SymInt split_size, int dim=0) -> Tensor[]", samples=_splits(1, 3, 7, 9))
def split(x, size, dim):
    """Parts of `size` elements along dim, the last perhaps smaller."""
    return split_by(x, dim, equal_sizes, size)


@op(
    "split.sizes(Tensor(a -> *) self, SymInt[] split_size, int dim=0) -> Tensor(a)[]",
    "split_with_sizes(Tensor(a -> *) self, SymInt[] split_sizes, int dim=0) -> Tensor(a)[]",
    steps=as_split(given_sizes),
    samples=_splits((3, 4), (1, 0, 6), (7,)),
)
@op(
    "unsafe_split_with_sizes(Tensor self, SymInt[] split_sizes, int dim=0) -> Tensor[]",
    samples=_splits((3, 4), (1, 0, 6), (7,)),
)
def split_with_sizes(x, sizes, dim):
    """Parts of the given sizes along dim."""
    return split_by(x, dim, given_sizes, sizes)


@op(
    "chunk(Tensor(a -> *) self, int chunks, int dim=0) -> Tensor(a)[]",
    steps=as_split(chunk_sizes),
    samples=_splits(1, 3, 7, 9),
)
@op("unsafe_chunk(Tensor self, int chunks, int dim=0) -> Tensor[]", samples=_splits(1, 3, 7, 9))
def chunk(x, chunks, dim):
    """At most `chunks` parts of equal size along dim, the last perhaps smaller."""
    return split_by(x, dim, chunk_sizes, chunks)


@op(
    "tensor_split.sections(Tensor(a -> *) self, SymInt sections, int dim=0) -> Tensor(a)[]",
    steps=as_split(section_sizes),
    samples=_splits(1, 3, 7, 9),
)
def tensor_split(x, sections, dim):
    """Just `sections` parts along dim, as equal as can be."""
    return split_by(x, dim, section_sizes, sections)


def _ranges(extent, indices):
    return [bounds(extent, start, end) for start, end in zip((0, *indices), (*indices, None), strict=True)]


def as_ranges(place, indices, dim=0):
    start, end = _ranges(place.shape[dim], indices)[place.index]
    return (("slice.Tensor", dim, start, end),)


@op(
    "tensor_split.indices(Tensor(a -> *) self, SymInt[] indices, int dim=0) -> Tensor(a)[]",
    steps=as_ranges,
    samples=_splits((3,), (1, 4), (5, 2), (-2,), (), (3, 99)),
)
def tensor_split_indices(x, indices, dim):
    """The parts of x between the indices along dim."""
    dim = flat.axis(dim, x.rank)
    if not x.rank:
        raise ShapeError("a zero-dimensional tensor has no dimension to split")
    return [flat.slice_dim(x, dim, *each) for each in _ranges(x.shape[dim], indices)]


def plain_numbers(x, given, dim):
    """A tensor that tells where to split, as the numbers in it: they must be known, so they are computed now."""
    if given.ndim > 1 or given.dtype is not dtypes.int64 or given.device.type != "cpu":
        raise ArgumentError("tensor_split: expected an int64 tensor on the CPU, of at most one dimension")
    numbers = given.tolist()
    return x, tuple(numbers) if given.ndim else numbers, dim


@op(
    "tensor_split.tensor_indices_or_sections(Tensor(a -> *) self, Tensor tensor_indices_or_sections, int dim=0)"
    " -> Tensor(a)[]",
    prepare=plain_numbers,
    steps=lambda place, given, dim: (as_split(section_sizes) if isinstance(given, int) else as_ranges)(
        place, given, dim
    ),
    samples=lambda: [
        S(T(7, 2), T(dtype="int64", low=1, high=5)),
        S(T(2, 7), T(2, dtype="int64", low=0, high=7), -1),
    ],
)
def tensor_split_by(x, given, dim):
    """As tensor_split by the numbers in a tensor."""
    return tensor_split(x, given, dim) if isinstance(given, int) else tensor_split_indices(x, given, dim)


def _along(name, dim_of, least):
    """The rows of hsplit, vsplit and dsplit: tensor_split along one dimension."""

    def sections_of(extent, sections):
        if sections < 1 or extent % sections:
            raise ShapeError(f"{name}: {extent} elements do not divide into {sections} equal sections")
        return [extent // sections] * sections

    def check(x):
        if x.rank < least:
            raise ShapeError(f"{name} needs at least {least} dimensions, not {x.type}")
        return dim_of(x.rank)

    def by_sections(place, sections):
        return as_split(sections_of)(place, sections, dim_of(len(place.shape)))

    def by_indices(place, indices):
        return as_ranges(place, indices, dim_of(len(place.shape)))

    shape = (4,) * least
    text = f"{name}.int(Tensor(a -> *) self, int sections) -> Tensor(a)[]"

    @op(text, steps=by_sections, samples=lambda: [S(T(*shape), 2), S(T(*shape, 4), 4)])
    def of_sections(x, sections):
        """Equal sections along one dimension."""
        return split_by(x, check(x), sections_of, sections)

    text = f"{name}.array(Tensor(a -> *) self, int[] indices) -> Tensor(a)[]"

    @op(
        text,
        steps=by_indices,
        samples=lambda: [S(T(*shape), (1, 3)), S(T(*shape, 4), ()), S(T(*shape), (3, 1))],
    )
    def of_indices(x, indices):
        """The parts between indices along one dimension."""
        return tensor_split_indices(x, indices, check(x))


_along("hsplit", lambda rank: 0 if rank == 1 else 1, 1)
_along("vsplit", lambda rank: 0, 2)
_along("dsplit", lambda rank: 2, 3)
