"""nn.init: how parameters are distributed, beside PyTorch's formulas; and how layers start."""

from __future__ import annotations

import inspect
import math

import numpy as np
import pytest
import torch

import tenfold as tn
from tenfold import nn
from tenfold.nn import init


def drawn(fill: str, *shape: int, **options: float) -> np.ndarray:
    tn.manual_seed(7)
    tensor = tn.empty(*shape)
    assert getattr(init, fill)(tensor, **options) is tensor
    return tensor.numpy()


def golden(fill: str, *shape: int, **options: float) -> np.ndarray:
    torch.manual_seed(7)
    return getattr(torch.nn.init, fill)(torch.empty(*shape), **options).numpy()


@pytest.mark.parametrize(
    ("fill", "options"),
    [
        ("uniform_", {}),
        ("uniform_", {"a": -3.0, "b": 1.0}),
        ("normal_", {}),
        ("normal_", {"mean": 2.0, "std": 0.5}),
        ("trunc_normal_", {}),
        ("trunc_normal_", {"mean": 1.0, "std": 2.0, "a": -1.0, "b": 1.5}),
        ("trunc_normal_", {"mean": 0.0, "std": 1.0, "a": 1.0, "b": 9.0}),
        ("xavier_uniform_", {}),
        ("xavier_normal_", {"gain": 2.0}),
        ("kaiming_uniform_", {"a": 0.3}),
        ("kaiming_uniform_", {"mode": "fan_out", "nonlinearity": "relu"}),
        ("kaiming_normal_", {"nonlinearity": "tanh"}),
        ("sparse_", {"sparsity": 0.25, "std": 0.5}),
    ],
)
def test_draws_are_distributed_as_pytorchs(fill, options):
    ours, theirs = drawn(fill, 300, 200, **options), golden(fill, 300, 200, **options)
    quantiles = np.linspace(0.02, 0.98, 25)
    spread = theirs.std()
    np.testing.assert_allclose(
        np.quantile(ours, quantiles), np.quantile(theirs, quantiles), atol=0.06 * spread
    )
    ends = np.array([0.001, 0.999])  # further out, sixty draws decide
    np.testing.assert_allclose(np.quantile(ours, ends), np.quantile(theirs, ends), atol=0.2 * spread)
    if fill == "trunc_normal_" and options:
        assert ours.min() >= options["a"] and ours.max() <= options["b"]
    neighbours = np.corrcoef(ours[:, 1:].ravel(), ours[:, :-1].ravel())[0, 1]
    assert abs(neighbours) < 0.02


def test_far_tails_are_drawn_from_with_a_warning():
    with pytest.warns(UserWarning, match="two deviations outside"):
        ours = drawn("trunc_normal_", 10000, a=9.0, b=20.0)
    assert ours.min() >= 9 and 9.1 < ours.mean() < 9.12  # the normal's mean beyond 9 is 9.107


@pytest.mark.parametrize(
    ("fill", "shape", "options"),
    [
        ("constant_", (2, 3), {"val": 4.5}),
        ("ones_", (2, 3), {}),
        ("zeros_", (2, 3), {}),
        ("eye_", (3, 5), {}),
        ("eye_", (5, 3), {}),
        ("dirac_", (4, 2, 3), {}),
        ("dirac_", (6, 2, 3, 4), {"groups": 3}),
        ("dirac_", (2, 3, 1, 3, 2), {}),
    ],
)
def test_fillings_are_pytorchs(fill, shape, options):
    assert (drawn(fill, *shape, **options) == golden(fill, *shape, **options)).all()


@pytest.mark.parametrize("shape", [(6, 4), (4, 6), (5, 2, 3), (3, 3)])
def test_orthogonal_matrices_are_orthogonal(shape):
    matrix = drawn("orthogonal_", *shape, gain=2.0).reshape(shape[0], -1).astype(np.float64)
    small = matrix @ matrix.T if matrix.shape[0] <= matrix.shape[1] else matrix.T @ matrix
    np.testing.assert_allclose(small, 4 * np.eye(len(small)), atol=1e-5)


def test_sparse_zeroes_a_share_of_each_column():
    assert ((drawn("sparse_", 10, 7, sparsity=0.25) == 0).sum(0) == 3).all()


def test_gains_are_pytorchs():
    for name in ("linear", "conv1d", "conv_transpose3d", "sigmoid", "tanh", "relu", "selu", "leaky_relu"):
        assert init.calculate_gain(name) == torch.nn.init.calculate_gain(name)
    assert init.calculate_gain("leaky_relu", 0.3) == torch.nn.init.calculate_gain("leaky_relu", 0.3)


def test_signatures_are_pytorchs():
    names = [name for name in dir(torch.nn.init) if name.endswith("_") and not name.startswith("_")]
    for name in [*names, "calculate_gain"]:
        ours, theirs = (inspect.signature(getattr(each, name)) for each in (init, torch.nn.init))
        described = lambda s: [(p.name, p.default) for p in s.parameters.values()]
        assert described(ours) == described(theirs), name
    assert len(names) == 14


