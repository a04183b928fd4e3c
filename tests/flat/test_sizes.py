"""How numbers follow from sizes: the formulas that are found, the simplest first, and what is not guessed."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from tenfold.flat.sizes import Formula, Formulas, Open, OpenType, other_at

N = Open([14, 11, 12, 13, 16, 31, 50, 57, 141, 274])
M = Open([27, 66, 73, 29, 32, 47, 28, 30, 290, 157])
NAMES = {N: "n", M: "m"}


def found(function) -> str | None:
    values = [function(n, m) for n, m in zip(N.values, M.values)]
    formula = Formulas([N, M]).find(Open(values))
    return None if formula is None else formula.text(NAMES)


@pytest.mark.parametrize(
    ("function", "text"),
    [
        (lambda n, m: n, "n"),
        (lambda n, m: n - 1, "n-1"),
        (lambda n, m: 3 * m + 2, "m*3+2"),
        (lambda n, m: n * m, "n*m"),
        (lambda n, m: n * n * 2, "n*n*2"),
        (lambda n, m: n + m, "n+m"),
        (lambda n, m: 2 * n - m + 1, "n*2+m*-1+1"),
        (lambda n, m: n // 2, "n//2"),
        (lambda n, m: (n - 1) // 2 + 1, "(n+1)//2"),
        (lambda n, m: (3 * n + 1) // 4, "(n*3+1)//4"),
        (lambda n, m: n // 4 * 4, "(n//4)*4"),
        (lambda n, m: n % 5, None),
        (lambda n, m: n**4 - m, None),
        (lambda n, m: max(n, 40), None),
    ],
)
def test_the_simplest_formula_is_found(function, text):
    assert found(function) == text


@given(st.integers(1, 9), st.integers(-9, 9), st.integers(1, 7))
def test_a_formula_that_is_found_holds_for_sizes_that_were_not_recorded(a, b, c):
    rule = lambda n: (a * n + b) // c
    values = Open([rule(n) for n in N.values])
    if len(set(values.values)) == 1:
        return
    formula = Formulas([N]).find(values)
    assert formula is not None
    apply = lambda op, x, y: {"+": x + y, "*": x * y, "//": x // y if y else 0}[op]
    for n in range(10, 2000):
        assert formula.follow(lambda size, n=n: n, apply) == rule(n)


def test_sizes_that_come_up_later_are_known_from_then_on():
    formulas, later = Formulas([N]), Open([n % 7 for n in N.values])
    assert formulas.find(later) is None
    assert formulas.learn(later) and not formulas.learn(later)
    assert formulas.find(later).op == "size"


@pytest.mark.parametrize(
    ("function", "form"),
    [(float, ""), (lambda n: 1 / n, "1/"), (lambda n: n**0.5, "sqrt"), (lambda n: n**-0.5, "1/sqrt")],
)
def test_floats_are_sizes_reciprocals_and_roots(function, form):
    found = Formulas([N]).find_float(Open([function(n) for n in N.values]))
    assert found is not None and (found[0], found[1].text(NAMES)) == (form, "n")


def test_floats_that_follow_in_another_way_are_not_guessed():
    assert Formulas([N]).find_float(Open([1.5 * n**1.1 for n in N.values])) is None


def test_a_float_that_is_almost_a_size_is_none():
    assert Formulas([N]).find_float(Open([n + 4e-7 for n in N.values])) is None
    assert Formulas([N]).find_float(Open([1 / (n + 4e-7) for n in N.values])) is None


def test_the_quotient_of_a_multiple_is_uncertain():
    for quotient, uncertain in (("(n-1)//2+1", False), ("2*((n+1)//3)", False), ("(20-n)//8", True)):
        formula = Formulas([N]).find(Open([eval(quotient, {"n": n}) for n in N.values]))
        assert formula is not None and formula.uncertain is uncertain


def test_a_negative_number_is_no_root():
    assert Formulas([N]).find_float(Open([-(n**0.5) for n in N.values])) is None
    assert Formulas([N]).find_float(Open([-(n**-0.5) for n in N.values])) is None
    assert Formulas([N]).find_float(Open([float(n if n % 2 else -n) for n in N.values])) is None


def test_a_number_is_found_that_follows_in_another_way_at_the_edges():
    sizes = Open([*N.values, 1, 2000])
    other = lambda rule: other_at(Open([rule(n) for n in sizes.values]), [sizes], len(N.values))
    assert [other(rule) for rule in (lambda n: n // 2, float, lambda n: n**-0.5)] == [None, None, None]
    assert other(lambda n: max(n, 5)) == 10 and other(lambda n: max(n, 5) ** 0.5) == 10
    assert other(lambda n: min(n, 400)) == 11 and other(lambda n: min(n, 5)) == 10


def test_open_numbers_print_as_mlir_writes_them():
    from tenfold.base.dtypes import float32

    assert str(OpenType(float32, [N, 3])) == "f32[?,3]"
    assert OpenType(float32, [N, 3]) == OpenType(float32, [M, 3])
    assert Formula("number", 3).text({}) == "3"
