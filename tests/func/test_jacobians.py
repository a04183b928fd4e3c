"""All partial derivatives at once: their shapes, containers and what comes along, as PyTorch's."""

import pytest
import torch

import tenfold as tn

POINT = [[0.5, -1.0, 2.0], [0.3, 1.5, -0.7]]


def agree(ours, theirs):
    if isinstance(theirs, dict):
        assert list(ours) == list(theirs)
        ours, theirs = list(ours.values()), list(theirs.values())
    if isinstance(theirs, (tuple, list)):
        assert type(ours) is type(theirs) and len(ours) == len(theirs)
        for mine, other in zip(ours, theirs):
            agree(mine, other)
        return
    assert tuple(ours.shape) == tuple(theirs.shape)
    torch.testing.assert_close(torch.tensor(ours.tolist()), theirs, check_dtype=False)


FUNCTIONS = {
    "one of one": (lambda x, y: x.sin(), 0),
    "the second": (lambda x, y: x * y.exp(), 1),
    "both": (lambda x, y: (x * y).cumsum(0), (0, 1)),
    "several results": (lambda x, y: (x * y, x.sum()), (0, 1)),
    "a dictionary": (lambda x, y: {"sum": x + y, "last": y[-1]}, 1),
    "one that does not depend": (lambda x, y: y * 2, 0),
}


@pytest.mark.parametrize("jacobian", ["jacrev", "jacfwd"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_jacobians_are_pytorchs_both_ways(jacobian, name):
    function, argnums = FUNCTIONS[name]
    ours = getattr(tn.func, jacobian)(function, argnums)(*[tn.tensor(row) for row in POINT])
    theirs = getattr(torch.func, jacobian)(function, argnums)(*[torch.tensor(row) for row in POINT])
    agree(ours, theirs)


@pytest.mark.parametrize("jacobian", ["jacrev", "jacfwd"])
def test_what_comes_along_is_given_back_as_it_is(jacobian):
    def function(x):
        return x**2, {"cosine": x.cos()}

    ours = getattr(tn.func, jacobian)(function, has_aux=True)(tn.tensor(POINT[0]))
    theirs = getattr(torch.func, jacobian)(function, has_aux=True)(torch.tensor(POINT[0]))
    agree(ours, theirs)


def test_chunks_of_a_jacobian_are_the_same():
    x, function = tn.tensor(POINT), lambda x: x.exp() @ x.t()
    whole = tn.func.jacrev(function)(x)
    for size in (1, 3, 100):
        assert tn.func.jacrev(function, chunk_size=size)(x).tolist() == whole.tolist()


def test_second_derivatives_are_pytorchs():
    function = lambda x, y: (x**3 * y).sum() + x.prod()
    ours = tn.func.hessian(function, (0, 1))(*[tn.tensor(row) for row in POINT])
    theirs = torch.func.hessian(function, (0, 1))(*[torch.tensor(row) for row in POINT])
    agree(ours, theirs)
