"""Tensors that the devices of a mesh do not divide: parts as `torch.chunk` makes them. Here their padding has
NaN, which spoils every result that it gets into."""

import copy

import numpy as np
import pytest
import torch

import tenfold as tn
import tenfold.distributed.checkpoint as dcp
from tenfold import nn
from tenfold.distributed.device_mesh import init_device_mesh
from tenfold.distributed.fsdp import fully_shard
from tenfold.distributed.fsdp.fully_shard import bytes_of, whole_bytes
from tenfold.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_tensor
from tenfold.distributed.tensor.placement_types import _StridedShard
from tenfold.engines import sharded
from tests.distributed.uneven_rows import spoiled

MESH = init_device_mesh("cpu", (8,))
X = tn.arange(50.0).reshape(10, 5)
F = nn.functional


@pytest.fixture(autouse=True)
def nan_in_padding(monkeypatch):
    monkeypatch.setattr(sharded, "_filled_up", spoiled)


@pytest.mark.parametrize("extent", [1, 7, 8, 9, 10, 17, 63])
def test_parts_are_those_of_torch_chunk(extent):
    x = distribute_tensor(tn.arange(float(extent)), MESH, [Shard(0)])
    parts = [each.tolist() for each in torch.arange(float(extent)).chunk(8)]
    assert [each.tolist() for each in x.local_shards()] == parts + [[]] * (8 - len(parts))
    assert x.to_local().tolist() == x.full_tensor().tolist() == x.tolist() == list(range(extent))
    assert tuple(x.shape) == (extent,) and x.placements == (Shard(0),)


def test_results_are_split_as_their_operands():
    x = distribute_tensor(X, MESH, [Shard(0)])
    y = (x * 2).tanh()
    assert y.placements == (Shard(0),) and y.tolist() == (X * 2).tanh().tolist()
    assert [len(each) for each in y.local_shards()] == [2] * 5 + [0] * 3
    assert x.sum(0).tolist() == X.sum(0).tolist() and x.amax().item() == 49.0
    np.testing.assert_allclose((x @ x.T).numpy(), (X @ X.T).numpy(), rtol=1e-6)
    np.testing.assert_allclose((x.T @ x).numpy(), (X.T @ X).numpy(), rtol=1e-6)
    assert x.sort(0, descending=True).values.tolist() == X.flip(0).tolist()
    assert x[tn.tensor([9, 0, 3])].tolist() == X[tn.tensor([9, 0, 3])].tolist()
    assert tn.cat([x, x]).tolist() == tn.cat([X, X]).tolist()
    assert x.reshape(5, 10).softmax(1).tolist() == X.reshape(5, 10).softmax(1).tolist()
    x.add_(1)
    assert x.placements == (Shard(0),) and x.tolist() == (X + 1).tolist()


def test_redistribute_to_and_from_uneven_parts():
    mesh = init_device_mesh("cpu", (2, 4))
    x = distribute_tensor(X, mesh, [Shard(0), Shard(1)])
    for placements in (
        [Shard(1), Shard(0)],
        [Replicate(), Shard(0)],
        [Shard(0), Shard(0)],
        [Replicate()] * 2,
    ):
        moved = x.redistribute(mesh, placements)
        assert moved.tolist() == X.tolist() and moved.placements == tuple(placements)
    assert (
        tn.compile(lambda t: t.redistribute(mesh, [Shard(1), Shard(0)]) + 1)(x).tolist() == (X + 1).tolist()
    )


