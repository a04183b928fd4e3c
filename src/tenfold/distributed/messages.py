"""Messages from one process to another: `send`, `recv` and their kin. The coordination service keeps a
message until it is read, so that a sender never waits. A collective is faster for large tensors."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tenfold.autograd.grad_mode import no_grad
from tenfold.base import dtypes
from tenfold.base.devices import Device
from tenfold.base.errors import ArgumentError, ShapeError, located
from tenfold.distributed.group import ProcessGroup, chosen_rank, get_rank, world_of
from tenfold.distributed.work import Work
from tenfold.tensor import Tensor, leaf

POLL = 0.002  # seconds between looks for a message of any process


class Message(Work):
    """A message under way: `wait` ends when it is there."""

    def __init__(self, action: Callable[[], int]):
        self._action, self._source = action, -1
        self._is_done = False

    def wait(self, timeout: Any = None) -> bool:
        if not self._is_done:
            self._source = self._action()
            self._is_done = True
        return True

    def is_completed(self) -> bool:
        return self._is_done

    def source_rank(self) -> int:
        """Which process a message came from."""
        return self._source


def _connection() -> Any:
    from tenfold.engines import processes

    assert processes.current is not None
    return processes.current


def _path(group: ProcessGroup, source: int, target: int, tag: Any) -> str:
    return f"message/{'-'.join(map(str, group.ranks))}/{source}/{target}/{tag}"


def send_bytes(contents: bytes, target: int, group: ProcessGroup, tag: Any) -> None:
    """Leave a message for a process of the group."""
    own = get_rank()
    if target == own:
        raise ArgumentError(f"rank {own} sends nothing to itself")
    if target not in group.ranks or own not in group.ranks:
        raise ArgumentError(f"rank {target} or {own} is not in the group {group.ranks}")
    connection, path = _connection(), _path(group, own, target, tag)
    number = connection.exchanged[path] = connection.exchanged.get(path, 0) + 1
    connection.leave(f"{path}/{number}", contents)


def receive(source: int | None, group: ProcessGroup, tag: Any) -> tuple[bytes, int]:
    """The next message of a process of the group, or of any, and who sent it."""
    own, connection = get_rank(), _connection()
    if source is not None and (source not in group.ranks or source == own):
        raise ArgumentError(f"rank {own} receives nothing from rank {source} in the group {group.ranks}")
    sources = [rank for rank in group.ranks if rank != own] if source is None else [source]
    paths = {rank: _path(group, rank, own, tag) for rank in sources}
    numbers = {rank: connection.exchanged.get(path, 0) + 1 for rank, path in paths.items()}
    keys = {rank: f"{path}/{numbers[rank]}" for rank, path in paths.items()}
    if source is None:
        found = connection.watched(lambda: _first(connection, keys))
        if found is None:
            raise connection.lost()
        source, contents = found
    else:
        contents = connection.take(keys[source], source)
    connection.exchanged[paths[source]] = numbers[source]
    connection.forget(keys[source])
    return contents, source


def _first(connection: Any, keys: dict[int, str]) -> tuple[int, bytes] | None:
    while not connection.failure:
        for rank, key in keys.items():
            contents = connection.left(key)
            if contents is not None:
                return rank, contents
        time.sleep(POLL)
    return None


def _packed(tensor: Tensor) -> bytes:
    array = np.ascontiguousarray(tensor.detach()._host())
    header = json.dumps([tensor.dtype.name, list(array.shape)]).encode()
    return len(header).to_bytes(4, "little") + header + array.tobytes()


def _unpack(contents: bytes, target: Tensor, source: int) -> None:
    end = 4 + int.from_bytes(contents[:4], "little")
    name, shape = json.loads(contents[4:end])
    if name != target.dtype.name or list(target.shape) != shape:
        raise ShapeError(
            f"rank {source} sent {name}{shape}, which does not fit {target.dtype.name}{list(target.shape)}"
        )
    array = np.frombuffer(contents, dtypes.BY_NAME[name].numpy, offset=end).reshape(shape)
    with no_grad():
        target.copy_(leaf(array.copy(), Device("cpu"), target.dtype))


@located
def isend(
    tensor: Tensor,
    dst: int | None = None,
    group: ProcessGroup | None = None,
    tag: int = 0,
    group_dst: int | None = None,
) -> Message:
    """Send a tensor to process `dst`, as it is now."""
    world = world_of(group)
    send_bytes(_packed(tensor), chosen_rank(world, dst, group_dst, "dst"), world, tag)
    message = Message(lambda: get_rank())
    message.wait()
    return message


@located
def irecv(
    tensor: Tensor,
    src: int | None = None,
    group: ProcessGroup | None = None,
    tag: int = 0,
    group_src: int | None = None,
) -> Message:
    """Receive into a tensor what process `src` sends, or any process; `wait` of the result ends when it is
    there."""
    world = world_of(group)
    is_named = src is not None or group_src is not None
    source = chosen_rank(world, src, group_src, "src") if is_named else None

    def action() -> int:
        contents, sender = receive(source, world, tag)
        _unpack(contents, tensor, sender)
        return sender

    return Message(action)


@located
def send(
    tensor: Tensor,
    dst: int | None = None,
    group: ProcessGroup | None = None,
    tag: int = 0,
    group_dst: int | None = None,
) -> None:
    """Send a tensor to process `dst`, which receives it."""
    isend(tensor, dst, group, tag, group_dst)


@located
def recv(
    tensor: Tensor,
    src: int | None = None,
    group: ProcessGroup | None = None,
    tag: int = 0,
    group_src: int | None = None,
) -> int:
    """Receive into a tensor what process `src` sends, or any process; gives who sent it."""
    message = irecv(tensor, src, group, tag, group_src)
    message.wait()
    return message.source_rank()


class P2POp:
    """A message for `batch_isend_irecv`: `op` is `isend` or `irecv`."""

    @located
    def __init__(
        self,
        op: Callable[..., Message],
        tensor: Tensor,
        peer: int | None = None,
        group: ProcessGroup | None = None,
        tag: int = 0,
        group_peer: int | None = None,
    ):
        if op not in (isend, irecv):
            raise ArgumentError("op is distributed.isend or distributed.irecv")
        self.op, self.tensor, self.group, self.tag = op, tensor, group, tag
        self.peer = chosen_rank(world_of(group), peer, group_peer, "peer")


@located
def batch_isend_irecv(p2p_op_list: Sequence[P2POp]) -> list[Work]:
    """Start several messages; each process waits for those that it is given."""
    if not p2p_op_list:
        raise ArgumentError("batch_isend_irecv takes at least one P2POp")
    if not all(isinstance(each, P2POp) for each in p2p_op_list):
        raise ArgumentError("batch_isend_irecv takes a list of P2POp")
    return [each.op(each.tensor, each.peer, each.group, each.tag) for each in p2p_op_list]
