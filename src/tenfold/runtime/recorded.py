"""A recorded function, ready to run: its program, what it depends on, and where its results belong."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from tenfold.base.devices import Device
from tenfold.base.errors import EngineError, TenfoldError
from tenfold.base.source import capture
from tenfold.engines import xla
from tenfold.ops.table import Row, Signature
from tenfold.runtime import evaluate, executables, tree
from tenfold.runtime.bindings import Place, bind, memory_under
from tenfold.runtime.checks import AHEAD, Loaded, settle
from tenfold.runtime.collected import ANY, Cleared, Gradients, origin_of
from tenfold.runtime.guards import Guard, hold
from tenfold.runtime.packing import Packing, Pending, collect, is_in_front, pack
from tenfold.trace import graph
from tenfold.trace.gradient import Gone
from tenfold.trace.graph import Holder, Node, Origin, Value
from tenfold.trace.lower import lower
from tenfold.trace.program import Program

Target = tuple[str, Any]  # what becomes of a result: "returned", "written" to memory, …, and which
ON_HOST = (np.ndarray, Pending)
NOT_MEMORY = object()


class Again(NamedTuple):
    """A tensor that a function returns once more: which of its results that is."""

    place: int


class Recorded:
    """A function on arguments of given types: its program, and how results become what it returned."""

    def __init__(
        self,
        program: Program,
        inputs: list[int | Holder | Value | Cleared],
        structure: Any,
        returned: list[int | Holder | Again | None],
        writes: list[Holder],
        argument_writes: list[int],
        device: Device,
        gradients: Gradients,
        guards: list[Guard],
        replaced: evaluate.Donations,
        differentiable: bool,
        origins: list[Origin | None],
        places: list[Place],
        bound: list[tuple[Any, Any]],
    ):
        self.program = program
        # Where it looks up tensors that are further arguments; and the names that it binds to tensors, which
        # it returns in a list, beside its result.
        self.places = places
        self.bound = bound
        # Memory that is read is asked itself for its value, not the tensor in front of it; which must still
        # be in front of it when the program runs again.
        self.inputs = [memory_of(each) for each in inputs]
        self.fronts: dict[int, Any] = {
            i: each
            for i, (each, root) in enumerate(zip(inputs, self.inputs, strict=True))
            if each is not root
        }
        self.structure = structure
        # For each tensor: an argument, one from outside, one that was returned before, or None for a new one.
        self.returned = returned
        self.count = len(returned)
        self.writes = writes
        self.written = frozenset(writes)
        self.argument_writes = argument_writes
        self.device = device
        self.gradients = gradients
        self.guards = guards
        self.types = [leaf.type for leaf in program.leaves]
        self.result_types = [program.type_of(*each) for each in program.outputs]
        self.donated = tuple(
            [
                (place, result)
                for place, result in replaced
                if evaluate.donatable(self.types[place], self.result_types[result])
            ]
        )
        self.differentiable = differentiable
        self.follows = [each is not None for each in origins]  # of each result, whether gradients flow to it
        # Which of what is returned they flowed through, inside.
        self.spent = [
            (i, Gone(each.node), each.index)
            for i, each in enumerate(origins[: self.count])
            if each is not None and is_spent(each)
        ]
        self.signature: Signature | None = None
        self.loaded: Loaded | None = None
        # Whether it was recorded for numbers among the arguments. Then others like it may share an executable
        # that takes such numbers, and has in `order` where it takes what from.
        self.for_numbers = False
        self.numbers: list[Any] = []
        self.order: tuple[int, ...] | None = None
        # Whether a call is no more than its arguments in, one tensor out.
        in_order = not places and all(type(each) is int and each == i for i, each in enumerate(inputs))
        new = structure is tree.LEAF and returned == [None]
        self.stateless = not (writes or argument_writes or gradients.made or gradients.cleared or bound)
        depends = bool(guards or gradients.expected or self.spent)
        self.plain = in_order and new and self.stateless and not depends
        self.packing = None if differentiable else self._packing(replaced)
        self._plan(replaced)

    def _packing(self, replaced: evaluate.Donations) -> Packing | None:
        """How small state travels, if it does: what the function writes, and the gradients that it makes."""
        first, ends = self.count, self.count + len(self.writes)
        own = [
            (place, i) for place, i in replaced if i < ends and self.inputs[place] is self.writes[i - first]
        ]
        count = ends + len(self.argument_writes)
        gradient_results = range(count, count + len(self.gradients.made))
        return pack(own, gradient_results, self.types, self.result_types)

    def _plan(self, replaced: evaluate.Donations) -> None:
        """Where what goes in comes from, and where what comes out belongs, but for what travels packed."""
        taken, packed = (self.packing.taken, self.packing.results) if self.packing else (set(), set())
        places = [i for i in range(len(self.inputs)) if i not in taken]
        # Each with its type; of memory also the leaf that it is, and the tensor in front of it; of a tensor
        # without memory of its own the leaf in the latter's place.
        self.alone = [
            (
                each,
                self.types[i],
                getattr(each, "leaf", NOT_MEMORY),
                self.fronts.get(i, getattr(each, "_leaf", None)),
            )
            for i, each in [(i, self.inputs[i]) for i in places]
        ]
        targets = [
            *[("returned", i) for i in range(self.count)],
            *[("written", root) for root in self.writes],
            *[("argument", i) for i in self.argument_writes],
            *[("gradient", owner) for owner in self.gradients.made],
        ]
        results = [i for i in range(len(targets)) if i not in packed]
        self.targets = [targets[i] for i in results]
        self.alone_types = [self.result_types[i] for i in results]
        # What lends its memory, the tensor in front of it, to which result.
        self.lent = [
            (places.index(place), self.fronts.get(place), results.index(result))
            for place, result in self.donated
        ]
        # Memory that is read and written: the tensor in front of it, its result, and whether that is computed
        # in place.
        self.kept = [
            (
                places.index(place),
                self.fronts.get(place),
                results.index(result),
                self.inputs[place],
                (place, result) in self.donated,
            )
            for place, result in replaced
            if result not in packed
            and targets[result] == ("written", self.inputs[place])
            and self.types[place] is self.result_types[result]
        ]
        kept = {result for _, _, result, _, _ in self.kept}
        moved = [(i, self.alone_types[i], target) for i, target in enumerate(self.targets) if i not in kept]
        self.moved = [each for each in moved if each[2][0] != "gradient"]
        self.collected = [(i, type, target[1]) for i, type, target in moved if target[0] == "gradient"]
        for state in self.packing.states if self.packing else ():
            roots = [(self.inputs[place], self.fronts.get(place)) for place in state.places]
            state.roots = [(root, front, root.leaf) for root, front in roots]
        for outcome in self.packing.outcomes if self.packing else ():
            outcome.owners = [targets[i][1] for i in outcome.results]

    def run(self, arguments: Sequence[Any], wrap: Callable[[Value], Any]) -> Any:
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

    def _run(self, arguments: Sequence[Any], wrap: Callable[[Value], Any]) -> Any:
        settle(AHEAD)
        if self.places and (arguments := self._with_found(arguments)) is OTHER:
            return OTHER
        values = self.fits(arguments)
        if values is None:
            return OTHER
        if self.differentiable and graph.mode.enabled:
            results = list(zip(self.targets, self._call_node(values), strict=True))
            return self._finish(arguments, results, wrap)
        return self._execute(values, arguments, wrap)

    def _with_found(self, arguments: Sequence[Any]) -> Any:
        """The arguments and the tensors that are looked up; OTHER if those need another program."""
        written = self.written.union([memory_under(arguments[i]) for i in self.argument_writes])
        found = list(arguments)
        for place in self.places:
            tensors = place.find(written)
            if tensors is None:
                return OTHER
            found += tensors
        return found

    def _inputs(self, arguments: Sequence[Any]) -> list[Value] | None:
        """The values of what goes in by itself; None if one is of another type than it was, or of other
        memory, or requires gradients and did not."""
        values = []
        for each, expected, leaf, front in self.alone:
            if leaf is not NOT_MEMORY:
                value = each.value
                if each.leaf is not leaf or (front is not None and not is_in_front(front, each)):
                    return None
            elif type(each) is int:
                value = arguments[each].current()
            else:
                value = each if type(each) is Value else each.current()
                if front is not getattr(each, "_leaf", None):
                    return None
            if value.type is not expected:
                return None
            values.append(value)
        return values

    def _execute(self, values: list[Value], arguments: Sequence[Any], wrap: Callable[[Value], Any]) -> Any:
        """What the function returns, computed now: the memory of what is written goes to what replaces it.
        OTHER if a tensor is of other memory than it was."""
        if self.loaded is None:
            self.loaded = self._load()
        device, packing = self.device, self.packing
        buffers = []
        value: Any = None
        buffer: Any = None
        for value in values:
            buffer = value.buffer
            if buffer is None:
                evaluate.evaluate([value])
                buffer = value.buffer
            if type(buffer) in ON_HOST or value.device is not device:
                buffer = evaluate.buffer_of(value, device)
            buffers.append(buffer)
        value = buffer = None
        copied = []
        for i, front, _ in self.lent:
            # Known are the references of the memory, the list, and the tensor in front if it has looked.
            known = 2 + (front is not None and front._value is values[i])
            buffer = evaluate.lent(values[i], buffers[i], known)
            if buffer is not buffers[i]:
                buffers[i] = buffer
                copied.append(i)
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
            computed, failure = self.loaded(buffers, held)
            if failure is None:
                return self._finish(arguments, self._place(computed, values, copied, arguments, wrap), wrap)
            self._give_back(values, computed)
        except BaseException as error:
            # If it has run, the memory that it was given is gone: so that an interrupt loses nothing, what
            # replaces it is put in its place, once more where that was done.
            if held and self.loaded.failure(held[0]) is None:
                self._finish(arguments, self._place(held[0], values, copied, arguments, wrap), wrap)
            elif held:
                self._give_back(values, held[0])
            if isinstance(error, TenfoldError):
                raise evaluate.placed(error, self.program) from None
            raise
        raise failure

    def _place(
        self,
        computed: list[Any],
        values: list[Value],
        copied: list[int],
        arguments: Sequence[Any],
        wrap: Callable[[Value], Any],
    ) -> list[tuple[Target, Value]]:
        """Put results where they belong that replace what was there, and give the others. Of `values` nothing
        is left."""
        device, packing = self.device, self.packing
        value: Any
        references = sys.getrefcount
        for i, front, result, root, in_place in self.kept if values else ():
            value = values[i]
            if root.value is not value:
                continue  # it is done, before an interrupt
            # A value that nobody else holds is used again. Known are the references of the memory, the list,
            # the name here, the call, and the tensor in front if it has looked.
            if (in_place and i not in copied) or references(value) <= 4 + (
                front is not None and front._value is value
            ):
                value.buffer = computed[result]
                root.version += 1
            else:
                root.replace(Value(self.alone_types[result], device, None, 0, computed[result]))
        value = None
        values.clear()  # a gradient whose value nobody else holds is used again
        for result, type_, owner in self.collected:
            collect(origin_of(owner, arguments), type_, device, computed[result], wrap)
        if packing is not None:
            place = len(self.alone_types)
            for state in packing.states:
                state.advance(computed[place], device)
                place += 1
            for outcome in packing.outcomes:
                leaves = [origin_of(owner, arguments) for owner in outcome.owners]
                outcome.advance(computed[place], device, leaves, wrap)
                place += 1
        return [(target, Value(type, device, None, 0, computed[i])) for i, type, target in self.moved]

    def _load(self) -> Loaded:
        if not self.for_numbers or self.donated or self.packing is not None:
            return executables.build(self.program, self.device, self.donated, self.packing)
        loaded, numbers, self.order = executables.found(self.program, self.device)
        self.numbers = [xla.put(np.asarray(each), self.device) for each in numbers]
        return loaded

    def _give_back(self, values: list[Value], computed: list[Any]) -> None:
        """After a run that failed a check: its results are what it was lent, unchanged."""
        for i, _, result in self.lent:
            values[i].buffer = computed[result]
        for i, state in enumerate(self.packing.states if self.packing else ()):
            state.give_back(computed[len(self.alone_types) + i])

    def _call_node(self, values: list[Value]) -> tuple[Value, ...]:
        """The results as those of one node, so that gradients flow through it."""
        if self.signature is None:
            fragment = lower(self.program, whole=True)
            self.signature = Signature(CALL, tuple(self.types), (), fragment)
        results = graph.enter(Node(self.signature, tuple(values), capture()), self.device)
        for result, follows in zip(results, self.follows, strict=True):
            if not follows:
                result.origin = None
        for root in self.writes:
            evaluate.written(root, root.current())
        return results

    def _finish(
        self, arguments: Sequence[Any], results: list[tuple[Target, Value]], wrap: Callable[[Value], Any]
    ) -> Any:
        """Put results where they belong: into tensors that are written, into gradients, into what is
        returned."""
        returned: list[Any] = []
        for (kind, target), value in results:
            if kind == "returned":
                returned.append(value)
            elif kind == "written":
                target.replace(value)
            elif kind == "argument":
                arguments[target].assign(value)
            else:
                origin_of(target, arguments).collected = wrap(value)
        for owner in self.gradients.cleared:
            origin_of(owner, arguments).collected = None
        for place, node, index in self.spent:
            returned[place].origin = Origin(node, index)
        tensors: list[Any] = []
        for each, value in zip(self.returned, returned, strict=True):
            if each is None:
                tensors.append(wrap(value))
            elif type(each) is Again:
                tensors.append(tensors[each.place])
            else:
                tensors.append(arguments[each] if type(each) is int else each)
        if self.structure is tree.LEAF:
            return tensors[0]
        result = tree.unflatten(self.structure, iter(tensors))
        if self.bound:
            result, values = result
            bind(self.bound, values)
        return result

    def fits(self, arguments: Sequence[Any]) -> list[Value] | None:
        """The values that go in, if what it depends on from outside is as it was: types of tensors, Python
        attributes, whether there are gradients, and which, where they are read."""
        if not hold(self.guards):
            return None
        for owner, gradient in self.gradients.expected:
            found = origin_of(owner, arguments).collected
            if (found is None) != (gradient is None) or (gradient is not ANY and found is not gradient):
                return None
        found = None  # a gradient that only its leaf refers to lends its memory
        return self._inputs(arguments)


def memory_of(holder: Any) -> Any:
    """The memory that a tensor is all of; other inputs as they are."""
    alias = getattr(holder, "_alias", None)
    return holder if alias is None or alias.steps else alias.storage


def is_spent(origin: Origin) -> bool:
    """Whether gradients flowed through it and may not again."""
    return origin.node is not None and bool(origin.node.spent)


OTHER = object()


CALL = Row("compiled(Tensor[] arguments) -> Tensor[]", lambda *arguments: arguments, {})