@pytest.mark.parametrize("extent", [3, 5, 9, 10, 12, 16])
def test_each_dimension_of_a_mesh_splits_what_the_one_before_has_left(extent):
    mesh = init_device_mesh("cpu", (2, 4))
    plain = tn.arange(2.0 * extent).reshape(extent, 2)
    x = distribute_tensor(plain, mesh, [Shard(0), Shard(0)])
    parts = []
    for half in torch.arange(2.0 * extent).reshape(extent, 2).chunk(2):
        quarters = [each.tolist() for each in half.chunk(4)]
        parts += quarters + [[]] * (4 - len(quarters))
    assert [each.tolist() for each in x.local_shards()] == parts
    assert x.tolist() == x.full_tensor().tolist() == plain.tolist()
    y = (x * 2).exp().redistribute(mesh, [Shard(0), Replicate()])
    assert y.tolist() == (plain * 2).exp().tolist()
    assert x.sum(0).tolist() == plain.sum(0).tolist() and x.amax().item() == 2 * extent - 1
    np.testing.assert_allclose((x.T @ x).numpy(), (plain.T @ plain).numpy(), rtol=1e-6)
    np.testing.assert_allclose((x @ x.T).numpy(), (plain @ plain.T).numpy(), rtol=1e-6)
    assert x.flip(0).tolist() == plain.flip(0).tolist()
    moved = distribute_tensor(plain, mesh, [Replicate(), Shard(0)]).redistribute(mesh, [Shard(0), Shard(0)])
    assert [each.tolist() for each in moved.local_shards()] == parts


def test_strided_parts_are_those_of_a_dimension_that_was_split_before():
    mesh = init_device_mesh("cpu", (2, 4))
    placements = (_StridedShard(0, split_factor=4), Shard(0))
    x = distribute_tensor(tn.arange(16.0), mesh, placements)
    assert x.placements == placements and (x + 1).placements == placements
    assert [each.tolist() for each in x.local_shards()][:2] == [[0.0, 1.0], [4.0, 5.0]]
    odd = distribute_tensor(tn.arange(10.0), mesh, placements)
    assert odd.tolist() == list(range(10)) and [len(each) for each in odd.local_shards()] == [
        *(2, 2, 2, 1),
        *(1, 1, 1, 0),
    ]
    with pytest.raises(tn.ArgumentError, match="do not make 3 parts"):
        distribute_tensor(tn.arange(16.0), mesh, (_StridedShard(0, split_factor=3), Shard(0)))


def test_parts_given_by_the_process_are_put_together():
    x = DTensor.from_local(X.clone().requires_grad_(), MESH, [Shard(0)])
    assert x.tolist() == X.tolist() and x.placements == (Shard(0),)
    plain = X.clone().requires_grad_()
    (DTensor.from_local(plain, MESH, [Shard(0)], shape=(10, 5)).to_local() ** 2).sum().backward()
    assert plain.grad.tolist() == (2 * X).tolist()
    mesh = init_device_mesh("cpu", (2, 4))
    for dim in (0, 1, -1, -2):
        assert DTensor.from_local(X, mesh, [Partial(), Shard(dim)]).tolist() == (2 * X).tolist()
    with pytest.raises(tn.ShapeError, match=r"this process's part of \[10, 5\] is \[10, 5\], and \[9, 5\]"):
        DTensor.from_local(X[:9], MESH, [Shard(0)], shape=(10, 5))


class Net(nn.Module):
    """Sizes as those of real models: a vocabulary and biases that no number of devices divides."""

    def __init__(self):
        super().__init__()
        self.tokens, self.norm = nn.Embedding(67, 13), nn.LayerNorm(13)
        self.up, self.head = nn.Linear(13, 21), nn.Linear(21, 67)
        self.scale = nn.Parameter(tn.tensor(1.5))

    def forward(self, index):
        return self.head(F.gelu(self.up(self.norm(self.tokens(index)))) * self.scale)


def trained(model, optimizer, mesh, steps=3, batch=11):
    def step(x, y):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        return loss

    step = tn.compile(step)
    losses = []
    for i in range(steps):
        rows = tn.from_numpy(np.random.default_rng(i).integers(0, 67, (2, batch)))
        x, y = rows if mesh is None else [distribute_tensor(row.clone(), mesh, [Shard(0)]) for row in rows]
        losses.append(step(x, y).item())
    return losses


def optimizer_of(model):
    return tn.optim.AdamW(model.parameters(), lr=0.01, eps=1e-3)


def same_parameters(sharded_model, plain):
    for mine, theirs in zip(sharded_model.parameters(), plain.parameters(), strict=True):
        np.testing.assert_allclose(mine.detach().numpy(), theirs.detach().numpy(), atol=1e-5)


