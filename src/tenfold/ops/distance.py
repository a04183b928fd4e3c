"""Rows that compare vectors: distances, cosine similarity, the cross product."""

from __future__ import annotations

import math

from tenfold import flat
from tenfold.base import dtypes
from tenfold.base.errors import ArgumentError, DTypeError, ShapeError
from tenfold.flat import Value
from tenfold.ops.contraction import contract
from tenfold.ops.pointwise import subtraction
from tenfold.ops.promote import common, floating
from tenfold.ops.samples import S, T
from tenfold.ops.table import op, written
from tenfold.ops.triangles import triu_indices

_P = lambda *shape: T(*shape, low=0.5, high=2)


def p_norm(x: Value, p: float, keepdim: bool = False) -> Value:
    """(Σ |x|^p)^(1/p) along the last dimension; 0 counts what is not zero, inf takes the largest."""
    size = flat.abs(x)
    if p == 0:
        return flat.convert(flat.sum(flat.convert(flat.ne(x, 0), size.dtype), (-1,), keepdim), size.dtype)
    if math.isinf(p):
        return _largest(size, "max" if p > 0 else "min", keepdim)
    if p == 1:
        return flat.sum(size, (-1,), keepdim)
    if p == 2:
        return flat.sqrt(flat.sum(size * size, (-1,), keepdim))
    return flat.power(flat.sum(flat.power(size, p), (-1,), keepdim), 1 / p)


def _largest(size: Value, kind: str, keepdim: bool) -> Value:
    if not size.shape[-1]:
        return flat.sum(size, (-1,), keepdim)
    return flat.reduce(size, kind, (-1,), keepdim)


def _wide(x: Value) -> Value:
    return flat.convert(x, dtypes.float32) if x.dtype in (dtypes.float16, dtypes.bfloat16) else x


def _length(x, dims, least):
    """The norm, and where it is less than `least` that; its gradient is the norm's all the same, 0 at 0."""
    squared = flat.sum(x * x, dims, keepdim=True)
    zero = flat.eq(squared, 0)
    norm = flat.where(
        zero,
        flat.full(zero.shape, 0, x.dtype),
        flat.sqrt(flat.where(zero, flat.full(zero.shape, 1, x.dtype), squared)),
    )
    return flat.where(flat.lt(norm, least), norm + (least - flat.stop_gradient(norm)), norm)


@op(
    "cosine_similarity(Tensor x1, Tensor x2, int dim=1, float eps=1e-08) -> Tensor",
    promote=common,
    samples=lambda: [S(_P(3, 4), _P(3, 4)), S(_P(3, 4), _P(4), -1), S(_P(5), _P(5), 0), S(T(2, 0), T(2, 0))],
    autocast="cuda: float32",
)
def cosine_similarity(x, y, dim, eps):
    """x · y / (max(‖x‖, eps) · max(‖y‖, eps)) along a dimension."""
    if not x.dtype.is_floating_point:
        raise DTypeError(f"cosine similarity takes floating-point tensors, not {x.dtype.name}")
    dtype = x.dtype
    x, y = flat.broadcast(_wide(x), _wide(y))
    dim = flat.axis(dim, x.rank)
    dims = (dim,) if x.rank else ()
    x, y = (v / _length(v, dims, eps) for v in (x, y))
    return flat.convert(flat.sum(x * y, dims) if dims else x * y, dtype)


@op(
    "pairwise_distance(Tensor x1, Tensor x2, float p=2, float eps=1e-06, bool keepdim=False) -> Tensor",
    promote=subtraction,
    samples=lambda: [
        S(T(3, 4), T(3, 4)), S(T(3, 4), T(4), 1.0), S(T(3, 4), T(3, 4), math.inf, keepdim=True),
        S(T(4), T(4), 3.0),
        S(T(2, 4), T(2, 4), 0.0),
    ], autocast="cuda: float32", late=written)  # fmt: skip
def pairwise_distance(x, y, p, eps, keepdim):
    """The p-norm of x1 - x2 + eps along the last dimension."""
    # Integers are subtracted as such, and wrap as such.
    difference = flat.sub(_wide(x), _wide(y))
    dtype = floating(x.dtype)
    difference = flat.convert(difference, dtype) if x.dtype is not dtype else difference
    return flat.convert(p_norm(difference + eps, p, keepdim), dtype.to_real())


