"""Sparse tensors print, compute and give gradients as PyTorch's do."""

import copy

import numpy as np
import pytest
import torch

import tenfold as tn

INDICES = [[0, 1, 1, 0], [2, 0, 2, 2]]  # one element in two parts
VALUES = [3.0, 4.0, 5.0, -1.0]
DENSE = np.random.RandomState(0).randn(3, 2).astype("float32")


def matrix(t, values=VALUES, **options):
    return t.sparse_coo_tensor(t.tensor(INDICES), t.tensor(values), (2, 3), **options)


def text(tensor) -> str:
    return repr(tensor).replace("torch.", "tenfold.")


ALIKE = {
    "the tensor": lambda t, s: s,
    "coalesce": lambda t, s: s.coalesce(),
    "to_dense": lambda t, s: s.to_dense(),
    "sum": lambda t, s: s.sum(),
    "sum along a dimension": lambda t, s: t.sparse.sum(s, 0),
    "add": lambda t, s: s + s,
    "add other elements": lambda t, s: s.coalesce() + t.eye(2, 3).to_sparse(),
    "dense + sparse": lambda t, s: t.ones(2, 3) + s,
    "sub": lambda t, s: s - s,
    "mul by a number": lambda t, s: 2 * s / 3,
    "mul by a tensor": lambda t, s: s * t.arange(6.0).reshape(2, 3),
    "mul by a sparse tensor": lambda t, s: s.coalesce() * t.eye(3)[1:].to_sparse(),
    "transpose": lambda t, s: s.t(),
    "permute": lambda t, s: s.permute(1, 0),
    "mm": lambda t, s: t.mm(s, t.tensor(DENSE)),
    "dense @ sparse": lambda t, s: t.tensor(DENSE).t()[:, :2] @ s,
    "mv": lambda t, s: s @ t.ones(3),
    "sparse @ sparse": lambda t, s: t.sparse.mm(s, s.t()),
    "bmm": lambda t, s: t.bmm(t.stack([s, s]), t.ones(2, 3, 1)),
    "addmm": lambda t, s: t.addmm(t.ones(2, 2), s, t.tensor(DENSE), beta=2, alpha=3),
    "select": lambda t, s: s[1],
    "select twice": lambda t, s: s[0, 2],
    "index_select": lambda t, s: s.index_select(0, t.tensor([1, 1])).coalesce(),
    "cat": lambda t, s: t.cat([s, s], 1),
    "stack": lambda t, s: t.stack([s, s]),
    "unsqueeze": lambda t, s: s.unsqueeze(0),
    "nonlinear": lambda t, s: s.sqrt(),
    "pow": lambda t, s: s**2,
    "dtype": lambda t, s: s.double(),
    "norm": lambda t, s: s.norm(),
    "softmax": lambda t, s: t.sparse.softmax(s, 1),
    "log_softmax": lambda t, s: t.sparse.log_softmax(s, 0),
    "zeros_like": lambda t, s: t.zeros_like(s),
    "mask": lambda t, s: t.ones(2, 3).sparse_mask(s.coalesce()),
    "blocks": lambda t, s: t.arange(12.0).reshape(2, 2, 3).to_sparse(1),
    "csr": lambda t, s: s.to_sparse_csr(),
    "csc": lambda t, s: s.to_sparse_csr().to_sparse_csc(),
    "csr transposed": lambda t, s: s.to_sparse_csr().t(),
    "csr @ dense": lambda t, s: s.to_sparse_csr() @ t.tensor(DENSE),
    "csr arithmetic": lambda t, s: s.to_sparse_csr() * 2,
    "csr to coo": lambda t, s: s.to_sparse_csr().to_sparse(),
    "csr parts": lambda t, s: t.sparse_csr_tensor([0, 1, 2], [0, 1], [1.0, 2.0]),
    "diagonals": lambda t, s: t.sparse.spdiags(t.ones(2, 3), t.tensor([0, 1]), (3, 3)),
    "in place": lambda t, s: s.mul_(3).add_(s),
    "zero_": lambda t, s: s.zero_(),
    "to a dense one in place": lambda t, s: t.ones(2, 3).add_(s, alpha=2),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", list(ALIKE))
def test_a_function_gives_what_pytorch_gives(name):
    ours, theirs = ALIKE[name](tn, matrix(tn)), ALIKE[name](torch, matrix(torch))
    assert text(ours) == text(theirs)
    if theirs.is_sparse:
        assert ours.is_sparse
        assert ours.is_coalesced() == theirs.is_coalesced() or name in ("stack", "select", "unsqueeze")


GRADIENTS = {
    "mm": lambda t, s, d: t.sparse.mm(s, d).tanh().sum(),
    "csr": lambda t, s, d: (s.to_dense().to_sparse_csr() @ d).pow(2).sum(),
    "to_dense": lambda t, s, d: (s.to_dense() * d.t()).sum(),
    "sparse.sum": lambda t, s, d: (t.sparse.sum(s, 1).to_dense() * d[0]).sum(),
    "coalesce": lambda t, s, d: (s.coalesce().values() ** 2).sum() + d.sum(),
    "sparse @ sparse": lambda t, s, d: t.sparse.mm(s, s.t()).to_dense().sum() + d.sum(),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", list(GRADIENTS))
def test_gradients_flow_to_values_and_dense_factors(name):
    found = []
    for t in (tn, torch):
        values, dense = t.tensor(VALUES, requires_grad=True), t.tensor(DENSE, requires_grad=True)
        sparse = t.sparse_coo_tensor(t.tensor(INDICES), values, (2, 3))
        GRADIENTS[name](t, sparse, dense).backward()
        found.append((values.grad.numpy(), dense.grad.numpy()))
    for ours, theirs in zip(*found, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)


def test_the_gradient_of_a_sparse_leaf_is_sparse():
    grads = []
    for t in (tn, torch):
        leaf = t.sparse_coo_tensor([[0, 1], [2, 0]], [3.0, 4.0], (2, 3), requires_grad=True)
        t.sparse.mm(leaf, t.tensor(DENSE)).sum().backward()
        assert leaf.is_leaf
        assert leaf.grad.is_sparse
        grads.append(leaf.grad.to_dense().numpy())
    np.testing.assert_allclose(*grads, rtol=1e-6)


ZERO_AT_ZERO = """
    abs absolute angle arcsin arcsinh arctan arctanh asin asinh atan atanh ceil deg2rad erf erfinv expm1 floor
    frac isinf isnan isneginf isposinf log1p nan_to_num rad2deg relu round sgn sign signbit sin sinh sqrt
    square tan tanh trunc
""".split()  # noqa: SIM905


@pytest.mark.filterwarnings("ignore")
def test_functions_that_are_zero_at_zero_apply_to_the_stored_elements():
    for name in ZERO_AT_ZERO:
        ours, theirs = getattr(tn, name)(matrix(tn)), getattr(torch, name)(matrix(torch).to_dense())
        assert ours.is_sparse, name
        assert str(ours.dtype).split(".")[1] == str(theirs.dtype).split(".")[1]
        found, expected = ours.to_dense().numpy(), theirs.numpy()
        np.testing.assert_allclose(found, expected, rtol=1e-6, err_msg=name)
    assert tn.nn.functional.gelu(matrix(tn)).is_sparse
    assert matrix(tn).clamp(-1, 3).to_dense().tolist() == [[0, 0, 2], [3, 0, 3]]
    assert matrix(tn).to_sparse_csr().clamp_(max=3).to_dense().tolist() == [[0, 0, 2], [3, 0, 3]]


REFUSED = {
    "exp": lambda s: s.exp(),
    "clamp": lambda s: s.clamp(min=1),
    "cumsum": lambda s: s.cumsum(0),
    "reshape": lambda s: s.reshape(-1),
    "flip": lambda s: s.flip(0),
    "triu": lambda s: s.triu(),
    "cos": lambda s: s.cos_(),
}


@pytest.mark.parametrize("name", REFUSED)
def test_other_functions_are_refused(name):
    with pytest.raises(tn.UnsupportedError, match=f"{name} takes no sparse tensors"):
        REFUSED[name](matrix(tn))


def test_what_takes_no_sparse_tensors_says_so():
    with pytest.raises(tn.ArgumentError, match="coalesce"):
        matrix(tn).indices()
    with pytest.raises(tn.IndexOutOfRange):
        tn.sparse_coo_tensor([[5]], [1.0], (2,))


OUT_OF_RANGE = {
    "transpose": lambda t: matrix(t).transpose(0, 5),
    "select": lambda t: matrix(t).select(0, 9),
    "to_sparse_csr": lambda t: t.zeros(3).to_sparse_csr(),
    "to_sparse_csc": lambda t: t.tensor(1.0).to_sparse_csc(),
}


@pytest.mark.parametrize("call", OUT_OF_RANGE)
def test_a_dimension_that_is_not_there_is_an_index_error(call):
    for t in (tn, torch):
        with pytest.raises(IndexError):
            OUT_OF_RANGE[call](t)


def test_copies_and_buffers():
    module = tn.nn.Module()
    module.register_buffer("adjacency", matrix(tn))
    assert module.double().adjacency.dtype is tn.float64
    twin = copy.deepcopy(module)
    twin.adjacency.mul_(2)
    assert module.adjacency.sum().item() == 11.0
