"""Every collective, between two processes; and tensors over the devices of both."""

import tenfold as tn
import tenfold.distributed as dist
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
whole = tn.arange(8.0).reshape(4, 2)
x = distribute_tensor(whole, mesh, [Shard(0), Shard(1)])
assert x.to_local().tolist() == whole[2 * rank : 2 * rank + 2].tolist()
assert x.full_tensor().tolist() == whole.tolist() and x.sum().item() == 28.0
mine = DTensor.from_local(tn.ones(2) * rank, mesh["data"], [Shard(0)])
assert mine.full_tensor().tolist() == [0.0, 0.0, 1.0, 1.0]
assert DTensor.from_local(tn.ones(2), mesh, [Partial(), Replicate()]).full_tensor().tolist() == [2.0, 2.0]
try:
    x + whole
except tn.DeviceError as error:
    assert "distribute_tensor" in str(error)
else:
    raise AssertionError("a plain tensor may differ between processes")

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
assert dist.group.WORLD.pairs
dist.destroy_process_group()
print("passed", rank)
