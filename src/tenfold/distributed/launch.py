"""`tenfold launch`: starts the processes of a program, watches them, and starts them again. Its flags and the
environment that it gives to the processes are torchrun's."""

from __future__ import annotations

import argparse
import contextlib
import glob
import itertools
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import uuid
from typing import Any

from tenfold.base.errors import ArgumentError, DistributedError

GRACE = 10.0  # seconds to end in, before a process is killed
POLL = 0.1


def add_arguments(parser: argparse.ArgumentParser) -> argparse.ArgumentParser:
    """Torchrun's flags, of which those about its own ways to meet are left out."""

    def flag(name: str, **options: Any) -> None:
        spellings = dict.fromkeys([f"--{name}", f"--{name.replace('-', '_')}"])
        parser.add_argument(*spellings, **options)

    flag(
        "nproc-per-node",
        default="1",
        help="processes on this machine; `gpu`: one for each CUDA device; `cpu`: one for each core; "
        "`auto`: as `gpu` where there is a CUDA device, and else as `cpu` (default: %(default)s)",
    )
    flag("nnodes", type=int, default=1, help="the number of machines (default: %(default)s)")
    flag("node-rank", type=int, default=None, help="the number of this machine, counted from 0")
    flag(
        "rdzv-endpoint",
        default="",
        help="HOST:PORT where the processes meet (default: a free port of this machine)",
    )
    flag(
        "rdzv-backend",
        default="static",
        help="accepted for compatibility with torchrun; PJRT's service is always used",
    )
    flag("rdzv-id", default="", help="a name for this run")
    flag("master-addr", default="", help="HOST of --rdzv-endpoint")
    flag("master-port", type=int, default=0, help="PORT of --rdzv-endpoint")
    flag(
        "max-restarts",
        type=int,
        default=0,
        help="how often to restart all processes after a failure (default: %(default)s)",
    )
    parser.add_argument("--standalone", action="store_true", help="one machine; the default")
    parser.add_argument("--as-torch", action="store_true", help="make `import torch` import Tenfold")
    parser.add_argument(
        "-m", "--module", action="store_true", help="the script is the name of a module, as for python -m"
    )
    parser.add_argument("script", help="the Python file, or with -m the module, that each process runs")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="passed to the script as sys.argv[1:]")
    return parser


class _Signalled(BaseException):
    """This process was told to end."""

    def __init__(self, number: int):
        self.number = number


