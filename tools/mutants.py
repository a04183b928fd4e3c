"""Does a test fail when the code is wrong? Changes the sources at random, one place at a time, and sees.

A mutant differs from the package by one operator, comparison, number or truth value. The tests nearest to the
file run against it until one fails: first those that call the changed function, then the others. A mutant
that passes them all is printed: a test is missing or the change means nothing. All of these tests run once on
the unchanged sources first: what fails there says nothing of a mutant, and is printed and left out.
`python -m tools.mutants --count 30 --seed 1` runs thirty.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import json
import math
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from tools.affected import ROOT, Selection, selections

# Where a change shows in tests: not in what is printed for people, nor in what builds and measures.
LEFT_OUT = ("command", "compat", "capi", "explain", "testing.py")
LEFT_BEHIND = (".git", ".venv", "build", "__pycache__", ".mypy_cache", ".ruff_cache")  # of a copy
PATIENCE = 60  # seconds that a mutant's tests may take beyond three times what they take unchanged
SAMPLES = ("At", "Matrices", "S", "T", "pivot_rows")  # what makes them, of ops/samples.py
CALLING = 40  # tests that call the changed function run first, so many of them
WAITING = 10  # how many times as long as they may compute the tests may take by the clock
PASSED, SOME_FAILED = (0, 5), 1  # what pytest exits with; 5 if no test was selected
OPERATORS: dict[type, tuple[str, str]] = {
    ast.Add: ("+", "-"),
    ast.Sub: ("-", "+"),
    ast.Mult: ("*", "+"),
    ast.Div: ("/", "*"),
    ast.FloorDiv: ("//", "*"),
    ast.Mod: ("%", "*"),
    ast.Lt: ("<", "<="),
    ast.LtE: ("<=", "<"),
    ast.Gt: (">", ">="),
    ast.GtE: (">=", ">"),
    ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="),
    ast.Is: ("is", "is not"),
    ast.IsNot: ("is not", "is"),
    ast.And: ("and", "or"),
    ast.Or: ("or", "and"),
}


@dataclass(frozen=True)
class Mutant:
    """A change of one file: the characters from `start` to `end` of its text become `new`."""

    path: Path
    line: int
    function: int  # the line on which the function begins that the change is in; 0 if it is in none
    start: int
    end: int
    new: str

    def text(self) -> str:
        whole = self.path.read_bytes()
        return (whole[: self.start] + self.new.encode() + whole[self.end :]).decode()

    def __str__(self) -> str:
        lines = self.path.read_text().splitlines(), self.text().splitlines()
        old, new = (each[self.line - 1].strip() for each in lines)
        return f"{self.path.relative_to(ROOT)}:{self.line}\n    - {old}\n    + {new}"


def mutants(path: Path) -> list[Mutant]:
    """Every change of a file that is tried, in the order of its text."""
    whole = path.read_bytes()
    starts = [0]
    for line in whole.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))

    def offset(line: int, column: int) -> int:
        return starts[line - 1] + column

    tree = ast.parse(whole)
    spans = [
        (min([node.lineno, *[each.lineno for each in node.decorator_list]]), node.end_lineno or 0)
        for node in ast.walk(tree)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
    ]
    found = []
    for node, left, right in _places(tree):
        start, end = offset(*left), offset(*right)
        between = whole[start:end].decode()
        change = _change(node, between)
        if change is not None and "\n" not in between:
            old, new = change
            at = start + len(between[: between.index(old)].encode())
            functions = [begin for begin, end in spans if begin <= left[0] <= end]
            found.append(Mutant(path, left[0], max(functions, default=0), at, at + len(old.encode()), new))
    return found


def _places(tree: ast.AST) -> Iterator[tuple[ast.AST, tuple[int, int], tuple[int, int]]]:
    """What may change: operators, with the text between their operands, numbers and truth values."""
    for node in _walked(tree):
        if isinstance(node, ast.BinOp):
            yield node.op, _end(node.left), _start(node.right)
        elif isinstance(node, ast.Compare) and len(node.ops) == 1:
            yield node.ops[0], _end(node.left), _start(node.comparators[0])
        elif isinstance(node, ast.BoolOp):
            yield node.op, _end(node.values[0]), _start(node.values[1])
        elif isinstance(node, ast.Constant) and isinstance(node.value, (bool, int, float)):
            yield node, _start(node), _end(node)


def _walked(node: ast.AST) -> Iterator[ast.AST]:
    """All nodes but annotations, samples and zip's `strict`, which say nothing of what is computed."""
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.keyword) and child.arg in ("samples", "strict"):
                continue
            if isinstance(child, ast.AST) and not _is_sample(child):
                yield child
                yield from _walked(child)


