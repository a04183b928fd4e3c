"""Recorded functions: what they read and write outside, and what a failure leaves."""

from __future__ import annotations

import pytest

import tenfold as tn
from tenfold.base.errors import GradientError
from tenfold.trace.context import context
from tenfold.utils.checkpoint import checkpoint
from tests.func.cases import BATCH


@pytest.mark.parametrize("make", [tn.nn.Parameter, tn.Tensor.requires_grad_], ids=["parameter", "tensor"])
def test_a_loop_that_writes_to_a_leaf_it_read_is_refused(make):
    weight = make(tn.zeros(3))

    def body(count, total):
        with tn.no_grad():
            weight.add_(1)
        return count + 1, total + weight.sum()

    with pytest.raises(GradientError, match="writes to a tensor that collects gradients"):
        tn.while_loop(lambda count, total: count < 3, body, (tn.tensor(0), tn.tensor(0.0)))


def test_what_tensors_from_outside_hold_may_decide():
    x, mask = tn.tensor(BATCH), tn.arange(4) > 0

    def choose(a):
        return a[mask] * 2, a.masked_select(tn.arange(4) != 1), a.tensor_split(tn.tensor([2]))[0]

    for found, row in zip(tn.func.vmap(choose)(x), zip(*[choose(each) for each in x]), strict=True):
        assert found.tolist() == tn.stack(row).tolist()
    values, tangents = tn.func.jvp(choose, (x[0],), (x[1],))
    assert [each.tolist() for each in values] == [each.tolist() for each in choose(x[0])]
    assert [each.tolist() for each in tangents] == [each.tolist() for each in choose(x[1])]
    with pytest.raises(tn.TraceError, match="records f once"):
        tn.func.vmap(lambda a: a[mask * a > 0])(x)


def test_a_failed_recording_leaves_nothing_behind():
    with pytest.raises(tn.TraceError):
        tn.func.vmap(lambda a: a.add_(1).sum().item())(tn.tensor(BATCH))
    assert context.recorder is None and (tn.ones(2) + 1).tolist() == [2.0, 2.0]


CLOSED_OVER = {
    "map": (lambda v: tn.func.map(lambda a: a * v, tn.ones(3)), 3),
    "while_loop": (
        lambda v: tn.while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, x + v), (0, 0 * v))[1],
        3,
    ),
    "cond": (lambda v: tn.cond(tn.tensor(True), lambda x: x * v, lambda x: x, (tn.ones(2, 1),)), 1),
    "vmap": (lambda v: tn.func.vmap(lambda a: a * v)(tn.ones(3)), 3),
    "checkpoint": (lambda v: checkpoint(lambda a: a * v, tn.ones(2, 1), use_reentrant=False), 1),
    "compile": (lambda v: tn.compile(lambda a: a * v)(tn.ones(2, 1)), 1),
}


def leaf():
    """A leaf that is a view of a tensor without gradients."""
    return tn.ones(2).reshape(2).requires_grad_()


@pytest.mark.parametrize("name", CLOSED_OVER)
@pytest.mark.parametrize("view", [lambda w: w.view(2, 1), lambda w: w], ids=["view", "itself"])
def test_a_function_that_closes_over_a_leaf_gives_it_gradients(name, view):
    w = leaf()
    call, often = CLOSED_OVER[name]
    call(view(w).reshape(2, 1)).sum().backward()
    assert w.grad.tolist() == [often, often]


def test_every_slice_of_a_leaf_gets_a_gradient_from_map_and_scan():
    for view in lambda w: w, lambda w: w.view(2, 1):
        w = leaf()
        tn.func.map(lambda a: a * 2, view(w)).sum().backward()
        assert w.grad.tolist() == [2, 2]
        w = leaf()
        tn.func.scan(lambda c, a: (c + a, c), tn.zeros(view(w).shape[1:]), view(w))[0].sum().backward()
        assert w.grad.tolist() == [1, 1]


def test_the_memory_of_a_leaf_may_not_be_written_once_it_was_read():
    base = tn.ones(2)
    view = base.reshape(2).requires_grad_().view(2, 1)

    def both(a):
        result = a * view
        with tn.no_grad():
            base.mul_(2)
        return result

    with pytest.raises(GradientError, match="after reading it"):
        checkpoint(both, tn.ones(2, 1), use_reentrant=False)
