"""Gradients in the Trace: one node computes the gradient of a whole piece of it.

A gradient node names the nodes that it differentiates, its `path`, and takes the cotangents of where it
starts. Its lowering replays, for each node of the path from the last to the first, the gradient of that
node's FlatIR on the values which the forward pass computed. For derivatives of derivatives there is a closed
form: an ordinary node, whose FlatIR computes the same from what the nodes of the path took.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tenfold import flat
from tenfold.base.errors import GradientError, TenfoldError
from tenfold.flat.grad import gradients
from tenfold.flat.ir import in_order, replay
from tenfold.ops.callee import Callee, Program, programs
from tenfold.ops.table import SLOT, find
from tenfold.trace.context import context
from tenfold.trace.graph import Node, Origin, Value, follow, results_of, track

NOTHING = -1


class Backward:
    """The gradient of a fragment, as ops on the fragment's own values: from the cotangents of some of its
    results to those of some of its parameters."""

    __slots__ = ("cotangents", "ops", "plan", "results", "saves")

    def __init__(self, fragment: flat.Function, present: Sequence[bool], wanted: Sequence[bool]):
        self.cotangents = [
            flat.Value(result.type) if has else None
            for result, has in zip(fragment.results, present, strict=True)
        ]
        wrt = [param for param, is_wanted in zip(fragment.params, wanted, strict=False) if is_wanted]
        pulled = iter(gradients(fragment.ops, fragment.results, self.cotangents, wrt))
        self.results = [next(pulled) if is_wanted else None for is_wanted in wanted]
        own = set(fragment.ops)
        reached = in_order([result for result in self.results if result is not None])
        self.ops = [op for op in reached if op not in own]
        data = set(fragment.params)
        for op in fragment.ops:
            if any(operand in data for operand in op.operands):
                data.update(op.results)
        used = {operand for op in self.ops for operand in op.operands}
        self.saves = data & used  # of the forward pass
        self.plan: Any = None  # what tier 0 made of it


def backward_of(callee: Callee, present: tuple[bool, ...], wanted: tuple[bool, ...]) -> Backward:
    backward = callee.backward.get((present, wanted))
    if backward is None:
        backward = callee.backward[present, wanted] = Backward(callee.fragment, present, wanted)
    return backward


class Wiring:
    """How cotangents flow through a path. Each cotangent has a numbered slot. For each node there are the
    slots of its results, and those that its inputs add to (or NOTHING); then the slots of the starts, and of
    the wanted values."""

    __slots__ = ("inputs", "results", "starts", "wants")

    def __init__(
        self,
        results: tuple[tuple[int, ...], ...],
        inputs: tuple[tuple[int, ...], ...],
        starts: tuple[int, ...],
        wants: tuple[int, ...],
    ):
        self.results = results
        self.inputs = inputs
        self.starts = starts
        self.wants = wants

    @property
    def key(self) -> tuple[Any, ...]:
        return self.results, self.inputs, self.starts, self.wants

    def lower(
        self,
        callees: Sequence[Callee],
        frames: Sequence[dict[flat.Value, flat.Value]],
        cotangents: Sequence[flat.Value],
        types: Sequence[flat.TensorType],
        sources: Sequence[Any],
        whole: bool,
        device: str = "cpu",
    ) -> list[flat.Value]:
        """The wanted cotangents; `frames` says, for each node, what became of its fragment's values."""
        slots: dict[int, flat.Value] = {}

        def add(slot: int, cotangent: flat.Value) -> None:
            slots[slot] = slots[slot] + cotangent if slot in slots else cotangent

        for slot, cotangent in zip(self.starts, cotangents, strict=True):
            add(slot, cotangent)
        for k in range(len(callees) - 1, -1, -1):
            present = tuple([slot in slots for slot in self.results[k]])
            if not any(present):
                continue
            wanted = tuple([slot != NOTHING for slot in self.inputs[k]])
            try:
                backward = backward_of(callees[k], present, wanted)
            except TenfoldError as error:
                raise error.located(callees[k].name, sources[k]) from None
            values = frames[k]
            for param, slot in zip(backward.cotangents, self.results[k], strict=True):
                if param is not None:
                    values[param] = slots[slot]
            replay(backward.ops, values, sources[k], whole, device)
            for slot, result in zip(self.inputs[k], backward.results, strict=True):
                if result is not None:
                    add(slot, values.get(result, result))
        return [
            slots[slot] if slot in slots else flat.full(type.shape, 0, type.dtype)
            for slot, type in zip(self.wants, types, strict=True)
        ]


