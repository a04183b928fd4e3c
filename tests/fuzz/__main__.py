"""`python -m tests.fuzz [--count N] [--seed S] [--only FORMAT]`: hostile inputs of every format that is read.

Each format is read by a worker, which is watched: it may not die, compute for more than five seconds on an
input, wait for a minute while nothing computes, hold more than a gigabyte with its own child, or raise what
is no error of Tenfold's. Processor time is what counts, so a busy machine makes no findings. Each run has a
cache of its own, and gives memory back at once that arrays had. What is found is printed with the seed that
makes it again: `python -m tests.fuzz --only FORMAT --seed S --count 1 --here`.
"""

from __future__ import annotations

import argparse
import os
import selectors
import subprocess
import sys
import tempfile
import time
import traceback
from pathlib import Path

SECONDS = 5.0  # of processor time, for one input
ENDLESS = 1.0  # likewise, after which a program that may run for ever is left
WAIT = 60.0  # of the clock, in which nothing computes
START = 300.0  # likewise, until the first input is read: engines are loaded, and valid files made
BYTES = 1 << 30
LARGEST = 4 << 30  # bytes that a program which is run may ask for: a tensor may be as large as it likes
PAGE = os.sysconf("SC_PAGE_SIZE")
TICKS = os.sysconf("SC_CLK_TCK")


def main() -> int:
    from tests.fuzz.inputs import FORMATS

    parser = argparse.ArgumentParser(prog="python -m tests.fuzz")
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", choices=[*FORMATS, "c"], action="append")
    parser.add_argument("--here", action="store_true", help="in this process, as a worker or a debugger does")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="tenfold-fuzz-") as folder:
        # A worker that is killed leaves its own folder in this one.
        os.environ.update(TENFOLD_CACHE_DIR=folder, TMPDIR=folder, TENFOLD_KEEP_MEMORY="0")
        tempfile.tempdir = None
        return run(options)


def run(options: argparse.Namespace) -> int:
    from tests.fuzz.inputs import FORMATS

    if options.here:
        return work(options.only[0], options.seed, options.count)
    found = 0
    for name in options.only or [*FORMATS, "c"]:
        start = time.monotonic()
        findings = call_c(options) if name == "c" else watch(name, options.seed, options.count)
        seconds = time.monotonic() - start
        print(f"{name:12} {options.count} inputs, {len(findings)} findings, {seconds:.0f} s", flush=True)
        found += len(findings)
    return 1 if found else 0


def work(name: str, seed: int, count: int) -> int:
    """A worker: says which seed it is at, and what went wrong."""
    import resource
    import warnings

    from tests.fuzz.inputs import FORMATS, attempt

    resource.setrlimit(resource.RLIMIT_DATA, (LARGEST, resource.getrlimit(resource.RLIMIT_DATA)[1]))
    warnings.simplefilter("ignore")
    FORMATS[name].valid()
    for each in range(seed, seed + count):
        print(f"at {each}", flush=True)
        try:
            attempt(FORMATS[name], each)
        except Exception:
            print(f"wrong {each} {traceback.format_exc().strip().splitlines()[-1]}", flush=True)
    print("done", flush=True)
    return 0


def watch(name: str, seed: int, count: int) -> list[str]:
    """Run workers until all seeds are done, another from the next seed after each that ends early."""
    findings: list[str] = []
    end = seed + count
    while seed < end and len(findings) < 50:
        command = [sys.executable, "-m", "tests.fuzz", "--here", "--only", name]
        command += ["--seed", str(seed), "--count", str(end - seed)]
        worker = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        at, why = follow(worker, findings, name)
        if why is None:
            break
        if why:
            note(findings, f"{name} seed {at}: {why}")
        seed = max(at, seed - 1) + 1
    return findings


def note(findings: list[str], finding: str) -> None:
    """Print a finding at once: a long run may be stopped."""
    findings.append(finding)
    print(f"  {finding}", flush=True)


def follow(worker: subprocess.Popen[str], findings: list[str], name: str) -> tuple[int, str | None]:
    """The last seed of a worker, and why it ended before it was done: of a program that takes long itself,
    without a reason. docs/security.md says that such a program may run for ever."""
    from tests.fuzz.inputs import LOOPING

    assert worker.stdout is not None
    waiting = selectors.DefaultSelector()
    waiting.register(worker.stdout, selectors.EVENT_READ)
    at, used, loops = -1, 0.0, False
    seen, idle = 0.0, time.monotonic()  # the last processor time, and since when it has not changed
    told = b""  # read here, since what a stream has read ahead, `select` does not see
    try:
        while True:
            if b"\n" not in told and not waiting.select(0.5):
                now = processor_time(worker.pid)
                if at >= 0 and now - used > (ENDLESS if loops else SECONDS):
                    return at, "" if loops else f"computes for over {SECONDS:.0f} s"
                if now != seen:
                    seen, idle = now, time.monotonic()
                if time.monotonic() - idle > (patience := START if at < 0 else WAIT):
                    return at, "" if loops else f"hangs for over {patience:.0f} s"
                continue
            if b"\n" not in told:
                more = os.read(worker.stdout.fileno(), 1 << 16)
                if not more:
                    return at, f"died with {worker.wait()}"
                told += more
                continue
            first, _, told = told.partition(b"\n")
            line = first.decode(errors="replace")
            if line == LOOPING:
                used, idle, loops = processor_time(worker.pid), time.monotonic(), True
                continue
            if line == "done":
                return at, None
            word, number, *rest = line.split(maxsplit=2)
            if word == "wrong":
                note(findings, f"{name} seed {number}: {' '.join(rest).strip()}")
                continue
            at, used, idle, loops = int(number), processor_time(worker.pid), time.monotonic(), False
            if (held := memory(worker.pid)) > BYTES:
                return at, f"holds {held >> 20} MB"
    finally:
        worker.kill()
        worker.wait()
        worker.stdout.close()


def processor_time(process: int) -> float:
    """The seconds that a process and its children, those that ended included, have computed."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
        children = Path(f"/proc/{process}/task/{process}/children").read_text().split()
    except OSError:
        return 0.0
    own = sum(int(each) for each in fields[11:15]) / TICKS
    return own + sum(processor_time(int(each)) for each in children)


def memory(process: int) -> int:
    """The bytes that a process and its children hold, without what they share with files."""
    try:
        _, held, shared, *_ = Path(f"/proc/{process}/statm").read_text().split()
        children = Path(f"/proc/{process}/task/{process}/children").read_text().split()
    except OSError:
        return 0
    return (int(held) - int(shared)) * PAGE + sum(memory(int(each)) for each in children)


def call_c(options: argparse.Namespace) -> list[str]:
    """Random calls of the C ABI, in checked mode."""
    command = [sys.executable, "-m", "tests.capi.fuzzer", str(options.count), str(options.seed)]
    done = subprocess.run(
        command,
        env={**os.environ, "TENFOLD_CHECKED": "1"},
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )
    findings: list[str] = []
    if done.returncode:
        note(findings, f"c seed {options.seed}: {done.stderr[-500:]}")
    return findings


if __name__ == "__main__":
    sys.exit(main())
