"""How notebooks show tensors, modules and programs: HTML that needs no script and no style but its own, and
reads well on light and dark pages alike."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any, NamedTuple

import numpy as np

EDGE = 6  # rows or columns that are shown at either end of a long one
FRAME = "font:12.5px/1.5 ui-monospace,Menlo,Consolas,monospace"
CELL = "padding:1px 9px;text-align:right;border:0"


def tensor_html(array: np.ndarray | None, title: str) -> str:
    """A tensor as a table of its last two dimensions, shaded by value, under its title; of one without data
    the title alone."""
    head = f'<div style="opacity:.72;padding:2px 0">{escape(title)}</div>'
    if array is None or array.size == 0:
        return f'<div style="{FRAME}">{head}</div>'
    first = array[(0,) * max(array.ndim - 2, 0)]
    if array.ndim > 2:
        place = ", ".join(["0"] * (array.ndim - 2) + [":", ":"])
        head += f'<div style="opacity:.72">[{place}]</div>'
    return f'<div style="{FRAME}">{head}{_table(np.atleast_2d(first))}</div>'


def _table(values: np.ndarray) -> str:
    shade = _shades(values)
    rows, columns = (_shown(extent) for extent in values.shape)
    places = _decimals([values[i, j] for i in rows for j in columns if i is not None and j is not None])
    lines = []
    for i in rows:
        cells = []
        for j in columns:
            if i is None or j is None:
                cells.append(f'<td style="{CELL};text-align:center;opacity:.6">…</td>')
            else:
                style = f"{CELL};background:rgba(68,81,216,{shade[i, j]:.2f})" if shade is not None else CELL
                cells.append(f'<td style="{style}">{escape(_number(values[i, j], places))}</td>')
        lines.append(f"<tr>{''.join(cells)}</tr>")
    style = "border-collapse:collapse;font:inherit;width:auto;margin:2px 0"
    return f'<table style="{style}">{"".join(lines)}</table>'


def _shown(extent: int) -> list[int | None]:
    """The places that are shown, None for those left out."""
    if extent <= 2 * EDGE + 1:
        return list(range(extent))
    return [*range(EDGE), None, *range(extent - EDGE, extent)]


def _shades(values: np.ndarray) -> np.ndarray | None:
    """How dark each cell is, from the least finite value to the most; None for what has no order."""
    if values.dtype.kind == "c" or values.size > 1_000_000:
        return None
    numbers = values.astype(np.float64)
    finite = np.isfinite(numbers)
    if not finite.any():
        return None
    low, high = numbers[finite].min(), numbers[finite].max()
    if low == high:
        return None
    return np.where(finite, 0.42 * (np.where(finite, numbers, low) - low) / (high - low), 0)


def _decimals(values: Sequence[np.generic]) -> int | None:
    """How many decimals all of these floats are shown with, four at most, so that their points stand below
    each other; None where they are too far apart in size for that, or no floats."""
    if any(value.dtype.kind in "biuc" for value in values):
        return None
    sizes = [abs(float(value)) for value in values if np.isfinite(value) and value != 0]
    if not sizes or max(sizes) >= 1e5 or min(sizes) < 1e-3:
        return None
    return max(len(f"{size:.4f}".rstrip("0").partition(".")[2]) for size in sizes)


def _number(value: np.generic, places: int | None) -> str:
    if value.dtype.kind in "biu":
        return str(value)
    if places is not None:
        return f"{float(value):.{places}f}"
    return f"{complex(value):.4g}" if value.dtype.kind == "c" else f"{float(value):.4g}"


class Branch(NamedTuple):
    """A module for `tree_html`: its name in its parent, its text, its parameters, its children."""

    name: str
    text: str
    parameters: int
    children: Sequence[Branch]


def branch_of(module: Any, name: str = "") -> Branch:
    """A module of `nn`, and all that are inside of it."""
    extra = module.extra_repr().replace("\n", " ")
    inner = [(key, each) for key, each in module._modules.items() if each is not None]
    text = f"{module._get_name()}({extra})" if extra or not inner else module._get_name()
    count = sum(parameter.numel() for parameter in module.parameters())
    return Branch(name, text, count, [branch_of(each, key) for key, each in inner])


def tree_html(root: Branch) -> str:
    """Modules as a tree that opens and closes, each with its number of parameters."""
    return f'<div style="{FRAME}">{_branch(root, 0)}</div>'


def _branch(branch: Branch, depth: int) -> str:
    name = f'<span style="opacity:.72">({escape(branch.name)})</span> ' if branch.name else ""
    count = f' <span style="opacity:.6">{branch.parameters:,} parameters</span>' if branch.parameters else ""
    line = f"{name}<b>{escape(branch.text)}</b>{count}"
    if not branch.children:
        return f'<div style="padding-left:17px">{line}</div>'
    inner = "".join(_branch(child, depth + 1) for child in branch.children)
    state = " open" if depth < 2 else ""
    body = f'<div style="padding-left:18px;border-left:1px solid #8883;margin-left:5px">{inner}</div>'
    return f'<details{state}><summary style="cursor:pointer">{line}</summary>{body}</details>'


def program_html(title: str, text: str) -> str:
    """A program: what it is, and its text, which a click unfolds."""
    return (
        f"<details style='{FRAME}'><summary style='cursor:pointer'>{escape(title)}</summary>"
        f"<pre style='max-height:30em;overflow:auto'>{escape(text)}</pre></details>"
    )
