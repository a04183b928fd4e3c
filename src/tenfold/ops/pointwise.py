"""Pointwise rows: sums, products and powers. Quotients are in `division.py`."""

from tenfold import flat
from tenfold.base import dtypes
from tenfold.base.errors import DTypeError
from tenfold.ops.numbers import number_in
from tenfold.ops.precision import computed_in, exact_number, is_number, rounded_numbers, widened
from tenfold.ops.promote import common, convert, exact_other, to_float
from tenfold.ops.samples import S, T
from tenfold.ops.table import op


def check_number(name, number, dtype):
    """Refuse a factor such as alpha that the result's dtype cannot hold."""
    if isinstance(number, bool) and dtype.kind != "bool":
        raise DTypeError(f"a bool {name} needs a bool result, not {dtype.name}")
    if isinstance(number, (float, complex)) and dtype.kind in ("bool", "int"):
        raise DTypeError(f"{name} {number} is not an integer, but the result is {dtype.name}")
    if isinstance(number, complex) and not dtype.is_complex:
        raise DTypeError(f"{name} {number} is complex, but the result is {dtype.name}")


def _scaled():
    tensors = [
        S(T(3, 4), T(3, 4)),
        S(T(3, 4), T(4)),
        S(T(3, 1), T()),
        S(T(), T(2, 3)),
        S(T(), T()),
        S(T(0, 3), T(3)),
    ]
    return [
        *tensors,
        S(T(3, 4), T(3, 4), alpha=3),
        S(T(3, 4), T(4), alpha=-2),
        S(T(3, 4), T(3, 4), alpha=-1.5),
    ]


def _scaled_numbers():
    return [
        S(T(3, 4), 2),
        S(T(3, 4), -1.5),
        S(T(), True),
        S(T(0, 3), 2),
        S(T(3, 4), 3, 2),
        S(T(3, 4), 1.5, 0.5),
    ]


def _exponents():
    numbers = [S(T(3, 4), each) for each in (0, 1, 2, 3, 4, 5, 0.5, -0.5, -1, -2, 1.5, True, 2.0)]
    return [*numbers, S(T(), 2), S(T(0, 3), 0.5)]


def _powers():
    shapes = [((3, 4), (3, 4)), ((3, 4), (4,)), ((2, 1), ()), ((), (2, 3)), ((0, 3), (3,))]
    floats = [S(T(5, 6, dtype=each), T(5, 6, dtype=each)) for each in ("float16", "float32", "float64")]
    return [S(T(*x, low=-3, high=3), T(*y, low=-3, high=3)) for x, y in shapes] + floats


def _powers_of_numbers():
    return [S(number, T(3, 4, low=-3, high=3)) for number in (2, -1.5, True, 0, 1)] + [
        S(2.5, T()),
        S(3, T(0, 3)),
    ]


def _numeric(what, dtype):
    if dtype.kind == "bool":
        raise DTypeError(
            f"{what} is not defined for bool tensors", help="use ^ or ~, or convert to int first"
        )


def subtraction(names, arguments):
    for argument in arguments[:2]:
        _numeric(
            "subtraction", argument.dtype if isinstance(argument, flat.Value) else dtypes.of_python(argument)
        )
    return common(names, arguments)


def _combined(combine, x, y, alpha):
    """x and alpha * y, with alpha rounded to their dtype, as PyTorch's kernels take it."""
    dtype = next(each.dtype for each in (x, y) if not is_number(each))
    check_number("alpha", alpha, dtype)
    if dtype.is_floating_point or dtype.kind == "int":
        alpha = number_in(alpha, dtype)
    operands = [flat.constant(each, dtype) if is_number(each) else each for each in (x, y)]
    if dtype.is_floating_point and dtype.itemsize < dtypes.float32.itemsize:
        alpha = flat.constant(alpha, dtype)
    return widened(lambda x, y, alpha: combine(x, flat.mul(y, alpha)))(*operands, alpha)


@op(
    "add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
    promote=common,
    numbers=True,
    inplace=True,
    samples=_scaled,
    forms="foreach",
    reflected="add.Scalar",
)
@op(
    "add.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor",
    promote=common,
    inplace=True,
    samples=_scaled_numbers,
    forms="foreach",
)
def add(x, y, alpha):
    """self + alpha * other"""
    if type(alpha) is int and alpha == 1:
        return flat.add(x, y)
    return _combined(flat.add, x, y, alpha)


