"""Rows under names that PyTorch keeps for itself, which exported programs hold: variants of public rows."""

import math

from tenfold import flat
from tenfold.base import dtypes
from tenfold.base.errors import ArgumentError, DTypeError, ShapeError
from tenfold.ops.contraction import check_ranks, mm
from tenfold.ops.distance import cdist, pdist
from tenfold.ops.indexing import At, index, index_put
from tenfold.ops.joining import stack
from tenfold.ops.masks import masked_fill
from tenfold.ops.numbers import number_in
from tenfold.ops.reductions import all, any
from tenfold.ops.samples import S, T
from tenfold.ops.scans import logcumsumexp
from tenfold.ops.softmax import softmax
from tenfold.ops.statistics import norm_except_dim
from tenfold.ops.table import op, written


@op(
    "_safe_softmax(Tensor self, int dim, ScalarType? dtype=None) -> Tensor",
    method=False,
    samples=lambda: [S(T(3, 4), 1), S(T(2, 3, 4), 0, dtypes.float64), S(T(0, 3), -1)],
)
def safe_softmax(x, dim, dtype):
    """softmax, and zeros where all elements along the dimension are -inf"""
    if x.dtype.is_complex:
        raise DTypeError(f"_safe_softmax is not defined for {x.dtype.name}")
    found = softmax(x, dim, dtype)
    if not x.rank or x.dtype.kind != "float":
        return found
    none = flat.reduce(flat.eq(x, float("-inf")), "and", (flat.axis(dim, x.rank),), True)
    return flat.where(none, 0, found)


@op(
    "_int_mm(Tensor self, Tensor mat2) -> Tensor",
    method=False,
    samples=lambda: [
        S(T(3, 4, dtype="int8"), T(4, 5, dtype="int8")),
        S(T(2, 0, dtype="int8"), T(0, 3, dtype="int8")),
    ],
)
def int_mm(x, y):
    """The product of int8 matrices, in int32."""
    check_ranks("_int_mm", (x, 2), (y, 2))
    if x.dtype not in (dtypes.int8, dtypes.uint8) or y.dtype is not dtypes.int8:
        raise DTypeError(f"_int_mm takes int8 matrices, not {x.type} and {y.type}")
    return mm(flat.convert(x, dtypes.int32), flat.convert(y, dtypes.int32))


def _normed():
    return [S(T(3, 4), T(3, 1), 0), S(T(3, 4), T(1, 4), 1)]


@op("_weight_norm(Tensor v, Tensor g, int dim=0) -> Tensor", samples=_normed, needs="norms_where_fused")
def weight_norm(v, g, dim):
    """v · g / |v|, the norm being over all dimensions but one."""
    return v * (g / norm_except_dim(v, 2, dim))


@op(
    "_weight_norm_interface(Tensor v, Tensor g, int dim=0) -> (Tensor, Tensor)",
    differentiable=(True, False),
    samples=lambda: [
        S(*[T(*a.shape, dtype="float32") for a in each.args[:2]], each.args[2]) for each in _normed()
    ],
    needs="norms_of_rows",
)
def weight_norm_interface(v, g, dim):
    """v · g / |v|, and |v|."""
    if dim not in (0, v.rank - 1):
        raise ArgumentError(f"_weight_norm_interface: dim is the first or the last, not {dim}")
    norm = norm_except_dim(v, 2, dim)
    return v * (g / norm), norm


@op(
    "_is_all_true(Tensor self) -> Tensor",
    samples=lambda: [S(T(3, 4, dtype="bool"))],
)
def is_all_true(x):
    """Whether all elements of a bool tensor are True."""
    return all(_bool(x))


@op(
    "_is_any_true(Tensor self) -> Tensor",
    samples=lambda: [S(T(3, 4, dtype="bool"))],
)
def is_any_true(x):
    """Whether any element of a bool tensor is True."""
    return any(_bool(x))


def _bool(x):
    if x.dtype is not dtypes.bool_:
        raise DTypeError(f"expected a bool tensor, not {x.type}")
    return x


@op(
    "_stack(Tensor[] tensors, int dim=0) -> Tensor",
    samples=lambda: [S([T(3, 4), T(3, 4)]), S([T(3), T(3)], -1)],
    needs="some tensors",
    casts_out=True,
)
def stack_unchecked(tensors, dim):
    """Tensors of one shape along a new dimension."""
    return stack(tensors, dim)


@op(
    "_logcumsumexp(Tensor self, int dim) -> Tensor",
    method=False,
    samples=lambda: [S(T(3, 4, dtype=each), 1) for each in ("float32", "float64")],
    needs="out: dtype_of_self",
    casts_out=True,
)
def logcumsumexp_unchecked(x, dim):
    """log(cumsum(exp(self))) along a dimension."""
    return logcumsumexp(x, dim)


