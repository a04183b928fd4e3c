"""A mesh of CUDA devices. One device is enough for most of it; what needs two says so."""

import numpy as np
import pytest

import tenfold as tn
from tenfold import nn
from tenfold.distributed.device_mesh import init_device_mesh
from tenfold.distributed.fsdp import fully_shard
from tenfold.distributed.tensor import Shard, distribute_tensor

pytestmark = pytest.mark.skipif(not tn.cuda.is_available(), reason="there is no CUDA device")


def trained(model, x, steps=3):
    optimizer = tn.optim.AdamW(model.parameters(), lr=0.01)
    for _ in range(steps):
        optimizer.zero_grad()
        model(x).square().mean().backward()
        optimizer.step()
    return [each.detach().cpu().numpy() for each in model.parameters()]


def model():
    tn.manual_seed(0)
    return nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 8))


@pytest.mark.parametrize("count", [1, 2])
def test_fully_sharded_module_trains_on_cuda_as_on_the_cpu(count):
    if tn.cuda.device_count() < count:
        pytest.skip(f"it needs {count} CUDA devices")
    mesh = init_device_mesh("cuda", (count,))
    x = tn.linspace(-1, 1, 64).reshape(8, 8)
    expected = trained(model(), x)
    found = trained(fully_shard(model(), mesh=mesh), distribute_tensor(x, mesh, [Shard(0)]))
    for mine, theirs in zip(found, expected, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-3, atol=1e-4)


def test_tensor_on_a_cuda_mesh_computes_and_shows_its_sharding():
    mesh = init_device_mesh("cuda", (1,), mesh_dim_names=("data",))
    x = distribute_tensor(tn.ones(4, 4), mesh, [Shard(0)])
    assert (x @ x).sum().item() == 64.0 and x.full_tensor().device.type == "cuda"
    assert "[{data}, {}]" in (x + 1).show(stage="sharding")
    step = tn.compile(lambda t: (t * 2).sum(0))
    assert step(x).tolist() == [8.0] * 4