_F = lambda *shape: T(*shape, dtype="float32")
_PAIRS = lambda: [
    S(T(3, 4), T(5, 4)), S(T(2, 3, 4), T(5, 4), 1.0), S(T(30, 4), T(5, 4)), S(T(3, 4), T(5, 4), math.inf),
    S(T(3, 4), T(5, 4), 0.0), S(T(3, 4), T(5, 4), 1.5), S(T(2, 0), T(3, 0)),
    S(_F(4, 1, 2, 3), _F(3, 5, 3), 2.0, 1),
]  # fmt: skip


@op(
    "cdist(Tensor x1, Tensor x2, float p=2, int? compute_mode=None) -> Tensor",
    method=False,
    samples=_PAIRS,
    autocast="float32",
    late=written,
)
def cdist(x, y, p, compute_mode):
    """The p-norm distance of every row of x1 to every row of x2."""
    if x.rank < 2 or y.rank < 2:
        raise ShapeError(f"cdist takes at least 2 dimensions, not {x.type} and {y.type}")
    if x.shape[-1] != y.shape[-1]:
        raise ShapeError(f"cdist: rows of {x.shape[-1]} and of {y.shape[-1]} elements have no distance")
    if not (x.dtype is y.dtype and x.dtype.is_floating_point):
        raise DTypeError(f"cdist takes floating-point tensors of one dtype, not {x.type} and {y.type}")
    if p < 0 or p != p:
        raise ArgumentError(f"cdist: there is no {p}-norm")
    if compute_mode not in (None, 0, 1, 2):
        raise ArgumentError(f"cdist: the mode is 0, 1 or 2, not {compute_mode}")
    batch = flat.broadcast_shapes(x.shape[:-2], y.shape[:-2])
    dtype = x.dtype
    x, y = (_wide(flat.broadcast_to(v, (*batch, *v.shape[-2:]))) for v in (x, y))
    large = compute_mode in (None, 0) and max(x.shape[-2], y.shape[-2]) > 25
    if p == 2 and (large or compute_mode == 1):
        return flat.convert(_by_product(x, y), dtype)
    difference = flat.unsqueeze(x, -2) - flat.unsqueeze(y, -3)
    return flat.convert((_largest_known if math.isinf(p) else _distance)(difference, p), dtype)


def _of_largest_known(cotangent, result, difference, p):
    (gradient,) = _of_distance(cotangent, result, difference, p)
    return (flat.where(flat.ne(difference, difference), math.nan, gradient),)


@flat.differentiated(_of_largest_known)
def _largest_known(difference: Value, p: float) -> Value:
    """The largest of the differences that are numbers."""
    return p_norm(flat.where(flat.ne(difference, difference), 0, difference), p)


def _of_distance(cotangent, result, difference, p):
    """Nothing where the distance is zero; all that reach the largest difference get the whole of it."""
    cotangent, result = flat.unsqueeze(cotangent, -1), flat.unsqueeze(result, -1)
    size, direction = flat.abs(difference), cotangent * flat.sign(difference)
    if p == 0:
        return (flat.full_like(difference, 0),)
    if p == 1:
        return (direction,)
    if math.isinf(p):
        known = flat.where(flat.eq(size, result), direction, 0)
        return (flat.where(flat.ne(result, result), math.nan, known),)
    none = flat.eq(difference, 0)
    if p > 1:  # beside an unknown distance it is unknown
        none = none & flat.eq(result, result)
    part = flat.where(none, 1, size) / flat.where(flat.eq(result, 0), 1, result)
    return (flat.where(none, 0, direction * (part if p == 2 else flat.power(part, p - 1))),)


@flat.differentiated(_of_distance)
def _distance(difference: Value, p: float) -> Value:
    """The norm of a difference. NaN is none that is counted for p = 0."""
    if p != 0:
        return p_norm(difference, p)
    size = flat.abs(difference)
    return flat.sum(flat.minimum(flat.ceil(size), 1.0), (-1,))


@op(
    "pdist(Tensor self, float p=2) -> Tensor",
    method=False,
    samples=lambda: [S(T(5, 3)), S(T(4, 3), 1.0), S(T(4, 3), math.inf), S(T(3, 2), 0.0), S(T(4, 3), 1.5),
                     S(T(1, 3)), S(T(0, 3)), S(T(3, 0))],
    autocast="cuda: float32", needs="rows_with_gradient", late=written)  # fmt: skip
