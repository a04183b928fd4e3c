"""The plan of a compiled function on arguments of given types: where each input of its program comes from,
and where each result belongs. It is made once, after recording; `specialization.py` follows it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from tenfold.base.devices import Device
from tenfold.base.errors import TraceError
from tenfold.base.meshes import Sharding
from tenfold.base.owners import NAMED, count
from tenfold.base.source import capture
from tenfold.engines import sharded, xla
from tenfold.flat.ir import TensorType
from tenfold.runtime import evaluate
from tenfold.runtime.dependencies import Found
from tenfold.runtime.packing import Packing, Pending, pack
from tenfold.trace import tree
from tenfold.trace.detours import NONE, detours
from tenfold.trace.gradient import Before, Gone
from tenfold.trace.graph import Holder, Node, Origin, Value
from tenfold.trace.record import Recording

Target = tuple[str, Any]  # what becomes of a result: "returned", "written" to memory, …, and which
NOT_MEMORY = object()


class Again(NamedTuple):
    """A tensor that a function returns a second time, by its place among the results."""

    place: int


class Cleared:
    """A gradient that a function discards and makes anew: its memory is donated to the new one. If somebody
    may still read it, or if there is none, other memory takes its place. On a mesh it has the sharding of its
    leaf."""

    __slots__ = ("_device", "_sharding", "_type", "origin")

    def __init__(self, origin: Origin, type: TensorType, device: Device, sharding: Sharding | None):
        self.origin = origin
        self._type = type
        self._device = device
        self._sharding = sharding

    def current(self) -> Value:
        """The gradient's own value where its memory may be donated, or zeros."""
        gradient = self.origin.collected
        if gradient is not None and gradient._alias is None and count(gradient) <= NAMED + 1:
            value = gradient._value
            known = value.type is self._type and value.device is self._device and value.origin is None
            fits = known and value.buffer is not None and type(value.buffer) not in (np.ndarray, Pending)
            if fits and (self._sharding is None or sharded.sharding_of(value.buffer) is self._sharding):
                return value
        zeros = np.zeros(self._type.shape, self._type.dtype.numpy)
        sharding = self._sharding
        buffer = xla.put(zeros, self._device) if sharding is None else sharded.put(zeros, sharding)
        return Value(self._type, self._device, None, 0, buffer)


# What a call goes through are plain tuples, which Python takes apart several times as fast as named ones.
# An input that does not travel packed: its holder, or the place of an argument; its type; of memory also the
# leaf that it is, and the tensor in front of it; of other tensors the leaf in the latter's place; and whether
# it is such a tensor.
Input = tuple[Any, TensorType, Any, Any, bool]
# An input whose memory goes to a result: the input, the tensor in front of it (the place of one among the
# arguments), the result.
Lent = tuple[int, Any, int]
# Memory that is read and written: its input, the tensor in front of it, its result, the memory, and whether
# the result is computed in place.
Kept = tuple[int, Any, int, Any, bool]


