"""Anomaly detection: the op that NaN came from, and where it is looked for."""

import pytest

import tenfold as tn
from tenfold.autograd.anomaly import looking, search
from tenfold.base.errors import GradientError


@pytest.fixture(autouse=True)
def _off_again():
    yield
    assert not search.enabled and search.check_nan


def bad(x):
    return (x * 2).sqrt().sum() * 3  # the gradient of a root is infinite at 0, and 0 · ∞ is NaN


def test_the_op_that_introduced_nan_is_named_with_its_line():
    x = tn.tensor([1.0, 4.0], requires_grad=True)
    zeros = tn.tensor([0.0, 1.0])
    with tn.autograd.detect_anomaly(), pytest.raises(GradientError) as raised:
        ((x * zeros).sqrt() * zeros).sum().backward()
    message = str(raised.value)
    assert "the gradient of sqrt has NaN in it" in message and "test_anomaly.py" in message
    assert x.grad is None


def test_gradients_without_nan_are_as_ever():
    x = tn.tensor([1.0, 4.0], requires_grad=True)
    with tn.autograd.detect_anomaly():
        bad(x).backward()
    expected, x.grad = x.grad.tolist(), None
    bad(x).backward()
    assert x.grad.tolist() == expected


def test_infinite_gradients_are_no_anomaly():
    x = tn.tensor([0.0, 4.0], requires_grad=True)
    with tn.autograd.detect_anomaly():
        bad(x).backward()
    assert x.grad.isinf().tolist() == [True, False]


def test_a_block_ends_with_the_setting_that_it_began_with():
    assert not looking()
    with tn.autograd.detect_anomaly():
        assert looking()
        with tn.autograd.set_detect_anomaly(False):
            assert not looking()
        with tn.autograd.detect_anomaly(check_nan=False):
            assert not looking()
        assert looking()
    assert not looking()


def test_nothing_is_looked_for_while_a_function_is_recorded():
    seen = []
    with tn.autograd.detect_anomaly():
        tn.compile(lambda x: seen.append(looking()) or x + 1)(tn.ones(2))
    assert seen == [False]


def test_nan_from_a_function_of_ones_own_is_found():
    class Bad(tn.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, gradient):
            return gradient * float("nan")

    x = tn.ones(2, requires_grad=True)
    with tn.autograd.detect_anomaly(), pytest.raises(GradientError, match="NaN"):
        Bad.apply(x).sum().backward()


@pytest.mark.parametrize("hooked", [False, True])
def test_nan_passes_where_nothing_looks_for_it(hooked):
    x = tn.tensor([0.0, 1.0], requires_grad=True)
    y = x.sqrt()
    if hooked:
        y.register_hook(lambda gradient: gradient)
    (y * tn.tensor([0.0, 1.0])).sum().backward()
    assert x.grad.isnan().tolist() == [True, False]


def test_nan_is_found_where_hooks_run_too():
    x = tn.tensor([0.0, 1.0], requires_grad=True)
    y = x.sqrt()
    y.register_hook(lambda gradient: gradient)
    with tn.autograd.detect_anomaly(), pytest.raises(GradientError, match="NaN"):
        (y * tn.tensor([0.0, 1.0])).sum().backward()
