"""Whole programs of the Trace on tier 0.

A program is a list of parts: a plan for each node, and one for each gradient of a node. Callees keep these
plans. So a new program of known parts costs little more than what it computes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from tenfold.base.bounded import Bounded
from tenfold.base.errors import TenfoldError, UnsupportedError
from tenfold.base.garbage import uncollected
from tenfold.engines.numpy.kernels import Array
from tenfold.engines.numpy.plan import Builder, Plan, Raw, Slots, memory_of, plan, run_plan
from tenfold.flat.composite import Composite
from tenfold.flat.elementwise import Add
from tenfold.flat.ir import Function, Op, TensorType, Value, in_order
from tenfold.flat.structured import Check
from tenfold.ops.callee import Callee
from tenfold.trace.collect import Trace
from tenfold.trace.gradient import NOTHING, Backward, GradientNode, backward_of
from tenfold.trace.graph import Node, Value as TraceValue
from tenfold.trace.late_numbers import loose_key, varies

AGAIN = 32  # runs of a program after which one plan of all its parts saves more than it takes to make
MOST = 50_000  # parts of all plans that are kept, of some hundred bytes each
_sums = Bounded()  # plans that add two values of a type
Values = tuple[Value, ...]


def run_program(program: Trace, arrays: Sequence[Array]) -> list[Array]:
    """A program's outputs, computed from the data of its leaves."""
    if program.device.type != "cpu":
        raise UnsupportedError(
            f"the NumPy engine computes on the CPU, not on {program.device}",
            help="move the tensors with .cpu(), or choose tn.set_engine('xla')",
        )
    made, numbers = planned_once(program)
    if numbers is not None:
        arrays = [*arrays, *map(np.asarray, numbers)]
    with np.errstate(all="ignore"):
        return run_plan(made, tuple(arrays))


class Known:
    """The plan of a program, and one for all programs that differ from it in Python numbers alone, once there
    was another of those, or if there will be."""

    def __init__(self, program: Trace):
        self.key = program.key
        self.loose: ProgramPlan | None = None
        self.plan: ProgramPlan | None = None
        if varies(program):
            self.open(program)
        else:
            self.plan = planned(program)

    def open(self, program: Trace) -> ProgramPlan:
        self.loose = planned(program, opened=True)
        return self.loose

    @property
    def weight(self) -> int:
        """Of the parts of the first plan, which do not change."""
        made = self.plan or self.loose
        return 0 if made is None else made.weight


_plans = Bounded(MOST, lambda known: known.weight)  # by their keys without numbers


def planned_once(program: Trace) -> tuple[ProgramPlan, Sequence[int | float] | None]:
    """The parts of a program, remembered; and the numbers that they take, if they are for all numbers."""
    key, numbers = loose_key(program)
    with uncollected():
        known = _plans.get(key, lambda: Known(program))
        if known.plan is not None and known.key == program.key:
            return known.plan, None
        return known.loose or known.open(program), numbers


class Part:
    """What computes some values: `planned` makes the steps for those of its `results` that are needed.
    `places` says where its inputs are, and `results` where each result will be."""

    __slots__ = ("places", "planned", "results")

    def __init__(self, planned: Callable[[Values], Plan], places: Sequence[int], results: dict[Value, int]):
        self.planned = planned
        self.places = places
        self.results = results


class ProgramPlan:
    """The parts of a program, in order: of each the plan, the slots of its inputs and of its results, and
    those to be freed. `taken` has the memory that belongs to the plans."""

    __slots__ = ("arity", "flat", "results", "runs", "slots", "steps", "taken", "weight")

    def __init__(
        self, arity: int, slots: list[Array | None], parts: Sequence[Part], results: tuple[int, ...]
    ):
        """No part is taken that nothing needs."""
        self.arity, self.slots, self.results = arity, slots, results
        self.flat: Plan | None = None  # one plan of all parts, for a program that runs again and again
        self.runs = 0
        self.taken = {id(memory_of(slot)) for slot in slots if slot is not None}
        self.steps = []
        used = {place for place, slot in enumerate(slots) if slot is not None}
        used.update(results)
        for part in reversed(parts):
            outs = part.results
            if not used.issuperset(outs.values()):
                outs = {value: place for value, place in outs.items() if place in used}
                if not outs:
                    continue
            steps = part.planned(tuple(outs))
            freed = []
            for place in part.places:
                if place not in used:
                    used.add(place)
                    freed.append(place)
            if steps.taken:
                self.taken |= steps.taken
            self.steps.append((steps, part.places, tuple(outs.values()), freed))
        self.steps.reverse()
        self.weight = len(self.steps)

    def __call__(self, arrays: Sequence[Array]) -> list[Array]:
        if self.flat is None and self.runs == AGAIN:
            self.flat = self._flattened()
        if self.flat is not None:
            return self.flat(arrays)
        self.runs += 1
        slots: list[Any] = self.slots.copy()
        slots[: self.arity] = arrays
        for steps, places, results, freed in self.steps:
            given = [slots[place] for place in places]
            for place in freed:
                slots[place] = None
            run = steps.written_out or steps
            if len(results) == 1:
                (slots[results[0]],) = run(given)
            else:
                for place, result in zip(results, run(given)):
                    slots[place] = result
        return [slots[place] for place in self.results]

    def _flattened(self) -> Plan:
        """The steps of all parts as one plan, which is quicker to run and takes longer to make."""
        slots = self.slots.copy()
        raw: list[Raw] = []
        moved = list(range(len(slots)))  # where a result of a part is that is one of its inputs or constants
        for part, places, results, _ in self.steps:
            own = [moved[place] for place in places]
            first = len(slots) - part.arity
            own += range(len(slots), first + len(part.slots))
            slots += part.slots[part.arity :]
            moved += range(len(moved), len(slots))
            for place, result in zip(results, part.results, strict=True):
                moved[place] = own[result]
            raw += [
                (kernel, tuple([own[each] for each in operands]), tuple([own[each] for each in outs]))
                for kernel, operands, outs in part.raw
            ]
        self.steps = []
        return Plan(self.arity, slots, raw, [moved[place] for place in self.results], True)


