"""Random rows that need more than a formula: choices by weight, and draws by rejection, in a loop.

The loops compute in float64, as PyTorch does: acceptance compares logarithms of large factorials. Parameters
that are wrong are replaced before a loop, so that it ends, and refused after it, so that the random state
does not depend on the refusal.
"""

from __future__ import annotations

from tenfold import flat
from tenfold.base import dtypes
from tenfold.base.errors import ArgumentError, DTypeError, ShapeError
from tenfold.flat import Value
from tenfold.ops.incomplete_gamma import density, incomplete_gamma
from tenfold.ops.random import above_zero, bits, floating, require, standard_normal, unit
from tenfold.ops.samples import S, T
from tenfold.ops.table import op

F64 = dtypes.float64


@op(
    "multinomial(Tensor self, SymInt num_samples, bool replacement=False, *, Generator? generator=None) "
    "-> Tensor",
    random=True,
    samples=lambda: [
        S(T(4, low=0.5, high=1), 3),
        S(T(2, 4, low=0.5, high=1), 4),
        S(T(2, 4, low=0.5, high=1), 9, True),
    ],
    positions="-> 0",
)
def multinomial(state, weights, num_samples, replacement):
    """Places drawn with probabilities proportional to the weights in the last dimension."""
    floating("multinomial", weights.dtype)
    if weights.rank not in (1, 2):
        raise ShapeError(f"the weights have 1 or 2 dimensions, not {weights.type}")
    count = weights.shape[-1]
    require(num_samples > 0, f"cannot draw {num_samples} samples")
    if not replacement and num_samples > count:
        raise ArgumentError(
            f"cannot draw {num_samples} of {count} without replacement", help="use replacement=True"
        )
    rows = flat.reshape(flat.convert(weights, F64), (-1, count) if weights.rank == 2 else (1, count))
    valid = flat.logical_and(flat.ge(rows, 0.0), flat.is_finite(rows))
    rows = flat.check(rows, valid, ArgumentError, "multinomial: a weight is negative, infinite or NaN")
    possible = flat.sum(flat.convert(flat.gt(rows, 0.0), dtypes.int64), 1)
    least = 1 if replacement else num_samples
    message = f"multinomial: fewer than {least} weights are above zero"
    rows = flat.check(rows, flat.ge(possible, least), ArgumentError, message)
    drawn, state = (_replaced if replacement else _distinct)(state, rows, num_samples)
    return flat.reshape(drawn, (*weights.shape[:-1], num_samples)), state


def _distinct(state, rows, num_samples):
    """The largest of weight / exponential draw: places without replacement, by their order in a race."""
    state, random = bits(state, rows.shape)
    keys = -(rows / -flat.log(above_zero(random)))
    places = flat.iota(rows.shape, 1)
    _, order = flat.sort([keys, places], 1, lambda a, b, i, j: flat.lt(a, b), stable=True)
    return flat.slice_dim(order, 1, 0, num_samples), state


def _replaced(state, rows, num_samples):
    """Where uniform draws fall among the sums of weights, by bisection."""
    count = rows.shape[1]
    sums, step = rows, 1
    while step < count:
        shifted = flat.pad(flat.slice_dim(sums, 1, 0, count - step), (0, step), (0, 0))
        sums, step = sums + shifted, 2 * step
    total = flat.slice_dim(sums, 1, count - 1, count)
    state, random = bits(state, (rows.shape[0], num_samples))
    drawn = unit(random, F64) * total
    place = flat.full(drawn.shape, 0, dtypes.int64)
    while step:
        further = place + step
        last = flat.take_along(sums, flat.clamp(further - 1, 0, count - 1), 1)
        passed = flat.logical_and(flat.le(further, count - 1), flat.le(last, drawn))
        place, step = flat.where(passed, further, place), step // 2
    return place, state


def _repeat(state: Value, pending: Value, attempt, parameters: tuple[Value, ...]) -> tuple[Value, Value]:
    """The next state, and for each pending element what `attempt` first accepts.

    `attempt(state, *parameters)` draws once for every element: the next state, values, and which to accept.
    """

    def unfinished(state, pending, result, *parameters):
        return flat.reduce(pending, "or")

    def again(state, pending, result, *parameters):
        state, drawn, accepted = attempt(state, *parameters)
        result = flat.where(flat.logical_and(pending, accepted), drawn, result)
        return state, flat.logical_and(pending, flat.invert(accepted)), result, *parameters

    if not pending.numel:
        return state, flat.full(pending.shape, 0.0, F64)
    start = flat.full(pending.shape, 0.0, F64)
    state, _, result, *_ = flat.while_loop(unfinished, again, (state, pending, start, *parameters))
    return state, result


def _two(state, shape):
    """Two uniform draws: one around 0, one in (0, 1]."""
    state, first = bits(state, shape)
    state, second = bits(state, shape)
    return state, unit(first, F64) - 0.5, above_zero(second)


