"""`tenfold.multiprocessing`: Python's own, with PyTorch's `spawn`. Tensors that are sent to another process
are copied; their memory is not shared."""

from __future__ import annotations

import multiprocessing
import multiprocessing.connection
import traceback
from multiprocessing import *  # noqa: F403
from typing import Any

__all__ = [
    *multiprocessing.__all__, "ProcessContext", "ProcessExitedException", "ProcessRaisedException",
    "SpawnContext", "get_all_sharing_strategies", "get_sharing_strategy", "set_sharing_strategy", "spawn",
    "start_processes",
]  # fmt: skip


class ProcessException(Exception):
    """A spawned process failed."""

    def __init__(self, msg: str, error_index: int, pid: int | None):
        super().__init__(msg)
        self.msg, self.error_index, self.pid = msg, error_index, pid


class ProcessRaisedException(ProcessException):
    """A spawned process raised an exception; the message contains its text."""


class ProcessExitedException(ProcessException):
    """A spawned process ended with a nonzero status."""

    def __init__(self, msg: str, error_index: int, error_pid: int | None, exit_code: int | None):
        super().__init__(msg, error_index, error_pid)
        self.exit_code = exit_code


def get_all_sharing_strategies() -> set[str]:
    return {"file_system"}


def get_sharing_strategy() -> str:
    return "file_system"


def set_sharing_strategy(new_strategy: str) -> None:
    """Does nothing: memory is not shared."""


def _run(function: Any, index: int, args: tuple[Any, ...], errors: Any) -> None:
    try:
        function(index, *args)
    except KeyboardInterrupt:
        pass
    except Exception:
        errors.put(traceback.format_exc())
        raise SystemExit(1) from None


class ProcessContext:
    """A group of processes; `join` waits for them."""

    def __init__(self, processes: list[Any], error_queues: list[Any]):
        self.processes, self.error_queues = processes, error_queues

    def pids(self) -> list[int]:
        return [process.pid for process in self.processes]

    def join(self, timeout: float | None = None, grace_period: float | None = None) -> bool:
        """Wait until all processes are done. If one fails, the others are ended and its error is raised."""
        waiting = {process.sentinel: index for index, process in enumerate(self.processes)}
        while waiting:
            ready = multiprocessing.connection.wait(list(waiting), timeout)
            if not ready:
                return False
            for sentinel in ready:
                index = waiting.pop(sentinel)
                self.processes[index].join()
                if self.processes[index].exitcode:
                    self._fail(index)
        return True

    def _fail(self, index: int) -> None:
        for process in self.processes:
            if process.is_alive():
                process.terminate()
            process.join()
        failed = self.processes[index]
        if self.error_queues[index].empty():
            message = f"process {index} terminated with exit code {failed.exitcode}"
            raise ProcessExitedException(message, index, failed.pid, failed.exitcode)
        text = self.error_queues[index].get()
        message = f"\n\n-- Process {index} terminated with the following error:\n{text}"
        raise ProcessRaisedException(message, index, failed.pid)


SpawnContext = ProcessContext


def start_processes(
    fn: Any,
    args: tuple[Any, ...] = (),
    nprocs: int = 1,
    join: bool = True,
    daemon: bool = False,
    start_method: str = "spawn",
) -> ProcessContext | None:
    """Start processes that call `fn(index, *args)`, and wait for them unless `join` is False."""
    context = multiprocessing.get_context(start_method)
    queues = [context.SimpleQueue() for _ in range(nprocs)]
    processes = [
        context.Process(target=_run, args=(fn, index, args, queues[index]), daemon=daemon)  # type: ignore[attr-defined]
        for index in range(nprocs)
    ]
    for process in processes:
        process.start()
    started = ProcessContext(processes, queues)
    if not join:
        return started
    while not started.join():
        pass
    return None


def spawn(
    fn: Any,
    args: tuple[Any, ...] = (),
    nprocs: int = 1,
    join: bool = True,
    daemon: bool = False,
    start_method: str = "spawn",
) -> ProcessContext | None:
    """Start fresh processes that call `fn(index, *args)`."""
    return start_processes(fn, args, nprocs, join, daemon, start_method)
