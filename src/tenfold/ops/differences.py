"""Rows that estimate derivatives from samples of a function: `gradient`, by differences of second order."""

from tenfold import flat
from tenfold.base import dtypes
from tenfold.base.errors import ArgumentError, DTypeError, ShapeError
from tenfold.ops.promote import floating, result_dtype
from tenfold.ops.samples import S, T
from tenfold.ops.table import op

# Coordinates in a dtype in which no two that are drawn are equal, and a function in the same one.
_C = lambda n: T(n, dtype="float32", low=0.5, high=9)
_F = lambda *shape: T(*shape, dtype="float32")


def _samples():
    return [
        S(T(5)), S(T(3, 4), dim=1), S(T(3, 4), spacing=2.0), S(T(3, 4), spacing=2, dim=-1, edge_order=2),
        S(T(3, 4), spacing=0.5, dim=[1, 0]), S(T(3, 4), dim=[0]), S(T(3, 4), dim=[0, 1], edge_order=2),
        S(T(3, 4), spacing=[2.0, 3.0]), S(T(3, 4), spacing=[2.0], dim=1), S(T(3, 4), spacing=[2], dim=[0]),
        S(T(3, 4), spacing=[1, 2.5], dim=[1, 0], edge_order=2), S(T(2)),
        S(_F(3, 4), spacing=[_C(3), _C(4)]), S(_F(3, 4), spacing=[_C(4)], dim=1, edge_order=2),
        S(_F(3, 4), spacing=[_C(4), _C(3)], dim=[1, 0]),
    ]  # fmt: skip


@op(
    "gradient.scalarint(Tensor self, *, Scalar? spacing=None, int? dim=None, int edge_order=1) -> Tensor[]",
    "gradient.scalararray(Tensor self, *, Scalar spacing, int[] dim, int edge_order=1) -> Tensor[]",
    method=False,
    samples=_samples,
)
def gradient_even(x, spacing, dim, edge_order):
    """The derivative along each dimension of a function sampled at equal, or at the given, distances."""
    dims = _dims(x, dim, edge_order)
    return tuple([_even(x, 1 if spacing is None else spacing, d, edge_order) for d in dims])


@op(
    "gradient.array(Tensor self, *, int[] dim, int edge_order=1) -> Tensor[]",
    method=False,
    samples=_samples,
)
def gradient_unit(x, dim, edge_order):
    """The derivative along each of dim of a function sampled at distances of 1."""
    return gradient_even(x, None, dim, edge_order)


@op(
    "gradient.scalarrayint(Tensor self, *, Scalar[] spacing, int? dim=None, int edge_order=1) -> Tensor[]",
    "gradient.scalarrayarray(Tensor self, *, Scalar[] spacing, int[] dim, int edge_order=1) -> Tensor[]",
    method=False,
    samples=_samples,
)
def gradient_each(x, spacing, dim, edge_order):
    """The derivative along each dimension of a function sampled at equal distances, its own for each."""
    dims = _dims(x, dim, edge_order, len(spacing))
    return tuple([_even(x, each, d, edge_order) for each, d in zip(spacing, dims, strict=True)])


@op(
    "gradient.tensorarrayint(Tensor self, *, Tensor[] spacing, int? dim=None, int edge_order=1) -> Tensor[]",
    "gradient.tensorarray(Tensor self, *, Tensor[] spacing, int[] dim, int edge_order=1) -> Tensor[]",
    method=False,
    samples=_samples,
)
def gradient_at(x, spacing, dim, edge_order):
    """The derivative along each dimension of a function sampled at the places that spacing gives."""
    dims = _dims(x, dim, edge_order, len(spacing))
    return tuple([_uneven(x, each, d, edge_order) for each, d in zip(spacing, dims, strict=True)])


