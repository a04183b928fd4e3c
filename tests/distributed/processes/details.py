"""What DDP, SyncBatchNorm and fully_shard do beside averaging gradients, in two processes."""

import os

import numpy as np
import pytest

import tenfold as tn
import tenfold.distributed as dist
import tenfold.distributed._functional_collectives as fcol
from tenfold import nn
from tenfold.distributed.algorithms.ddp_comm_hooks import default_hooks
from tenfold.distributed.checkpoint.state_dict import StateDictOptions, set_model_state_dict
from tenfold.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from tenfold.distributed.tensor import DTensor, Partial, Replicate, Shard
from tenfold.nn.parallel import DistributedDataParallel

rank, world_size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
store = dist.TCPStore(os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]), world_size, rank == 0)
dist.init_process_group("gloo", store=store, rank=rank, world_size=world_size)
assert dist.get_rank() == rank
mesh = dist.group.WORLD.mesh()


class Branches(nn.Module):
    """A layer that all use, one that rank 1 alone uses, and one that none uses."""

    def __init__(self):
        super().__init__()
        self.common, self.second, self.unused = nn.Linear(2, 2), nn.Linear(2, 2), nn.Linear(2, 2)
        self.register_buffer("steps", tn.zeros(1))

    def forward(self, x):
        self.steps.add_(1 + rank)
        y = self.common(x)
        return self.second(y) if rank == 1 else y


# DDP
ddp = DistributedDataParallel(Branches(), find_unused_parameters=True)
ddp(tn.ones(3, 2)).sum().backward()
assert ddp.module.unused.weight.grad is None and ddp.module.unused.bias.grad is None
assert ddp.module.second.bias.grad.tolist() == [1.5, 1.5]
ddp.module.unused.weight.grad = tn.ones(2, 2) * rank
ddp(tn.ones(3, 2)).sum().backward()
assert ddp.module.unused.weight.grad.tolist() == [[rank] * 2] * 2
assert ddp.module.steps.item() == (2 if rank == 0 else 3)  # rank 1 took 1 before it added its own 2
kept = DistributedDataParallel(Branches(), broadcast_buffers=False)
for _ in range(2):
    kept(tn.ones(3, 2))
assert kept.module.steps.item() == 2 * (1 + rank)
with pytest.raises(TypeError, match="brodcast_buffers"):
    DistributedDataParallel(Branches(), brodcast_buffers=False)
with pytest.raises(tn.UnsupportedError, match="mixed_precision is not supported"):
    DistributedDataParallel(Branches(), mixed_precision=object())
plain = DistributedDataParallel(nn.Linear(2, 2))


@tn.compile
def step(x):
    loss = plain(x).sum()
    loss.backward()
    return loss


with pytest.raises(
    tn.UnsupportedError, match="gradients are not averaged over processes inside of a compiled"
):
    step(tn.ones(3, 2))

compiled = DistributedDataParallel(tn.compile(nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))))
for _ in range(2):
    compiled.zero_grad()
    (compiled(tn.randn(3, 2) + 5 * rank) * tn.arange(6.0).reshape(3, 2)).sum().backward()
found = [None, None]
dist.all_gather_object(found, [each.grad.tolist() for each in compiled.parameters()])
assert found[0] == found[1]
compiled.eval()
dist.all_gather_object(found, compiled(tn.ones(3, 2)).tolist())
assert found[0] == found[1]  # by rank 0's statistics
assert compiled.state_dict()["module._orig_mod.1.num_batches_tracked"].item() == 2

# Communication hooks
row = tn.ones(1, 2) * (rank + 1)
seen = []


def doubled(state, bucket):
    state.append((bucket.index(), bucket.is_last(), bucket.gradients()[0].shape, bucket.buffer().shape))
    future = tn.futures.Future()
    future.set_result(bucket.buffer() * 2)
    return future


