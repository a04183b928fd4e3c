"""The output of `tenfold ops`: the op table, one op looked up by any of its names, and the names of
PyTorch that are missing."""

from __future__ import annotations

import argparse
import inspect
import os
from collections.abc import Sequence
from types import CodeType, ModuleType
from typing import Any

from rich.markup import escape
from rich.table import Column, Table

import tenfold
from tenfold.base import unsupported
from tenfold.base.errors import ArgumentError, MissingEngine, did_you_mean
from tenfold.base.terminal import console
from tenfold.compat.overloads import NAMESPACES
from tenfold.mlir import torch_dialect
from tenfold.ops import lapack
from tenfold.ops.plain import PLAIN, PlainRow
from tenfold.ops.pytorch_names import pytorch_names
from tenfold.ops.table import OTHERS, TABLE, Row, all_rows

# Modules of Python's names, and what a row calls them.
MODULES = {
    "nn.functional": "nn",
    "functional": "nn",
    "F": "nn",
    **{name: name for name in ("linalg", "fft", "special")},
}

SHOWN = 12  # names in an error


def run(parsed: argparse.Namespace) -> int:
    if parsed.missing:
        return _missing()
    if parsed.name is None:
        return _all()
    found = named(parsed.name)
    if found:
        for row in found:
            _describe(row)
        return 0
    made = _function(parsed.name)
    if made is None:
        names = list(TABLE) + [row.qualified for row in all_rows()]
        others = [f"{space}.{name}" for space, rows in OTHERS.items() for name in rows]
        others += [f"{space}.{name}" for space, several in PLAIN.items() for name in several]
        raise ArgumentError(
            f"there is no op {parsed.name!r}",
            help=_containing(parsed.name) or did_you_mean(parsed.name, [*names, *others]),
        )
    _describe_function(*made)
    return 0


def _containing(part: str) -> str | None:
    """The help for a part of ops' names: those that begin with it, then those that contain it."""
    found = [name for name in TABLE if part in name and not name.startswith("_")]
    found.sort(key=lambda name: (not name.startswith(part), name))
    more = f" and {len(found) - SHOWN} more" if len(found) > SHOWN else ""
    return f"these ops contain it: {', '.join(found[:SHOWN])}{more}" if found else None


def named(name: str) -> list[Row | PlainRow]:
    """The rows that a name means: an op's, with or without its namespace and overload, or a function's or
    method's."""
    name = name.replace("::", ".")
    for prefix in ("torch.", "tenfold.", "ops."):
        name = name.removeprefix(prefix)
    space, _, own = name.partition(".")
    if space in (*OTHERS, *PLAIN):
        return _overloads(space, own)
    if space == "Tensor":
        return [row for row in all_rows() if row.method and row.name == own.removesuffix("_")]
    module, _, last = name.rpartition(".")
    if module in MODULES:
        return [row for row in all_rows() if row.module == MODULES[module] and row.python_name == last]
    found = [row for namespace in ("aten", *OTHERS, "prim") for row in _overloads(namespace, name)]
    return found or [row for row in all_rows() if row.module and row.python_name == name]


def _overloads(space: str, name: str) -> list[Row | PlainRow]:
    packet, _, overload = name.partition(".")
    rows: list[Row | PlainRow] = []
    ops = TABLE if space == "aten" else OTHERS[space].whole() if space in OTHERS else {}
    for table in (ops, PLAIN.get(space, {})):
        rows += table.get(packet, [])
    return [row for row in rows if not overload or row.overload == overload]


def _function(name: str) -> tuple[str, Any] | None:
    """A function of Python's that is no op, by its name with or without its module: the full name, and it."""
    name = name.removeprefix("torch.").removeprefix("tenfold.")
    if name.startswith("F."):
        name = name.replace("F.", "nn.functional.", 1)
    refused = None
    for module in ("", *MODULES):
        full = f"{module}.{name}".lstrip(".")
        found: Any = tenfold
        for part in full.split("."):
            found = getattr(found, part, None)
        if inspect.isroutine(found) and not _is_refused(found):
            return f"tenfold.{full}", found
        refused = refused or ((f"tenfold.{full}", found) if inspect.isroutine(found) else None)
    return refused


def _is_refused(function: Any) -> bool:
    """Whether it stands for a function of PyTorch's that Tenfold lacks."""
    return bool(function.__module__ == unsupported.__name__)


def _all() -> int:
    # A narrow terminal breaks the lines itself: a name that is cut could not be looked up.
    longest = max(map(len, TABLE))
    others = [Column(each, overflow="fold", min_width=12) for each in ("overloads", "kind", "meaning")]
    names = Column("op", no_wrap=True, min_width=longest)
    table = Table(names, *others, box=None, pad_edge=False, width=max(console.width, longest + 40))
    for name, rows in sorted(TABLE.items()):
        overloads = ", ".join(row.overload or "default" for row in rows)
        table.add_row(name, escape(overloads), kind_of(rows[0]), escape(rows[0].doc))
    console.print(table)
    console.print(f"\n{len(TABLE)} ops, {sum(map(len, TABLE.values()))} overloads")
    return 0


