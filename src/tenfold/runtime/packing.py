"""Small state of a compiled function, kept in few buffers from call to call.

What a call costs beyond its arithmetic is mostly a matter of how many arrays go in and come out. The small
tensors that a function writes (biases, counters, their gradients) therefore travel together: the program
takes a vector, cuts it up, and joins what it computes to the next. A tensor among them is cut out of the
vector when somebody asks for it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tenfold import flat
from tenfold.base import dtypes
from tenfold.base.devices import Device
from tenfold.base.late import on_first_use
from tenfold.base.owners import NAMED, count
from tenfold.engines import xla
from tenfold.flat.ir import Function, TensorType
from tenfold.trace.graph import Origin, Value

with on_first_use(__name__):
    from tenfold.flat.rejoining import rejoined


FEW = 3  # tensors for which it does not pay
# XLA runs a program whose arrays are all no larger than this in the caller's own thread, which is quicker.
INLINE = 512
DTYPE = dtypes.float32

Layout = list[tuple[int, TensorType]]


def is_in_front(tensor: Any, memory: Any) -> bool:
    """Whether a tensor still refers to this memory: it may have been given other memory."""
    return tensor._alias is not None and tensor._alias.storage is memory


class Pending:
    """One buffer that holds the data of several values, each cut out when it is asked for."""

    __slots__ = ("layout", "results")

    def __init__(self, results: Any, layout: Layout):
        self.results = results
        self.layout = layout

    def take(self, index: int) -> np.ndarray:
        start, type = self.layout[index]
        whole = self.results if isinstance(self.results, np.ndarray) else xla.fetch(self.results)
        return whole[start : start + type.numel].reshape(type.shape).copy()


class Vector:
    """Results that travel together, and how they lie in the vector."""

    __slots__ = ("layout", "results", "size")

    def __init__(self, results: Sequence[int], types: Sequence[TensorType]):
        self.results = tuple(results)
        self.layout: Layout = []
        self.size = 0
        for type in types:
            self.layout.append((self.size, type))
            self.size += type.numel


class State(Vector):
    """Tensors that a function writes: `places` are the parameters, and results replace them in that order."""

    __slots__ = ("intact", "kept", "lent", "pending", "places", "roots")

    def __init__(self, items: Sequence[tuple[int, int]], types: Sequence[TensorType]):
        super().__init__([result for _, result in items], types)
        self.places = tuple([place for place, _ in items])
        # The last vector, as the data that tensors cut themselves out of.
        self.pending: Any = None
        self.lent = False  # whether a run was given it to write over
        self.intact = False  # and whether nobody else will see that
        # The memory behind each parameter, the tensor in front of it and the origin of its gradient, as they
        # were; and the value that the memory was given last.
        self.roots: list[tuple[Any, Any, Any]] = []
        self.kept: list[Any] = [None] * len(items)

    def take(self, device: Device, fetch: Callable[[Value], np.ndarray]) -> Any:
        """The vector to run with, which the run may write over: the last result, if nobody has written one of
        the tensors since. Values that somebody else holds keep their data apart from now on. None if a tensor
        is of other memory than it was, or requires gradients and did not."""
        references, pending, kept = count, self.pending, self.kept
        if pending is None:
            return self._gathered(device, fetch)
        shared = NAMED + 1  # owners of what is pending: this object
        i = 0
        for root, front, leaf in self.roots:
            value = kept[i]
            if root.value is not value:
                return self._gathered(device, fetch)
            own = NAMED + 2  # owners of the value: the memory and the list
            if front is not None:
                if not is_in_front(front, root):
                    return None
                own += front._value is value
            if root.leaf is not leaf:
                return None
            if references(value) > own:
                kept[i] = None
                if value.buffer is pending:
                    value.buffer = pending.take(value.index)
            shared += value.buffer is pending
            i += 1
        self.intact = shared == i + NAMED + 1
        buffer = pending.results
        if type(buffer) is np.ndarray:  # a run was to have it, and did not begin
            return self._gathered(device, fetch)
        if references(pending) > shared:
            pending.results = np.array(xla.fetch(buffer))
            self.intact = False
        self.lent = True
        return buffer

    def _gathered(self, device: Device, fetch: Callable[[Value], np.ndarray]) -> Any:
        self.lent = self.intact = False
        self.kept = [None] * len(self.roots)  # others may hold the values that there are
        for root, front, leaf in self.roots:
            if root.leaf is not leaf or (front is not None and not is_in_front(front, root)):
                return None
        return xla.put(np.concatenate([fetch(root.value).reshape(-1) for root, _, _ in self.roots]), device)

    def advance(self, buffer: Any, device: Device) -> None:
        """Let all tensors see the new vector. A value that nobody else holds is used again."""
        if self.intact:
            self.pending.results = buffer
            for root, _, _ in self.roots:
                root.version += 1
            return
        self.pending = pending = Pending(buffer, self.layout)
        for i, (root, _, _) in enumerate(self.roots):
            value = self.kept[i]
            if value is not None and root.value is value:
                value.buffer, value.index = pending, i
                root.version += 1
            else:
                self.kept[i] = value = Value(self.layout[i][1], device, None, i, pending)
                root.replace(value)

    def give_back(self, buffer: Any) -> None:
        """After a run that failed a check, and has put back what it wrote over."""
        if self.lent:
            self.pending.results = buffer


class Outcome(Vector):
    """Results of which few are read: the gradients that a function leaves behind. `owners` are the leaves
    that collect them."""

    __slots__ = ("owners",)

    def __init__(self, results: Sequence[int], types: Sequence[TensorType]):
        super().__init__(results, types)
        self.owners: list[Any] = []

    def advance(
        self, buffer: Any, device: Device, leaves: Sequence[Origin], wrap: Callable[[Value], Any]
    ) -> None:
        """Let the gradients of the owners, whose leaves these are, be those in a new vector."""
        pending = Pending(buffer, self.layout)
        for i, leaf in enumerate(leaves):
            collect(leaf, self.layout[i][1], device, pending, wrap, i)


def collect(
    leaf: Origin, type: TensorType, device: Device, buffer: Any, wrap: Callable[[Value], Any], index: int = 0
) -> None:
    """Let the leaf's gradient be this one. The tensor that it was last is used again, if nobody else holds
    it."""
    gradient = leaf.collected
    if gradient is not None and gradient._alias is None and gradient.__class__ is wrap:
        value = gradient._value
        # Only the leaf owns the tensor, and only the tensor its value.
        unshared = count(gradient) <= NAMED + 1 and count(value) <= NAMED + 1
        settled = value.node is None and value.origin is None
        if unshared and settled and value.type is type and value.device is device:
            value.buffer, value.index = buffer, index
            return
    leaf.collected = wrap(Value(type, device, None, index, buffer))


class Packing:
    """How a program's small state travels: in which vectors."""

    __slots__ = ("outcomes", "results", "states", "taken")

    def __init__(self, states: Sequence[State], outcomes: Sequence[Outcome]):
        self.states = tuple(states)
        self.outcomes = tuple(outcomes)
        self.taken = frozenset(place for state in states for place in state.places)
        self.results = frozenset(result for vector in self.vectors for result in vector.results)

    @property
    def vectors(self) -> tuple[Vector, ...]:
        return (*self.states, *self.outcomes)

    @property
    def key(self) -> tuple[Any, ...]:
        return tuple([(state.places, state.results) for state in self.states]), tuple(
            [outcome.results for outcome in self.outcomes]
        )

    def applied(self, function: Function) -> Function:
        """The program with the state as its last parameters, and all vectors as its last results."""
        arguments = list(function.params)
        states = []
        for i, state in enumerate(self.states):
            vector = flat.Value(TensorType(DTYPE, (state.size,)))
            vector.name = f"packed{i}"
            states.append(vector)
            for place, (start, type) in zip(state.places, state.layout, strict=True):
                part = flat.slice(vector, (start,), (start + type.numel,))
                arguments[place] = flat.reshape(part, type.shape)
        params = [param for i, param in enumerate(function.params) if i not in self.taken]
        results = function.inline(arguments)
        alone = [result for i, result in enumerate(results) if i not in self.results]
        joined = []
        for vector_of in self.vectors:
            parts = [results[i] for i in vector_of.results]
            joined.append(flat.concatenate([flat.reshape(part, (part.numel,)) for part in parts], 0))
        return rejoined(Function([*params, *states], [*alone, *joined], function.name))

    def donated(self, donated: Sequence[tuple[int, int]], function: Function) -> tuple[tuple[int, int], ...]:
        """What lends its memory to what, once this is applied: parameters and results that travel alone, and
        every state to its successor. `function` is the program as it is then."""
        alone = [
            (
                place - sum([earlier < place for earlier in self.taken]),
                result - sum([earlier < result for earlier in self.results]),
            )
            for place, result in donated
        ]
        first = len(function.params) - len(self.states), len(function.results) - len(self.vectors)
        return (*alone, *[(first[0] + i, first[1] + i) for i in range(len(self.states))])