def planned(program: Trace, opened: bool = False) -> ProgramPlan:
    """The parts of a program; of an `opened` one, which takes its numbers as inputs after its leaves."""
    builder = _ProgramBuilder(len(program.leaves))
    leaves = {leaf: place for place, leaf in enumerate(program.leaves)}
    callees = [node.callee.loose if opened else (node.callee, ()) for node in program.nodes]
    numbers = [builder.slot() for _, own in callees for _ in own]
    arity, taken = builder.count, iter(numbers)
    computed: dict[Any, Sequence[int]] = {}
    for node, (callee, own) in zip(program.nodes, callees, strict=True):
        given = [
            leaves[operand] if operand in leaves else computed[operand.node][operand.index]
            for operand in node.inputs
        ]
        try:
            if isinstance(node, GradientNode):
                computed[node] = builder.gradient(node, given)
            else:
                given += [next(taken) for _ in own]
                computed[node] = builder.node(node, callee, given)
        except TenfoldError as error:
            raise error.located(node.callee.name, node.source) from None
    results = [
        computed[program.nodes[place]][index] if place >= 0 else leaves[program.leaves[-1 - place]]
        for place, index in program.outputs
    ]
    slots: list[Array | None] = [None] * builder.count
    for place, constant in builder.constants.items():
        slots[place] = constant
    return ProgramPlan(arity, slots, builder.parts, tuple(results))


class _Frame:
    """A node in a program that is being planned: where its inputs are, where values of its fragment are, and
    the part that computes them."""

    __slots__ = ("callee", "inputs", "part", "places")

    def __init__(self, callee: Callee, inputs: Sequence[int], part: Part):
        self.callee = callee
        self.inputs = inputs
        self.part = part
        self.places: Slots = dict(zip(callee.fragment.params, inputs, strict=True))


