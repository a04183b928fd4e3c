"""A function recorded for itself, as one program: what `vmap`, `jvp` and `checkpoint` transform.

Its arguments are stand-ins without data; whatever else it reads becomes a further input, and what it writes
in place a further result, written where it belongs once the transformed function is called.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Sequence
from typing import Any

from tenfold import flat
from tenfold.base.errors import ArgumentError, GradientError, TenfoldError, TraceError
from tenfold.base.source import capture
from tenfold.flat.strides import contiguous
from tenfold.ops.table import Row, Signature
from tenfold.runtime import tree
from tenfold.runtime.recording import one_at_a_time, shares_memory
from tenfold.tensor import Tensor
from tenfold.tensor.views import Alias, Storage
from tenfold.trace import graph
from tenfold.trace.graph import Holder, Node, Origin, Value
from tenfold.trace.lower import lower
from tenfold.trace.program import Program


class Recorder:
    """Follows a function while it is recorded, inside whatever else is being recorded."""

    through_memory = True
    applied: Callable[..., Any]  # what a Function of the user's own gives here: see `functions.py`

    def __init__(self, what: str, outer: Any):
        self.what = what
        self.outer = outer
        self.thread = threading.get_ident()
        self.nodes: set[Node] = set()
        self.arguments: set[Value] = set()
        self.before: dict[Holder, Value] = {}
        self.grads: dict[Origin, Any] = {}
        self.own: list[Value] = []  # leaves of levels of differentiation that begin and end inside
        self.followed: set[Holder] = set()  # tensors that were read and collect gradients, and their memory

    def read(self, holder: Holder, value: Value) -> Value:
        if isinstance(holder, Tensor) and holder._leaf is not None:
            self.followed.add(holder if holder._alias is None else holder._alias.storage)
        if self.outer is not None and not self.made(value) and value not in self.arguments:
            self.outer.read(holder, value)
        return value

    def write(self, holder: Holder, root: Holder) -> None:
        if root in self.followed or holder in self.followed:
            raise GradientError(
                f"{self.what}: the function writes to a tensor that collects gradients, after reading it",
                help="write outside of the function, or to a copy",
            ).located(self.what, capture())
        if root not in self.before:
            with graph.outside():
                self.before[root] = root.current()

    def made(self, value: Value) -> bool:
        return value.node in self.nodes

    def knows(self, value: Value) -> bool:
        """Whether a value is computed without the arguments: it is recorded anew at every call, so what it
        holds now may decide what is recorded."""
        seen: set[Value] = set()
        waiting = [value]
        while waiting:
            each = waiting.pop()
            if each in seen or each.buffer is not None:
                continue
            if each.node is None:
                return False
            seen.add(each)
            waiting += [one for node in (each.node, *each.node.path) for one in node.inputs]
        return self.outer is None or self.outer.knows(value)

    def touch_grad(self, origin: Origin, clears: bool) -> None:
        self.grads.setdefault(origin, origin.collected)

    def guard(self, container: Any, key: Any, contents: bool = False) -> None:
        if self.outer is not None:
            self.outer.guard(container, key, contents)

    def watch(self, container: Any, apart: Any = (), of_object: bool = False) -> None:
        pass  # what is bound in here is of this function alone


class Recorded:
    """What was recorded: a program whose leaves are arguments or values from outside, and whose results are
    what the function returned, then what it wrote."""

    def __init__(
        self,
        program: Program,
        places: list[int | None],
        structure: Any,
        count: int,
        writes: list[Storage | int],
    ):
        self.program = program
        self.leaves = program.leaves
        self.places = places  # for each leaf, which argument it is; None for one from outside
        self.structure = structure
        self.count = count
        self.writes = writes  # memory from outside, or the place of an argument
        # All that a transformation of the program depends on.
        types = tuple([each.type for each in program.leaves])
        into = tuple([each if isinstance(each, int) else None for each in writes])
        self.key = (program.key, types, tuple(places), count, into)
        self.random = any(_draws(node.signature) for node in program.nodes)

    def fragment(self) -> flat.Function:
        return lower(self.program, whole=True)

    def states(self) -> set[int]:
        """The leaves that are states of random generators."""
        drawn = {
            each
            for node in self.program.nodes
            if node.signature.row.random
            for each in node.inputs
            if _is_state(each.type)
        }
        return {i for i, leaf in enumerate(self.leaves) if leaf in drawn}

    def state_written(self, place: int) -> int | None:
        """Where among the results the next state is of a leaf that is a generator's state."""
        for i, root in enumerate(self.writes):
            if isinstance(root, Storage) and root.value is self.leaves[place]:
                return self.count + i
        return None

    def call(
        self, row: Row, key: Any, given: Sequence[Tensor], make: Callable[[], flat.Function], *more: Tensor
    ) -> list[Tensor]:
        """Record one node in the place of the function, made by `make` when it is first needed; what it
        returns is the node's results, less those that were written."""
        self.refuse_shared(given)
        inputs = tuple(
            [
                leaf if place is None else given[place].current()
                for leaf, place in zip(self.leaves, self.places, strict=True)
            ]
            + [each.current() for each in more]
        )
        types = tuple([each.type for each in inputs])
        full_key = (row.name, key, self.key, types)
        signature = _signatures.get(full_key)
        if signature is None:
            signature = _signatures[full_key] = Signature(row, types, (), make())
        results = graph.enter(Node(signature, inputs, capture()), self.program.device)
        wanted = len(results) - len(self.writes)
        for target, value in zip(self.writes, results[wanted:], strict=True):
            if isinstance(target, Storage):
                shape = target.value.type.shape
                Tensor(target.value, Alias(target, (), contiguous(shape), 0)).assign(value)
            else:
                given[target].assign(value)
        return [Tensor(each) for each in results[:wanted]]

    def refuse_shared(self, given: Sequence[Tensor]) -> None:
        """Refuse a write to an argument where others would have to see it."""
        written = [given[each] for each in self.writes if isinstance(each, int)]
        if not written:
            return
        outside = {id(leaf) for leaf, place in zip(self.leaves, self.places, strict=True) if place is None}
        read = any(each._alias is not None and id(each._alias.storage.value) in outside for each in written)
        if read or shares_memory(given):
            raise TraceError(
                "the function writes to an argument whose memory it also reads in another way",
                help="clone() the argument, or pass it in one way only",
            ).located("", capture())


