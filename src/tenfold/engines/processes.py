"""Processes that work together: PJRT's coordination service connects them, and gloo or NCCL carries what
their programs exchange. A process that dies or stops is noticed by the others, which raise an error that
names it."""

from __future__ import annotations

import atexit
import contextlib
import functools
import json
import os
import queue
import socket
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np

from tenfold.base.errors import DistributedError
from tenfold.base.heap import keep_memory
from tenfold.engines import coordinator, xla
from tenfold.engines.agreement import Program, Turn
from tenfold.engines.transfers import INLINE, LARGE, Transfers
from tenfold.engines.xla import clients
from tenfold.mlir.interrupts import pass_on
from tenfold.version import release

BEAT = 2.0  # seconds between signs of life
SILENCE = 15.0  # seconds without one, after which a process counts as gone
POLL = 0.25
PULLS = 60.0  # seconds that a process which ends waits for others to pull its messages
current: Connection | None = None


class Connection:
    """This process's place among those that work together."""

    def __init__(self, address: str, rank: int, world: int, timeout: float):
        self.address, self.rank, self.world, self.timeout = address, rank, world, timeout
        self.peers: list[dict[str, Any]] = []
        self.failure = ""  # which process is gone, once that is known
        self.runtime: Any = None
        self._lifeline: socket.socket | None = None
        self._ends = threading.Event()  # set when this process ends
        self._idle = threading.Event()
        self._idle.set()
        self.exchanged: dict[str, int] = {}  # how many objects a group has exchanged
        self.kept: dict[str, list[int]] = {}  # which of them the coordination service still has from here
        self.posted: dict[str, deque[Any]] = {}  # receives of a group that have no message yet, in order
        self._offered: list[str] = []  # messages that others are to pull from here
        self._counts: dict[tuple[int, ...], int] = {}
        self._runs: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        if world > 1:
            self._connect()

    def _connect(self) -> None:
        end = time.monotonic() + self.timeout
        if self.rank == 0:
            self._start_coordinator()
        port = self._meet(end)
        self.runtime = xla.jaxlib()._jax.get_distributed_runtime_client(
            f"{self.address.rpartition(':')[0]}:{port}",
            self.rank,
            init_timeout=600,
            heartbeat_timeout=coordinator.NEVER,
            shutdown_timeout=1,
            shutdown_on_destruction=False,
        )
        self.runtime.connect()
        own = {"host": socket.gethostname(), "pid": os.getpid()}
        self.set(f"process/{self.rank}", json.dumps(own))
        self.peers = [json.loads(self.get(f"process/{rank}", rank)) for rank in range(self.world)]
        keep_memory(of_all_threads=True)
        for work in (self._run_all, self._beat):
            thread = threading.Thread(target=work, name=f"tenfold{work.__name__}", daemon=True)
            thread.start()
        self._beating = thread
        atexit.register(self._wait_for_runs)

    def _start_coordinator(self) -> None:
        """Start the process where all meet."""
        command = [sys.executable, "-m", coordinator.__name__, self.address, str(self.world)]
        process = subprocess.Popen(
            [*command, str(self.timeout), str(os.getpid())],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            start_new_session=True,  # an interrupt is for those that compute
        )
        assert process.stdout is not None
        line = process.stdout.readline().decode().strip()
        if line != "ready":
            why = line or "the coordinator does not start"
            raise DistributedError(
                f"rank 0 cannot listen at {self.address}: {why}",
                help="choose another MASTER_PORT, or let `tenfold launch` choose one",
            )

    def _meet(self, end: float) -> str:
        """Wait until all processes are there; gives the port of the coordination service."""
        host, _, port = self.address.rpartition(":")
        while True:
            try:
                self._lifeline = socket.create_connection((host.strip("[]"), int(port)), timeout=5)
                break
            except OSError as error:
                if time.monotonic() > end:
                    raise DistributedError(
                        f"rank {self.rank} waited {self.timeout:g} s at {self.address}, and rank 0 was not "
                        f"there ({error.strerror or error})",
                        help="start rank 0, with the same MASTER_ADDR and MASTER_PORT",
                    ) from None
                time.sleep(POLL / 5)
        self._lifeline.sendall(f"{self.rank} {release}\n".encode())
        self._lifeline.settimeout(max(1.0, end + 5 - time.monotonic()))
        try:
            verdict, _, text = self._lifeline.makefile().readline().strip().partition(" ")
        except OSError:
            verdict = text = ""
        self._lifeline.settimeout(None)
        if verdict == "go":
            return text
        help = "start as many processes as WORLD_SIZE says, each with another RANK, and all of one version"
        said = {
            "missing": f"rank {text} did not come to {self.address} within {self.timeout:g} s",
            "left": f"rank {text} left {self.address} before all processes were there",
            "outside": "rank {} is not one of the {} processes that rank 0 waits for".format(
                *(text.split() + ["", ""])[:2]
            ),
            "taken": f"another process at {self.address} is rank {text} already",
            "version": text,
        }
        raise DistributedError(said.get(verdict, f"the coordinator at {self.address} is gone"), help=help)

    # What processes tell each other

    def set(self, key: str, value: str) -> None:
        self.runtime.key_value_set(f"tenfold/{key}", value, allow_overwrite=True)

    def get(self, key: str, rank: int) -> str:
        """What another process has set, or will set soon."""
        wait = int(self.timeout * 1000)
        try:
            return self.watched(lambda: self.runtime.blocking_key_value_get(f"tenfold/{key}", wait))
        except DistributedError:
            raise
        except Exception as error:
            pass_on(error)
            raise DistributedError(f"rank {rank} did not answer within {self.timeout:g} s") from None

    def leave(self, key: str, contents: np.ndarray) -> None:
        """Keep bytes for another process: with the coordination service, or, if they are many, here."""
        if self.failure:
            raise self.lost()
        if contents.size < LARGE:
            kept = INLINE + contents.tobytes()
        else:
            kept = self._transfers().offer(contents)
            self._offered.append(key)
        self.runtime.key_value_set_bytes(f"tenfold/{key}", kept, allow_overwrite=True)

    def take(self, key: str, rank: int) -> memoryview:
        """The bytes that another process leaves."""
        wait = int(self.timeout * 1000)
        try:
            return self.watched(
                lambda: self._opened(self.runtime.blocking_key_value_get_bytes(f"tenfold/{key}", wait))
            )
        except DistributedError:
            raise
        except Exception as error:
            pass_on(error)
            if self._gone():
                raise self.lost() from None
            raise DistributedError(f"rank {rank} sent nothing within {self.timeout:g} s") from None

    def left(self, key: str) -> memoryview | None:
        """The bytes that another process has left, if it has."""
        kept = self._left(key)
        return None if kept is None else self._opened(kept)

    def _left(self, key: str) -> bytes | None:
        try:
            return self.runtime.key_value_try_get_bytes(f"tenfold/{key}")
        except Exception as error:
            pass_on(error)
            return None

    def _opened(self, kept: bytes) -> memoryview:
        """The bytes themselves of what another process has left."""
        if kept[:1] == INLINE:
            return memoryview(kept)[1:]
        contents = self._transfers().pull(kept, lambda: bool(self.failure))
        if contents is None:
            raise self.lost()
        return contents

    @functools.cache  # noqa: B019 - there is one connection
    def _transfers(self) -> Transfers:
        assert self._lifeline is not None
        return Transfers(self._lifeline.getsockname()[0])

    def _wait_for_pulls(self) -> None:
        """Stay until others have what this process offers them."""
        end = time.monotonic() + min(self.timeout, PULLS)
        while self._offered and not self.failure and not self._gone() and time.monotonic() < end:
            self._offered = [key for key in self._offered if self._left(key) is not None]
            time.sleep(POLL / 10)

    def forget(self, key: str) -> None:
        """Let the coordination service keep this no longer."""
        with contextlib.suppress(Exception):
            self.runtime.key_value_delete(f"tenfold/{key}")

    def known(self, key: str) -> str | None:
        """What another process has set, if it has."""
        try:
            return self.runtime.key_value_try_get(f"tenfold/{key}")
        except Exception as error:
            pass_on(error)
            return None

    def soon(self, key: str) -> str | None:
        """What another process sets; None once this one has heard of a failure."""
        while not self.failure:
            with contextlib.suppress(Exception):
                return self.runtime.blocking_key_value_get(f"tenfold/{key}", int(POLL * 1000))
        return None

    # Programs that processes run together

    def has_run(self, devices: tuple[int, ...]) -> int:
        """How many programs this process has run on these devices together with others."""
        return self._counts.get(devices, 0)

    def differ(self, rank: int, text: str, digest: str) -> None:
        """Raise the error of a process that runs another program than this one."""
        theirs = self.known(f"program/{digest}") or "another one"
        error = DistributedError(
            f"rank {self.rank} runs another program than rank {rank}: here {text}, there {theirs}",
            help="let every process take the same steps, on tensors of the same shapes",
        )
        self.failure = f"rank {self.rank} runs another program than rank {rank}"
        raise error

    def run(self, program: Program, run: Callable[[], Any]) -> Any:
        """What a program gives that exchanges data with other processes. Those that run different ones wait
        forever, or gloo ends them. So they compare what they run before a new program runs, and before each
        run where that is the program's way or TORCH_DISTRIBUTED_DEBUG=DETAIL asks for it."""
        number = self._counts[program.devices] = self._counts.get(program.devices, 0) + 1
        turn = Turn(self, program, number)
        if program.is_new:
            self.set(f"program/{program.digest}", program.text)
        if program.is_new or program.always or os.environ.get("TORCH_DISTRIBUTED_DEBUG") == "DETAIL":
            self.watched(turn.agree, turn.look)
            program.is_new = False
        return self.watched(run, turn.look)

    # Noticing that one is gone

    def _beat(self) -> None:
        """Give signs of life, and look for those of the others."""
        number = 0
        last: dict[int, tuple[str | None, float]] = {}
        while not self.failure:
            number += 1
            with contextlib.suppress(Exception):
                self.set(f"beat/{self.rank}", str(number))
                for rank in range(self.world):
                    beat, now = self.known(f"beat/{rank}"), time.monotonic()
                    if rank == self.rank or beat == "bye":
                        continue
                    if rank not in last or last[rank][0] != beat:
                        last[rank] = beat, now
                    elif now - last[rank][1] > SILENCE and not self.failure:
                        self.failure = f"rank {rank} gave no sign of life for {SILENCE:g} s"
            self._ends.wait(BEAT)

    def lost(self) -> DistributedError:
        """The error that names the process which is gone, as far as that can be found out."""
        end = time.monotonic() + SILENCE + 2 * BEAT
        while True:
            gone = self._gone()
            if gone or self.failure:
                self.failure = self.failure or ", ".join(gone)
                return DistributedError(
                    ", ".join(gone) or self.failure, help="see its output; start all again"
                )
            if time.monotonic() > end:
                self.failure = "the connection to another process broke"
                return DistributedError(self.failure, help="see the output of the other processes")
            time.sleep(POLL)

    def _gone(self) -> list[str]:
        """Which other processes of this machine have ended or were stopped."""
        here, lost = socket.gethostname(), []
        for rank, peer in enumerate(self.peers):
            state = _state(peer["pid"]) if rank != self.rank and peer["host"] == here else ""
            if state:
                lost.append(f"rank {rank} {state}")
        return lost

    def watched(self, run: Callable[[], Any], look: Callable[[], list[int]] | None = None) -> Any:
        """What a call gives that may wait for other processes. It runs in another thread, so that this one
        hears when one of them is gone. `look` gives those that are not there yet, or raises."""
        if not self.peers:
            return run()
        if self.failure:
            raise self.lost()
        results: list[Any] = []
        errors: list[BaseException] = []
        done = threading.Event()

        def work() -> None:
            try:
                results.append(run())
            except BaseException as error:
                errors.append(error)
            done.set()

        self._runs.put(work)
        end, looked = time.monotonic() + self.timeout, time.monotonic()
        while not done.wait(POLL):
            missing = look() if look is not None else []
            now = time.monotonic()
            if self.failure or (now - looked > 1 and self._gone()):
                if done.wait(2 * POLL) and errors:
                    raise errors[0]  # that of the failure itself
                raise self.lost()
            looked = now if now - looked > 1 else looked
            if now > end:
                others = ", ".join(f"rank {rank}" for rank in missing) or "the other processes"
                self.failure = f"rank {self.rank} waited {self.timeout:g} s for {others}"
                raise DistributedError(
                    self.failure, help="see what it does; init_process_group(timeout=...) is how long to wait"
                )
        if errors:
            raise errors[0]
        return results[0]

    def _run_all(self) -> None:
        while True:
            work = self._runs.get()
            self._idle.clear()
            work()
            self._idle.set()

    def _wait_for_runs(self) -> None:
        """At the end of this process: let a run end that waits for processes which are gone, and signs of
        life, because a thread that comes back from native code now would end in an abort."""
        self.close()
        self._ends.set()
        self._idle.wait(5)
        self._beating.join(5)

    def translate(self, error: Exception) -> Exception:
        """An error of a program that others take part in: that of a process which is gone, if one is."""
        text = str(error).lower()
        if any(word in text for word in ("gloo", "connect", "peer", "socket", "nccl", "unavailable")):
            return self.lost()
        return error

    def cpu_client(self, xc: Any, count: int) -> Any:
        """XLA's client for the CPU devices of all processes."""
        host = self.address.rpartition(":")[0]
        near = {"hostname": host} if host in ("127.0.0.1", "localhost") else {}
        collectives = xla.jaxlib()._jax.make_gloo_tcp_collectives(distributed_client=self.runtime, **near)
        make = lambda: xc.make_cpu_client(
            asynchronous=False,
            distributed_client=self.runtime,
            node_id=self.rank,
            num_nodes=self.world,
            num_devices=count,
            collectives=collectives,
        )
        return self.watched(make)

    def close(self) -> None:
        """Leave the others."""
        if self.runtime is not None and not self.failure:
            self._wait_for_pulls()
            self.failure = "the process group was destroyed"
            with contextlib.suppress(Exception):
                self.set(f"beat/{self.rank}", "bye")


def connect(address: str, rank: int, world: int, timeout: float) -> Connection:
    """Join the other processes. It must come before the first result: devices are known from then on."""
    global current
    if world > 1 and xla.in_use:
        raise DistributedError(
            "this process has computed already, so it cannot join others",
            help="call init_process_group before anything is computed",
        )
    current = Connection(address, rank, world, timeout)
    if world > 1:
        clients.cluster = current
    return current


def _state(pid: int) -> str:
    """What became of a process of this machine: "" while it runs."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            state = file.read().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return "has died" if os.path.isdir("/proc/self") else ""
    except OSError:
        return ""
    return {"Z": "has died", "X": "has died", "T": "is stopped", "t": "is stopped"}.get(state, "")