def _counts(cotangents, results, *arguments):
    """Counts do not move with their parameters."""
    return [None for _ in arguments]


@op(
    "poisson(Tensor self, Generator? generator=None) -> Tensor",
    random=True,
    method=False,
    samples=lambda: [S(T(3, 4, low=0, high=30))],
)
@flat.differentiated(_counts)
def poisson(state, rate):
    """Counts of events that come at the rate in the element."""
    dtype = floating("poisson", rate.dtype)
    wide = flat.convert(rate, F64)
    valid = flat.logical_and(flat.ge(wide, 0.0), flat.is_finite(wide))
    wide = flat.where(valid, wide, 0.0)
    few = flat.lt(wide, 10.0)
    state, small = _events(state, flat.where(few, wide, 0.0))
    state, large = _repeat(state, flat.invert(few), _poisson_attempt, (flat.maximum(wide, 10.0),))
    drawn = flat.convert(flat.where(few, small, large), dtype)
    return flat.check(drawn, valid, ArgumentError, "poisson: a rate is negative, infinite or NaN"), state


def _events(state, rate):
    """How many uniform draws multiply to more than exp(-rate)."""

    def unfinished(state, product, events, limit):
        return flat.reduce(flat.gt(product, limit), "or")

    def again(state, product, events, limit):
        state, random = bits(state, product.shape)
        product = product * above_zero(random)
        return state, product, events + flat.convert(flat.gt(product, limit), F64), limit

    if not rate.numel:
        return state, rate
    one, none = flat.full_like(rate, 1.0), flat.full_like(rate, 0.0)
    state, _, events, _ = flat.while_loop(unfinished, again, (state, one, none, flat.exp(-rate)))
    return state, events


def _poisson_attempt(state, rate):
    """Hörmann's transformed rejection, PTRS."""
    b = flat.sqrt(rate) * 2.53 + 0.931
    a = b * 0.02483 - 0.059
    state, u, v = _two(state, rate.shape)
    us = 0.5 - flat.abs(u)
    k = flat.floor((a * 2.0 / us + b) * u + rate + 0.43)
    quick = flat.logical_and(flat.ge(us, 0.07), flat.le(v, 0.9277 - 3.6224 / (b - 2.0)))
    steep = flat.logical_and(flat.lt(us, 0.013), flat.gt(v, us))
    inside = flat.logical_and(flat.ge(k, 0.0), flat.invert(steep))
    left = flat.log(v * (1.1239 + 1.1328 / (b - 3.4)) / (a / (us * us) + b))
    right = k * flat.log(rate) - rate - flat.lgamma(flat.maximum(k, 0.0) + 1.0)
    return state, k, flat.logical_or(quick, flat.logical_and(inside, flat.le(left, right)))


@op(
    "binomial(Tensor count, Tensor prob, Generator? generator=None) -> Tensor",
    random=True,
    method=False,
    samples=lambda: [S(T(3, 4, low=0, high=90), T(3, 4, low=0, high=1))],
)
@flat.differentiated(_counts)
def binomial(state, count, prob):
    """How many of `count` trials succeed, each with probability `prob`."""
    dtype = floating("binomial", count.dtype)
    if prob.dtype is not dtype:
        raise DTypeError(f"count and prob differ in dtype: {count.type} and {prob.type}")
    n, p = flat.broadcast(flat.convert(count, F64), flat.convert(prob, F64))
    countable = flat.logical_and(flat.ge(n, 0.0), flat.is_finite(n))
    possible = flat.logical_and(flat.ge(p, 0.0), flat.le(p, 1.0))
    n, p = flat.where(countable, n, 0.0), flat.where(possible, p, 0.0)
    rare = flat.minimum(p, 1.0 - p)
    many = flat.ge(n * rare, 10.0)
    state, small = _successes(state, flat.where(many, 0.0, n), rare)
    safe = (flat.where(many, n, 40.0), flat.where(many, rare, 0.5))
    state, large = _repeat(state, many, _binomial_attempt, safe)
    drawn = flat.where(many, large, small)
    drawn = flat.convert(flat.where(flat.gt(p, 0.5), n - drawn, drawn), dtype)
    drawn = flat.check(drawn, countable, ArgumentError, "binomial: a count is negative, infinite or NaN")
    return flat.check(drawn, possible, ArgumentError, "binomial: a probability is not between 0 and 1"), state


def _successes(state, n, p):
    """Counts by the waiting times between successes."""

    def unfinished(state, n, scale, waited, found):
        return flat.reduce(flat.le(waited, n), "or")

    def again(state, n, scale, waited, found):
        state, random = bits(state, n.shape)
        waited = waited + flat.maximum(flat.ceil(flat.log(above_zero(random)) * scale), 1.0)
        return state, n, scale, waited, found + flat.convert(flat.le(waited, n), F64)

    if not n.numel:
        return state, n
    none = flat.full_like(n, 0.0)
    # For p = 0 the first wait outlasts any n.
    scale = 1.0 / flat.log1p(-flat.maximum(p, 1e-300))
    state, _, _, _, found = flat.while_loop(unfinished, again, (state, n, scale, none, none))
    return state, found


