"""A `.vmfb` that others wrote, in a process of its own: it is machine code, and what it does wrong ends that
process alone. Arrays go there and come back through pipes.

The process has the rights of the user: it is no sandbox (`docs/security.md`).
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import select
import threading
import weakref
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from tenfold.base.dtypes import BY_NAME
from tenfold.base.errors import EngineError
from tenfold.engines import iree
from tenfold.exporting import limits, untrusted
from tenfold.mlir.interrupts import pass_on

COMMAND = "from tenfold.exporting.vmfb_process import serve; serve()"


class Apart:
    """An `iree.Executable` in another process, which ends with it."""

    def __init__(self, data: bytes, target: str):
        self._lock = threading.Lock()
        self._owner = os.getpid()
        self._ended = ""  # how its process ended
        self._process = untrusted.spawned(COMMAND)
        self._finalizer = weakref.finalize(self, _end_of, self._process, self._owner)
        seconds = untrusted.SECONDS + len(data) / 1e6
        try:
            reply, _ = untrusted.exchange(self._process, {"target": target}, data, seconds)
        except EOFError:
            reply = {"died": untrusted.end(self._process, untrusted.DYING)}
        untrusted.require_read(reply, seconds)
        assert reply is not None
        self.about: dict[str, Any] = reply["about"]

    def __call__(self, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
        if self._owner != os.getpid():  # another thread may have held the lock at the fork
            raise EngineError(
                "the .vmfb runs in a process of its own, which belongs to the process that loaded it",
                help="load it again in the process that was forked",
            )
        with self._lock:
            if not self._ended:
                reply, results = self._asked(*_packed(arrays))
            if self._ended:
                raise EngineError(
                    f"the process in which the .vmfb ran has ended ({self._ended})",
                    help="load it again; if it ends again, the file is damaged or made for another machine",
                )
        untrusted.require_no_error(reply)
        return results

    def _asked(self, header: dict[str, Any], data: bytes) -> tuple[dict[str, Any], list[np.ndarray]]:
        """The reply, and the arrays in it. Without a reply the process ends: it may still compute what nobody
        waits for."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._ended = "interrupted"
        try:
            with contextlib.suppress(BrokenPipeError):
                untrusted.write(self._process.stdin, header, data)
            reply, data = untrusted.receive(self._process.stdout)
            results = _unpacked(reply, data)
            self._ended = ""
            return reply, results
        except EOFError:
            self._ended = untrusted.end(self._process, untrusted.DYING)
        except (ValueError, TypeError, LookupError) as error:
            pass_on(error)
            self._ended = "its reply makes no sense"
        finally:
            if self._ended:
                untrusted.end(self._process)
        return {}, []


def _end_of(process: Any, owner: int) -> None:
    if owner == os.getpid():
        untrusted.end(process)


def _packed(arrays: Sequence[np.ndarray]) -> tuple[dict[str, Any], bytes]:
    whole = [np.ascontiguousarray(array).reshape(array.shape) for array in arrays]
    return {"arrays": [(array.dtype.name, array.shape) for array in whole]}, b"".join(
        [array.tobytes() for array in whole]
    )


def _unpacked(header: dict[str, Any], data: bytes) -> list[np.ndarray]:
    arrays, at = [], 0
    for name, shape in header.get("arrays", ()):
        dtype = BY_NAME[name].numpy if name in BY_NAME else np.dtype(name)
        count = int(np.prod(shape, dtype=np.int64))
        arrays.append(np.frombuffer(data, dtype, count, at).reshape(shape))
        at += count * np.dtype(dtype).itemsize
    return arrays


def serve() -> None:
    """The process: load a file, and run it for each request until the other end closes."""
    requests, replies = untrusted.ends_of_pipes()
    iree.runtime()
    replies.write(b"ready\n")
    replies.flush()
    with contextlib.suppress(EOFError, BrokenPipeError):
        request, data = untrusted.receive(requests)
        seconds = untrusted.PROCESSOR_SECONDS + len(data) / 1e6
        before = limits.confine(len(data), seconds, untrusted.READING_MEMORY)
        try:
            executable = iree.Executable(data, request["target"], on_trial=True)
        except Exception as error:
            untrusted.write(replies, untrusted.told(error), b"")
            return
        limits.let_go(before)
        untrusted.write(replies, {"about": executable.about}, b"")
        while True:
            header, data = untrusted.receive(requests)
            untrusted.write(replies, *_run(executable, header, data))


def _run(executable: iree.Executable, header: dict[str, Any], data: bytes) -> tuple[dict[str, Any], bytes]:
    with _ending_with_the_other():
        try:
            return _packed(executable(_unpacked(header, data)))
        except Exception as error:
            return untrusted.told(error), b""


@contextlib.contextmanager
def _ending_with_the_other() -> Iterator[None]:
    """A block that the system ends, and this process, when the other end of its input closes: it may compute
    for ever. SIGIO says so, whose default is to end."""
    flags = fcntl.fcntl(0, fcntl.F_GETFL)
    fcntl.fcntl(0, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(0, fcntl.F_SETFL, flags | os.O_ASYNC)
    if _is_closed(0):  # it was before anything could say so
        raise EOFError
    try:
        yield
    finally:
        fcntl.fcntl(0, fcntl.F_SETFL, flags)


def _is_closed(descriptor: int) -> bool:
    """Whether no process has the other end of a pipe."""
    waiting = select.poll()
    waiting.register(descriptor, 0)
    return bool(waiting.poll(0))
