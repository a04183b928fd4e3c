"""Rows whose results are their argument's memory in another shape or order of dimensions.

Those that look at a part of it are in `parts.py`, those that see other elements in it in `recoding.py`. The
facts of views are explained in `tenfold/tensor/views.py`.
"""

from tenfold import flat
from tenfold.base.errors import ArgumentError, ShapeError
from tenfold.flat.strides import is_contiguous, reshaped
from tenfold.ops.samples import S, T
from tenfold.ops.table import op

# Shapes


def reshape_strides(place, strides, offset, *arguments):
    found = reshaped(place.shape, strides, place.result)
    return None if found is None else (found, offset)


def view_strides(place, strides, offset, *arguments):
    found = reshape_strides(place, strides, offset)
    if found is None:
        raise ShapeError(
            f"{list(place.shape)} with strides {list(strides)} has no view of shape {list(place.result)}",
            help="use reshape",
        )
    return found


def put_reshaped(call, base, new, *arguments):
    return call("reshape", new, base.type.shape)


def as_reshape(place, *arguments):
    return (("reshape", place.result),)


def _shapes():
    shapes = [((3, 4), (4, 3)), ((3, 4), (-1,)), ((4, 6), (2, -1, 3)), ((), (1, 1)), ((1, 1), ())]
    return [S(T(*old), new) for old, new in [*shapes, ((0, 3), (3, 0, 2)), ((0, 3), (-1, 3))]]


@op(
    "view(Tensor(a) self, SymInt[] size) -> Tensor(a)",
    function=False,
    strides=view_strides,
    write=put_reshaped,
    samples=_shapes,
)
@op(
    "reshape(Tensor(a) self, SymInt[] shape) -> Tensor(a)",
    strides=reshape_strides,
    write=put_reshaped,
    samples=lambda: [*_shapes(), S(T(2, 3, 4), (2, -1)), S(T(2, 3, 4), (4, 6))],
    grad_fn="ViewBackward0",
)
@op(
    "_unsafe_view(Tensor self, SymInt[] size) -> Tensor",
    function=False,
    method=False,
    strides=view_strides,
    write=put_reshaped,
    samples=_shapes,
)
@op("view_copy(Tensor self, SymInt[] size) -> Tensor", method=False, samples=_shapes)
def reshape(x, shape):
    """The same elements in the same order, in another shape; one extent may be -1, to be inferred."""
    negative = [extent for extent in shape if extent < -1]
    if negative:
        raise ShapeError(f"cannot reshape {x.type} to {list(shape)}: {negative[0]} is not an extent")
    return flat.reshape(x, shape)


def _same_sizes():
    return [S(T(3, 4), T(4, 3)), S(T(2, 6), T(3, 2, 2)), S(T(1), T()), S(T(0, 3), T(3, 0))]


@op(
    "view_as(Tensor(a) self, Tensor other) -> Tensor(a)",
    function=False,
    strides=view_strides,
    steps=as_reshape,
    samples=_same_sizes,
    torch_dialect="view(self, other.shape)",
)
@op(
    "reshape_as(Tensor(a) self, Tensor other) -> Tensor(a)",
    function=False,
    steps=as_reshape,
    samples=_same_sizes,
)
def view_as(x, other):
    """The same elements in the same order, in the shape of other."""
    return flat.reshape(x, other.shape)


def _flattened():
    return [
        S(T(2, 3, 4)),
        S(T(2, 3, 4), 1),
        S(T(2, 3, 4), -2, -1),
        S(T(2, 3, 4), 1, 1),
        S(T()),
        S(T(0, 3), 0, 1),
    ]


@op(
    "flatten.using_ints(Tensor(a) self, int start_dim=0, int end_dim=-1) -> Tensor(a)",
    steps=lambda place, *dims: as_reshape(place) if place.result != place.shape else (),
    samples=_flattened,
    grad_fn="ViewBackward0",
)
def flatten(x, start_dim, end_dim):
    """Dimensions start_dim to end_dim as one."""
    start, end = flat.axis(start_dim, x.rank), flat.axis(end_dim, x.rank)
    if start > end:
        raise ShapeError(f"flatten: start_dim {start_dim} comes after end_dim {end_dim}")
    count = 1
    for extent in x.shape[start : end + 1]:
        count *= extent
    return flat.reshape(x, (*x.shape[:start], count, *x.shape[end + 1 :]))


def raveled(place, strides, offset):
    return reshape_strides(place, strides, offset) if is_contiguous(place.shape, strides) else None


