"""Rows that measure spread and size: variances, norms and distances, log-sum-exp, traces."""

from tenfold import flat
from tenfold.base import dtypes
from tenfold.base.errors import DTypeError, ShapeError
from tenfold.ops.pointwise import subtraction
from tenfold.ops.promote import to_float
from tenfold.ops.reductions import extent, finite, inexact, wide, widened
from tenfold.ops.samples import S, T
from tenfold.ops.table import op, written


def spread(name, measure, x, dims, correction, keepdim):
    """The variance or the deviation, and the mean: two passes, so that nothing cancels, in the dtype that
    accumulates."""
    inexact(name, x)
    wider = widened(x)
    found = measure(wider, dims, 1 if correction is None else correction, keepdim)
    mean = flat.sum(wider, dims, keepdim) / extent(x, dims)
    return flat.convert(found, x.dtype.to_real()), flat.convert(mean, x.dtype)


def _centred(x, dims):
    return x - flat.sum(x, dims, True) / extent(x, dims)


def _of_variance(cotangent, result, x, dims, correction, keepdim):
    """2 * ct * (x - mean) / freedom: that the mean moves too makes no difference."""
    freedom = extent(x, dims) - correction
    scale = flat.reshape(cotangent, kept_shape(x, dims)) * (2 / freedom if freedom else float("inf"))
    return (flat.convert(scale, x.dtype) * _centred(x, dims),)


@flat.differentiated(_of_variance)
def _variance(x, dims, correction, keepdim):
    return _mean_square(_centred(x, dims), dims, correction, keepdim)


def _mean_square(centred, dims, correction, keepdim):
    return flat.sum(squared(centred), dims, keepdim) / max(0, extent(centred, dims) - correction)


def _of_deviation(cotangent, result, x, dims, correction, keepdim):
    """ct * ((x - mean) / deviation) / freedom; zero where nothing deviates, PyTorch's convention."""
    freedom, zero = extent(x, dims) - correction, flat.eq(result, 0)
    scale = flat.where(zero, 0, cotangent * (1 / freedom if freedom else float("inf")))
    scale, size = (flat.reshape(each, kept_shape(x, dims)) for each in (scale, flat.where(zero, 1, result)))
    return (flat.convert(scale, x.dtype) * (_centred(x, dims) / flat.convert(size, x.dtype)),)


@flat.differentiated(_of_deviation)
def _deviation(x, dims, correction, keepdim):
    """The root of the variance. In float32 squares of what is very large or small would be out of range, so
    that is scaled, by powers of 2; PyTorch computes in float64."""
    centred = _centred(x, dims)
    if dtypes.float32 is not x.dtype.to_real():
        return flat.sqrt(_mean_square(centred, dims, correction, keepdim))
    largest = flat.reduce(flat.abs(centred), "max", dims, True)
    small = flat.where(largest < 2.0**-40, 2.0**80, flat.full_like(largest, 1))
    scale = flat.where(largest > 2.0**50, 2.0**-96, small)
    found = flat.sqrt(_mean_square(centred * flat.convert(scale, x.dtype), dims, correction, keepdim))
    return found / flat.reshape(scale, found.shape)


def kept_shape(x, dims):
    """The shape of x with these dimensions folded to 1."""
    folded = flat.axes(dims, x.rank)
    return [1 if d in folded else n for d, n in enumerate(x.shape)]


def squared(x):
    """|x|**2, which is real."""
    return flat.real(x) ** 2 + flat.imag(x) ** 2 if x.dtype.is_complex else x * x


# Where infinities meet, PyTorch's running mean is NaN or not depending on their order: samples are finite.


EMPTY = T(0, 3, dtype="float32")


def correction_samples():
    calls = [S(finite(3, 4), correction=c) for c in (None, 0, 2, 1.5)]
    return [
        *calls,
        S(finite(2, 3, 4), [0, 2], correction=1, keepdim=True),
        S(finite(2, 3), [1], correction=5),
        S(EMPTY, [0]),
    ]


def unbiased_dims_samples():
    return [
        S(finite(2, 3, 4), [0, 2]),
        S(finite(2, 3, 4), [], False),
        S(finite(2, 3, 4), None, True, True),
        S(EMPTY, [0]),
    ]


