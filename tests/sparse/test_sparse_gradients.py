"""Embeddings with sparse gradients, and the optimizers that take them."""

import numpy as np
import pytest
import torch

import tenfold as tn

TABLE = np.random.RandomState(1).randn(6, 3).astype("float32")
BATCHES = [[1, 4, 1], [0, 4, 5], [2, 2, 2]]


def embedding(t, **options):
    made = t.nn.Embedding(6, 3, sparse=True, **options)
    with t.no_grad():
        made.weight.copy_(t.tensor(TABLE))
    return made


@pytest.mark.parametrize("options", [{}, {"padding_idx": 4}])
def test_the_gradient_has_a_row_for_each_index(options):
    gradients = []
    for t in (tn, torch):
        layer = embedding(t, **options)
        (layer(t.tensor(BATCHES[0])) ** 2).sum().backward()
        (layer(t.tensor(BATCHES[1])) ** 3).sum().backward()
        assert layer.weight.grad.is_sparse
        gradients.append(layer.weight.grad.coalesce())
    ours, theirs = gradients
    np.testing.assert_array_equal(ours.indices().numpy(), theirs.indices().numpy())
    np.testing.assert_allclose(ours.values().numpy(), theirs.values().numpy(), rtol=1e-5, atol=1e-6)


def test_a_table_used_densely_too_has_a_dense_gradient():
    gradients = []
    for t in (tn, torch):
        layer = embedding(t)
        (layer(t.tensor(BATCHES[0])) @ layer.weight.t()).sum().backward()
        assert not layer.weight.grad.is_sparse
        gradients.append(layer.weight.grad.numpy())
    np.testing.assert_allclose(*gradients, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("mode", ["sum", "mean"])
def test_bags(mode):
    gradients = []
    for t in (tn, torch):
        bag = t.nn.EmbeddingBag(6, 3, mode=mode, sparse=True)
        with t.no_grad():
            bag.weight.copy_(t.tensor(TABLE))
        (bag(t.tensor([1, 4, 1, 5]), t.tensor([0, 3])) ** 2).sum().backward()
        gradients.append(bag.weight.grad.coalesce().to_dense().numpy())
    np.testing.assert_allclose(*gradients, rtol=1e-5, atol=1e-6)


OPTIMIZERS = {
    "SGD": {"lr": 0.1},
    "SGD with momentum": {"lr": 0.1, "momentum": 0.9},
    "Adagrad": {"lr": 0.1},
    "SparseAdam": {"lr": 0.1},
}


@pytest.mark.parametrize("name", list(OPTIMIZERS))
def test_optimizers_take_sparse_gradients(name):
    tables = []
    for t in (tn, torch):
        layer = embedding(t)
        optimizer = getattr(t.optim, name.split()[0])(layer.parameters(), **OPTIMIZERS[name])
        for batch in BATCHES:
            optimizer.zero_grad()
            (layer(t.tensor(batch)) ** 2).sum().backward()
            optimizer.step()
        tables.append(layer.weight.detach().numpy())
    np.testing.assert_allclose(*tables, rtol=1e-5, atol=1e-6)


def test_adam_refuses_a_sparse_gradient():
    layer = embedding(tn)
    layer(tn.tensor(BATCHES[0])).sum().backward()
    with pytest.raises(tn.UnsupportedError, match="Adam does not take sparse gradients"):
        tn.optim.Adam(layer.parameters()).step()


def test_sparse_adam_refuses_a_dense_gradient():
    layer = tn.nn.Linear(2, 2)
    layer(tn.ones(1, 2)).sum().backward()
    with pytest.raises(tn.TenfoldError, match="takes sparse gradients"):
        tn.optim.SparseAdam(layer.parameters()).step()


LOSSES = {
    "sum": lambda t, a: t.sparse.sum(a),
    "to_dense": lambda t, a: (a.to_dense() * t.arange(6.0).reshape(2, 3)).sum(),
    "coalesce": lambda t, a: (a.coalesce().values() ** 2).sum(),
    "mm": lambda t, a: t.sparse.mm(a, t.arange(6.0).reshape(3, 2)).sum(),
    "transpose": lambda t, a: t.sparse.sum(a.t() * 3.0),
}


def stored_in_parts(t):
    places = t.tensor([[0, 1, 1, 0], [2, 0, 2, 2]])
    return t.sparse_coo_tensor(places, t.tensor([3.0, 4, 5, 6]), (2, 3)).requires_grad_()


@pytest.mark.parametrize("loss", LOSSES)
def test_the_gradient_of_an_element_stored_in_parts_counts_once(loss):
    gradients = []
    for t in (tn, torch):
        leaf = stored_in_parts(t)
        LOSSES[loss](t, leaf).backward()
        LOSSES[loss](t, leaf).backward()
        gradients.append(leaf.grad.to_dense().numpy())
    np.testing.assert_allclose(*gradients)


def test_the_gradient_of_an_element_stored_in_parts_can_be_replaced():
    gradients = []
    for t in (tn, torch):
        leaf = stored_in_parts(t)
        leaf.register_hook(lambda gradient: gradient * 2)
        t.sparse.sum(leaf).backward()
        leaf.grad = leaf.grad * 3
        t.sparse.sum(leaf).backward()
        gradients.append(leaf.grad.to_dense().numpy())
    np.testing.assert_array_equal(*gradients)
    np.testing.assert_array_equal(gradients[0], [[0, 0, 8], [8, 0, 8]])


def test_grad_of_a_sparse_leaf_is_what_backward_gives():
    matrix = tn.sparse_coo_tensor([[0, 1], [2, 0]], [3.0, 4.0], (2, 3)).requires_grad_()
    (gradient,) = tn.autograd.grad((matrix @ tn.ones(3, 2)).sum(), matrix)
    (matrix @ tn.ones(3, 2)).sum().backward()
    assert gradient.layout == tn.sparse_coo
    assert (gradient.to_dense() == matrix.grad.to_dense()).all()