class GradientProgram(Callee):
    """The callee of a gradient node: how cotangents flow. Its FlatIR is made where the path is lowered."""

    __slots__ = ("wiring",)
    name = "gradient"
    random = False
    differentiable = True

    def __init__(self, wiring: Wiring, result_types: tuple[flat.TensorType, ...]):
        super().__init__((), flat.Function((), (), self.name))
        self.wiring = wiring
        self.result_types = result_types
        self.small = False  # the fragment is not what it computes, also where the path is empty


class GradientNode(Node):
    """The gradient of a piece of the Trace: it reads the FlatIR values of the nodes on its path."""

    __slots__ = ("path",)
    path: tuple[Node, ...]
    callee: GradientProgram

    def __init__(
        self, callee: GradientProgram, inputs: tuple[Value, ...], source: Any, path: tuple[Node, ...]
    ):
        super().__init__(callee, inputs, source)
        self.path = path


def gradient(
    starts: Sequence[Value],
    cotangents: Sequence[Value],
    wants: Sequence[Value],
    where: Any,
    *,
    stops: Sequence[Value] = (),
    closed: bool = False,
    batch: int | None = None,
    path: Sequence[Node] | None = None,
) -> list[Value | None]:
    """The cotangents of `wants`, given those of `starts`; None for what the starts do not depend on.

    Gradients do not flow beyond `stops`. `path` is the path between starts and wants, if the caller knows it.
    `closed` results can be differentiated again. With a `batch`, cotangents and results have a leading
    dimension of that size; this is a closed form, too.
    """
    if path is None:
        path = find_path(starts, wants, stops)
        for node in path:
            if node.spent:
                raise_spent(node)
    wiring, reached, overwritten = _wire(path, starts, wants)
    if not reached:
        return [None] * len(wants)
    if overwritten:
        _check_saved(path, wiring)
    for start in starts:
        _check_result(start, path)
    types = tuple([want.type for want in reached])
    on_mesh = [start.device for start in starts if start.device.mesh is not None]
    device = on_mesh[0] if on_mesh else reached[0].device
    outside = _reaches_outside(path)
    if closed or batch is not None or context.level is not None or outside:  # a level pushes tangents through
        node = _closed_node(path, wiring, cotangents, types, where, batch)
    else:
        program = programs.get(("gradient", wiring.key, types), lambda: GradientProgram(wiring, types))
        node = GradientNode(program, tuple(cotangents), where, tuple(path))
    follow(node)
    if outside and not closed and batch is None:
        node.cut = True
    if context.watcher is not None:
        context.watcher.swept(path, wiring, 1 if batch is None else batch)
    results = results_of(node, device)
    if closed or batch is not None:
        track(node, results)
    by_want = dict(zip(reached, results, strict=True))
    return [by_want.get(want) for want in wants]


def _reaches_outside(path: Sequence[Node]) -> bool:
    """Whether a function is recorded for a transform, which takes what was computed before it as inputs, and
    the gradient is of such values."""
    recorder = context.recorder
    return recorder is not None and recorder.policy.differentiates and not recorder.nodes.issuperset(path)


def find_path(starts: Sequence[Value], wants: Sequence[Value], stops: Sequence[Value]) -> list[Node]:
    """The nodes on the way from the wanted values to the starts, in topological order."""
    goals = {id(want.origin.of) for want in wants if want.origin is not None}
    halted = {id(stop.origin.of) for stop in stops if stop.origin is not None}
    order: list[Node] = []
    leads: dict[Node, bool] = {}
    stack = [
        start.origin.node for start in starts if start.origin is not None and start.origin.node is not None
    ]
    stack.reverse()
    while stack:
        node = stack[-1]
        if node in leads:
            stack.pop()
            continue
        waiting = []
        reaches = False
        for operand in node.inputs:
            origin = operand.origin
            if origin is None:
                continue
            if id(origin.of) in goals:
                reaches = True
            if origin.node is not None and id(origin.of) not in halted:
                if origin.node not in leads:
                    waiting.append(origin.node)
                elif leads[origin.node]:
                    reaches = True
        if waiting:
            waiting.reverse()
            stack += waiting
            continue
        stack.pop()
        leads[node] = reaches
        if reaches:
            order.append(node)
    return order


