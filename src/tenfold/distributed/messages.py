"""Messages from one process to another: `send`, `recv` and their kin. A message is kept until it is read, so
that a sender never waits: by the coordination service, or, if it is large, by PJRT's transfer server."""

from __future__ import annotations

import json
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
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
    """A message in transit; `wait` returns when it has arrived."""

    def __init__(self, action: Callable[[], int], tensor: Tensor):
        super().__init__([tensor])
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
        """The rank of the process that a message came from."""
        return self._source


@dataclass
class Receipt:
    """A posted receive, and the message that it takes, once that is known. Receives take the messages of a
    process in the order in which they are posted."""

    paths: dict[int, str]  # of the processes whose message it takes
    queue: deque[Receipt]  # receives of its group that have no message yet
    source: int = -1
    key: str = ""
    contents: memoryview | None = None


def _connection() -> Any:
    from tenfold.engines import processes

    assert processes.current is not None
    return processes.current


def _path(group: ProcessGroup, source: int, target: int, tag: Any) -> str:
    return f"message/{group.name}/{source}/{target}/{tag}"


def send_bytes(contents: np.ndarray, target: int, group: ProcessGroup, tag: Any) -> None:
    """Leave a message for a process of the group."""
    own = get_rank()
    if target == own:
        raise ArgumentError(f"rank {own} sends nothing to itself")
    if target not in group.ranks or own not in group.ranks:
        raise ArgumentError(f"rank {target} or {own} is not in the group {group.ranks}")
    connection, path = _connection(), _path(group, own, target, tag)
    number = connection.exchanged[path] = connection.exchanged.get(path, 0) + 1
    connection.leave(f"{path}/{number}", contents)


def post(source: int | None, group: ProcessGroup, tag: Any) -> Receipt:
    """Post a receive of the next message of a process of the group, or of any."""
    own, connection = get_rank(), _connection()
    sources = [rank for rank in group.ranks if rank != own and source in (None, rank)]
    if not sources:
        sender = "any other process" if source is None else f"rank {source}"
        raise ArgumentError(f"rank {own} receives nothing from {sender} in the group {group.ranks}")
    paths = {rank: _path(group, rank, own, tag) for rank in sources}
    receipt = Receipt(paths, connection.posted.setdefault(f"{group.name}/{tag}", deque()))
    receipt.queue.append(receipt)
    _match(connection, receipt.queue)
    return receipt


def _match(connection: Any, queue: deque[Receipt]) -> None:
    """Decide which messages posted receives take. One from any process takes the first message that is there;
    until then the receives behind it wait, since that message may be the next of their own source."""
    while queue:
        receipt = queue[0]
        for source, path in receipt.paths.items():
            number = connection.exchanged.get(path, 0) + 1
            key = f"{path}/{number}"
            contents = connection.left(key) if len(receipt.paths) > 1 else None
            if contents is not None or len(receipt.paths) == 1:
                receipt.source, receipt.key, receipt.contents = source, key, contents
                connection.exchanged[path] = number
                break
        else:
            return
        queue.popleft()


def receive(receipt: Receipt) -> tuple[memoryview, int]:
    """The message of a posted receive, and who sent it. It waits for the message."""
    connection = _connection()

    def wait() -> None:
        while not receipt.key and not connection.failure:
            _match(connection, receipt.queue)
            if not receipt.key:
                time.sleep(POLL)

    if not receipt.key:
        connection.watched(wait)
        if not receipt.key:
            raise connection.lost()
    contents = receipt.contents
    if contents is None:
        contents = connection.take(receipt.key, receipt.source)
    connection.forget(receipt.key)
    return contents, receipt.source


def _packed(tensor: Tensor) -> np.ndarray:
    array = np.ascontiguousarray(tensor.detach()._host())
    header = json.dumps([tensor.dtype.name, list(array.shape)]).encode()
    start = len(header).to_bytes(4, "little") + header
    return np.concatenate([np.frombuffer(start, np.uint8), array.reshape(-1).view(np.uint8)])


def _unpack(contents: memoryview, target: Tensor, source: int) -> None:
    end = 4 + int.from_bytes(contents[:4], "little")
    name, shape = json.loads(bytes(contents[4:end]))
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
    message = Message(lambda: get_rank(), tensor)
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
    """Start to receive a tensor that process `src` sends, or any process; `wait` of the result returns when
    it has arrived. Messages are received in the order of these calls."""
    world = world_of(group)
    is_named = src is not None or group_src is not None
    receipt = post(chosen_rank(world, src, group_src, "src") if is_named else None, world, tag)

    def action() -> int:
        contents, sender = receive(receipt)
        _unpack(contents, tensor, sender)
        return sender

    return Message(action, tensor)


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
    """Receive a tensor that process `src` sends, or any process; return the sender."""
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
    """Start several sends and receives, and return a request for each."""
    if not p2p_op_list:
        raise ArgumentError("batch_isend_irecv takes at least one P2POp")
    if not all(isinstance(each, P2POp) for each in p2p_op_list):
        raise ArgumentError("batch_isend_irecv takes a list of P2POp")
    return [each.op(each.tensor, each.peer, each.group, each.tag) for each in p2p_op_list]
