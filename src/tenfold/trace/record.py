"""The one recorder: a function is called once on stand-ins without data, and what it does to tensors becomes
a piece of the Trace.

Compiled functions, the transforms of `func/`, control flow, checkpoints, exports and `module_context` differ
by their `Policy` alone.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any, NamedTuple, Protocol

from tenfold.base.errors import GradientError, TraceError
from tenfold.base.forking import forkable
from tenfold.base.late import on_first_use
from tenfold.base.source import capture
from tenfold.trace.collect import Trace, collect
from tenfold.trace.context import context, outside
from tenfold.trace.counts import Count, Counts
from tenfold.trace.graph import Holder, Node, Origin, Value
from tenfold.trace.numbers import Numbers

with on_first_use(__name__):
    from tenfold.trace import tree


# Recordings of other threads wait: a recording writes to shared tensors, and puts them back at its end.
recording_lock = forkable(threading.RLock())

ANY = object()  # a gradient, whichever it is


class Listener(Protocol):
    """Receives the Python state that the recorded function depends on: see `runtime/dependencies.py`."""

    def guard(self, container: Any, key: Any, contents: bool = False) -> None:
        """The recording depends on the container's value for this key, or on something inside that value."""

    def watch(self, container: Any, apart: Collection[Any] = (), of_object: bool = False) -> None:
        """The function may bind names of this container, those `apart` excepted, to other tensors."""


class Policy(NamedTuple):
    """What a recorded function may do, and who is notified of it."""

    what: str  # the name in errors: "compile", "vmap"
    # Computes a value that is read from outside, which is then read from its tensor at each call; None: the
    # value itself is an input, computed or not.
    evaluate: Callable[[Sequence[Value]], None] | None = None
    asks: bool = False  # may ask for values that do not depend on the arguments
    nested: bool = False  # belongs to the recording around it, which hears of reads and guards
    # Sees gradients through the whole function, whatever the mode outside; may not write to a leaf that it
    # has read, nor leave gradients behind.
    differentiates: bool = False
    # Reads a view as a part of its memory, which may have been written by then.
    through_memory: bool = False
    listener: Listener | None = None
    # What a call of the user's own `autograd.Function` gives; None: forward is recorded, and backward runs.
    apply: Callable[[Any, tuple[Any, ...]], Any] | None = None
    describes: Callable[[Value], str] | None = None  # how a recorded value prints; None: by its type
    numbers: Numbers | None = None  # keeps numbers that come from tensors; None: they may not be asked for
    counts: Counts | None = None  # takes sizes that depend on data for numbers; None: they may not be asked


