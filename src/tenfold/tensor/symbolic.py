"""A number that comes from a tensor of a function that is exported: `x.item()` stays in the program.

Arithmetic on such numbers is recorded on tensors without dimensions, in int64 and float64 as Python computes.
How they compare is recorded, too, but nothing can be decided by it, since none of them is known before the
program runs.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import Any

from tenfold.base import dtypes
from tenfold.base.errors import TraceError
from tenfold.base.source import capture
from tenfold.ops.plain.containers import Late
from tenfold.trace.context import context

WIDE = {int: dtypes.int64, float: dtypes.float64}


class Symbolic(Late):
    """An int, a float, or how two of them compare, as a tensor without dimensions. It passes for a number of
    its kind."""

    __slots__ = ("kind", "tensor")

    def __init__(self, tensor: Any, kind: type):
        self.tensor = tensor
        self.kind = kind

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        return self.kind

    def __hash__(self) -> int:
        return id(self)

    def __neg__(self) -> Any:
        number = self._counted()
        return Symbolic(-number.tensor, number.kind)

    def __pos__(self) -> Any:
        return self._counted()

    def _counted(self) -> Symbolic:
        """Itself; how two numbers compare as 0 or 1."""
        return Symbolic(self.tensor.to(WIDE[int]), int) if self.kind is bool else self

    def __abs__(self) -> Any:
        number = self._counted()
        return Symbolic(number.tensor.abs(), number.kind)

    def item(self) -> Any:
        return self


def of(tensor: Any) -> Symbolic | None:
    """The number in a tensor of one element, if a function is being exported; None if it is not."""
    recorder = context.recorder
    if recorder is None or recorder.policy.numbers is None or tensor.dtype.kind not in ("int", "float"):
        return None
    kind = int if tensor.dtype.kind == "int" else float
    number = tensor.detach() if tensor.requires_grad else tensor
    number = number.reshape(()) if number.ndim else number
    return Symbolic(number.to(WIDE[kind]), kind)


def marked(value: Any) -> Any:
    """A value with marks in the places of such numbers, which ops take for numbers."""
    if type(value) is Symbolic:
        numbers = None if context.recorder is None else context.recorder.policy.numbers
        if numbers is None or value.kind is bool:
            return _refuse()
        mark = numbers.mark(value.tensor.current())
        return mark if value.kind is int else float(mark)
    if type(value) in (list, tuple):
        return type(value)([marked(element) for element in value])
    if type(value) is dict:
        return {name: marked(element) for name, element in value.items()}
    return value


def _refuse(*_: Any, help: str = "use it in arithmetic alone; for a choice use tn.where or tn.cond") -> Any:
    raise TraceError(
        "a number that comes from a tensor is not known when a function is exported", help=help
    ).located("export", capture())


def _side(number: Any, kind: type) -> Any:
    return number.tensor.to(WIDE[kind]) if type(number) is Symbolic else kind(number)


def _binary(
    name: str, compute: Callable[[Any, Any], Any], floats: bool = False, compares: bool = False
) -> None:
    def method(self: Symbolic, other: Any, turned: bool = False) -> Any:
        if type(other) is not Symbolic and type(other) not in (int, float, bool):
            return NotImplemented
        kind = float if floats or float in (self.kind, getattr(other, "kind", type(other))) else int
        sides = [_side(operand, kind) for operand in (self, other)]
        return Symbolic(compute(*(reversed(sides) if turned else sides)), bool if compares else kind)

    setattr(Symbolic, f"__{name}__", method)
    if not compares:  # Python turns comparisons itself
        setattr(Symbolic, f"__r{name}__", lambda self, other: method(self, other, True))


_binary("add", lambda x, y: x + y)
_binary("sub", lambda x, y: x - y)
_binary("mul", lambda x, y: x * y)
_binary("truediv", lambda x, y: x / y, floats=True)
_binary("floordiv", lambda x, y: x // y)
_binary("mod", lambda x, y: x % y)
for _name in ("eq", "ne", "lt", "le", "gt", "ge"):
    _binary(_name, getattr(operator, _name), compares=True)
Symbolic.__int__ = functools.partialmethod(  # type: ignore[attr-defined]
    _refuse,
    help="use .item() instead of int(), or .long().item() to truncate a float; then do arithmetic alone",
)
Symbolic.__float__ = functools.partialmethod(  # type: ignore[attr-defined]
    _refuse, help="use .item() instead of float(); then do arithmetic alone"
)
for _name in (
    *("__bool__", "__index__", "__complex__", "__round__", "__trunc__", "__floor__"),
    *("__ceil__", "__pow__", "__rpow__"),
    *("__str__", "__repr__", "__format__"),
):
    setattr(Symbolic, _name, _refuse)
