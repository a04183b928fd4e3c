"""The Trace: values recorded by calling ops and programs on other values. Nothing runs here."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tenfold.base.devices import Device
from tenfold.base.errors import ArgumentError, DeviceError, Operand, TenfoldError
from tenfold.flat.ir import TensorType
from tenfold.ops.callee import Callee, Program
from tenfold.ops.table import SLOT, Row, find
from tenfold.trace.context import context


class Node:
    """A call: of which op or program (`callee`), on what (`inputs`), where in the user's program (`source`).

    A gradient node also has a `path`: the nodes that it differentiates. `spent` is None for a node that no
    gradient flows through, else whether its saved values have been released. `results` are weak references to
    several results, so that computing one of them also computes the others that are still held.
    """

    __slots__ = ("__weakref__", "callee", "cut", "depth", "inputs", "replaced", "results", "source", "spent")
    path: tuple[Node, ...] = ()
    replaced: dict[int, Any]  # of results, by place; set where tensor/data_attribute.py knows of some
    depth: int  # of the longest chain of nodes that are yet to run

    def __init__(self, callee: Callee, inputs: tuple[Value, ...], source: Any):
        self.callee = callee
        self.inputs = inputs
        self.source = source
        self.spent: bool | None = None
        self.cut = False  # in a recorded function: gradients stop here
        self.results: tuple[weakref.ref[Value], ...] = ()
        depth: int = 0
        for operand in inputs:
            if operand.node is not None and operand.node.depth > depth:
                depth = operand.node.depth
        self.depth = depth + 1


class Origin:
    """Where gradients of a value flow: result `index` of a node, or (without a node) a leaf, which collects
    them.

    It outlives the computation: a computed value drops its node, but keeps its origin. A leaf that is written
    in place gets a new value; the old value gets an origin of its own, `of` the leaf's. A value that was
    written without autograd has one that is `of` what it was before. Hooks and gradients are those of `of`.
    """

    __slots__ = (
        "after",
        "around",
        "collected",
        "hooks",
        "index",
        "leaf",
        "node",
        "other",
        "overwritten",
        "passes_by",
        "retains",
    )

    def __init__(self, node: Any = None, index: int = 0):
        self.node = node
        self.index = index
        self.collected: Any = None
        self.hooks: dict[int, Callable[[Any], Any]] | None = None
        self.after: dict[int, Callable[[], None]] | None = None  # called once a gradient was accumulated
        self.around: Any = None  # the hooks of the node that accumulates gradients, before and after it does
        self.retains = False
        # A weak reference to the node that wrote over the value, which may be among its inputs; or True.
        self.overwritten: Any = None
        self.leaf: Callable[[], Any] | None = None  # the leaf tensor, as a weak reference
        self.other: Origin | None = None
        self.passes_by = False  # the value is not the node's result: it was written where that was

    def beside(self) -> Origin:
        """The origin of a value that was written over this one's without autograd: gradients bypass the
        write."""
        origin = Origin(self.node, self.index)
        origin.other = self.of
        origin.passes_by = True
        return origin

    def hand_on(self, other: Origin) -> None:
        """The tensor whose gradient is retained here has another value now."""
        if self.of.retains and other.of is not self.of:
            self.of.retains, other.of.retains = False, True

    @property
    def of(self) -> Origin:
        return self.other or self

    @property
    def grad(self) -> Any:
        """The gradient that was collected, a Tensor or None."""
        if context.recorder is not None:
            context.recorder.touch_grad(self)
        return self.collected

    @grad.setter
    def grad(self, gradient: Any) -> None:
        if context.recorder is not None:
            context.recorder.touch_grad(self, clears=gradient is None)
        self.collected = gradient

    def overwrite(self, value: Value, by: Value) -> None:
        """Note that the tensor holding `value` was written in place: a gradient that needs `value` is
        refused."""
        if context.keeps_overwritten:
            return
        writer = True if by.node is None else weakref.ref(by.node)
        if self.node is None:
            value.origin = Origin()
            value.origin.other = self.of
            value.origin.overwritten = writer
        else:
            self.overwritten = writer


# The buffer of a value on the meta device: it never has data, and never waits for any.
NO_DATA = type("NoData", (), {"__repr__": lambda self: "NO_DATA"})()


class Value:
    """A tensor of the trace: result `index` of a node yet to run, or a leaf that has its data (`buffer`).

    A value that gradients flow to has an `origin`.
    """

    __slots__ = ("__weakref__", "buffer", "device", "index", "node", "origin", "replaced", "source", "type")
    replaced: Any  # where the data is that `.data` put in its place; set by tensor/data_attribute.py

    def __init__(
        self, type: TensorType, device: Device, node: Node | None = None, index: int = 0, buffer: Any = None
    ):
        self.type = type
        self.device = device
        self.node = node
        self.index = index
        self.buffer = buffer
        self.origin: Origin | None = None
        self.source: Any = None

    @property
    def made_at(self) -> Any:
        return self.source or (self.node.source if self.node else None)

    def settle(self, buffer: Any) -> None:
        """Take the computed data and drop the node that computed it."""
        if self.node is not None:
            self.source = self.node.source
        self.node, self.index, self.buffer = None, 0, buffer


class Holder:
    """Holds a value that in-place ops may replace: the base of Tensor and of Storage."""

    __slots__ = ()

    @property
    def collector(self) -> Origin | None:
        """The origin that collects gradients, if this is a leaf tensor."""
        return None

    @property
    def shelf(self) -> Origin | None:
        """Where a gradient is kept that this was given though it requires none."""
        return None

    def look_again(self) -> None:
        """Forget what was read from memory whose write has been undone."""

    def current(self) -> Value:
        raise NotImplementedError

    def replace(self, value: Value) -> None:
        raise NotImplementedError

    @property
    def memory(self) -> Holder:
        """The storage behind it: the tensor may be all of it or a view of a part."""
        return self


def call_op(
    row: Row, arguments: Sequence[Any], where: Any, device: Device | None = None
) -> tuple[Value, ...]:
    """Record a call of an op: `arguments` are one for each of the schema's, trace values for tensors."""
    inputs: list[Value] = []
    shape = tuple([_take(argument, inputs) for argument in arguments])
    try:
        place = _common_device(inputs, row) if device is None else device
        numbers = None if context.recorder is None else context.recorder.policy.numbers
        callee = None if numbers is None else numbers.call(row, inputs, shape)
        if callee is None:
            callee = row.call(tuple([operand.type for operand in inputs]), shape)
    except TenfoldError as error:
        raise located(error, row, where, arguments) from None
    if place.type != "meta":  # `empty_like` and its like take a shape from a tensor on the meta device
        inputs = [operand if operand.buffer is not NO_DATA else _hollow(operand) for operand in inputs]
    return enter(Node(callee, tuple(inputs), where), place)


