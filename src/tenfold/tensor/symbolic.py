"""A number that comes from a tensor of a function that is exported: `x.item()` stays in the program.

Arithmetic on such numbers is recorded on tensors without dimensions, in int64 and float64 as Python computes.
How they compare is recorded, too, but nothing can be decided by it, since none of them is known before the
program runs. An int may be a size: then the recording takes it for a number within what is promised of it.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence
from typing import Any

from tenfold.base import dtypes
from tenfold.base.errors import TraceError
from tenfold.base.source import capture
from tenfold.ops.plain.containers import Late
from tenfold.ops.table import Row
from tenfold.trace.context import context
from tenfold.trace.numbers import Numbers

WIDE = {int: dtypes.int64, float: dtypes.float64}
# What a comparison with a plain number says: how far the least and the most lie from that.
BOUNDS = {"ge": (0, None), "gt": (1, None), "le": (None, 0), "lt": (None, -1), "eq": (0, 0)}
TURNED = {"ge": "le", "gt": "lt", "le": "ge", "lt": "gt"}


class Symbolic(Late):
    """An int, a float, or how two of them compare, as a tensor without dimensions. It passes for a number of
    its kind. `size` tells what the recording takes it for where it is a size; of what was compared `sides`
    are the name of the comparison, and both numbers. What is promised of an int is `least` and `most`."""

    __slots__ = ("kind", "least", "most", "sides", "size", "tensor")

    def __init__(
        self,
        tensor: Any,
        kind: type,
        size: Callable[[], int] | None = None,
        sides: tuple[str, Any, Any] | None = None,
    ):
        self.tensor = tensor
        self.kind = kind
        self.size, self.sides = size, sides
        self.least: int | None = None
        self.most: int | None = None

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        return self.kind

    def __hash__(self) -> int:
        return id(self)

    def __neg__(self) -> Any:
        number = self._counted()
        return Symbolic(-number.tensor, number.kind, _following(operator.neg, number))

    def __pos__(self) -> Any:
        return self._counted()

    def _counted(self) -> Symbolic:
        """Itself; how two numbers compare as 0 or 1."""
        return Symbolic(self.tensor.to(WIDE[int]), int) if self.kind is bool else self

    def __abs__(self) -> Any:
        number = self._counted()
        return Symbolic(number.tensor.abs(), number.kind, _following(abs, number))

    def item(self) -> Any:
        return self

    def promise(self, least: int | None, most: int | None) -> None:
        """Note what is promised of an int."""
        if least is not None:
            self.least = least if self.least is None else max(self.least, least)
        if most is not None:
            self.most = most if self.most is None else min(self.most, most)

    def assume(self) -> None:
        """Note what it says of a number, if it is how that compares with a plain one."""
        name, left, right = self.sides or ("", None, None)
        if type(left) is not Symbolic:
            name, left, right = TURNED.get(name, name), right, left
        if type(left) is Symbolic and type(right) is int and name in BOUNDS:
            left.promise(*[None if end is None else right + end for end in BOUNDS[name]])


def of(tensor: Any) -> Symbolic | None:
    """The number in a tensor of one element, if a function is being exported; None if it is not."""
    recorder = context.recorder
    if recorder is None or recorder.policy.numbers is None or tensor.dtype.kind not in ("int", "float"):
        return None
    items = recorder.policy.numbers.items
    found = items.get(tensor.current())
    if found is None:
        found = items[tensor.current()] = _in_tensor(tensor, recorder.policy.numbers)
    return found


def _in_tensor(tensor: Any, numbers: Numbers) -> Symbolic:
    kind = int if tensor.dtype.kind == "int" else float
    number = tensor.detach() if tensor.requires_grad else tensor
    number = number.reshape(()) if number.ndim else number
    found = Symbolic(number.to(WIDE[kind]), kind)
    if kind is int:
        value, source = found.tensor.current(), capture()
        found.size = lambda: numbers.size(value, found.least, found.most, source)
    return found


def _following(compute: Callable[..., int], *numbers: Any) -> Callable[[], int] | None:
    """What an int is taken for that is computed from others."""
    if not all(number.size if type(number) is Symbolic else type(number) is int for number in numbers):
        return None
    return lambda: compute(*map(size_of, numbers))


def known(arguments: Sequence[Any], row: Row) -> list[Any]:
    """Arguments of an op that must know its numbers, with what those that come from tensors are taken for."""
    numbers = None if context.recorder is None else context.recorder.policy.numbers
    return list(arguments) if numbers is None else [numbers.known(argument, row) for argument in arguments]


def size_of(number: Any) -> Any:
    """What an int is taken for where Python must know it; a plain number as it is."""
    if type(number) is not Symbolic:
        return number
    return _refuse() if number.size is None else number.size()


def marked(value: Any) -> Any:
    """A value with marks in the places of such numbers, which ops take for numbers."""
    if type(value) is Symbolic:
        numbers = None if context.recorder is None else context.recorder.policy.numbers
        if numbers is None or value.kind is bool:
            return _refuse()
        mark = numbers.mark(value.tensor.current(), value.size)
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
        pair = (other, self) if turned else (self, other)
        result = compute(*[_side(operand, kind) for operand in pair])
        if compares:
            return Symbolic(result, bool, sides=(name, *pair))
        return Symbolic(result, kind, _following(compute, *pair) if kind is int else None)

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