def pdist(x, p):
    """The p-norm distance of every two rows, each pair once: those of the first row come first."""
    if x.rank != 2:
        raise ShapeError(f"pdist takes a matrix, not {x.type}")
    if not x.dtype.is_floating_point:
        raise DTypeError(f"pdist takes floating-point tensors, not {x.dtype.name}")
    if p < 0 or p != p:
        raise ArgumentError(f"pdist: there is no {p}-norm")
    if x.shape[0] < 2:
        return flat.full((0,), 0, x.dtype)
    pairs = triu_indices(x.shape[0], x.shape[0], 1, dtypes.int64)
    one, other = (
        flat.take(_wide(x), flat.reshape(flat.slice_dim(pairs, 0, i, i + 1), (-1,)), 0) for i in (0, 1)
    )
    return flat.convert(_distance(one - other, p), x.dtype)


def _of_by_product(cotangent, result, x, y):
    """The sum of (x - y) / distance over all pairs, by matrix products too."""
    zero = flat.eq(result, 0)
    weight = flat.where(zero, 0, cotangent / flat.where(zero, 1, result))
    batch, rows, columns, summed = [*range(x.rank - 2)], -1, -2, -3
    from_y = contract(weight, y, [*batch, rows, columns], [*batch, columns, summed], [*batch, rows, summed])
    from_x = contract(weight, x, [*batch, rows, columns], [*batch, rows, summed], [*batch, columns, summed])
    by_rows, by_columns = (flat.sum(weight, (d,)) for d in (-1, -2))
    return x * flat.unsqueeze(by_rows, -1) - from_y, y * flat.unsqueeze(by_columns, -1) - from_x


@flat.differentiated(_of_by_product)
def _by_product(x: Value, y: Value) -> Value:
    """(‖x‖² - x·y) + (‖y‖² - x·y): one matrix product, at the price of accuracy for near points, where both
    differences at least are exact."""
    batch = range(x.rank - 2)
    rows, columns, summed = -1, -2, -3
    product = contract(x, y, [*batch, rows, summed], [*batch, columns, summed], [*batch, rows, columns])
    xx, yy = (flat.sum(v * v, (-1,)) for v in (x, y))
    squared = (flat.unsqueeze(xx, -1) - product) + (flat.unsqueeze(yy, -2) - product)
    return flat.sqrt(flat.maximum(squared, 0.0))


@op(
    "linalg_cross(Tensor self, Tensor other, *, int dim=-1) -> Tensor",
    method=False,
    samples=lambda: [S(T(4, 3), T(4, 3)), S(T(3, 2), T(3, 1), dim=0), S(T(3), T(3))],
    autocast="cuda: widest",
)
def linalg_cross(x, y, dim):
    """The cross product along a dimension of size 3."""
    if x.dtype is not y.dtype or x.dtype is dtypes.bool_:
        raise DTypeError(f"cross takes numbers of one dtype, not {x.type} and {y.type}")
    if x.rank != y.rank:
        raise ShapeError(f"cross takes tensors of equally many dimensions, not {x.type} and {y.type}")
    dim = flat.axis(dim, x.rank)
    if not x.rank or x.shape[dim] != 3 or y.shape[dim] != 3:
        raise ShapeError(f"cross: dimension {dim} of {x.type} and {y.type} is not 3")
    x, y = flat.broadcast(x, y)
    x0, x1, x2 = (flat.slice_dim(x, dim, i, i + 1) for i in range(3))
    y0, y1, y2 = (flat.slice_dim(y, dim, i, i + 1) for i in range(3))
    return flat.concatenate([x1 * y2 - x2 * y1, x2 * y0 - x0 * y2, x0 * y1 - x1 * y0], dim)


@op(
    "cross(Tensor self, Tensor other, int? dim=None) -> Tensor",
    samples=lambda: [S(T(4, 3), T(4, 3)), S(T(3, 2), T(3, 2), 0), S(T(3, 3), T(3, 3), -1)],
    autocast="cuda: widest",
)
def cross(x, y, dim):
    """The cross product along a dimension of size 3, by default the first of that size."""
    if dim is None:
        if 3 not in x.shape:
            raise ShapeError(f"cross: no dimension of {x.type} is 3")
        dim = x.shape.index(3)
    return linalg_cross(x, y, dim)
