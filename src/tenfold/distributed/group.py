"""Process groups: which processes work together, and which of them this one is."""

from __future__ import annotations

import contextlib
import os
import socket
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from tenfold.base.devices import Device
from tenfold.base.errors import ArgumentError, DistributedError, DistStoreError, located
from tenfold.distributed.device_mesh import DeviceMesh, before_mesh
from tenfold.distributed.stores import PrefixStore, Store, TCPStore

DEFAULT_TIMEOUT = timedelta(minutes=30)
BACKENDS = ("gloo", "nccl", "cpu:gloo", "cuda:nccl", "cpu:gloo,cuda:nccl", "xla", "")
_groups_of: Counter[tuple[int, ...]] = Counter()  # how many groups of these ranks new_group has made


class ProcessGroup:
    """A group of some or all processes. Its name is the same in each process, and differs from that of every
    other group."""

    def __init__(self, ranks: Sequence[int], name: str):
        self.ranks, self.name = list(ranks), name
        self._meshes: dict[str, DeviceMesh] = {}

    def size(self) -> int:
        return len(self.ranks)

    def rank(self) -> int:
        """This process's rank in the group, or -1 if it is not in the group."""
        rank = get_rank()
        return self.ranks.index(rank) if rank in self.ranks else -1

    def mesh(self, platform: str = "cpu") -> DeviceMesh:
        """A mesh of one device of each process: its first."""
        from tenfold.engines import xla

        if platform not in self._meshes:
            first: dict[int, int] = {}
            for place, device in enumerate(xla.client(platform).client.devices()):
                first.setdefault(device.process_index, place)
            devices = [first[rank] for rank in self.ranks]
            self._meshes[platform] = DeviceMesh(platform, devices, mesh_dim_names=("world",))
        return self._meshes[platform]

    def __repr__(self) -> str:
        return f"ProcessGroup(ranks={self.ranks})"


def _group_along(mesh: DeviceMesh, mesh_dim: int | str | None = None) -> ProcessGroup:
    """The processes along a dimension of a mesh that this one is among."""
    if mesh_dim is None and mesh.ndim > 1:
        raise ArgumentError("a mesh of several dimensions has a group along each", help="give mesh_dim")
    names = [axis.name for axis in mesh.axes]
    name = mesh_dim if isinstance(mesh_dim, str) else names[mesh_dim or 0]
    if name not in names:
        raise ArgumentError(f"the mesh has no dimension {name!r}", help=f"its names are {', '.join(names)}")
    from tenfold.engines import sharded

    root, here = mesh.root, sharded.local_positions(mesh.root)[0]
    others = [root.axis(other) for other, _ in root.axes if other != name]
    along = [
        device.process_index
        for position, device in enumerate(sharded.devices_of(root))
        if all(root.coordinate(position, axis) == root.coordinate(here, axis) for axis in others)
    ]
    ranks = list(dict.fromkeys(along))
    if group.WORLD is not None and len(root.axes) == 1 and ranks == group.WORLD.ranks:
        return group.WORLD
    return ProcessGroup(ranks, f"{name} of {root.axes}: {ranks}")


def _all_groups(mesh: DeviceMesh) -> list[ProcessGroup]:
    """The groups along each dimension of a mesh that this process is among."""
    return [_group_along(mesh, dim) for dim in range(mesh.ndim)]


def _join_if_launched() -> None:
    """Join the other processes that a launcher has started, as `init_device_mesh` does in PyTorch."""
    if group.WORLD is None and "RANK" in os.environ and int(os.environ.get("WORLD_SIZE", "1")) > 1:
        init_process_group()


before_mesh.append(_join_if_launched)
DeviceMesh.get_group = located(_group_along)  # type: ignore[attr-defined]
DeviceMesh.get_all_groups = _all_groups  # type: ignore[attr-defined]


class group:
    """The default group, as PyTorch names it."""

    WORLD: ProcessGroup | None = None


class GroupMember:
    """The default group, and the result of `new_group` in processes that are not in the new group."""

    WORLD = group.WORLD
    NON_GROUP_MEMBER = ProcessGroup((), "none")