@op(
    "ravel(Tensor(a) self) -> Tensor(a)",
    strides=raveled,
    steps=as_reshape,
    torch_dialect="reshape(self, (-1,))",
)
def ravel(x):
    """All elements in row-major order, as a vector."""
    return flat.reshape(x, (x.numel,))


@op(
    "unflatten.int(Tensor(a) self, int dim, SymInt[] sizes) -> Tensor(a)",
    strides=view_strides,
    steps=as_reshape,
    samples=lambda: [
        S(T(3, 4), 1, (2, 2)),
        S(T(6, 2), 0, (-1, 3)),
        S(T(3, 4), -1, (2, 1, -1)),
        S(T(0, 3), 0, (0, 2)),
    ],
)
def unflatten(x, dim, sizes):
    """Dimension `dim` as several; one of their extents may be -1."""
    dim = flat.axis(dim, x.rank)
    if not sizes:
        raise ArgumentError("unflatten: sizes is empty", help="give at least one extent")
    if x.rank == 0:
        raise ShapeError("unflatten: a zero-dimensional tensor has no dimension to divide")
    extent = x.shape[dim]
    known, inferred = 1, sizes.count(-1)
    for size in sizes:
        known *= size if size != -1 else 1
    if inferred > 1 or (inferred and (known == 0 or extent % known)) or (not inferred and known != extent):
        raise ShapeError(f"unflatten: {list(sizes)} do not multiply to dimension {dim} of {x.type}")
    sizes = tuple([extent // known if size == -1 else size for size in sizes])
    return flat.reshape(x, (*x.shape[:dim], *sizes, *x.shape[dim + 1 :]))


def squeezed(place, strides, offset, *dims):
    kept = _squeeze(place.shape, *dims)
    return tuple([strides[d] for d in kept]), offset


def _squeeze(shape, dims=None):
    """The dimensions that stay."""
    if dims is None:
        chosen = set(range(len(shape)))
    else:
        chosen = (
            set(flat.axes((dims,) if isinstance(dims, int) else dims, len(shape))) if dims != () else set()
        )
    return [d for d, extent in enumerate(shape) if extent != 1 or d not in chosen]


@op("squeeze(Tensor(a) self) -> Tensor(a)", inplace=True, strides=squeezed, write=put_reshaped)
@op(
    "squeeze.dim(Tensor(a) self, int dim) -> Tensor(a)",
    inplace=True,
    strides=squeezed,
    write=put_reshaped,
    samples=lambda: [S(T(1, 3), 0), S(T(1, 3), -1), S(T(2, 1, 1), 1), S(T(), 0), S(T(1, 0), -2)],
    grad_fn="SqueezeBackward1",
)
@op(
    "squeeze.dims(Tensor(a) self, int[] dim) -> Tensor(a)",
    inplace=True,
    strides=squeezed,
    write=put_reshaped,
    samples=lambda: [S(T(1, 3, 1), (0, 2)), S(T(1, 3, 1), ()), S(T(1, 3), (-1, 0)), S(T(), (0,))],
    grad_fn="SqueezeBackward2",
    torch_dialect="squeeze_each",
)
def squeeze(x, dims=None):
    """x without its dimensions of one element, or without those named that have one."""
    return flat.reshape(x, [x.shape[d] for d in _squeeze(x.shape, dims)])


def unsqueezed(place, strides, offset, dim):
    dim = flat.axis(dim, len(place.shape) + 1)
    new = place.shape[dim] * strides[dim] if dim < len(strides) else 1
    return (*strides[:dim], new, *strides[dim:]), offset


@op(
    "unsqueeze(Tensor(a) self, int dim) -> Tensor(a)",
    inplace=True,
    strides=unsqueezed,
    write=put_reshaped,
    samples=lambda: [S(T(3, 4), 0), S(T(3, 4), 2), S(T(3, 4), -1), S(T(3, 4), -3), S(T(), 0), S(T(0, 3), 1)],
)
def unsqueeze(x, dim):
    """x with a dimension of one element before `dim`."""
    return flat.unsqueeze(x, dim)


# Orders of dimensions


def permuted(place, strides, offset, dims):
    return tuple([strides[d] for d in dims]), offset


def put_permuted(call, base, new, dims):
    dims = [d % len(dims) for d in dims]
    return call("permute", new, tuple([dims.index(d) for d in range(len(dims))]))


@op(
    "permute(Tensor(a) self, int[] dims) -> Tensor(a)",
    strides=permuted,
    write=put_permuted,
    samples=lambda: [S(T(2, 3, 4), (2, 0, 1)), S(T(2, 3, 4), (-1, 0, -2)), S(T(3, 4), (0, 1)), S(T(), ())],
)
def permute(x, dims):
    """Dimension i of the result is dimension dims[i] of x."""
    if len(dims) != x.rank:
        raise ShapeError(
            f"permute: {list(dims)} does not name each of the {x.rank} dimensions of {x.type} once"
        )
    return flat.transpose(x, flat.axes(dims, x.rank) if dims else ())


def as_swap(place, dim0, dim1):
    rank = len(place.shape)
    order = list(range(rank))
    if rank:
        i, j = flat.axis(dim0, rank), flat.axis(dim1, rank)
        order[i], order[j] = j, i
    return (("permute", tuple(order)),)


@op(
    "transpose.int(Tensor(a) self, int dim0, int dim1) -> Tensor(a)",
    "swapdims(Tensor(a) self, int dim0, int dim1) -> Tensor(a)",
    "swapaxes(Tensor(a) self, int axis0, int axis1) -> Tensor(a)",
    inplace=True,
    steps=as_swap,
    samples=lambda: [
        S(T(3, 4), 0, 1),
        S(T(2, 3, 4), -1, 0),
        S(T(3, 4), 1, 1),
        S(T(), 0, -1),
        S(T(0, 3), 0, 1),
    ],
)
def transpose(x, dim0, dim1):
    """self with two dimensions exchanged."""
    flat.axis(dim0, x.rank), flat.axis(dim1, x.rank)
    return flat.swap(x, dim0, dim1)


def as_reversed(place, *arguments):
    return (("permute", tuple(range(len(place.shape) - 1, -1, -1))),)


@op(
    "t(Tensor(a) self) -> Tensor(a)",
    inplace=True,
    steps=as_reversed,
    samples=lambda: [S(T(3, 4)), S(T(3)), S(T())],
)
def t(x):
    """The transpose of a matrix; vectors and scalars stay as they are."""
    if x.rank > 2:
        raise ShapeError(
            f"t: expected at most 2 dimensions, not {x.type}", help="use mT, or transpose(dim0, dim1)"
        )
    return flat.transpose(x, range(x.rank - 1, -1, -1))


@op(
    "numpy_T(Tensor(a) self) -> Tensor(a)",
    function=False,
    method=False,
    steps=as_reversed,
    grad_fn="PermuteBackward0",
)
def numpy_T(x):
    """Dimensions in reverse order."""
    return flat.transpose(x, range(x.rank - 1, -1, -1))


def _matrices():
    return [S(T(3, 4)), S(T(2, 3, 4)), S(T(0, 3)), S(T())]


def as_matrix_swap(place, *arguments):
    return as_swap(place, -2, -1) if place.shape else ()


@op(
    "mT(Tensor(a) self) -> Tensor(a)",
    function=False,
    method=False,
    steps=as_matrix_swap,
    samples=_matrices,
    grad_fn="TransposeBackward0",
    torch_dialect="transpose(self, -2, -1)",
)
def mT(x):
    """The last two dimensions exchanged; a scalar stays as it is."""
    if x.rank == 1:
        raise ShapeError(f"expected a matrix or a batch of matrices, not {x.type}")
    return flat.swap(x, -2, -1) if x.rank else x


def as_adjoint(place, *arguments):
    swap = as_matrix_swap(place)
    return (*swap, ("_conj",)) if place.base.dtype.is_complex else swap


def adjoint_strides(place, strides, offset):
    return (*strides[:-2], *strides[:-3:-1]), offset


@op(
    "mH(Tensor(a) self) -> Tensor(a)",
    function=False,
    method=False,
    steps=as_adjoint,
    strides=adjoint_strides,
    samples=_matrices,
)
@op("adjoint(Tensor(a) self) -> Tensor(a)", steps=as_adjoint, strides=adjoint_strides, samples=_matrices)
def adjoint(x):
    """The conjugate transpose of the last two dimensions."""
    return flat.conj(mT(x))


@op(
    "matrix_H(Tensor(a) self) -> Tensor(a)",
    function=False,
    method=False,
    steps=as_adjoint,
    strides=adjoint_strides,
    samples=lambda: [S(T(3, 4)), S(T()), S(T(0, 3))],
)
def matrix_H(x):
    """The conjugate transpose of a matrix."""
    if x.rank not in (0, 2):
        raise ShapeError(f"H: expected a matrix, not {x.type}", help="use mH for batches of matrices")
    return flat.conj(flat.swap(x, 0, -1))


def _moves(rank, source, destination):
    sources = flat.axes(source, rank) if source != () else ()
    destinations = flat.axes(destination, rank) if destination != () else ()
    if len(sources) != len(destinations):
        raise ArgumentError(f"movedim: {source} and {destination} differ in length")
    order = [d for d in range(rank) if d not in sources]
    for place, dim in sorted(zip(destinations, sources, strict=True)):
        order.insert(place, dim)
    return tuple(order)


@op(
    "movedim.intlist(Tensor(a) self, int[] source, int[] destination) -> Tensor(a)",
    "moveaxis.intlist(Tensor(a) self, int[] source, int[] destination) -> Tensor(a)",
    steps=lambda place, *moved: (("permute", _moves(len(place.shape), *moved)),),
    samples=lambda: [S(T(2, 3, 4), (0, 1), (2, 0)), S(T(2, 3, 4), (-1,), (0,)), S(T(3), (), ())],
    torch_dialect="permuted",
)
@op(
    "movedim.int(Tensor(a) self, int source, int destination) -> Tensor(a)",
    "moveaxis.int(Tensor(a) self, int source, int destination) -> Tensor(a)",
    steps=lambda place, *moved: (("permute", _moves(len(place.shape), *moved)),),
    samples=lambda: [S(T(2, 3, 4), 0, 2), S(T(2, 3, 4), -1, 0), S(T(3, 4), 1, 1), S(T(), 0, -1)],
)
def movedim(x, source, destination):
    """The dimensions `source` moved to the places `destination`, the others in order."""
    return flat.transpose(x, _moves(x.rank, source, destination))


# Expansion


def expanded(place, strides, offset, *arguments):
    shape, result = place.shape, place.result
    if not shape:
        return (0,) * len(result), offset
    found, new = [], len(result) - len(shape)
    for i in range(len(result) - 1, -1, -1):
        if i >= new:
            found.append(strides[i - new] if shape[i - new] == result[i] else 0)
        else:
            found.append(0 if result[i] != 1 else result[i + 1] * found[-1])
    return tuple(reversed(found)), offset


def as_expand(place, *arguments):
    return (("expand", place.result),)


def _expansions():
    return [
        S(T(3, 1), (3, 4)),
        S(T(3, 1), (2, -1, 4)),
        S(T(), (2, 3)),
        S(T(1, 3), (0, 3)),
        S(T(3), (3,)),
        S(T(), ()),
    ]


@op(
    "expand(Tensor(a) self, SymInt[] size, *, bool implicit=False) -> Tensor(a)",
    function=False,
    strides=expanded,
    samples=_expansions,
)
def expand(x, size, implicit=False):
    """x with dimensions of one element stretched, and new ones before; -1 leaves an extent as it is."""
    new = len(size) - x.rank
    if new < 0:
        raise ShapeError(f"cannot expand {x.type} to {list(size)}: it has more dimensions")
    bad = [i for i, extent in enumerate(size) if extent < -1 or (extent == -1 and i < new)]
    if bad:
        raise ShapeError(
            f"cannot expand {x.type} to {list(size)}: {size[bad[0]]} is not an extent of a new dimension"
        )
    return flat.broadcast_to(
        x, [x.shape[i - new] if extent == -1 else extent for i, extent in enumerate(size)]
    )


@op("broadcast_to(Tensor(a) self, SymInt[] size) -> Tensor(a)", steps=as_expand, samples=_expansions)
def broadcast_to(x, size):
    """self with dimensions of one element stretched to size, and new ones before."""
    return expand(x, size)


@op(
    "expand_as(Tensor(a) self, Tensor other) -> Tensor(a)",
    function=False,
    steps=as_expand,
    samples=lambda: [S(T(3, 1), T(3, 4)), S(T(), T(2, 3)), S(T(1, 4), T(2, 3, 4)), S(T(1, 3), T(0, 3))],
)
def expand_as(x, other):
    """self with dimensions of one element stretched to those of other, and new ones before."""
    return flat.broadcast_to(x, other.shape)


@op(
    "expand_copy(Tensor self, SymInt[] size, *, bool implicit=False) -> Tensor",
    method=False,
    samples=_expansions,
)
def expand_copy(x, size, implicit):
    """self with dimensions of one element stretched to size, and new ones before, copied."""
    return expand(x, size)