_signatures: dict[Any, Signature] = {}


def _draws(signature: Any) -> bool:
    """Whether an op draws random numbers; attention without dropout, for one, gives the state back as is."""
    if not signature.row.random:
        return False
    fragment = signature.fragment
    return not all(each in fragment.params for each in fragment.results if _is_state(each.type))


def _is_state(type: flat.TensorType) -> bool:
    return type.dtype.name == "uint64" and type.shape == (2,)


def like(function: Callable[..., Any], name: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Dress a function as what it was made from; its errors tell the transformation and the user's line."""

    def dress(made: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function, updated=())
        def call(*args: Any, **kwargs: Any) -> Any:
            try:
                return made(*args, **kwargs)
            except TenfoldError as error:
                raise error.located(name, capture()) from None

        return call

    return dress


def is_tensor(each: Any) -> bool:
    return isinstance(each, Tensor)


def record(
    what: str, call: Callable[[list[Tensor]], Any], given: Sequence[Value], tensors_only: bool = True
) -> Recorded:
    """Record `call(stand_ins)`, where stand-ins are like the given values but without data."""
    with one_at_a_time:
        recorder = Recorder(what, graph.active())
        by_value: dict[Value, Tensor] = {}  # one stand-in for what is given twice
        for each in given:
            by_value.setdefault(each, Tensor(Value(each.type, each.device)))
        stand_ins = [by_value[each] for each in given]
        values = [each._value for each in stand_ins]
        for value, each in zip(values, given, strict=True):
            value.source = each.made_at
        recorder.arguments.update(values)
        before, graph.recorder = graph.recorder, recorder
        enabled, graph.mode.enabled = graph.mode.enabled, True  # what is off outside is on in here
        level, graph.level = graph.level, None  # it is the node in its place that moves
        try:
            result = call(stand_ins)
            outputs: list[Any] = []
            structure = tree.flatten(result, is_tensor, outputs)
            if tensors_only:
                _check_outputs(what, structure)
            targets = [each.current() for each in outputs]
        finally:
            graph.recorder, graph.mode.enabled, graph.level = before, enabled, level
            finals = {root: root.current() for root in recorder.before}
            touched = {origin: origin.collected for origin in recorder.grads}
            for root, value in recorder.before.items():
                root.replace(value)
            for origin, gradient in recorder.grads.items():
                origin.collected = gradient
    arguments = {value: i for i, value in reversed(list(enumerate(values)))}
    writes: list[Storage | int] = []
    for root, final in finals.items():
        start = recorder.before[root]
        if recorder.made(start):
            continue  # memory of the function's own
        assert isinstance(root, Storage)
        writes.append(arguments.get(start, root))
        targets.append(final)
    if not targets:
        raise ArgumentError("the function returns no tensor", help="return what it computes").located(
            what, capture()
        )
    program = _collect(what, targets, recorder.nodes)
    for each in recorder.own:
        each.origin = None
    changed = [origin for origin, final in touched.items() if final is not recorder.grads[origin]]
    outside = {id(leaf.origin.of) for leaf in program.leaves if leaf.origin is not None}
    if any(id(origin) in outside for origin in changed):
        raise TraceError(
            f"{what}: backward() inside the function would reach tensors outside of it",
            help="use tenfold.func.grad inside, or call backward() on the result",
        ).located(what, capture())
    places = [arguments.get(leaf) for leaf in program.leaves]
    return Recorded(program, places, structure, len(outputs), writes)


def _check_outputs(what: str, structure: Any) -> None:
    if structure is tree.LEAF:
        return
    if len(structure) == 2:
        raise ArgumentError(
            f"the function returns a {structure[0].__name__} where a Tensor is needed",
            help="return tensors, or lists, tuples and dicts of them",
        ).located(what, capture())
    for each in structure[2]:
        _check_outputs(what, each)


def _collect(what: str, targets: Sequence[Value], inside: set[Node]) -> Program:
    """The program that computes the targets by the nodes inside; all that these take besides are leaves."""
    places: dict[Node, int] = {}
    leaves: dict[Value, int] = {}
    key: list[int] = []
    stack: list[Any] = [each.node for each in reversed(targets) if each.node in inside]
    while stack:
        node = stack[-1]
        if node in places:
            stack.pop()
            continue
        before = [each.node for each in node.inputs if each.node in inside]
        if any(each not in inside for each in node.path):
            raise TraceError(
                f"{what}: gradients inside the function flow through what was computed outside of it",
                help="use tenfold.func.grad or vjp, or create_graph=True",
            ).located(what, node.source)
        waiting = [each for each in (*before, *node.path) if each not in places]
        if waiting:
            stack += reversed(waiting)
            continue
        stack.pop()
        places[node] = len(places)
        key.append(node.signature.id)
        for each in node.inputs:
            if each.node in inside:
                key.append(places[each.node] << 20 | each.index)
            else:
                key.append(-1 - leaves.setdefault(each, len(leaves)))
        key += [places[each] for each in node.path]
    outputs = []
    for each in targets:
        if each.node in inside:
            outputs.append((places[each.node], each.index))
        else:
            outputs.append((-1 - leaves.setdefault(each, len(leaves)), 0))
    key.append(-1 << 40)
    key += [place << 20 | index for place, index in outputs]
    return Program(list(places), list(leaves), outputs, tuple(key), targets[0].device)