def unbiased_samples():
    return [S(finite(3, 4)), S(finite(3, 4), False), S(finite()), S(EMPTY)]


@op(
    "var.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> Tensor",
    samples=correction_samples,
    late=written,
    casts_out=True,
)
def var_correction(x, dims, correction, keepdim):
    """sum(|self - mean|**2) / max(0, n - correction)"""
    return spread("var", _variance, x, dims, correction, keepdim)[0]


@op(
    "var.dim(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False) -> Tensor",
    out_overload="out",
    samples=unbiased_dims_samples,
    casts_out=True,
)
def var_dims(x, dims, unbiased, keepdim):
    """sum(|self - mean|**2) / (n - 1), or over n if not unbiased, over dimensions"""
    return var_correction(x, dims, int(unbiased), keepdim)


@op("var(Tensor self, bool unbiased=True) -> Tensor", samples=unbiased_samples, casts_out=True)
def var(x, unbiased):
    """sum(|self - mean|**2) / (n - 1), or over n if not unbiased, of all elements"""
    return var_correction(x, None, int(unbiased), False)


@op(
    "std.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> Tensor",
    samples=correction_samples,
    late=written,
    casts_out=True,
)
def std_correction(x, dims, correction, keepdim):
    """sqrt(sum(|self - mean|**2) / max(0, n - correction))"""
    return spread("std", _deviation, x, dims, correction, keepdim)[0]


@op(
    "std.dim(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False) -> Tensor",
    out_overload="out",
    samples=unbiased_dims_samples,
    casts_out=True,
)
def std_dims(x, dims, unbiased, keepdim):
    """sqrt(sum(|self - mean|**2) / (n - 1)), or over n if not unbiased, over dimensions"""
    return std_correction(x, dims, int(unbiased), keepdim)


@op("std(Tensor self, bool unbiased=True) -> Tensor", samples=unbiased_samples, casts_out=True)
def std(x, unbiased):
    """sqrt(sum(|self - mean|**2) / (n - 1)), or over n if not unbiased, of all elements"""
    return std_correction(x, None, int(unbiased), False)


@op(
    "var_mean.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) "
    "-> (Tensor, Tensor)",
    method=False,
    samples=correction_samples,
    late=written,
)
def var_mean_correction(x, dims, correction, keepdim):
    """The variance and the mean."""
    return spread("var_mean", _variance, x, dims, correction, keepdim)


@op(
    "var_mean.dim(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False) -> (Tensor, Tensor)",
    method=False,
    samples=unbiased_dims_samples,
)
def var_mean_dims(x, dims, unbiased, keepdim):
    """The variance and the mean over dimensions."""
    return var_mean_correction(x, dims, int(unbiased), keepdim)


@op("var_mean(Tensor self, bool unbiased=True) -> (Tensor, Tensor)", method=False, samples=unbiased_samples)
def var_mean(x, unbiased):
    """The variance and the mean of all elements."""
    return var_mean_correction(x, None, int(unbiased), False)


@op(
    "std_mean.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) "
    "-> (Tensor, Tensor)",
    method=False,
    samples=correction_samples,
    torch_dialect="deviation_and_mean",
    late=written,
)
def std_mean_correction(x, dims, correction, keepdim):
    """The standard deviation and the mean."""
    return spread("std_mean", _deviation, x, dims, correction, keepdim)


@op(
    "std_mean.dim(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False) -> (Tensor, Tensor)",
    method=False,
    samples=unbiased_dims_samples,
    torch_dialect="deviation_and_mean",
)
def std_mean_dims(x, dims, unbiased, keepdim):
    """The standard deviation and the mean over dimensions."""
    return std_mean_correction(x, dims, int(unbiased), keepdim)


@op(
    "std_mean(Tensor self, bool unbiased=True) -> (Tensor, Tensor)",
    method=False,
    samples=unbiased_samples,
    torch_dialect="deviation_and_mean",
)
def std_mean(x, unbiased):
    """The standard deviation and the mean of all elements."""
    return std_mean_correction(x, None, int(unbiased), False)


# Norms


SPECIAL_ORDERS = (2, 1, 0, float("inf"), float("-inf"))
ORDERS = (*SPECIAL_ORDERS, 3, 0.5, -1.5)