def _wire(
    path: Sequence[Node], starts: Sequence[Value], wants: Sequence[Value]
) -> tuple[Wiring, list[Value], bool]:
    """The flow through a path, those of the wanted values that it reaches, and whether any input of a node on
    it was written in place since."""
    first_of: dict[Any, int] = {}  # the slot of the first result of each node on the path: the others follow
    slots: dict[Any, int] = {}  # of a result of another node by both, of a leaf by its origin
    goals = {id(want.origin.of) for want in wants if want.origin is not None}
    touched: set[int] = set()
    count = 0

    def slot(origin: Origin) -> int:
        nonlocal count
        if origin.node in first_of:
            return first_of[origin.node] + origin.index
        key: Any = (origin.node, origin.index) if origin.node is not None else origin.of
        number = slots.setdefault(key, count)
        count = max(count, number + 1)
        return number

    overwritten = False
    inputs: list[tuple[int, ...]] = []
    results: list[tuple[int, ...]] = []
    for node in path:
        numbers = []
        for operand in node.inputs:
            origin = operand.origin
            if origin is None:
                numbers.append(NOTHING)
                continue
            own = id(origin.other or origin)
            first = first_of.get(origin.node)
            if own in goals:
                touched.add(own)
                numbers.append(slot(origin))
            else:
                numbers.append(NOTHING if first is None else first + origin.index)
            if origin.overwritten:
                overwritten = True
        inputs.append(tuple(numbers))
        first_of[node], before = count, count
        count += len(node.callee.result_types)
        results.append(tuple(range(before, count)))
    touched.update(id(start.origin.of) for start in starts if start.origin is not None)
    begins = tuple([NOTHING if start.origin is None else slot(start.origin) for start in starts])
    reached = list(
        dict.fromkeys(want for want in wants if want.origin is not None and id(want.origin.of) in touched)
    )
    wanted = tuple([slot(want.origin) for want in reached if want.origin is not None])
    return Wiring(tuple(results), tuple(inputs), begins, wanted), reached, overwritten


def _closed_node(
    path: Sequence[Node],
    wiring: Wiring,
    cotangents: Sequence[Value],
    types: tuple[flat.TensorType, ...],
    where: Any,
    batch: int | None,
) -> Node:
    """The gradient as an ordinary node on all that the nodes of the path took, and the cotangents."""
    taken: dict[Value, int] = {}
    places = tuple(
        [tuple([taken.setdefault(operand, len(taken)) for operand in node.inputs]) for node in path]
    )
    callees = [node.callee for node in path]
    ids, starts = (
        tuple([callee.id for callee in callees]),
        tuple([cotangent.type for cotangent in cotangents]),
    )

    def make() -> Program:
        params = [flat.Value(operand.type) for operand in taken]
        params += [flat.Value(start if batch is None else _element(start)) for start in starts]
        frames = []
        for callee, operands in zip(callees, places, strict=True):
            values = dict(zip(callee.fragment.params, [params[i] for i in operands], strict=True))
            replay(callee.fragment.ops, values, None, True)
            frames.append(values)
        results = wiring.lower(callees, frames, params[len(taken) :], types, [None] * len(path), True)
        program = Program.trimmed("gradient", params, results)
        return program if batch is None else _batched(program, batch, len(taken))

    program = programs.get(("closed gradient", wiring.key, places, ids, starts, batch), make)
    available = (*taken, *cotangents)
    inputs = tuple([available[i] for i in program.takes])
    held = [
        i for i, operand in enumerate(inputs) if operand.origin is not None and operand.origin.overwritten
    ]
    return HoldingNode(program, inputs, where, held) if held else Node(program, inputs, where)


class HoldingNode(Node):
    """A gradient that can be differentiated again, some of whose inputs, `held`, were written in place before
    it was taken: it has what they held before, as the op that wrote them saved it."""

    __slots__ = ("held",)

    def __init__(self, callee: Program, inputs: tuple[Value, ...], source: Any, held: Sequence[int]):
        super().__init__(callee, inputs, source)
        self.held = frozenset(held)


