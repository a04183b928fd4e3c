"""Random programs run both ways, and with an error injected at every call that can fail. The long form:

python -m tests.purple.differential --programs 20000 --injected 2000 --jobs 8
"""

from __future__ import annotations

import argparse
import gc
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import NamedTuple

from tenfold.base.garbage import uncollected
from tests.purple.compiled import CHECKED, build, compiled, interpreted, run
from tests.purple.generate_programs import batch

TOGETHER = 125  # programs that one C file holds
INJECTED_TOGETHER = 25  # of those in which every call fails in turn: each time all of them run
QUICKEST = shutil.which("clang")  # without optimisation it takes a third of gcc's time
COUNTED = re.compile(r"(\d+) calls may fail")
UNCLEAN = re.compile(r"Sanitizer|not released|proved unique|status (-|[2-9]|1.)")


class Batch(NamedTuple):
    seed: int
    count: int
    tensors: float


def disagreements(which: Batch, folder: Path) -> list[str]:
    """What the programs of a batch print interpreted, and otherwise compiled."""
    text = batch(which.seed, which.count, which.tensors)
    expected = interpreted(text).splitlines()
    printed = compiled(text, folder, "-O0", "-DPURPLE_CHECK_UNIQUE", compiler=QUICKEST).splitlines()
    if len(expected) != len(printed):
        return [f"seed {which.seed}: {len(expected)} lines interpreted, {len(printed)} compiled"]
    return [f"seed {which.seed}: {a} is {b} compiled" for a, b in zip(expected, printed) if a != b]


def faults(which: Batch, folder: Path) -> list[str]:
    """What goes wrong when a call of a batch fails."""
    return faults_of(batch(which.seed, which.count, which.tensors), folder)


def faults_of(text: str, folder: Path) -> list[str]:
    """What goes wrong in a program when each of its calls that can fail does so, in turn."""
    program = build(text, folder, *CHECKED)

    def attempt(calls: str) -> tuple[subprocess.CompletedProcess[str], bool]:
        """The program run for each of these calls, and whether that ended in good order."""
        done = run(program, fail_at=calls)
        return done, done.returncode in (0, 1) and not UNCLEAN.search(done.stderr)

    def problems(first: int, last: int) -> list[str]:
        """What goes wrong in some of the calls: one process tries them all, and then each half if it must."""
        if first == last:
            done, clean = attempt(str(first))
            said = f"{done.stderr[-2000:]} ended with status {done.returncode}"
            return [] if clean else [f"call {first} of {total}: {said}"]
        done, clean = attempt(f"{first}-{last}")
        if clean and done.stderr.count("ended with status") == last - first + 1:
            return []
        middle = (first + last) // 2
        return [*problems(first, middle), *problems(middle + 1, last)]

    done, clean = attempt("all")
    counted = COUNTED.search(done.stderr)
    if counted is None:
        return [f"without errors: {done.stderr[-2000:]} ended with status {done.returncode}"]
    total = int(counted[1])
    if clean and done.stderr.count("ended with status") == total:
        return []
    return problems(1, total) or [f"all {total} calls in one process: {done.stderr[-2000:]}"]


def checked(job: tuple[Callable[[Batch, Path], list[str]], Batch]) -> list[str]:
    check, which = job
    with tempfile.TemporaryDirectory() as folder:
        try:
            with uncollected():  # a third of the interpreter's time
                return check(which, Path(folder))
        except Exception as error:
            return [f"seed {which.seed}: {type(error).__name__}: {error}"[:2000]]
        finally:
            gc.collect()


def report(
    what: str,
    check: Callable[[Batch, Path], list[str]],
    batches: list[Batch],
    pool: Callable[..., Iterable[list[str]]],
    seconds: float,
) -> int:
    """Check the batches until all are done, or the time is over; tell what was found."""
    start, programs, found = time.monotonic(), 0, 0
    for which, problems in zip(batches, pool(checked, [(check, each) for each in batches])):
        programs, found = programs + which.count, found + len(problems)
        for problem in problems:
            print(problem, flush=True)
        if time.monotonic() - start > seconds:
            break
    print(f"{programs} programs {what}: {found} problems, {time.monotonic() - start:.0f} s", flush=True)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--programs", type=int, default=20000, help="to run both ways")
    parser.add_argument("--injected", type=int, default=2000, help="to run with an error at every call")
    parser.add_argument("--tensors", type=float, default=0.1, help="the part of them that use tensors")
    parser.add_argument("--seed", type=int, default=100000)
    parser.add_argument("--jobs", type=int, default=1, help="processes at once")
    parser.add_argument("--seconds", type=float, default=1e9, help="the most that each of the two may take")
    given = parser.parse_args()
    both = [Batch(given.seed + i, TOGETHER, given.tensors) for i in range(-(-given.programs // TOGETHER))]
    injected = [
        Batch(given.seed + 50000 + i, INJECTED_TOGETHER, given.tensors)
        for i in range(-(-given.injected // INJECTED_TOGETHER))
    ]
    found = 0
    for what, check, batches in (
        ("both ways", disagreements, both),
        ("with an error at every call", faults, injected),
    ):
        with ProcessPoolExecutor(given.jobs) as pool:
            found += report(what, check, batches, pool.map, given.seconds)
            pool.shutdown(cancel_futures=True)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