hooks = {
    default_hooks.allreduce_hook: 1.5,
    default_hooks.fp16_compress_hook: 1.5,
    default_hooks.bf16_compress_hook: 1.5,
    default_hooks.bf16_compress_wrapper(default_hooks.allreduce_hook): 1.5,
    doubled: 2.0 * (rank + 1),
}
for hook, slope in hooks.items():
    ddp = DistributedDataParallel(nn.Linear(2, 1))
    ddp.register_comm_hook(seen if hook is doubled else None, hook)
    with pytest.raises(RuntimeError, match="can only be called once"):
        ddp.register_comm_hook(None, hook)
    ddp(row).sum().backward()
    assert ddp.module.weight.grad.tolist() == [[slope] * 2] and ddp.module.weight.grad.dtype is tn.float32
assert seen == [(0, True, (1, 2), (3,))]

# Processes that run out of batches
for by_all, total in ((True, 2.5), (False, 3.5)):
    ddp = DistributedDataParallel(nn.Linear(2, 1))
    before, optimizer = ddp.module.weight.tolist()[0][0], tn.optim.SGD(ddp.parameters(), lr=1.0)
    with ddp.join(divide_by_initial_world_size=by_all):
        for _ in range(1 + rank):
            optimizer.zero_grad()
            ddp(row).sum().backward()
            optimizer.step()
    assert abs(before - total - ddp.module.weight.tolist()[0][0]) < 1e-5
    assert ddp.module.weight.grad.tolist() == [[[1.5] * 2], [[1.0 if by_all else 2.0] * 2]][rank]
message = ("Rank 0 exhausted all inputs", "at least one rank that exhausted inputs")[rank]
with pytest.raises(RuntimeError, match=message), ddp.join(throw_on_early_termination=True):
    for _ in range(1 + rank):
        ddp(row).sum().backward()

# SyncBatchNorm
x = (tn.arange(2 * 4 * 40 * 40).reshape(2, 4, 40, 40) % 200 + 100.0) * (1 + rank)
norm, narrow = nn.SyncBatchNorm(4), nn.SyncBatchNorm(4)
expected, found = norm(x), narrow(x.to(tn.float16))
assert found.dtype is tn.float16 and narrow.running_var.dtype is tn.float32
np.testing.assert_allclose(found.detach().numpy(), expected.detach().numpy(), atol=2e-2)
np.testing.assert_allclose(narrow.running_var.numpy(), norm.running_var.numpy(), rtol=1e-2)

# fully_shard
tn.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2))
policy = MixedPrecisionPolicy(param_dtype=tn.bfloat16, reduce_dtype=tn.float32, output_dtype=tn.float32)
fully_shard(model, mp_policy=policy)
y = model(tn.randn(6, 4) + rank)
assert y.dtype is tn.float32
y.square().sum().backward()
assert model[0].weight.grad.dtype is tn.float32 and model[0].weight.grad.placements == (Shard(0),)
model = fully_shard(nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Linear(8, 2)))
model(tn.randn(6, 4) + rank).sum().backward()
assert model[1].running_mean.abs().sum().item() > 0
means = [None, None]
dist.all_gather_object(means, model[1].running_mean.tolist())
assert means[0] != means[1]  # each process has its own, as in PyTorch
batch = DTensor.from_local(tn.randn(6, 4), mesh, [Shard(0)])
assert model(batch).shape == (12, 2) and isinstance(model[1].running_mean, DTensor)
assert model[1].running_mean.to_local().tolist() == model[1].running_mean.full_tensor().tolist()
model(tn.randn(6, 4))
assert not isinstance(model[1].running_mean, DTensor)

first, second = nn.Linear(4, 4), nn.Linear(4, 4)
fully_shard([first, second], ignored_params={second.weight}, shard_placement_fn=lambda p: Shard(p.ndim - 1))
assert first.weight.placements == (Shard(1),) and first.bias.placements == (Shard(0),)
assert second.weight.placements == (Replicate(),)
with pytest.raises(tn.IndexOutOfRange, match="of a parameter of 1 dimensions"):
    fully_shard(nn.Linear(3, 4), shard_placement_fn=lambda p: Shard(1))