def pack(
    written: Sequence[tuple[int, int]],
    others: Sequence[int],
    params: Sequence[TensorType],
    results: Sequence[TensorType],
) -> Packing | None:
    """What of a program's state should travel together: of `written` (a parameter, and the result that
    replaces it) and `others` (further results, seldom read); None if they are few, or the program is not one
    of small arrays alone."""
    pairs = [
        (place, result)
        for place, result in written
        if params[place].dtype is DTYPE and params[place] is results[result]
    ]
    further = [other for other in others if results[other].dtype is DTYPE]
    if len(pairs) + len(further) <= FEW:
        return None
    if max([type.numel * type.dtype.itemsize for type in (*params, *results)]) > INLINE:
        return None
    states = [
        State(chunk, [results[result] for _, result in chunk])
        for chunk in _filled(pairs, [results[result] for _, result in pairs])
    ]
    outcomes = [
        Outcome(chunk, [results[result] for result in chunk])
        for chunk in _filled(further, [results[result] for result in further])
    ]
    return Packing(states, outcomes)


def _filled(items: Sequence[Any], types: Sequence[TensorType]) -> list[list[Any]]:
    """The items in order, as many in one vector as it may hold."""
    vectors: list[list[Any]] = []
    room = 0
    for item, type in zip(items, types, strict=True):
        if not vectors or room < type.numel:
            vectors.append([])
            room = INLINE // DTYPE.itemsize
        vectors[-1].append(item)
        room -= type.numel
    return vectors