def call_program(program: Program, offered: Sequence[Value], where: Any, device: Device) -> tuple[Value, ...]:
    """Record a call of a program, on those of the offered values that it takes."""
    return enter(Node(program, tuple([offered[i] for i in program.takes]), where), device)


def _hollow(value: Value) -> Value:
    """A value of this type that an op may look at for its shape."""
    array = np.broadcast_to(np.zeros((), value.type.dtype.numpy), value.type.shape)
    return Value(value.type, Device("cpu"), buffer=array)


def enter(node: Node, device: Device) -> tuple[Value, ...]:
    """Add a new node to the Trace and return its results, with origins if gradients flow through it."""
    follow(node)
    if context.watcher is not None:
        context.watcher.called(node)
    results = results_of(node, device)
    for operand in node.inputs:
        if operand.origin is not None:
            track(node, results)
            break
    return results


def follow(node: Node) -> None:
    """Tell the recorder, if there is one, of a new node."""
    if context.recorder is not None:
        context.recorder.nodes.add(node)
        node.cut = not context.grad_enabled


def results_of(node: Node, device: Device) -> tuple[Value, ...]:
    """The values that a new node gives."""
    types = node.callee.result_types
    results = tuple([Value(type, device, node, i) for i, type in enumerate(types)])
    if len(results) > 1:
        node.results = tuple([weakref.ref(result) for result in results])
    if device.type == "meta":
        for result in results:
            result.buffer = NO_DATA
    if context.level is not None:
        context.level.push(node, results)
    return results