def _is_sample(node: ast.AST) -> bool:
    """Whether a node makes arguments for the generated tests of a row, or several of them."""
    if isinstance(node, (ast.ListComp, ast.GeneratorExp)):
        return _is_sample(node.elt)
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in SAMPLES


def _start(node: ast.expr) -> tuple[int, int]:
    return node.lineno, node.col_offset


def _end(node: ast.expr) -> tuple[int, int]:
    assert node.end_lineno is not None and node.end_col_offset is not None
    return node.end_lineno, node.end_col_offset


def _change(node: ast.AST, text: str) -> tuple[str, str] | None:
    if isinstance(node, ast.Constant):
        number = node.value
        return text, str(not number if isinstance(number, bool) else number + 1)  # type: ignore[operator]
    change = OPERATORS.get(type(node))
    return change if change is not None and change[0] in text else None


# Running them


class Baseline:
    """What the tests say of the unchanged sources, in a copy of the project: each selection is run once.

    A mutant may take a few times the processor time that the unchanged sources took: past that it runs for
    ever. The clock decides only of tests that wait, since others may use the same machine.
    """

    def __init__(self, tree: Path, seconds: float):
        self.tree, self.seconds = tree, seconds
        self.limits: dict[Selection, float] = {}
        self.callers: dict[Selection, dict[str, list[str]]] = {}  # which tests call a function
        self.failing: dict[Selection, list[str]] = {}

    def limit(self, selection: Selection) -> float:
        """How long these tests may take on a mutant; 0 if they do not end while nothing is changed."""
        if selection not in self.limits:
            with tempfile.NamedTemporaryFile(suffix=".json") as file:
                noting = ["-p", "tools.calls", "--calls", file.name]
                code, took = _run(selection, self.tree, self.seconds, noting)
                calls = json.load(file) if code in (*PASSED, SOME_FAILED) else {"callers": {}, "failed": []}
            self.callers[selection], self.failing[selection] = calls["callers"], calls["failed"]
            ended = code in PASSED or (code == SOME_FAILED and calls["failed"])
            self.limits[selection] = min(self.seconds, PATIENCE + 3 * took) if ended else 0
            for left_out in self.failing[selection] if ended else selection.arguments():
                print(f"left out, fails unchanged: {left_out}", flush=True)
        return self.limits[selection]

    def parts(self, selection: Selection, mutant: Mutant) -> list[Selection]:
        """The quickest tests of a selection that call a mutant's function, then all of it."""
        function = f"{mutant.path.relative_to(ROOT)}:{mutant.function}"
        calling = [
            test for test in self.callers[selection].get(function, []) if test not in self.failing[selection]
        ]
        return [*([Selection(tuple(calling[:CALLING]))] if calling else []), selection]

    def passes(self, part: Selection, selection: Selection) -> bool:
        """Whether a part of a selection passes, but for what fails while nothing is changed."""
        without = [f"--deselect={test}" for test in self.failing[selection]]
        code, _ = _run(part, self.tree, self.limits[selection], ["-x", *without])
        return code in PASSED


@dataclass(frozen=True)
class Verdict:
    """Whether tests that pass unchanged ran on a mutant, and those that failed."""

    tried: bool
    killer: Selection | None = None


def judge(mutant: Mutant, baseline: Baseline) -> Verdict:
    """Run the selections of a mutant's file, the nearest first, until one fails. Of each, tests that call the
    changed function run first."""
    tried = False
    for selection in selections(mutant.path):
        if not baseline.limit(selection):
            continue
        tried = True
        for part in baseline.parts(selection, mutant):
            with applied(mutant, baseline.tree):
                passes = baseline.passes(part, selection)
            if not passes:
                return Verdict(tried, selection)
    return Verdict(tried)


