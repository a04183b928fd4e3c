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

from tenfold import dtypes, flat
from tenfold.devices import Device
from tenfold.engines import xla
from tenfold.flat.graph import Function, TensorType
from tenfold.trace.graph import Value

SMALL = 4096  # bytes of a tensor that travels with others
FEW = 3  # tensors for which it does not pay
# XLA runs a program whose arrays are all no larger than this in the caller's own thread, which is quicker.
INLINE = 512
DTYPE = dtypes.float32

Layout = list[tuple[int, TensorType]]


class Vector:
    """Parameters and results that travel together: `places` are the parameters, `results` what replaces them,
    in the same order, and then further results."""

    __slots__ = ("buffer", "kept", "layout", "places", "results", "size")

    def __init__(self, places: Sequence[int], results: Sequence[int], types: Sequence[TensorType]):
        self.places = tuple(places)
        self.results = tuple(results)
        self.layout: Layout = []
        self.size = 0
        for type in types:
            self.layout.append((self.size, type))
            self.size += type.numel
        self.kept: list[Value | None] = [None] * len(self.places)
        self.buffer: Any = None

    def take(self, values: Sequence[Value], device: Device, fetch: Callable[[Value], np.ndarray]) -> Any:
        """The vector for these inputs: the last result, if nobody has written one of the tensors since."""
        for place, known in zip(self.places, self.kept, strict=True):
            if values[place] is not known:
                break
        else:
            if self.buffer is not None:
                return self.buffer
        parts = [fetch(values[place]).reshape(-1) for place in self.places]
        rest = self.size - sum([each.size for each in parts])
        return xla.put(np.concatenate([*parts, np.zeros(rest, DTYPE.numpy)]), device)


class Packing:
    """How a program's small state travels: in which vectors."""

    __slots__ = ("positions", "results", "taken", "vectors")

    def __init__(self, vectors: Sequence[Vector]):
        self.vectors = tuple(vectors)
        self.taken = frozenset(place for each in vectors for place in each.places)
        self.results = frozenset(result for each in vectors for result in each.results)
        self.positions = {
            result: (v, i) for v, each in enumerate(vectors) for i, result in enumerate(each.results)
        }

    @property
    def key(self) -> tuple[Any, ...]:
        return tuple([(each.places, each.results) for each in self.vectors])

    def opened(self, function: Function) -> Function:
        """A function of the same parameters, with the vectors as the last of those that remain."""
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
        return Function([*params, *vectors], function.inline(arguments), function.name)

    def applied(self, function: Function) -> Function:
        """The program with the vectors as its last parameters and its last results."""
        opened = self.opened(function)
        alone = [each for i, each in enumerate(opened.results) if i not in self.results]
        joined = []
        for each in self.vectors:
            parts = [opened.results[i] for i in each.results]
            joined.append(flat.concatenate([flat.reshape(part, (part.numel,)) for part in parts], 0))
        return Function(opened.params, [*alone, *joined], function.name)

    def shifted(self, donated: Sequence[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
        """Where parameters and results that travel alone are when the others have gone."""
        return tuple(
            [
                (
                    place - sum([each < place for each in self.taken]),
                    result - sum([each < result for each in self.results]),
                )
                for place, result in donated
            ]
        )

    def spread(
        self, computed: list[Any], types: Sequence[TensorType], device: Device, pending: Callable[..., Any]
    ) -> list[Value]:
        """All results as values: those that came alone, and those to be cut out of a vector."""
        count = len(computed) - len(self.vectors)
        shared = []
        for each, buffer in zip(self.vectors, computed[count:], strict=True):
            each.buffer = buffer
            shared.append(pending(buffer, each.layout))
        alone = iter(computed)
        values = []
        for i, type in enumerate(types):
            found = self.positions.get(i)
            if found is None:
                values.append(Value(type, device, None, 0, next(alone)))
            else:
                values.append(Value(type, device, None, found[1], shared[found[0]]))
        for each in self.vectors:
            each.kept = [values[i] for i in each.results[: len(each.places)]]
        return values


def pack(
    written: Sequence[tuple[int, int]],
    others: Sequence[int],
    params: Sequence[TensorType],
    results: Sequence[TensorType],
) -> Packing | None:
    """What of a program's state should travel together: of `written` (a parameter, and the result that
    replaces it) and `others` (further results, seldom read), those that are small; None if they are few."""

    def small(type: TensorType) -> bool:
        return type.dtype is DTYPE and type.numel * 4 <= SMALL

    pairs = [pair for pair in written if small(params[pair[0]]) and params[pair[0]] is results[pair[1]]]
    items: list[tuple[int | None, int]] = [*pairs, *[(None, each) for each in others if small(results[each])]]
    if len(items) <= FEW:
        return None
    largest = max([each.numel * each.dtype.itemsize for each in (*params, *results)])
    limit = INLINE if largest <= INLINE else None
    vectors: list[list[tuple[int | None, int]]] = [[]]
    size = 0
    for item in items:
        more = results[item[1]].numel * 4
        # A vector begins with what replaces parameters: further results come last, in it or in the next.
        if limit is not None and size + more > limit:
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