def _binomial_attempt(state, n, p):
    """Hörmann's transformed rejection, BTRS."""
    deviation = flat.sqrt(n * p * (1.0 - p))
    b = deviation * 2.53 + 1.15
    a = b * 0.0248 + p * 0.01 - 0.0873
    state, u, v = _two(state, n.shape)
    us = 0.5 - flat.abs(u)
    k = flat.floor((a * 2.0 / us + b) * u + n * p + 0.5)
    inside = flat.logical_and(flat.ge(k, 0.0), flat.le(k, n))
    quick = flat.logical_and(flat.ge(us, 0.07), flat.le(v, 0.92 - 4.2 / b))
    mode = flat.floor((n + 1.0) * p)
    left = flat.log(v * (2.83 + 5.1 / b) * deviation / (a / (us * us) + b))
    right = (
        _log_ways(n, mode) * -1.0 + _log_ways(n, flat.clamp(k, 0.0, n)) + (k - mode) * flat.log(p / (1.0 - p))
    )
    return state, k, flat.logical_and(inside, flat.logical_or(quick, flat.le(left, right)))


def _log_ways(n, k):
    """The logarithm of n! / (k! (n - k)!), less that of n!."""
    return -(flat.lgamma(k + 1.0) + flat.lgamma(n - k + 1.0))


@op(
    "_standard_gamma(Tensor self, Generator? generator=None) -> Tensor",
    random=True,
    method=False,
    samples=lambda: [S(T(3, 4, low=0.1, high=5))],
)
def _standard_gamma(state, shape):
    """Draws from the gamma distribution of rate 1, each of its own shape parameter."""
    return _gamma_draws(state, shape)


@op(
    "_standard_gamma_grad(Tensor self, Tensor output) -> Tensor",
    method=False,
    differentiable=False,
    samples=lambda: [S(T(3, 4, low=0.5, high=9, dtype="float64"), T(3, 4, low=0.5, high=9, dtype="float64"))],
    differs="PyTorch approximates it to three digits",
)
def _standard_gamma_grad(shape, drawn):
    """How a gamma draw moves with its shape, at the same place of the distribution: -∂P/∂shape / density."""
    a, x = flat.convert(shape, F64), flat.convert(drawn, F64)
    step = flat.minimum(a, flat.sqrt(a)) * 1e-3
    lower, upper = zip(*[incomplete_gamma(a + step * k, x) for k in (2.0, 1.0, -1.0, -2.0)], strict=True)
    # The smaller of P and Q = 1 - P has the more digits; the slope by differences of the fourth order.
    slopes = [(8.0 * (p1 - m1) - (p2 - m2)) / (step * 12.0) for p2, p1, m1, m2 in (lower, upper)]
    slope = flat.where(x < a, -slopes[0], slopes[1])
    return flat.convert(slope / density(a, x), drawn.dtype)


def _of_gamma_draws(cotangents, results, state, shape):
    drawn = results[0]
    return None, None if cotangents[0] is None else cotangents[0] * _standard_gamma_grad(shape, drawn)


@flat.differentiated(_of_gamma_draws)
def _gamma_draws(state, shape):
    dtype = floating("_standard_gamma", shape.dtype)
    wide = flat.convert(shape, F64)
    # Shapes below 1 are drawn at 1 more, and brought down by a power of a uniform draw.
    low = flat.lt(wide, 1.0)
    state, random = bits(state, wide.shape)
    boost = flat.where(low, flat.power(above_zero(random), 1.0 / flat.where(low, wide, 1.0)), 1.0)
    shifted = flat.where(low, wide + 1.0, wide)
    proper = flat.logical_and(flat.gt(wide, 0.0), flat.is_finite(wide))
    state, drawn = _repeat(state, proper, _gamma_attempt, (flat.where(proper, shifted, 1.0),))
    drawn = flat.where(proper, drawn * boost, wide)
    return flat.convert(flat.maximum(drawn, dtypes.finfo(dtype).tiny), dtype), state


def _gamma_attempt(state, shape):
    """Marsaglia and Tsang's method."""
    d = shape - 1.0 / 3.0
    state, x = standard_normal(state, shape.shape, F64)
    state, random = bits(state, shape.shape)
    y = x / flat.sqrt(d * 9.0) + 1.0
    v = y * y * y
    bound = x * x * 0.5 + d * (1.0 - v + flat.log(flat.maximum(v, 1e-300)))
    accepted = flat.logical_and(flat.gt(y, 0.0), flat.lt(flat.log(above_zero(random)), bound))
    return state, d * v, accepted