def norm_samples():
    calls = [S(T(3, 4), p, [1], False) for p in ORDERS]
    return [
        *calls,
        S(T(2, 3, 4), 2, [0, -1], True),
        S(EMPTY, 2, [0], False),
        S(T(dtype="float32"), 2, [0], True),
    ]


@op(
    "linalg_vector_norm(Tensor self, Scalar ord=2, int[1]? dim=None, bool keepdim=False, *, "
    "ScalarType? dtype=None) -> Tensor",
    samples=lambda: [
        *norm_samples(),
        S(T(3, 4)),
        S(T(3, 4), 2, None, True),
        S(T(3, 4), dtype=dtypes.float64),
    ],
    special=SPECIAL_ORDERS,
    autocast="cuda: float32 result",
    casts_out=False,
)
def linalg_vector_norm(x, order, dims, keepdim, dtype):
    """sum(|self|**ord) ** (1/ord); ord 0 counts what is not zero, inf and -inf take the extremes."""
    inexact("vector_norm", x)
    if dtype is not None:
        not_narrower(x, dtype)
        x = flat.convert(x, dtype)
    if isinstance(order, complex):
        raise DTypeError(f"vector_norm: the order must be real, not {order}")
    result = flat.convert(_norm(widened(x), order, dims, keepdim), x.dtype.to_real())
    return result


def _norm(x, order, dims, keepdim):
    if not flat.known(order):
        return _power_norm(x, order, dims, keepdim)
    order = float(order)
    if (order < 0 or order == float("inf")) and extent(x, dims) == 0:
        raise ShapeError(f"the norm of order {order} of no elements is undefined, and {x.type} has none")
    if extent(x, dims) == 1 and order != 0:  # the norm of one number is its size
        return flat.sum(flat.abs(x), dims, keepdim)
    if order == 2:
        return _length(x, dims, keepdim)
    if order == 0:
        return flat.sum(flat.convert(flat.ne(x, 0), x.dtype.to_real()), dims, keepdim)
    size = flat.abs(x)
    if order == 1:
        return flat.sum(size, dims, keepdim)
    if order in (float("inf"), float("-inf")):
        return flat.reduce(size, "max" if order > 0 else "min", dims, keepdim)
    return _power_norm(x, order, dims, keepdim)


def _of_length(cotangent, result, x, dims, keepdim):
    """ct * (x / norm), and nothing where the norm is zero: the gradient of that is NaN there, by the rule."""
    kept = kept_shape(x, dims)
    cotangent, result = flat.reshape(cotangent, kept), flat.reshape(result, kept)
    direction = flat.where(flat.eq(result, 0), 0, x / flat.convert(result, x.dtype))
    return (flat.convert(cotangent, x.dtype) * direction,)


@flat.differentiated(_of_length)
def _length(x, dims, keepdim):
    return flat.sqrt(flat.sum(squared(x), dims, keepdim))


def _of_power_norm(cotangent, result, x, order, dims, keepdim):
    """ct * direction * (|x| / norm)**(order - 1), and nothing to zeros or where the norm is zero."""
    kept = kept_shape(x, dims)
    cotangent, result = flat.reshape(cotangent, kept), flat.reshape(result, kept)
    none = flat.eq(x, 0) | flat.eq(result, 0)
    size, whole = flat.where(none, 1, flat.abs(x)), flat.where(flat.eq(result, 0), 1, result)
    scale = cotangent * flat.power(size, order - 1) * flat.power(whole, 1 - order)
    return (flat.where(none, 0, flat.convert(scale, x.dtype) * flat.sign(x)),)


@flat.differentiated(_of_power_norm)
def _power_norm(x, order, dims, keepdim):
    return flat.power(flat.sum(flat.power(flat.abs(x), order), dims, keepdim), 1 / order)


def not_narrower(x, dtype):
    if dtype.kind != x.dtype.kind or dtype.itemsize < x.dtype.itemsize:
        raise DTypeError(
            f"a norm of {x.dtype.name} cannot be computed as {dtype.name}",
            help="dtype must be of the same kind, floating-point or complex, and not narrower",
        )


