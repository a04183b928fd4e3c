"""The Trace: values recorded by calling ops, each an ATen overload on other values. Nothing runs here."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Collection, Sequence
from typing import Any, Protocol

import numpy as np

from tenfold.base.devices import Device
from tenfold.base.errors import ArgumentError, DeviceError, Operand, TenfoldError
from tenfold.flat.ir import TensorType
from tenfold.ops.table import SLOT, Row, Signature, find

# A loop that never asks for a value would record without end: past this depth its values are computed on the
# way. The pieces of such a loop are the same program, so it is compiled once.
MAX_DEPTH = 5_000
settle: Callable[[Sequence[Value]], None] | None = None  # set by the runtime, which knows how
mutable = False  # whether values that gradients need may be written in place: they are what they were


class Node:
    """A call of an op: which (`signature`), on what (`inputs`), where in the user's program (`source`).

    A gradient node also has a `path`: the nodes that it differentiates. `spent` says, of a node which
    gradients flow through, whether they did and may not again; of others None. `results` remembers several
    results, so that who computes one computes with it those that are wanted, too.
    """

    __slots__ = ("__weakref__", "cut", "depth", "inputs", "results", "signature", "source", "spent")
    depth: int
    path: tuple[Node, ...] = ()

    def __init__(self, signature: Signature, inputs: tuple[Value, ...], source: Any):
        self.signature = signature
        self.inputs = inputs
        self.source = source
        self.spent: bool | None = None
        self.cut = False  # of a function that is recorded: whether gradients stop here
        self.results: tuple[weakref.ref[Value], ...] = ()
        depth: int = 0
        for each in inputs:
            if each.node is not None and each.node.depth > depth:
                depth = each.node.depth
        if depth >= MAX_DEPTH and recorder is None and settle is not None:
            settle(inputs)
            depth = 0
        self.depth = depth + 1


class Origin:
    """Where gradients of a value flow: result `index` of a node, or (without a node) a leaf that collects
    them.

    It outlives the computation: a value that has its data lets go of its node, but not of its origin. A leaf
    that was written in place since has a new value; the old one's origin is another, `of` the leaf's own.
    """

    __slots__ = ("after", "collected", "hooks", "index", "leaf", "node", "other", "overwritten", "retains")

    def __init__(self, node: Any = None, index: int = 0):
        self.node = node
        self.index = index
        self.collected: Any = None
        self.hooks: dict[int, Callable[[Any], Any]] | None = None
        self.after: dict[int, Callable[[], None]] | None = None  # to be called when a gradient was collected
        self.retains = False
        # A weak reference to the node that wrote over the value, which may be among its inputs; or True.
        self.overwritten: Any = None
        self.leaf: Callable[[], Any] | None = None  # the tensor where gradients end, as a weak reference
        self.other: Origin | None = None

    @property
    def of(self) -> Origin:
        return self.other or self

    @property
    def grad(self) -> Any:
        """The gradient that was collected, a Tensor or None."""
        if recorder is not None:
            _touch_grad(self)
        return self.collected

    @grad.setter
    def grad(self, gradient: Any) -> None:
        if recorder is not None:
            _touch_grad(self, clears=gradient is None)
        self.collected = gradient

    def overwrite(self, value: Value, by: Value) -> None:
        """Note that the tensor which held `value` was written in place, so that no gradient may need it."""
        if mutable:
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

    What gradients flow to has an `origin`.
    """

    __slots__ = ("__weakref__", "buffer", "device", "index", "node", "origin", "source", "type")

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
        """Take the computed data and let go of how it was computed."""
        if self.node is not None:
            self.source = self.node.source
        self.node, self.index, self.buffer = None, 0, buffer


class Mode(threading.local):
    """What decides, in this thread, how ops are recorded: whether gradients are followed (`enabled`),
    whether it is for a module of another compiler (`exporting`), and in which `precision` ops run that
    autocast changes, by device (None: as their arguments say)."""

    enabled = True
    inference = False
    exporting = False
    precision: tuple[Any, ...] | None = None
    # What of it decides about a compiled function, in one piece: it is compared at every call.
    state: tuple[Any, ...] = (True, False, None)

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, value)
        super().__setattr__("state", (self.enabled, self.inference, self.precision))


mode = Mode()


class Level(Protocol):
    """What follows tangents while forward mode is on: see `autograd/forward_ad.py`."""

    tangents: Any

    def push(self, node: Node, results: Sequence[Value]) -> None: ...

    def move(self, value: Value, moved: Value | None) -> None: ...

    def same(self, value: Value, other: Value) -> None: ...


class Saving(Protocol):
    """What packs values away that gradients will need: see `autograd/watched.py`."""

    def __call__(self, node: Node, results: Sequence[Value]) -> None: ...

    def packed(self, value: Value) -> Callable[[], Value]: ...


level: Level | None = None
saving: Saving | None = None


def track(node: Node, results: Sequence[Value]) -> None:
    """Give the results of an op the origins by which gradients flow to its inputs."""
    if mode.enabled:
        tracked = sum([1 << i for i, each in enumerate(node.inputs) if each.origin is not None])
        for each, reached in zip(results, node.signature.reached, strict=True):
            if reached & tracked:
                each.origin = Origin(node, each.index)
                node.spent = False
        if saving is not None and node.spent is not None:
            saving(node, results)


def fresh(value: Value, where: Any, by_op: bool = False) -> Value:
    """The same data as a value of its own, to which no gradient of `backward` flows. A transformation of the
    function around it sees through it."""
    if by_op or value.buffer is None:
        same = record(find("alias"), (value,), where)[0]
        same.origin = None
        return same
    copy = Value(value.type, value.device, None, value.index, value.buffer)
    copy.source = value.source
    if level is not None:
        level.same(value, copy)
    return copy


