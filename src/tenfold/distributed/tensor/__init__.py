"""`distributed.tensor`: tensors sharded over the devices of a mesh."""

from tenfold.distributed.device_mesh import DeviceMesh, init_device_mesh
from tenfold.distributed.tensor.dtensor import (
    DTensor,
    distribute_module,
    distribute_tensor,
    empty,
    full,
    ones,
    rand,
    randn,
    zeros,
)
from tenfold.distributed.tensor.placements import Partial, Placement, Replicate, Shard

__all__ = [
    "DTensor", "DeviceMesh", "Partial", "Placement", "Replicate", "Shard", "distribute_module",
    "distribute_tensor", "empty", "full", "init_device_mesh", "ones", "rand", "randn", "zeros",
]  # fmt: skip