def _batched(program: Program, size: int, first: int) -> Program:
    """The program for a batch of cotangents, which it takes from place `first` on."""
    from tenfold.flat.vmap import batched

    dims = [None if i < first else 0 for i in program.takes]
    fragment, stacked = batched(program.fragment, size, dims)
    results = [
        result if has else flat.broadcast_to(result, (size, *result.shape))
        for result, has in zip(fragment.results, stacked, strict=True)
    ]
    return Program(flat.Function(fragment.params, results, program.name), takes=program.takes)


def _element(type: flat.TensorType) -> flat.TensorType:
    return flat.TensorType(type.dtype, type.shape[1:])


def spend(path: Sequence[Node]) -> None:
    for node in path:
        node.spent = True


class Gone(Node):
    """Stands for a node of a compiled function whose gradient was taken inside that function."""

    __slots__ = ()

    def __init__(self, node: Node):
        super().__init__(node.callee, (), node.source)
        self.spent = True


class Before(Node):
    """Stands for the node that computed an argument of a function that is recorded. No gradient goes through
    it inside that function."""

    __slots__ = ()

    def __init__(self, value: Value, made_by: Any = None):
        known = made_by.__class__ is Node
        callee = made_by.callee if known else find("alias").call((value.type,), (SLOT,))
        super().__init__(callee, (), value.made_at)
        self.spent = False


def used_up(node: Node) -> bool:
    """Whether the gradient was taken, and cannot be again, since it needed values of the forward pass."""
    if not node.spent:
        return False
    if isinstance(node, Gone) or any(backward.saves for backward in node.callee.backward.values()):
        return True
    present = (True,) * len(node.callee.result_types)
    wanted = tuple([operand.origin is not None for operand in node.inputs])
    return bool(backward_of(node.callee, present, wanted).saves)


def raise_spent(node: Node) -> None:
    """Refuse a second gradient, unless the first needed nothing of the forward pass."""
    if not used_up(node):
        return
    raise GradientError(
        "the gradient is taken a second time, and the first released the values that it had saved",
        help="call backward(retain_graph=True) the first time, or compute the result again",
    ).located(node.callee.name, node.source)


def _check_saved(path: Sequence[Node], wiring: Wiring) -> None:
    """Raise, as PyTorch does, if a value that was saved for backward has been written in place since. The op
    that wrote it saved what it held before."""
    for node, results, inputs in zip(path, wiring.results, wiring.inputs, strict=True):
        for i, operand in enumerate(node.inputs):
            if operand.origin is None or not operand.origin.overwritten:
                continue
            _check_result(operand, path)
            wanted = tuple([slot != NOTHING for slot in inputs])
            saves = backward_of(node.callee, (True,) * len(results), wanted).saves
            if node.callee.fragment.params[i] in saves and not wrote(node, i):
                raise_overwritten(operand, node)


def _check_result(value: Value, path: Sequence[Node]) -> None:
    """Raise if this value was written in place, and the gradient of the op that made it needs it."""
    origin = value.origin
    if origin is None or not origin.overwritten or origin.node is None or origin.node not in path:
        return
    if _saves_result(origin.node, origin.index):
        raise_overwritten(value, origin.node)


def wrote(node: Node, place: int) -> bool:
    """Whether this node itself overwrote its input at this place, and so saved what it held before: an op its
    first, a program any. A gradient may hold what was saved."""
    if isinstance(node, HoldingNode) and place in node.held:
        return True
    origin = node.inputs[place].origin
    assert origin is not None
    may = place == 0 or isinstance(node.callee, Program)
    return may and origin.overwritten is not True and origin.overwritten() is node


def raise_overwritten(value: Value, node: Node) -> None:
    raise GradientError(
        f"a value that the gradient needs, {value.type}, was written in place after it was used",
        help="use the op that returns a new tensor, or clone() before the write",
    ).located(node.callee.name, node.source)


def _saves_result(node: Node, index: int) -> bool:
    wanted = tuple([operand.origin is not None for operand in node.inputs])
    present = (True,) * len(node.callee.result_types)
    return node.callee.fragment.results[index] in backward_of(node.callee, present, wanted).saves