class Recorder(Protocol):
    """What follows the tensors that a function under `tenfold.compile` reads and writes."""

    nodes: set[Node]
    thread: int
    through_memory: bool  # whether a view is read by looking into the memory that it is a part of

    def read(self, holder: Holder, value: Value) -> Value: ...

    def write(self, holder: Holder, root: Holder) -> None: ...

    def made(self, value: Value) -> bool: ...

    def knows(self, value: Value) -> bool: ...  # whether its data may be asked for

    def touch_grad(self, origin: Origin, clears: bool) -> None: ...

    def guard(self, container: Any, key: Any, contents: bool = False) -> None: ...

    def watch(self, container: Any, apart: Collection[Any] = (), of_object: bool = False) -> None: ...


recorder: Recorder | None = None


def active() -> Recorder | None:
    """The recorder, if it is this thread that it follows."""
    return recorder if recorder is None or recorder.thread == threading.get_ident() else None


def _touch_grad(origin: Origin, clears: bool = False) -> None:
    following = active()
    if following is not None:
        following.touch_grad(origin, clears)


class outside:
    """While a function is recorded, a `with` block that is not part of it: for state made on the way. It may
    be part of another, around it."""

    def __init__(self, around: Recorder | None = None):
        self.around = around

    def __enter__(self) -> None:
        global recorder
        self.recorder, recorder = recorder, self.around

    def __exit__(self, *error: Any) -> None:
        global recorder
        recorder = self.recorder


def follow(node: Node) -> None:
    """Tell the recorder, if there is one, of a node that was made."""
    following = active()
    if following is not None:
        following.nodes.add(node)
        node.cut = not mode.enabled


class Holder:
    """What holds a value that in-place ops may replace: the base of Tensor."""

    __slots__ = ()

    def current(self) -> Value:
        raise NotImplementedError

    def replace(self, value: Value) -> None:
        raise NotImplementedError


def record(row: Row, arguments: Sequence[Any], where: Any, device: Device | None = None) -> tuple[Value, ...]:
    """Call an op: `arguments` are one for each of the schema's, with trace values where it takes tensors."""
    inputs: list[Value] = []
    shape = tuple([_take(each, inputs) for each in arguments])
    try:
        place = _common_device(inputs, row) if device is None else device
        signature = row.signature(tuple([each.type for each in inputs]), shape)
    except TenfoldError as error:
        raise located(error, row, where, arguments) from None
    if place.type != "meta":  # `empty_like` and its like take a shape from a tensor on the meta device
        inputs = [each if each.buffer is not NO_DATA else _hollow(each) for each in inputs]
    return enter(Node(signature, tuple(inputs), where), place)


def _hollow(value: Value) -> Value:
    """A value of this type that an op may look at for its shape."""
    array = np.broadcast_to(np.zeros((), value.type.dtype.numpy), value.type.shape)
    return Value(value.type, Device("cpu"), buffer=array)


def enter(node: Node, device: Device) -> tuple[Value, ...]:
    """Make a new node part of the Trace: what it gives, and gradients flow through it."""
    follow(node)
    results = results_of(node, device)
    for each in node.inputs:
        if each.origin is not None:
            track(node, results)
            break
    return results


def results_of(node: Node, device: Device) -> tuple[Value, ...]:
    """The values that a new node gives."""
    types = node.signature.result_types
    results = tuple([Value(each, device, node, i) for i, each in enumerate(types)])
    if len(results) > 1:
        node.results = tuple([weakref.ref(each) for each in results])
    if device.type == "meta":
        for each in results:
            each.buffer = NO_DATA
    if level is not None:
        level.push(node, results)
    return results


def _take(argument: Any, inputs: list[Value]) -> Any:
    if type(argument) is Value:
        inputs.append(argument)
        return SLOT
    if type(argument) is tuple or type(argument) is list:
        return tuple([_take(each, inputs) for each in argument])
    return argument


def _common_device(inputs: Sequence[Value], row: Row) -> Device:
    place: Device | None = None
    for each in inputs:
        if place is None or (place is not each.device and _mobile(place, inputs)):
            place = each.device
        elif each.device is not place and not (each.type.rank == 0 and each.device.type == "cpu"):
            raise DeviceError(
                f"operands are on {place} and {each.device}", help=f"move one with .to('{place}')"
            )
    if place is None:
        if any(each.type.kind == "Tensor" and each.type.is_list for each in row.schema.arguments):
            raise ArgumentError("expected a non-empty list of Tensors", help="give at least one tensor")
        raise ArgumentError("at least one tensor is needed", help="make numbers tensors with tn.tensor")
    return place


def _mobile(place: Device, inputs: Sequence[Value]) -> bool:
    """Whether all that lies on `place` are zero-dimensional CPU tensors, which may join any device."""
    return place.type == "cpu" and all(each.type.rank == 0 for each in inputs if each.device is place)


def located(error: TenfoldError, row: Row, where: Any, arguments: Sequence[Any]) -> TenfoldError:
    """The error with the op's name, the user's line, and where its operands were made."""
    operands = []
    for name, argument in zip([a.name for a in row.schema.arguments], arguments, strict=False):
        several = type(argument) in (tuple, list)
        for i, each in enumerate(argument if several else (argument,)):
            if type(each) is Value:
                hint = f"{name}[{i}]" if several else "input" if name == "self" else name
                operands.append(Operand(hint, str(each.type), each.made_at))
    return error.located(row.python_name, where, operands)