def _missing() -> int:
    """What PyTorch has and we do not: its public names, from a list, and the torch dialect's ATen ops."""
    counted = 0
    for title, names in pytorch_names().items():
        owner: Any = tenfold
        for part in title.split(".")[1:]:
            owner = getattr(owner, part)
        absent = [name for name in names if not hasattr(owner, name)]
        refused = [name for name in names if name in unsupported.of(title)]
        counted += len(absent)
        there = len(names) - len(absent) - len(refused)
        console.print(f"[bold]{title}[/bold]: {there} of {len(names)}")
        _lacking(absent, refused)
    try:
        defined = torch_dialect.aten_ops()
    except MissingEngine as error:
        console.print(f"[bold]the torch dialect[/bold]: not compared; {error.help}")
        return 0
    without = [name for name in defined if not _is_op(name)]
    known = {*unsupported.FUNCTIONS, *unsupported.OPS}
    absent = [name for name in without if name.partition(".")[0] not in known]
    held = f"{len(defined) - len(without)} of {len(defined)} ATen ops"
    console.print(f"[bold]the torch dialect[/bold]: {held}")
    _lacking(absent, [name for name in without if name not in absent])
    console.print(f"\n{counted} names and {len(absent)} ops of the torch dialect are missing")
    return 0


def _lacking(absent: Sequence[str], refused: Sequence[str]) -> None:
    console.print("  " + (", ".join(absent) or "nothing is missing"))
    if refused:
        console.print(f"  refused, for reasons that docs/unsupported.md tells: {', '.join(refused)}")


def _is_op(name: str) -> bool:
    """Whether an op of ATen's, by its name such as "add.Tensor", is there."""
    packet, _, overload = name.partition(".")
    found = getattr(NAMESPACES["aten"], packet, None)
    return found is not None and hasattr(found, overload or "default")


def _describe(row: Row | PlainRow) -> None:
    console.print(f"[bold]{row.namespace}::{escape(row.qualified)}[/bold]")
    console.print(f"  schema   {escape(row.text.rpartition('::')[2])}")
    if isinstance(row, PlainRow):
        console.print(f"  Python   tenfold.ops.{row.namespace}.{row.name}")
        console.print("  kind     on Python's own values, computed while a program is recorded")
        return console.print(f"  computed {_place(row.function)}\n")
    if row.doc:
        console.print(f"  meaning  {escape(row.doc)}")
    console.print(f"  Python   {', '.join(python_names(row)) or 'through other functions'}")
    console.print(f"  kind     {kind_of(row)}")
    stages = "runs on the host, on NumPy arrays" if row.host else "Trace → FlatIR → StableHLO"
    console.print(f"  stages   {stages}")
    console.print(f"  engines  {engines_of(row)}")
    console.print(f"  lowering {_place(row.lowering)}\n")


def engines_of(row: Row) -> str:
    """The engines that run a row, in words."""
    if row.host:
        return "host"
    gpus = "; cuda where no LAPACK is called" if _reaches(row.lowering, lapack._call) else ", cuda"
    return f"xla (cpu{gpus}), numpy" + (", libtorch" if row.namespace == "aten" else "")


def _reaches(function: Any, target: Any, seen: set[int] | None = None) -> bool:
    """Whether a lowering may call a function of the table's: by the names that it and what it calls use."""
    seen = set() if seen is None else seen
    code = getattr(function, "__code__", None)
    if code is None or id(function) in seen or not function.__module__.startswith("tenfold."):
        return False
    seen.add(id(function))
    codes, names = [code], set[str]()
    while codes:
        part = codes.pop()
        names.update(part.co_names)
        codes += [constant for constant in part.co_consts if isinstance(constant, CodeType)]
    found = [function.__globals__[name] for name in names if name in function.__globals__]
    modules = [vars(each) for each in found if isinstance(each, ModuleType)]
    found += [module[name] for module in modules for name in names & module.keys()]
    found += [cell.cell_contents for cell in function.__closure__ or ()]
    return any(each is target or _reaches(each, target, seen) for each in found)


def _describe_function(name: str, function: Any) -> None:
    console.print(f"[bold]{escape(name)}[/bold]")
    console.print(f"  Python   {escape(function.__name__ + _signature(function))}")
    if function.__doc__:
        console.print(f"  meaning  {escape(_first_paragraph(function.__doc__))}")
    console.print(f"  kind     {'not supported' if _is_refused(function) else 'a function that calls ops'}")
    console.print(f"  written  {_place(function)}\n")


def _place(function: Any) -> str:
    """Where a function is written, decorators aside."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    return f"{os.path.relpath(code.co_filename)}:{code.co_firstlineno}" if code else "by Python itself"


def python_names(row: Row) -> list[str]:
    """The function, the method and the in-place method of a row, as far as it has them."""
    if row.namespace != "aten":
        return [f"tenfold.ops.{row.namespace}.{row.name}"]
    module = {None: "", "nn": "nn.functional."}.get(row.module, f"{row.module}.")
    names = [f"tenfold.{module}{row.python_name}"] if row.function else []
    names += [f"Tensor.{row.name}"] if row.method and not row.module else []
    names += [f"Tensor.{row.name}_"] if row.inplace else []
    return names


def kind_of(row: Row) -> str:
    """What is special about a row, in words."""
    kinds = [
        name
        for name, true in (
            ("view", row.schema.is_view),
            ("random", row.random),
            ("data-dependent shape", row.host),
            ("promotes dtypes", row.promote is not None),
        )
        if true
    ]
    return ", ".join(kinds) or "plain"


def _first_paragraph(text: str) -> str:
    return " ".join(text.strip().partition("\n\n")[0].split())


def _signature(function: Any) -> str:
    """Its signature, whose types are texts and would be quoted."""
    signature = inspect.signature(function)
    plain = [each.replace(annotation=_written(each.annotation)) for each in signature.parameters.values()]
    returned = _written(signature.return_annotation)
    return str(signature.replace(parameters=plain, return_annotation=returned))


def _written(annotation: Any) -> Any:
    return _Unquoted(annotation) if isinstance(annotation, str) else annotation


class _Unquoted(str):
    __repr__ = str.__str__
