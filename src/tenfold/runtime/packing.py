"""Small state of a compiled function, kept in one buffer from call to call.

What a call costs beyond its arithmetic is mostly a matter of how many arrays go in and come out. The small
tensors that a function writes (biases, counters, their gradients) therefore travel together: the program
takes one vector, cuts it up, and joins what it computes to the next. A tensor among them is cut out of the
vector when somebody asks for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tenfold import dtypes, flat
from tenfold.devices import Device
from tenfold.engines import xla
from tenfold.flat.graph import Function, TensorType
from tenfold.trace.graph import Value

SMALL = 4096  # bytes of a tensor that travels with others
FEW = 3  # tensors for which it does not pay


class Packing:
    """Which parameters and results of a program travel together, all of one dtype.

    `places` are the parameters, `results` what replaces them, in the same order, and then further results.
    """

    __slots__ = ("count", "kept", "layout", "places", "results", "taken", "vector")

    def __init__(self, places: Sequence[int], results: Sequence[int], types: Sequence[TensorType]):
        self.places = tuple(places)
        self.results = tuple(results)
        self.layout: list[tuple[int, TensorType]] = []
        start = 0
        for type in types:
            self.layout.append((start, type))
            start += type.numel
        self.count = start
        self.kept: list[Value | None] = [None] * len(self.places)
        self.vector: Any = None
        self.taken = frozenset(places)

    @property
    def key(self) -> tuple[Any, ...]:
        return self.places, self.results

    def opened(self, function: Function) -> Function:
        """A function of the same parameters, with the vector as the last of those that remain."""
        vector = flat.Value(TensorType(self.layout[0][1].dtype, (self.count,)))
        vector.name = "packed"
        params = [each for i, each in enumerate(function.params) if i not in self.taken]
        arguments = list(function.params)
        for place, (start, type) in zip(self.places, self.layout, strict=False):
            part = flat.slice(vector, (start,), (start + type.numel,))
            arguments[place] = flat.reshape(part, type.shape)
        return Function([*params, vector], function.inline(arguments), function.name)

    def applied(self, function: Function) -> Function:
        """The program with the vector as its last parameter and its last result."""
        opened = self.opened(function)
        together = set(self.results)
        alone = [each for i, each in enumerate(opened.results) if i not in together]
        parts = [opened.results[i] for i in self.results]
        joined = flat.concatenate([flat.reshape(each, (each.numel,)) for each in parts], 0)
        return Function(opened.params, [*alone, joined], function.name)

    def shifted(self, donated: Sequence[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
        """Where parameters and results that travel alone are when the others have gone."""
        return tuple(
            [
                (
                    place - sum([each < place for each in self.places]),
                    result - sum([each < result for each in self.results]),
                )
                for place, result in donated
            ]
        )

    def buffer(self, values: Sequence[Value], device: Device, fetch: Any) -> Any:
        """The vector for these inputs: the last result, if nobody has written one of the tensors since."""
        for place, known in zip(self.places, self.kept, strict=True):
            if values[place] is not known:
                break
        else:
            return self.vector
        parts = [fetch(values[place]).reshape(-1) for place in self.places]
        rest = self.count - sum([each.size for each in parts])
        dtype = self.layout[0][1].dtype.numpy
        return xla.put(np.concatenate([*parts, np.zeros(rest, dtype)]), device)

    def spread(
        self, computed: list[Any], types: Sequence[TensorType], device: Device, pending: Any
    ) -> list[Value]:
        """All results as values: those that came alone, and those to be cut out of the vector."""
        self.vector = computed.pop()
        shared = pending(self.vector, self.layout)
        places = {result: i for i, result in enumerate(self.results)}
        alone = iter(computed)
        values = [
            Value(type, device, None, places[i], shared)
            if i in places
            else Value(type, device, None, 0, next(alone))
            for i, type in enumerate(types)
        ]
        self.kept = [values[i] for i in self.results[: len(self.places)]]
        return values


def pack(
    written: Sequence[tuple[int, int]],
    others: Sequence[int],
    params: Sequence[TensorType],
    results: Sequence[TensorType],
) -> Packing | None:
    """What of a program's state should travel together: of `written` (a parameter, and the result that
    replaces it) and `others` (further results, seldom read), those that are small; None if they are few."""
    small = lambda type: type.dtype is dtypes.float32 and type.numel * 4 <= SMALL
    pairs = [
        (place, result)
        for place, result in written
        if small(params[place]) and params[place] is results[result]
    ]
    more = [result for result in others if small(results[result])]
    if len(pairs) + len(more) <= FEW or not pairs:
        return None
    order = [*[result for _, result in pairs], *more]
    return Packing([place for place, _ in pairs], order, [results[i] for i in order])