@op(
    "sub.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
    "subtract.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
    promote=subtraction,
    numbers=True,
    inplace=True,
    forms="foreach",
    samples=_scaled,
    reflected="rsub.Scalar",
)
@op(
    "sub.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor",
    "subtract.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor",
    promote=subtraction,
    inplace=True,
    forms="foreach",
    samples=_scaled_numbers,
)
def sub(x, y, alpha):
    """self - alpha * other"""
    if type(alpha) is int and alpha == 1:
        return flat.sub(x, y)
    return _combined(flat.sub, x, y, alpha)


@op(
    "rsub.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
    promote=subtraction,
    method=False,
    samples=_scaled,
    torch_dialect="sub(other, self, alpha=alpha)",
)
@op(
    "rsub.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor",
    promote=subtraction,
    method=False,
    samples=_scaled_numbers,
)
def rsub(x, y, alpha):
    """other - alpha * self"""
    return sub(y, x, alpha)


@op(
    "mul.Tensor(Tensor self, Tensor other) -> Tensor",
    "mul.Scalar(Tensor self, Scalar other) -> Tensor",
    "multiply.Tensor(Tensor self, Tensor other) -> Tensor",
    "multiply.Scalar(Tensor self, Scalar other) -> Tensor",
    promote=exact_other(common),
    numbers=True,
    inplace=True,
    forms="foreach",
    reflected="mul.Scalar",
)
@exact_number
@computed_in(dtypes.float16)  # float8 saturates as it is rounded
def mul(x, y):
    """self * other"""
    return flat.mul(x, y)


# What _power_of_number computes in ways of their own.
SPECIAL_POWERS = (0, 1, 2, 3, 4, -1, -2, 0.5, -0.5)


@op(
    "pow.Tensor_Tensor(Tensor self, Tensor exponent) -> Tensor",
    promote=common,
    inplace=True,
    samples=_powers,
    autocast="cuda: float32",
    forms="foreach",
    grad_fn="PowBackward1",
    saves="inputs",
)
@op(
    "pow.Scalar(Scalar self, Tensor exponent) -> Tensor",
    promote=common,
    method=False,
    samples=_powers_of_numbers,
    autocast="cuda: float32",
    forms="foreach",
    grad_fn="PowBackward2",
    saves="inputs",
)
@op(
    "pow.Tensor_Scalar(Tensor self, Scalar exponent) -> Tensor",
    promote=common,
    inplace=True,
    special=SPECIAL_POWERS,
    samples=_exponents,
    autocast="cuda: float32",
    forms="foreach",
    saves="inputs",
)
def power(x, y):
    """self ** exponent"""
    is_tensor = isinstance(y, flat.Value) and not isinstance(y, flat.LateNumber)
    return _general_power(x, y) if is_tensor else _power_of_number(x, y)


_POLE = complex(float("inf"), float("nan"))  # zero to a power whose real part is negative


@rounded_numbers
def _general_power(x, y):
    x, y = flat.broadcast(x, y)
    if x.dtype.kind == "int" and not x.dtype.is_signed:
        return _unsigned_power(x, y)
    if not x.dtype.is_complex:
        return flat.power(x, y)
    if x.dtype is dtypes.complex64:
        # exp(y log x) magnifies the logarithm's rounding: in float32 large powers keep four digits.
        return flat.convert(
            _general_power(flat.convert(x, dtypes.complex128), flat.convert(y, dtypes.complex128)), x.dtype
        )
    return _complex_power(x, y)


def _of_complex_power(cotangent, result, x, y):
    """As for real numbers, with the powers of zero that PyTorch has."""
    constant = flat.eq(y, 0)
    below = _complex_power(x, flat.where(constant, 1, y - 1))
    rising = flat.eq(x, 0) & flat.ge(flat.real(y), 0)
    logarithm = flat.log(flat.where(rising, 1, x))
    return (
        flat.where(constant, 0, cotangent * flat.conj(y * below)),
        flat.where(rising, 0, cotangent * flat.conj(result * logarithm)),
    )


