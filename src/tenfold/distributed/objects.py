"""Collectives on Python objects, through the coordination service. The objects are pickled; they come
from processes of the same program."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from typing import Any

import numpy as np

from tenfold.base.errors import ArgumentError, located
from tenfold.base.warning import warn
from tenfold.distributed.group import ProcessGroup, chosen_rank, get_rank, world_of
from tenfold.distributed.messages import post, receive, send_bytes

KEPT = 8  # objects that a process leaves in the service before it looks which have been read


def exchange(own: Any, group: ProcessGroup, sources: Sequence[int]) -> list[Any]:
    """What the sources have, as Python objects."""
    from tenfold.engines import processes

    connection = processes.current
    assert connection is not None
    if connection.runtime is None:
        return [own]
    name = group.name
    number = connection.exchanged[name] = connection.exchanged.get(name, 0) + 1
    if connection.rank in sources:
        _forget_read(connection, group)
        connection.set(f"object/{name}/{number}/{connection.rank}", pickle.dumps(own).hex())
        connection.kept.setdefault(name, []).append(number)
    found = [
        pickle.loads(bytes.fromhex(connection.get(f"object/{name}/{number}/{source}", source)))
        for source in sources
    ]
    connection.set(f"read/{name}/{connection.rank}", str(number))
    return found


def _forget_read(connection: Any, group: ProcessGroup) -> None:
    """Remove objects from the service that all processes of a group have read."""
    name = group.name
    kept = connection.kept.get(name, [])
    if len(kept) < KEPT:
        return
    read = min(int(connection.known(f"read/{name}/{rank}") or 0) for rank in group.ranks)
    for number in kept:
        if number <= read:
            connection.forget(f"object/{name}/{number}/{connection.rank}")
    connection.kept[name] = [number for number in kept if number > read]


def _members(group: ProcessGroup | None) -> ProcessGroup | None:
    """The group, if this process is in it."""
    world = world_of(group)
    if world.rank() < 0:
        warn(f"rank {get_rank()} is not in the group, so it exchanges no objects")
        return None
    return world


@located
def all_gather_object(object_list: list[Any], obj: Any, group: ProcessGroup | None = None) -> None:
    """Gather every process's object into a list."""
    world = _members(group)
    if world is not None:
        object_list[:] = exchange(obj, world, world.ranks)


@located
def broadcast_object_list(
    object_list: list[Any],
    src: int | None = None,
    group: ProcessGroup | None = None,
    device: Any = None,
    group_src: int | None = None,
) -> None:
    """Send the list of process `src`, by default the first, to all others."""
    world = _members(group)
    if world is not None:
        source = chosen_rank(world, 0 if src is None and group_src is None else src, group_src, "src")
        object_list[:] = exchange(list(object_list), world, [source])[0]


@located
def gather_object(
    obj: Any,
    object_gather_list: list[Any] | None = None,
    dst: int | None = None,
    group: ProcessGroup | None = None,
    group_dst: int | None = None,
) -> None:
    """Gather every process's object on process `dst`, by default the first."""
    world = _members(group)
    if world is None:
        return
    target = chosen_rank(world, 0 if dst is None and group_dst is None else dst, group_dst, "dst")
    objects = exchange(obj, world, world.ranks)
    if get_rank() == target:
        if object_gather_list is None:
            raise ArgumentError(f"rank {target} gathers objects, and gives no object_gather_list")
        object_gather_list[:] = objects


@located
def scatter_object_list(
    scatter_object_output_list: list[Any],
    scatter_object_input_list: list[Any] | None = None,
    src: int | None = None,
    group: ProcessGroup | None = None,
    group_src: int | None = None,
) -> None:
    """Put object i of process `src` at the start of process i's list."""
    world = _members(group)
    if world is None:
        return
    if not scatter_object_output_list:
        raise ArgumentError("scatter_object_output_list has a place for the object, so it is not empty")
    source = chosen_rank(world, 0 if src is None and group_src is None else src, group_src, "src")
    objects = exchange(list(scatter_object_input_list or ()), world, [source])[0]
    if len(objects) != world.size():
        raise ArgumentError(f"rank {source} has {len(objects)} objects for {world.size()} processes")
    scatter_object_output_list[0] = objects[world.rank()]


@located
def send_object_list(
    object_list: list[Any],
    dst: int | None = None,
    group: ProcessGroup | None = None,
    device: Any = None,
    group_dst: int | None = None,
    use_batch: bool = False,
) -> None:
    """Send objects to process `dst`, which receives them."""
    world = world_of(group)
    pickled = np.frombuffer(pickle.dumps(list(object_list)), np.uint8)
    send_bytes(pickled, chosen_rank(world, dst, group_dst, "dst"), world, "objects")


@located
def recv_object_list(
    object_list: list[Any],
    src: int | None = None,
    group: ProcessGroup | None = None,
    device: Any = None,
    group_src: int | None = None,
    use_batch: bool = False,
) -> int:
    """Receive objects that process `src` sends, or any process, into a list; return the sender."""
    world = world_of(group)
    is_named = src is not None or group_src is not None
    receipt = post(chosen_rank(world, src, group_src, "src") if is_named else None, world, "objects")
    contents, sender = receive(receipt)
    objects = pickle.loads(contents)
    if len(objects) != len(object_list):
        raise ArgumentError(
            f"rank {sender} sent {len(objects)} objects, and there is room for {len(object_list)}"
        )
    object_list[:] = objects
    return sender
