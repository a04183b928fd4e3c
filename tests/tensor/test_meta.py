"""The meta device: tensors of a shape and a dtype, without data."""

from __future__ import annotations

import pytest
import torch

import tenfold as tn
from tenfold import nn


def test_ops_work_on_shapes_and_dtypes_alone():
    x = tn.empty(3, 4, device="meta")
    y = (x @ x.T).relu().to(tn.float64)
    assert y.device == tn.device("meta") and y.is_meta and y.shape == (3, 3) and y.dtype is tn.float64
    y[0] = 1
    y.fill_(2)
    assert tn.ones(2).to("meta").shape == (2,) and tn.rand(5, device="meta").shape == (5,)
    assert repr(x) == "tensor(..., device='meta', size=(3, 4))"


@pytest.mark.parametrize("name", ["mps", "xpu:1", "xla"])
def test_devices_of_pytorchs_that_are_not_here_can_be_named(name):
    assert tn.ones(1).device != tn.device(name) and str(tn.device(name)) == name
    with pytest.raises(tn.DeviceError, match="there is no device"):
        tn.ones(1, device=name)


def test_a_tensor_of_any_size_takes_no_memory():
    large = tn.zeros(1 << 20, 1 << 20, device="meta")
    assert (large + 1).sum(0).shape == (1 << 20,)


@pytest.mark.parametrize("read", [tn.Tensor.item, tn.Tensor.cpu, tn.Tensor.tolist, bool, float])
def test_reading_what_is_not_there_is_an_error(read):
    with pytest.raises(NotImplementedError, match="no data"):
        read(tn.ones((), device="meta") + 1)


def test_a_module_is_made_without_data_and_filled_later():
    with tn.device("meta"):
        model = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3), nn.Embedding(4, 3))
    assert {each.device.type for each in model.state_dict().values()} == {"meta"}
    with pytest.raises(NotImplementedError, match="no data"):
        model.to("cpu")
    model.to_empty(device="cpu")
    assert {each.device.type for each in model.state_dict().values()} == {"cpu"}


def test_weights_are_assigned_to_a_module_without_data():
    with tn.device("meta"):
        model = nn.Linear(2, 3)
    model.load_state_dict({"weight": tn.ones(3, 2), "bias": tn.zeros(3)}, assign=True)
    assert model(tn.ones(2)).tolist() == [2.0, 2.0, 2.0]


def test_nothing_is_left_waiting_that_another_tensor_would_trip_over():
    assert (tn.zeros(3).add_(1) * 2)[1:].tolist() == [
        2.0,
        2.0,
    ]  # the same calls, seen before on another device
    hollow = tn.zeros(3, device="meta")
    hollow.add_(1)
    assert (hollow * 2)[1:].is_meta
    assert tn.ones(2).add_(1).tolist() == [2.0, 2.0]


@pytest.mark.parametrize(
    "name", ["normal_", "uniform_", "trunc_normal_", "orthogonal_", "zeros_", "kaiming_normal_"]
)
def test_there_is_nothing_to_initialise(name):
    tensor = tn.empty(3, 4, device="meta")
    assert getattr(nn.init, name)(tensor) is tensor and tensor.is_meta
    assert nn.Embedding(4, 3, padding_idx=0, device="meta").weight.is_meta


def test_a_tensor_with_data_takes_its_shape_from_one_without():
    hollow = tn.empty(2, 3, device="meta")
    assert tn.zeros_like(hollow, device="cpu").tolist() == [[0.0] * 3] * 2
    assert (tn.empty_like(hollow, device="cpu").fill_(1) + 1).sum().item() == 12.0
    assert hollow.new_ones(2, device="cpu").tolist() == [1.0, 1.0]


@pytest.mark.filterwarnings("ignore:for .*copying from a non-meta parameter")
@pytest.mark.parametrize("t", [tn, torch], ids=["tenfold", "pytorch"])
def test_copying_to_the_meta_device_moves_nothing_and_checks_shapes(t):
    held = t.empty(2, 3, device="meta")
    assert held.copy_(t.ones(3)) is held and held.shape == (2, 3) and held.device.type == "meta"
    layer = t.nn.Linear(3, 2, device="meta")
    layer.load_state_dict(t.nn.Linear(3, 2).state_dict())
    assert layer.weight.device.type == "meta"
    with pytest.raises(RuntimeError if t is torch else tn.ShapeError):
        held.copy_(t.ones(4))
