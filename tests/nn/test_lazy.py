"""Lazy layers: what they become when they see their first input."""

from __future__ import annotations

import copy
import pickle

import pytest
import torch

import tenfold as tn
from tenfold import nn

CASES = [
    ("LazyLinear(3)", (2, 4), "Linear(4, 3)"),
    ("LazyLinear(3, bias=False)", (2, 4), "Linear(4, 3, bias=False)"),
    ("LazyConv1d(3, 2)", (2, 4, 5), "Conv1d(4, 3, 2)"),
    ("LazyConv2d(4, 3, padding=1, groups=2)", (4, 5, 5), "Conv2d(4, 4, 3, padding=1, groups=2)"),
    ("LazyConv3d(3, 2, bias=False)", (1, 4, 3, 3, 3), "Conv3d(4, 3, 2, bias=False)"),
    ("LazyConvTranspose1d(3, 2)", (2, 4, 5), "ConvTranspose1d(4, 3, 2)"),
    ("LazyConvTranspose2d(4, 3, 2, groups=2)", (1, 4, 5, 5), "ConvTranspose2d(4, 4, 3, 2, groups=2)"),
    ("LazyConvTranspose3d(3, 2)", (1, 4, 3, 3, 3), "ConvTranspose3d(4, 3, 2)"),
    ("LazyBatchNorm1d()", (3, 4), "BatchNorm1d(4)"),
    ("LazyBatchNorm2d(affine=False)", (2, 4, 3, 3), "BatchNorm2d(4, affine=False)"),
    ("LazyBatchNorm3d(track_running_stats=False)", (2, 4, 2, 2, 2),
     "BatchNorm3d(4, track_running_stats=False)"),
    ("LazyInstanceNorm1d()", (2, 4, 3), "InstanceNorm1d(4, affine=True, track_running_stats=True)"),
    ("LazyInstanceNorm2d(bias=False)", (2, 4, 3, 3),
     "InstanceNorm2d(4, affine=True, track_running_stats=True, bias=False)"),
    ("LazyInstanceNorm3d(affine=False)", (2, 4, 2, 2, 2), "InstanceNorm3d(4, track_running_stats=True)"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "shape", "becomes"), CASES)
def test_a_lazy_layer_becomes_the_layer_that_fits_its_input(call, shape, becomes):
    lazy, plain = eval(f"nn.{call}"), eval(f"nn.{becomes}")
    assert repr(lazy) == repr(eval(call, vars(torch.nn)))
    assert lazy.has_uninitialized_params() or "affine=False" in call
    result = lazy(tn.ones(*shape))
    assert type(lazy) is type(plain) and repr(lazy) == repr(plain)
    assert not lazy._forward_pre_hooks
    assert [(name, each.shape) for name, each in lazy.state_dict().items()] == [
        (name, each.shape) for name, each in plain.state_dict().items()
    ]
    assert result.shape == plain(tn.ones(*shape)).shape
    if "weight" in lazy._parameters and "Norm" not in call:
        assert lazy.weight.detach().std().item() > 0


def test_a_lazy_layer_may_be_copied_and_converted_before_it_is_used():
    lazy = nn.LazyLinear(3).double()
    twin = copy.deepcopy(lazy)
    again = pickle.loads(pickle.dumps(lazy))
    for each in (lazy, twin, again):
        assert each(tn.ones(2, 4, dtype=tn.float64)).shape == (2, 3)
        assert each.weight.dtype is tn.float64 and each.weight.requires_grad
    assert twin.weight is not lazy.weight
    norm = nn.LazyBatchNorm1d().double()
    assert norm(tn.ones(2, 4, dtype=tn.float64)).dtype is tn.float64 and norm.running_mean.dtype is tn.float64


def test_a_lazy_layer_takes_its_shape_from_a_state():
    lazy, plain = nn.LazyLinear(3), nn.Linear(4, 3)
    lazy.load_state_dict(plain.state_dict())
    assert not lazy.has_uninitialized_params()
    assert (lazy(tn.ones(2, 4)) == plain(tn.ones(2, 4))).all().item()


def test_an_unknown_shape_is_an_error_that_says_so():
    lazy = nn.LazyLinear(3)
    with pytest.raises(tn.TenfoldError, match="call the module once"):
        lazy.weight.shape  # noqa: B018
    assert repr(lazy.weight) == "<UninitializedParameter>"
    with pytest.raises(tn.ArgumentError, match="LazyConv1d: takes 2 or 3 dimensions, not 1"):
        nn.LazyConv1d(3, 2)(tn.ones(3))


def test_a_lazy_module_of_ones_own_is_initialized_by_its_first_input():
    class Scale(nn.modules.lazy.LazyModuleMixin, nn.Module):
        def __init__(self):
            super().__init__()
            self.factor = nn.UninitializedParameter()

        def initialize_parameters(self, x):
            with tn.no_grad():
                self.factor.materialize(x.shape[-1:])
                self.factor.fill_(2)

        def forward(self, x):
            return x * self.factor

    scale = Scale()
    assert scale.has_uninitialized_params()
    assert scale(tn.ones(3)).tolist() == [2, 2, 2] and type(scale.factor) is nn.Parameter
    assert scale(tn.ones(2, 3)).sum().item() == 12
