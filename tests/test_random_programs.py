"""Random programs agree with PyTorch on every engine and tier. More: `python -m tests.random_programs`."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from tests.random_programs import alias, general
from tests.random_programs.__main__ import WAYS, compare
from tests.random_programs.programs import Program, Step, Use, differences, run

# `make test` has minutes for all of the project: it runs as many as take each engine about five seconds.
# `make test-all` runs ten thousand of each.
IN_SECONDS = {"xla": 12, "compile": 12, "numpy": 60, "policy": 30, "libtorch": 60}


@pytest.mark.parametrize("kind", ["general", "alias"])
@pytest.mark.parametrize("engine", IN_SECONDS)
def test_random_programs_agree_with_pytorch(engine, kind):
    assert list(compare(WAYS[engine], kind, range(IN_SECONDS[engine]))) == []


@pytest.mark.slow
@pytest.mark.parametrize("first", range(10_000, 20_000, 1000))
@pytest.mark.parametrize("kind", ["general", "alias"])
@pytest.mark.parametrize("engine", IN_SECONDS)
def test_ten_thousand_random_programs_agree_with_pytorch(engine, kind, first):
    assert list(compare(WAYS[engine], kind, range(first, first + 1000))) == []


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, 10_000, 1000))
def test_ten_thousand_long_programs_on_tier_0_agree_with_pytorch(first):
    assert list(compare(WAYS["numpy"], "long", range(first, first + 1000))) == []


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, 10_000, 1000))
@pytest.mark.parametrize("engine", ["numpy", "xla", "open"])
def test_ten_thousand_programs_of_open_sizes_agree_with_pytorch(engine, first):
    assert list(compare(WAYS[engine], "open", range(first, first + 1000))) == []


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, 300, 20))
def test_long_programs_agree_with_pytorch(first):
    assert list(compare(WAYS["xla"], "long", range(first, first + 20))) == []


def test_a_seed_makes_the_same_program_again():
    for grow in (general.grow, alias.grow):
        assert repr(grow(7)) == repr(grow(7)) != repr(grow(8)).replace("program 8", "program 7")


def program(call, expected) -> Program:
    use = Use(Step("op", 1, "f", call), (0,))
    one = np.ones(2, np.float32)
    return Program("a program", [one], [use], frozenset(), [torch.ones(2), torch.tensor(expected)])


def test_a_program_that_differs_is_told_apart_from_those_that_agree(on_xla):
    right = program(lambda lib, n, x: x + 1, [2.0, 2.0])
    wrong = program(lambda lib, n, x: x + 1, [2.0, 3.0])
    raises = program(lambda lib, n, x: x.reshape(3), [2.0, 2.0])
    of_another_dtype = program(lambda lib, n, x: x + 1, [2, 2])
    told = differences([right, wrong, right, raises, of_another_dtype], run)
    assert len(told) == 3
    assert "x1 is [2. 2.], on PyTorch [2. 3.]" in told[0]
    assert "raises" in told[1] and "reshape" in told[1]
    assert "x1 is float32[2], on PyTorch int64[2]" in told[2]