def _dims(x, dim, edge_order, spacings=None):
    if x.dtype in (dtypes.uint8, dtypes.bool_):
        raise DTypeError(f"gradient is not defined for {x.dtype.name}", help="convert first")
    if edge_order not in (1, 2):
        raise ArgumentError(f"gradient: edge_order is 1 or 2, not {edge_order}")
    given = range(x.rank) if dim is None else dim if isinstance(dim, tuple) else (dim,)
    dims = [flat.axis(each, x.rank) for each in given]
    if len(set(dims)) < len(dims):
        raise ArgumentError(f"gradient: a dimension appears twice in {list(dims)}")
    if spacings not in (None, len(dims)):
        raise ArgumentError(f"gradient: {len(dims)} dimensions need as many spacings, not {spacings}")
    if any(x.rank == 0 or x.shape[d] <= edge_order for d in dims):
        raise ShapeError(f"gradient: {x.type} has fewer than {edge_order + 1} elements along a dimension")
    return dims


def _at(x, dim, start, stop=None):
    """A slice along a dimension; negative places count from its end, as in Python."""
    start, stop, _ = slice(start, stop).indices(x.shape[dim])
    return flat.slice_dim(x, dim, start, stop)


def _combined(x, dim, *terms):
    """The sum of elements times factors, for pairs of a place and a factor."""
    total = 0.0
    for place, factor in terms:
        total = _at(x, dim, place, place + 1 or None) * factor + total
    return total


def _even(x, spacing, dim, edge_order):
    dtype = floating(result_dtype([x, spacing]))
    distance = lambda x: flat.div(flat.convert(x, dtype), spacing)
    if edge_order == 1:
        first, last = (_at(x, dim, i + 1, i + 2 or None) - _at(x, dim, i, i + 1) for i in (0, -2))
    else:
        wide = flat.convert(x, floating(x.dtype))
        first = _combined(wide, dim, (0, -1.5), (1, 2.0), (2, -0.5))
        last = _combined(wide, dim, (-3, 0.5), (-2, -2.0), (-1, 1.5))
    inner = distance(_at(x, dim, 2) - _at(x, dim, 0, -2)) / 2.0
    return flat.concatenate([distance(first), inner, distance(last)], dim)


def _uneven(x, coordinates, dim, edge_order):
    if coordinates.rank != 1 or coordinates.shape[0] != x.shape[dim]:
        raise ShapeError(
            f"gradient: along dimension {dim} of {x.type} there are not {coordinates.type} coordinates"
        )
    steps = _at(coordinates, 0, 1) - _at(coordinates, 0, 0, -1)
    steps = flat.reshape(steps, [-1 if d == dim else 1 for d in range(x.rank)])
    inexact = floating(steps.dtype)
    dtype = dtypes.promote_types(floating(x.dtype), inexact)

    def ratio(x, y):  # of integers, which multiply as such
        return flat.convert(flat.convert(x, inexact) / flat.convert(y, inexact), dtype)

    wide = flat.convert(x, dtype)
    b, a = _at(steps, dim, 0, -1), _at(steps, dim, 1)
    inner = (
        _at(wide, dim, 0, -2) * ratio(-a, b * (b + a))
        + _at(wide, dim, 1, -1) * ratio(a - b, b * a)
        + _at(wide, dim, 2) * ratio(b, a * (b + a))
    )
    if edge_order == 1:
        first, last = (
            flat.convert(_at(x, dim, i + 1, i + 2 or None) - _at(x, dim, i, i + 1), dtype)
            / flat.convert(_at(steps, dim, end, end + 1 or None), dtype)
            for i, end in ((0, 0), (-2, -1))
        )
    else:
        b, a = _at(steps, dim, 0, 1), _at(steps, dim, 1, 2)
        factors = ratio(-(b + b + a), b * (b + a)), ratio(b + a, b * a), ratio(-b, a * (b + a))
        first = _combined(wide, dim, *enumerate(factors))
        b, a = _at(steps, dim, -2, -1), _at(steps, dim, -1)
        factors = ratio(a, b * (b + a)), ratio(-(b + a), b * a), ratio(a + a + b, a * (b + a))
        last = _combined(wide, dim, *enumerate(factors, -3))
    return flat.concatenate([first, inner, last], dim)
