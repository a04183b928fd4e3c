"""Random programs give the same output interpreted and compiled, and leak nothing wherever they fail."""

import pytest

from tests.purple.differential import Batch, disagreements, faults, faults_of


# `make test` runs 140 programs, since each costs the C compiler 0.1 s. `make test-all` runs 20,000.
@pytest.mark.parametrize("seed", [1, 2])
def test_random_programs_print_the_same_both_ways(seed, tmp_path):
    assert not disagreements(Batch(seed, 60, tensors=0), tmp_path)


def test_random_programs_with_tensors_print_the_same_both_ways(tmp_path):
    assert not disagreements(Batch(3, 20, tensors=1), tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 260))
def test_twenty_thousand_random_programs_print_the_same_both_ways(seed, tmp_path):
    assert not disagreements(Batch(seed, 125, tensors=0.1), tmp_path)


def test_an_error_at_any_call_leaks_nothing_and_frees_nothing_twice(tmp_path):
    assert not faults(Batch(7, 8, tensors=0), tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20))
def test_an_error_at_every_call_of_many_programs_is_clean(seed, tmp_path):
    assert not faults(Batch(1000 + seed, 22, tensors=0), tmp_path)
    assert not faults(Batch(1000 + seed, 3, tensors=1), tmp_path)


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
    assert not faults_of(text, tmp_path)
