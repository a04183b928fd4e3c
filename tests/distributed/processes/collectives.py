"""Every collective, between two processes; and tensors over the devices of both."""

import pytest

import tenfold as tn
import tenfold.distributed as dist
from tenfold.distributed.fsdp import fully_shard
from tenfold.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_tensor
from tenfold.engines import processes

dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
assert dist.is_initialized() and world == 2 and dist.get_backend() == "gloo"

x = tn.ones(3) * (rank + 1)
dist.all_reduce(x)
assert x.tolist() == [3.0] * 3
for op, expected in {"AVG": 1.5, "MAX": 2.0, "MIN": 1.0, "PRODUCT": 2.0}.items():
    x = tn.ones(2) * (rank + 1)
    dist.all_reduce(x, getattr(dist.ReduceOp, op))
    assert x.tolist() == [expected] * 2, op
whole = tn.tensor([rank + 1, 4])
dist.all_reduce(whole, dist.ReduceOp.BOR)
assert whole.dtype is tn.int64 and whole.tolist() == [3, 4]
x = tn.full((2,), float(rank))
assert dist.broadcast(x, 1, async_op=True).wait() and x.tolist() == [1.0, 1.0]
parts = [tn.zeros(2) for _ in range(2)]
dist.all_gather(parts, tn.full((2,), float(rank)))
assert [each.tolist() for each in parts] == [[0.0, 0.0], [1.0, 1.0]]
joined = tn.zeros(4)
dist.all_gather_into_tensor(joined, tn.full((2,), float(rank)))
assert joined.tolist() == [0.0, 0.0, 1.0, 1.0]
x = tn.zeros(2)
dist.reduce_scatter_tensor(x, tn.arange(4.0))
assert x.tolist() == [4.0 * rank, 4.0 * rank + 2]
x = tn.zeros(4)
dist.all_to_all_single(x, tn.arange(4.0) + 10 * rank)
assert x.tolist() == [2.0 * rank, 2.0 * rank + 1, 2.0 * rank + 10, 2.0 * rank + 11]
x = tn.zeros(2)
dist.scatter(x, [tn.ones(2), tn.ones(2) * 2] if rank == 0 else None, src=0)
assert x.tolist() == [rank + 1.0] * 2
if rank == 0:
    dist.send(tn.tensor([7.0]), 1)
else:
    x = tn.zeros(1)
    assert dist.recv(x, 0) == 0 and x.tolist() == [7.0]
other = 1 - rank
x, y = tn.zeros(2), tn.zeros(2)
sent, received = dist.isend(tn.full((2,), float(rank)), other), dist.irecv(x, other)
assert sent.wait() and received.wait() and x.tolist() == [other] * 2 and received.source_rank() == other
messages = [dist.P2POp(dist.isend, tn.full((2,), rank + 5.0), other), dist.P2POp(dist.irecv, x, other)]
assert all(each.wait() for each in dist.batch_isend_irecv(messages)) and x.tolist() == [other + 5.0] * 2
for tag in (1, 2):
    dist.isend(tn.full((2,), float(tag)), other, tag=tag)
dist.recv(y, other, tag=2)  # messages of one tag keep their order, those of different tags need not
assert dist.recv(x, tag=1) == other and (x.tolist(), y.tolist()) == ([1.0, 1.0], [2.0, 2.0])
dist.isend(tn.full((2,), 1.0), other)
dist.isend(tn.full((2,), 2.0), other)
first, second = dist.irecv(x, other), dist.irecv(y, other)
assert second.wait() and first.wait()  # receives take messages in the order in which they are posted
assert (x.tolist(), y.tolist()) == ([1.0, 1.0], [2.0, 2.0])
groups = [dist.new_group([0, 1]) for _ in range(2)]
for number, group in enumerate(groups):
    dist.send(tn.full((2,), float(number)), other, group=group)
dist.recv(y, other, group=groups[1])  # groups of the same processes have messages of their own
dist.recv(x, other, group=groups[0])
assert (x.tolist(), y.tolist()) == ([0.0, 0.0], [1.0, 1.0])
names = [[name if rank == 0 else None] for name in "ab"]
for place in (0, 1) if rank == 0 else (1, 0):  # and objects of their own
    dist.broadcast_object_list(names[place], 0, group=groups[place])
assert names == [["a"], ["b"]]
dist.send(tn.ones(3), group_dst=other)
try:
    dist.recv(x, other)