def test_the_seed_decides_and_a_generator_is_its_own():
    first, again = drawn("normal_", 5), drawn("normal_", 5)
    assert (first == again).all()
    assert (nn.Linear(3, 3).weight.detach().numpy() != nn.Linear(3, 3).weight.detach().numpy()).all()
    state = tn.get_rng_state().tolist()
    one = init.uniform_(tn.empty(4), generator=tn.Generator().manual_seed(3))
    two = init.uniform_(tn.empty(4), generator=tn.Generator().manual_seed(3))
    assert one.tolist() == two.tolist() and tn.get_rng_state().tolist() == state


def test_filling_is_without_gradients():
    weight = nn.Parameter(tn.ones(2, 2))
    init.kaiming_normal_(weight)
    assert weight.is_leaf and weight.requires_grad
    (weight * weight).sum().backward()
    np.testing.assert_allclose(weight.grad.numpy(), 2 * weight.detach().numpy(), 1e-6)


def test_half_precision_is_filled_too():
    half = init.normal_(tn.empty(1000, dtype=tn.bfloat16))
    assert half.dtype is tn.bfloat16 and half.float().std().item() == pytest.approx(1, abs=0.1)


def test_compiled_functions_may_fill():
    fill = tn.compile(lambda: init.uniform_(tn.empty(1000), 1.0, 2.0) * 1)
    first, second = fill(), fill()
    assert first.min().item() >= 1 and first.max().item() < 2
    assert first.tolist() != second.tolist()


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda: init.calculate_gain("nope"), "no gain is known"),
        (lambda: init.calculate_gain("leaky_relu", True), "negative slope"),
        (lambda: init.xavier_uniform_(tn.ones(3)), "two dimensions"),
        (lambda: init.kaiming_normal_(tn.ones(3, 3), mode="nope"), "fan_in or fan_out"),
        (lambda: init.eye_(tn.ones(3)), "takes a matrix"),
        (lambda: init.dirac_(tn.ones(3)), "3, 4 or 5 dimensions"),
        (lambda: init.dirac_(tn.ones(3, 2, 2), groups=2), "do not divide"),
        (lambda: init.orthogonal_(tn.ones(3)), "two dimensions"),
        (lambda: init.sparse_(tn.ones(3), 0.1), "takes a matrix"),
    ],
)
def test_mistakes_are_refused(act, message):
    with pytest.raises(tn.TenfoldError, match=message) as caught:
        act()
    assert "test_init.py" in str(caught.value)


def test_what_pytorch_warns_of_is_warned_of():
    with pytest.warns(UserWarning, match="outside of"):
        init.trunc_normal_(tn.empty(3), mean=9.0)
    with pytest.warns(UserWarning, match="without elements"):
        init.kaiming_uniform_(tn.empty(0, 3))
    with pytest.warns(FutureWarning, match="use nn.init.uniform_"):
        init.uniform(tn.empty(3))


# How layers start


STARTS = [
    ("Linear(100, 200)", {"weight": 1 / 10, "bias": 1 / 10}),
    ("Bilinear(25, 30, 20)", {"weight": 1 / 5, "bias": 1 / 5}),
    ("Conv2d(8, 60, 5, groups=2)", {"weight": 1 / 10, "bias": 1 / 10}),
    ("ConvTranspose1d(40, 60, 4)", {"weight": 1 / math.sqrt(240), "bias": 1 / math.sqrt(240)}),
    ("LSTM(30, 25)", {"weight_ih_l0": 1 / 5, "weight_hh_l0": 1 / 5, "bias_ih_l0": 1 / 5}),
    ("GRUCell(30, 25)", {"weight_ih": 1 / 5, "bias_hh": 1 / 5}),
    ("MultiheadAttention(64, 2)", {"in_proj_weight": math.sqrt(6 / 256), "out_proj.weight": 1 / 8}),
]


@pytest.mark.parametrize(("call", "bounds"), STARTS)
def test_layers_start_evenly_spread_as_pytorchs(call, bounds):
    state = eval(f"nn.{call}").state_dict()
    theirs = eval(call, vars(torch.nn)).state_dict()
    for name, bound in bounds.items():
        for each in (state[name].numpy(), theirs[name].numpy()):
            assert 0.9 * bound < np.abs(each).max() <= bound * 1.000001, name
            assert each.std() == pytest.approx(bound / math.sqrt(3), rel=0.2)


def test_embeddings_start_normal_but_for_the_padding():
    weight = nn.Embedding(200, 50, padding_idx=-1).weight.detach().numpy()
    assert weight[:-1].std() == pytest.approx(1, abs=0.05) and (weight[-1] == 0).all()


def test_constant_starts_are_pytorchs():
    for call in ("BatchNorm1d(3)", "LayerNorm(3)", "GroupNorm(1, 3)", "RMSNorm(3)", "PReLU(3)",
                 "InstanceNorm1d(3, affine=True, track_running_stats=True)"):  # fmt: skip
        ours, theirs = eval(f"nn.{call}"), eval(call, vars(torch.nn))
        for reset in (False, True):
            if reset and hasattr(ours, "reset_parameters"):
                with tn.no_grad():
                    for each in ours.parameters():
                        each.fill_(5.0)
                ours.reset_parameters()
            for name, each in theirs.state_dict().items():
                assert (ours.state_dict()[name].numpy() == each.numpy()).all(), (call, name)