# Sizes that two processes do not divide
odd = fully_shard(nn.Linear(3, 5))
assert odd.weight.to_local().shape == ((3, 3) if rank == 0 else (2, 3)) and odd.weight.shape == (5, 3)
odd(tn.arange(6.0).reshape(2, 3) * (rank + 1)).sum().backward()
assert odd.weight.grad.full_tensor().tolist() == [[4.5, 7.5, 10.5]] * 5
assert odd.bias.grad.to_local().tolist() == [2.0] * (3 - rank)
rows = DTensor.from_local(tn.ones(3 - rank, 2) * rank, mesh, [Shard(0)], shape=(5, 2), stride=(2, 1))
assert rows.full_tensor().sum(1).tolist() == [0, 0, 0, 2, 2] and rows.sum().item() == 4
with pytest.raises(tn.ShapeError, match="this process's part of .5, 2. is"):
    DTensor.from_local(tn.ones(4, 2), mesh, [Shard(0)], shape=(5, 2))
branches = fully_shard(Branches())
branches(tn.ones(3, 2)).sum().backward()
assert branches.second.bias.grad.full_tensor().tolist() == [1.5, 1.5]
assert branches.unused.weight.grad is None

# Gradients between plain tensors and the mesh
x = (tn.ones(2) * (rank + 1)).requires_grad_()
for placement, slope in ((Shard(0), 18.0 * (rank + 1)), (Partial(), 54.0), (Partial("avg"), 13.5)):
    y = DTensor.from_local(x * 3, mesh, [placement])
    (grad,) = tn.autograd.grad((y * y).sum(), x)
    assert grad.tolist() == [slope] * 2, (placement, grad.tolist())
z = DTensor.from_local(tn.arange(2.0), mesh, [Shard(0)]).requires_grad_()
((z * 2).to_local().sum() * (rank + 1)).backward()
assert z.grad.full_tensor().tolist() == [2.0, 2.0, 4.0, 4.0]
z.grad = None
((z * 2).full_tensor(grad_placements=[Partial()]).sum() * (rank + 1)).backward()
assert z.grad.full_tensor().tolist() == [6.0] * 4
# A state that the first process alone has
linear = fully_shard(nn.Linear(3, 4))
state = {"weight": tn.ones(4, 3) * 7, "bias": tn.arange(4.0)} if rank == 0 else {}
options = StateDictOptions(full_state_dict=True, broadcast_from_rank0=True)
set_model_state_dict(linear, state, options=options)
assert linear.bias.full_tensor().tolist() == [0, 1, 2, 3] and linear.weight.full_tensor().sum().item() == 84

# Functional collectives between processes
own = tn.arange(4.0) + rank
assert fcol.all_reduce(own, "sum", dist.group.WORLD).tolist() == [1, 3, 5, 7]
assert fcol.all_gather_tensor(own[:1], 0, dist.group.WORLD).tolist() == [0, 1]
assert fcol.all_gather_tensor(own[None], 1, mesh).shape == (1, 8)
assert fcol.reduce_scatter_tensor(own, "avg", 0, None).tolist() == [[0.5, 1.5], [2.5, 3.5]][rank]
assert (
    fcol.all_to_all_single(own, None, None, dist.group.WORLD).tolist() == [[0, 1, 1, 2], [2, 3, 3, 4]][rank]
)
assert fcol.broadcast(own, 1).tolist() == [1, 2, 3, 4]

# A message that is too large for the coordination service
large = tn.arange(300_000) * (1 - rank)
if rank == 0:
    dist.send(large, 1)
else:
    assert dist.recv(large, 0) == 0 and large[-1].item() == 299_999
dist.destroy_process_group()
print("passed", rank)
