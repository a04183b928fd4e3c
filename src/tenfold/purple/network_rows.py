"""The layers and losses of the library that no one wrote by hand: Purple made from the rows that every
language over libtenfold reads."""

from __future__ import annotations

from typing import Any

from tenfold.capi.layers import LAYERS, REQUIRED, Layer
from tenfold.purple.printing import write_text


def definitions(defined: str) -> str:
    """Definitions of the rows that a text neither defines nor, under a name of its own, calls."""
    rows = [
        row for row in LAYERS if f"(define ({name(row)}" not in defined and f"({called(row)} " not in defined
    ]
    return "\n".join(loss(row) if len(row.inputs) == 2 else layer(row) for row in rows)


def name(row: Layer) -> str:
    """`leaky-relu` for the layer of the operator leaky_relu."""
    return purple(row.operator)


def called(row: Layer) -> str:
    return f"tensor-{name(row)}"


def purple(word: str) -> str:
    return word.replace("_", "-")


def signature(row: Layer, inputs: str = "") -> str:
    needed = [purple(each) for each, default in row.options.items() if default == REQUIRED]
    given = [
        f":{purple(each)} {literal(default)}" for each, default in row.options.items() if default != REQUIRED
    ]
    return f"({' '.join(filter(None, [name(row), inputs, *needed, *given]))})"


def literal(value: Any) -> str:
    if value is None:
        return "nil"
    return f"':{value}" if isinstance(value, str) else write_text(value)


def loss(row: Layer) -> str:
    call = f"({called(row)} x target{arguments(row)})"
    return f'(define {signature(row, "x target")} "The loss {name(row)} between x and a target." {call})'


def layer(row: Layer) -> str:
    call = f"(lambda (x) ({called(row)} x{arguments(row)}))"
    parts = " ".join(purple(parameter) for parameter in row.parameters)
    made = f'(layer "{name(row)}" {call}{" " * bool(parts)}{parts})'
    if row.parameters:
        first = sizes(next(iter(row.parameters.values())))
        started = [f"({purple(parameter)} {start(row, parameter)})" for parameter in row.parameters]
        made = f"(let* ((first-sizes {first}) {' '.join(started)}) {made})"
    return f'(define {signature(row)} "The layer of the operator {called(row)}." {made})'


def start(row: Layer, parameter: str) -> str:
    """How a parameter begins; an option of its name says whether there is one."""
    shape = sizes(row.parameters[parameter])
    how = row.start[parameter]
    begun = {
        "uniform": f"(%uniform-parameter {shape} (%bound first-sizes))",
        "normal": f"(parameter (%normal {shape}))",
        "ones": f"(%filled-parameter {shape} 1.0)",
        "zeros": f"(%filled-parameter {shape} 0.0)",
    }[how]
    return f"(if {purple(parameter)} {begun} nil)" if parameter in row.options else begun


def sizes(shape: list[str]) -> str:
    """Sizes: an option, a quotient `a/b`, or `a*n` for a number that stands n times."""
    parts = []
    for size in shape:
        if "*" in size:
            parts.append(spread(size))
        elif "/" in size:
            parts.append(f"(list (quotient {' '.join(map(purple, size.split('/')))}))")
        else:
            parts.append(f"(list {purple(size)})")
    return parts[0] if len(parts) == 1 else f"(append {' '.join(parts)})"


def spread(size: str) -> str:
    option, _, count = size.partition("*")
    return f"(%repeated {purple(option)} {count or 1})"


def arguments(row: Layer) -> str:
    """The operator's other arguments, by keyword."""
    words = []
    for argument, value in row.arguments.items():
        if isinstance(value, str) and "*" in value:
            given = spread(value)
            option = value.partition("*")[0]
            if row.options.get(option, REQUIRED) is None:  # nil: the operator's own default
                given = f"(if {purple(option)} {given} nil)"
        else:
            given = purple(value) if isinstance(value, str) else literal(value)
        words.append(f" :{purple(argument)} {given}")
    return "".join(words)
