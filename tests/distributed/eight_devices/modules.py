"""Modules over a mesh of eight devices: small ones, of which each way to shard them is compared with one
device. `training.py` trains a GPT."""

import re
from collections import Counter

import numpy as np
import pytest

import tenfold as tn
from tenfold import nn
from tenfold.distributed.checkpoint.state_dict import StateDictOptions, set_model_state_dict
from tenfold.distributed.device_mesh import init_device_mesh
from tenfold.distributed.fsdp import FSDPModule, MixedPrecisionPolicy, fully_shard
from tenfold.distributed.fsdp.fully_shard import bytes_of, whole_bytes
from tenfold.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor
from tenfold.distributed.tensor.parallel import (
    ColwiseParallel,
    RowwiseParallel,
    SequenceParallel,
    parallelize_module,
)
from tenfold.distributed.tensor.placement_types import _StridedShard

WIDTH = 16


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        return x + self.down(nn.functional.gelu(self.up(self.norm(x))))


def made():
    tn.manual_seed(0)
    return Net()


def trained(module, batch):
    """The losses of three steps, and the parameters after them."""
    optimizer = tn.optim.AdamW(module.parameters(), lr=0.01)
    losses = []
    for _ in range(3):
        optimizer.zero_grad()
        loss = (module(batch) - 1).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    state = [each for kept in optimizer.state.values() for each in kept.values() if each.ndim]
    return losses, [each.detach().numpy() for each in module.parameters()], [*module.parameters(), *state]


def batch():
    tn.manual_seed(1)
    return tn.randn(16, 8, WIDTH).eval()


def same(module, x):
    losses, parameters, state = trained(module, x)
    expected_losses, expected, _ = trained(made(), batch())
    np.testing.assert_allclose(losses, expected_losses, rtol=1e-6)
    for mine, theirs in zip(parameters, expected, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-4, atol=1e-5)
    return state


def collectives(module, x):
    text = tn.show(lambda each: module(each), x, stage="hlo")
    return Counter(re.findall(r"= \S+ ((?:all|reduce-scatter|collective)[a-z-]*)\(", text))


def test_fully_sharded_module_trains_as_on_one_device_and_holds_an_eighth():
    mesh = init_device_mesh("cpu", (8,))
    module = fully_shard(made(), mesh=mesh)
    assert isinstance(module, FSDPModule) and isinstance(module, Net)
    state = same(module, batch())  # a plain batch is split over the mesh
    assert all(each.placements == (Shard(0),) for each in state)
    assert bytes_of(state) <= 1.1 * whole_bytes(state) / 8
    assert collectives(module, distribute_tensor(batch(), mesh, [Shard(0)]))["all-gather"] == 6


def test_module_over_two_dimensions_is_copied_along_the_first_and_split_along_the_second():
    mesh = init_device_mesh("cpu", (2, 4), mesh_dim_names=("copies", "parts"))
    state = same(fully_shard(made(), mesh=mesh), batch())
    assert all(each.placements == (Replicate(), Shard(0)) for each in state)
    assert bytes_of(state) == whole_bytes(state) / 4
    with pytest.raises(tn.ArgumentError, match="a mesh of one dimension, or of two"):
        fully_shard(made(), mesh=init_device_mesh("cpu", (2, 2, 2)))


def test_distributed_data_parallel_over_a_mesh_trains_as_on_one_device():
    mesh = init_device_mesh("cpu", (8,))
    module = nn.parallel.DistributedDataParallel(made(), device_mesh=mesh)
    assert next(iter(module.state_dict())) == "module.norm.weight"
    same(module, batch())
    assert collectives(module, distribute_tensor(batch(), mesh, [Shard(0)])) == {}


def test_tensor_parallel_module_trains_as_on_one_device_with_one_all_reduce_forward():
    mesh = init_device_mesh("cpu", (8,), mesh_dim_names=("model",))
    plan = {"up": ColwiseParallel(), "down": RowwiseParallel()}
    module = parallelize_module(made(), mesh, plan)
    x = distribute_tensor(batch(), mesh, [Replicate()])
    same(module, x)
    assert module.up.weight.placements == (Shard(0),) and module.down.weight.placements == (Shard(1),)
    assert collectives(module, x) == {"all-reduce": 1}


def test_sequence_parallel_norm_splits_the_sequence():
    mesh = init_device_mesh("cpu", (8,), mesh_dim_names=("model",))
    norm = parallelize_module(nn.LayerNorm(WIDTH), mesh, SequenceParallel())
    x = distribute_tensor(batch(), mesh, [Replicate()])
    assert norm(x).placements == (Shard(1),)
    np.testing.assert_allclose(
        norm(x).detach().numpy(), nn.LayerNorm(WIDTH)(batch()).detach().numpy(), atol=1e-6
    )


