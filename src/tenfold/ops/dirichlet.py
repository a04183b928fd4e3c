"""Points of the simplex, and how they move with their concentrations at the same place of the distribution.

The gradient is PyTorch's: expansions near both ends and for large concentrations, a rational correction of an
analytic approximation elsewhere. It is true to some three digits, and the same as PyTorch's to rounding.
"""

from __future__ import annotations

from tenfold import flat
from tenfold.base import dtypes
from tenfold.base.errors import ShapeError
from tenfold.flat import Value
from tenfold.ops.random import floating
from tenfold.ops.samples import S, T
from tenfold.ops.sampling import _standard_gamma
from tenfold.ops.special import digamma
from tenfold.ops.table import op

F64 = dtypes.float64


@op(
    "_sample_dirichlet(Tensor self, Generator? generator=None) -> Tensor",
    random=True,
    method=False,
    samples=lambda: [S(T(3, 4, low=0.5, high=5)), S(T(2, 3, 4, low=0.5, high=2))],
)
def _sample_dirichlet(state, concentration):
    """Points of the simplex: gamma draws, divided by their sum over the last dimension."""
    return _dirichlet_draws(state, concentration)


def _of_dirichlet_draws(cotangents, results, state, concentration):
    cotangent, point = cotangents[0], results[0]
    if cotangent is None:
        return None, None
    dims = (-1,) if point.rank else ()
    total = flat.broadcast_to(flat.sum(concentration, dims, keepdim=True), point.shape)
    slope = _dirichlet_grad(point, concentration, total)
    return None, slope * (cotangent - flat.sum(point * cotangent, dims, keepdim=True))


@flat.differentiated(_of_dirichlet_draws)
def _dirichlet_draws(state, concentration):
    dtype = floating("_sample_dirichlet", concentration.dtype)
    # Small concentrations give draws that are zero in float32, and points at neither end.
    drawn, state = _standard_gamma(state, flat.convert(concentration, F64))
    dims = (-1,) if drawn.rank else ()
    info = dtypes.finfo(dtype)
    point = flat.convert(drawn / flat.sum(drawn, dims, keepdim=True), dtype)
    return flat.minimum(flat.maximum(point, info.tiny), 1 - info.eps / 2), state


def _grad_samples():
    draws = T(4, 5, low=0.01, high=0.99, dtype="float64")
    small, large = [T(4, 5, low=low, high=high, dtype="float64") for low, high in ((0.01, 2), (7, 90))]
    more, most = [T(4, 5, low=low, high=high, dtype="float64") for low, high in ((2.01, 6), (100, 200))]
    return [S(draws, small, more), S(draws, large, most), S(draws, small, most)]


@op(
    "_dirichlet_grad(Tensor x, Tensor alpha, Tensor total) -> Tensor",
    method=False,
    differentiable=False,
    samples=_grad_samples,
)
def _dirichlet_grad(point, concentration, total):
    """How a coordinate of a point moves with its concentration, over 1 - x; `total` is the sum of all
    concentrations."""
    dtype = floating("_dirichlet_grad", point.dtype)
    if not point.shape == concentration.shape == total.shape:
        raise ShapeError(f"the shapes differ: {point.type}, {concentration.type} and {total.type}")
    x, a, total = [flat.convert(each, F64) for each in (point, concentration, total)]
    b = total - a
    off_ends = total * x * (1.0 - x)
    low = (x <= 0.5) & (off_ends < 2.5)
    high = (x >= 0.5) & (off_ends < 0.75)
    slope = flat.where((a > 6.0) & (b > 6.0), _between(x, a, b), _corrected(x, a, total))
    slope = flat.where(high, -_of_other_near_zero(1.0 - x, b, a), slope)
    return flat.convert(flat.where(low, _near_zero(x, a, b), slope), dtype)


def _known(slope: Value) -> Value:
    return flat.where(flat.ne(slope, slope), 0.0, slope)


def _near_zero(x, a, b):
    """The slope in a near x = 0, by a power series"""
    factor = digamma(a) - digamma(a + b) - flat.log(x)
    term = flat.full_like(x, 1.0)
    series = (factor + 1.0 / a) / a
    for i in range(1, 11):
        term = term * (i - b) * x / i
        series = series + term / (a + i) * (factor + 1.0 / (a + i))
    return _known(x * flat.power(1.0 - x, -b) * series)


def _of_other_near_zero(x, a, b):
    """The slope in b near x = 0, by a power series"""
    factor = digamma(a + b) - digamma(b)
    term = product = flat.full_like(x, 1.0)
    derivative = flat.full_like(x, 0.0)
    series = factor / a
    for i in range(1, 9):
        term = term * -x / i
        derivative = derivative * (b - i) + product
        product = product * (b - i)
        series = series + term / (a + i) * (derivative + factor * product)
    return _known(-flat.power(1.0 - x, 1.0 - b) * series)


