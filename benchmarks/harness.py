"""How a benchmark is measured and shown. The contenders take turns, so that what else the machine does
falls on all alike, and in another order each time, since what one leaves behind falls on the next; each
figure is the median of many samples after one that is thrown away; the goal is a ratio, since only ratios
taken in one run mean anything."""

from __future__ import annotations

import os
import random
import statistics
import subprocess
import sys
import time
import timeit
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent
OURS = "Tenfold"

Sample = Callable[[], float]
"""Runs once and returns the seconds that counted."""


@dataclass(frozen=True)
class Benchmark:
    """One question, asked of Tenfold and its peers. The goal: Tenfold takes at most `goal` times what the
    peer named by `against` takes."""

    name: str
    title: str
    against: str
    goal: float
    contenders: Callable[[Path], Mapping[str, Sample]]
    """Prepares every contender, by name; it is handed an empty folder for files."""
    repeats: int = 15
    unit: str = "seconds"
    """What a sample counts: seconds, or a plural such as `instructions`."""
    also: tuple[tuple[str, float], ...] = ()
    """Goals against other contenders: the name of each, and the ratio."""
    group: str = ""
    """A name by which `--only` chooses several benchmarks."""


@dataclass(frozen=True)
class Result:
    benchmark: Benchmark
    samples: Mapping[str, Sequence[float]]

    def median(self, contender: str) -> float:
        return statistics.median(self.samples[contender])

    @property
    def ratio(self) -> float:
        return self.ratio_to(self.benchmark.against)

    def ratio_to(self, contender: str) -> float:
        return self.median(OURS) / self.median(contender)

    @property
    def met(self) -> bool:
        return self.ratio <= self.benchmark.goal

    def as_json(self) -> dict[str, object]:
        return {
            "name": self.benchmark.name,
            "title": self.benchmark.title,
            self.benchmark.unit: {contender: self.median(contender) for contender in self.samples},
            "samples": {contender: list(seconds) for contender, seconds in self.samples.items()},
            "against": self.benchmark.against,
            "ratio": self.ratio,
            "goal": self.benchmark.goal,
            "met": self.met,
            "also": [
                {
                    "against": name,
                    "ratio": self.ratio_to(name),
                    "goal": goal,
                    "met": self.ratio_to(name) <= goal,
                }
                for name, goal in self.benchmark.also
            ],
        }


def measure(benchmark: Benchmark, folder: Path, repeats: int | None = None) -> Result:
    contenders = benchmark.contenders(folder)
    for name in (OURS, benchmark.against, *(name for name, _ in benchmark.also)):
        if name not in contenders:
            raise ValueError(f"benchmark {benchmark.name} has no contender {name}")
    for sample in contenders.values():
        sample()
    samples: dict[str, list[float]] = {name: [] for name in contenders}
    turns = list(contenders)
    chance = random.Random(0)
    for _ in range(repeats or benchmark.repeats):
        chance.shuffle(turns)
        for name in turns:
            samples[name].append(contenders[name]())
    return Result(benchmark, samples)


def statement(code: str, **names: object) -> Sample:
    """Seconds that a statement takes, averaged over as many runs as fill a twentieth of a second. The garbage
    collector stays on: what a contender leaves to collect is part of its cost."""
    timer = timeit.Timer(code, setup="import gc; gc.enable()", globals=names)
    timer.timeit(1)  # the first run compiles, which says nothing of how many fill the time
    runs = 1
    while timer.timeit(runs) < 0.05:
        runs *= 2
    return lambda: timer.timeit(runs) / runs


def first_line(
    arguments: Sequence[str], environment: Callable[[], Mapping[str, str]], expected: float
) -> Sample:
    """Seconds from a Python process's start to the number it prints, which must be the expected one."""

    def sample() -> float:
        settings = {**os.environ, **environment()}
        start = time.perf_counter()
        with subprocess.Popen(
            [sys.executable, *arguments], cwd=ROOT, env=settings, stdout=subprocess.PIPE, text=True
        ) as process:
            assert process.stdout
            line = process.stdout.readline()
            seconds = time.perf_counter() - start
        if process.returncode or abs(float(line) - expected) > 1e-4:
            raise RuntimeError(f"{' '.join(arguments)} printed {line!r}, not {expected}")
        return seconds

    return sample


def printed_seconds(arguments: Sequence[str], environment: Mapping[str, str] = {}) -> Sample:
    """Seconds that a Python process measures itself, and prints."""

    def sample() -> float:
        settings = {**os.environ, **environment}
        command = [sys.executable, *arguments]
        run = subprocess.run(command, cwd=ROOT, env=settings, stdout=subprocess.PIPE, text=True, check=True)
        return float(run.stdout.split()[-1])  # a library may say something before

    return sample


def import_time(module: str) -> Sample:
    """Seconds that an import takes in a fresh process, the start of Python not counted."""
    code = f"import time; start = time.perf_counter(); import {module}; print(time.perf_counter() - start)"
    return printed_seconds(["-c", code])


def table(results: Sequence[Result]) -> str:
    """Each benchmark with its peers, one to a line, and the ratio to each beside its goal."""
    rows = [["", OURS, "peer", "its figure", "ratio", "goal", ""]]
    for result in results:
        shown = readable if result.benchmark.unit == "seconds" else "{:,.0f}".format
        goals = {result.benchmark.against: result.benchmark.goal, **dict(result.benchmark.also)}
        title, ours = result.benchmark.title, shown(result.median(OURS))
        for peer in sorted(result.samples.keys() - {OURS}, key=lambda peer: (peer not in goals, peer)):
            ratio = result.ratio_to(peer)
            row = [title, ours, peer, shown(result.median(peer)), ratio_text(ratio), "", ""]
            if peer in goals:
                row[-2:] = f"at most {round(goals[peer], 2):g}", "met" if ratio <= goals[peer] else "not met"
            rows.append(row)
            title = ours = ""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    figures = (1, 3, 4)
    lines = [
        "  ".join(
            cell.rjust(width) if column in figures else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(row, widths))
        ).rstrip()
        for row in rows
    ]
    return "\n".join([lines[0], "-" * max(map(len, lines)), *lines[1:]])


def ratio_text(ratio: float) -> str:
    """A ratio with two digits at least: 0.0041, 0.43, 2.08, 90."""
    return f"{ratio:.2g}" if ratio < 0.095 else f"{ratio:.2f}" if ratio < 20 else f"{ratio:.0f}"


def readable(seconds: float) -> str:
    """Three significant digits in the unit that fits: 12.3 µs."""
    for unit, scale in (("s", 1.0), ("ms", 1e3), ("µs", 1e6)):
        if seconds * scale >= 1:
            return f"{shortest(seconds * scale)} {unit}"
    return f"{shortest(seconds * 1e9)} ns"


def shortest(figure: float) -> str:
    return f"{figure:.0f}" if figure >= 100 else f"{figure:.3g}"
