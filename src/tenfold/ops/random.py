"""Random rows that make tensors: uniform, normal and integer draws, permutations; and what random rows share.

A random row's lowering takes a generator's state (u64[2]) first and returns the next state last. All draws
start from 64 random bits an element: XLA makes these fastest, and all but a float64 normal need no more.
`fillings.py` fills tensors that are there, `sampling.py` draws by rejection, `dropout.py` masks.
"""

from __future__ import annotations

import math

from tenfold import flat
from tenfold.base import dtypes
from tenfold.base.dtypes import DType
from tenfold.base.errors import ArgumentError, DTypeError, ShapeError
from tenfold.flat import LateNumber, Value
from tenfold.ops.creation import LIKE, MADE
from tenfold.ops.samples import S, T
from tenfold.ops.table import op, written

GENERATED = MADE.replace("*, ", "*, Generator? generator, ")
GENERATED_LIKE = LIKE.replace("*, ", "*, Generator? generator, ")
WHOLE = MADE.replace("dtype=None", "dtype=long")
WHOLE_GENERATED = GENERATED.replace("dtype=None", "dtype=long")
OWN = "*, Generator? generator=None"

# How many random bits a float in [0, 1) takes: those of its significand.
DIGITS = {dtypes.float16: 11, dtypes.bfloat16: 8, dtypes.float32: 24, dtypes.float64: 53}


def bits(state: Value, shape: tuple[int, ...]) -> tuple[Value, Value]:
    """The next state, and 64 random bits for each element."""
    if any(extent < 0 for extent in shape):
        raise ShapeError(f"a tensor cannot have the shape {list(shape)}: {min(shape)} is negative")
    return flat.random_bits(state, shape, dtypes.uint64)


def unit(random: Value, dtype: DType) -> Value:
    """Random bits as floats in [0, 1), evenly spaced."""
    digits = DIGITS[dtype]
    counts = flat.shift_right_logical(random, 64 - digits)
    if digits <= 32:
        counts = flat.convert(counts, dtypes.uint32)
    wide = dtypes.float64 if dtype is dtypes.float64 else dtypes.float32
    return flat.convert(flat.convert(counts, wide) * 2.0**-digits, dtype)


def above_zero(random: Value, dtype: DType = dtypes.float64) -> Value:
    """Random bits as floats in (0, 1], finer towards 0: for logarithms. dtype is float32 or float64."""
    if dtype is dtypes.float64:
        return (flat.convert(flat.shift_right_logical(random, 11), dtype) + 0.5) * 2.0**-53
    return (flat.convert(_upper(random), dtype) + 0.5) * 2.0**-32


def chance(random: Value, p: float | LateNumber) -> Value:
    """True with probability p."""
    if isinstance(p, LateNumber):
        limit = flat.convert(flat.plain(p) * 2.0**64, dtypes.uint64)
        return flat.logical_or(flat.lt(random, limit), flat.ge(flat.plain(p), 1.0))
    if p >= 1:
        return flat.full(random.shape, True, dtypes.bool_)
    return flat.lt(random, int(p * 2.0**64))


def standard_normal(state: Value, shape: tuple[int, ...], dtype: DType) -> tuple[Value, Value]:
    """The next state, and normal draws by Box and Muller's transform, computed at least in float32."""
    if dtype.is_complex:
        state, re = standard_normal(state, shape, dtype.to_real())
        state, im = standard_normal(state, shape, dtype.to_real())
        return state, flat.complex(re, im) * math.sqrt(0.5)
    state, random = bits(state, shape)
    if dtype is dtypes.float64:
        state, others = bits(state, shape)
        squared, angle = flat.log(above_zero(random)) * -2.0, unit(others, dtype) * math.tau
    else:
        lower = flat.convert(flat.convert(random, dtypes.uint32), dtypes.float32)
        squared = flat.log(above_zero(random, dtypes.float32)) * -2.0
        angle = lower * (math.tau * 2.0**-32)
    return state, flat.convert(flat.sqrt(squared) * flat.cos(angle), dtype)