class Backend(str):
    """The name of the backend of collectives."""

    GLOO, NCCL, MPI, UCC, XCCL, UNDEFINED = "gloo", "nccl", "mpi", "ucc", "xccl", "undefined"

    def __new__(cls, name: str) -> Backend:
        if not isinstance(name, str):
            raise ArgumentError(f"a backend is named by a string, not a {type(name).__name__}")
        return super().__new__(cls, name.lower())


@located
def get_default_backend_for_device(device: Any) -> str:
    """The backend for collectives on a device's tensors."""
    kind = Device(device).type if isinstance(device, str) else device.type
    backends = {"cpu": Backend.GLOO, "cuda": Backend.NCCL}
    if kind not in backends:
        raise ArgumentError(f"there is no default backend for {kind!r}", help="use a CPU or CUDA device")
    return backends[kind]


@located
def init_process_group(
    backend: str | None = None,
    init_method: str | None = None,
    timeout: timedelta | None = None,
    world_size: int = -1,
    rank: int = -1,
    store: Any = None,
    group_name: str = "",
    pg_options: Any = None,
    device_id: Any = None,
) -> None:
    """Join the other processes. Call it before anything is computed.

    The processes are given by the variables RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT, which `tenfold
    launch` sets, by SLURM's variables, or by the arguments. Processes that share a `store` meet at an address
    that rank 0 puts there."""
    if group.WORLD is not None:
        raise DistributedError("the process group is there already", help="call it once")
    if backend is not None and backend.lower() not in BACKENDS:
        raise ArgumentError(
            f"there is no backend {backend!r}", help="gloo for the CPU, nccl for CUDA; XLA takes what fits"
        )
    seconds = (timeout or DEFAULT_TIMEOUT).total_seconds()
    if store is not None:
        address = _address_from(store, init_method, rank, world_size, seconds)
    else:
        address, rank, world_size = _rendezvous(init_method, rank, world_size)
    file = address.removeprefix("file://") if address.startswith("file://") else ""
    if file:
        address = _address_in(file, rank, seconds)
    from tenfold.engines import processes

    processes.connect(address, rank, world_size, seconds)
    if file and rank == 0:
        os.remove(file)  # all have met
    group.WORLD = GroupMember.WORLD = ProcessGroup(range(world_size), "world")
    _groups_of.clear()


def _rendezvous(init_method: str | None, rank: int, world_size: int) -> tuple[str, int, int]:
    """Where processes meet, this one's number, and how many there are."""
    environment = _environment()
    address = ""
    if init_method and init_method != "env://":
        if not init_method.startswith(("tcp://", "file://")):
            raise ArgumentError(
                f"cannot meet at {init_method!r}", help="use env://, tcp://host:port or file://path"
            )
        address = init_method.removeprefix("tcp://")
    if not address:
        address = f"{environment.get('MASTER_ADDR', '127.0.0.1')}:{environment.get('MASTER_PORT', '29500')}"
    numbers = []
    for name, given in (("RANK", rank), ("WORLD_SIZE", world_size)):
        found = given if given >= 0 else environment.get(name)
        if found is None:
            raise ArgumentError(
                f"which process this is is not known: {name} is not set",
                help="start the program with `tenfold launch`, or give rank and world_size",
            )
        numbers.append(int(found))
    if not 0 <= numbers[0] < numbers[1]:
        raise ArgumentError(f"rank {numbers[0]} is not one of {numbers[1]} processes")
    return address, numbers[0], numbers[1]


def _address_in(file: str, rank: int, seconds: float) -> str:
    """Where processes meet that know a file alone, on a disk that all of them see: the first one chooses a
    free port, and leaves the address there for the others."""
    if rank == 0:
        address = _free_address(os.environ.get("MASTER_ADDR", "127.0.0.1"))
        with tempfile.NamedTemporaryFile("w", dir=os.path.dirname(file) or ".", delete=False) as new:
            new.write(address)
        os.replace(new.name, file)
        return address
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        with contextlib.suppress(FileNotFoundError), open(file) as written:
            return written.read()
        time.sleep(0.05)
    raise DistributedError(
        f"rank {rank} waited {seconds:g} s for {file}, which rank 0 did not write",
        help="start rank 0, with the same init_method on a disk that all processes see",
    )