class Recorder:
    """Follows what happens to tensors while a function is recorded."""

    def __init__(self, policy: Policy, arguments: Collection[Value] = ()):
        self.policy = policy
        self.outer = context.recorder if policy.nested else None
        self.arguments = arguments
        self.nodes: set[Node] = set()
        self.reads: dict[Value, Holder] = {}  # values from outside, and where they were found
        self.leaves: dict[Holder, None] = {}  # tensors that were read and collect gradients, and their memory
        self.before: dict[Holder, Value] = {}  # memory that was written, and what it held
        self.written: list[Holder] = []  # the tensors from outside that were written
        self.silences: dict[Holder, set[bool]] = {}  # of memory that was written: whether gradients pass by
        self.grads: dict[Origin, Any] = {}  # gradients that were touched, as they were
        self.cleared: set[Origin] = set()
        self.own: list[Value] = []  # leaves of levels of differentiation that begin and end inside

    @property
    def through_memory(self) -> bool:
        return self.policy.through_memory

    def read(self, holder: Holder, value: Value) -> Value:
        """A tensor's value is used."""
        if holder.collector is not None:
            self.leaves[holder] = self.leaves[holder.memory] = None
        if self.traced(value):
            return value
        if self.policy.evaluate is not None:
            if value.buffer is None:
                with outside():
                    self.policy.evaluate([value])
            self.reads.setdefault(value, holder)
        elif self.outer is not None:
            self.outer.read(holder, value)
        return value

    def hold(self, memory: Holder) -> None:
        """A view of this memory is read as itself: it must not be written any more."""
        self.leaves[memory] = None
        if self.outer is not None:
            self.outer.hold(memory)

    def write(self, holder: Holder, root: Holder, silent: bool = False) -> None:
        """A tensor is about to be written; `root` is the memory behind it. Gradients pass by a `silent`
        write."""
        self.silences.setdefault(root, set()).add(silent)
        if self.policy.differentiates and (root in self.leaves or holder in self.leaves):
            what = self.policy.what
            raise GradientError(
                f"{what}: the function writes to a tensor that collects gradients, after reading it",
                help="write outside of the function, or to a copy",
            ).located(what, capture())
        if root not in self.before:
            with outside():
                self.before[root] = root.current()
        if not self.traced(self.before[root]):
            self.written.append(holder)

    def made(self, value: Value) -> bool:
        """Whether the function itself computes a value."""
        return value.buffer is None and value.node in self.nodes

    def traced(self, value: Value) -> bool:
        """Whether a value is an argument, or computed by the function itself."""
        return value in self.arguments or self.made(value)

    def knows(self, value: Value) -> bool:
        """Whether a value may be asked for: one that is computed without the arguments, where the function
        is recorded anew at every call."""
        if not self.policy.asks:
            return False
        seen: set[Value] = set()
        waiting = [value]
        while waiting:
            reached = waiting.pop()
            if reached in seen or reached.buffer is not None:
                continue
            if reached.node is None:
                return False
            seen.add(reached)
            waiting += [one for node in (reached.node, *reached.node.path) for one in node.inputs]
        return self.outer is None or self.outer.knows(value)

    def touch_grad(self, origin: Origin, clears: bool = False) -> None:
        """A leaf's gradient is about to be read, replaced or cleared."""
        self.grads.setdefault(origin, origin.collected)
        if clears:
            self.cleared.add(origin)

    def guard(self, container: Any, key: Any, contents: bool = False) -> None:
        if self.policy.listener is not None:
            self.policy.listener.guard(container, key, contents)
        elif self.outer is not None:
            self.outer.guard(container, key, contents)

    def watch(self, container: Any, apart: Collection[Any] = (), of_object: bool = False) -> None:
        if self.policy.listener is not None:
            self.policy.listener.watch(container, apart, of_object)

    @contextlib.contextmanager
    def following(self) -> Iterator[None]:
        """A block whose ops are recorded by this recorder."""
        before = context.recorder, context.grad_enabled, context.level
        context.recorder = self
        if self.policy.differentiates:
            context.grad_enabled = True  # what is off outside is on in here
            context.level = None  # the node that stands for the function moves
        try:
            yield
        finally:
            context.recorder, context.grad_enabled, context.level = before

    def restore(self) -> None:
        """Restore tensors and gradients to their state before the function was called."""
        for root, value in self.before.items():
            root.replace(value)
        for holder in self.written:  # or it would hold what was recorded, and all the data that it is about
            holder.look_again()
        for origin, gradient in self.grads.items():
            origin.collected = gradient


class Gradients:
    """What a recorded function does to the `grad` of leaves. A leaf is an Origin, or the place of an
    argument."""

    def __init__(self) -> None:
        self.expected: list[tuple[Any, Any]] = []  # with a Tensor, None, or ANY tensor
        self.made: list[Any] = []
        self.cleared: list[Any] = []


class Recording(NamedTuple):
    """What was recorded. The outputs of `trace` are the values of `returned`, then what `writes` hold at the
    end, then the gradients made, then sizes that depend on data."""

    trace: Trace
    inputs: list[int | Holder | Value]  # for each leaf: the argument, the tensor from outside, or its value
    returned: list[Any]  # tensors, as the function returned them
    structure: Any  # how they were nested
    writes: list[Holder | int]  # memory from outside, then places of arguments
    gradients: Gradients
    origins: list[Origin | None]  # of the outputs
    places: dict[int, int]  # of each stand-in, by its id, its first place among the arguments
    recorder: Recorder
    counts: list[Count]
    silent: frozenset[Holder | int]  # those of `writes` that gradients pass by, all of them

    @property
    def passed_by(self) -> bool:
        """Whether gradients pass by a write."""
        return any(True in silences for silences in self.recorder.silences.values())

    @property
    def outside_writes(self) -> list[Holder]:
        return [write for write in self.writes if not isinstance(write, int)]

    @property
    def argument_writes(self) -> list[int]:
        return [write for write in self.writes if isinstance(write, int)]