@op(
    "norm.ScalarOpt_dim(Tensor self, Scalar? p, int[1] dim, bool keepdim=False) -> Tensor",
    samples=lambda: [*norm_samples(), S(T(3, 4), None, []), S(T(3, 4), None, [-1], True)],
    special=SPECIAL_ORDERS,
    autocast="cuda: float32 result",
)
def norm_dims(x, p, dims, keepdim):
    """sum(|self|**p) ** (1/p) over dimensions, p being by default 2; p 0 counts what is not zero, inf and
    -inf take the extremes of |self|."""
    return linalg_vector_norm(x, 2 if p is None else p, dims, keepdim, None)


@op(
    "norm.Scalar(Tensor self, Scalar p=2) -> Tensor",
    samples=lambda: [S(T(3, 4), p) for p in ORDERS] + [S(T(dtype="float32"))],
    special=SPECIAL_ORDERS,
    autocast="cuda: float32 result",
)
def norm(x, p):
    """sum(|self|**p) ** (1/p) over all elements."""
    return linalg_vector_norm(x, p, None, False, None)


@op(
    "norm.ScalarOpt_dim_dtype(Tensor self, Scalar? p, int[1] dim, bool keepdim, *, ScalarType dtype) "
    "-> Tensor",
    samples=lambda: [S(T(3, 4), 3, [1], True, dtype=d) for d in (dtypes.float32, dtypes.float64)],
    special=SPECIAL_ORDERS,
    autocast="cuda: float32 result",
    casts_out=False,
)
def norm_dims_dtype(x, p, dims, keepdim, dtype):
    """sum(|self|**p) ** (1/p) over dimensions, in another dtype."""
    return linalg_vector_norm(x, 2 if p is None else p, dims, keepdim, dtype)


@op(
    "norm.ScalarOpt_dtype(Tensor self, Scalar? p, *, ScalarType dtype) -> Tensor",
    samples=lambda: [S(T(3, 4), p, dtype=d) for p in (None, 1) for d in (dtypes.float32, dtypes.float64)],
    special=SPECIAL_ORDERS,
    autocast="cuda: float32 result",
    casts_out=False,
)
def norm_dtype(x, p, dtype):
    """sum(|self|**p) ** (1/p) over all elements, in another dtype."""
    return norm_dims_dtype(x, p, None, False, dtype)


def frobenius_samples():
    return [S(T(2, 3, 4), dims, keepdim) for dims in ([0], [0, -1], []) for keepdim in (False, True)]


@op(
    "frobenius_norm.dim(Tensor self, int[1] dim, bool keepdim=False) -> Tensor",
    method=False,
    samples=frobenius_samples,
    autocast="cuda: float32",
)
def frobenius_norm(x, dims, keepdim):
    """sqrt(sum(|self|**2))"""
    if len(dims) > 2:
        raise ShapeError(f"frobenius_norm takes at most two dimensions, not {list(dims)}")
    return linalg_vector_norm(x, 2, dims, keepdim, None)


@op(
    "norm_except_dim(Tensor v, int pow=2, int dim=0) -> Tensor",
    samples=lambda: [
        S(T(2, 3, 4), 2, 0),
        S(T(2, 3, 4), 2, 2),
        S(T(2, 3, 4), 1, 1),
        S(T(2, 3, 4), 2, -1),
        S(T(3)),
    ],
)
def norm_except_dim(x, pow, dim):
    """The norm over all dimensions but one, which is kept; for dim=-1 over all."""
    if dim == -1:
        return norm(x, pow)
    kept = flat.axis(dim, x.rank)
    others = [d for d in range(x.rank) if d != kept]
    if not others:
        return norm_dims(flat.unsqueeze(x, 1), pow, [1], False)
    return norm_dims(x, pow, others, True)


def _late_maxnorm(types, arguments):
    *others, maxnorm = arguments
    return ((*others, type(maxnorm)), (maxnorm,)) if type(maxnorm) in (int, float) else (arguments, ())