def _address_from(store: Store, init_method: str | None, rank: int, world_size: int, seconds: float) -> str:
    """Where processes that share a store meet: at an address that rank 0 chooses."""
    if init_method is not None:
        raise ArgumentError("processes meet by init_method or by a store", help="give one of them")
    if not 0 <= rank < world_size:
        raise ArgumentError(
            f"rank {rank} is not one of {world_size} processes", help="give rank and world_size with a store"
        )
    shared = PrefixStore("default_pg", store)
    if rank == 0:
        below = shared._underlying_non_prefix_store
        named = below.own_host if isinstance(below, TCPStore) else os.environ.get("MASTER_ADDR", "127.0.0.1")
        shared.set("address", _free_address(named))
    before = shared.timeout
    shared.set_timeout(timedelta(seconds=seconds))
    try:
        return shared.get("address").decode()
    except DistStoreError:
        raise DistributedError(
            f"rank {rank} waited {seconds:g} s for the address that rank 0 leaves in the store",
            help="start rank 0, with the same store",
        ) from None
    finally:
        shared.set_timeout(before)


def _free_address(host: str) -> str:
    """The host with a port that is free there."""
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
        probe.bind(("::1" if ":" in host else "127.0.0.1", 0))
        name = f"[{host}]" if ":" in host else host
        return f"{name}:{probe.getsockname()[1]}"


def _environment() -> dict[str, str]:
    """What the launcher has set; SLURM's variables in torchrun's names."""
    found = dict(os.environ)
    if "RANK" not in found and "SLURM_PROCID" in found and "SLURM_NTASKS" in found:
        found["RANK"], found["WORLD_SIZE"] = found["SLURM_PROCID"], found["SLURM_NTASKS"]
        found.setdefault("LOCAL_RANK", found.get("SLURM_LOCALID", "0"))
        first = found.get("SLURM_LAUNCH_NODE_IPADDR") or _first_node(found.get("SLURM_JOB_NODELIST", ""))
        found.setdefault("MASTER_ADDR", first or "127.0.0.1")
        found.setdefault("MASTER_PORT", str(20000 + int(found.get("SLURM_JOB_ID", "9500")) % 20000))
    return found


def _first_node(nodes: str) -> str:
    """The first name of a list as SLURM writes it: node[03-07,9] begins with node03."""
    name, bracket, rest = nodes.partition("[")
    if not bracket:
        return name.partition(",")[0]
    if "," in name:
        return name.partition(",")[0]
    return name + rest.partition("]")[0].partition(",")[0].partition("-")[0]


@located
def destroy_process_group(group_: ProcessGroup | None = None) -> None:
    """Leave the other processes. All processes call this together."""
    if group_ is not None and group_ is not group.WORLD:
        return
    from tenfold.engines import processes

    if processes.current is not None:
        processes.current.close()
    group.WORLD = GroupMember.WORLD = None


@located
def new_group(
    ranks: Sequence[int] | None = None,
    timeout: timedelta | None = None,
    backend: str | None = None,
    pg_options: Any = None,
    use_local_synchronization: bool = False,
    group_desc: str | None = None,
    device_id: Any = None,
) -> ProcessGroup:
    """Make a group of some of the processes. All processes call this; those that are not in the group get
    `GroupMember.NON_GROUP_MEMBER`."""
    world = world_of(None)
    chosen = sorted(world.ranks if ranks is None else ranks)
    if len(set(chosen)) < len(chosen):
        raise ArgumentError(f"a rank is in the group twice: {chosen}")
    if not set(chosen) <= set(world.ranks):
        raise ArgumentError(f"there are ranks 0 to {world.size() - 1}, not {chosen}")
    if get_rank() not in chosen:
        return GroupMember.NON_GROUP_MEMBER
    # The processes of a group make all groups of theirs in one order, whether or not the others make them.
    _groups_of[tuple(chosen)] += 1
    return ProcessGroup(chosen, f"{_groups_of[tuple(chosen)]} of {chosen}")


