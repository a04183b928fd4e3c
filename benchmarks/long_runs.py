"""The memory of a long run: many distinct programs, then many training steps. It is flat once every bound (of
programs, plans, types, executables) is reached. `python -m benchmarks.long_runs --picture FILE` draws it."""

from __future__ import annotations

import argparse
import contextlib
import gc
import json
import os
import random
import time
from collections.abc import Callable, Iterator, Sequence
from math import inf, nan
from pathlib import Path
from typing import Any, NamedTuple

import tenfold as tn
from benchmarks.plot import LIGHT, Look
from tenfold.runtime.background import background

EXAMPLE = (
    "example: python -m benchmarks.long_runs --programs 2000 --steps 10000 --picture build/long-runs.svg"
)
PAGE = os.sysconf("SC_PAGE_SIZE")
OPS: tuple[Callable[[tn.Tensor], tn.Tensor], ...] = (
    tn.tanh,
    tn.sin,
    lambda x: x * 2,
    lambda x: x + 1,
    lambda x: x.sum(-1, keepdim=True) + x,
    lambda x: x.softmax(-1),
    lambda x: x.clone().add_(1),
    lambda x: x.abs().sqrt(),
)


class Run(NamedTuple):
    """The memory of the process, in bytes, after each of these counts."""

    title: str
    counts: list[int]
    memory: list[int]

    @property
    def growth(self) -> float:
        """The bytes that one more costs in the second half: the slope of the line through its samples."""
        half = len(self.counts) // 2
        counts, memory = self.counts[half:], self.memory[half:]
        middle, level = sum(counts) / len(counts), sum(memory) / len(memory)
        spread = sum((each - middle) ** 2 for each in counts) or nan  # of one sample nothing follows
        return sum((x - middle) * (y - level) for x, y in zip(counts, memory, strict=True)) / spread


def programs(count: int) -> Iterator[int]:
    """Distinct programs, each recorded, run by the policy of tiers, and forgotten: the digits of its number
    are its ops, and the rest its shape. They are shuffled: in order, long stretches would share an op, and
    memory would rise and fall with how much code that op takes."""
    numbers = list(range(count))
    random.Random(0).shuffle(numbers)
    for done, number in enumerate(numbers, 1):
        x = tn.ones(2 + number % 7, 3 + number % 5)
        rest = number
        for _ in range(6):
            rest, digit = divmod(rest, len(OPS))
            x = OPS[digit](x)
        x.sum().item()
        yield done


def steps(count: int) -> Iterator[int]:
    """Training steps of one network: half of them compiled, half recorded lazily."""
    tn.manual_seed(0)
    model = tn.nn.Sequential(tn.nn.Linear(4, 16), tn.nn.Tanh(), tn.nn.Linear(16, 2))
    optimizer = tn.optim.Adam(model.parameters(), lr=1e-3)
    inputs, labels = tn.randn(8, 4), tn.arange(8) % 2

    def step() -> tn.Tensor:
        optimizer.zero_grad()
        loss = tn.nn.functional.cross_entropy(model(inputs), labels)
        loss.backward()
        optimizer.step()
        return loss

    compiled = tn.compile(step)
    for number in range(count):
        loss = (compiled if number % 2 else step)()
        if number % 10 == 0:
            loss.item()
        yield number + 1


def measured(title: str, work: Iterator[int], total: int, samples: int = 200, minutes: float = inf) -> Run:
    """The memory over a run, which ends early when its time is over, or by Ctrl-C."""
    run, end = Run(title, [], []), time.monotonic() + 60 * minutes
    with contextlib.suppress(KeyboardInterrupt):
        for done in (bar := tn.progress(work, title, total=total)):
            if done % max(total // samples, 1) == 0:
                run.counts.append(done)
                run.memory.append(held())
                bar.report(memory=f"{run.memory[-1] >> 20} MB")
                if time.monotonic() > end:
                    break
    background.wait()
    return run


def held() -> int:
    """The bytes of this process that are in memory, garbage collected."""
    gc.collect()
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * PAGE


def draw(runs: Sequence[Run], path: Path, colours: Look = LIGHT) -> None:
    """The memory over each run, in one picture."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 3.4), dpi=120, facecolor=colours.paper, layout="constrained")
    for axes, run in zip(figure.subplots(1, len(runs), squeeze=False)[0], runs, strict=True):
        axes.plot(run.counts, [each / 1e6 for each in run.memory], color=colours.line, linewidth=1.6)
        axes.set_ylim(0, max(run.memory) / 1e6 * 1.15)
        title = f"{run.title}: {run.growth:+.0f} bytes each in the second half"
        axes.set_title(title, fontsize=10, color=colours.ink, loc="left")
        axes.set_ylabel("MB in memory", fontsize=9, color=colours.ink)
        _tidy(axes, colours)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path)


def _tidy(axes: Any, colours: Look) -> None:
    axes.set_facecolor(colours.paper)
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(colours.grid)
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    axes.tick_params(colors=colours.ink, labelsize=8.5, length=0)
    axes.grid(color=colours.grid, linewidth=0.6)
    axes.set_axisbelow(True)


def main(arguments: Sequence[str] | None = None) -> list[Run]:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.long_runs", description=__doc__, epilog=EXAMPLE
    )
    parser.add_argument("--programs", metavar="N", type=int, default=200_000, help="distinct programs")
    parser.add_argument("--steps", metavar="N", type=int, default=100_000, help="training steps")
    parser.add_argument("--minutes", metavar="M", type=float, default=inf, help="the most that each takes")
    parser.add_argument("--tier", choices=("numpy", "xla"), help="run all there, not where the policy says")
    parser.add_argument("--picture", metavar="FILE", type=Path, help="draw it there: .svg or .png")
    parser.add_argument("--json", metavar="FILE", type=Path, help="write every sample there")
    options = parser.parse_args(arguments)
    if options.tier:
        os.environ["TENFOLD_TIER"] = options.tier
    works = (("distinct programs", programs, options.programs), ("training steps", steps, options.steps))
    runs = [
        measured(title, work(count), count, minutes=options.minutes) for title, work, count in works if count
    ]
    runs = [run for run in runs if run.counts]
    for run in runs:
        first, last = (each / 1e6 for each in (run.memory[0], run.memory[-1]))
        print(f"{run.title}: {run.counts[-1]:,}; {first:.0f} MB at first, {last:.0f} MB at last, ", end="")
        print(f"{run.growth:+.1f} bytes each in the second half")
    if options.picture and runs:
        draw(runs, options.picture)
    if options.json:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(json.dumps([run._asdict() for run in runs]) + "\n", encoding="utf-8")
    return runs


if __name__ == "__main__":
    main()
