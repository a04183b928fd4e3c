"""The name in an error's message. Where a library procedure calls a primitive and that fails, the message
names the procedure that the program called: `(vector-map f 5)` fails in `vector-length`, and says
"vector-map: expected a vector, got 5". A procedure that the program passed to the library is named itself, as
is `even?` in `(filter even? '(a))`. What the tensor engine refuses is told of the operator.

This is the interpreter's half. The compiler's is in emit_lines.py and runtime/errors.c."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
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


def blame(error: PurpleError, steps: Iterator[Step]) -> None:
    """Name the procedure that the program called. `steps`: the calls under way, innermost first."""
    if error.raised and not error.blamed:
        return
    steps = filter(tells, steps)
    looked_at = list(itertools.islice(steps, 2))
    if error.place is core.NOWHERE and not error.blamed and looked_at:
        error.blamed = own_name(error, looked_at[1 if looked_at[0].applied and len(looked_at) > 1 else 0])
    steps = itertools.chain(looked_at, steps)
    step = next(steps, None) if error.blamed else None
    while step is not None and error.blamed:
        after = next(steps, None)
        if step.callee and not is_chosen(step, after):
            rename(error, step.callee)
        step = after


def tells(step: Step) -> bool:
    return bool(step.applied or step.callee or step.operation or not step.in_library)


def own_name(error: PurpleError, step: Step) -> str:
    """The name before the colon of the message, where the library itself called what failed; else ""."""
    if error.kind == "tensor" or not step.in_library or step.operation is None:
        return ""
    name, colon, _ = error.message.partition(": ")
    names = blamable(step.operation)
    own = name in names or any(each.startswith("%") for each in names)
    return name if colon and " " not in name and own else ""


def is_chosen(step: Step, by: Step | None) -> bool:
    """Whether the library called a procedure by its own choice, rather than one that it was given."""
    if step.applied:
        operation = by.operation if by is not None and by.in_library else None
        return isinstance(operation, core.Prim) and core.is_chosen(operation.arguments[0])
    return step.in_library and (step.call is None or core.is_chosen(step.call.function))


def rename(error: PurpleError, name: str) -> None:
    error.message = name + error.message.removeprefix(error.blamed)
    error.args = (error.message,)
    error.blamed, error.help, error.notes = "", None, []