def track(node: Node, results: Sequence[Value]) -> None:
    """Give the results of a node the origins by which gradients flow to its inputs."""
    if context.grad_enabled:
        tracked, bit = 0, 1
        for operand in node.inputs:
            if operand.origin is not None:
                tracked |= bit
            bit <<= 1
        reached = node.callee.reached
        for i in range(len(results)):
            if reached[i] & tracked:
                result = results[i]
                result.origin = Origin(node, result.index)
                node.spent = False
        if context.saving is not None and node.spent is not None:
            context.saving(node, results)


def fresh(value: Value, where: Any, by_op: bool = False) -> Value:
    """The same data as a new value, to which `backward` sends no gradient. A transformation around the
    function still follows it."""
    if by_op or value.buffer is None:
        same = call_op(find("alias"), (value,), where)[0]
        same.origin = None
        return same
    copy = Value(value.type, value.device, None, value.index, value.buffer)
    copy.source = value.source
    if context.level is not None:
        context.level.same(value, copy)
    return copy


def _take(argument: Any, inputs: list[Value]) -> Any:
    if type(argument) is Value:
        inputs.append(argument)
        return SLOT
    if type(argument) is tuple or type(argument) is list:
        return tuple([_take(item, inputs) for item in argument])
    return argument


def _common_device(inputs: Sequence[Value], row: Row) -> Device:
    place: Device | None = None
    for operand in inputs:
        if place is None or (place is not operand.device and _mobile(place, inputs)):
            place = operand.device
        elif operand.device is not place and not _joins(operand, place):
            either = place.mesh is not None or operand.device.mesh is not None
            help = (
                "distribute the other with distribute_tensor(t, mesh)"
                if either
                else f"move one with .to('{place}')"
            )
            raise DeviceError(f"operands are on {place} and {operand.device}", help=help)
    if place is None:
        if any(argument.type.kind == "Tensor" and argument.type.is_list for argument in row.schema.arguments):
            raise ArgumentError("expected a non-empty list of Tensors", help="give at least one tensor")
        raise ArgumentError("at least one tensor is needed", help="make numbers tensors with tn.tensor")
    return place


def _joins(value: Value, place: Device) -> bool:
    """Whether a value of another device may be used with those of `place`: a number in CPU memory may; so may
    any CPU tensor on a mesh of this process's own devices, where it is replicated."""
    if value.device.type != "cpu" or value.device.mesh is not None:
        return False
    return value.type.rank == 0 or (place.mesh is not None and place.mesh.own)


def _mobile(place: Device, inputs: Sequence[Value]) -> bool:
    """Whether everything on `place` is a zero-dimensional CPU tensor, which may join any device."""
    if place.type != "cpu" or place.mesh is not None:
        return False
    others = [operand.device for operand in inputs if operand.device is not place]
    return all(_joins(operand, others[0]) for operand in inputs if operand.device is place)


def located(error: TenfoldError, row: Row, where: Any, arguments: Sequence[Any]) -> TenfoldError:
    """The error with the op's name, the user's line, and where its operands were made."""
    operands = []
    for name, argument in zip([a.name for a in row.schema.arguments], arguments, strict=False):
        several = type(argument) in (tuple, list)
        for i, operand in enumerate(argument if several else (argument,)):
            if type(operand) is Value:
                hint = f"{name}[{i}]" if several else "input" if name == "self" else name
                operands.append(Operand(hint, str(operand.type), operand.made_at))
    return error.located(row.python_name, where, operands)
