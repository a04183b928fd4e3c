"""Softmax and log-softmax rows: the largest element is taken out first, and half types compute in float32."""

from tenfold import flat
from tenfold.base import dtypes
from tenfold.base.errors import DTypeError
from tenfold.ops.precision import widened
from tenfold.ops.samples import S, T
from tenfold.ops.table import op


def _along(*more, **dtype):
    shapes = [((3, 4), 0), ((2, 3, 4), 1), ((), 0), ((0, 3), 0), ((3, 0), 0), ((3, 0), 1)]
    # Along the last dimension PyTorch's half types lose digits: there floats alone are compared.
    return [S(T(*shape), dim, *more) for shape, dim in shapes] + [
        S(T(3, 4, dtype="float32"), -1, *more, **dtype)
    ]


def _with_dtype():
    wide = {"dtype": "float64"}
    return [*_along(**wide), S(T(3, 4), 0, **wide), S(T(3, 4), 1, dtype="float32")]


def _exponents(x, dim):
    """x less its largest element along dim, and the sum of their exponentials."""
    dim = flat.axis(dim, x.rank)
    if not x.dtype.is_floating_point:
        raise DTypeError(
            f"softmax is not defined for {x.dtype.name}", help="pass dtype=, or convert to float first"
        )
    dims = [dim] if x.rank else []
    shifted = x - (flat.reduce(x, "max", dims, keepdim=True) if dims else x)
    exponentials = flat.exp(shifted)
    return shifted, flat.sum(exponentials, dims, keepdim=True) if dims else exponentials


@op(
    "softmax.int(Tensor self, int dim, ScalarType? dtype=None) -> Tensor",
    samples=_with_dtype,
    autocast="cuda: float32 result",
    casts_out=False,
)
@op(
    "special_softmax(Tensor self, int dim, ScalarType? dtype=None) -> Tensor",
    method=False,
    samples=_with_dtype,
    autocast="cuda: float32 result",
    torch_dialect="softmax(self, dim, dtype)",
)
def softmax(x, dim, dtype):
    """exp(self) / sum(exp(self)) along a dimension"""
    return _softmax(x if dtype is None else flat.convert(x, dtype), dim, False)


@op(
    "log_softmax.int(Tensor self, int dim, ScalarType? dtype=None) -> Tensor",
    samples=_with_dtype,
    autocast="cuda: float32 result",
    casts_out=False,
)
@op(
    "special_log_softmax(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor",
    method=False,
    samples=_with_dtype,
    autocast="cuda: float32 result",
    torch_dialect="log_softmax(self, dim, dtype=dtype)",
)
def log_softmax(x, dim, dtype):
    """self - log(sum(exp(self))) along a dimension"""
    return _log_softmax(x if dtype is None else flat.convert(x, dtype), dim, False)


def _to_float(x):
    if x.dtype is not dtypes.float16:
        raise DTypeError(f"half_to_float takes a float16 tensor, not {x.dtype.name}")
    return flat.convert(x, dtypes.float32)


@op(
    "_softmax(Tensor self, int dim, bool half_to_float) -> Tensor",
    method=False,
    samples=lambda: _along(False),
)
def _softmax(x, dim, half_to_float):
    """exp(self) / sum(exp(self)) along a dimension; half_to_float: of float16, in float32"""
    return _normal(_to_float(x) if half_to_float else x, dim)


@op(
    "_log_softmax(Tensor self, int dim, bool half_to_float) -> Tensor",
    method=False,
    samples=lambda: _along(False),
)
def _log_softmax(x, dim, half_to_float):
    """self - log(sum(exp(self))) along a dimension; half_to_float: of float16, in float32"""
    return _log_normal(_to_float(x) if half_to_float else x, dim)


def _of_normal(cotangent, result, x, dim):
    """From the result alone, as PyTorch does: y * (ct - sum(ct * y))."""
    return (result * (cotangent - _total(cotangent * result, dim)),)


def _of_log_normal(cotangent, result, x, dim):
    return (cotangent - flat.exp(result) * _total(cotangent, dim),)


def _total(x, dim):
    return flat.sum(x, dim, keepdim=True) if x.rank else x


@widened
@flat.differentiated(_of_normal)
def _normal(x, dim):
    if 0 in x.shape:
        return x
    shifted, total = _exponents(x, dim)
    return flat.exp(shifted) / total


@widened
@flat.differentiated(_of_log_normal)
def _log_normal(x, dim):
    if 0 in x.shape:
        return x
    shifted, total = _exponents(x, dim)
    return shifted - flat.log(total)
