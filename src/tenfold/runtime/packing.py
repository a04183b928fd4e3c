"""Small state of a compiled function, kept in few buffers from call to call.

What a call costs beyond its arithmetic is mostly a matter of how many arrays go in and come out. The small
tensors that a function writes (biases, counters, their gradients) therefore travel together: the program
takes a vector, cuts it up, and joins what it computes to the next. A tensor among them is cut out of the
vector when somebody asks for it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tenfold import dtypes, flat
from tenfold.devices import Device
from tenfold.engines import xla
from tenfold.flat.graph import Function, TensorType
from tenfold.trace.graph import Value

FEW = 3  # tensors for which it does not pay
# XLA runs a program whose arrays are all no larger than this in the caller's own thread, which is quicker.
INLINE = 512
DTYPE = dtypes.float32

Layout = list[tuple[int, TensorType]]


class Vector:
    """Parameters and results that travel together: `places` are the parameters, `results` what replaces them,
    in the same order, and then further results."""

    __slots__ = (
        "kept", "layout", "lent", "made", "owners", "pending", "places", "results", "roots", "size",
    )  # fmt: skip

    def __init__(self, places: Sequence[int], results: Sequence[int], types: Sequence[TensorType]):
        self.places = tuple(places)
        self.results = tuple(results)
        self.layout: Layout = []
        self.size = 0
        for type in types:
            self.layout.append((self.size, type))
            self.size += type.numel
        # The last vector, as the data that tensors cut themselves out of.
        self.pending: Any = None
        self.lent = False  # whether a run was given it to write over
        # The memory behind each parameter with the tensor in front of it, and the value it was given last.
        self.roots: list[tuple[Any, Any]] = []
        self.kept: list[Any] = [None] * len(self.places)
        # Whose gradients the further results are, and the tensors that they were last.
        self.owners: list[Any] = []
        self.made: list[Any] = [None] * (len(self.results) - len(self.places))

    def take(self, device: Device, fetch: Callable[[Value], np.ndarray]) -> Any:
        """The vector to run with, which the run may write over: the last result, if nobody has written one of
        the tensors since. Values that somebody else holds keep their data apart from now on."""
        if self.pending is not None and self._untouched():
            buffer = self.pending.results
            self._set_apart()
            self.lent = True
            return buffer
        self.lent = False
        parts = [fetch(root.value).reshape(-1) for root, _ in self.roots]
        rest = self.size - sum([each.size for each in parts])
        return xla.put(np.concatenate([*parts, np.zeros(rest, DTYPE.numpy)]), device)

    def _untouched(self) -> bool:
        return all(root.value is kept for (root, _), kept in zip(self.roots, self.kept, strict=True))

    def _set_apart(self) -> None:
        references, pending = sys.getrefcount, self.pending
        shared = 3  # references to what is pending: this object's, the name here, the call's
        for i, (_, front) in enumerate(self.roots):
            value = self.kept[i]
            # Its own references: the memory's, the tensor's in front, the list's, the name here, the call's.
            if references(value) > 4 + (front is not None and front._value is value):
                self.kept[i] = None
                if value.buffer is pending:
                    value.buffer = pending.take(value.index)
            shared += value.buffer is pending
        for j in range(len(self.made)):  # not by enumerate, which would hold on to each
            made = self.made[j]
            if made is None:
                continue
            value = made._value
            if references(made) > 4 or references(value) > 3 or made._alias is not None:
                self.made[j] = None
                if value.buffer is pending:
                    value.buffer = pending.take(value.index)
            shared += value.buffer is pending
        if references(pending) > shared:
            pending.results = np.array(xla.fetch(pending.results))

    def advance(
        self, pending: Any, device: Device, origin: Callable[[Any], Any], wrap: Callable[[Value], Any]
    ) -> None:
        """Let all tensors see the new vector, `pending` to be cut up. A value that nobody else holds is used
        again; `origin` finds where the gradient of an owner collects."""
        self.pending = pending
        for i, (root, _) in enumerate(self.roots):
            value = self.kept[i]
            if value is not None and root.value is value:
                value.buffer, value.index = pending, i
                root.version += 1
            else:
                self.kept[i] = value = Value(self.layout[i][1], device, None, i, pending)
                root.replace(value)
        count = len(self.roots)
        for j, owner in enumerate(self.owners):
            leaf, made = origin(owner), self.made[j]
            if made is not None and leaf.collected is made:
                made._value.buffer, made._value.index = pending, count + j
            else:
                type = self.layout[count + j][1]
                self.made[j] = leaf.collected = wrap(Value(type, device, None, count + j, pending))


class Packing:
    """How a program's small state travels: in which vectors."""

    __slots__ = ("results", "taken", "vectors")

    def __init__(self, vectors: Sequence[Vector]):
        self.vectors = tuple(vectors)
        self.taken = frozenset(place for each in vectors for place in each.places)
        self.results = frozenset(result for each in vectors for result in each.results)

    @property
    def key(self) -> tuple[Any, ...]:
        return tuple([(each.places, each.results) for each in self.vectors])

    def applied(self, function: Function) -> Function:
        """The program with the vectors as its last parameters and its last results."""
        arguments = list(function.params)
        vectors = []
        for i, each in enumerate(self.vectors):
            vector = flat.Value(TensorType(DTYPE, (each.size,)))
            vector.name = f"packed{i}"
            vectors.append(vector)
            for place, (start, type) in zip(each.places, each.layout, strict=False):
                part = flat.slice(vector, (start,), (start + type.numel,))
                arguments[place] = flat.reshape(part, type.shape)
        params = [each for i, each in enumerate(function.params) if i not in self.taken]
        results = function.inline(arguments)
        alone = [each for i, each in enumerate(results) if i not in self.results]
        joined = []
        for each in self.vectors:
            parts = [results[i] for i in each.results]
            joined.append(flat.concatenate([flat.reshape(part, (part.numel,)) for part in parts], 0))
        return Function([*params, *vectors], [*alone, *joined], function.name)

    def donated(self, donated: Sequence[tuple[int, int]], function: Function) -> tuple[tuple[int, int], ...]:
        """What lends its memory to what, once this is applied: parameters and results that travel alone, and
        every vector to its successor. `function` is the program as it is then."""
        alone = [
            (
                place - sum([each < place for each in self.taken]),
                result - sum([each < result for each in self.results]),
            )
            for place, result in donated
        ]
        first = len(function.params) - len(self.vectors), len(function.results) - len(self.vectors)
        return (*alone, *[(first[0] + i, first[1] + i) for i in range(len(self.vectors))])


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
    further = [each for each in others if results[each].dtype is DTYPE]
    items: list[tuple[int | None, int]] = [*pairs, *[(None, each) for each in further]]
    if len(items) <= FEW:
        return None
    if max([each.numel * each.dtype.itemsize for each in (*params, *results)]) > INLINE:
        return None
    vectors: list[list[tuple[int | None, int]]] = [[]]
    size = 0
    for item in items:
        more = results[item[1]].numel * 4
        # A vector begins with what replaces parameters: further results come last, in it or in the next.
        if size + more > INLINE:
            vectors.append([])
            size = 0
        vectors[-1].append(item)
        size += more
    return Packing(
        [
            Vector(
                [place for place, _ in each if place is not None],
                [result for _, result in each],
                [results[result] for _, result in each],
            )
            for each in vectors
        ]
    )
