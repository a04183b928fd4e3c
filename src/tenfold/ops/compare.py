"""Rows that compare, and that ask what kind of number an element is."""

from tenfold import flat
from tenfold.base import dtypes
from tenfold.base.errors import ArgumentError, DTypeError, ShapeError
from tenfold.ops.pointwise import sign_bit
from tenfold.ops.promote import common
from tenfold.ops.samples import S, T
from tenfold.ops.table import op


def _comparison(name, alias, meaning, build):
    """Rows for a comparison and its alias, of tensors and of a tensor with a number."""
    schemas = []
    for each in (name, alias) if alias else (name,):
        schemas.append(f"{each}.Tensor(Tensor self, Tensor other) -> Tensor")
        schemas.append(f"{each}.Scalar(Tensor self, Scalar other) -> Tensor")

    @op(*schemas, promote=common, inplace=True, meaning=meaning)
    def compare(x, y):
        return build(x, y)


_comparison("eq", None, "self == other; NaN equals nothing", flat.eq)
_comparison("ne", "not_equal", "self != other; NaN differs from all, itself too", flat.ne)
_comparison("lt", "less", "self < other; False if either is NaN", flat.lt)
_comparison("le", "less_equal", "self <= other; False if either is NaN", flat.le)
_comparison("gt", "greater", "self > other; False if either is NaN", flat.gt)
_comparison("ge", "greater_equal", "self >= other; False if either is NaN", flat.ge)


def _same_dtype(x, y):
    if x.dtype is not y.dtype:
        raise DTypeError(
            f"the tensors differ in dtype: {x.dtype.name} and {y.dtype.name}",
            help="convert one with .to(dtype)",
        )


@op(
    "isclose(Tensor self, Tensor other, float rtol=1e-05, float atol=1e-08, bool equal_nan=False) -> Tensor",
    special=(0,),
    samples=lambda: [
        S(T(3, 4), T(3, 4)),
        S(T(3, 4), T(4), 0.5, 0.25),
        S(T(0, 3), T(3)),
        S(T(), T(3), rtol=0.0, atol=0.0),
        S(T(3, 4), T(3, 4), equal_nan=True),
    ],
)
def isclose(x, y, rtol, atol, equal_nan):
    """|self - other| <= atol + rtol * |other|"""
    _same_dtype(x, y)
    if flat.known(rtol, atol) and not (rtol >= 0 and atol >= 0):
        raise ArgumentError(f"rtol and atol must not be negative, but are {rtol} and {atol}")
    close = flat.eq(x, y)
    inexact = x.dtype.kind in ("float", "complex")
    if equal_nan and inexact:
        close = close | (flat.isnan(x) & flat.isnan(y))
    if flat.known(rtol, atol) and rtol == 0 and atol == 0:
        return close
    if not inexact:
        x = flat.convert(x, dtypes.get_default_dtype())
        y = flat.convert(y, dtypes.get_default_dtype())
    allowed = flat.abs(y * rtol) + atol
    error = flat.abs(x - y)
    return close | (flat.is_finite(error) & (error <= allowed))


@op(
    "allclose(Tensor self, Tensor other, float rtol=1e-05, float atol=1e-08, bool equal_nan=False) -> bool",
    samples=lambda: [S(T(3, 4), T(3, 4)), S(T(3, 4), T(4), 100.0, 100.0), S(T(0, 3), T(3)), S(T(), T())],
)
def allclose(x, y, rtol, atol, equal_nan):
    """Whether all elements are close: see isclose."""
    return flat.reduce(isclose(x, y, rtol, atol, equal_nan), "and")


@op(
    "equal(Tensor self, Tensor other) -> bool",
    promote=common,
    samples=lambda: [S(T(3, 4), T(3, 4)), S(T(3), T(4)), S(T(0), T(0))],
)
def equal(x, y):
    """Whether shape and all elements are the same."""
    if x.shape != y.shape:
        return flat.constant(False, dtypes.bool_)
    return flat.reduce(flat.eq(x, y), "and")


@op("is_nonzero(Tensor self) -> bool", samples=lambda: [S(T()), S(T(1)), S(T(1, 1))])
def is_nonzero(x):
    """Whether the only element is not zero."""
    if x.numel != 1:
        raise ShapeError(f"is_nonzero needs a tensor of one element, not {x.type}")
    return flat.reshape(flat.ne(x, 0), ())


def _false(x):
    return flat.full(x.shape, False, dtypes.bool_)


@op("isnan(Tensor self) -> Tensor")
def isnan(x):
    """Whether NaN; of a complex number, whether either part is."""
    return flat.isnan(x) if x.dtype.kind in ("float", "complex") else _false(x)


def _parts(x):
    return (flat.real(x), flat.imag(x)) if x.dtype.is_complex else (x,)


@op("isinf(Tensor self) -> Tensor")
def isinf(x):
    """Whether infinite, of either sign; of a complex number, whether either part is."""
    if x.dtype.kind not in ("float", "complex"):
        return _false(x)
    found = [flat.isinf(part) for part in _parts(x)]
    return found[0] if len(found) == 1 else found[0] | found[1]


@op("isfinite(Tensor self) -> Tensor")
def isfinite(x):
    """Whether neither NaN nor infinite."""
    if x.dtype.kind not in ("float", "complex"):
        return flat.full(x.shape, True, dtypes.bool_)
    found = [flat.is_finite(part) for part in _parts(x)]
    return found[0] if len(found) == 1 else found[0] & found[1]


def _is_infinity(x, infinity):
    if x.dtype.is_complex:
        raise DTypeError(
            "complex numbers have no sign of infinity", help="use isinf, or ask of .real and .imag"
        )
    return flat.eq(x, infinity) if x.dtype.is_floating_point else _false(x)


@op("isposinf(Tensor self) -> Tensor")
def isposinf(x):
    """Whether +infinity, which no integer is."""
    return _is_infinity(x, float("inf"))


@op("isneginf(Tensor self) -> Tensor")
def isneginf(x):
    """Whether -infinity, which no integer is."""
    return _is_infinity(x, float("-inf"))


@op("isreal(Tensor self) -> Tensor")
def isreal(x):
    """Whether the imaginary part is zero."""
    return flat.eq(flat.imag(x), 0) if x.dtype.is_complex else flat.full(x.shape, True, dtypes.bool_)


@op("signbit(Tensor self) -> Tensor")
def signbit(x):
    """Whether the sign bit is set, as it is in -0.0 too."""
    if x.dtype.is_complex:
        raise DTypeError("signbit is not defined for complex numbers", help="use it on .real or .imag")
    if x.dtype.is_floating_point:
        return sign_bit(x)
    return flat.lt(x, 0) if x.dtype.is_signed else _false(x)
