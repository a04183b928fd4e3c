"""A compiled function on arguments of given types, ready to run: its plan, its executable, and what a call
does to tensors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tenfold.base.errors import EngineError, TenfoldError
from tenfold.base.owners import NAMED, count
from tenfold.base.source import capture
from tenfold.engines import sharded, xla
from tenfold.ops.callee import Program
from tenfold.runtime import evaluate, executables
from tenfold.runtime.bindings import bind
from tenfold.runtime.checks import AHEAD, Loaded, settle
from tenfold.runtime.guards import Owners, broken, change, described, hold, label
from tenfold.runtime.packing import Pending, collect, is_in_front
from tenfold.runtime.plan import NOT_MEMORY, Again, Plan, Target
from tenfold.trace import graph, tree
from tenfold.trace.context import context
from tenfold.trace.graph import Origin, Value
from tenfold.trace.lower import lower
from tenfold.trace.record import ANY

OTHER = object()  # what a call gives if the function must be recorded anew for it
ON_HOST = (np.ndarray, Pending)
Wrap = Callable[[Value], Any]


class Specialization:
    """A function on arguments of given types."""

    tells_elsewhere = False  # whether a run may tell that the call needs another program
    of_open_arguments = False  # whether it serves many sizes of its arguments

    def __init__(self, plan: Plan):
        self.plan = plan
        self.stateless = plan.stateless
        self.plain = plan.plain
        self.written = frozenset(plan.writes)
        self.program: Program | None = None
        self.loaded: Loaded | None = None
        self.shardings: list[Any] = []  # over a mesh: those of its arguments
        # Whether it was recorded for numbers among the arguments. Then others like it may share an executable
        # that takes such numbers, and has in `order` where it takes what from.
        self.for_numbers = False
        self.numbers: list[Any] = []
        self.order: tuple[int, ...] | None = None
        self.steady = False  # whether small inputs and results keep their places on a GPU

    def run(self, arguments: Sequence[Any], wrap: Wrap) -> Any:
        """What the function returns for these arguments; OTHER if it must be recorded anew for them."""
        if self.stateless:
            try:
                return self._run(arguments, wrap)
            except EngineError as error:
                # Another thread's function may have taken the memory of what was just about to be read.
                if "deleted or donated" not in error.message:
                    raise
        with executables.lock:  # between reading what it writes and writing it, no other thread may write
            return self._run(arguments, wrap)

    def _run(self, arguments: Sequence[Any], wrap: Wrap) -> Any:
        settle(AHEAD)
        plan = self.plan
        if plan.found.places and (arguments := self._with_found(arguments)) is OTHER:
            return OTHER
        values = self.fits(arguments)
        if values is None:
            return OTHER
        if plan.differentiable and context.grad_enabled:
            results = list(zip(plan.alone_targets, self._call_node(values), strict=True))
            return self._finish(arguments, results, wrap)
        return self._execute(values, arguments, wrap)

    # What a call depends on

    def containers(self) -> list[Any]:
        """What it looks into at each call, besides its arguments."""
        dependencies = self.plan.found
        return [
            *[guard[0] for guard in dependencies.guards],
            *[place.container for place in dependencies.places],
        ]

    def described(self, owners: Owners) -> list[str]:
        """What it depends on besides its arguments, in the user's words."""
        dependencies = self.plan.found
        looked_up = [
            f"{label(place.container, place.name, owners)}, looked up at each call"
            for place in dependencies.places
        ]
        return [*[described(guard, owners) for guard in dependencies.guards], *looked_up]

    def broken(self, arguments: Sequence[Any]) -> str:
        """Why it does not fit these arguments."""
        guard = broken(self.plan.found.guards)
        if guard is not None:
            return change(guard)
        for place in self.plan.found.places:
            if place.find(self.written) is None:
                name = label(place.container, place.name, Owners([place.container]))
                return f"{name} is bound to other tensors than it was"
        for owner, gradient in self.plan.gradients.expected:
            if (origin_of(owner, arguments).collected is None) != (gradient is None):
                return "a tensor got a gradient that it did not have, or lost the one it had"
        return "a tensor that it reads from outside has another type or other memory"

    def fits(self, arguments: Sequence[Any]) -> list[Value] | None:
        """The values that go in, if what it depends on from outside is as it was: types of tensors, Python
        attributes, whether there are gradients, and which, where they are read."""
        plan = self.plan
        if not hold(plan.found.guards):
            return None
        for owner, gradient in plan.gradients.expected:
            collected = origin_of(owner, arguments).collected
            if (collected is None) != (gradient is None) or (
                gradient is not ANY and collected is not gradient
            ):
                return None
        collected = None  # a gradient that only its leaf refers to lends its memory
        return self._inputs(arguments)

    def _with_found(self, arguments: Sequence[Any]) -> Any:
        """The arguments and the tensors that are looked up; OTHER if those need another program."""
        written = self.written.union([arguments[i].memory for i in self.plan.argument_writes])
        current = list(arguments)
        for place in self.plan.found.places:
            tensors = place.find(written)
            if tensors is None:
                return OTHER
            current += tensors
        return current

    def _inputs(self, arguments: Sequence[Any]) -> list[Value] | None:
        """The values of what goes in by itself; None if one is of another type than it was, or of other
        memory, or requires gradients and did not."""
        values: list[Value] = []
        for tensor, expected, leaf, front, is_tensor in self.plan.alone:
            if is_tensor:  # as most are, the parameters of a module: nothing is called for them
                if tensor._leaf is not front:
                    return None
                value = tensor._value if tensor._alias is None else tensor.current()
            elif leaf is not NOT_MEMORY:
                value = tensor.value
                if tensor.leaf is not leaf or (front is not None and not is_in_front(front, tensor)):
                    return None
            elif type(tensor) is int:
                value = arguments[tensor].current()
            else:
                value = tensor if type(tensor) is Value else tensor.current()
            if value.type is not expected and not self._is_expected(tensor, value):
                return None
            values.append(value)
        return values

    # Running

    def _execute(self, values: list[Value], arguments: Sequence[Any], wrap: Wrap) -> Any:
        """What the function returns, computed now: the memory of what is written goes to what replaces it.
        OTHER if a tensor is of other memory than it was."""
        device, packing = self.plan.device, self.plan.packing
        buffers = self._buffers(values, arguments)
        if device.mesh is not None:
            self.loaded = self._load_partitioned(buffers)
        elif self.loaded is None:
            self.loaded = self._load()
        copied = self._lend(values, buffers, arguments)
        if packing is not None:
            for state in packing.states:
                buffer = state.take(device, evaluate.computed_array)
                if buffer is None:
                    return OTHER
                buffers.append(buffer)
        if self.order is not None:
            buffers += self.numbers
            buffers = [buffers[place] for place in self.order]
        held: list[Any] = []
        try:
            # What changes nothing leaves nothing to be put back when a check fails that is heard of later.
            computed, failure = self.loaded(buffers, held, self.steady and self.stateless)
            if self.tells_elsewhere:
                elsewhere = self._elsewhere(computed, arguments)
                if elsewhere is not None:
                    return elsewhere
            if failure is None:
                return self._finish(arguments, self._place(computed, values, copied, arguments, wrap), wrap)
            self._give_back(values, computed)
        except BaseException as error:
            # If it has run, the memory that it was given is gone: so that an interrupt loses nothing, what
            # replaces it is put in its place, once more where that was done.
            if held and self._elsewhere(held[0], arguments) is not None:
                pass  # nothing of it is used, and it was lent nothing
            elif held and self.loaded.failure(held[0]) is None:
                self._finish(arguments, self._place(held[0], values, copied, arguments, wrap), wrap)
            elif held:
                self._give_back(values, held[0])
            if isinstance(error, TenfoldError):
                raise evaluate.placed(error, self.plan.trace) from None
            raise
        raise self._explained(failure, computed, arguments)

    def _elsewhere(self, computed: Sequence[Any], arguments: Sequence[Any]) -> Any:
        """What a run gives whose results tell that this is not the program for the call; None if it is."""
        return None

    def _explained(self, failure: Any, computed: Sequence[Any], arguments: Sequence[Any]) -> Any:
        """The error of a check that failed, for these arguments."""
        return failure

    def _is_expected(self, source: Any, value: Value) -> bool:
        """Whether a value of another type will do."""
        return False

    def _buffers(self, values: list[Value], arguments: Sequence[Any]) -> list[Any]:
        """The data of the values, on the device."""
        device, array, buffers = self.plan.device, xla.array_type(), []
        for value in values:
            buffer = value.buffer
            if buffer.__class__ is not array or value.device is not device:
                if buffer is None:
                    evaluate.evaluate([value])
                    buffer = value.buffer
                if type(buffer) in ON_HOST or value.device is not device:
                    buffer = evaluate.buffer_of(value, device)
            buffers.append(buffer)
        return buffers

    def _lend(self, values: list[Value], buffers: list[Any], arguments: Sequence[Any]) -> list[int]:
        """Put copies in the places of donated buffers that somebody else may still read; which those are."""
        copied = []
        for i, front, _ in self.plan.lent:
            value, buffer = values[i], buffers[i]
            if type(front) is int:
                memory = arguments[front].memory
                looked = memory is not arguments[front] and memory.value is value
            else:
                looked = front is not None and front._value is value
            # Its owners are the memory, the list, and the tensor in front if it has looked.
            if not evaluate.unshared(value, buffer, 2 + looked):
                buffers[i] = xla.copy(buffer, value.device)
                copied.append(i)
        return copied

    def _load(self) -> Loaded:
        trace, device, packing = self.plan.trace, self.plan.device, self.plan.packing
        if not self.for_numbers or self.plan.donated or packing is not None:
            lasting = self.plan.lasting if self.steady else None
            return executables.build(trace, device, self.plan.donated, packing, lasting)
        loaded, numbers, self.order = executables.found(trace, device)
        self.numbers = [xla.put(np.asarray(number), device) for number in numbers]
        return loaded

    def _load_partitioned(self, buffers: list[Any]) -> Loaded:
        """The executable for arguments that are sharded as these are. What is written keeps its sharding."""
        plan, shardings = self.plan, sharded.shardings_of(buffers)
        if self.loaded is None or shardings != self.shardings:
            kept = {
                result: shardings[place]
                for place, result in plan.replaced
                if plan.types[place] is plan.result_types[result]
            }
            place = sharded.place_of(plan.device, plan.trace, shardings, kept)
            self.loaded, self.shardings = executables.build(plan.trace, place, plan.donated), shardings
        return self.loaded

    def _call_node(self, values: list[Value]) -> tuple[Value, ...]:
        """The results as those of one node, so that gradients flow through it."""
        if self.program is None:
            function = lower(self.plan.trace, whole=True, detours=self.plan.detours)
            function.name = "compiled"
            self.program = Program(function)
        results = graph.call_program(self.program, values, capture(), self.plan.device)
        for result, follows in zip(results, self.plan.follows, strict=True):
            if not follows:
                result.origin = None
        for root in self.plan.writes:
            evaluate.written(root, root.current())
        return results

    # Putting results where they belong

    def _place(
        self,
        computed: list[Any],
        values: list[Value],
        copied: list[int],
        arguments: Sequence[Any],
        wrap: Wrap,
    ) -> list[tuple[Target, Value]]:
        """Put results where they belong that replace what was there, and give the others. Of `values` nothing
        is left."""
        plan, device = self.plan, self.plan.device
        value: Any
        for i, front, result, root, in_place in plan.kept if values else ():
            value = values[i]
            if root.value is not value:
                continue  # it is done, before an interrupt
            # A value that nobody else holds is used again. Its owners are the memory, the list, and the
            # tensor in front if it has looked.
            own = NAMED + 2 + (front is not None and front._value is value)
            if (in_place and i not in copied) or count(value) <= own:
                value.buffer = computed[result]
                root.version += 1
            else:
                root.replace(Value(plan.alone_types[result], device, None, 0, computed[result]))
        value = None
        values.clear()  # a gradient whose value nobody else holds is used again
        for result, type_, owner in plan.collected:
            collect(origin_of(owner, arguments), type_, device, computed[result], wrap)
        if plan.packing is not None:
            self._advance(computed[len(plan.alone_types) :], arguments, wrap)
        return self._outcomes(computed, arguments)

    def _outcomes(self, computed: Sequence[Any], arguments: Sequence[Any]) -> list[tuple[Target, Value]]:
        """The results that travel alone, as values, and where they belong."""
        device = self.plan.device
        return [(target, Value(type, device, None, 0, computed[i])) for i, type, target in self.plan.moved]

    def _advance(self, vectors: Sequence[Any], arguments: Sequence[Any], wrap: Wrap) -> None:
        """Let state and gradients that travel packed be what is in the new vectors."""
        packing, device = self.plan.packing, self.plan.device
        assert packing is not None
        for state, vector in zip(packing.states, vectors, strict=False):
            state.advance(vector, device)
        for outcome, vector in zip(packing.outcomes, vectors[len(packing.states) :], strict=False):
            leaves = [origin_of(owner, arguments) for owner in outcome.owners]
            outcome.advance(vector, device, leaves, wrap)

    def _give_back(self, values: list[Value], computed: list[Any]) -> None:
        """After a run that failed a check: its results are what it was lent, unchanged."""
        for i, _, result in self.plan.lent:
            values[i].buffer = computed[result]
        for i, state in enumerate(self.plan.packing.states if self.plan.packing else ()):
            state.give_back(computed[len(self.plan.alone_types) + i])

    def _finish(self, arguments: Sequence[Any], results: list[tuple[Target, Value]], wrap: Wrap) -> Any:
        """Put results where they belong: into tensors that are written, into gradients, into what is
        returned."""
        plan = self.plan
        returned: list[Any] = []
        for (kind, target), value in results:
            if kind == "returned":
                returned.append(value)
            elif kind == "written":
                target.replace(value)
            elif kind == "argument":
                _assign(arguments[target], value)
            elif kind == "gradient":
                origin_of(target, arguments).collected = wrap(value)
        for owner in plan.gradients.cleared:
            origin_of(owner, arguments).collected = None
        for place, node, index in plan.spent:
            returned[place].origin = Origin(node, index)
        tensors: list[Any] = []
        for returned_as, value in zip(plan.returned, returned, strict=True):
            if returned_as is None:
                tensors.append(wrap(value))
            elif type(returned_as) is Again:
                tensors.append(tensors[returned_as.place])
            else:
                tensors.append(arguments[returned_as] if type(returned_as) is int else returned_as)
        if plan.structure is tree.LEAF:
            return tensors[0]
        result = tree.unflatten(plan.structure, iter(tensors))
        if plan.found.bound:
            result, values = result
            bind(plan.found.bound, values)
        return result


def origin_of(owner: Any, arguments: Sequence[Any]) -> Origin:
    """Where the gradients of a leaf are collected: itself, or that of an argument by its place."""
    return arguments[owner]._leaf or arguments[owner].keeper if type(owner) is int else owner


def _assign(tensor: Any, value: Value) -> None:
    """Write to an argument. A leaf that requires gradients was written where autograd does not look, or the
    recording would have been refused."""
    followed = context.grad_enabled
    context.grad_enabled = followed and tensor.collector is None
    if tensor.collector is not None:
        value.origin = None  # gradients go to the leaf itself
    try:
        tensor.assign(value)
    finally:
        context.grad_enabled = followed
