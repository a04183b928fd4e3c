"""Rows that take a tensor apart along one dimension. Every part is a view: a slice."""

import itertools

from tenfold import flat
from tenfold.base import dtypes
from tenfold.base.errors import ArgumentError, ShapeError
from tenfold.ops.parts import bounds
from tenfold.ops.samples import S, T
from tenfold.ops.table import op


def _edges(sizes):
    edges = [0]
    for size in sizes:
        edges.append(edges[-1] + size)
    return edges


def as_split(sizes_of):
    """The step of one part: a slice, of the sizes that `sizes_of(extent, argument)` gives."""

    def steps(place, argument, dim=0):
        edges = _edges(sizes_of(place.shape[dim], argument))
        return (("slice.Tensor", dim, edges[place.which], edges[place.which + 1]),)

    return steps


def split_by(x, dim, sizes_of, argument):
    dim = flat.axis(dim, x.rank)
    if not x.rank:
        raise ShapeError("a zero-dimensional tensor has no dimension to split")
    edges = _edges(sizes_of(x.shape[dim], argument))
    return [flat.slice_dim(x, dim, first, last) for first, last in itertools.pairwise(edges)]


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
    return lambda: (
        [S(T(7, 2), argument) for argument in arguments]
        + [S(T(2, 7), argument, -1) for argument in arguments]
    )


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
    torch_dialect="own name",
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
    grad_fn="SplitBackward0",
)
@op(
    "unsafe_chunk(Tensor self, int chunks, int dim=0) -> Tensor[]",
    samples=_splits(1, 3, 7, 9),
    torch_dialect="chunk(self, chunks, dim)",
)
def chunk(x, chunks, dim):
    """At most `chunks` parts of equal size along dim, the last perhaps smaller."""
    return split_by(x, dim, chunk_sizes, chunks)


@op(
    "tensor_split.sections(Tensor(a -> *) self, SymInt sections, int dim=0) -> Tensor(a)[]",
    steps=as_split(section_sizes),
    samples=_splits(1, 3, 7, 9),
)
def tensor_split(x, sections, dim):
    """`sections` parts along dim, as equal as possible."""
    return split_by(x, dim, section_sizes, sections)


def _ranges(extent, indices):
    return [bounds(extent, start, end) for start, end in zip((0, *indices), (*indices, None), strict=True)]


def as_ranges(place, indices, dim=0):
    start, end = _ranges(place.shape[dim], indices)[place.which]
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
    """A tensor that tells where to split, as the numbers in it: they must be known, so they are computed."""
    if given.ndim > 1 or given.dtype is not dtypes.int64 or given.device.type != "cpu":
        raise ArgumentError("tensor_split: expected an int64 tensor on the CPU, of at most one dimension")
    numbers = given.tolist()
    return x, tuple(numbers) if given.ndim else numbers, dim


@op(
    "tensor_split.tensor_indices_or_sections("
    "Tensor(a -> *) self, Tensor tensor_indices_or_sections, int dim=0) -> Tensor(a)[]",
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
