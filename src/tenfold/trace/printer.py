"""The Trace as text: one line for each call, ATen's name and arguments, and where the user wrote it."""

from __future__ import annotations

from typing import Any

from tenfold.flat.printer import describe
from tenfold.ops.callee import Callee, OpCall
from tenfold.ops.table import PLACEMENT, SLOT
from tenfold.trace.collect import Trace
from tenfold.trace.graph import Node, Value

TITLE = "==== Trace IR ===="


def print_trace(program: Trace) -> str:
    """A program as text: its inputs, a line for each node with the user's line, its outputs."""
    names: dict[tuple[Node | None, int], str] = {}
    leaves = {leaf: f"p{i}" for i, leaf in enumerate(program.leaves)}

    def name(value: Value) -> str:
        return leaves.get(value) or names[value.node, value.index]

    lines = [TITLE]
    if leaves:
        lines.append("inputs:")
        lines += [
            f"    {text}: {describe(leaf.type, str(leaf.device.resolved))}" for leaf, text in leaves.items()
        ]
    for i, node in enumerate(program.nodes):
        several = len(node.callee.result_types) > 1
        results = [f"t{i}_{j}" if several else f"t{i}" for j in range(len(node.callee.result_types))]
        for j, text in enumerate(results):
            names[node, j] = text
        place = f"  # {node.source.short}" if node.source else ""
        taken = [name(operand) for operand in node.inputs]
        if isinstance(node.callee, OpCall):
            call = _op_call(node.callee, iter(taken))
        else:
            through = [names[step, 0].partition("_")[0] for step in node.path]
            call = _program_call(node.callee, taken, through)
        lines.append(f"{', '.join(results)} = {call}{place}")
    lines.append("outputs:")
    for place_, index in program.outputs:
        if place_ >= 0:
            node = program.nodes[place_]
            text = describe(node.callee.result_types[index], str(program.device.resolved))
            lines.append(f"    {names[node, index]}: {text}")
        else:
            leaf = program.leaves[-1 - place_]
            lines.append(f"    {leaves[leaf]}: {describe(leaf.type, str(leaf.device.resolved))}")
    return "\n".join(lines)


def _op_call(callee: OpCall, inputs: Any) -> str:
    row = callee.row
    parts: list[str] = []
    named = len(row.schema.arguments)
    for argument, value in zip(row.schema.arguments, callee.arguments[:named], strict=True):
        if argument.name in PLACEMENT or (
            not _has_slot(value) and value == argument.default and type(value) is type(argument.default)
        ):
            continue
        text = _text(value, inputs)
        first = all("=" not in part for part in parts)
        parts.append(text if _has_slot(value) and first else f"{argument.name}={text}")
    # A random row whose schema names no generator takes the state after its arguments.
    parts += [f"generator={_text(value, inputs)}" for value in callee.arguments[named:]]
    return f"aten.{row.qualified}({', '.join(parts)})"


def _program_call(callee: Callee, taken: list[str], through: list[str]) -> str:
    """A call of a program; of a gradient also the nodes that it goes back through."""
    parts = taken + ([f"through=({', '.join(through)})"] if through else [])
    return f"tenfold.{callee.name}({', '.join(parts)})"


def _has_slot(value: Any) -> bool:
    return value is SLOT or (type(value) is tuple and any(_has_slot(item) for item in value))


def _text(value: Any, inputs: Any) -> str:
    if value is SLOT:
        return next(inputs)
    if type(value) is tuple:
        inner = ", ".join(_text(item, inputs) for item in value)
        return f"({inner},)" if len(value) == 1 else f"({inner})"
    return getattr(value, "name", None) or repr(value)
