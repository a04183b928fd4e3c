"""One picture of all ratios: how long Tenfold takes beside each peer, and where the goal is."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.harness import Result

MET, MISSED, SOFT, INK = "#2a8f5b", "#d1495b", "#8a93a6", "#1c2130"


def draw(results: Sequence[Result], path: Path) -> None:
    """A bar for each ratio, on a scale where twice as fast and twice as slow are equally far from 1."""
    from matplotlib.figure import Figure

    bars = [
        (f"{result.benchmark.name} beside {name}", result.ratio_to(name), goal)
        for result in reversed(results)
        for name, goal in reversed(
            [(result.benchmark.against, result.benchmark.goal), *result.benchmark.also]
        )
    ]
    height = 1.4 + 0.34 * len(bars)
    figure = Figure(figsize=(9, height), dpi=120, facecolor="white", layout="constrained")
    axes = figure.subplots()
    for place, (_, ratio, goal) in enumerate(bars):
        colour = MET if ratio <= goal else MISSED
        axes.barh(place, ratio - 1, left=1, height=0.62, color=colour, alpha=0.85)
        axes.plot([goal, goal], [place - 0.38, place + 0.38], color=INK, linewidth=1.6)
        side = "left" if ratio >= 1 else "right"
        axes.annotate(
            f"{ratio:.2f}", (ratio, place), (4 if ratio >= 1 else -4, 0), textcoords="offset points",
            ha=side, va="center", fontsize=8.5, color=INK,
        )  # fmt: skip
    _axes(
        axes, [name for name, _, _ in bars], [ratio for _, ratio, _ in bars] + [goal for _, _, goal in bars]
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, format="png", metadata={"Software": "Tenfold"})


def _axes(axes: Any, names: Sequence[str], shown: Sequence[float]) -> None:
    low, high = min([0.5, *shown]) / 1.35, max([2.0, *shown]) * 1.35
    axes.set_xscale("log", base=2)
    axes.set_xlim(low, high)
    ticks = [2.0**power for power in range(-10, 11) if low <= 2.0**power <= high]
    axes.set_xticks(ticks, [f"{tick:g}×" for tick in ticks])
    axes.set_yticks(range(len(names)), names, fontsize=9)
    axes.axvline(1, color=SOFT, linewidth=1)
    axes.set_title(
        "Tenfold's time ÷ the peer's, one run; the mark is the goal", fontsize=11, color=INK, loc="left"
    )
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.tick_params(colors=INK, length=0)
    axes.grid(axis="x", color="#dfe2ea", linewidth=0.6)
    axes.set_axisbelow(True)