def test_fully_sharded_model_of_odd_sizes_trains_as_on_one_device(tmp_path):
    tn.manual_seed(0)
    plain = Net()
    model = fully_shard(copy.deepcopy(plain), mesh=MESH)
    assert all(each.placements == (Shard(0),) for each in model.parameters() if each.ndim)
    expected_optimizer, optimizer = optimizer_of(plain), optimizer_of(model)
    expected = trained(plain, expected_optimizer, None)
    np.testing.assert_allclose(trained(model, optimizer, MESH), expected, rtol=1e-5)
    same_parameters(model, plain)
    weights = [model.tokens.weight, model.head.weight]
    kept = [*weights, *[optimizer.state[each]["exp_avg"] for each in weights]]
    assert all(each.placements == (Shard(0),) for each in kept)
    assert bytes_of(kept) == 9 / 67 * whole_bytes(kept)
    # What was saved by eight devices is read by three, and by a single process.
    dcp.save({"model": model, "optimizer": optimizer}, checkpoint_id=tmp_path)
    mesh = init_device_mesh("cpu", (3,))
    fewer, alone = fully_shard(Net(), mesh=mesh), Net()
    its_optimizer = optimizer_of(fewer)
    dcp.load({"model": fewer, "optimizer": its_optimizer}, checkpoint_id=tmp_path)
    dcp.load({"model": alone}, checkpoint_id=tmp_path)
    same_parameters(model, alone)
    trained(fewer, its_optimizer, mesh)
    trained(plain, expected_optimizer, None)
    same_parameters(fewer, plain)


def test_batch_that_the_devices_do_not_divide_counts_each_example_once():
    tn.manual_seed(0)
    plain = nn.Sequential(nn.Linear(5, 4), nn.BatchNorm1d(4), nn.Linear(4, 3))
    model = fully_shard(copy.deepcopy(plain), mesh=MESH)
    for module in (plain, model):
        module(X).square().mean().backward()
    for mine, theirs in zip(model.parameters(), plain.parameters(), strict=True):
        np.testing.assert_allclose(mine.grad.numpy(), theirs.grad.numpy(), atol=1e-5)
    np.testing.assert_allclose(model[1].running_var.numpy(), plain[1].running_var.numpy(), rtol=1e-5)
    data = tn.data.TensorDataset(X, tn.arange(10))
    batches = list(tn.data.DataLoader(data, batch_size=6, device=MESH))
    assert [labels.tolist() for _, labels in batches] == [[0, 1, 2, 3, 4, 5], [6, 7, 8, 9]]


def test_rows_of_a_tensor_that_is_split_evenly_are_scattered():
    x = distribute_tensor(tn.arange(64.0).reshape(16, 4), MESH, [Shard(0)]).requires_grad_()
    index = tn.arange(20).reshape(5, 4) % 16
    assert (
        tn.zeros(16, 4).scatter_add(0, index, x.detach()[:5]).tolist()
        == tn.zeros(16, 4).scatter_add(0, index, tn.arange(20.0).reshape(5, 4)).tolist()
    )
    (slope,) = tn.autograd.grad(x.topk(3, 0).values.sum(), x)
    assert slope.sum(1).tolist() == [0.0] * 13 + [4.0] * 3

    def step(rows, i):
        return rows.scatter_add(0, (rows[:5] + i).long() % 16, rows[:5]), i

    plain, split = (
        tn.func.scan(step, each, tn.arange(3.0))[0] for each in (x.detach().full_tensor(), x.detach())
    )
    assert split.tolist() == plain.tolist()


def test_code_for_one_device_takes_even_parts():
    with pytest.raises(tn.ShapeError, match="dimension 0 of size 10 cannot be split evenly over 8 devices"):
        tn.func.shard_map(lambda part: part, MESH, ([Shard(0)],), [Shard(0)])(X)


def test_arrays_without_elements_are_split_in_their_other_dimensions():
    x = distribute_tensor(tn.ones(10, 0), MESH, [Shard(0)])
    y = (x * 2 + 1).eval()
    assert y.placements == (Shard(0),) and y.full_tensor().shape == (10, 0) and y.sum().item() == 0
    assert (y @ tn.ones(0, 3)).full_tensor().tolist() == [[0.0] * 3] * 10
