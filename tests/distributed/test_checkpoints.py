"""Checkpoints of one process, and state dicts by the names of parameters."""

import json
import os

import numpy as np
import pytest

import tenfold as tn
import tenfold.distributed.checkpoint as dcp
from tenfold import nn
from tenfold.distributed.checkpoint.state_dict import (
    StateDictOptions,
    get_model_state_dict,
    get_optimizer_state_dict,
    get_state_dict,
    set_optimizer_state_dict,
    set_state_dict,
)


def stepped(model, *groups):
    optimizer = tn.optim.AdamW(groups or model.parameters(), lr=0.01)
    model(tn.ones(2, 3)).square().sum().backward()
    optimizer.step()
    return optimizer


def test_two_parts_of_one_name_are_refused(tmp_path):
    with pytest.raises(tn.ArgumentError, match="two parts of the state have the name 'a.b'"):
        dcp.save({"a.b": tn.ones(2), "a": {"b": tn.zeros(2)}}, checkpoint_id=tmp_path)
    with pytest.raises(tn.ArgumentError, match="two parts of the state have the name '1'"):
        dcp.save({"1": 2, 1: 3}, checkpoint_id=tmp_path)


def test_part_of_one_tensor_is_not_taken_for_another_tensor(tmp_path):
    dcp.save({"x": tn.ones(2), "x@0": tn.tensor(5.0)}, checkpoint_id=tmp_path)
    state = {"x": tn.zeros(2), "x@0": tn.tensor(0.0)}
    dcp.load(state, checkpoint_id=tmp_path)
    assert state["x"].tolist() == [1.0, 1.0] and state["x@0"].item() == 5.0


PART = {"file": "parts.safetensors", "name": "x@0", "start": [0], "shape": [2]}
HOSTILE = {
    "no dict": [],
    "deep": None,
    "a tensor that is none": {"tensors": {"x": 1}, "values": {}},
    "values that are none": {"tensors": {}, "values": 3},
    "a file of another folder": {**PART, "file": "../parts.safetensors"},
    "a file without a name": {**PART, "file": 3},
    "a place that is none": {**PART, "start": ["0"]},
    "a place before the tensor": {**PART, "start": [-1]},
    "a place beyond the tensor": {**PART, "start": [1]},
    "another rank": {**PART, "start": [0, 0], "shape": [2, 1]},
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_index_is_refused(tmp_path, name):
    told = HOSTILE[name]
    if isinstance(told, dict) and "file" in told:
        told = {"tensors": {"x": {"dtype": "float32", "shape": [2], "parts": [told]}}, "values": {}}
    (tmp_path / "index.json").write_text("[" * 100_000 if told is None else json.dumps(told))
    with pytest.raises(tn.FormatError, match="is no index of a checkpoint"):
        dcp.load({"x": tn.zeros(2)}, checkpoint_id=tmp_path)


@pytest.mark.parametrize("contents", [b"\xff", b"[" * 100_000, b"9" * 100_000, b"null", b""])
def test_what_is_no_index_is_refused(tmp_path, contents):
    (tmp_path / "index.json").write_bytes(contents)
    with pytest.raises(tn.FormatError, match="is no index of a checkpoint"):
        dcp.load({"x": tn.zeros(2)}, checkpoint_id=tmp_path)


@pytest.mark.parametrize("name", ["index.json", "parts.safetensors"])
@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir, lambda path: os.symlink("/dev/zero", path)])
def test_what_is_no_regular_file_is_not_waited_for(tmp_path, name, make):
    told = {"tensors": {"x": {"dtype": "float32", "shape": [2], "parts": [PART]}}, "values": {}}
    (tmp_path / "index.json").write_text(json.dumps(told))
    (tmp_path / name).unlink(missing_ok=True)
    make(tmp_path / name)
    with pytest.raises(tn.FormatError, match="regular file|Is a directory"):
        dcp.load({"x": tn.zeros(2)}, checkpoint_id=tmp_path)


