"""One picture of all ratios: how long Tenfold takes beside each peer, and where the goal is."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.harness import ratio_text

ROWS = 40  # in a column
TICKS = 7  # on an axis


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


def draw(
    results: Sequence[Mapping[str, Any]], path: Path, colours: Look = LIGHT, columns: int | None = None
) -> None:
    """A bar for each ratio of a report, on a scale where twice as fast and twice as slow are equally far from
    1, in columns of at most ROWS unless their number is given. The results are those of `--json`."""
    from matplotlib.figure import Figure

    bars = [
        Bar(f"{result['name']} beside {each['against']}", each["ratio"], each["goal"])
        for result in results
        for each in [result, *result["also"]]
    ]
    columns = columns or max(1, math.ceil(len(bars) / ROWS))
    rows = math.ceil(len(bars) / columns)
    size = (max(9, 6.2 * columns), 1.6 + 0.34 * rows)
    figure = Figure(figsize=size, dpi=120, facecolor=colours.paper, layout="constrained")
    # A count of none has no place on this scale: its bar reaches the left edge.
    shown = [number for bar in bars for number in (bar.ratio, bar.goal) if number > 0]
    low, high = min([0.5, *shown]) / 1.2, max([2.0, *shown]) * 1.2
    limits = low, high * (high / low) ** 0.12  # with room for the figures at the right
    for column, axes in enumerate(figure.subplots(1, columns, squeeze=False)[0]):
        _column(axes, bars[column * rows : (column + 1) * rows], rows, limits, colours)
    title = "Tenfold's time ÷ the peer's, in one run: left of 1 is faster, green meets the goal at the mark"
    figure.suptitle(title, fontsize=11, color=colours.ink, x=0.01, ha="left")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path)


def _column(axes: Any, bars: Sequence[Bar], rows: int, limits: tuple[float, float], colours: Look) -> None:
    for place, (_, ratio, goal) in enumerate(bars):
        colour = colours.met if ratio <= goal else colours.missed
        length = max(ratio, limits[0]) - 1
        axes.barh(place, length, left=1, height=0.62, color=colour, alpha=0.85)
        axes.plot([goal, goal], [place - 0.38, place + 0.38], color=colours.ink, linewidth=1.6)
        where = axes.get_yaxis_transform()  # from the left edge to the right
        axes.text(
            1,
            place,
            ratio_text(ratio),
            transform=where,
            ha="right",
            va="center",
            fontsize=8.5,
            color=colours.ink,
        )
    axes.set_facecolor(colours.paper)
    axes.set_xscale("log", base=2)
    axes.set_xlim(*limits)
    axes.set_xticks(*_ticks(*limits), fontsize=8.5)
    axes.set_yticks(range(len(bars)), [bar.name for bar in bars], fontsize=9)
    axes.axvline(1, color=colours.soft, linewidth=1)
    axes.set_ylim(rows - 0.2, -0.8)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.spines["bottom"].set_color(colours.grid)
    axes.tick_params(colors=colours.ink, length=0, labeltop=rows > ROWS)
    axes.grid(axis="x", color=colours.grid, linewidth=0.6)
    axes.set_axisbelow(True)


def _ticks(low: float, high: float) -> tuple[list[float], list[str]]:
    """Powers of two, few enough that their names stand apart: ⅛ as 1/8."""
    first, last = math.ceil(math.log2(low)), math.floor(math.log2(high))
    step = math.ceil((last - first + 1) / TICKS)
    powers = [power for power in range(first, last + 1) if power % step == 0]
    names = [f"{2**power}×" if power >= 0 else f"1/{2**-power}×" for power in powers]
    return [2.0**power for power in powers], names