def integers(random: Value, low: int, span: int) -> Value:
    """Random bits as integers in [low, low + span), each as likely as the others to within 2^-32."""
    if span == 1 << 64:
        return flat.convert(random, dtypes.int64)
    if span <= 1 << 32:
        # The upper half of the product with `span`, which needs no division.
        lower = flat.shift_right_logical(flat.logical_and(random, 0xFFFFFFFF) * span, 32)
        drawn = flat.shift_right_logical(flat.shift_right_logical(random, 32) * span + lower, 32)
    else:
        drawn = random % flat.full_like(random, span)
    whole = flat.convert(drawn, dtypes.int64)
    return whole + low if low else whole


def _upper(random: Value) -> Value:
    return flat.convert(flat.shift_right_logical(random, 32), dtypes.uint32)


def floating(name: str, dtype: DType, *, complex: bool = False) -> DType:
    if dtype in DIGITS or (complex and dtype.is_complex):
        return dtype
    raise DTypeError(f"{name} draws floating-point numbers, not {dtype.name}", help="use a float dtype")


def require(holds: bool, message: str) -> None:
    if not holds:
        raise ArgumentError(message)


def probable(p: float) -> None:
    """Require a probability."""
    require(not flat.known(p) or 0 <= p <= 1, f"{p} is not a probability")


def _unused(generator_first: list[S]) -> list[S]:
    return [S(*each.args, generator=None, **each.kwargs) for each in generator_first]


# New tensors

_SIZES = lambda: [S((3, 4)), S(()), S((30,), dtype=dtypes.float64)]


@op(f"rand(SymInt[] size, {MADE}) -> Tensor", random=True, samples=_SIZES)
@op(f"rand.generator(SymInt[] size, {GENERATED}) -> Tensor", random=True, samples=lambda: _unused(_SIZES()))
def rand(state, size, dtype):
    """Uniform draws from [0, 1)."""
    dtype = floating("rand", dtype or dtypes.get_default_dtype(), complex=True)
    if dtype.is_complex:
        re, state = rand(state, size, dtype.to_real())
        im, state = rand(state, size, dtype.to_real())
        return flat.complex(re, im), state
    state, random = bits(state, size)
    return unit(random, dtype), state


@op(f"randn(SymInt[] size, {MADE}) -> Tensor", random=True, samples=_SIZES)
@op(f"randn.generator(SymInt[] size, {GENERATED}) -> Tensor", random=True, samples=lambda: _unused(_SIZES()))
def randn(state, size, dtype):
    """Draws from the normal distribution of mean 0 and variance 1."""
    dtype = floating("randn", dtype or dtypes.get_default_dtype(), complex=True)
    state, drawn = standard_normal(state, size, dtype)
    return drawn, state


@op(
    f"rand_like(Tensor self, {LIKE}) -> Tensor",
    f"rand_like.generator(Tensor self, {GENERATED_LIKE}) -> Tensor",
    random=True,
    method=False,
    differentiable=False,
    samples=lambda: [S(T(3, 4), generator=None), S(T(3, 4)), S(T())],
)
def rand_like(state, x, dtype):
    """Uniform draws from [0, 1), in self's shape."""
    return rand(state, x.shape, dtype or x.dtype)


@op(
    f"randn_like(Tensor self, {LIKE}) -> Tensor",
    f"randn_like.generator(Tensor self, {GENERATED_LIKE}) -> Tensor",
    random=True,
    method=False,
    differentiable=False,
    samples=lambda: [S(T(3, 4), generator=None), S(T(3, 4)), S(T())],
)
def randn_like(state, x, dtype):
    """Draws from the normal distribution of mean 0 and variance 1, in self's shape."""
    return randn(state, x.shape, dtype or x.dtype)


def between(state, low, high, size, dtype):
    require(high > low, f"no integer lies between low={low} and high={high}, which is left out")
    _check_range(low, high - 1, dtype)
    state, random = bits(state, size)
    return flat.convert(integers(random, low, high - low), dtype), state


def _check_range(low: int, last: int, dtype: DType) -> None:
    if dtype.is_complex:
        raise DTypeError(f"there are no random integers in {dtype.name}")
    if dtype.kind == "bool":
        limits: tuple[float, float] = (0, 1)
    else:
        info = dtypes.finfo(dtype) if dtype.is_floating_point else dtypes.iinfo(dtype)
        limits = (info.min, info.max)
    for each in (low, last):
        require(limits[0] <= each <= limits[1], f"{each} is out of bounds for {dtype.name}")


