"""Sizes that are open until a program runs. A program is recorded at several sizes; a number in it that
differs between the recordings is `Open`, and `Formulas` finds how it follows from sizes that are known."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import combinations, combinations_with_replacement
from typing import Any

from tenfold.base.dtypes import DType
from tenfold.base.late import on_first_use

with on_first_use(__name__):
    from fractions import Fraction


# By what a size may be divided in a formula: strides and factors of scaling.
DIVISORS = (1, 2, 3, 4, 5, 6, 7, 8)
# A few roundings of a float64, which Python's numbers are, and of a float32.
DOUBLE, SINGLE = 2e-15, 5e-7
Numbers = tuple[int, ...]
# Which operation goes first.
STRENGTH = {"+": 0, "//": 1, "*": 2, "size": 3, "number": 3}


class Open:
    """A number by what it was in each recording. It prints as MLIR writes a size that is not known."""

    __slots__ = ("values",)

    def __init__(self, values: Iterable[Any]):
        self.values = tuple(values)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Open) and self.values == other.values

    def __hash__(self) -> int:
        return hash(self.values)

    def __str__(self) -> str:
        return "?"

    def __repr__(self) -> str:
        return f"Open{self.values}"


class OpenType:
    """A tensor's type, some of whose extents are open."""

    __slots__ = ("dtype", "rank", "shape")

    def __init__(self, dtype: DType, shape: Sequence[int | Open]):
        self.dtype = dtype
        self.shape = tuple(shape)
        self.rank = len(self.shape)

    @property
    def numel(self) -> float:
        """How many elements it has: as many as you like."""
        return math.inf

    def __eq__(self, other: object) -> bool:
        return isinstance(other, OpenType) and str(self) == str(other)

    def __hash__(self) -> int:
        return hash(str(self))

    def __repr__(self) -> str:
        return f"{self.dtype.short}[{','.join(map(str, self.shape))}]"


class OpenLiteral:
    """A small literal with open numbers, in the order of memory."""

    __slots__ = ("ndim", "numbers", "shape")

    def __init__(self, shape: tuple[int, ...], numbers: tuple[Any, ...]):
        self.shape, self.numbers, self.ndim = shape, numbers, len(shape)


class OpenText(str):
    """A message with open numbers, by its `parts`: texts and numbers. Where they are not known it has "?"."""

    parts: tuple[str | Open, ...]

    @staticmethod
    def of(parts: Sequence[str | Open]) -> OpenText:
        text = OpenText("".join(map(str, parts)))
        text.parts = tuple(parts)
        return text


class Formula:
    """How a number follows from others: `op` is "size" (whose open number is its part), "number", or one of
    + * // on two formulas."""

    __slots__ = ("op", "parts")

    def __init__(self, op: str, *parts: Any):
        self.op = op
        self.parts = parts

    def text(self, names: Mapping[Open, str]) -> str:
        """As Python writes it, with the names of the sizes."""
        if self.op in ("size", "number"):
            return names.get(self.parts[0], "?") if self.op == "size" else str(self.parts[0])
        left, right = (
            f"({part.text(names)})" if STRENGTH[part.op] < STRENGTH[self.op] else part.text(names)
            for part in self.parts
        )
        if self.op == "+" and right.startswith("-"):
            return f"{left}{right}"
        return f"{left}{self.op}{right}"

    def follow(self, leaf: Callable[[Open], Any], apply: Callable[[str, Any, Any], Any]) -> Any:
        """Build it: `leaf` makes a size, `apply` an operation; a plain number stays one."""
        if self.op == "size":
            return leaf(self.parts[0])
        if self.op == "number":
            return self.parts[0]
        return apply(self.op, self.parts[0].follow(leaf, apply), self.parts[1].follow(leaf, apply))

    def at(self, sizes: Mapping[Open, int]) -> int:
        """What it is at these sizes."""
        return self.follow(sizes.__getitem__, _computed)

    @property
    def uncertain(self) -> bool:
        """Whether it divides a multiple of a size. Steps and windows divide a size itself; at a few sizes,
        such a quotient also fits what follows in another way, as 20 // n does."""
        parts = [part for part in self.parts if isinstance(part, Formula)]
        return (self.op == "//" and parts[0].multiplies) or any(part.uncertain for part in parts)

    @property
    def multiplies(self) -> bool:
        return self.op == "*" or any(isinstance(part, Formula) and part.multiplies for part in self.parts)