class _ProgramBuilder:
    """The parts of a program so far, and where values will be."""

    def __init__(self, arity: int):
        self.count = arity
        self.parts: list[Part] = []
        self.constants: dict[int, Array] = {}
        self.frames: dict[Node, _Frame] = {}

    def slot(self) -> int:
        self.count += 1
        return self.count - 1

    def add(self, plan: Callable[[Values], Plan], places: Sequence[int], results: Iterable[Value]) -> Part:
        slots: dict[Value, int] = {}
        for result in results:
            if result not in slots:
                slots[result] = self.count
                self.count += 1
        part = Part(plan, places, slots)
        self.parts.append(part)
        return part

    def node(self, node: Node, callee: Callee, given: Sequence[int]) -> list[int]:
        """Add a node, as a call of this callee; gives where its results will be."""
        results = callee.fragment.results
        part = Part(lambda needed: _forward(callee, node.source, needed), given, {})
        self.parts.append(part)
        self.frames[node] = frame = _Frame(callee, given, part)
        places = frame.places
        for result in results:
            if result not in places:
                places[result] = part.results[result] = self.count
                self.count += 1
        return [places[result] for result in results]

    def sum(self, x: int, y: int, type: TensorType) -> int:
        """Add a part that adds two values of a type; gives where the sum will be."""
        total = Value(type)
        return self.add(lambda _: _sums.get(type, lambda: _sum(type)), (x, y), (total,)).results[total]

    def gradient(self, node: GradientNode, cotangents: list[int]) -> list[int]:
        """Add a gradient: that of each node on its path, from the last to the first. Gives where the
        cotangents are that it computes."""
        wiring = node.callee.wiring
        found: dict[int, int] = {}  # by their numbers in the wiring, where cotangents are

        def add(number: int, place: int, type: TensorType) -> None:
            found[number] = self.sum(found[number], place, type) if number in found else place

        # Where results of nodes on the path are that have their data: among the inputs of later nodes. Their
        # gradients need not compute them again.
        settled: dict[int, int] = {}
        frames = [self.frames[forward] for forward in node.path]
        for forward, frame, numbers in zip(node.path, frames, wiring.inputs, strict=True):
            for operand, place, number in zip(forward.inputs, frame.inputs, numbers):
                if number != NOTHING and operand.buffer is not None and _is_result(operand):
                    settled[number] = place
        types = [operand.type for operand in node.inputs]
        for number, place, type in zip(wiring.starts, cotangents, types, strict=True):
            add(number, place, type)
        for k in range(len(node.path) - 1, -1, -1):
            frame, results, numbers = frames[k], wiring.results[k], wiring.inputs[k]
            given = tuple([number in found for number in results])
            if True not in given:
                continue
            for value, number in zip(frame.callee.fragment.results, results, strict=True):
                if number in settled:
                    frame.places[value] = settled[number]
            try:
                backward = backward_of(frame.callee, given, tuple([number != NOTHING for number in numbers]))
                pulled = self.pulled(
                    frame, backward, [found[number] for number in results if number in found]
                )
            except TenfoldError as error:
                raise error.located(frame.callee.name, node.path[k].source) from None
            for number, pull, result in zip(numbers, pulled, backward.results):
                if result is not None:
                    add(number, pull, result.type)
        return [
            found[number] if number in found else self.constant(np.zeros(type.shape, type.dtype.numpy))
            for number, type in zip(wiring.wants, node.callee.result_types, strict=True)
        ]

    def pulled(self, frame: _Frame, backward: Backward, cotangents: Sequence[int]) -> list[int]:
        """Add the gradient of a node; gives where the cotangents of its inputs will be, -1 for none."""
        if backward.plan is None:
            backward.plan = _Pull(frame.callee.fragment, backward)
        pull: _Pull = backward.plan
        places = []
        for save in pull.saves:
            if save not in frame.places:
                frame.places[save] = frame.part.results[save] = self.slot()
            places.append(frame.places[save])
        places += cotangents
        new = self.add(pull.planned, places, pull.new).results if pull.new else {}
        return [
            -1 if result is None else new[result] if place < 0 else places[place]
            for result, place in pull.results
        ]

    def constant(self, array: Array) -> int:
        place = self.slot()
        self.constants[place] = array
        return place


def _is_result(value: TraceValue) -> bool:
    """Whether a value is the computed result of the node that its gradient flows to."""
    return value.buffer is not None and value.origin is not None and not value.origin.passes_by


def _forward(callee: Callee, source: Any, needed: Values) -> Plan:
    """The plan of a call for some values of its fragment, which the callee keeps. Checks know the line of the
    user's program, so that a call with checks has a plan of its own."""
    known = callee.plans.get(needed)
    if known is None:
        fragment = callee.fragment
        builder = Builder()
        builder.parameters(fragment.params)
        builder.ops(fragment.ops, builder.places, source)
        known = builder.finished(needed)
        if not _checks(fragment.ops):
            callee.plans[needed] = known
    return known


def _checks(ops: Iterable[Op]) -> bool:
    return any(isinstance(op, Check) or (type(op) is Composite and _checks(op.body.ops)) for op in ops)


def _sum(type: TensorType) -> Plan:
    op = Add(Value(type), Value(type))
    return plan(Function(op.operands, op.results))


class _Pull:
    """The gradient of a fragment as a function of its own: from what it saves, and cotangents."""

    def __init__(self, fragment: Function, backward: Backward):
        known = dict.fromkeys([result for op in fragment.ops for result in op.results])
        forward = {**dict.fromkeys(fragment.params), **known}
        results = [result for result in backward.results if result is not None]
        needed = backward.saves.union(results)
        self.saves = [each for each in forward if each in needed]
        self.params = [
            *self.saves,
            *[cotangent for cotangent in backward.cotangents if cotangent is not None],
        ]
        given = {param: place for place, param in enumerate(self.params)}
        self.new = [result for result in dict.fromkeys(results) if result not in given]
        # Each result, and where among the parameters it is, -1 if it is none of them.
        self.results = [
            (result, -1 if result is None else given.get(result, -1)) for result in backward.results
        ]
        used = set(results)
        self.ops: list[Op] = []
        for op in reversed(in_order(results)):
            if any(result in used and result not in given for result in op.results):
                used.update(op.operands)
                self.ops.append(op)
        self.ops.reverse()
        self.plans: dict[Values, Plan] = {}

    def planned(self, needed: Values) -> Plan:
        known = self.plans.get(needed)
        if known is None:
            builder = Builder()
            builder.parameters(self.params)
            builder.ops(self.ops, builder.places)
            known = self.plans[needed] = builder.finished(needed)
        return known