def test_mixed_mesh_trains_as_on_one_device():
    mesh = init_device_mesh("cpu", (2, 4), mesh_dim_names=("data", "model"))
    plan = {"up": ColwiseParallel(), "down": RowwiseParallel()}
    module = fully_shard(parallelize_module(made(), mesh["model"], plan), mesh=mesh["data"])
    assert module.up.weight.placements == (_StridedShard(0, split_factor=4), Shard(0))
    same(module, distribute_tensor(batch(), mesh, [Shard(0), Replicate()]))


def test_parameters_are_gathered_in_the_policys_dtype():
    mesh = init_device_mesh("cpu", (8,))
    policy = MixedPrecisionPolicy(param_dtype=tn.bfloat16)
    module = fully_shard(made(), mesh=mesh, mp_policy=policy)
    result = module(batch())
    assert result.dtype is tn.bfloat16 and module.up.weight.dtype is tn.float32


def test_gradients_are_added_up_in_the_policys_dtype():
    mesh = init_device_mesh("cpu", (8,))
    slopes = {}
    for dtype in (tn.bfloat16, tn.float32):
        layer = nn.Linear(8, 8)
        policy = MixedPrecisionPolicy(param_dtype=tn.bfloat16, reduce_dtype=dtype)
        fully_shard(layer, mesh=mesh, mp_policy=policy)
        x = tn.ones(8, 8)
        x[0] = 256.0  # 256 + 7 is not a number of bfloat16
        layer(distribute_tensor(x, mesh, [Shard(0)])).sum().backward()
        assert layer.weight.grad.dtype is tn.float32 and layer.weight.grad.placements == (Shard(0),)
        slopes[dtype] = layer.weight.grad.full_tensor().unique().tolist(), layer.bias.grad.tolist()
    assert slopes == {tn.bfloat16: ([264.0], [8.0] * 8), tn.float32: ([263.0], [8.0] * 8)}


def test_batch_norm_keeps_its_dtype_under_a_policy():
    mesh = init_device_mesh("cpu", (8,))
    model = nn.Sequential(nn.Linear(8, 8), nn.BatchNorm1d(8), nn.Linear(8, 8))
    policy = MixedPrecisionPolicy(param_dtype=tn.bfloat16, reduce_dtype=tn.float32)
    fully_shard(model, mesh=mesh, mp_policy=policy)
    result = model(tn.linspace(-1, 1, 128).reshape(16, 8))
    result.float().square().sum().backward()
    assert result.dtype is tn.bfloat16 and model[1].running_mean.dtype is tn.float32
    assert all(each.grad.dtype is tn.float32 for each in model.parameters())
    assert model[1].running_var.ne(1).all()


def test_state_dict_of_a_sharded_module_loads_into_a_plain_one_and_back():
    module = fully_shard(made(), mesh=init_device_mesh("cpu", (8,)))
    plain = Net()
    plain.load_state_dict({name: each.full_tensor() for name, each in module.state_dict().items()})
    assert plain.up.weight.tolist() == module.up.weight.tolist()
    with tn.no_grad():
        plain.up.weight.add_(1)
    module.load_state_dict(plain.state_dict())
    assert plain.up.weight.tolist() == module.up.weight.tolist()
    assert module.up.weight.placements == (Shard(0),)


def test_mesh_of_one_device_is_the_plain_program():
    mesh = init_device_mesh("cpu", (1,))
    same(fully_shard(made(), mesh=mesh), batch())


def test_model_of_the_meta_device_is_sharded_before_it_has_data():
    mesh = init_device_mesh("cpu", (8,))
    with tn.device("meta"):
        model = fully_shard(nn.Linear(WIDTH, 2 * WIDTH), mesh=mesh)
    assert isinstance(model.weight, DTensor) and model.weight.placements == (Shard(0),)
    assert model.state_dict()["weight"].device_mesh == mesh
    tn.manual_seed(0)
    model.to_empty(device="cpu").reset_parameters()
    assert [tuple(shard.shape) for shard in model.weight.local_shards()] == [(4, WIDTH)] * 8
    tn.manual_seed(0)
    np.testing.assert_array_equal(
        model.weight.detach().numpy(), nn.Linear(WIDTH, 2 * WIDTH).weight.detach().numpy()
    )


def test_whole_state_is_loaded_into_a_model_of_the_meta_device():
    plain = nn.Linear(WIDTH, 2 * WIDTH)
    with tn.device("meta"):
        model = fully_shard(nn.Linear(WIDTH, 2 * WIDTH), mesh=init_device_mesh("cpu", (8,)))
    options = StateDictOptions(full_state_dict=True, broadcast_from_rank0=True)
    set_model_state_dict(model, plain.state_dict(), options=options)
    assert model.weight.placements == (Shard(0),)
    np.testing.assert_array_equal(model.weight.detach().numpy(), plain.weight.detach().numpy())
