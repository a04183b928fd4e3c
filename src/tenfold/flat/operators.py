"""Python's operators on FlatIR values: importing this file gives them to `Value`."""

from __future__ import annotations

from collections.abc import Callable

from tenfold.flat.build import (
    Operand,
    add,
    div,
    ge,
    gt,
    invert,
    le,
    logical_and,
    logical_or,
    logical_xor,
    lt,
    mul,
    neg,
    rem,
    sub,
)
from tenfold.flat.folding import power
from tenfold.flat.ir import Value


def _pow(x: Value, y: Operand) -> Value:
    if isinstance(y, int) and not isinstance(y, bool) and 1 <= y <= 4:
        square = mul(x, x) if y > 1 else x
        return {1: x, 2: square, 3: mul(square, x) if y == 3 else x, 4: mul(square, square) if y == 4 else x}[
            y
        ]
    return power(x, y)


_OPERATORS: dict[str, Callable[..., Value]] = {
    "__add__": add,
    "__radd__": lambda x, y: add(y, x),
    "__sub__": sub,
    "__rsub__": lambda x, y: sub(y, x),
    "__mul__": mul,
    "__rmul__": lambda x, y: mul(y, x),
    "__truediv__": div,
    "__rtruediv__": lambda x, y: div(y, x),
    "__mod__": rem,
    "__pow__": _pow,
    "__neg__": neg,
    "__invert__": invert,
    "__and__": logical_and,
    "__or__": logical_or,
    "__xor__": logical_xor,
    "__lt__": lt,
    "__le__": le,
    "__gt__": gt,
    "__ge__": ge,
}
for _name, _build in _OPERATORS.items():
    setattr(Value, _name, _build)