class Plan:
    """Where inputs come from and results belong. It is made of a recording on the tensors `given`, and of
    what was `found` out about its dependencies."""

    def __init__(self, arguments: Sequence[Any], recording: Recording, dependencies: Found):
        self.found = dependencies
        self.trace = recording.trace
        self.device = recording.trace.device
        self.structure = recording.structure
        self.writes = recording.outside_writes
        self.argument_writes = recording.argument_writes
        self.gradients = recording.gradients
        self.counts = recording.counts
        self._connect(arguments, recording)
        # State would be held as it was when it was recorded, beside what it has become.
        self.trace.release([place for place, _ in self.replaced])
        self.types = [leaf.type for leaf in self.trace.leaves]
        self.result_types = [self.trace.type_of(*output) for output in self.trace.outputs]
        self.targets = self._targets()
        self.donated: evaluate.Donations = tuple(
            [
                (place, result)
                for place, result in self.replaced
                if self.lends
                and evaluate.donatable(self.types[place], self.result_types[result], self.device)
            ]
        )
        apart = self.differentiable or self.device.mesh or not self.lends
        self.packing = None if apart else self._packing()
        self._part_packed()

    def _connect(self, tensors: Sequence[Any], recording: Recording) -> None:
        """Where each input comes from, what replaces it, and what gradients do."""
        arguments: dict[int, int] = {}  # of tensors that are looked up, their places as arguments
        for i, tensor in enumerate(self.found.tensors, len(tensors)):
            arguments.setdefault(id(tensor), i)
            arguments.setdefault(id(memory_of(tensor)), i)
        inputs = [
            source if type(source) is int else arguments.get(id(source), source)
            for source in recording.inputs
        ]
        origins, count = recording.origins, len(recording.returned)
        followed = [origin for origin in origins[:count] if origin is not None and not is_spent(origin)]
        first = count + len(self.writes)
        before = recording.recorder.before
        followed += [
            origin
            for origin in origins[count : first + len(self.argument_writes)]
            if origin is not None and origin.node in recording.recorder.nodes and _leads_out(origin)
        ]
        _refuse_python(followed)
        self.detours = NONE
        if followed:
            written = {value.origin.of for value in before.values() if value.origin is not None}
            self.detours = detours(self.trace, origins, written, "compile")
        self.differentiable = bool(followed)  # gradients may flow through a call
        self.follows = [origin is not None for origin in origins]  # for each result, whether they flow to it
        # Returned tensors whose gradients flowed inside.
        self.spent = [
            (i, Gone(origin.node), origin.index)
            for i, origin in enumerate(origins[:count])
            if origin is not None and is_spent(origin)
        ]
        leaves = {leaf: i for i, leaf in enumerate(self.trace.leaves)}
        # Inputs, and the results that replace them.
        self.replaced = [
            (leaves[before[root]], count + i) for i, root in enumerate(self.writes) if before[root] in leaves
        ]
        taken = {source: i for i, source in enumerate(inputs) if type(source) is int}
        self.replaced += [
            (taken[argument], first + i)
            for i, argument in enumerate(self.argument_writes)
            if argument in taken
        ]
        if not followed:
            self.replaced += _cleared_gradients(recording, inputs)
        # Places of arguments, memory, tensors without memory of their own, values.
        self.inputs = [memory_of(source) for source in inputs]
        # Of inputs that are memory, the tensor in front.
        self.fronts = {i: source for i, source in enumerate(inputs) if source is not self.inputs[i]}
        # For each returned tensor: an argument, one from outside, one returned before, or None for a new one.
        self.returned = _returned(recording, arguments)

    @property
    def lends(self) -> bool:
        """Whether memory may be lent: where sizes depend on data, another program may have to run after this
        one, so this one must not write over what it reads."""
        return not self.counts

    def _part_packed(self) -> None:
        """Tell inputs and results that travel packed from the others, which are `alone`."""
        taken, packed = (self.packing.taken, self.packing.results) if self.packing else (set(), set())
        places = [i for i in range(len(self.inputs)) if i not in taken]
        results = [i for i in range(len(self.targets)) if i not in packed]
        self.places, self.results = places, results
        self.alone = [self._input(i) for i in places]
        self.alone_types = [self.result_types[i] for i in results]
        self.alone_targets = [self.targets[i] for i in results]
        self.lent: list[Lent] = [
            (places.index(place), self._front(place), results.index(result)) for place, result in self.donated
        ]
        self.kept = self._kept(places, results)
        moved = {result for _, _, result, _, _ in self.kept}
        rest = [
            (i, self.alone_types[i], target) for i, target in enumerate(self.alone_targets) if i not in moved
        ]
        self.moved = [target for target in rest if target[2][0] != "gradient"]
        self.collected = [(i, type, target[1]) for i, type, target in rest if target[0] == "gradient"]
        for state in self.packing.states if self.packing else ():
            roots = [(self.inputs[place], self.fronts.get(place)) for place in state.places]
            state.roots = [(root, front, root.leaf) for root, front in roots]
        for outcome in self.packing.outcomes if self.packing else ():
            outcome.owners = [self.targets[i][1] for i in outcome.results]

    @property
    def lasting(self) -> tuple[int, ...]:
        """The places of inputs that no call passes and that the program does not replace, such as weights."""
        replaced = {place for place, _ in self.replaced}
        return tuple(
            [i for i, source in enumerate(self.inputs) if type(source) is not int and i not in replaced]
        )

    @property
    def stateless(self) -> bool:
        """Whether a call changes nothing but what it returns."""
        gradients = self.gradients
        return not (
            self.writes or self.argument_writes or gradients.made or gradients.cleared or self.found.bound
        )

    @property
    def plain(self) -> bool:
        """Whether a call is no more than its arguments in, one tensor out."""
        in_order = all(type(source) is int and source == i for i, source in enumerate(self.inputs))
        new = self.structure is tree.LEAF and self.returned == [None]
        depends = self.found.guards or self.found.places or self.gradients.expected or self.spent
        return in_order and new and self.stateless and not depends

    def _targets(self) -> list[Target]:
        return [
            *[("returned", i) for i in range(len(self.returned))],
            *[("written", root) for root in self.writes],
            *[("argument", i) for i in self.argument_writes],
            *[("gradient", owner) for owner in self.gradients.made],
            *[("count", i) for i in range(len(self.counts))],
        ]

    def _packing(self) -> Packing | None:
        """How small state travels: what the function writes, and the gradients that it makes."""
        first = len(self.returned)
        ends = first + len(self.writes)
        own = [
            (place, i)
            for place, i in self.replaced
            if i < ends and self.inputs[place] is self.writes[i - first]
        ]
        count = ends + len(self.argument_writes)
        gradients = range(count, count + len(self.gradients.made))
        return pack(own, gradients, self.types, self.result_types)

    def _front(self, place: int) -> Any:
        source = self.inputs[place]
        return source if type(source) is int else self.fronts.get(place)

    def _input(self, place: int) -> Input:
        source = self.inputs[place]
        front = self.fronts.get(place, getattr(source, "_leaf", None))
        leaf = getattr(source, "leaf", NOT_MEMORY)
        return source, self.types[place], leaf, front, hasattr(source, "_alias")

    def _kept(self, places: list[int], results: list[int]) -> list[Kept]:
        return [
            (
                places.index(place),
                self.fronts.get(place),
                results.index(result),
                self.inputs[place],
                (place, result) in self.donated,
            )
            for place, result in self.replaced
            if result in results
            and self.targets[result] == ("written", self.inputs[place])
            and self.types[place] is self.result_types[result]
        ]


