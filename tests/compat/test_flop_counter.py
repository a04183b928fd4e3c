"""The counts are PyTorch's, op by op and module by module."""

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode as TheirCounter

import tenfold as tn
from tenfold.compat.flop_counter import FlopCounterMode, register_flop_formula
from tenfold.compat.overloads import namespace


def counted(counter):
    return {
        module: {str(packet): count for packet, count in counts.items()}
        for module, counts in counter.get_flop_counts().items()
    }


def both(program, *shapes):
    """What each package counts for a program's forward and backward pass."""
    counts = []
    for package, counter in ((tn, FlopCounterMode), (torch, TheirCounter)):
        operands = [package.randn(*shape, requires_grad=True) for shape in shapes]
        with counter(display=False) as mode:
            result = program(package, *operands)
            result.sum().backward()
        counts.append(counted(mode))
    return counts


PRODUCTS = {
    "linear": (lambda t, *x: t.nn.functional.linear(*x), (2, 3, 4), (5, 4), (5,)),
    "linear of a vector": (lambda t, *x: t.nn.functional.linear(*x), (4,), (5, 4)),
    "matrices": (lambda t, x, y: x @ y, (3, 4), (4, 5)),
    "a batch by a matrix": (lambda t, x, y: x @ y, (2, 3, 4), (4, 5)),
    "batches": (lambda t, x, y: x @ y, (6, 2, 3, 4), (2, 4, 5)),
    "a matrix by a vector": (lambda t, x, y: x @ y + (x @ x.mT).sum(), (3, 4), (4,)),
    "addmm": (lambda t, *x: t.addmm(*x), (5,), (3, 4), (4, 5)),
    "baddbmm": (lambda t, *x: t.baddbmm(*x), (2, 3, 5), (2, 3, 4), (2, 4, 5)),
    "einsum": (lambda t, *x: t.einsum("bij,bjk->bik", *x), (2, 3, 4), (2, 4, 5)),
    "inner": (lambda t, *x: t.inner(*x), (2, 4), (3, 4)),
    "inner of vectors": (lambda t, *x: t.inner(*x), (4,), (4,)),
    "tensordot": (lambda t, *x: t.tensordot(*x, 1), (2, 3, 4), (4, 5)),
    "matrix power": (lambda t, x: t.linalg.matrix_power(x, 3), (3, 3)),
    "matrix power of a batch": (lambda t, x: t.linalg.matrix_power(x, 5), (2, 3, 3)),
    "convolution": (
        lambda t, *x: t.nn.functional.conv2d(*x, stride=2, padding=1),
        (2, 3, 9, 9),
        (4, 3, 3, 3),
        (4,),
    ),
    "groups": (lambda t, *x: t.nn.functional.conv1d(*x, groups=2), (2, 4, 8), (6, 2, 3)),
    "no batch": (lambda t, *x: t.nn.functional.conv2d(*x), (3, 8, 8), (4, 3, 3, 3)),
    "transposed": (
        lambda t, *x: t.nn.functional.conv_transpose2d(*x, stride=2, groups=2),
        (2, 4, 8, 8),
        (4, 3, 3, 3),
    ),
    "nothing that counts": (lambda t, x: (x + 1).tanh() + (x @ x.mT).sum(), (3, 4)),
}


@pytest.mark.parametrize("name", PRODUCTS)
def test_products_and_their_gradients_count_as_in_pytorch(name):
    program, *shapes = PRODUCTS[name]
    ours, theirs = both(program, *shapes)
    assert ours == theirs


def test_only_gradients_that_are_wanted_count():
    ours, theirs = both(lambda t, x: t.nn.functional.conv1d(x, t.ones(4, 3, 3)) @ t.ones(6, 2), (2, 3, 8))
    assert ours == theirs


def build(package):
    class Net(package.nn.Module):
        def __init__(self):
            super().__init__()
            self.first = package.nn.Linear(400, 800)
            self.body = package.nn.Sequential(package.nn.Linear(800, 200), package.nn.ReLU())
            self.last = package.nn.Conv1d(1, 3, 3)

        def forward(self, x):
            return self.last(self.body(self.first(x))[:, None])

    return Net()


def test_modules_have_the_counts_of_their_own_forward_and_backward():
    ours, theirs = both(lambda t, x: build(t)(x), (30, 400))
    assert ours == theirs