def run(parsed: argparse.Namespace) -> int:
    """Start the processes, and again after a failure as often as is allowed; gives the exit status. When this
    process is told to end, so are they."""
    before = {}
    try:
        for each in (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
            if threading.current_thread() is threading.main_thread():
                before[each] = signal.signal(each, _told_to_end)
        return _run(parsed)
    except _Signalled as told:
        name = signal.Signals(told.number).name
        print(f"tenfold launch: ended all processes after {name}", file=sys.stderr, flush=True)
        return 128 + told.number
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


def _told_to_end(number: int, frame: Any) -> None:
    for each in (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
        signal.signal(each, signal.SIG_IGN)  # what ends the processes is not to be interrupted
    raise _Signalled(number)


def _run(parsed: argparse.Namespace) -> int:
    count = _count(parsed.nproc_per_node)
    node = _node(parsed)
    run_id = parsed.rdzv_id or uuid.uuid4().hex[:8]
    for restart in range(parsed.max_restarts + 1):
        host, port = _endpoint(parsed, restart)
        environments = [
            _environment(rank, count, node, parsed, (host, port), run_id, restart) for rank in range(count)
        ]
        failed = _watch(_command(parsed), environments)
        if failed is None:
            return 0
        rank, status = failed
        what = (
            f"was killed by {signal.Signals(-status).name}" if status < 0 else f"ended with status {status}"
        )
        left = parsed.max_restarts - restart
        print(
            f"tenfold launch: rank {node * count + rank} {what}; "
            + (f"starting all {count} again ({left} restarts left)" if left else "ended the others"),
            file=sys.stderr,
            flush=True,
        )
    return status if status > 0 else 1


def _count(text: str) -> int:
    """How many processes are meant, in torchrun's words."""
    if text in ("auto", "gpu"):
        found = _cuda_devices()
        if text == "gpu" and not found:
            raise ArgumentError(
                "--nproc-per-node gpu: there is no CUDA device", help="use `cpu`, or a number"
            )
        return found or os.cpu_count() or 1
    if text == "cpu":
        return os.cpu_count() or 1
    if not text.isdecimal() or int(text) < 1:
        raise ArgumentError(f"--nproc-per-node is a number of processes, not {text!r}")
    return int(text)


def _cuda_devices(devices: str = "/dev/nvidia[0-9]*") -> int:
    """How many CUDA devices this process may use: those of the machine, unless CUDA_VISIBLE_DEVICES says
    which. No engine is loaded for it."""
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is None:
        return len(glob.glob(devices))
    # CUDA stops at the first entry that names no device.
    chosen = [each.strip() for each in visible.split(",")]
    named = list(itertools.takewhile(lambda each: each and not each.startswith("-"), chosen))
    return len(named)


def _node(parsed: argparse.Namespace) -> int:
    """Which machine this is."""
    if parsed.node_rank is not None:
        node = parsed.node_rank
    elif "SLURM_NODEID" in os.environ and parsed.nnodes > 1:
        node = int(os.environ["SLURM_NODEID"])
    else:
        node = 0
        if parsed.nnodes > 1:
            raise ArgumentError("which of several machines this is is not known", help="give --node-rank")
    if not 0 <= node < parsed.nnodes:
        raise ArgumentError(f"machine {node} is not one of {parsed.nnodes}")
    return node


def _endpoint(parsed: argparse.Namespace, restart: int) -> tuple[str, int]:
    """Where processes meet: loopback and a free port unless it is said. Each restart has a port of its own,
    since the last group's connections may linger."""
    host, _, port = parsed.rdzv_endpoint.rpartition(":") if parsed.rdzv_endpoint else ("", "", "")
    host, port = host or parsed.master_addr, int(port or parsed.master_port or 0)
    if parsed.nnodes > 1 and not (host and port):
        raise ArgumentError("several machines must know where to meet", help="give --rdzv-endpoint HOST:PORT")
    if port:
        return host or "127.0.0.1", port + restart
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return host or "127.0.0.1", probe.getsockname()[1]


def _environment(
    local: int,
    count: int,
    node: int,
    parsed: argparse.Namespace,
    endpoint: tuple[str, int],
    run_id: str,
    restart: int,
) -> dict[str, str]:
    """What a process is told, in torchrun's words."""
    told = {
        "RANK": node * count + local,
        "LOCAL_RANK": local,
        "GROUP_RANK": node,
        "ROLE_RANK": node * count + local,
        "WORLD_SIZE": parsed.nnodes * count,
        "LOCAL_WORLD_SIZE": count,
        "GROUP_WORLD_SIZE": parsed.nnodes,
        "ROLE_WORLD_SIZE": parsed.nnodes * count,
        "MASTER_ADDR": endpoint[0],
        "MASTER_PORT": endpoint[1],
        "TORCHELASTIC_RESTART_COUNT": restart,
        "TORCHELASTIC_MAX_RESTARTS": parsed.max_restarts,
        "TORCHELASTIC_RUN_ID": run_id,
    }
    return {**os.environ, **{name: str(value) for name, value in told.items()}}


def _command(parsed: argparse.Namespace) -> list[str]:
    if parsed.as_torch:
        if parsed.module:
            raise ArgumentError("--as-torch takes a file, not a module")
        return [sys.executable, "-m", "tenfold", "run", "--as-torch", parsed.script, *parsed.arguments]
    return [sys.executable, "-u", *(["-m"] if parsed.module else []), parsed.script, *parsed.arguments]


def _watch(command: list[str], environments: list[dict[str, str]]) -> tuple[int, int] | None:
    """Start processes, and wait until all have ended well, or one has not: then end the others, and say which
    it was."""
    processes: list[subprocess.Popen[bytes]] = []
    try:
        for environment in environments:
            processes.append(subprocess.Popen(command, env=environment))
        while True:
            statuses = [process.poll() for process in processes]
            failed = [(rank, status) for rank, status in enumerate(statuses) if status]
            if failed:
                # One that was killed is the cause; those that heard of it are not.
                return min(failed, key=lambda each: (each[1] > 0, each[0]))
            if all(status == 0 for status in statuses):
                return None
            time.sleep(POLL)
    except KeyboardInterrupt:
        raise DistributedError("interrupted") from None
    finally:
        _end(processes)


def _end(processes: list[subprocess.Popen[bytes]]) -> None:
    """End processes that still run: they may tidy up, but not for long."""
    running = [process for process in processes if process.poll() is None]
    for each in running:
        with contextlib.suppress(ProcessLookupError):
            each.send_signal(signal.SIGTERM)
            each.send_signal(signal.SIGCONT)  # one that is stopped would not hear it
    end = time.monotonic() + GRACE
    for each in running:
        try:
            each.wait(max(0.0, end - time.monotonic()))
        except subprocess.TimeoutExpired:
            each.kill()
            each.wait()