except tn.ShapeError as error:
    assert f"rank {other} sent float32[3], which does not fit float32[2]" in str(error)
x = tn.zeros(2 * (rank + 1))  # rank 0 gives 1 and 2 of its rows, and so does rank 1
dist.all_to_all_single(x, tn.arange(3.0) + 10 * rank, [rank + 1] * 2, [1, 2])
assert x.tolist() == ([0.0, 10.0] if rank == 0 else [1.0, 2.0, 11.0, 12.0])
uneven = [tn.zeros(rank + 1) for _ in range(2)]
dist.all_to_all(uneven, [tn.ones(i + 1) * (10 * rank + i) for i in range(2)])
assert [each.tolist() for each in uneven] == [[float(rank)] * (rank + 1), [10.0 + rank] * (rank + 1)]
uneven = [tn.zeros(i + 1) for i in range(2)]
dist.all_gather(uneven, tn.ones(rank + 1))
assert [each.tolist() for each in uneven] == [[1.0], [1.0, 1.0]]
try:
    dist.all_gather(uneven, tn.ones(5))
except tn.ShapeError as error:
    assert f"the shape (5,), and its place in the list, {rank}, has ({rank + 1},)" in str(error)
else:
    raise AssertionError("a tensor does not fit its place")
x = tn.zeros(4)
sizes = [2, 2] if rank == 0 else None  # what one process says of its sizes need not be said by the others
dist.all_to_all_single(x, tn.arange(4.0) + 10 * rank, sizes, sizes)
assert x.tolist() == [2.0 * rank, 2.0 * rank + 1, 2.0 * rank + 10, 2.0 * rank + 11]
x = tn.ones(2)
future = dist.all_reduce(x, async_op=True).get_future()
assert isinstance(future, tn.futures.Future) and future.wait()[0] is x
assert future.then(lambda done: done.value()[0].sum().item()).wait() == 4.0
infinite = tn.tensor([float("inf") if rank == 0 else 1.0]).requires_grad_()
total = dist.nn.functional.reduce(infinite, 0)
rows = dist.nn.functional.gather(infinite, 0)
(total * (rank + 3) + rows[0] * (rank + 5) + rows[1] * (rank + 7)).sum().backward()
assert total.tolist() == [[float("inf")], [1.0]][rank]
assert [row.tolist() for row in rows] == [[[float("inf")], [1.0]], [[0.0], [0.0]]][rank]
assert infinite.grad.tolist() == [3.0 + 5.0 + 2 * rank]  # what rank 0 makes of them alone counts
x = tn.full((2,), rank + 1.0).requires_grad_()
total = dist.nn.functional.all_reduce(x * 2)
total.sum().backward()
assert total.tolist() == [6.0, 6.0] and x.grad.tolist() == [4.0, 4.0]
first, second = dist.nn.functional.all_gather(x)
((first * 2 + second * 3).sum() * (rank + 1)).backward()
assert x.grad.tolist() == [4 + 3 * (rank + 2)] * 2
received = [None]
dist.scatter_object_list(received, ["a", "b"] if rank == 1 else None, src=1)
assert received == ["ab"[rank]]
if rank == 0:
    dist.send_object_list([{"a": 1}], dst=1)
else:
    assert dist.recv_object_list(received, src=0) == 0 and received == [{"a": 1}]
second = dist.new_group([1])
assert (second is dist.GroupMember.NON_GROUP_MEMBER) is (rank == 0) and dist.get_rank(second) == rank - 1
x = tn.ones(1)
dist.all_reduce(x, group=second)  # rank 0 is not in the group: it does nothing
assert x.item() == 1.0 and dist.get_process_group_ranks(None) == [0, 1]
own, all_of_them = dist.new_subgroups(group_size=1)
assert own.ranks == [rank] and len(all_of_them) == 2
objects = [None] * 2
dist.all_gather_object(objects, {"rank": rank})
assert objects == [{"rank": 0}, {"rank": 1}]
dist.barrier()
alone = dist.new_group([rank])
x = tn.ones(1)
dist.all_reduce(x, group=alone)
assert x.item() == 1.0

