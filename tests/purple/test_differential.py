"""Random programs give the same output interpreted and compiled, and leak nothing wherever they fail."""

import re
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.purple.compiled import CHECKED, build, compiled, interpreted, run
from tests.purple.generate_programs import batch


def assert_same(seed: int, count: int, folder, tensors: float) -> None:
    text = batch(seed, count, tensors)
    expected, printed = interpreted(text).splitlines(), compiled(text, folder).splitlines()
    different = [pair for pair in zip(expected, printed) if pair[0] != pair[1]]
    assert not different and len(expected) == len(printed), f"seed {seed}: {different[:3]}"


@pytest.mark.parametrize("seed", [1, 2])
def test_random_programs_print_the_same_both_ways(seed, tmp_path):
    assert_same(seed, 60, tmp_path, tensors=0)


def test_random_programs_with_tensors_print_the_same_both_ways(tmp_path):
    assert_same(3, 20, tmp_path, tensors=1)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 180))
def test_ten_thousand_random_programs_print_the_same_both_ways(seed, tmp_path):
    assert_same(seed, 125, tmp_path, tensors=0.1)


def assert_clean_wherever_it_fails(text: str, folder, most: int) -> None:
    """Run a program with an error injected at each call that can fail, in turn (or at `most` of them,
    evenly)."""
    program = build(text, folder, *CHECKED)
    total = int(re.search(r"(\d+) calls may fail", run(program, fail_at="count").stderr)[1])

    def problem(at: int) -> str:
        done = run(program, fail_at=str(at))
        clean = done.returncode in (0, 1) and not re.search(
            "Sanitizer|not released|proved unique", done.stderr
        )
        return "" if clean else f"at {at}: {done.returncode} {done.stderr[-2000:]}"

    with ThreadPoolExecutor(2) as pool:
        assert not [found for found in pool.map(problem, range(1, total + 1, max(1, total // most))) if found]


def test_an_error_at_any_call_leaks_nothing_and_frees_nothing_twice(tmp_path):
    assert_clean_wherever_it_fails(batch(7, 8, tensors=0), tmp_path, most=100)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20))
def test_an_error_at_every_call_of_many_programs_is_clean(seed, tmp_path):
    assert_clean_wherever_it_fails(batch(1000 + seed, 25, tensors=0.1), tmp_path, most=10_000)


@pytest.mark.slow
def test_an_error_at_any_call_of_a_training_step_leaks_no_tensor(tmp_path):
    text = """
      (define model (sequential (linear 2 4) (tanh) (linear 4 2)))
      (define opt (adam model :lr 0.05))
      (define x (tensor '((0.0 1.0) (1.0 1.0))))
      (let ((loss (cross-entropy (forward model x) (tensor '(0 1)))))
        (backward loss)
        (optimizer-step opt)
        (print (tensor-item loss)))"""
    assert_clean_wherever_it_fails(text, tmp_path, most=10_000)
