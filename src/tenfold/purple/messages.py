"""The texts of errors that a running program meets: the same words whether it is interpreted or compiled."""

from __future__ import annotations

import re
from pathlib import Path

# Kinds of names.py, as messages call them, in compiled programs too.
KINDS = dict(
    re.findall(r'KIND\("(.+)", "(.+)"\)', (Path(__file__).parent / "runtime" / "kinds.h").read_text())
)
SHOWN = 60  # characters of a value in a message; a longer one is cut there, and "…" put after it

OVERFLOW = "integer overflow"
DIVISION = "division by zero"
TOO_DEEP = "recursion is too deep"


def wrong_type(name: str, kind: str, written: str) -> str:
    """`car: expected a pair, got 5`. A record type's name stands for itself: `expected a Point`."""
    return f"{name}: expected {_one(kind)}, got {written}"


def _one(kind: str) -> str:
    """A kind of value with its article."""
    article = "an" if kind[:1] in "AEIOUaeiou" else "a"
    return KINDS.get(kind) or f"{article} {kind}"


def wrong_count(name: str, minimum: int, maximum: int | None, given: int) -> str:
    """`car: expected 1 argument, got 2`."""
    if maximum is None:
        wanted = f"at least {minimum} argument{'s' * (minimum != 1)}"
    elif minimum == maximum:
        wanted = f"{minimum} argument{'s' * (minimum != 1)}"
    else:
        wanted = f"{minimum} to {maximum} arguments"
    return f"{name}: expected {wanted}, got {given}"


def unknown_keyword(name: str, keyword: str) -> str:
    return f"{name}: there is no keyword :{keyword}"


def missing_keyword(name: str, keyword: str) -> str:
    return f"{name}: the keyword :{keyword} is missing"


def not_writable(name: str, written: str | None) -> str:
    """Of what an operator in place is to write into, where it is given at all."""
    if written is None:
        return f"{name}: the tensor to write into is missing"
    return f"{name}: {written} is no tensor to write into"


def not_a_procedure(written: str) -> str:
    return f"{written} is not a procedure"


def out_of_range(name: str, index: int, length: int) -> str:
    return f"{name}: index {index} is out of range for length {length}"


def reversed_range(name: str, start: int, end: int) -> str:
    return f"{name}: the start {start} lies behind the end {end}"


def no_key(written: str) -> str:
    return f"hash-table-ref: there is no key {written}"


def no_match(written: str) -> str:
    return f"no clause of match fits {written}"


def wrong_values(wanted: int, given: int) -> str:
    """A negative count is that of at least so many: -1 for none, -2 for one."""
    least, wanted = "at least " * (wanted < 0), wanted if wanted >= 0 else -wanted - 1
    return f"expected {least}{wanted} value{'s' * (wanted != 1)}, got {given}"


def too_wide(name: str, written: str) -> str:
    return f"{name}: {written} does not fit in 64 bits"


def unbound(name: str) -> str:
    return f"{name} is used before its definition"


def no_byte(name: str, number: int) -> str:
    return f"{name}: {number} is no byte: it is from 0 to 255"


def port_is_for(name: str, use: str) -> str:
    return f"{name}: this port is for {use}"


def port_is_closed(name: str) -> str:
    return f"{name}: this port is closed"


def wrong_radix(name: str, radix: int) -> str:
    return f"{name}: {radix} is no radix: it is 2, 8, 10 or 16"


def refused(name: str, given: list[str]) -> str:
    """`+: cannot take float32 (2 3), float32 (4)`."""
    return f"{name}: cannot take {', '.join(given)}"


def no_number(count: int) -> str:
    return f"tensor-item: a tensor of {count} elements is no number"


NO_NUMBER_HELP = "(tensor->list x) gives all of them, (tensor-ref x i) one"


def no_gradient(count: int) -> str:
    return f"backward: a tensor of {count} elements has no gradient of its own"


NO_GRADIENT_HELP = "take its (tensor-sum x) or (tensor-mean x), or give a gradient of its shape"
UNASKED = "backward: nothing that this tensor was computed from asks for gradients"
UNASKED_HELP = "(requires-grad! x) asks for them"


def no_truth(count: int) -> str:
    return f"a tensor of {count} elements is neither true nor false"


NO_TRUTH_HELP = "ask (tensor-all x) or (tensor-any x) of its elements, or (null? x) whether it is there"


def uncaught(written: str) -> str:
    return f"uncaught value: {written}"


def wrong_field(type_name: str, field: str, kind: str, written: str) -> str:
    return f"{type_name}: the field {field} expects {_one(kind)}, got {written}"
