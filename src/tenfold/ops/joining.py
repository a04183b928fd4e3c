"""Rows that take several tensors and join them, or bring them to one shape."""

from tenfold import flat
from tenfold.base.errors import ArgumentError, ShapeError
from tenfold.ops.promote import common
from tenfold.ops.samples import S, T
from tenfold.ops.table import op


def _joined():
    return [
        S([T(3, 4), T(2, 4)]),
        S([T(3, 4), T(3, 1), T(3, 0)], 1),
        S([T(3, 4), T(3, 2)], -1),
        S([T(0), T(2, 3)]),
        S([T(3), T(2, dtype="float32")]),
        S([T(4)]),
    ]


@op(
    "cat(Tensor[] tensors, int dim=0) -> Tensor",
    "concat(Tensor[] tensors, int dim=0) -> Tensor",
    "concatenate(Tensor[] tensors, int dim=0) -> Tensor",
    promote=common,
    samples=_joined,
    autocast="widest",
    needs="out: some tensors",
)
def cat(tensors, dim):
    """The tensors one after the other along dim."""
    if not tensors:
        raise ArgumentError("cannot join an empty list of tensors", help="give at least one tensor")
    if any(tensor.rank == 0 for tensor in tensors):
        raise ShapeError("cannot join zero-dimensional tensors", help="use stack")
    # PyTorch leaves out tensors of shape [0], whatever the rank of the others.
    kept = [tensor for tensor in tensors if tensor.shape != (0,)]
    if not kept:
        return tensors[0]
    return flat.concatenate(kept, flat.axis(dim, kept[0].rank))


@op(
    "stack(Tensor[] tensors, int dim=0) -> Tensor",
    promote=common,
    samples=lambda: [
        S([T(3, 4), T(3, 4)]),
        S([T(3, 4), T(3, 4)], -1),
        S([T(3), T(3)], 1),
        S([T(), T()]),
        S([T(0, 3)], 1),
    ],
    autocast="widest",
)
def stack(tensors, dim):
    """Tensors of one shape along a new dimension."""
    if not tensors:
        raise ArgumentError("cannot stack an empty list of tensors", help="give at least one tensor")
    for tensor in tensors[1:]:
        if tensor.shape != tensors[0].shape:
            raise ShapeError(f"stack needs tensors of one shape, not {tensors[0].type} and {tensor.type}")
    dim = flat.axis(dim, tensors[0].rank + 1)
    return flat.concatenate([flat.unsqueeze(tensor, dim) for tensor in tensors], dim)


def at_least(x, rank):
    """x with dimensions of one element added: NumPy's rule, which puts the third one last."""
    if x.rank >= rank:
        return x
    if rank == 3 and x.rank:
        return flat.reshape(x, (*(1,) * (2 - x.rank), *x.shape, 1))
    return flat.reshape(x, (*(1,) * (rank - x.rank), *x.shape))


def _ranks():
    return [S(T()), S(T(3)), S(T(2, 3)), S(T(2, 3, 4)), S(T(0))]


def _lists():
    return [S([T(), T(3), T(2, 3)]), S([T(2, 3, 4)])]


@op("atleast_1d(Tensor self) -> Tensor", method=False, samples=_ranks)
def atleast_1d(x):
    """A scalar as (1,); other tensors stay as they are."""
    return at_least(x, 1)


@op("atleast_1d.Sequence(Tensor[] tensors) -> Tensor[]", samples=_lists)
def atleast_1d_each(tensors):
    """Each scalar as (1,); other tensors stay as they are."""
    return [at_least(tensor, 1) for tensor in tensors]


@op("atleast_2d(Tensor self) -> Tensor", method=False, samples=_ranks)
def atleast_2d(x):
    """A scalar as (1, 1), a vector as (1, n); other tensors stay as they are."""
    return at_least(x, 2)


@op("atleast_2d.Sequence(Tensor[] tensors) -> Tensor[]", samples=_lists)
def atleast_2d_each(tensors):
    """Each scalar as (1, 1), each vector as (1, n); other tensors stay as they are."""
    return [at_least(tensor, 2) for tensor in tensors]


@op("atleast_3d(Tensor self) -> Tensor", method=False, samples=_ranks)
def atleast_3d(x):
    """A scalar as (1, 1, 1), a vector as (1, n, 1), a matrix as (n, m, 1); other tensors stay as they are."""
    return at_least(x, 3)


@op("atleast_3d.Sequence(Tensor[] tensors) -> Tensor[]", samples=_lists)
def atleast_3d_each(tensors):
    """Each scalar as (1, 1, 1), vector as (1, n, 1), matrix as (n, m, 1); other tensors stay as they are."""
    return [at_least(tensor, 3) for tensor in tensors]


def _stacked():
    return [
        S([T(), T()]),
        S([T(3), T(3)]),
        S([T(2, 3), T(2, 3)]),
        S([T(2, 3, 4), T(2, 3, 4)]),
        S([T(0, 3), T(0, 3)]),
    ]


@op("hstack(Tensor[] tensors) -> Tensor", promote=common, samples=_stacked, autocast="widest")
def hstack(tensors):
    """Joined along the second dimension; vectors along their only one."""
    tensors = [at_least(tensor, 1) for tensor in tensors]
    return cat(tensors, 1 if tensors and tensors[0].rank > 1 else 0)


