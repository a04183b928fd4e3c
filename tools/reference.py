"""The op reference, written from the table: a page for each family of rows, with each op's meaning,
signatures, schemas, engines, an example that runs, and what becomes of it at every stage.

With DOCS_HLO set, as `make docs` sets it, the last stage is there too: what XLA makes of each example, which
takes a minute or two to compile.
"""

from __future__ import annotations

import html
import os
import textwrap
from collections.abc import Sequence
from typing import Any

import numpy as np

import tenfold as tn
from tenfold.base.errors import TenfoldError
from tenfold.command.listing import engines_of, kind_of, python_names
from tenfold.explain.hlo import take_apart
from tenfold.ops.table import TABLE, Row
from tenfold.tensor.documentation import example, meanings, signatures
from tools.docs import slug

WIDTH = 76  # characters of a line of code on the page
STAGES = {"Trace": "trace", "FlatIR": "flat", "StableHLO": "stablehlo", "torch dialect": "torch"}


def pages() -> dict[str, str]:
    """The pages by their names, without their ending: one for each family, and `index`."""
    families: dict[str, dict[str, list[Row]]] = {}
    for name, rows in sorted(TABLE.items(), key=_place):
        families.setdefault(family(rows[0]), {})[name] = rows
    made = {name: _family(name, ops) for name, ops in sorted(families.items())}
    return {"index": _index(families), **made}


def _place(entry: tuple[str, list[Row]]) -> tuple[bool, str]:
    """By name, those that PyTorch keeps for itself last."""
    return entry[0].startswith("_"), entry[0]


def family(row: Row) -> str:
    """The file of `ops/` that a row stands in."""
    return row.home.rpartition(".")[2].strip("_")


def _index(families: dict[str, dict[str, list[Row]]]) -> str:
    count = sum(map(len, families.values()))
    lines = [
        *("---", "search:", "  exclude: true", "---"),  # the pages of the families are found instead
        "# Operators",
        "",
        f"Every operator of the table, {count} of them, by the file of `src/tenfold/ops` that declares it.",
        "`tenfold ops NAME` prints the same on the command line. This reference is written from the table",
        "when the site is built.",
        "",
        "| family | operators |",
        "| --- | --- |",
    ]
    for name, ops in sorted(families.items()):
        links = ", ".join(f"[{_literal(op)}]({name}.md#{slug(op)})" for op in ops)
        lines.append(f"| [{name}]({name}.md) | {links} |")
    return "\n".join(lines) + "\n"


def _family(name: str, ops: dict[str, list[Row]]) -> str:
    lines = [f"# {name.replace('_', ' ').capitalize()}", "", "[All operators](index.md)", ""]
    for op, rows in ops.items():
        lines += [f"## {_literal(op)}", "", *_op(op, rows)]
    return "\n".join(lines) + "\n"


def _literal(op: str) -> str:
    """A name in Markdown, which would set `__and__` in bold type."""
    return op.replace("_", "\\_")


def _op(op: str, rows: Sequence[Row]) -> list[str]:
    row = rows[0]
    lines = [line for text in meanings(rows) for line in (html.escape(text, quote=False), "")]
    names = python_names(row)
    method = not (names and names[0].startswith("tenfold."))
    called = row.name if method else row.python_name
    written = [wrapped(f"{called}{each}") for each in signatures(rows, method=method)]
    lines += ["```python", *written, "```", ""]
    lines += [f"- Python: {', '.join(f'`{each}`' for each in names) or 'through other functions'}"]
    lines += [f"- Schema: `{each.namespace}::{each.text.rpartition('::')[2]}`" for each in rows]
    kind = kind_of(row)
    lines += [f"- Kind: {kind}"] if kind != "plain" else []
    lines += [f"- Runs on: {engines_of(row)}", ""]
    call = _callable(row, method)
    shown = example(call, called, rows, method=method) if call is not None else None
    if shown is not None:
        code, types = shown
        lines += ["```python", "import tenfold as tn", "", f"{code}  # {types}", "```", ""]
        lines += _stages(code)
    return lines


def wrapped(signature: str) -> str:
    """A signature in lines that fit the page."""
    return textwrap.fill(
        signature, WIDTH, subsequent_indent="    ", break_long_words=False, break_on_hyphens=False
    )


def _callable(row: Row, method: bool) -> Any:
    """The function or method of Python's that calls a row."""
    if method:
        return getattr(tn.Tensor, row.name, None)
    owner: Any = tn
    for part in {None: "", "nn": "nn.functional"}.get(row.module, row.module or "").split("."):
        owner = getattr(owner, part, None) if part else owner
    return getattr(owner, row.python_name, None)


class _Given:
    """Tenfold, but that tensors which an example is given are inputs of its program and no part of it."""

    def __getattr__(self, name: str) -> Any:
        return getattr(tn, name)

    def rand(self, *shape: Any) -> Any:
        return tn.tensor(np.zeros(shape[0] if isinstance(shape[0], tuple) else shape, np.float32))

    def randint(self, low: int, high: int, shape: tuple[int, ...], dtype: Any) -> Any:
        return tn.tensor(np.full(shape, low), dtype=dtype)

    def ones(self, shape: Any, dtype: Any = None) -> Any:
        return tn.tensor(np.ones(shape, np.float32), dtype=dtype)

    def eye(self, size: int) -> Any:
        return tn.tensor(np.eye(size, dtype=np.float32))


def _stages(code: str) -> list[str]:
    """What becomes of an example at each stage, folded away."""
    try:
        result = eval(code, {"tn": _Given()})
    except (TenfoldError, ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
        return []
    while isinstance(result, (tuple, list)) and result:
        result = result[0]
    if not isinstance(result, tn.Tensor) or result.current().buffer is not None:
        return []
    lines = []
    last = {"Optimised HLO": "hlo"} if os.environ.get("DOCS_HLO") else {}
    for title, stage in {**STAGES, **last}.items():
        try:
            text = result.show(stage).split("\n", 1)[1].rstrip()
        except TenfoldError:
            continue
        shown = take_apart(text).lines if stage == "hlo" else text.split("\n")
        body = [f"    {each[:400]}" for each in shown[:60]]
        lines += [f'??? note "{title}"', "    ```text", *[f"{each}" for each in body], "    ```", ""]
    return lines
