"""A leaf may itself be a view of a tensor without gradients: they come to it from whatever reads it."""

import pytest

import tenfold as tn
from tenfold.base.errors import GradientError
from tenfold.utils.checkpoint import checkpoint

_CLOSED_OVER = {
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
    return tn.ones(2).reshape(2).requires_grad_()


@pytest.mark.parametrize("name", _CLOSED_OVER)
@pytest.mark.parametrize("view", [lambda w: w.view(2, 1), lambda w: w], ids=["view", "itself"])
def test_a_function_that_closes_over_it_gives_it_gradients(name, view):
    w = leaf()
    call, often = _CLOSED_OVER[name]
    call(view(w).reshape(2, 1)).sum().backward()
    assert w.grad.tolist() == [often, often]


def test_every_slice_of_it_gets_a_gradient_from_map_and_scan():
    for view in lambda w: w, lambda w: w.view(2, 1):
        w = leaf()
        tn.func.map(lambda a: a * 2, view(w)).sum().backward()
        assert w.grad.tolist() == [2, 2]
        w = leaf()
        tn.func.scan(lambda c, a: (c + a, c), tn.zeros(view(w).shape[1:]), view(w))[0].sum().backward()
        assert w.grad.tolist() == [1, 1]


def test_its_memory_may_not_be_written_once_it_was_read():
    base = tn.ones(2)
    view = base.reshape(2).requires_grad_().view(2, 1)

    def both(a):
        result = a * view
        with tn.no_grad():
            base.mul_(2)
        return result

    with pytest.raises(GradientError, match="after reading it"):
        checkpoint(both, tn.ones(2, 1), use_reentrant=False)
