"""A mesh of CUDA devices. One device is enough for most of it; what needs two says so."""

from collections import Counter

import pytest

import tenfold as tn
import tenfold.distributed as dist
from tenfold import nn
from tenfold.distributed import costs
from tenfold.distributed._functional_collectives import all_reduce
from tenfold.distributed.device_mesh import init_device_mesh
from tenfold.distributed.fsdp import fully_shard
from tenfold.distributed.tensor import Shard, distribute_tensor
from tests.distributed import gpt

pytestmark = pytest.mark.skipif(not tn.cuda.is_available(), reason="there is no CUDA device")
two_devices = pytest.mark.skipif("tn.cuda.device_count() < 2", reason="it needs two CUDA devices")
COUNTS = [1, pytest.param(2, marks=two_devices)]


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("way", ["data", "fully sharded", "tensor", "mixed"])
def test_gpt_trains_on_a_cuda_mesh_as_on_one_device(way, count, monkeypatch):
    monkeypatch.setattr(gpt, "LAYERS", 1)
    share = gpt.compare(f"{count}x1" if way == "mixed" else way, platform="cuda", devices=count)
    if way == "fully sharded":
        assert share <= 1.1 / count


def test_tensor_on_a_cuda_mesh_computes_and_shows_its_sharding():
    mesh = init_device_mesh("cuda", (1,), mesh_dim_names=("data",))
    x = distribute_tensor(tn.ones(4, 4), mesh, [Shard(0)])
    assert (x @ x).sum().item() == 64.0 and x.full_tensor().device.type == "cuda"
    assert "[{data}, {}]" in (x + 1).show(stage="sharding")
    step = tn.compile(lambda t: (t * 2).sum(0))
    assert step(x).tolist() == [8.0] * 4


def test_group_of_one_process_works_over_nccl():
    dist.init_process_group("nccl", rank=0, world_size=1)
    try:
        x = tn.arange(4.0, device="cuda")
        dist.all_reduce(x)
        assert dist.get_backend() == "nccl" and x.device.type == "cuda" and x.tolist() == [0, 1, 2, 3]
        model = fully_shard(nn.Linear(4, 4).to("cuda"))
        model(x.reshape(1, 4)).sum().backward()
        assert model.weight.grad.full_tensor().tolist() == [[0, 1, 2, 3]] * 4
    finally:
        dist.destroy_process_group()


@pytest.mark.parametrize("count", COUNTS)
def test_code_for_one_device_adds_up_over_a_cuda_mesh(count):
    mesh = init_device_mesh("cuda", (count,), mesh_dim_names=("data",))
    total = tn.func.shard_map(lambda part: all_reduce(part, "sum", "data"), mesh, ([Shard(0)],), [Shard(0)])
    assert total(tn.ones(4, device="cuda")).tolist() == [count] * 4


@two_devices
def test_fully_sharded_step_gathers_parameters_and_scatters_gradients():
    mesh = init_device_mesh("cuda", (2,))
    model = fully_shard(nn.Sequential(nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 64)), mesh=mesh)

    def step(x):
        model(x).square().mean().backward()
        return [each.grad for each in model.parameters()]

    x = distribute_tensor(tn.ones(16, 64), mesh, [Shard(0)])
    sent = Counter()
    for each in costs.collectives(tn.show(step, x, stage="hlo"), 2):
        sent[each.kind] += each.bytes
    assert sent == costs.fully_sharded([each.numel() * 4 for each in model.parameters()], 2)
