"""`tenfold.distributed`: one program over many devices and many processes.

`device_mesh` has meshes of devices, `tensor` tensors that are sharded over them, `tensor.parallel` and `fsdp`
ways to shard a module. `group` connects processes, and `collectives` are what they do together. PyTorch's
other names can be imported, and say when they are used that they are not here.
"""

from __future__ import annotations

import os
from typing import Any

from tenfold.base.absent import absent_name, reason_of
from tenfold.base.errors import DistributedError
from tenfold.distributed import _functional_collectives, checkpoint, costs, device_mesh, fsdp, tensor
from tenfold.distributed.collectives import (
    ReduceOp,
    Work,
    all_gather,
    all_gather_into_tensor,
    all_gather_object,
    all_reduce,
    all_to_all,
    all_to_all_single,
    barrier,
    broadcast,
    broadcast_object_list,
    gather,
    gather_object,
    recv,
    reduce,
    reduce_scatter,
    reduce_scatter_tensor,
    scatter,
    send,
)
from tenfold.distributed.device_mesh import DeviceMesh, init_device_mesh
from tenfold.distributed.group import (
    GroupMember,
    ProcessGroup,
    destroy_process_group,
    get_backend,
    get_node_local_rank,
    get_rank,
    get_world_size,
    group,
    init_process_group,
    is_initialized,
    new_group,
)

DistError = DistributedError

__all__ = [
    "DeviceMesh", "DistError", "DistributedError", "GroupMember", "ProcessGroup", "ReduceOp", "Work",
    "_functional_collectives",
    "all_gather", "all_gather_into_tensor", "all_gather_object", "all_reduce", "all_to_all",
    "all_to_all_single", "barrier", "broadcast", "broadcast_object_list", "checkpoint", "costs",
    "destroy_process_group", "device_mesh", "fsdp", "gather", "gather_object", "get_backend",
    "get_node_local_rank", "get_rank",
    "get_world_size", "group", "init_device_mesh", "init_process_group", "is_available",
    "is_backend_available", "is_gloo_available", "is_initialized", "is_mpi_available", "is_nccl_available",
    "is_torchelastic_launched", "is_ucc_available", "is_xccl_available", "new_group", "recv", "reduce",
    "reduce_scatter", "reduce_scatter_tensor", "scatter", "send", "tensor",
]  # fmt: skip


def is_available() -> bool:
    """Whether programs run over several devices and processes: they do, where jaxlib is installed."""
    return True


def is_backend_available(backend: str) -> bool:
    return backend.lower() in ("gloo", "nccl")


is_gloo_available = is_nccl_available = is_available


def is_mpi_available() -> bool:
    return False


is_ucc_available = is_xccl_available = is_mpi_available


def is_torchelastic_launched() -> bool:
    """Whether `tenfold launch` started this process."""
    return "TORCHELASTIC_RUN_ID" in os.environ


def __getattr__(name: str) -> Any:
    absent = reason_of("torch.distributed")
    if name.startswith("__") or absent is None:
        raise AttributeError(name)
    found = absent_name("torch.distributed", name, absent)
    globals()[name] = found
    return found