@contextlib.contextmanager
def applied(mutant: Mutant, tree: Path) -> Iterator[None]:
    """A block in which a copy of the project has the change."""
    place = tree / mutant.path.relative_to(ROOT)
    original = place.read_text()
    place.write_text(mutant.text())
    try:
        yield
    finally:
        place.write_text(original)


def _run(selection: Selection, tree: Path, seconds: float, more: Sequence[str]) -> tuple[int, float]:
    """What pytest exits with on these tests, and the processor time that they took, at most `seconds`."""
    options = ["-q", "-m", "not slow", "-p", "no:cacheprovider"]
    environment = {
        **os.environ,
        "PYTHONPATH": f"{tree / 'src'}{os.pathsep}{tree}",
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    running = subprocess.Popen(
        [sys.executable, "-m", "pytest", *options, *more, *selection.arguments()],
        cwd=tree, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        start_new_session=True,
    )  # fmt: skip
    resource.prlimit(running.pid, resource.RLIMIT_CPU, (math.ceil(seconds),) * 2)
    alarm = threading.Timer(WAITING * seconds, os.kill, (running.pid, signal.SIGKILL))
    alarm.start()
    try:
        _, status, used = os.wait4(running.pid, 0)
    finally:
        alarm.cancel()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(running.pid, signal.SIGKILL)  # and what its tests have started
    running.returncode = os.waitstatus_to_exitcode(status)
    return running.returncode, used.ru_utime + used.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__.splitlines()[0], epilog="example: python -m tools.mutants --count 30 --seed 1"
    )
    parser.add_argument("--count", type=int, default=300, help="how many mutants (default: 300)")
    parser.add_argument("--seed", type=int, default=0, help="which ones (default: 0)")
    parser.add_argument(
        "--seconds", type=float, default=600, help="processor time that tests may take (default: 600)"
    )
    parser.add_argument(
        "--only", nargs="+", default=[""], help="only files whose path has one of these in it, as trace/"
    )
    parser.add_argument(
        "--jobs",
        type=int,
        default=os.cpu_count() or 1,
        help="how many at a time (default: as many as processors)",
    )
    given = parser.parse_args()
    chosen = drawn(given.only, given.count, given.seed)
    waiting = iter(enumerate(chosen, 1))
    survived: list[Mutant] = []

    def work(tree: Path) -> int:
        """Try one mutant after the other in a copy of the project; how many there were."""
        baseline, tried = Baseline(tree, given.seconds), 0
        for number, mutant in waiting:
            began = time.monotonic()
            verdict = judge(mutant, baseline)
            tried += verdict.tried
            if verdict.killer:
                by = f"fails {verdict.killer.paths[0]}"
            else:
                by = "PASSES ALL" if verdict.tried else "not tried, no test passes unchanged"
            print(f"{number}/{len(chosen)} {by}, {time.monotonic() - began:.0f} s: {mutant}", flush=True)
            if verdict.tried and not verdict.killer:
                survived.append(mutant)
        return tried

    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(given.jobs) as pool:
        trees = [Path(folder) / f"tenfold{i}" for i in range(given.jobs)]
        for tree in trees:
            shutil.copytree(ROOT, tree, ignore=shutil.ignore_patterns(*LEFT_BEHIND))
        tried = sum(pool.map(work, trees))
    killed = tried - len(survived)
    print(f"{killed} of {tried} mutants fail a test ({100 * killed / max(tried, 1):.1f} %)")
    for mutant in survived:
        print(f"survived: {mutant}")


def drawn(only: Sequence[str], count: int, seed: int) -> list[Mutant]:
    """Mutants at random, of the files whose path has one of `only` in it."""
    package = ROOT / "src" / "tenfold"
    everything = [
        mutant
        for path in sorted(package.rglob("*.py"))
        if path.relative_to(package).parts[0] not in LEFT_OUT
        and any(part in str(path.relative_to(package)) for part in only)
        for mutant in mutants(path)
    ]
    return random.Random(seed).sample(everything, min(count, len(everything)))


if __name__ == "__main__":
    main()