def _cleared_gradients(recording: Recording, inputs: list[Any]) -> list[tuple[int, int]]:
    """Gradients that the function clears and makes anew lend their memory: further inputs, each with the
    result that replaces it."""
    trace, owners = recording.trace, recording.gradients.made
    replaced = []
    first = len(trace.outputs) - len(owners) - len(recording.counts)
    for i, owner in enumerate(owners, first):
        type = trace.type_of(*trace.outputs[i])
        if owner in recording.recorder.cleared and evaluate.donatable(type, type, trace.device):
            sharding = _sharding_of_leaf(owner)
            if sharding is None and trace.device.mesh is not None:
                continue
            replaced.append((len(inputs), i))
            inputs.append(Cleared(owner, type, trace.device, sharding))
            trace.leaves.append(Value(type, trace.device))
    return replaced


def _sharding_of_leaf(owner: Any) -> Sharding | None:
    """How the leaf is sharded whose gradients are collected there, where that is known."""
    leaf = owner.leaf() if isinstance(owner, Origin) and owner.leaf is not None else None
    return None if leaf is None else sharded.sharding_if_any(leaf._value.buffer)


def _returned(recording: Recording, arguments: dict[int, int]) -> list[int | Holder | Again | None]:
    recorder = recording.recorder
    known: dict[int, int | Holder] = {
        id(tensor): tensor for tensor in (*recorder.reads.values(), *recorder.written)
    }
    known.update(recording.places)
    known.update(arguments)
    first: dict[int, int] = {}
    returned: list[int | Holder | Again | None] = []
    for i, tensor in enumerate(recording.returned):
        earlier = first.setdefault(id(tensor), i)
        place = known.get(id(tensor))
        returned.append(Again(earlier) if place is None and earlier < i else place)
    return returned


def _refuse_python(followed: list[Origin]) -> None:
    """Refuse a function whose gradient is taken outside of it though Python has a say in it: a compiled
    function is differentiated as the program that it is."""
    seen: set[Any] = set()
    stack = list(followed)
    while stack:
        origin = stack.pop()
        node = origin.node
        # The hooks of a leaf are called where its gradient is collected, but not those of an argument.
        hooked = origin.hooks and (node is not None or origin.leaf is None)
        if hooked or (node is not None and not isinstance(node, Node)):
            raise TraceError(
                "a hook or an autograd.Function in a compiled function cannot change gradients taken outside",
                help="call backward() inside the function, or leave this part out of it",
            ).located("compile", capture())
        if node is not None and node not in seen:
            seen.add(node)
            stack += [operand.origin for operand in node.inputs if operand.origin is not None]


def _leads_out(origin: Origin) -> bool:
    """Whether gradients still flow from a value to a leaf, or to what was computed outside."""
    seen: set[Any] = set()
    stack = [origin]
    while stack:
        origin = stack.pop()
        if not isinstance(origin.node, Node) or isinstance(origin.node, Before):
            return True
        if origin.node not in seen and not origin.node.spent:
            seen.add(origin.node)
            stack += [operand.origin for operand in origin.node.inputs if operand.origin is not None]
    return False


def memory_of(holder: Any) -> Any:
    """The memory that a tensor is all of; other inputs as they are."""
    alias = getattr(holder, "_alias", None)
    return holder if alias is None or alias.steps else alias.storage


def is_spent(origin: Origin) -> bool:
    """Whether gradients flowed through it and may not again."""
    return origin.node is not None and bool(origin.node.spent)
