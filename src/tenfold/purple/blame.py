"""The name in an error's message. Where a library procedure calls a primitive and that fails, the message
names the procedure that the program called: `(vector-map f 5)` fails in `vector-length`, and says
"vector-map: expected a vector, got 5". A procedure that the program passed to the library is named itself, as
is `even?` in `(filter even? '(a))`. What the tensor engine refuses is told of the operator.

This is the interpreter's half. The compiler's is in emit_lines.py and runtime/errors.c."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from tenfold.purple import core
from tenfold.purple.errors import PurpleError

# Primitives whose errors are told as they are: what these say is the program's, or the library's own word.
SPOKEN = ("error", "raise", "%fail-as", "%match-failed")


class Step(NamedTuple):
    """A call under way. `operation`: what the library does at its place, or an `apply`; `call`: the call
    there; `callee`: the name of the procedure of the library that was called. `applied`: `apply` calls it."""

    in_library: bool
    operation: core.Expr | None
    call: core.Call | None
    callee: str
    applied: bool = False


def blamable(operation: core.Expr) -> list[str]:
    """What the message of a failed operation may begin with that is the operation's own name."""
    match operation:
        case core.Prim():
            if operation.name in SPOKEN:
                return []
            return [operation.name, core.applied_primitive(operation)]
        case core.FieldRef() | core.SetField():
            shown = core.shown(operation.type.name)
            return [f"{shown}-{operation.type.fields[operation.index].name}", shown]
        case core.MakeRecord():
            return [core.shown(operation.type.name)]
    return []


def blame(error: PurpleError, steps: Iterable[Step]) -> None:
    """Name the procedure that the program called. `steps`: the calls under way, innermost first."""
    steps = [step for step in steps if step.applied or step.callee or step.operation or not step.in_library]
    if not steps or error.raised:
        return
    first = steps[1] if steps[0].applied and len(steps) > 1 else steps[0]
    fresh = error.place is core.NOWHERE and error.kind != "tensor" and not error.blamed
    if fresh and first.in_library and first.operation is not None:
        name, colon, _ = error.message.partition(": ")
        own = blamable(first.operation)
        if colon and " " not in name and (name in own or any(each.startswith("%") for each in own)):
            error.blamed = name
    for i, step in enumerate(steps):
        if not error.blamed:
            return
        if step.applied:
            by = steps[i + 1] if i + 1 < len(steps) else None
            operation = by.operation if by is not None and by.in_library else None
            if isinstance(operation, core.Prim) and core.is_chosen(operation.arguments[0]):
                continue
        elif step.in_library and (step.call is None or core.is_chosen(step.call.function)):
            continue
        if step.callee:
            rename(error, step.callee)


def rename(error: PurpleError, name: str) -> None:
    error.message = name + error.message.removeprefix(error.blamed)
    error.args = (error.message,)
    error.blamed, error.help, error.notes = "", None, []
