"""Rows for families of orthogonal polynomials, each by its three-term recurrence up to the largest degree."""

from tenfold import flat
from tenfold.base import dtypes
from tenfold.base.errors import DTypeError
from tenfold.ops.precision import doubled
from tenfold.ops.promote import floating, promotion
from tenfold.ops.samples import S, T
from tenfold.ops.table import op


def _both_floats(names, arguments):
    promoted = promotion(floating, "x", "n")(names, arguments)
    if next(each for each in promoted if isinstance(each, flat.Value)).dtype.is_complex:
        raise DTypeError("orthogonal polynomials are not defined here for complex numbers")
    return promoted


def _tensors():
    shapes = [((3, 4), (3, 4)), ((3, 4), (4,)), ((), (2, 3)), ((0, 3), (3,))]
    return [S(T(*x, low=-1.5, high=1.5), T(*n, low=0, high=6)) for x, n in shapes]


def _numbers():
    return [S(T(3, 4, low=-1.5, high=1.5), n) for n in (-1, 0, 1, 2, 3, 5)]


def _polynomials(name, first, advance):
    """Rows for one family: p0 = 1, p1 = first(x), p(k + 1) = advance(k, x, p(k), p(k - 1))."""

    def evaluate(x, n):
        x, n = flat.broadcast(x, n)
        degree = flat.convert(n, dtypes.int64)
        one = flat.full_like(x, 1)

        def unfinished(k, last, degree, x, before, now, result):
            return k < last

        def step(k, last, degree, x, before, now, result):
            following = advance(flat.convert(k, x.dtype), x, now, before)
            result = flat.where(flat.eq(degree, k + 1), following, result)
            return k + 1, last, degree, x, now, following, result

        start = flat.where(degree < 0, 0, flat.where(flat.eq(degree, 0), one, first(x)))
        if 0 in x.shape:
            return start
        k, last = flat.constant(1, dtypes.int64), flat.reduce(degree, "max")
        return flat.while_loop(unfinished, step, (k, last, degree, x, one, first(x), start))[-1]

    lowering = doubled(evaluate)
    # As in PyTorch, they have no gradients: there is none by the degree.
    *words, letter = name.split("_")
    kind = " ".join([word if word in ("shifted", "polynomial") else word.capitalize() for word in words])
    meaning = f"The {kind} {letter.capitalize()} of degree n at x"
    facts = {"promote": _both_floats, "method": False, "differentiable": False, "meaning": meaning}
    op(f"special_{name}(Tensor x, Tensor n) -> Tensor", samples=_tensors, **facts)(lowering)
    op(
        f"special_{name}.x_scalar(Scalar x, Tensor n) -> Tensor",
        samples=lambda: [S(each, T(3, 4, low=0, high=6)) for each in (0.25, -1.5, 1)],
        **facts,
    )(lowering)
    op(f"special_{name}.n_scalar(Tensor x, Scalar n) -> Tensor", samples=_numbers, **facts)(lowering)


def _chebyshev(k, x, now, before):
    return 2 * x * now - before


def _on_unit_interval(advance):
    """A family shifted from -1..1 to 0..1."""
    return lambda k, x, now, before: advance(k, 2 * x - 1, now, before)


CHEBYSHEV = {
    "t": lambda x: x,
    "u": lambda x: 2 * x,
    "v": lambda x: 2 * x - 1,
    "w": lambda x: 2 * x + 1,
}
for _kind, _first in CHEBYSHEV.items():
    _polynomials(f"chebyshev_polynomial_{_kind}", _first, _chebyshev)
    _polynomials(
        f"shifted_chebyshev_polynomial_{_kind}",
        lambda x, first=_first: first(2 * x - 1),
        _on_unit_interval(_chebyshev),
    )
_polynomials("hermite_polynomial_h", lambda x: 2 * x, lambda k, x, now, before: 2 * (x * now - k * before))
_polynomials("hermite_polynomial_he", lambda x: x, lambda k, x, now, before: x * now - k * before)
_polynomials(
    "laguerre_polynomial_l",
    lambda x: 1 - x,
    lambda k, x, now, before: ((2 * k + 1 - x) * now - k * before) / (k + 1),
)
_polynomials(
    "legendre_polynomial_p",
    lambda x: x,
    lambda k, x, now, before: ((2 * k + 1) * x * now - k * before) / (k + 1),
)
