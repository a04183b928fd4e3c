"""The backward sweep: how gradients flow from results to the leaves, and the hooks on the way.

The whole sweep is one gradient node, unless a hook or a `Function` needs Python code in between. The sweep
is cut there: one gradient node for each piece, and Python code between them.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

from tenfold.autograd import anomaly
from tenfold.autograd.backward_hooks import is_any_watched, is_watched, passed
from tenfold.autograd.custom import CustomNode
from tenfold.autograd.grad_mode import no_grad, set_grad_mode
from tenfold.base.errors import ArgumentError, TraceError
from tenfold.base.hooks import CHANGES
from tenfold.base.source import capture
from tenfold.base.threads import in_another_thread
from tenfold.tensor import Tensor, sharding
from tenfold.trace import graph
from tenfold.trace.context import context
from tenfold.trace.gradient import Before, find_path, gradient, raise_spent, spend
from tenfold.trace.graph import Node, Origin, Value


class _Endings(threading.local):
    """What to do at the end of each sweep that is under way in this thread, innermost last: what for, by
    which key; and what once its gradients are accumulated."""

    def __init__(self) -> None:
        self.stack: list[dict[Any, Callable[[], None]]] = []
        self.accumulated: dict[Any, Callable[[], None]] = {}


_endings = _Endings()
# How many sweeps of a thread may be under way, each in the backward of another's Function: Python allows a
# thread only so many calls within each other.
DEPTH = 40


def at_end(key: Any, action: Callable[[], Any]) -> Any:
    """From a hook: call this when all gradients of the sweep have come; the first time for its key. Gives
    what is kept under the key."""
    return _endings.stack[-1].setdefault(key, action)


def once_accumulated(key: Any, action: Callable[[], None]) -> None:
    """From a hook that is called when a gradient was accumulated: call this when all have been, once for its
    key."""
    _endings.accumulated.setdefault(key, action)


def finish_accumulation() -> None:
    while _endings.accumulated:
        actions, _endings.accumulated = _endings.accumulated, {}
        for action in actions.values():
            action()


class Sweep:
    """One backward pass, from results to the values whose gradients are wanted."""

    def __init__(
        self,
        roots: Sequence[Tensor],
        cotangents: Sequence[Tensor],
        wanted: Sequence[Value] | None,
        retain: bool,
        create_graph: bool,
    ):
        self.where = capture()
        self.create_graph = create_graph
        self.retain = retain
        # What gradients have come to and shall flow on from, by the value's origin.
        self.pending: dict[int, tuple[Value, Tensor]] = {}
        for root, cotangent in zip(roots, cotangents, strict=True):
            self.add(self.pending, root.current(), cotangent)
        self.order, leaves, cuts = survey([value for value, _ in self.pending.values()])
        if wanted is not None:
            leading = set(find_path([value for value, _ in self.pending.values()], wanted, ()))
            goals = {id(value.origin.of) for value in wanted if value.origin is not None}
            self.order = [node for node in self.order if node in leading]
            cuts = [
                cut
                for cut in cuts
                if cut.origin is not None and (cut.origin.node in leading or id(cut.origin.of) in goals)
            ]
        self.cuts = cuts
        self.wanted = leaves if wanted is None else list(wanted)
        self.all_leaves = wanted is None
        self.found: dict[int, tuple[Value, Tensor]] = {}
        # By the origins of values: which gradients end here, and which Python code waits for; the places of
        # both among all of them.
        self.ends = {id(value.origin.of) for value in self.wanted if value.origin is not None}
        self.halts = {id(value.origin.of) for value in cuts if value.origin is not None}
        self.goals = [*self.wanted, *cuts]
        self.places: dict[int, list[int]] = {}
        for i, value in enumerate(self.goals):
            if value.origin is not None:
                self.places.setdefault(id(value.origin.of), []).append(i)

    def add(self, into: dict[int, tuple[Value, Tensor]], value: Value, cotangent: Tensor) -> None:
        assert value.origin is not None
        key = id(value.origin.of)
        if key in into:
            with set_grad_mode(self.create_graph):
                before = into[key][1]
                swapped = before.is_sparse and not cotangent.is_sparse  # a sparse one is added to a dense one
                cotangent = cotangent + before if swapped else before + cotangent
        into[key] = (value, cotangent)

    def run(self) -> list[tuple[Value, Tensor]]:
        """The gradients of the wanted values. Callbacks that hooks have queued are called at the end."""
        recorder = context.recorder
        if recorder is not None:
            recorder.guard(CHANGES, "count")
        elif len(_endings.stack) == DEPTH:
            return in_another_thread(self.run, "tenfold-backward")
        _endings.stack.append({})
        try:
            gradients = self.swept()
            for callback in _endings.stack[-1].values():
                callback()
            return gradients
        finally:
            _endings.stack.pop()

    def swept(self) -> list[tuple[Value, Tensor]]:
        """Propagate gradients to all wanted values: at once, or from one cut, where Python code runs, to the
        next."""
        for node in self.order:
            if node.spent:
                raise_spent(node)
            elif node.__class__ is Before:
                raise TraceError(
                    "gradients flow inside the function to an argument that was computed, and would go on",
                    help="pass it detached, or call backward() outside",
                ).located("backward", self.where)
        if not self.cuts:
            starts = list(self.pending.values())
            if anomaly.looking():
                anomaly.look(starts, self.order)
            self.flow(starts, self.order if self.all_leaves else None)
        else:
            place = {node: i for i, node in enumerate(self.order)}
            free = [pair for key, pair in self.pending.items() if key not in self.halts]
            self.pending = {key: pair for key, pair in self.pending.items() if key in self.halts}
            if free:
                self.flow(free)
            while self.pending:
                # The last computed first: nothing that is still to flow can add to its gradient.
                key = max(self.pending, key=lambda k: _place(self.pending[k][0], place))
                value, cotangent = self.pending.pop(key)
                self.pass_cut(value, cotangent)
        if self.cuts and anomaly.looking():
            anomaly.refuse_nan([gradient for _, gradient in self.found.values()])
        if not self.retain:
            spend(self.order)
        return [self.finish(value, gradient) for value, gradient in self.found.values()]

    def flow(self, starts: Sequence[tuple[Value, Tensor]], path: Sequence[Any] | None = None) -> None:
        """Propagate gradients from these values to the next cuts, along the path if it is known."""
        wants = self.near([value for value, _ in starts]) if self.cuts else self.goals
        results = gradient(
            [value for value, _ in starts],
            [start.current() for _, start in starts],
            wants,
            self.where,
            stops=[value for value in wants if self.is_cut(value)],
            closed=self.create_graph,
            path=path,
        )
        seen: set[int] = set()
        begun = {id(value.origin.of) for value, _ in starts if value.origin is not None}
        for value, result in zip(wants, results, strict=True):
            if result is None:
                continue
            assert value.origin is not None
            key = id(value.origin.of)
            if key in seen:
                continue
            seen.add(key)
            if key in begun and key in self.halts:
                continue
            self.arrive(value, Tensor(result))

    def near(self, starts: Sequence[Value]) -> list[Value]:
        """What gradients come to from these values before the next cuts, in the order of all goals: a sweep
        with many cuts asks for few of them each time."""
        found: set[int] = set()
        stack: list[Any] = []
        seen: set[Any] = set()

        def look(values: Sequence[Value], stops: bool) -> None:
            for value in values:
                origin = value.origin
                if origin is None:
                    continue
                key, maker = id(origin.of), origin.node
                found.update(self.places.get(key, ()))
                if maker is not None and maker not in seen and not (stops and key in self.halts):
                    seen.add(maker)
                    stack.append(maker)

        look(starts, stops=False)
        while stack:
            look(stack.pop().inputs, stops=True)
        return [self.goals[i] for i in sorted(found)]

    def is_cut(self, value: Value) -> bool:
        return value.origin is not None and id(value.origin.of) in self.halts

    def arrive(self, value: Value, cotangent: Tensor) -> None:
        assert value.origin is not None
        if self.is_cut(value):
            self.add(self.pending, value, cotangent)
        elif id(value.origin.of) in self.ends:
            self.add(self.found, value, cotangent)

    def pass_cut(self, value: Value, cotangent: Tensor) -> None:
        """Run the Python code at a cut: hooks of the value and of its node, or the backward of a Function."""
        origin = value.origin
        assert origin is not None
        cotangent = self.arrived(value, cotangent)
        maker = origin.node
        custom = isinstance(maker, CustomNode)
        if maker is None or not (custom or is_watched(maker)):
            if maker is not None:
                self.flow([(value, cotangent)])
            return
        gradients: list[Any] = [None] * len(maker.outputs if custom else maker.callee.result_types)
        gradients[origin.index] = cotangent
        results = {} if origin.passes_by else {origin.index: value}
        for key, (other, arrived) in list(self.pending.items()):
            if other.origin is not None and other.origin.node is maker:
                del self.pending[key]
                gradients[other.origin.index] = self.arrived(other, arrived)
                if not other.origin.passes_by:
                    results[other.origin.index] = other
        for source, result in passed(maker, gradients, results, self.create_graph):
            if source.origin is None or result is None:
                continue
            if source.origin.node is None:
                if id(source.origin.of) in self.ends:
                    self.add(self.found, source, result)
            else:
                self.add(self.pending, source, result.to_dense() if result.is_sparse else result)

    def arrived(self, value: Value, cotangent: Tensor) -> Tensor:
        """The whole gradient of a value inside has come: its hooks, and whoever wants or retains it."""
        assert value.origin is not None
        origin = value.origin.of
        cotangent = _hooked(origin, cotangent, self.create_graph)
        if origin.retains:
            accumulate(origin, self.own(cotangent), self.create_graph)
        if id(origin) in self.ends:
            self.add(self.found, value, cotangent)
        return cotangent

    def own(self, gradient: Tensor) -> Tensor:
        """A gradient to be kept, apart from tensors that Python code may hold or give to others, too."""
        if self.create_graph or gradient.is_sparse:
            return gradient
        return Tensor(graph.fresh(gradient.current(), self.where))

    def finish(self, value: Value, gradient: Tensor) -> tuple[Value, Tensor]:
        """What a leaf gets in the end, its hooks passed."""
        assert value.origin is not None
        origin = value.origin.of
        if origin.node is None and origin.hooks:
            return value, self.own(_hooked(origin, gradient, self.create_graph))
        return value, self.own(gradient) if self.cuts else gradient


def accumulate(leaf: Origin, gradient: Tensor, create_graph: bool) -> None:
    """Add a gradient to what a leaf has collected, and call the hooks that wait for it."""
    owner = None if leaf.leaf is None else leaf.leaf()
    if owner is not None and owner._leaf is not leaf:
        return  # it requires no gradients any more
    if owner is not None and gradient.device.mesh is not None:
        gradient = sharding.as_sharded(gradient, owner)
        if owner.device.mesh is None and context.recorder is None:  # a plain tensor has joined a mesh
            gradient = gradient.to(owner.device)
    if leaf.around is not None:
        gradient = leaf.around.come(gradient, create_graph)
    if leaf.grad is None:
        leaf.grad = gradient
    elif leaf.grad.is_sparse and not gradient.is_sparse:
        leaf.grad = gradient + leaf.grad
    elif create_graph:
        leaf.grad = leaf.grad + gradient
    else:
        with no_grad():
            leaf.grad.add_(gradient)
    if leaf.after:
        with set_grad_mode(create_graph):
            for hook in list(leaf.after.values()):
                hook()
    if leaf.around is not None:
        leaf.around.gone(gradient, create_graph)


def _place(value: Value, places: dict[Any, int]) -> tuple[int, int]:
    assert value.origin is not None
    return places.get(value.origin.node, -1), value.origin.index


def _hooked(origin: Origin, gradient: Tensor, create_graph: bool) -> Tensor:
    for hook in list((origin.hooks or {}).values()):
        with set_grad_mode(create_graph):
            replaced = hook(gradient)
        if replaced is not None:
            if (
                not isinstance(replaced, Tensor)
                or replaced.current().type is not gradient.current().type
                or replaced.device is not gradient.device
            ):
                raise ArgumentError(
                    f"a hook returns None or a gradient of {gradient.current().type}, not "
                    f"{replaced.current().type if isinstance(replaced, Tensor) else type(replaced).__name__}"
                )
            gradient = replaced
    return gradient


def _look_at(leaf: Origin) -> bool:
    """Let a leaf see what was written to its memory by others since it was read; whether there was any."""
    tensor = None if leaf.leaf is None else leaf.leaf()
    return tensor is not None and tensor._value is not tensor.current()


def survey(starts: Sequence[Value]) -> tuple[list[Any], list[Value], list[Value]]:
    """All nodes behind these values, each after those it depends on; the leaves; the values where Python has
    a say: with hooks or a gradient to retain, made by a Function or a node with hooks, or taken by one."""
    order: dict[Any, None] = {}
    leaves: dict[int, Value] = {}
    cuts: dict[int, Value] = {}
    known: dict[Any, bool] = {}

    silent = not is_any_watched()  # as far as is known: looking at a leaf may tell more

    def has_say(node: Any) -> bool:
        if silent and node.__class__ is Node:
            return False
        said = known.get(node)
        if said is None:
            said = known[node] = isinstance(node, CustomNode) or is_watched(node)
        return said

    def look(operands: Sequence[Value], taken: bool) -> list[Any]:
        """Note leaves and cuts among these; gives the nodes that made the others and are not in order yet."""
        nonlocal silent
        makers = []
        for operand in operands:
            origin = operand.origin
            if origin is None:
                continue
            maker, of = origin.node, origin.other or origin
            if maker is None:
                if id(of) not in leaves:
                    leaves[id(of)] = operand
                    if context.recorder is None and _look_at(of):
                        silent = not is_any_watched()
                continue
            if taken or of.hooks or of.retains or has_say(maker):
                cuts.setdefault(id(of), operand)
            if maker not in order:
                makers.append(maker)
        makers.reverse()
        return makers

    visited: set[Any] = set()  # nodes whose inputs lie above them on the stack
    stack = look(starts, False)
    while stack:
        node = stack[-1]
        if node in order:
            stack.pop()
            continue
        if node in visited:
            stack.pop()
            order[node] = None
            continue
        visited.add(node)
        waiting = look(node.inputs, has_say(node))
        if waiting:
            stack += waiting
            continue
        stack.pop()
        order[node] = None
    return list(order), list(leaves.values()), list(cuts.values())