_HIGH = lambda: [S(10, (3, 4)), S(1, ()), S(100, (0, 3), dtype=dtypes.float32)]
_LOW = lambda: [S(-5, 10, (3, 4)), S(0, 1, (2,)), S(2, 100, (3,), dtype=dtypes.uint8)]


@op(f"randint(SymInt high, SymInt[] size, {WHOLE}) -> Tensor", random=True, samples=_HIGH)
@op(
    f"randint.generator(SymInt high, SymInt[] size, {WHOLE_GENERATED}) -> Tensor",
    random=True,
    samples=lambda: _unused(_HIGH()),
)
def randint(state, high, size, dtype):
    """Integers from 0 up to, and without, high."""
    return between(state, 0, high, size, dtype or dtypes.int64)


@op(f"randint.low(SymInt low, SymInt high, SymInt[] size, {WHOLE}) -> Tensor", random=True, samples=_LOW)
@op(
    f"randint.low_generator(SymInt low, SymInt high, SymInt[] size, {WHOLE_GENERATED}) -> Tensor",
    random=True,
    samples=lambda: _unused(_LOW()),
)
def randint_low(state, low, high, size, dtype):
    """Integers from low up to, and without, high."""
    return between(state, low, high, size, dtype or dtypes.int64)


@op(
    f"randint_like(Tensor self, SymInt high, {LIKE}) -> Tensor",
    f"randint_like.generator(Tensor self, SymInt high, {GENERATED_LIKE}) -> Tensor",
    random=True,
    method=False,
    differentiable=False,
    samples=lambda: [S(T(3, 4), 1), S(T(3, 4), 2, dtype=dtypes.int8), S(T(3, 4), 2, generator=None)],
)
def randint_like(state, x, high, dtype):
    """Integers from 0 up to, and without, high, in self's shape."""
    return between(state, 0, high, x.shape, dtype or x.dtype)


@op(
    f"randint_like.low_dtype(Tensor self, SymInt low, SymInt high, {LIKE}) -> Tensor",
    f"randint_like.low_generator_dtype(Tensor self, SymInt low, SymInt high, {GENERATED_LIKE}) -> Tensor",
    random=True,
    method=False,
    differentiable=False,
    samples=lambda: [
        S(T(3, 4), 0, 2),
        S(T(5, 5), -3, 9, dtype=dtypes.int32),
        S(T(3, 4), 0, 2, generator=None),
    ],
)
def randint_like_low(state, x, low, high, dtype):
    """Integers from low up to, and without, high, in self's shape."""
    return between(state, low, high, x.shape, dtype or x.dtype)


_COUNTS = lambda: [S(7), S(0), S(1), S(9, dtype=dtypes.float32), S(5, dtype=dtypes.int16)]


@op(f"randperm(SymInt n, {WHOLE}) -> Tensor", random=True, samples=_COUNTS)
@op(
    f"randperm.generator(SymInt n, {WHOLE_GENERATED}) -> Tensor",
    random=True,
    samples=lambda: _unused(_COUNTS()),
)
def randperm(state, n, dtype):
    """0 to n - 1 in random order."""
    dtype = dtype or dtypes.int64
    require(n >= 0, f"there is no permutation of {n} elements")
    _check_range(0, max(n - 1, 0), dtype)
    state, random = bits(state, (n,))
    # The places ride in the lowest bits of the keys, so that one array is sorted and not two.
    places = (1 << max(n - 1, 1).bit_length()) - 1
    keys = flat.logical_or(flat.logical_and(random, (1 << 64) - 1 - places), flat.arange(n, dtypes.uint64))
    (keys,) = flat.sort([keys], 0, flat.lt, stable=False)
    return flat.convert(flat.logical_and(keys, places), dtype), state


# Draws whose parameters are tensors


def scaled_normal(state, mean, std, shape, dtype):
    state, drawn = standard_normal(state, shape, dtype)
    return drawn * std + mean, state