def _stirling(a):
    return 1.0 + 1.0 / (12.0 * a) + 1.0 / (288.0 * a * a)


def _between(x, a, b):
    """The slope in a where both concentrations are large, by Rice's saddle point expansion"""
    total = a + b
    mean = a / total
    spread = flat.sqrt(a * b / (total + 1.0)) / total
    aside = b * x + a * (x - 1.0)
    first = (2.0 * a * a * (x - 1.0) + a * b * (x - 1.0) - x * b * b) / (
        flat.sqrt(2.0 * a / b) * flat.power(total, 1.5) * aside * aside
    )
    second = 0.5 * flat.log(mean / x)
    third = flat.sqrt(8.0 * a * b / total) / aside
    fourth = flat.power(b * flat.log(b / (total * (1.0 - x))) + a * flat.log(mean / x), -1.5)
    expanded = first + second * (third + flat.where(x < mean, fourth, -fourth))
    stirling = _stirling(a) * _stirling(b) / _stirling(total)
    far = stirling * -x / flat.sqrt(2.0 * a * b / total) * expanded
    return flat.where(flat.abs(x - mean) <= 0.1 * spread, _at_mean(x, a, b), far)


def _at_mean(x, a, b):
    """The same beside x = a / (a + b), where the expansion is singular"""
    total = a + b
    innermost = 8.0 * (1.0 - x) * (135.0 * b - 11.0)
    inner = (453.0 + 1620.0 * b * (1.0 - x) - 455.0 * x) * b + a * innermost
    outer = (43.0 + 20.0 * (16.0 + 27.0 * b) * x) * b * b * b
    outer = outer + a * (3.0 * (59.0 + 180.0 * b - 90.0 * x) * b * b + a * inner)
    polynomial = 47.0 * x * b * b * b * b + a * outer
    above = (1.0 + 12.0 * a) * (1.0 + 12.0 * b) / (total * total)
    below = 12960.0 * a * a * a * b * b * (1.0 + 12.0 * total)
    return above / (1.0 - x) * polynomial / below


# Coefficients of the correction's numerator and denominator: [i][j][k] stands beside u^i a^j b^k.
_ABOVE = (
    (
        (1.003668233, -0.01061107488, -0.0657888334, 0.01201642863),
        (0.6336835991, -0.3557432599, 0.05486251648, -0.001465281033),
        (-0.03276231906, 0.004474107445, 0.002429354597, -0.0001557569013),
    ),
    (
        (0.221950385, -0.3187676331, 0.01799915743, 0.01074823814),
        (-0.2951249643, 0.06219954479, 0.01535556598, 0.001550077057),
        (0.02155310298, 0.004170831599, 0.001292462449, 6.976601077e-05),
    ),
    (
        (-0.05980841433, 0.008441916499, 0.01085618172, 0.002319392565),
        (0.02911413504, 0.01400243777, -0.002721828457, 0.000751041181),
        (0.005900514878, -0.001936558688, -9.495446725e-06, 5.385558597e-05),
    ),
)
_BELOW = (
    (
        (1.0, -0.02924021934, -0.04438342661, 0.007285809825),
        (0.6357567472, -0.3473456711, 0.05454656494, -0.002407477521),
        (-0.03301322327, 0.004845219414, 0.00231480583, -0.0002307248149),
    ),
    (
        (0.5925320577, -0.1757678135, 0.01505928619, 0.000564515273),
        (0.1014815858, -0.06589186703, 0.01272886114, -0.0007316646956),
        (-0.007258481865, 0.001096195486, 0.0003934994223, -4.12701925e-05),
    ),
    (
        (0.06469649321, -0.0236701437, 0.002902096474, -5.896963079e-05),
        (0.001925008108, -0.002869809258, 0.0008000589141, -6.063713228e-05),
        (-0.0003477407336, 6.959756487e-05, 1.097287507e-05, -1.650964693e-06),
    ),
)


def _corrected(x, concentration, total):
    """The slope elsewhere: an approximation by digammas, times a quotient of polynomials in logarithms"""
    u = flat.log(x)
    a = flat.log(concentration) - u
    b = flat.log(total) - a
    above, below = [_polynomial(coefficients, u, a, b) for coefficients in (_ABOVE, _BELOW)]
    approximation = x * (digamma(total) - digamma(concentration)) / (total - concentration)
    return above / below * approximation


def _polynomial(coefficients, u, a, b):
    by_u = flat.full_like(u, 0.0)
    for of_a in reversed(coefficients):
        by_a = flat.full_like(u, 0.0)
        for c0, c1, c2, c3 in reversed(of_a):
            by_a = by_a * a + (c0 + b * (c1 + b * (c2 + b * c3)))
        by_u = by_u * u + by_a
    return by_u