@op(
    "_cdist_forward(Tensor x1, Tensor x2, float p, int? compute_mode) -> Tensor",
    function=False,
    samples=lambda: [S(T(3, 4), T(2, 4), p, None) for p in (2.0, 1.0, 3.0)],
    late=written,
)
def cdist_forward(x, y, p, compute_mode):
    """The p-norm distance of every row of x1 to every row of x2."""
    return cdist(x, y, p, compute_mode)


@op(
    "_pdist_forward(Tensor self, float p=2) -> Tensor",
    method=False,
    function=False,
    samples=lambda: [S(T(4, 3)), S(T(4, 3), 1.0)],
    needs="contiguous_rows",
    late=written,
)
def pdist_forward(x, p):
    """The p-norm distance of every two rows, each pair once: those of the first row come first."""
    return pdist(x, p)


@op("_euclidean_dist(Tensor x1, Tensor x2) -> Tensor", samples=lambda: [S(T(3, 4), T(2, 4))])
def euclidean_dist(x, y):
    """The distance of every row of x1 to every row of x2, by a matrix product."""
    return cdist(x, y, 2.0, 1)


@op(
    "_unsafe_index.Tensor(Tensor self, Tensor?[] indices) -> Tensor",
    samples=lambda: [
        S(T(4, 3), (At(5, size=4, low=-4),)),
        S(T(4, 3), (None, At(2, 2, size=3, low=-3))),
        S(T(4, 3, 2), (At(4, size=4), None, At(size=2))),
    ],
    method=False,
)
def unsafe_index(x, indices):
    """x at indices, which are checked all the same."""
    return index(x, indices)


def _inside(x, indices):
    """Indices drawn to the nearest that x has."""
    return [
        index if index is None else flat.minimum(flat.maximum(index, -size), size - 1)
        for index, size in zip(indices, x.shape)
    ]


def _masked_reads():
    mask = T(2, 5, dtype="bool")
    return [
        S(T(4, 3), mask, (At(2, 1, size=9, low=-9), At(5, size=5, low=-5)), 0.5),
        S(T(4), mask, (At(2, 5, size=9, low=-9),), 1),
    ]


@op(
    "_unsafe_masked_index(Tensor self, Tensor mask, Tensor?[] indices, Scalar fill) -> Tensor",
    method=False,
    samples=_masked_reads,
)
def unsafe_masked_index(x, mask, indices, fill):
    """x at indices where the mask is true, `fill` elsewhere: there indices may point anywhere."""
    if not x.numel:
        return flat.full(mask.shape, number_in(fill, x.dtype), x.dtype)
    return masked_fill(index(x, _inside(x, indices)), flat.invert(_bool(mask)), fill)


@op(
    "_unsafe_masked_index_put_accumulate(Tensor self, Tensor mask, Tensor?[] indices, Tensor values)"
    " -> Tensor",
    method=False,
    samples=lambda: [S(*masked_read.args[:3], T(2, 5)) for masked_read in _masked_reads()],
)
def unsafe_masked_index_put_accumulate(x, mask, indices, values):
    """x with values added at indices where the mask is true."""
    if not x.numel:
        return x
    kept = masked_fill(values, flat.invert(_bool(mask)), 0)
    return index_put(x, _inside(x, indices), kept, True)


@op(
    "_chunk_cat(Tensor[] tensors, int dim, int num_chunks) -> Tensor",
    samples=lambda: [S([T(4, 3), T(5, 2)], 0, 2), S([T(2, 3), T(2, 5, 2)], 1, 3), S([T(5)], 0, 2)],
    needs="chunked_dim",
    casts_out=True,
)
def chunk_cat(tensors, dim, num_chunks):
    """Each tensor, filled up with zeros, as `num_chunks` rows from dim on; their rows side by side."""
    if not tensors or num_chunks < 1:
        raise ArgumentError("_chunk_cat takes at least one tensor, and at least one chunk")
    ranks = {tensor.rank for tensor in tensors}
    if len(ranks) > 1 and not 0 <= dim < min(ranks):
        raise ShapeError(f"_chunk_cat: not every one of these tensors has a dimension {dim}, counted from 0")
    dim = flat.axis(dim, tensors[0].rank)
    if 0 in {tensor.numel for tensor in tensors} or len({tensor.shape[:dim] for tensor in tensors}) > 1:
        raise ShapeError(f"_chunk_cat takes tensors that are not empty and alike before dimension {dim}")
    rows = []
    for tensor in tensors:
        missing = -tensor.shape[dim] % num_chunks
        low, high = [0] * tensor.rank, [missing if i == dim else 0 for i in range(tensor.rank)]
        lead = tensor.shape[:dim]
        width = (tensor.shape[dim] + missing) // num_chunks * math.prod(tensor.shape[dim + 1 :])
        rows.append(flat.reshape(flat.pad(tensor, low, high, 0), (*lead, num_chunks, width)))
    return flat.concatenate(rows, dim + 1)