@op(
    f"bernoulli(Tensor self, {OWN}) -> Tensor",
    random=True,
    samples=lambda: [S(T(3, 4, low=0, high=1))],
    casts_out=True,
)
def bernoulli(state, p):
    """1 with the probability given by the element, else 0."""
    return bernoulli_each(state, p, p)


@op(
    f"bernoulli.p(Tensor self, float p, {OWN}) -> Tensor",
    random=True,
    samples=lambda: [S(T(3, 4), 0.5), S(T(), 1.0)],
)
def bernoulli_p(state, x, p):
    """1 with probability p, else 0, in the tensor's shape and dtype."""
    probable(p)
    state, random = bits(state, x.shape)
    return flat.convert(chance(random, p), x.dtype), state


@op(
    f"bernoulli.Tensor(Tensor self, Tensor p, {OWN}) -> Tensor",
    random=True,
    function=False,
    method=False,
    samples=lambda: [
        S(T(3, 4), T(3, 4, dtype="float32", low=0, high=1)),
        S(T(2, 3), T(3, dtype="float32", low=0, high=1)),
    ],
)
def bernoulli_each(state, x, p):
    """1 with probability p, else 0, in the tensor's shape and dtype; p is stretched to it."""
    wide = dtypes.float64 if p.dtype is dtypes.float64 else dtypes.float32
    probability = flat.broadcast_to(flat.convert(p, wide), x.shape)
    if p.dtype.kind != "float":
        raise DTypeError(f"probabilities are floating-point numbers, not {p.dtype.name}")
    state, random = bits(state, x.shape)
    drawn = flat.convert(flat.lt(unit(random, wide), probability), x.dtype)
    valid = flat.logical_and(flat.ge(probability, 0.0), flat.le(probability, 1.0))
    return flat.check(drawn, valid, ArgumentError, "bernoulli: a probability is not between 0 and 1"), state


def _to_none(cotangents, results, state, mean, std):
    """PyTorch's convention: a draw is followed, but does not say how it came from mean and std."""
    return (None, *[flat.full_like(each, 0) for each in (mean, std) if isinstance(each, Value)])


@op(
    f"normal.Tensor_float(Tensor mean, float std=1, {OWN}) -> Tensor",
    f"normal.Tensor_Tensor(Tensor mean, Tensor std, {OWN}) -> Tensor",
    random=True,
    method=False,
    samples=lambda: [
        S(T(3, 4), 2.0), S(T(3, 4), T(4, low=0, high=2)), S(T(1, 4), T(3, 1, low=0, high=2)),
    ], casts_out=True,
)  # fmt: skip
@op(
    f"normal.float_Tensor(float mean, Tensor std, {OWN}) -> Tensor",
    random=True,
    method=False,
    samples=lambda: [S(1.0, T(3, 4, low=0, high=2))],
    late=written,
    casts_out=True,
)
@flat.differentiated(_to_none)
def normal(state, mean, std):
    """Normal draws, each of its own mean, or standard deviation, or both."""
    tensors = [each for each in (mean, std) if isinstance(each, Value)]
    shape = flat.broadcast_shapes(*[tensor.shape for tensor in tensors])
    dtype = floating("normal", tensors[0].dtype, complex=True)
    if isinstance(std, Value):
        if std.dtype.is_complex:
            raise DTypeError("a standard deviation is not complex")
        holds = flat.ge(std, 0.0)
        std = flat.check(std, holds, ArgumentError, "normal: a standard deviation is negative")
        std = flat.convert(std, dtype)
    else:
        require(std >= 0, f"a normal distribution has no standard deviation of {std}")
    return scaled_normal(state, mean, std, shape, dtype)


@op(
    f"normal.float_float(float mean, float std, SymInt[] size, {OWN}, {MADE[3:]}) -> Tensor",
    random=True,
    samples=lambda: [S(1.0, 2.0, (3, 4)), S(0.0, 0.0, ())],
    casts_out=True,
)
def normal_sized(state, mean, std, size, dtype):
    """Normal draws of a given shape."""
    require(not flat.known(std) or std >= 0, f"a normal distribution has no standard deviation of {std}")
    dtype = floating("normal", dtype or dtypes.get_default_dtype(), complex=True)
    return scaled_normal(state, mean, std, size, dtype)