def test_block_prints_the_table(capsys):
    with FlopCounterMode(depth=1):
        build(tn)(tn.ones(30, 400))
    printed = capsys.readouterr().out.splitlines()
    assert printed[0].split() == ["Module", "FLOP", "%", "Total"]
    assert printed[2].split() == ["Net", "28.907M", "100.00%"]
    assert not any("body" in line for line in printed)
    with FlopCounterMode():
        tn.ones(3) + 1
    assert capsys.readouterr().out.splitlines()[2].split() == ["Global", "0", "0%"]


def test_gradients_of_gradients_count():
    counts = []
    for package, counter in ((tn, FlopCounterMode), (torch, TheirCounter)):
        x = package.randn(3, 4, requires_grad=True)
        w = package.randn(4, 5, requires_grad=True)
        with counter(display=False) as mode:
            (slope,) = package.autograd.grad((x @ w).tanh().sum(), x, create_graph=True)
            slope.pow(2).sum().backward()
        counts.append(counted(mode))
    assert counts[0] == counts[1]


@pytest.mark.parametrize(
    "program",
    [
        lambda t, x, w: t.func.vmap(lambda row: row @ w)(x),
        lambda t, x, w: t.func.grad(lambda y: (y @ w).sum())(x),
        lambda t, x, w: t.compile(lambda y: y @ w, **({"backend": "eager"} if t is torch else {}))(x),
        lambda t, x, w: t.utils.checkpoint.checkpoint(lambda y: y @ w, x, use_reentrant=False),
    ],
    ids=["vmap", "grad", "compile", "checkpoint"],
)
def test_transformed_functions_count_once(program):
    totals = []
    for package, counter in ((tn, FlopCounterMode), (torch, TheirCounter)):
        with counter(display=False) as mode:
            program(package, package.randn(3, 4), package.randn(4, 5))
        totals.append(mode.get_total_flops())
    assert totals[0] == totals[1]


def test_attention_counts_as_by_the_kernels_of_pytorch():
    from torch.utils.flop_counter import sdpa_backward_flop_count, sdpa_flop_count

    shapes = (2, 3, 4, 5), (2, 3, 6, 5), (2, 3, 6, 7)
    operands = [tn.randn(*shape, requires_grad=True) for shape in shapes]
    with FlopCounterMode(display=False) as counter:
        result = tn.nn.functional.scaled_dot_product_attention(*operands)
    assert counter.get_total_flops() == sdpa_flop_count(*shapes)
    with FlopCounterMode(display=False) as counter:
        result.sum().backward()
    assert counter.get_total_flops() == sdpa_backward_flop_count((2, 3, 4, 7), *shapes)


def test_recurrent_layers_count_a_product_for_each_step():
    x = tn.randn(5, 2, 3)
    totals = {}
    for kind in ("LSTM", "GRU", "RNN"):
        with FlopCounterMode(display=False) as counter:
            getattr(tn.nn, kind)(3, 4)(x)
        totals[kind] = counter.get_total_flops()
    theirs = TheirCounter(display=False)
    with theirs:
        torch.nn.GRU(3, 4)(torch.randn(5, 2, 3))
    assert totals["GRU"] == theirs.get_total_flops()
    assert totals["LSTM"] == 4 * totals["RNN"]  # PyTorch's own kernel of it is not counted


def test_formulas_may_be_given_for_other_ops():
    aten = namespace("aten")
    with FlopCounterMode(
        display=False, custom_mapping={aten.relu: lambda shape, out_shape: shape[0] * out_shape[0]}
    ) as counter:
        tn.ones(3).relu()
    assert counter.get_total_flops() == 9
    with pytest.raises(tn.ArgumentError, match="has a formula already"):
        register_flop_formula(aten.mm)(lambda *shapes, out_shape: 0)
    with FlopCounterMode(display=False) as counter:
        tn.ones(3, 4) @ tn.ones(4, 5)
    assert counter.get_total_flops() == 120


def test_counters_nest():
    with FlopCounterMode(display=False) as outer:
        tn.ones(3, 4) @ tn.ones(4, 5)
        with FlopCounterMode(display=False) as inner:
            tn.ones(3, 4) @ tn.ones(4, 5)
    tn.ones(3, 4) @ tn.ones(4, 5)
    assert (outer.get_total_flops(), inner.get_total_flops()) == (240, 120)
