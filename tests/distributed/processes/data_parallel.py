"""DDP and fully_shard of two processes, each with half of a batch, beside one process with all of it."""

import copy

import numpy as np

import tenfold as tn
import tenfold.distributed as dist
from tenfold import nn
from tenfold.distributed.fsdp import fully_shard
from tenfold.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
rank = dist.get_rank()
tn.manual_seed(0)
x, y = tn.randn(8, 4).eval(), tn.randn(8, 2).eval()
start = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 2))


def trained(module, x, y, steps=3):
    optimizer = tn.optim.Adam(module.parameters(), lr=0.01)
    for _ in range(steps):
        optimizer.zero_grad()
        (module(x) - y).square().mean().backward()
        optimizer.step()
    return [each.detach() for each in module.parameters()]


expected = [each.numpy() for each in trained(copy.deepcopy(start), x, y)]
half = slice(4 * rank, 4 * rank + 4)

other = copy.deepcopy(start)
if rank == 1:
    with tn.no_grad():
        other[0].weight.zero_()  # DDP takes rank 0's parameters
ddp = DistributedDataParallel(other)
for mine, theirs in zip(trained(ddp, x[half], y[half]), expected, strict=True):
    np.testing.assert_allclose(mine.numpy(), theirs, rtol=1e-4, atol=1e-5)
with ddp.no_sync():
    ddp.zero_grad()
    ddp(x[half]).sum().backward()
grads = [None, None]
dist.all_gather_object(grads, ddp.module[0].weight.grad.sum().item())
assert grads[0] != grads[1]

sharded = copy.deepcopy(start)
fully_shard(sharded[0])
fully_shard(sharded)
assert tuple(sharded[0].weight.to_local().shape) == (8, 4)
for mine, theirs in zip(trained(sharded, x[half], y[half]), expected, strict=True):
    np.testing.assert_allclose(mine.full_tensor().numpy(), theirs, rtol=1e-4, atol=1e-5)


def normalised(norm, x, share):
    """What a batch norm gives for a part of a batch, and the part of its input's gradient."""
    x = x.clone().requires_grad_()
    result = norm(x)
    (result * tn.arange(8.0).reshape(8, 1)[share]).sum().backward()
    return result.detach().numpy(), x.grad.numpy(), norm.running_var.numpy()


plain, synchronous = nn.BatchNorm1d(4), nn.SyncBatchNorm.convert_sync_batchnorm(nn.BatchNorm1d(4))
expected = normalised(plain, x, slice(None))
found = normalised(synchronous, x[half], half)
for mine, theirs in zip(found[:2], expected[:2], strict=True):
    np.testing.assert_allclose(mine, theirs[half], rtol=1e-4, atol=1e-5)
np.testing.assert_allclose(found[2], expected[2], rtol=1e-5)
dist.destroy_process_group()
print("passed", rank)
