"""Programs whose small inputs and results keep their places on a device, for `mode="reduce-overhead"`.

XLA runs a program on a GPU as a CUDA graph, and writes the whole graph anew when an array lies elsewhere than
at the last call. State that the program updates in place stays where it is. What is passed, such as a token,
and what is returned do not: here they are copied, from and to places that stay. A loop that passes what was
returned comes back to the same addresses after a few calls: then there is an executable for each of them,
with its own graph, and nothing is copied. Small inputs that no call passes travel in bundles.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from tenfold.base import owners
from tenfold.base.devices import Device
from tenfold.base.errors import EngineError
from tenfold.base.late import on_first_use
from tenfold.engines import xla
from tenfold.flat.ir import Function, TensorType, Value

with on_first_use(__name__):
    from tenfold.mlir import stablehlo
    from tenfold.runtime.bundles import Bundled, bundles_of, taken_whole


SMALL = 1 << 20  # bytes of an array that are copied sooner than a graph is written
MOST = 8  # calls whose results are looked at for memory that is free
GRAPHS = 4  # executables of one program, each with a graph for the addresses of one call
FOLLOWED = 16  # calls whose rooms are remembered
PLATFORMS = {"cuda"}  # where programs run as graphs

Donations = Sequence[tuple[int, int]]


def is_small(type: TensorType) -> bool:
    return type.numel * type.dtype.itemsize <= SMALL


Places = tuple[tuple[int, int], ...]  # the numbers of rooms, and of arrays in them


class Room(NamedTuple):
    """Memory for the small results of a call, which keeps its number from one use to the next."""

    number: int
    arrays: list[Any]


class Rooms:
    """A program with one more parameter for each small result that nothing else lends its memory to: the
    place for it. Of the inputs that are `lasting`, which seldom change from call to call, the small ones are
    bundled, unless a library takes them."""

    def __init__(self, function: Function, donated: Donations, lasting: Sequence[int]):
        lent = {place for place, _ in donated}
        whole = taken_whole(function)
        inputs = [(i, function.params[i]) for i in lasting if i not in lent]
        small = [i for i, param in inputs if is_small(param.type) and param not in whole]
        bundled = Bundled(function, bundles_of(function.params, small))
        self.arguments = bundled.arguments
        function, donated = bundled.function, bundled.donated(donated)
        taken = {result for _, result in donated}
        types = [result.type for result in function.results]
        self.results = [i for i, type in enumerate(types) if i not in taken and is_small(type)]
        self.types = [types[i] for i in self.results]
        lent = {place for place, _ in donated}
        self.inputs = {
            i: param.type for i, param in enumerate(function.params) if i not in lent and is_small(param.type)
        }
        count = len(function.params)
        self.function = Function([*function.params, *map(Value, self.types)], function.results, function.name)
        self.donated = (*donated, *[(count + i, result) for i, result in enumerate(self.results)])


class Steady:
    """An executable of such a program, called as if it were the program itself. `again` loads another one,
    which has a graph of its own."""

    def __init__(
        self, executable: xla.Executable, rooms: Rooms, device: Device, again: Callable[[], xla.Executable]
    ):
        self.executable = executable
        self._device, self._again, self._graphs = device, again, GRAPHS
        self._lock = threading.Lock()
        self._results, self._types, self._inputs = rooms.results, rooms.types, rooms.inputs
        self._arguments = rooms.arguments(device)
        self._places: list[Any] | None = None  # of results
        self._copied = _copies(self._types, device, into=self._types) if self._types else None
        self._given: list[Room] = []  # the last results, whose memory is used again if nobody has them
        self._count = 0  # of rooms
        self._fixed = list(rooms.inputs)  # small inputs that do not change from call to call
        self._seen: list[int] = []  # the identities of their buffers at the last call
        self._moved: set[int] = set()  # those that have changed once, as weights do after a first call
        self._varying: list[int] = []  # the others
        self._slots: list[Any] = []  # their places
        self._fill: xla.Executable | None = None
        self._once: dict[Places, None] = {}  # where inputs and results of a call were
        self._bound: dict[Places | None, xla.Executable] = {}  # where they were more than once

    def memory(self) -> int:
        return self.executable.memory()

    def hlo(self) -> str:
        return self.executable.hlo()

    def __call__(self, buffers: Sequence[Any], held: list[Any] | None = None) -> list[Any]:
        held = [] if held is None else held
        with self._lock:
            arguments = self._arguments(buffers)
            source = self._rooms_of([arguments[i] for i in self._varying])
            room = self._free(source) if self._types else Room(0, [])
            bound = self._bound_to(arguments, source, room)
            if bound is None:
                return self._copying(self._filled(arguments), room, held)
            results = bound([*arguments, *room.arrays], held)
            if self._types:
                self._given.append(Room(room.number, [results[i] for i in self._results]))
        return results

    def _bound_to(self, buffers: list[Any], source: Places | None, room: Room) -> xla.Executable | None:
        """The executable whose graph was written for inputs and results in these rooms. A loop that passes on
        what it was given comes back to the same few, and then nothing is copied."""
        rooms = None if source is None else (*source, (room.number, 0))
        program = self._bound.get(rooms)
        if program is not None and self._varying:
            return program
        if self._watch(buffers) or rooms is None:
            return None
        if program is not None:
            return program
        if rooms not in self._once:
            self._once[rooms] = None
            if len(self._once) > FOLLOWED:
                del self._once[next(iter(self._once))]
        elif len(self._bound) < self._graphs:
            try:
                program = self._bound[rooms] = self._again()
            except EngineError:
                self._graphs = 0  # there is but the one that copies
        return program

    def _rooms_of(self, arrays: Sequence[Any]) -> Places | None:
        """Where arrays lie that were given as results; None if one was not. Addresses would tell, but to ask
        for one is to wait for the array."""
        known = {id(array): (room.number, i) for room in self._given for i, array in enumerate(room.arrays)}
        places = [known.get(id(array)) for array in arrays]
        return None if None in places else tuple(places)  # type: ignore[arg-type]

    def _copying(self, arguments: list[Any], room: Room, held: list[Any]) -> list[Any]:
        """Run with inputs and results in places that stay, and copy the results into a room."""
        places, self._places = self._places or _zeros(self._types, self._device), None
        inner: list[Any] = []
        try:
            results = self.executable([*arguments, *places], inner)
            self._places = [results[i] for i in self._results]
            if self._copied is not None:
                copies = self._copied([*room.arrays, *self._places])
                self._given.append(Room(room.number, copies))
                for i, copy in zip(self._results, copies, strict=True):
                    results[i] = copy
        finally:
            held.extend(inner)
            if not inner or (self._places and inner[0][self._results[0]] is self._places[0]):
                self._places = None  # an interrupt: whoever asked has the places themselves
        return results

    def _free(self, source: Places | None) -> Room:
        """Memory for results: a room that nobody holds any more, and of those one to which a graph leads from
        the inputs' rooms. Fresh memory now and then would make XLA place its own elsewhere."""
        free = [i for i, room in enumerate(self._given) if _is_free(room)]
        if free:
            bound = [i for i in free if source and (*source, (self._given[i].number, 0)) in self._bound]
            return self._given.pop((bound or free)[0])
        del self._given[:-MOST]
        self._count += 1
        return Room(self._count, _zeros(self._types, self._device))

    def _watch(self, buffers: list[Any]) -> bool:
        """Find out which inputs are not the same at every call; whether there are more now."""
        before = len(self._varying)
        now = [id(buffers[i]) for i in self._fixed]
        if self._seen and now != self._seen:
            pairs = zip(self._fixed, self._seen, now, strict=True)
            changed = {i for i, before, after in pairs if before != after}
            if changed & self._moved:
                self._vary(sorted(changed & self._moved))
            self._moved |= changed
            now = [id(buffers[i]) for i in self._fixed]
        self._seen = now
        return len(self._varying) > before

    def _filled(self, buffers: list[Any]) -> list[Any]:
        """The buffers, with copies in the places of those that are not the same at every call."""
        if self._fill is not None:
            slots, self._slots = self._slots, []
            if not slots:
                slots = _zeros([self._inputs[i] for i in self._varying], self._device)
            self._slots = self._fill([*slots, *[buffers[i] for i in self._varying]])
            for i, slot in zip(self._varying, self._slots, strict=True):
                buffers[i] = slot
        return buffers

    def _vary(self, inputs: Sequence[int]) -> None:
        self._varying += inputs
        self._fixed = [i for i in self._fixed if i not in self._varying]
        self._slots = []
        self._bound.clear()
        types = [self._inputs[i] for i in self._varying]
        self._fill = _copies(types, self._device, into=types)


def _is_free(room: Room) -> bool:
    """Whether nobody holds what is in a room, but its list."""
    return all(owners.count(array) <= owners.NAMED + 1 for array in room.arrays)


def _zeros(types: Sequence[TensorType], device: Device) -> list[Any]:
    return [xla.put(np.zeros(type.shape, type.dtype.numpy), device) for type in types]


def _copies(types: Sequence[TensorType], device: Device, into: Sequence[TensorType] = ()) -> xla.Executable:
    """A program that copies arrays, `into` the memory of others if they are given first."""
    rooms, params = [Value(type) for type in into], [Value(type) for type in types]
    donated = [(i, i) for i in range(len(rooms))]
    return xla.compile(stablehlo.emit(Function([*rooms, *params], params, "copies"), donated), device)
