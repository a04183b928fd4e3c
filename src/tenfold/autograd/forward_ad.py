"""`tenfold.autograd.forward_ad`: dual tensors, which carry a tangent that is computed along with them.

A level holds the tangents of values of the Trace. Values are never written, so the effect of in-place ops and
views on tangents follows from how they are recorded. A dual tensor has its own memory.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Any, NamedTuple

from tenfold.base.errors import ArgumentError, DTypeError, GradientError, ShapeError, located
from tenfold.base.late import on_first_use
from tenfold.base.source import capture
from tenfold.ops.table import find
from tenfold.tensor import Tensor
from tenfold.trace import graph
from tenfold.trace.context import context
from tenfold.trace.gradient import GradientNode
from tenfold.trace.graph import Node, Value

with on_first_use(__name__):
    from tenfold.trace.tangent import push


__all__ = [
    "UnpackedDualTensor",
    "dual_level",
    "enter_dual_level",
    "exit_dual_level",
    "make_dual",
    "unpack_dual",
]


class Level:
    """A level of forward mode: the tangents of the values that have one."""

    def __init__(self) -> None:
        self.tangents: weakref.WeakKeyDictionary[Value, Value] = weakref.WeakKeyDictionary()

    def push(self, node: Node, results: Sequence[Value]) -> None:
        """Record the tangents of a new node's results, from those of its inputs."""
        tangents = [self.tangents.get(operand) for operand in node.inputs]
        if all(tangent is None for tangent in tangents) or isinstance(node, GradientNode):
            return
        with suspended():
            tangents_out = push(node, tangents)
        for result, moved in zip(results, tangents_out, strict=True):
            self.move(result, moved)

    def move(self, value: Value, moved: Value | None) -> None:
        if moved is not None:
            self.tangents[value] = moved

    def same(self, value: Value, other: Value) -> None:
        """Give a value the tangent of another, however it was made."""
        moved = self.tangents.get(value)
        if moved is None:
            self.tangents.pop(other, None)
        else:
            self.tangents[other] = moved


class suspended:
    """A `with` block in which tangents are not followed."""

    def __enter__(self) -> None:
        self.level, context.level = context.level, None

    def __exit__(self, *error: Any) -> None:
        context.level = self.level


class UnpackedDualTensor(NamedTuple):
    """The value of a tensor, and its tangent or None."""

    primal: Tensor
    tangent: Tensor | None


@located
def enter_dual_level() -> int:
    """Open the level in which tensors have tangents. Only one can be open at a time."""
    if context.level is not None:
        raise GradientError(
            "a level of forward mode is open already, and levels do not nest",
            help="use tenfold.func.jvp for derivatives of derivatives",
        )
    context.level = Level()
    return 0


@located
def exit_dual_level(*, level: int | None = None) -> None:
    """Close the level and drop all tangents."""
    if context.level is None:
        raise GradientError("no level of forward mode is open")
    if level not in (None, 0):
        raise GradientError(f"level {level} is not the one that is open")
    context.level = None


class dual_level:
    """A `with` block in which tensors have tangents.

    with forward_ad.dual_level():
        moving = forward_ad.make_dual(x, along)
        value, tangent = forward_ad.unpack_dual(f(moving))
    """

    def __enter__(self) -> int:
        return enter_dual_level()

    def __exit__(self, *error: Any) -> None:
        exit_dual_level()


@located
def make_dual(tensor: Tensor, tangent: Tensor, *, level: int | None = None) -> Tensor:
    """A tensor with this value and this tangent."""
    if context.level is None:
        raise GradientError(
            "a dual tensor is made while a level of forward mode is open",
            help="use it inside `with dual_level():`",
        )
    for part in (tensor, tangent):
        if not isinstance(part, Tensor):
            raise ArgumentError(f"a dual tensor is made of Tensors, not of a {type(part).__name__}")
        if part.dtype.kind not in ("float", "complex"):
            raise _NoTangent(f"only tensors of float and complex dtypes have tangents, not {part.dtype.name}")
    if tensor.current().type is not tangent.current().type or tensor.device is not tangent.device:
        raise ShapeError(
            f"the tangent of {tensor.current().type} on {tensor.device} cannot be {tangent.current().type} "
            f"on {tangent.device}",
            help="a tangent has its primal's shape, dtype and device",
        )
    if tangent.current() in context.level.tangents:
        raise GradientError("a tangent that has a tangent itself: levels of forward mode do not nest")
    dual = Tensor(_alone(tensor.current()))
    context.level.move(dual._value, tangent.current())
    return dual


class _NoTangent(DTypeError, ValueError):
    """A dtype that forward mode does not follow."""


@located
def unpack_dual(tensor: Tensor, *, level: int | None = None) -> UnpackedDualTensor:
    """The value and the tangent of a tensor; the tangent is None if it has none."""
    if not isinstance(tensor, Tensor):
        raise ArgumentError(f"a dual tensor is a Tensor, not a {type(tensor).__name__}")
    moved = None if context.level is None else context.level.tangents.get(tensor.current())
    if moved is None:
        return UnpackedDualTensor(tensor, None)
    with suspended():
        return UnpackedDualTensor(Tensor(_alone(tensor.current())), Tensor(_alone(moved)))


def _alone(value: Value) -> Value:
    """The same, gradients and all, as a value that does not move."""
    with suspended():
        return graph.call_op(find("alias"), (value,), capture())[0]
