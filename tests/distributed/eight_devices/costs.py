"""Collectives in compiled training steps, beside what `docs/scaling.md` says of them."""

from collections import Counter

import pytest

import tenfold as tn
from tenfold import nn
from tenfold.distributed import costs
from tenfold.distributed.device_mesh import init_device_mesh
from tenfold.distributed.fsdp import fully_shard
from tenfold.distributed.tensor import Replicate, Shard, distribute_module, distribute_tensor
from tenfold.distributed.tensor.parallel import (
    ColwiseParallel,
    RowwiseParallel,
    loss_parallel,
    parallelize_module,
)
from tests.distributed import gpt

WIDTH, TOKENS = 16, 64


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        return x + self.down(nn.functional.gelu(self.up(x)))


def bytes_of_step(module, mesh, placement):
    """The bytes of each kind of collective in a step of training, and of the parameters."""
    found = Counter()
    for each in collectives_of_step(module, mesh, [placement]):
        assert each.devices == mesh.size()
        found[each.kind] += each.bytes
    return found, [each.numel() * 4 for each in module.parameters()]


def collectives_of_step(module, mesh, placements):
    optimizer = tn.optim.SGD(module.parameters(), lr=0.1)

    def step(x):
        optimizer.zero_grad()
        module(x).square().mean().backward()
        optimizer.step()

    x = distribute_tensor(tn.ones(TOKENS, WIDTH), mesh, placements)
    return costs.collectives(tn.show(step, x, stage="hlo"), mesh.size())


def model():
    return nn.Sequential(Block(), Block())


@pytest.mark.parametrize("devices", [2, 4, 8])
def test_data_parallel_step_all_reduces_the_gradients(devices):
    mesh = init_device_mesh("cpu", (devices,))
    found, parameters = bytes_of_step(distribute_module(model(), mesh), mesh, Shard(0))
    assert found == costs.data_parallel(parameters)


@pytest.mark.parametrize("devices", [2, 4, 8])
def test_fully_sharded_step_gathers_parameters_and_scatters_gradients(devices):
    mesh = init_device_mesh("cpu", (devices,))
    found, parameters = bytes_of_step(fully_shard(model(), mesh=mesh), mesh, Shard(0))
    assert found == costs.fully_sharded(parameters, devices)


@pytest.mark.parametrize("shape", [(2, 4), (4, 2)])
def test_hybrid_step_adds_up_the_scattered_gradients_of_the_copies(shape):
    mesh, module = init_device_mesh("cpu", shape), model()
    sent = Counter()
    for each in collectives_of_step(fully_shard(module, mesh=mesh), mesh, [Shard(0), Shard(0)]):
        assert each.devices == shape[0 if each.kind == "all-reduce" else 1]
        sent[each.kind] += each.bytes
    assert sent == costs.hybrid_sharded([each.numel() * 4 for each in module.parameters()], shape[1])


def test_fully_sharded_gpt_gathers_parameters_and_scatters_gradients(monkeypatch):
    monkeypatch.setattr(gpt, "LAYERS", 1)
    model = gpt.GPT()
    mesh, placements = gpt.prepared("fully sharded", model)

    def step(x):
        nn.functional.cross_entropy(model(x).flatten(0, 1), x.flatten()).backward()
        return [each.grad for each in model.parameters()]

    x = distribute_tensor(tn.zeros(gpt.BATCH, gpt.LENGTH, dtype=tn.int64), mesh, placements)
    sent = Counter()
    for each in costs.collectives(tn.show(step, x, stage="hlo"), mesh.size()):
        sent[each.kind] += each.bytes if each.bytes > 4 else 0  # the loss, and whether indices are in range
    assert +sent == costs.fully_sharded([each.numel() * 4 for each in model.parameters()], 8)


@pytest.mark.parametrize("devices", [2, 4, 8])
def test_tensor_parallel_block_all_reduces_twice(devices):
    mesh = init_device_mesh("cpu", (devices,), mesh_dim_names=("model",))
    plan = {"*.up": ColwiseParallel(), "*.down": RowwiseParallel()}
    found, _ = bytes_of_step(parallelize_module(model(), mesh, plan), mesh, Replicate())
    # An MLP is half of a block: one forward, one backward; but the first block's input has no gradient.
    assert found == {"all-reduce": 3 * TOKENS * WIDTH * 4}


@pytest.mark.parametrize("layers", [1, 2])
def test_tensor_parallel_gpt_all_reduces_twice_a_block_and_pass(layers, monkeypatch):
    monkeypatch.setattr(gpt, "LAYERS", layers)
    model = gpt.GPT()
    mesh, placements = gpt.prepared("tensor", model)
    index = tn.zeros(gpt.BATCH, gpt.LENGTH, dtype=tn.int64)

    def step(x):
        logits = model(x)
        nn.functional.cross_entropy(logits.flatten(0, 1), x.flatten()).backward()
        return [each.grad for each in model.parameters()]

    x = distribute_tensor(index, mesh, placements)
    found = costs.collectives(tn.show(step, x, stage="hlo"), mesh.size())
    assert [each.kind for each in found] == ["all-reduce"] * 4 * layers
    expected = costs.tensor_parallel(layers, gpt.BATCH * gpt.LENGTH, gpt.WIDTH)
    assert sum(each.bytes for each in found) == expected["all-reduce"]


def test_loss_of_logits_that_are_split_over_classes_gathers_none():
    mesh, logits, labels = init_device_mesh("cpu", (8,)), tn.randn(6, 32), tn.arange(6)
    split = distribute_tensor(logits, mesh, [Shard(1)]).requires_grad_()

    def gradient(x):
        with loss_parallel():
            return tn.autograd.grad(nn.functional.cross_entropy(x, labels), x)

    found = costs.collectives(tn.show(gradient, split, stage="hlo"), 8)
    assert found and all(each.kind == "all-reduce" and each.bytes <= 6 * 4 for each in found)
    loss = nn.functional.cross_entropy(split, labels).item()
    assert loss == pytest.approx(nn.functional.cross_entropy(logits, labels).item(), rel=1e-6)


def test_mesh_of_one_device_has_no_collectives():
    mesh = init_device_mesh("cpu", (1,))
    assert bytes_of_step(fully_shard(model(), mesh=mesh), mesh, Shard(0))[0] == {}


def test_bytes_sent_follow_the_ring():
    assert costs.Collective("all-reduce", 800, 8).sent == 1400
    assert costs.Collective("all-gather", 800, 8).sent == 700
    assert costs.Collective("reduce-scatter", 100, 8).sent == 700
