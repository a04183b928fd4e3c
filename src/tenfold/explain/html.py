"""The page as one HTML file: its style and scripts written into it, its data packed so that no text of the
user's program can be taken for markup."""

from __future__ import annotations

import base64
import gzip
import html
import json
import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "page"
SCRIPTS = (
    "data.js",
    "list.js",
    "panes.js",
    "plot.js",
    "layout.js",
    "graph.js",
    "diff.js",
    "runs.js",
    "main.js",
)
HEIGHT = 640  # pixels of the page in a notebook


def page(title: str, programs: Sequence[dict[str, Any]], **facts: Any) -> str:
    """The page of some programs. The data goes in as gzip in base64, whose letters mean nothing to HTML."""
    data = {"title": title, "programs": [_compact(program) for program in programs], **facts}
    text = json.dumps(data, ensure_ascii=True, separators=(",", ":"))
    packed = base64.b64encode(gzip.compress(text.encode(), 6, mtime=0)).decode()
    style, scripts, skeleton = _parts()
    parts = {"title": html.escape(title), "style": style, "data": packed, "scripts": scripts}
    return re.sub(r"\{\{(\w+)\}\}", lambda mark: parts[mark[1]], skeleton)


def programs_of(page: str, which: str = "programs") -> list[dict[str, Any]]:
    """The programs that are packed in a page, for another that compares them with its own; `which` may also
    be "before"."""
    packed = re.search(r'id="data">([A-Za-z0-9+/=]*)</script>', page)
    if packed is None:
        return []
    return json.loads(gzip.decompress(base64.b64decode(packed[1])))[which]


def frame(page: str) -> str:
    """The page inside of another, as notebooks show it: apart, so that neither's style reaches the other."""
    return (
        f'<iframe srcdoc="{html.escape(page)}" sandbox="allow-scripts" title="Tenfold: every stage" '
        f'style="box-sizing:border-box;width:100%;height:{HEIGHT}px;border:1px solid #8884;'
        'border-radius:8px"></iframe>'
    )


@cache
def _parts() -> tuple[str, str, str]:
    read = lambda name: (FOLDER / name).read_text(encoding="utf-8")
    return read("page.css"), "\n".join(map(read, SCRIPTS)), read("page.html")


def _compact(program: dict[str, Any]) -> dict[str, Any]:
    """Lists in the place of dictionaries that repeat, and a number where a line has one link alone."""
    nodes = [[n["name"], n["op"], n["types"], n["inputs"], n["module"]] for n in program["nodes"]]
    ops = [
        [
            o["name"], o["op"], o["types"], o["inputs"], o["nodes"],
            o["cost"]["flops"], o["cost"]["bytes"], float(f"{o['cost']['seconds']:.4g}"),
        ]
        for o in program["ops"]
    ]  # fmt: skip
    stages = [
        {
            **{k: v for k, v in stage.items() if k not in ("lines", "links")},
            "lines": "\n".join(line.replace("\n", "⏎") for line in stage["lines"]),
            "links": [link[0] if len(link) == 1 else list(link) if link else -1 for link in stage["links"]],
        }
        for stage in program["stages"]
    ]
    return {**program, "nodes": nodes, "ops": ops, "stages": stages, "times": _rounded(program.get("times"))}


def _rounded(times: dict[str, Any] | None) -> dict[str, Any] | None:
    if times is None:
        return None
    short = lambda seconds: float(f"{seconds:.4g}")
    lines = [[line, short(took)] for line, took in times["lines"]]
    return {**times, "ops": [short(took) for took in times["ops"]], "lines": lines}
