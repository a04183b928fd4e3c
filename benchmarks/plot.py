"""One picture of all ratios: how long Tenfold takes beside each peer, and where the goal is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple


class Look(NamedTuple):
    """The colours of a picture."""

    paper: str
    ink: str
    soft: str
    grid: str
    line: str
    met: str
    missed: str


LIGHT = Look("#ffffff", "#1c2130", "#8a93a6", "#dfe2ea", "#4451d8", "#2a8f5b", "#d1495b")
DARK = Look("#1e2129", "#e6e9f2", "#6f7890", "#333a4d", "#8f9bff", "#4fbf86", "#ee7c8a")


class Bar(NamedTuple):
    name: str
    ratio: float
    goal: float


def draw(results: Sequence[Mapping[str, Any]], path: Path, colours: Look = LIGHT) -> None:
    """A bar for each ratio of a report, on a scale where twice as fast and twice as slow are equally far from
    1. The results are those of `--json`."""
    from matplotlib.figure import Figure

    bars = [
        Bar(f"{result['name']} beside {each['against']}", each["ratio"], each["goal"])
        for result in reversed(results)
        for each in reversed([result, *result["also"]])
    ]
    height = 1.4 + 0.34 * len(bars)
    figure = Figure(figsize=(9, height), dpi=120, facecolor=colours.paper, layout="constrained")
    axes = figure.subplots()
    for place, (_, ratio, goal) in enumerate(bars):
        colour = colours.met if ratio <= goal else colours.missed
        axes.barh(place, ratio - 1, left=1, height=0.62, color=colour, alpha=0.85)
        axes.plot([goal, goal], [place - 0.38, place + 0.38], color=colours.ink, linewidth=1.6)
        side = "left" if ratio >= 1 else "right"
        axes.annotate(
            f"{ratio:.2f}", (ratio, place), (4 if ratio >= 1 else -4, 0), textcoords="offset points",
            ha=side, va="center", fontsize=8.5, color=colours.ink,
        )  # fmt: skip
    _axes(axes, bars, colours)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path)


def _axes(axes: Any, bars: Sequence[Bar], colours: Look) -> None:
    shown = [number for bar in bars for number in (bar.ratio, bar.goal)]
    low, high = min([0.5, *shown]) / 1.35, max([2.0, *shown]) * 1.35
    axes.set_facecolor(colours.paper)
    axes.set_xscale("log", base=2)
    axes.set_xlim(low, high)
    ticks = [2.0**power for power in range(-10, 11) if low <= 2.0**power <= high]
    axes.set_xticks(ticks, [f"{tick:g}×" for tick in ticks])
    axes.set_yticks(range(len(bars)), [bar.name for bar in bars], fontsize=9)
    axes.axvline(1, color=colours.soft, linewidth=1)
    axes.set_ylim(-0.8, len(bars) - 0.2)
    title = "Tenfold's time ÷ the peer's, in one run: left of 1 is faster, the mark is the goal"
    axes.set_title(title, fontsize=11, color=colours.ink, loc="left")
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.spines["bottom"].set_color(colours.grid)
    axes.tick_params(colors=colours.ink, length=0)
    axes.grid(axis="x", color=colours.grid, linewidth=0.6)
    axes.set_axisbelow(True)