@flat.differentiated(_of_complex_power)
def _complex_power(x, y):
    positive, zero = flat.real(y) > 0, flat.eq(y, 0)
    at_zero = flat.where(positive, flat.full_like(x, 0), flat.where(zero, flat.full_like(x, 1), _POLE))
    return flat.where(flat.eq(x, 0), at_zero, flat.power(x, y))


def _unsigned_power(x, y):
    """XLA takes exponents as signed, so none may look negative. Powers of odd numbers repeat after 2**62."""
    if x.dtype.itemsize < 8:
        wide = flat.power(flat.convert(x, dtypes.int64), flat.convert(y, dtypes.int64))
        return flat.convert(wide, x.dtype)
    return flat.power(x, flat.where(y < 2**62, y, (y & (2**62 - 1)) | 2**62))


def _power_of_number(x, exponent):
    """x ** number: by products, quotients and roots where PyTorch does so too."""
    if not flat.known(exponent):
        return _general_power(x, flat.full_like(x, exponent))
    if x.dtype in (dtypes.float16, dtypes.bfloat16):
        exponent = number_in(exponent, x.dtype)
    if x.dtype.kind == "int" and exponent < 0:
        raise DTypeError(
            f"an integer tensor cannot be raised to the negative power {exponent}",
            help="convert it to float first",
        )
    if x.dtype.kind == "int":
        exponent = number_in(exponent, x.dtype)
    if exponent == 0:
        return flat.full_like(x, 1)
    if exponent == 1:
        return x
    if exponent in (2, 3, 4):
        return _product(x, int(exponent.real))
    if x.dtype.kind != "int" and x.dtype is not dtypes.float16:
        if exponent == -1:
            return flat.div(1, x)
        if exponent == -2:
            return _inverse_square(x)
        if exponent == 0.5:
            return flat.sqrt(x)
        if exponent == -0.5:
            return flat.rsqrt(x)
    return _general_power(x, flat.full_like(x, exponent))


@flat.differentiated(lambda cotangent, result, x: (cotangent * flat.conj(-2 * flat.power(x, -3)),))
def _inverse_square(x):
    return flat.div(1, flat.mul(x, x))


def _product(x, count):
    if x.dtype is dtypes.bfloat16 and count == 3:
        return x * x * x  # PyTorch rounds after each product
    return widened(lambda x: x**count)(x)


def _to_double(names, arguments):
    dtypes_ = [a.dtype if isinstance(a, flat.Value) else dtypes.of_python(a) for a in arguments]
    wide = dtypes.complex128 if any(dtype.is_complex for dtype in dtypes_) else dtypes.float64
    return [convert(argument, wide) for argument in arguments]


@op(
    "float_power.Tensor_Tensor(Tensor self, Tensor exponent) -> Tensor",
    "float_power.Tensor_Scalar(Tensor self, Scalar exponent) -> Tensor",
    promote=_to_double,
    inplace=True,
    keeps_dtype=True,
    special=SPECIAL_POWERS,
    samples=lambda: _powers() + _exponents(),
    saves="other",
    casts_out=False,
)
@op(
    "float_power.Scalar(Scalar self, Tensor exponent) -> Tensor",
    promote=_to_double,
    method=False,
    samples=_powers_of_numbers,
    saves="other",
    casts_out=False,
)
def float_power(x, y):
    """self ** exponent in float64 or complex128"""
    return power(x, y)


@op("square(Tensor self) -> Tensor", inplace=True, forms="function_", casts_out=True)
def square(x):
    """self * self; of bools as int64"""
    if x.dtype.kind == "bool":
        x = flat.convert(x, dtypes.int64)
    return flat.mul(x, x)


@op(
    "reciprocal(Tensor self) -> Tensor",
    promote=to_float,
    inplace=True,
    autocast="cuda: float32",
    forms="function_ foreach",
    saves="other",
)
def reciprocal(x):
    """1 / self"""
    return flat.div(1, x)


@op(
    "neg(Tensor self) -> Tensor",
    "negative(Tensor self) -> Tensor",
    inplace=True,
    forms="function_ foreach",
    linear=True,
)
def neg(x):
    """-self; bools have none"""
    _numeric("negation", x.dtype)
    return flat.neg(x)


