"""Random rows that fill a tensor. PyTorch has them in place (`x.uniform_()`): these are functional twins."""

from __future__ import annotations

import math

import numpy as np

from tenfold import flat
from tenfold.base import dtypes
from tenfold.base.dtypes import DType
from tenfold.base.errors import DTypeError
from tenfold.ops.random import DIGITS, OWN, above_zero, between, bits, floating, require, scaled_normal, unit
from tenfold.ops.samples import S, T
from tenfold.ops.table import op

_FILLS = {"random": True, "function": False, "method": False, "inplace": True}
# Not an empty one: of that PyTorch does not look at the dtype.
_FILLED = {**_FILLS, "samples": lambda: [S(T(3, 4)), S(T()), S(T(5))]}


@op(f"uniform(Tensor self, float from=0, float to=1, {OWN}) -> Tensor", **_FILLED)
def uniform(state, x, low, high):
    """Uniform draws from [from, to); of a complex number, both parts."""
    if x.dtype.is_complex:
        re, state = uniform(state, flat.real(x), low, high)
        im, state = uniform(state, flat.real(x), low, high)
        return flat.complex(re, im), state
    dtype = floating("uniform", x.dtype)
    late = not flat.known(low, high)
    require(late or low <= high, f"a range from {low} to {high} is empty")
    require(
        late or high - low <= dtypes.finfo(dtype).max,
        f"the range from {low} to {high} is too wide for {dtype.name}",
    )
    state, random = bits(state, x.shape)
    wide = dtypes.float64 if dtype is dtypes.float64 else dtypes.float32
    drawn = flat.convert(unit(random, dtype), wide) * (high - low) + low
    drawn = flat.convert(drawn, dtype)
    # Rounding may lead to `to` itself, which is not in the range.
    if late:
        first, end = (flat.constant(each, dtype) for each in (low, high))
        return flat.where(first < end, flat.minimum(drawn, flat.nextafter(end, first)), drawn), state
    ends = np.array([low, high], dtype.numpy)
    below = np.nextafter(ends[1], ends[0])
    return (flat.minimum(drawn, float(below)) if ends[0] < ends[1] else drawn), state


@op(
    f"normal_functional(Tensor self, float mean=0, float std=1, {OWN}) -> Tensor",
    **(_FILLED | {"inplace": False}),
)
def normal_functional(state, x, mean, std):
    """Normal draws."""
    require(not flat.known(std) or std >= 0, f"a normal distribution has no standard deviation of {std}")
    return scaled_normal(state, mean, std, x.shape, floating("normal", x.dtype, complex=True))


@op(f"log_normal(Tensor self, float mean=1, float std=2, {OWN}) -> Tensor", **_FILLED)
def log_normal(state, x, mean, std):
    """Numbers whose logarithm is a normal draw."""
    require(not flat.known(std) or std > 0, f"a log-normal distribution has no standard deviation of {std}")
    drawn, state = scaled_normal(state, mean, std, x.shape, floating("log_normal", x.dtype))
    return flat.exp(drawn), state


@op(f"exponential(Tensor self, float lambd=1, {OWN}) -> Tensor", **_FILLED)
def exponential(state, x, lambd):
    """Draws from the density lambd · exp(-lambd · x)."""
    require(not flat.known(lambd) or lambd > 0, f"an exponential distribution has no rate of {lambd}")
    dtype = floating("exponential", x.dtype)
    state, random = bits(state, x.shape)
    wide = dtypes.float64 if dtype is dtypes.float64 else dtypes.float32
    drawn = flat.maximum(-flat.log(above_zero(random, wide)), dtypes.finfo(wide).eps / 2)
    return flat.convert(drawn * (1 / lambd), dtype), state


@op(
    f"geometric(Tensor self, float p, {OWN}) -> Tensor",
    **_FILLS,
    samples=lambda: [S(T(3, 4), 0.9), S(T(), 0.5)],
)
def geometric(state, x, p):
    """The number of trials, each a success with probability p, up to and with the first success."""
    require(not flat.known(p) or 0 < p < 1, f"a geometric distribution has no probability of {p}")
    if x.dtype.kind not in ("int", "float"):
        raise DTypeError(f"geometric counts in integers or floats, not {x.dtype.name}")
    state, random = bits(state, x.shape)
    drawn = flat.log(above_zero(random))
    scale = 1 / math.log1p(-p) if flat.known(p) else flat.convert(1 / flat.log1p(-flat.plain(p)), drawn.dtype)
    drawn = flat.ceil(drawn * scale)
    return flat.convert(flat.maximum(drawn, 1.0), x.dtype), state


@op(f"cauchy(Tensor self, float median=0, float sigma=1, {OWN}) -> Tensor", **_FILLED)
def cauchy(state, x, median, sigma):
    """Draws from the density σ / (π · ((x - median)² + σ²))."""
    require(not flat.known(sigma) or sigma > 0, f"a Cauchy distribution has no scale of {sigma}")
    dtype = floating("cauchy", x.dtype)
    state, random = bits(state, x.shape)
    wide = dtypes.float64 if dtype is dtypes.float64 else dtypes.float32
    angle = (unit(random, wide) - 0.5) * math.pi
    return flat.convert(flat.tan(angle) * sigma + median, dtype), state


@op(f"random(Tensor self, {OWN}) -> Tensor", **_FILLS)
def random(state, x):
    """Integers from 0 to the largest of the dtype; for floats, to the largest below which all are exact."""
    return random_from(state, x, 0, None)


@op(f"random.to(Tensor self, int to, {OWN}) -> Tensor", **_FILLS, samples=lambda: [S(T(3, 4), 1), S(T(), 2)])
def random_to(state, x, to):
    """Integers from 0 up to, and without, to."""
    return random_from(state, x, 0, to)


@op(
    f"random.from(Tensor self, int from, int? to, {OWN}) -> Tensor",
    **_FILLS,
    samples=lambda: [S(T(3, 4), 0, 2), S(T(2), 0, 1)],
    needs="next_number",
)
def random_from(state, x, low, high):
    """Integers from `from` up to, and without, to."""
    if high is None:
        if x.dtype.is_complex:
            raise DTypeError(f"there are no random integers in {x.dtype.name}")
        last = 1 << DIGITS[floating("random", x.dtype)] if x.dtype.kind == "float" else _largest(x.dtype)
        high = last + 1
    return between(state, low, high, x.shape, x.dtype)


def _largest(dtype: DType) -> int:
    return 1 if dtype.kind == "bool" else dtypes.iinfo(dtype).max
