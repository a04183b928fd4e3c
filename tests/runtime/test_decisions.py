"""Functions that decide by a size in Python, and are open in it: right at every size, however they decide."""

from __future__ import annotations

import math

import numpy as np
import pytest

import tenfold as tn
from tenfold.base.watched_sizes import Asked, Watched, plain
from tenfold.runtime import decisions, recordings

SIZES = (20, 25, 21, 29, 30, 45, 37, 40, 17, 32)
TABLE = [i * i % 7 for i in range(100)]
NAMES = {21: 5.0, 40: 7.0}

DECIDING = {
    "by divisibility": lambda n: 2 if n % 5 == 0 else 3,
    "by equality": lambda n: 2 if n == 37 else 3,
    "by membership": lambda n: 2 if n in (21, 29, 45) else 3,
    "by a list": lambda n: TABLE[n],
    "by a dictionary": lambda n: NAMES.get(n, 1.0),
    "by a text": lambda n: 2 if f"{n}".endswith("1") else 3,
    "by a float": lambda n: 2 if math.sqrt(n).is_integer() else 3,
    "by a half": lambda n: 2 if 0.5 * n == 14.5 else 3,
    "by a range": lambda n: 2 if 29 in range(n, n + 1) else 3,
    "by bits": lambda n: 2 if n & 3 == 1 else 3,
    "by the largest": lambda n: max(n, 31) - n,
    "by a remainder": lambda n: n % 7 // 6 + 1,
    "by a quotient": lambda n: n // 20,
    "by its type": lambda n: 2 if type(n) is int else 3,
    "by counting": lambda n: n.bit_count() if hasattr(n, "bit_count") else 0,
}


@pytest.mark.parametrize("how", DECIDING)
def test_a_function_that_decides_by_a_size_is_right_at_every_size(how: str) -> None:
    decide = DECIDING[how]
    compiled = tn.compile(lambda x: x * decide(x.shape[0]))
    for size in SIZES:
        assert compiled(tn.ones(size, 2))[0, 0].item() == decide(size), f"at {size}"


def test_results_may_come_in_another_order() -> None:
    def swapping(x):
        c = x.sin()
        d = c.cos()
        return (c, d) if x.shape[0] % 5 else (d, c)

    compiled = tn.compile(swapping)
    for size in range(17, 33):
        for found, expected in zip(compiled(tn.ones(size)), swapping(tn.ones(size)), strict=True):
            assert found[0].item() == pytest.approx(expected[0].item(), rel=1e-6), f"at {size}"


def test_the_text_of_a_shape_decides_as_well() -> None:
    compiled = tn.compile(lambda x: x * (2 if f"{x.shape}".endswith("0])") else 3))
    for size in range(17, 33):
        assert compiled(tn.ones(size))[0].item() == (2 if size % 10 == 0 else 3)


def test_what_a_function_leaves_behind_is_a_plain_number() -> None:
    class Last:
        size = 0

    last = Last()

    def remembering(x):
        last.size = x.shape[0]
        return x * 2

    compiled = tn.compile(remembering, dynamic=True)
    for size in (20, 25):
        compiled(tn.ones(size))
        assert type(last.size) is int


def test_lengths_and_counts_are_watched_too() -> None:
    by_length = tn.compile(lambda x: x * (2 if len(x) == 29 else 3))
    by_count = tn.compile(lambda x: x * (2 if x.numel() == 58 else 3))
    for size in SIZES:
        expected = 2 if size == 29 else 3
        assert by_length(tn.ones(size, 2))[0, 0].item() == by_count(tn.ones(size, 2))[0, 0].item() == expected


def test_sizes_of_two_tensors_may_come_to_be_equal() -> None:
    compiled = tn.compile(lambda x, y: x.sum() * (2 if x.shape == y.shape else 3))
    for first, second in ((20, 25), (21, 26), (22, 22), (23, 24), (24, 24)):
        found = compiled(tn.ones(first), tn.ones(second)).item()
        assert found == first * (2 if first == second else 3)


def test_a_decision_that_comes_out_the_same_everywhere_costs_nothing(monkeypatch) -> None:
    @tn.compile
    def attend(x):
        assert x.shape[0] <= 64 and x.size(-1) == 4
        return tn.softmax(x @ x.T / math.sqrt(x.size(-1)), -1) @ x

    for size in (20, 25):
        attend(tn.ones(size, 4))
    assert "any size from 17 to 32" in attend.guards()
    monkeypatch.setattr(recordings, "record_call", None)  # nothing is recorded any more
    for size in range(17, 33):
        assert attend(tn.ones(size, 4)).shape == (size, 4)


def test_watched_numbers_pass_for_plain_ones_and_note_what_is_asked() -> None:
    asked: list[Asked] = []
    size = Watched(6, asked)
    assert isinstance(size, int) and isinstance(size / 4, float)
    assert plain((size * 2 - 1, [1 + size], {"a": slice(size)})) == (11, [7], {"a": slice(6)})
    assert not asked
    assert size % 4 == 2 and size and not size < 3
    assert [each.what for each in asked] == ["mod", "eq", "ne", "lt"]
    assert [0, 1, 2, 3, 4, 5, 6][size] == 6 and {6: "six"}[size] == "six" and f"{size}" == "6"
    assert [each.what for each in asked[4:]][:2] == ["__index__", "__hash__"]
    assert np.log(size).item() == np.log(6)
    before = len(asked)
    assert divmod(size, 4) == (1, 2) and type(plain(divmod(size, 4)[0])) is int
    assert divmod(20, size) == (3, 2)
    assert [each.what for each in asked[before:]].count("divmod") == 3


def test_what_is_returned_holds_plain_numbers() -> None:
    compiled = tn.compile(lambda x: (x.sum(), x.shape[1]))
    for size in (20, 25, 30):
        total, width = compiled(tn.ones(size, 3))
        assert total.item() == 3 * size and type(width) is int and width == 3


def test_verdicts_on_sizes_are_remembered_up_to_a_bound(monkeypatch) -> None:
    monkeypatch.setattr(decisions, "KEPT", 6)
    decide = lambda n: 2 if n in (27,) else 3
    compiled = tn.compile(lambda x: x * decide(x.shape[0]))
    for size in [20, 25, *range(17, 33), *range(17, 33)]:
        assert compiled(tn.ones(size))[0].item() == decide(size), f"at {size}"
    proofs = [program.proof for program in compiled.programs._open.specializations()]
    assert proofs and all(len(proof.known) <= 6 for proof in proofs)