@op(
    "addcmul(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor",
    promote=common,
    inplace=True,
    autocast="cuda: widest",
    forms="foreach",
    saves="inputs",
)
@widened
def addcmul(x, tensor1, tensor2, value):
    """self + value * tensor1 * tensor2"""
    _numeric("addcmul", x.dtype)
    return x + number_in(value, x.dtype) * tensor1 * tensor2


def _true_quotient(names, arguments):
    if all(argument.dtype.kind in ("bool", "int") for argument in arguments[1:3]):
        raise DTypeError("addcdiv does not divide integers", help="use self + value * (tensor1 / tensor2)")
    return common(names, arguments)


@op(
    "addcdiv(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor",
    promote=_true_quotient,
    inplace=True,
    autocast="cuda: widest",
    forms="foreach",
    saves="inputs",
)
@widened
def addcdiv(x, tensor1, tensor2, value):
    """self + value * tensor1 / tensor2"""
    return x + number_in(value, x.dtype) * tensor1 / tensor2


def _with_weight(names, arguments):
    """A weight without dimensions takes part in type promotion; any other has the dtype of the tensors."""
    x, end, weight = arguments
    if x.dtype is not end.dtype or (weight.rank and weight.dtype is not x.dtype):
        tensors = ", ".join(each.dtype.name for each in arguments)
        raise DTypeError(f"lerp takes tensors of one dtype, not {tensors}")
    return arguments if weight.rank else common(names, arguments)


@op(
    "lerp.Scalar(Tensor self, Tensor end, Scalar weight) -> Tensor",
    inplace=True,
    forms="foreach",
    casts_out=True,
)
@op(
    "lerp.Tensor(Tensor self, Tensor end, Tensor weight) -> Tensor",
    promote=_with_weight,
    inplace=True,
    forms="foreach",
)
@widened
def lerp(x, end, weight):
    """self + weight * (end - self)"""
    if x.dtype.kind in ("bool", "int"):
        raise DTypeError(f"lerp is not defined for {x.dtype.name}")
    if isinstance(weight, complex) and not x.dtype.is_complex:
        raise DTypeError(f"the weight {weight} is complex, but the tensors are {x.dtype.name}")
    if not isinstance(weight, flat.Value) and x.dtype.is_floating_point:
        weight = number_in(weight, x.dtype)
    # From the nearer end, so that weight 0 gives self exactly and weight 1 gives end.
    if not isinstance(weight, flat.Value):
        difference = end - x
        return x + difference * weight if abs(weight) < 0.5 else end - difference * (1 - weight)
    return _weighted(*flat.broadcast(x, end, weight))


def _of_weighted(cotangent, result, x, end, weight):
    return (
        cotangent * flat.conj(1 - weight),
        cotangent * flat.conj(weight),
        cotangent * flat.conj(end - x),
    )


@flat.differentiated(_of_weighted)
def _weighted(x, end, weight):
    """As above. Its gradient is taken by the formula: of an infinite weight that of the case which does not
    apply would be NaN."""
    difference = end - x
    near = flat.abs(weight) < 0.5
    return flat.where(near, x + difference * weight, end - difference * (1 - weight))


def _of_hypot(cotangent, result, x, y):
    """By the quotients, which are NaN at the origin."""
    return cotangent * (x / result), cotangent * (y / result)


@flat.differentiated(_of_hypot)
def _hypot(x, y):
    infinite = flat.isinf(x) | flat.isinf(y)
    return flat.where(infinite, float("inf"), flat.abs(flat.complex(x, y)))


@op(
    "hypot(Tensor self, Tensor other) -> Tensor", promote=common, inplace=True, torch_dialect="hypot_of_parts"
)
@widened
def hypot(x, y):
    """sqrt(self ** 2 + other ** 2) without overflow"""
    return _hypot(*flat.broadcast(x, y))


def copy_sign(magnitude, sign):
    """|magnitude| with the sign, also of zero and NaN, of a float."""
    size = flat.abs(magnitude)
    return flat.where(sign_bit(sign), flat.neg(size), size)


def sign_bit(x):
    """Whether a float's sign bit is set."""
    integer = {1: dtypes.int8, 2: dtypes.int16, 4: dtypes.int32, 8: dtypes.int64}[x.dtype.itemsize]
    return flat.bitcast(x, integer) < 0
