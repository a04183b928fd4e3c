"""Checkpoints written from one mesh and read on another."""

import numpy as np
import pytest

import tenfold as tn
import tenfold.distributed.checkpoint as dcp
from tenfold import nn
from tenfold.distributed.device_mesh import init_device_mesh
from tenfold.distributed.fsdp import fully_shard
from tenfold.distributed.tensor import Replicate, Shard, distribute_tensor


def trained(model, steps):
    optimizer = tn.optim.AdamW(model.parameters(), lr=0.01)
    go_on(model, optimizer, steps)
    return optimizer


def go_on(model, optimizer, steps):
    for _ in range(steps):
        optimizer.zero_grad()
        model(tn.ones(8, 8)).square().mean().backward()
        optimizer.step()


def model(seed=0):
    tn.manual_seed(seed)
    return nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 8))


def test_tensor_written_from_one_mesh_is_read_on_any_other(tmp_path):
    mesh = init_device_mesh("cpu", (2, 4), mesh_dim_names=("a", "b"))
    x = tn.arange(64.0).reshape(8, 8)
    dcp.save({"x": distribute_tensor(x, mesh, [Shard(1), Shard(0)]), "step": 3}, checkpoint_id=tmp_path)
    other = init_device_mesh("cpu", (8,))
    for target in (
        tn.zeros(8, 8),
        distribute_tensor(tn.zeros(8, 8), other, [Shard(0)]),
        distribute_tensor(tn.zeros(8, 8), mesh, [Replicate(), Shard(1)]),
    ):
        state = {"x": target, "step": 0}
        dcp.load(state, checkpoint_id=tmp_path)
        assert state["x"] is target and target.tolist() == x.tolist() and state["step"] == 3


def test_training_goes_on_from_a_checkpoint_on_another_mesh(tmp_path):
    whole = model()
    optimizer = trained(whole, 2)
    sharded = fully_shard(model(), mesh=init_device_mesh("cpu", (8,)))
    its_optimizer = trained(sharded, 2)
    dcp.save({"model": sharded, "optimizer": its_optimizer}, checkpoint_id=tmp_path)
    go_on(whole, optimizer, 2)
    fresh = fully_shard(model(seed=1), mesh=init_device_mesh("cpu", (2,)))
    its_optimizer = tn.optim.AdamW(fresh.parameters(), lr=0.5)
    dcp.load({"model": fresh, "optimizer": its_optimizer}, checkpoint_id=tmp_path)
    assert its_optimizer.param_groups[0]["lr"] == 0.01
    assert its_optimizer.state[fresh[0].weight]["exp_avg"].placements == (Shard(0),)
    go_on(fresh, its_optimizer, 2)
    for mine, theirs in zip(fresh.parameters(), whole.parameters(), strict=True):
        np.testing.assert_allclose(mine.detach().numpy(), theirs.detach().numpy(), rtol=1e-4, atol=1e-5)


def test_save_in_the_background_keeps_the_state_of_its_moment(tmp_path):
    x = distribute_tensor(tn.ones(8), init_device_mesh("cpu", (8,)), [Shard(0)])
    work = dcp.async_save({"x": x}, checkpoint_id=tmp_path)
    x.add_(1)
    work.result()
    state = {"x": tn.zeros(8)}
    dcp.load(state, checkpoint_id=tmp_path)
    assert state["x"].tolist() == [1.0] * 8 and x.tolist() == [2.0] * 8


def test_unfinished_save_leaves_the_last_checkpoint_whole(tmp_path, monkeypatch):
    from tenfold.distributed.checkpoint import writing

    dcp.save({"x": tn.ones(4)}, checkpoint_id=tmp_path)
    monkeypatch.setattr(writing, "to_json", lambda index: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        dcp.save({"x": tn.zeros(4)}, checkpoint_id=tmp_path)
    monkeypatch.undo()
    state = {"x": tn.zeros(4)}
    dcp.load(state, checkpoint_id=tmp_path)
    assert state["x"].tolist() == [1.0] * 4
    dcp.save({"x": tn.zeros(4)}, checkpoint_id=tmp_path)
    assert len(list(tmp_path.glob("parts-*"))) == 1


def test_what_does_not_fit_is_refused(tmp_path):
    dcp.save({"x": tn.ones(4)}, checkpoint_id=tmp_path)
    with pytest.raises(tn.FormatError, match="has no 'y'"):
        dcp.load({"y": tn.ones(4)}, checkpoint_id=tmp_path)
    with pytest.raises(tn.ShapeError, match="saved as"):
        dcp.load({"x": tn.ones(5)}, checkpoint_id=tmp_path)
    with pytest.raises(FileNotFoundError, match="no whole checkpoint"):
        dcp.load({"x": tn.ones(4)}, checkpoint_id=tmp_path / "elsewhere")