@op(
    "vstack(Tensor[] tensors) -> Tensor",
    "row_stack(Tensor[] tensors) -> Tensor",
    promote=common,
    samples=_stacked,
    autocast="widest",
)
def vstack(tensors):
    """Joined along the first dimension; vectors are rows."""
    return cat([at_least(tensor, 2) for tensor in tensors], 0)


@op("dstack(Tensor[] tensors) -> Tensor", promote=common, samples=_stacked, autocast="widest")
def dstack(tensors):
    """Joined along the third dimension."""
    return cat([at_least(tensor, 3) for tensor in tensors], 2)


@op("column_stack(Tensor[] tensors) -> Tensor", promote=common, samples=_stacked, autocast="widest")
def column_stack(tensors):
    """Joined along the second dimension; vectors are columns."""
    return cat(
        [tensor if tensor.rank > 1 else flat.reshape(tensor, (tensor.numel, 1)) for tensor in tensors], 1
    )


@op(
    "block_diag(Tensor[] tensors) -> Tensor",
    promote=common,
    samples=lambda: [S([T(2, 3), T(1), T(), T(3, 1)]), S([T(2, 2)])],
)
def block_diag(tensors):
    """Matrices along the diagonal, zeros elsewhere; a vector is a row."""
    if any(tensor.rank > 2 for tensor in tensors):
        raise ShapeError("block_diag: tensors must have at most two dimensions")
    if not tensors:
        raise ArgumentError("block_diag: there are no tensors", help="give at least one tensor")
    matrices = [at_least(tensor, 2) for tensor in tensors]
    width, before, rows = sum(matrix.shape[1] for matrix in matrices), 0, []
    for matrix in matrices:
        rows.append(flat.pad(matrix, (0, before), (0, width - before - matrix.shape[1])))
        before += matrix.shape[1]
    return flat.concatenate(rows, 0)


@op(
    "broadcast_tensors(Tensor[] tensors) -> Tensor[]",
    samples=lambda: [S([T(3, 1), T(4)]), S([T(), T(2, 3)]), S([T(0, 1), T(1, 3)])],
)
def broadcast_tensors(tensors):
    """All the tensors stretched to one shape."""
    shape = flat.broadcast_shapes(*[tensor.shape for tensor in tensors])
    return [flat.broadcast_to(tensor, shape) for tensor in tensors]


def _axes_of(tensors):
    if not tensors:
        raise ArgumentError("meshgrid: there are no tensors", help="give at least one vector")
    for tensor in tensors:
        if tensor.rank > 1:
            raise ShapeError(f"expected vectors or zero-dimensional tensors, not {tensor.type}")
        if tensor.dtype is not tensors[0].dtype:
            raise ArgumentError(f"expected tensors of one dtype, not {tensors[0].type} and {tensor.type}")
    return [at_least(tensor, 1) for tensor in tensors]


def _vectors():
    return [S([T(3), T(4)]), S([T(3), T(2), T()]), S([T(2)]), S([T(0), T(3)])]


@op("meshgrid(Tensor[] tensors) -> Tensor[]", samples=_vectors)
def meshgrid(tensors, indexing="ij"):
    """Grids: result i varies along dimension i as tensors[i] does; "xy" exchanges the first two."""
    vectors = _axes_of(tensors)
    if indexing not in ("ij", "xy"):
        raise ArgumentError(f"meshgrid: indexing is 'ij' or 'xy', not {indexing!r}")
    places = list(range(len(vectors)))
    if indexing == "xy" and len(places) > 1:
        places[:2] = [1, 0]
    shape = [1] * len(vectors)
    for vector, place in zip(vectors, places, strict=True):
        shape[place] = vector.shape[0]
    grids = []
    for vector, place in zip(vectors, places, strict=True):
        along = [1] * len(vectors)
        along[place] = vector.shape[0]
        grids.append(flat.broadcast_to(flat.reshape(vector, along), shape))
    return grids


@op(
    "meshgrid.indexing(Tensor[] tensors, *, str indexing) -> Tensor[]",
    samples=lambda: [S(vector.args[0], indexing=mode) for vector in _vectors() for mode in ("ij", "xy")],
)
def meshgrid_indexing(tensors, indexing):
    """Grids: result i varies along dimension i as tensors[i] does; "xy" exchanges the first two."""
    return meshgrid(tensors, indexing)


@op(
    "cartesian_prod(Tensor[] tensors) -> Tensor",
    samples=lambda: [S([T(3), T(4)]), S([T(3), T(2), T(2)]), S([T(2)]), S([T(0), T(3)])],
)
def cartesian_prod(tensors):
    """Every way to choose one element of each vector, one way a row; of a single vector, itself."""
    for tensor in tensors:
        if tensor.rank != 1:
            raise ShapeError(f"cartesian_prod: expected vectors, not {tensor.type}")
    if len(tensors) == 1:
        return tensors[0]
    return flat.concatenate([flat.reshape(each, (each.numel, 1)) for each in meshgrid(tensors)], 1)
