"""Softmax and log-softmax rows: computed in float32 for half types, with the largest element taken out first."""

from tenfold import dtypes, flat
from tenfold.errors import DTypeError
from tenfold.ops.precision import is_narrow, widened
from tenfold.ops.samples import S, T
from tenfold.ops.table import op


def _along():
    calls = [S(T(3, 4), 0), S(T(3, 4), -1), S(T(2, 3, 4), 1), S(T(), 0), S(T(0, 3), 0), S(T(3, 0), 0), S(T(3, 0), 1)]
    return [*calls, S(T(3, 4), 0, dtype="float64"), S(T(3, 4), 1, dtype="float32")]


def _shifted(x, dim):
    """x less its largest element along the dimension, and that dimension. All of -inf gives NaN, as in PyTorch."""
    if x.dtype.kind not in ("float", "complex"):
        raise DTypeError(f"softmax is not defined for {x.dtype.name}", help="pass dtype=, or convert to float first")
    dim = flat.axis(dim, x.rank)
    if not x.rank:
        return flat.sub(x, x), None
    return x - flat.reduce(x, "max", dim, keepdim=True), dim
