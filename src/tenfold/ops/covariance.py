"""Rows that measure how variables vary together: covariance and correlation."""

from tenfold import flat
from tenfold.base import dtypes
from tenfold.base.errors import ArgumentError, DTypeError, ShapeError
from tenfold.ops.contraction import contract
from tenfold.ops.promote import floating
from tenfold.ops.reductions import finite, wide
from tenfold.ops.samples import S, T
from tenfold.ops.table import op

_COUNTS = T(5, dtype="int64", low=1, high=4)
_SHARES = T(5, dtype="float32", low=0.5, high=2)


@op(
    "cov(Tensor self, *, int correction=1, Tensor? fweights=None, Tensor? aweights=None) -> Tensor",
    samples=lambda: [
        S(finite(3, 5)), S(finite(5)), S(finite(3, 5), correction=0), S(finite(1, 5)), S(finite(0, 3)),
        S(finite(3, 5), fweights=_COUNTS), S(finite(3, 5), aweights=_SHARES), S(finite(3, 0)), S(finite()),
        S(finite(3, 5), correction=2, fweights=_COUNTS, aweights=_SHARES), S(finite(3, 1), correction=1),
    ], flops="mm",
)  # fmt: skip
def cov(x, correction, fweights, aweights):
    """How rows vary together, an observation a column: Σ w (x - mean)(x - mean)ᴴ / (Σ w - correction)."""
    product, dtype = _covariances("cov", x, correction, fweights, aweights)
    return flat.convert(flat.reshape(product, [n for n in product.shape if n != 1]), dtype)


def _covariances(name, x, correction=1, fweights=None, aweights=None):
    """The covariances as a matrix, in the dtype that accumulates, and the dtype of the result."""
    if x.rank > 2:
        raise ShapeError(f"{name} takes at most 2 dimensions, not {x.type}")
    if x.dtype is dtypes.bool_:
        raise DTypeError(f"{name} is not defined for bool", help="convert first, for example with .float()")
    x = flat.reshape(x, (1, -1) if x.numel else (1, 0)) if x.rank < 2 else x
    weights = _weights(x.shape[1], fweights, aweights)
    dtype = floating(x.dtype if weights is None else dtypes.promote_types(x.dtype, weights.dtype))
    x = flat.convert(x, wide(dtype))
    if weights is None:
        weighted, total = x, flat.constant(float(x.shape[1]), x.dtype.to_real())
    else:
        weights = flat.convert(weights, x.dtype.to_real())
        total = flat.sum(weights)
        total = flat.check(total, flat.ne(total, 0), ArgumentError, "cov: the weights sum to zero")
        weighted = x * flat.convert(weights, x.dtype)
    mean = flat.sum(weighted, (1,), keepdim=True) / flat.convert(total, x.dtype)
    freedom = total - float(correction)
    if aweights is not None and correction:
        own = flat.convert(aweights, total.dtype)
        freedom = total - flat.sum(weights * flat.reshape(own, weights.shape)) * float(correction) / total
    x = x - mean
    weighted = x if weights is None else x * flat.convert(weights, x.dtype)
    product = contract(x, flat.conj(weighted) if x.dtype.is_complex else weighted, [0, 2], [1, 2], [0, 1])
    return product / flat.convert(flat.maximum(freedom, 0.0), x.dtype), dtype


def _weights(count, fweights, aweights):
    """Each observation's weight, or None where all count the same."""
    for name, given, kind in (("fweights", fweights, "int"), ("aweights", aweights, "float")):
        if given is None:
            continue
        if given.rank > 1 or given.numel != count:
            raise ShapeError(f"cov: {count} observations need as many {name}, not {given.type}")
        if given.dtype.kind != kind:
            raise DTypeError(f"cov: {name} are of a dtype of kind {kind}, not {given.dtype.name}")
    given = [
        flat.check(each, flat.ge(each, 0), ArgumentError, "cov: weights cannot be negative")
        for each in (fweights, aweights)
        if each is not None
    ]
    given = [flat.reshape(each, (count,)) for each in given]
    if len(given) == 2:
        return flat.convert(given[0], given[1].dtype) * given[1]
    return given[0] if given else None


@op(
    "corrcoef(Tensor self) -> Tensor",
    samples=lambda: [S(finite(3, 5)), S(finite(5)), S(finite(0, 3)), S(finite(3, 0)), S(finite(2, 3))],
    flops="mm",
)
def corrcoef(x):
    """The covariances of rows, divided by both rows' standard deviations."""
    c, dtype = _covariances("corrcoef", x)
    n = c.shape[0]
    variances = flat.slice(flat.reshape(c, (n * n,)), (0,), (n * n,), (n + 1,))
    deviation = flat.sqrt(flat.real(variances) if c.dtype.is_complex else variances)
    deviation = flat.convert(deviation, c.dtype)
    c = c / flat.unsqueeze(deviation, 1) / flat.unsqueeze(deviation, 0)
    if c.dtype.is_complex:
        c = flat.complex(flat.clamp(flat.real(c), -1.0, 1.0), flat.clamp(flat.imag(c), -1.0, 1.0))
    else:
        c = flat.clamp(c, -1.0, 1.0)
    return flat.convert(flat.reshape(c, ()) if n == 1 else c, dtype)