@op(
    "renorm(Tensor self, Scalar p, int dim, Scalar maxnorm) -> Tensor",
    inplace=True,
    late=_late_maxnorm,
    samples=lambda: [
        S(T(3, 4), 2, 0, 1.0),
        S(T(2, 3, 4), 1, 1, 5),
        S(T(3, 4), 3, -1, 2.5),
        S(T(3, 4), 0.5, 0, 1e6),
    ],
    autocast="cuda: float32",
    torch_dialect="renorm(self, p, dim % self.ndim, maxnorm)",
)
def renorm(x, p, dim, maxnorm):
    """Each slice along `dim` whose norm exceeds `maxnorm`, scaled to it."""
    inexact("renorm", x)
    if x.rank < 2:
        raise ShapeError(f"renorm needs at least 2 dimensions, not {x.type}")
    negative = isinstance(maxnorm, complex) or (flat.known(maxnorm) and not maxnorm >= 0)
    if isinstance(p, complex) or p <= 0 or negative:
        raise ShapeError(f"renorm: p must be positive and maxnorm not negative, not p={p}, maxnorm={maxnorm}")
    kept = flat.axis(dim, x.rank)
    others = [d for d in range(x.rank) if d != kept]
    above = flat.gt(_norm(widened(x), float(p), others, True), maxnorm)
    # Slices that stay as they are have no part in the norm: its gradient may be NaN there.
    size = _norm(flat.where(above, widened(x), 0), float(p), others, True)
    factor = flat.where(above, maxnorm / (size + 1e-7), flat.full_like(size, 1))
    if x.dtype.is_complex:
        factor = flat.convert(factor, x.dtype)
    return flat.convert(widened(x) * factor, x.dtype)


@op(
    "dist(Tensor self, Tensor other, Scalar p=2) -> Tensor",
    promote=subtraction,
    samples=lambda: [S(T(3, 4), T(3, 4), p) for p in ORDERS] + [S(T(3, 1), T(4)), S(T(), T()), S(T(0), T(0))],
    special=SPECIAL_ORDERS,
    autocast="cuda: float32",
)
def dist(x, y, p):
    """The norm of self - other."""
    return norm(x - y, p)


# Others


@op(
    "logsumexp(Tensor self, int[1] dim, bool keepdim=False) -> Tensor",
    "special_logsumexp(Tensor self, int[1] dim, bool keepdim=False) -> Tensor",
    promote=to_float,
    samples=lambda: [
        S(T(2, 3, 4, low=0, high=3), [1]),
        S(T(2, 3, 4, dtype="float32"), [0, -1], True),
        S(T(), [0]),
        S(T(0, 3), [0]),
        S(T(3, 0), [0]),
    ],
    autocast="cuda: float32",
)
def logsumexp(x, dims, keepdim):
    """log(sum(exp(x)))"""
    return flat.convert(_log_sum_exp(widened(x), dims, keepdim), x.dtype)


def _of_log_sum_exp(cotangent, result, x, dims, keepdim):
    """Each element's part in the sum of exponentials."""
    kept = kept_shape(x, dims)
    part = flat.exp(x - flat.reshape(result, kept))
    return (flat.reshape(cotangent, kept) * flat.conj(part),)


@flat.differentiated(_of_log_sum_exp)
def _log_sum_exp(x, dims, keepdim):
    top = flat.reduce(flat.real(x) if x.dtype.is_complex else x, "max", dims, True)
    top = flat.where(flat.isinf(top), 0, top)
    shift = flat.convert(top, x.dtype)
    total = flat.log(flat.sum(flat.exp(x - shift), dims, keepdim))
    return total + flat.reshape(shift, total.shape)


@op(
    "trace(Tensor self) -> Tensor",
    samples=lambda: [S(T(3, 3)), S(T(2, 4)), S(T(4, 2)), S(T(0, 3)), S(T(1, 1))],
    autocast="cpu: float32",
)
def trace(x):
    """The sum of the diagonal of a matrix; of integers as int64."""
    if x.rank != 2:
        raise ShapeError(f"trace needs a matrix, not {x.type}")
    n = min(x.shape)
    square = flat.reshape(flat.slice(x, (0, 0), (n, n)), (n * n,))
    diagonal = flat.slice(square, (0,), (n * n,), (n + 1,))
    total = diagonal if x.dtype.kind not in ("bool", "int") else flat.convert(diagonal, dtypes.int64)
    return flat.convert(flat.sum(flat.convert(total, wide(total.dtype))), total.dtype)
