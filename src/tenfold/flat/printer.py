"""FlatIR as text: one line for each op with its result's type, and where the user's program asked for it."""

from __future__ import annotations

from typing import Any

from tenfold.flat.ir import Function, Op, TensorType, Value

TITLE = "==== Flat IR ===="


def print_flat(function: Function, place: str) -> str:
    """`place` is the device, written as `loc` beside each type."""
    namer = _Namer()
    lines = [TITLE]
    if function.params:
        lines.append("inputs:")
        lines += [f"    {namer(param)}: {describe(param.type, place)}" for param in function.params]
    for op in function.ops:
        results = ", ".join(f"{namer(result)}: {describe(result.type, place)}" for result in op.results)
        where = f"  # {op.source.short}" if op.source else ""
        lines.append(f"{results} = {_call(op, namer)}{where}")
    lines.append("outputs:")
    lines += [f"    {namer(result)}: {describe(result.type, place)}" for result in function.results]
    return "\n".join(lines)


class _Namer:
    """Values named by the trace keep their names; the others are t_inter1, t_inter2, …"""

    def __init__(self) -> None:
        self.names: dict[Value, str] = {}
        self.taken: set[str] = set()
        self.unnamed = 0

    def __call__(self, value: Value) -> str:
        if value not in self.names:
            name = value.name
            if name is None or name in self.taken:
                self.unnamed += 1
                name = f"t_inter{self.unnamed}"
            self.taken.add(name)
            self.names[value] = name
        return self.names[value]


def describe(type: TensorType, place: str) -> str:
    """A type as every stage prints it."""
    shape = ", ".join(map(str, type.shape)) + ("," if len(type.shape) == 1 else "")
    return f"[shape=({shape}), dtype=({type.dtype.name}), loc=({place})]"


def _call(op: Op, namer: _Namer) -> str:
    parts = []
    operands = dict(op.operand_fields)
    for field in op.fields:
        value = op.__dict__[field]
        if field in operands:
            parts += [namer(element) for element in value] if operands[field] else [namer(value)]
        elif field not in ("shape", "dtype", "result_types"):
            parts.append(f"{field}={_attribute(value)}")
    return f"{type(op).__name__}Op({', '.join(parts)})"


def _attribute(value: Any) -> str:
    if isinstance(value, Function):
        return value.name or f"<{len(value.ops)} ops>"
    if hasattr(value, "tolist"):
        return str(value.tolist())
    if isinstance(value, tuple) and any(isinstance(element, Function) for element in value):
        return f"({', '.join(_attribute(element) for element in value)})"
    return getattr(value, "__name__", None) or str(value)
