"""The figures of docs/performance.md: a table of the last `make bench`, and pictures of it and of the last
long run, drawn when the site is built. Without a run the page says how to make one."""

from __future__ import annotations

import json
from html import escape
from pathlib import Path
from typing import Any

from benchmarks import long_runs, plot
from benchmarks.harness import readable
from tools.docs import ROOT

BENCH = ROOT / "build" / "bench.json"
LONG = ROOT / "build" / "long-runs.json"
FOLDER = "pictures"  # of the site
THEMES = {"light": plot.LIGHT, "dark": plot.DARK}


def pictures(folder: Path) -> list[Path]:
    """Draw what there are results of, each for light and for dark pages."""
    made = []
    for theme, colours in THEMES.items():
        if BENCH.exists():
            made.append(folder / f"bench-{theme}.svg")
            plot.draw(_report()["results"], made[-1], colours, columns=1)  # a page's width has room for one
        if LONG.exists():
            runs = [long_runs.Run(**each) for each in json.loads(LONG.read_text(encoding="utf-8"))]
            made.append(folder / f"long-runs-{theme}.svg")
            long_runs.draw(runs, made[-1], colours)
    return made


def ratios() -> str:
    """The picture and the table of the last `make bench`."""
    if not BENCH.exists():
        return "*These documents were built without a run of the benchmarks: `make bench`, then `make docs`.*"
    report = _report()
    machine = report["machine"]
    packages = ", ".join(f"{name} {number}" for name, number in machine["packages"].items())
    rows = [
        f"| `{each['name']}` | {each['title']} | {_figures(each)} | {each['ratio']:.2f} x {each['against']} |"
        for each in report["results"]
    ]
    return "\n".join(
        [
            _shown("bench", "Tenfold's time beside each peer's"),
            "",
            f"Measured on {machine['platform']}, {machine['cores']} cores, with {packages}.",
            "",
            "| benchmark | what | medians | ratio |",
            "| --- | --- | --- | --- |",
            *rows,
        ]
    )  # fmt: skip


def memory() -> str:
    """The picture of the last long run."""
    if not LONG.exists():
        command = "python -m benchmarks.long_runs --json build/long-runs.json"
        return f"*These documents were built without a long run: `{command}`, then `make docs`.*"
    return _shown("long-runs", "Memory over many programs and many steps")


def _report() -> dict[str, Any]:
    return dict(json.loads(BENCH.read_text(encoding="utf-8")))


def _figures(result: dict[str, Any]) -> str:
    unit = next(each for each in result if isinstance(result[each], dict) and each != "samples")
    return ", ".join(
        f"{name} {readable(value) if unit == 'seconds' else f'{value:,.0f} {unit}'}"
        for name, value in result[unit].items()
    )


def _shown(name: str, text: str) -> str:
    """A picture as the theme chooses it. It is HTML, since it is drawn when the site is built."""
    return "\n".join(
        f'<img alt="{escape(text)}" src="{FOLDER}/{name}-{theme}.svg#only-{theme}">' for theme in THEMES
    )
