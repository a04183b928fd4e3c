"""The stub of the torch dialect's ops, as a module under construction has them.

An op of the table has the types of its schema. The others are asked of torch-mlir's verifier, so they are
known where torch-mlir is installed; without it the stub has the table's ops, and any name besides.
"""

from __future__ import annotations

import importlib.util
import keyword
from collections.abc import Iterator
from dataclasses import dataclass, field

from tenfold.base.errors import TenfoldError
from tenfold.command.stubs.hints import PRELUDE
from tenfold.mlir import torch_dialect
from tenfold.mlir.torch_operations import LISTS, SCALARS, Signature, Verifier, signature
from tenfold.ops.schema import MISSING, Argument, Type
from tenfold.ops.table import Row, all_rows

__all__ = ["MODULE", "dialect_text"]

MODULE = "tenfold.exporting.dialect"
_HEAD = """
from tenfold.exporting.ssa import SSAValue as _SSAValue
from tenfold.tensor.tensor import Tensor as _Tensor

class Ops:
    def __init__(self, builder: Dialect, name: _str) -> None: ...
"""
_OPEN = "    def __getattr__(self, name: _str) -> _Any: ..."
_PLAIN = {
    "Tensor": "_Tensor", "int": "_int", "float": "_float", "bool": "_bool", "str": "_str",
    "Scalar": "_Number", "ScalarType": "_DType | _int", "Device": "_Device | _str", "Layout": "_int",
    "MemoryFormat": "_int",
    "Generator": "None",
}  # fmt: skip
_BY_KIND = {"int": "_int", "float": "_float", "bool": "_bool", "str": "_str", "none": "None"}


@dataclass
class Names:
    """The ops under a dotted name: those that its call may mean, and the names below it."""

    calls: list[str] = field(default_factory=list)
    below: dict[str, Names] = field(default_factory=dict)

    def at(self, path: list[str]) -> Names:
        return self.below.setdefault(path[0], Names()).at(path[1:]) if path else self


def dialect_text() -> str:
    root, known = Names(), importlib.util.find_spec("torch_mlir") is not None
    for name, overload in _overloads(known):
        path = name.split(".")
        if any(keyword.iskeyword(each) for each in path):
            continue  # which Python takes for no attribute: getattr(module.aten, "is")
        root.at(path).calls += overload
        if path[0] == "aten" and len(path) == 3:
            root.at(path[:2]).calls += overload
    lines = [PRELUDE + _HEAD, *_classes(root, "", not known), "class Dialect:"]
    lines += [f"    {name}: _ops_{name}" for name in root.below]
    lines += ["    def op(self, name: _str, *args: _Any, **kwargs: _Any) -> _Any: ..."]
    lines += [] if known else [_OPEN]
    return "\n".join(lines) + "\n"


def _classes(names: Names, prefix: str, open: bool) -> Iterator[str]:
    """A class for each name, those below it first."""
    for name, each in names.below.items():
        own = f"{prefix}_{name}"
        yield from _classes(each, own, open)
        yield f"class _ops{own}(Ops):"
        yield from (f"    {below}: _ops{own}_{below}" for below in each.below)
        calls = list(dict.fromkeys(each.calls))
        for call in calls:
            if len(calls) > 1:
                yield "    @_overload"
            yield f"    def __call__{call}: ..."
        if open and not prefix:
            yield _OPEN
        elif not calls and not each.below:
            yield "    ..."


def _overloads(known: bool) -> Iterator[tuple[str, list[str]]]:
    """Each op's name without `torch.`, and the ways to call it."""
    rows = {f"torch.aten.{row.qualified}": row for row in all_rows() if row.namespace == "aten"}
    names = torch_dialect.operations() if known else rows
    verifier = None
    if known:
        context = torch_dialect.new_context()
        with torch_dialect.building(context) as ir:
            verifier = Verifier(ir, context)
    for name in sorted(names):
        if name in rows:
            yield name.removeprefix("torch."), list(_by_row(rows[name]))
        elif verifier is not None:
            yield name.removeprefix("torch."), [_by_verifier(signature(name), name, verifier)]