@pytest.mark.parametrize(
    "header", [b"[" * 100_000, b'{"x@0": {"dtype": "F32", "shape": [2.5]}}', b"\xff", b"3"]
)
def test_hostile_parts_are_refused(tmp_path, header):
    told = {"tensors": {"x": {"dtype": "float32", "shape": [2], "parts": [PART]}}, "values": {}}
    (tmp_path / "index.json").write_text(json.dumps(told))
    (tmp_path / "parts.safetensors").write_bytes(len(header).to_bytes(8, "little") + header + bytes(8))
    with pytest.raises(tn.FormatError, match="is no whole safetensors file"):
        dcp.load({"x": tn.zeros(2)}, checkpoint_id=tmp_path)


@pytest.mark.parametrize("dtype", ["bool", "bfloat16", "float8_e5m2", "int64", "complex64"])
def test_every_dtype_comes_back(tmp_path, dtype):
    x = tn.tensor([[0.0, 1.0, 2.0]]).to(getattr(tn, dtype))
    dcp.save({"x": x, "empty": x[:0]}, checkpoint_id=tmp_path)
    state = {"x": tn.zeros_like(x), "empty": x[:0]}
    dcp.load(state, checkpoint_id=tmp_path)
    np.testing.assert_array_equal(state["x"].numpy(), x.numpy())


def test_optimizer_state_is_by_the_names_of_parameters():
    model = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 2))
    bias = {"params": [model[0].bias, model[1].bias], "lr": 0.5}
    optimizer = stepped(model, bias, {"params": [model[0].weight, model[1].weight]})
    state = get_optimizer_state_dict(model, optimizer)
    assert set(state["state"]) == {"0.weight", "0.bias", "1.weight", "1.bias"}
    assert [each["params"] for each in state["param_groups"]] == [
        ["0.bias", "1.bias"],
        ["0.weight", "1.weight"],
    ]
    # They are loaded by name, whatever their order is.
    other = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 2))
    fresh = tn.optim.AdamW(
        [{"params": [other[1].weight, other[0].weight]}, {"params": [other[1].bias, other[0].bias]}], lr=0.1
    )
    set_optimizer_state_dict(other, fresh, state)
    assert [each["lr"] for each in fresh.param_groups] == [0.01, 0.5]
    for mine, theirs in zip(other.parameters(), model.parameters(), strict=True):
        assert fresh.state[mine]["exp_avg"].tolist() == optimizer.state[theirs]["exp_avg"].tolist()
        assert fresh.state[mine]["step"].item() == 1


def test_state_dicts_of_wrapped_models_have_the_models_own_names(tmp_path):
    model = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 2))
    optimizer = stepped(model)
    wrapped = tn.compile(model)
    weights, state = get_state_dict(wrapped, optimizer)
    assert set(weights) == set(state["state"]) == {"0.weight", "0.bias", "1.weight", "1.bias"}
    dcp.save({"model": weights, "optimizer": state}, checkpoint_id=tmp_path)
    other = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 2))
    fresh = tn.optim.AdamW(other.parameters(), lr=0.5)
    weights, state = get_state_dict(other, fresh)
    loaded = {"model": weights, "optimizer": state}
    dcp.load(loaded, checkpoint_id=tmp_path)
    set_state_dict(other, fresh, model_state_dict=loaded["model"], optim_state_dict=loaded["optimizer"])
    assert fresh.param_groups[0]["lr"] == 0.01
    assert other[0].weight.tolist() == model[0].weight.tolist()
    assert fresh.state[other[0].weight]["exp_avg"].tolist() == state["state"]["0.weight"]["exp_avg"].tolist()


def test_options_of_state_dicts_are_heeded_or_refused():
    model = nn.Linear(3, 4)
    model.bias.requires_grad_(False)
    options = StateDictOptions(ignore_frozen_params=True)
    assert list(get_model_state_dict(model, options=options)) == ["weight"]
    with pytest.raises(tn.UnsupportedError, match="flatten_optimizer_state_dict is not supported"):
        StateDictOptions(flatten_optimizer_state_dict=True)
    with pytest.raises(tn.ArgumentError, match="options are StateDictOptions"):
        get_model_state_dict(model, options={"full_state_dict": True})
    with pytest.raises(TypeError):
        get_model_state_dict(model, full_state_dict=True)
    optimizer = tn.optim.SGD([tn.ones(2, requires_grad=True)], lr=0.1)
    with pytest.raises(tn.ArgumentError, match="a parameter of shape .2. that the model does not have"):
        get_optimizer_state_dict(model, optimizer)