def record(
    function: Callable[[Sequence[Any]], Any], stand_ins: Sequence[Holder], policy: Policy
) -> Recording:
    """Call `function(stand_ins)` once and record what it does; afterwards all tensors are as they were."""
    with outside():
        values = [stand_in.current() for stand_in in stand_ins]
    arguments = {value: i for i, value in reversed(list(enumerate(values)))}
    returned: list[Any] = []
    with recording_lock:
        recorder = Recorder(policy, arguments)
        try:
            with recorder.following():
                result = function(stand_ins)
                structure = tree.flatten(result, is_holder, returned)
                targets = [tensor.current() for tensor in returned]
                written = _written(recorder, arguments, stand_ins)
            after = {origin: origin.collected for origin in recorder.grads}
            final_grads = {id(grad): grad.current() for grad in after.values() if grad is not None}
        finally:
            recorder.restore()
    recorder.leaves.clear()  # so that those which the function made itself, and nobody holds, are gone
    targets += written.values()
    gradients = Gradients()
    if not policy.differentiates:
        gradients, owners = _gradients(recorder, after, stand_ins, values)
        targets += [final_grads[id(owner)] for owner in owners]
    counts = policy.counts.found if policy.counts is not None else []
    if policy.numbers is not None:
        counts = policy.numbers.sizes
    if not targets:
        raise TraceError(
            f"the function given to {policy.what} neither returns nor changes a tensor",
            help="return what it computes",
        ).located(policy.what, capture())
    targets += [count.value for count in counts]
    trace = _inside(recorder, targets)
    if policy.differentiates:
        _refuse_gradients(recorder, after, trace)
    inputs = [arguments.get(leaf, recorder.reads.get(leaf, leaf)) for leaf in trace.leaves]
    origins = [target.origin for target in targets]
    places = {id(stand_in): i for i, stand_in in reversed(list(enumerate(stand_ins)))}
    inputs = [operand if type(operand) is int else places.get(id(operand), operand) for operand in inputs]
    silenced = [root for root, silences in recorder.silences.items() if silences == {True}]
    silent = frozenset([arguments.get(recorder.before[root], root) for root in silenced])
    return Recording(
        trace,
        inputs,
        returned,
        structure,
        list(written),
        gradients,
        origins,
        places,
        recorder,
        counts,
        silent,
    )


def is_holder(leaf: Any) -> bool:
    return isinstance(leaf, Holder)


def _written(
    recorder: Recorder, arguments: dict[Value, int], stand_ins: Sequence[Holder]
) -> dict[Holder | int, Value]:
    """What memory from outside, and then what arguments hold at the end, where they were written."""
    roots: dict[Holder | int, Value] = {}
    places: dict[int, Value] = {}
    for root, start in recorder.before.items():
        if start in arguments:
            places[arguments[start]] = stand_ins[arguments[start]].current()
        elif not recorder.made(start):
            roots[root] = root.current()
    return {**roots, **{i: places[i] for i in sorted(places)}}


def _gradients(
    recorder: Recorder, after: dict[Origin, Any], stand_ins: Sequence[Holder], values: Sequence[Value]
) -> tuple[Gradients, list[Any]]:
    """What became of the gradients that the function touched, and the tensors that it made for them. The
    arguments had these values."""
    gradients, finals = Gradients(), []
    owners: dict[Origin, int] = {}
    for i, (stand_in, value) in enumerate(zip(stand_ins, values, strict=True)):
        origin = value.origin or stand_in.shelf
        if origin is not None:
            owners[origin] = i
    used = {id(tensor) for tensor in (*recorder.reads.values(), *recorder.written)}
    for origin, final in after.items():
        if origin.leaf is not None and origin.leaf() is None:
            continue  # a tensor that the function made itself and let go: nobody sees its gradient
        owner = owners.get(origin, origin)
        before = recorder.grads[origin]
        gradients.expected.append((owner, before if before is None or id(before) in used else ANY))
        if final is None and before is not None:
            gradients.cleared.append(owner)
        elif final is not None and final is not before:
            if type(owner) is int and values[owner].origin is not None and stand_ins[owner].collector is None:
                raise TraceError(
                    "gradients flow inside the function to an argument that was computed, and would go on",
                    help="pass it detached, or call backward() outside",
                ).located(recorder.policy.what, capture())
            gradients.made.append(owner)
            finals.append(final)
    return gradients, finals


def _inside(recorder: Recorder, targets: Sequence[Value]) -> Trace:
    """The piece of the Trace that computes the targets by the recorded nodes alone."""
    trace, _ = collect(targets, inside=recorder.nodes)
    for node in trace.nodes:
        if any(step not in recorder.nodes for step in node.path):
            what = recorder.policy.what
            raise TraceError(
                f"{what}: gradients inside the function flow through what was computed outside of it",
                help="use tenfold.func.grad or vjp, or create_graph=True",
            ).located(what, node.source)
    return trace


def _refuse_gradients(recorder: Recorder, after: dict[Origin, Any], trace: Trace) -> None:
    """Refuse `backward()` inside a transformed function where it reaches leaves outside."""
    for value in recorder.own:
        value.origin = None
    changed = [origin for origin, final in after.items() if final is not recorder.grads[origin]]
    reached = {id(leaf.origin.of) for leaf in trace.leaves if leaf.origin is not None}
    if any(id(origin) in reached for origin in changed):
        what = recorder.policy.what
        raise TraceError(
            f"{what}: backward() inside the function would reach tensors outside of it",
            help="use tenfold.func.grad inside, or call backward() on the result",
        ).located(what, capture())
