"""Eager-mode quantization: a converted model gives PyTorch's integers."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.ao.quantization

import tenfold as tn
from tenfold.nn import quantization

RANDOM = np.random.RandomState(0)
WEIGHTS = [0.3 * RANDOM.randn(*shape).astype("float32") for shape in ((8, 16), (8,), (4, 8), (4,))]
DATA = RANDOM.uniform(-1, 1, (32, 5, 16)).astype("float32")


def converted(t, q, config, factor=1):
    """A small network, its weights times a factor, quantized by what it saw of the data."""
    bounded = t.nn.Tanh if config == "default_qconfig" else t.nn.Sigmoid
    layers = t.nn.Linear(16, 8), t.nn.ReLU(), t.nn.Dropout(), t.nn.Linear(8, 4), bounded()
    model = q.QuantWrapper(t.nn.Sequential(*layers))
    with t.no_grad():
        for parameter, value in zip(model.parameters(), WEIGHTS):
            parameter.copy_(t.tensor(factor * value))
    model.eval()
    model.qconfig = getattr(q, config)
    prepared = q.prepare(model)
    for batch in DATA:
        prepared(t.tensor(batch))
    return q.convert(prepared)


@pytest.mark.parametrize("config", ["default_qconfig", "default_per_channel_qconfig"])
def test_a_converted_model_gives_pytorchs_numbers(config):
    ours, theirs = converted(tn, quantization, config), converted(torch, torch.ao.quantization, config)
    for batch in DATA[:4]:
        result, expected = ours(tn.tensor(batch)).numpy(), theirs(torch.tensor(batch)).numpy()
        assert len(np.unique(expected)) > 8
        np.testing.assert_allclose(result, expected, atol=1e-6)
    first, expected = ours.module[0], theirs.module[0]
    assert first.zero_point == expected.zero_point
    np.testing.assert_allclose(first.scale, expected.scale, rtol=1e-6)
    np.testing.assert_array_equal(first.weight().int_repr().numpy(), expected.weight().int_repr().numpy())


def test_stubs_pass_everything_on_until_then():
    x = tn.tensor([0.3, -0.2])
    assert quantization.QuantStub()(x) is x and quantization.DeQuantStub()(x) is x
    assert (quantization.FloatFunctional().add_relu(x, x) == tn.tensor([0.6, 0.0])).all()


def test_observers_that_are_not_there_are_refused():
    with pytest.raises(tn.UnsupportedError, match="histogram"):
        quantization.get_default_qconfig("x86")


@pytest.mark.parametrize("config", ["default_qconfig", "default_per_channel_qconfig"])
def test_a_loaded_state_gives_the_saved_models_numbers(config):
    saved, loaded = (converted(tn, quantization, config, factor) for factor in (1, -2))
    x = tn.tensor(DATA[0])
    expected = saved(x).numpy()
    assert not np.array_equal(loaded(x).numpy(), expected)
    loaded.load_state_dict(saved.state_dict())
    np.testing.assert_array_equal(loaded(x).numpy(), expected)
    weight = saved.module[0].weight().dequantize().numpy()
    np.testing.assert_array_equal(loaded.module[0].weight().dequantize().numpy(), weight)


def test_a_state_without_the_weight_is_refused():
    model = converted(tn, quantization, "default_qconfig")
    state = model.state_dict()
    del state["module.0._weight"]
    with pytest.raises(RuntimeError, match="Missing key.*module.0._weight"):
        model.load_state_dict(state)


@pytest.mark.parametrize("axis", [0, 1, 2, -1, -2])
def test_an_observer_of_channels_gives_pytorchs_scales(axis):
    pairs = []
    for t, q in ((tn, quantization), (torch, torch.ao.quantization)):
        observer = q.PerChannelMinMaxObserver(ch_axis=axis)
        observer(t.tensor(DATA))
        pairs.append(observer.calculate_qparams())
    for result, expected in zip(*pairs):
        np.testing.assert_allclose(result.numpy(), expected.numpy(), rtol=1e-6)


def test_channels_along_a_dimension_that_is_not_there_are_refused():
    with pytest.raises(IndexError, match="ch_axis 2 is out of range for 2 dimensions"):
        quantization.PerChannelMinMaxObserver(ch_axis=2)(tn.ones(2, 3))


def test_scales_for_each_input_of_a_linear_layer_are_refused():
    observer = quantization.PerChannelMinMaxObserver.with_args(dtype=tn.qint8, ch_axis=-1)
    model = quantization.QuantWrapper(tn.nn.Linear(3, 2))
    model.qconfig = quantization.QConfig(quantization.default_observer, observer)
    prepared = quantization.prepare(model)
    prepared(tn.ones(1, 3))
    with pytest.raises(tn.UnsupportedError, match="no scales along dimension 1"):
        quantization.convert(prepared)


def test_unknown_options_are_refused():
    model = tn.nn.Sequential(tn.nn.Linear(2, 2))
    for call in (
        quantization.MinMaxObserver,
        quantization.PerChannelMinMaxObserver,
        lambda **options: quantization.prepare(model, **options),
        lambda **options: quantization.convert(model, **options),
    ):
        with pytest.raises(TypeError, match="nonsense"):
            call(nonsense=3)


def test_options_that_are_not_there_are_refused():
    model = tn.nn.Sequential(tn.nn.Linear(2, 2))
    with pytest.raises(tn.UnsupportedError, match="mapping"):
        quantization.convert(model, mapping={tn.nn.Linear: tn.nn.Identity})
    with pytest.raises(tn.UnsupportedError, match="allow_list"):
        quantization.prepare(model, allow_list=set())
    with pytest.raises(tn.UnsupportedError, match="is_dynamic"):
        quantization.MinMaxObserver(is_dynamic=True)


@pytest.mark.parametrize("layer", [quantization.FloatFunctional(), tn.nn.Conv2d(3, 2, 1)])
def test_layers_without_a_quantized_form_are_refused(layer):
    model = quantization.QuantWrapper(tn.nn.Sequential(layer))
    quantization.prepare(model)
    model.qconfig = quantization.default_qconfig
    for change in (quantization.prepare, quantization.convert):
        with pytest.raises(tn.UnsupportedError, match=f"{type(layer).__name__} has .* at 'module.0'"):
            change(model)


@pytest.mark.parametrize("remove", [True, False])
def test_convert_removes_the_qconfig_as_pytorch_does(remove):
    for t, q in ((tn, quantization), (torch, torch.ao.quantization)):
        model = q.QuantWrapper(t.nn.Linear(3, 2)).eval()
        model.qconfig = q.default_qconfig
        prepared = q.prepare(model)
        prepared(t.ones(1, 3))
        assert hasattr(q.convert(prepared, remove_qconfig=remove), "qconfig") != remove
