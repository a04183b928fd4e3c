"""`tenfold.distributed`: one program over many devices and many processes.

`device_mesh` defines meshes of devices, and `tensor` tensors that are sharded over them. `tensor.parallel`
and `fsdp` shard modules. `group` connects processes, and `collectives` are their joint operations. PyTorch's
other names can be imported, and raise an error when they are used.
"""

from __future__ import annotations

import os
from typing import Any

from tenfold.base.absent import absent_name, reason_of
from tenfold.base.errors import DistNetworkError, DistributedError, DistStoreError, QueueEmptyError
from tenfold.distributed import (
    _functional_collectives,
    algorithms,
    checkpoint,
    costs,
    device_mesh,
    nn,
    tensor,
)
from tenfold.distributed.collectives import (
    ReduceOp,
    all_gather,
    all_gather_into_tensor,
    all_reduce,
    all_reduce_coalesced,
    all_to_all,
    all_to_all_single,
    barrier,
    broadcast,
    gather,
    monitored_barrier,
    reduce,
    reduce_scatter,
    reduce_scatter_tensor,
    scatter,
)
from tenfold.distributed.device_mesh import DeviceMesh, init_device_mesh
from tenfold.distributed.gradients import GradBucket
from tenfold.distributed.group import (
    Backend,
    GroupMember,
    ProcessGroup,
    destroy_process_group,
    get_backend,
    get_default_backend_for_device,
    get_global_rank,
    get_group_rank,
    get_node_local_rank,
    get_process_group_ranks,
    get_rank,
    get_world_size,
    group,
    init_process_group,
    is_initialized,
    new_group,
    new_subgroups,
    new_subgroups_by_enumeration,
)
from tenfold.distributed.messages import P2POp, batch_isend_irecv, irecv, isend, recv, send
from tenfold.distributed.objects import (
    all_gather_object,
    broadcast_object_list,
    gather_object,
    recv_object_list,
    scatter_object_list,
    send_object_list,
)
from tenfold.distributed.stores import FileStore, HashStore, PrefixStore, Store, TCPStore
from tenfold.distributed.work import Work

DistError = DistributedError
MADE_OF_MODULES = ("fsdp", "pipelining")  # programs import them: `tenfold.nn` imports this package

__all__ = [
    "Backend",
    "DeviceMesh",
    "DistError",
    "DistNetworkError",
    "DistStoreError",
    "DistributedError",
    "FileStore",
    "GradBucket",
    "GroupMember",
    "HashStore",
    "P2POp",
    "PrefixStore",
    "ProcessGroup",
    "QueueEmptyError",
    "ReduceOp",
    "Store",
    "TCPStore",
    "Work",
    "_functional_collectives",
    "algorithms",
    "all_gather",
    "all_gather_into_tensor",
    "all_gather_object",
    "all_reduce",
    "all_reduce_coalesced",
    "all_to_all",
    "all_to_all_single",
    "barrier",
    "batch_isend_irecv",
    "broadcast",
    "broadcast_object_list",
    "checkpoint",
    "costs",
    "destroy_process_group",
    "device_mesh",
    "gather",
    "gather_object",
    "get_backend",
    "get_default_backend_for_device",
    "get_global_rank",
    "get_group_rank",
    "get_node_local_rank",
    "get_process_group_ranks",
    "get_rank",
    "get_world_size",
    "group",
    "init_device_mesh",
    "init_process_group",
    "irecv",
    "is_available",
    "is_backend_available",
    "is_gloo_available",
    "is_initialized",
    "is_mpi_available",
    "is_nccl_available",
    "is_torchelastic_launched",
    "is_ucc_available",
    "is_xccl_available",
    "isend",
    "monitored_barrier",
    "new_group",
    "new_subgroups",
    "new_subgroups_by_enumeration",
    "nn",
    "recv",
    "recv_object_list",
    "reduce",
    "reduce_scatter",
    "reduce_scatter_tensor",
    "scatter",
    "scatter_object_list",
    "send",
    "send_object_list",
    "tensor",
]


def is_available() -> bool:
    """Whether programs can run over several devices and processes, which needs jaxlib."""
    return True


def is_backend_available(backend: str) -> bool:
    """Whether a backend of this name is available for collectives."""
    return backend.lower() in ("gloo", "nccl")


is_gloo_available = is_nccl_available = is_available


def is_mpi_available() -> bool:
    """Whether MPI is available for collectives: it never is."""
    return False


is_ucc_available = is_xccl_available = is_mpi_available


def is_torchelastic_launched() -> bool:
    """Whether `tenfold launch` started this process."""
    return "TORCHELASTIC_RUN_ID" in os.environ


def __getattr__(name: str) -> Any:
    absent = reason_of("torch.distributed")
    if name.startswith("__") or name in MADE_OF_MODULES or absent is None:
        raise AttributeError(name)
    found = absent_name("torch.distributed", name, absent)
    globals()[name] = found
    return found