def _by_row(row: Row) -> Iterator[str]:
    """On tensors and Python's values an op gives tensors; on SSA values, what their types allow."""
    kinds = [each.type for each in row.schema.returns]
    for ssa in (False, True):
        parts = ["_self", "/", *_parameters(row.schema.arguments, ssa)]
        if ssa:
            starred = any(argument.keyword_only for argument in row.schema.arguments)
            parts += [*([] if starred else ["*"]), "results: _Any = ..."]
        given = [_result(kind, ssa or bool(row.host)) for kind in kinds]
        result = given[0] if len(given) == 1 else f"tuple[{', '.join(given)}]" if given else "None"
        yield f"({', '.join(parts)}) -> {result}"


def _parameters(arguments: tuple[Argument, ...], ssa: bool) -> Iterator[str]:
    starred = optional = False
    for argument in arguments:
        if argument.keyword_only and not starred:
            yield "*"
            starred = True
        optional = argument.default is not MISSING or (optional and not argument.keyword_only)
        name = f"{argument.name}_" if keyword.iskeyword(argument.name) else argument.name
        yield f"{name}: {_operand(argument.type, ssa)}{' = ...' if optional else ''}"


def _operand(type: Type, ssa: bool) -> str:
    one = _PLAIN[type.kind] + (" | _SSAValue" if ssa else "")
    if type.is_list:
        entry = f"{one} | None" if type.element_optional else one
        one = f"_Sequence[{entry}]" + (f" | {one}" if type.list_size else " | _SSAValue" if ssa else "")
    return f"{one} | None" if type.optional and not one.endswith("None") else one


def _result(type: Type, unknown: bool) -> str:
    if type.kind != "Tensor":
        return "_SSAValue"
    one = "_Tensor | _SSAValue" if unknown else "_Tensor"
    return "_Any" if type.is_list else one


def _by_verifier(of: Signature, name: str, verifier: Verifier) -> str:
    parts = ["_self", "/"]
    types: list[str] = []
    wanted = [each for each in of.given if each.name in of.operands]
    for each in of.given:
        text = "_Any"
        if each.name in of.operands and not any(other.many for other in wanted):
            kinds = _accepted(verifier, name, types, len(wanted) - len(types), of)
            types.append(kinds[0] if kinds else "!torch.any")
            text = " | ".join(dict.fromkeys(map(_hint, kinds))) or "_Any"
        told = f"{each.name}_" if keyword.iskeyword(each.name) else each.name
        parts.append(f"{told}: {text}{' = ...' if each.optional else ''}")
    result = _verified_result(of, name, types, verifier)
    return f"({', '.join([*parts, '*', 'results: _Any = ...', 'regions: _Any = ...'])}) -> {result}"


def _verified_result(of: Signature, name: str, operands: list[str], verifier: Verifier) -> str:
    if not of.result_names:
        return "None"
    try:
        found = verifier.result_types(name, operands, "!torch.vtensor")
    except TenfoldError:  # which may be of several types, or are as many as one asks for
        return "_Any"
    hints = ["_Tensor | _SSAValue" if "tensor" in each else "_SSAValue" for each in found]
    return hints[0] if len(hints) == 1 else f"tuple[{', '.join(hints)}]"


def _accepted(verifier: Verifier, name: str, before: list[str], left: int, of: Signature) -> list[str]:
    """The types that the verifier lets the next operand have."""
    none = ["!torch.none"] * len(of.result_names)
    found = []
    for kind in ("vtensor", *SCALARS, *LISTS, "list<vtensor>", "none"):
        type = f"!torch.{kind}"
        objection = verifier.objection(name, [*before, *[type] * left], none)
        if objection is None or objection[0] == "result" or objection[1] > len(before):
            found.append(type)
    return found


def _hint(type: str) -> str:
    kind = type.removeprefix("!torch.")
    if "list<" in kind:
        inner = kind.removeprefix("optional<").removeprefix("list<").rstrip(">").removeprefix("optional<")
        return f"_Sequence[{_hint(inner)}] | _SSAValue"
    if kind.endswith("tensor"):
        return "_Tensor | _SSAValue"
    return f"{_BY_KIND[kind]} | _SSAValue" if kind in _BY_KIND else "_Any"