@located
def new_subgroups_by_enumeration(
    ranks_per_subgroup_list: Sequence[Sequence[int]],
    timeout: timedelta | None = None,
    backend: str | None = None,
    pg_options: Any = None,
    group_desc: str | None = None,
) -> tuple[ProcessGroup | None, list[ProcessGroup]]:
    """Make a group for each list of ranks; return the one that this process is in, and all of them."""
    listed = [rank for ranks in ranks_per_subgroup_list for rank in ranks]
    if len(set(listed)) < len(listed):
        raise ArgumentError("a rank is in two groups")
    groups = [new_group(ranks) for ranks in ranks_per_subgroup_list]
    own = [each for each in groups if each is not GroupMember.NON_GROUP_MEMBER]
    return (own[0] if own else None), groups


@located
def new_subgroups(
    group_size: int | None = None,
    group: ProcessGroup | None = None,
    timeout: timedelta | None = None,
    backend: str | None = None,
    pg_options: Any = None,
    group_desc: str | None = None,
) -> tuple[ProcessGroup | None, list[ProcessGroup]]:
    """Split the processes into groups of consecutive ranks, by default one group for each machine."""
    ranks = world_of(group).ranks
    size = int(_environment().get("LOCAL_WORLD_SIZE", len(ranks))) if group_size is None else group_size
    if size < 1 or len(ranks) % size:
        raise ArgumentError(f"{len(ranks)} processes cannot be split into groups of {size}")
    return new_subgroups_by_enumeration([ranks[i : i + size] for i in range(0, len(ranks), size)])


def get_process_group_ranks(group: ProcessGroup | None) -> list[int]:
    """The global ranks of a group's processes."""
    return list(world_of(group).ranks)


@located
def get_group_rank(group: ProcessGroup, global_rank: int) -> int:
    """The rank in a group of a process that is given by its global rank."""
    if global_rank not in group.ranks:
        raise ArgumentError(f"rank {global_rank} is not in the group {group.ranks}")
    return group.ranks.index(global_rank)


@located
def get_global_rank(group: ProcessGroup, group_rank: int) -> int:
    """The global rank of a process that is given by its rank in a group."""
    if not 0 <= group_rank < group.size():
        raise ArgumentError(f"the group {group.ranks} has no place {group_rank}")
    return group.ranks[group_rank]


def chosen_rank(group: ProcessGroup, rank: int | None, place: int | None, name: str) -> int:
    """The rank among all of a process that is named by it, or by its place in a group."""
    if (rank is None) is (place is None):
        raise ArgumentError(f"give {name} or group_{name}, one of them")
    if place is not None:
        return get_global_rank(group, place)
    assert rank is not None
    if group.ranks and rank not in group.ranks:
        raise ArgumentError(f"rank {rank} is not in the group {group.ranks}")
    return rank


def world_of(given: ProcessGroup | None) -> ProcessGroup:
    """The group that is meant: the default one, unless another is given."""
    if given is not None:
        return given
    if group.WORLD is None:
        raise DistributedError(
            "there is no process group yet", help="call tenfold.distributed.init_process_group() first"
        )
    return group.WORLD


def is_initialized() -> bool:
    """Whether this process has joined others."""
    return group.WORLD is not None


@located
def get_rank(group: ProcessGroup | None = None) -> int:
    """This process's global rank, or its rank in a group."""
    from tenfold.engines import processes

    if group is not None:
        return group.rank()
    world_of(None)
    assert processes.current is not None
    return processes.current.rank


@located
def get_world_size(group: ProcessGroup | None = None) -> int:
    """The number of processes, in all or in a group."""
    return world_of(group).size()


def get_node_local_rank(fallback_rank: int | None = None) -> int:
    """This process's number on its machine."""
    found = _environment().get("LOCAL_RANK", fallback_rank)
    if found is None:
        raise ArgumentError("LOCAL_RANK is not set", help="start the program with `tenfold launch`")
    return int(found)


def get_backend(group: ProcessGroup | None = None) -> str:
    """The name of the backend of a group."""
    from tenfold.engines import xla

    world_of(group)
    return Backend.NCCL if "cuda" in xla.started else Backend.GLOO