def number(value: int) -> Formula:
    return Formula("number", value)


class Formulas:
    """Finds formulas over `symbols`, the sizes of inputs, and over sizes that come up later."""

    def __init__(self, symbols: Iterable[Open]):
        self.symbols = list(dict.fromkeys(symbols))
        self.known = dict.fromkeys(self.symbols)
        self._found: dict[Open, Formula] = {}

    @property
    def uncertain(self) -> bool:
        """Whether one of the formulas that were found is."""
        return any(formula.uncertain for formula in self._found.values())

    def learn(self, size: Open) -> bool:
        """Note that a tensor has this size; whether that is news."""
        if size in self.known:
            return False
        self.known[size] = None
        return True

    def find(self, wanted: Open) -> Formula | None:
        """The simplest formula that is right in every recording, or None."""
        if wanted in self.known:
            return Formula("size", wanted)
        formula = self._found.get(wanted)
        if formula is None:
            formula = next(self._candidates(wanted), None)
            if formula is not None:
                self._found[wanted] = formula
        return formula

    def _candidates(self, wanted: Open) -> Iterator[Formula]:
        singles = [(Formula("size", size), size) for size in self.known]
        products = [
            (
                _product([Formula("size", each) for each in chosen]),
                Open(map(math.prod, zip(*[each.values for each in chosen]))),
            )
            for chosen in self._factors()
        ]
        for formula, values in (*singles, *products):
            fitted = _straight(wanted.values, formula, values.values)
            if fitted is not None:
                yield fitted
        # Steps of one size, as of what strides reach: g·q + r, where q is a quotient.
        step = math.gcd(*[value - wanted.values[0] for value in wanted.values])
        for g in {1, step}:
            r = wanted.values[0] % g
            quotients = tuple([(value - r) // g for value in wanted.values])
            for formula, values in singles:
                fitted = _divided(quotients, formula, values.values)
                if fitted is not None:
                    yield _plus(_scaled(g, fitted), r)
        for first, second in combinations((*singles[: len(self.symbols)], *products), 2):
            fitted = _plane(wanted.values, first, second)
            if fitted is not None:
                yield fitted

    def _factors(self) -> Iterator[tuple[Open, ...]]:
        """Sizes whose product a number may be: powers, and how many elements a tensor has."""
        for degree in (2, 3):
            yield from combinations_with_replacement(self.symbols, degree)
        for degree in range(4, len(self.symbols) + 1):
            yield from combinations(self.symbols, degree)

    def find_float(self, wanted: Open, rounding: float = DOUBLE) -> tuple[str, Formula] | None:
        """A float that is a whole number by a formula, its reciprocal, its root, one over that, or a part of
        it: which of these ("", "1/", "sqrt", "1/sqrt", "/2" and so on), and the formula. `rounding` is how
        far it may be off, relatively, by division or a root."""
        for form, inverse in _FORMS.items():
            try:
                exact = [inverse(float(value)) for value in wanted.values]
                whole = Open(map(round, exact))
            except (ZeroDivisionError, ValueError, OverflowError):
                continue
            near = all(_is_near(form, x, n, rounding) for x, n in zip(exact, whole.values))
            formula = self.find(whole) if near and len(set(whole.values)) > 1 else None
            if formula is not None:
                return form, formula
        return None


def other_at(wanted: Open, symbols: Sequence[Open], common: int) -> int | None:
    """The first recording after the `common` ones in which a number follows from the symbols in another way
    than in those. None if there is none, or it is not known how it follows at all."""
    usual = Formulas(Open(symbol.values[:common]) for symbol in symbols)
    values, form = wanted.values, ""
    if len(set(values[:common])) == 1:
        return next((k for k in range(common, len(values)) if values[k] != values[0]), None)
    if all(float(value).is_integer() for value in values[:common]):
        found = usual.find(Open(map(int, values[:common])))
    else:
        form, found = usual.find_float(Open(values[:common])) or ("", None)
    if found is None:
        return None
    for k in range(common, len(values)):
        at = {Open(symbol.values[:common]): symbol.values[k] for symbol in symbols}
        if not _is_near(form, _FORMS[form](values[k]), found.follow(at.__getitem__, _computed)):
            return k
    return None


def _computed(op: str, left: int, right: int) -> int:
    return left + right if op == "+" else left * right if op == "*" else left // right


def _is_near(form: str, number: float, whole: int, rounding: float = DOUBLE) -> bool:
    """Whether a number is this one, or of a root or reciprocal is it but for rounding."""
    return number == whole if form == "" else abs(number - whole) <= rounding * abs(whole)


_FORMS: dict[str, Callable[[float], float]] = {
    "": lambda x: x,
    "1/": lambda x: 1 / x,
    "sqrt": lambda x: x * x if x >= 0 else math.nan,  # no root is negative
    "1/sqrt": lambda x: 1 / (x * x) if x >= 0 else math.nan,
    **{f"/{c}": lambda x, c=c: x * c for c in DIVISORS[1:]},  # type: ignore[misc]
}


def _product(factors: Sequence[Formula]) -> Formula:
    product = factors[0]
    for factor in factors[1:]:
        product = Formula("*", product, factor)
    return product


def _scaled(factor: int, formula: Formula) -> Formula:
    return formula if factor == 1 else Formula("*", formula, number(factor))


def _plus(formula: Formula, constant: int) -> Formula:
    return Formula("+", formula, number(constant)) if constant else formula


def _straight(wanted: Numbers, formula: Formula, values: Numbers) -> Formula | None:
    """wanted = a·values + b, with whole numbers."""
    i = next((i for i in range(1, len(values)) if values[i] != values[0]), None)
    if i is None or (wanted[i] - wanted[0]) % (values[i] - values[0]):
        return None
    a = (wanted[i] - wanted[0]) // (values[i] - values[0])
    b = wanted[0] - a * values[0]
    if not a or any(a * x + b != y for x, y in zip(values, wanted)):
        return None
    return _plus(_scaled(a, formula), b)


def _divided(wanted: Numbers, formula: Formula, values: Numbers) -> Formula | None:
    """wanted = (a·values + b) // c, if all that fit the recordings agree in between: one of several that do
    not would be a guess."""
    low, high = min(values), max(values)
    if low == high:
        return None
    slope = (wanted[values.index(high)] - wanted[values.index(low)]) / (high - low)
    fitting = []
    for c in DIVISORS[1:]:
        # By its ends a quotient's slope is known to within one step in so many.
        least_a, most_a = (math.floor((slope + side / (high - low)) * c) for side in (-1, 1))
        for a in range(least_a, most_a + 2):
            if not a or math.gcd(a, c) > 1:
                continue
            least = max(c * y - a * x for x, y in zip(values, wanted))
            most = min(c * y + c - 1 - a * x for x, y in zip(values, wanted))
            fitting += [(a, b, c) for b in range(least, most + 1)]
    if not fitting:
        return None
    # Values that leave one remainder do so by demand, as multiples of something: only such can occur.
    step = math.gcd(*[value - low for value in values])
    for x in range(low, high + 1, step) if len(fitting) > 1 else ():
        if len({(a * x + b) // c for a, b, c in fitting}) > 1:
            return None
    a, b, c = fitting[0]
    return Formula("//", _plus(_scaled(a, formula), b), number(c))


def _plane(wanted: Numbers, first: tuple[Formula, Open], second: tuple[Formula, Open]) -> Formula | None:
    """wanted = a·first + b·second + c, with whole numbers."""
    (one, xs), (two, ys) = (first[0], first[1].values), (second[0], second[1].values)
    rows = [(x - xs[0], y - ys[0], z - wanted[0]) for x, y, z in zip(xs[1:], ys[1:], wanted[1:])]
    for (x1, y1, z1), (x2, y2, z2) in combinations(rows, 2):
        determinant = x1 * y2 - x2 * y1
        if determinant:
            a, b = Fraction(z1 * y2 - z2 * y1, determinant), Fraction(x1 * z2 - x2 * z1, determinant)
            break
    else:
        return None
    if a.denominator > 1 or b.denominator > 1 or not a or not b:
        return None
    c = wanted[0] - int(a) * xs[0] - int(b) * ys[0]
    if any(a * x + b * y + c != z for x, y, z in zip(xs, ys, wanted)):
        return None
    return _plus(Formula("+", _scaled(int(a), one), _scaled(int(b), two)), c)