mesh = dist.init_device_mesh("cpu", (2, 2), mesh_dim_names=("data", "model"))
assert mesh.get_coordinate() == [rank, 0] and mesh.get_local_rank("data") == rank
assert mesh.get_rank() == rank and mesh.mesh.tolist() == [[0, 1], [2, 3]]
named = dist.device_mesh.DeviceMesh("cpu", tn.tensor([2, 0]))  # devices by their places among those of all
assert named.get_coordinate() == [1 - rank] and named.mesh.tolist() == [2, 0]
parts = distribute_tensor(tn.arange(4.0), named, [Shard(0)])
assert parts.to_local().tolist() == [2.0 - 2 * rank, 3.0 - 2 * rank] and parts.sum().item() == 6.0
told = repr(parts.requires_grad_())
assert told.startswith(f"DTensor(local_tensor={parts.detach().to_local()}, device_mesh=DeviceMesh(")
assert told.endswith("placements=(Shard(dim=0),))")
assert [each.ranks for each in mesh.get_all_groups()] == [[0, 1], [rank]]
assert mesh["data"].get_group().ranks == mesh.get_group("data").ranks == [0, 1]
whole = tn.arange(8.0).reshape(4, 2)
x = distribute_tensor(whole, mesh, [Shard(0), Shard(1)])
assert x.to_local().tolist() == whole[2 * rank : 2 * rank + 2].tolist()
assert x.full_tensor().tolist() == whole.tolist() and x.sum().item() == 28.0
own = tn.arange(4.0) + 10 * rank
for source, expected in ((0, tn.arange(4.0)), (1, tn.arange(4.0) + 10), (None, own)):
    for dim in ("data", "model"):
        if dim == "data" or source is None:
            taken = distribute_tensor(own, mesh[dim], [Replicate()], src_data_rank=source)
            assert taken.full_tensor().tolist() == expected.tolist(), (source, dim)
assert distribute_tensor(own, mesh, [Shard(0), Replicate()]).full_tensor().tolist() == [0.0, 1.0, 2.0, 3.0]
mine = DTensor.from_local(tn.ones(2) * rank, mesh["data"], [Shard(0)])
assert mine.full_tensor().tolist() == [0.0, 0.0, 1.0, 1.0]
assert DTensor.from_local(tn.ones(2), mesh, [Partial(), Replicate()]).full_tensor().tolist() == [2.0, 2.0]
try:
    x + whole
except tn.DeviceError as error:
    assert "distribute_tensor" in str(error)
else:
    raise AssertionError("a plain tensor may differ between processes")

for error, call in (
    (tn.DTypeError, lambda: dist.all_reduce(tn.ones(2, dtype=tn.int32), dist.ReduceOp.AVG)),
    (tn.DTypeError, lambda: dist.all_gather_into_tensor(tn.ones(4, dtype=tn.float64), tn.ones(2))),
    (tn.ShapeError, lambda: dist.all_gather_into_tensor(tn.ones(5), tn.ones(2))),
    (tn.ShapeError, lambda: dist.reduce_scatter_tensor(tn.ones(3), tn.ones(4))),
    (tn.ShapeError, lambda: dist.reduce_scatter_tensor(tn.ones(2), tn.ones(5))),
    (tn.ArgumentError, lambda: dist.all_reduce([1.0, 2.0])),
    (tn.ArgumentError, lambda: dist.all_reduce(tn.ones(2), "sum")),
    (tn.ArgumentError, lambda: dist.new_group([0, 1, 1])),
):
    with pytest.raises(error):
        call()

# Of several devices of a process, plain batches have one gradient together.
for shape in ((4,), (2, 2)):
    tn.manual_seed(0)
    linear = tn.nn.Linear(4, 8)
    for batch in (1.0, 2.0):
        (linear(tn.ones(3, 4) * batch).square().mean() / 2).backward()
    slope = linear.weight.grad
    linear.zero_grad()
    fully_shard(linear, mesh=dist.init_device_mesh("cpu", shape))
    linear(tn.ones(3, 4) * (rank + 1)).square().mean().backward()
    assert (linear.weight.grad.full_tensor() - slope).abs().max().item() < 1e-5

# The coordination service does not keep objects that all have read.
service = processes.current.runtime
for i in range(40):
    given = [i if rank == 0 else None]
    dist.broadcast_object_list(given, 0)
    assert given == [i]
    everything = [None, None]
    dist.all_gather_object(everything, (rank, i))
    assert everything == [(0, i), (1, i)]
dist.barrier()
assert len(service.key_value_dir_get("tenfold/object")) <= 40
dist.destroy_process_group()
print("passed", rank)
