"""Programs whose small inputs and results keep their places on a device, for `mode="reduce-overhead"`.

XLA runs a program on a GPU as a CUDA graph, and writes the whole graph anew when an array lies elsewhere than
at the last call. State that the program updates in place stays where it is. What is passed, such as a token,
and what is returned do not: here they are copied, from and to places that stay.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import numpy as np

from tenfold.base import owners
from tenfold.base.devices import Device
from tenfold.engines import xla
from tenfold.flat.ir import Function, TensorType, Value
from tenfold.mlir import stablehlo

SMALL = 1 << 20  # bytes of an array that are copied sooner than a graph is written
MOST = 8  # calls whose results are looked at for memory that is free
PLATFORMS = {"cuda"}  # where programs run as graphs

Donations = Sequence[tuple[int, int]]


def is_small(type: TensorType) -> bool:
    return type.numel * type.dtype.itemsize <= SMALL


class Rooms:
    """A program with one more parameter for each small result that nothing else lends its memory to: the
    place for it. A verdict, which has no value in the program, is one more result."""

    def __init__(self, function: Function, donated: Donations, verdict: TensorType | None):
        taken = {result for _, result in donated}
        types = [result.type for result in function.results] + ([] if verdict is None else [verdict])
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
    """An executable of such a program, called as if it were the program itself."""

    def __init__(self, executable: xla.Executable, rooms: Rooms, device: Device):
        self.executable = executable
        self._device = device
        self._lock = threading.Lock()
        self._results, self._types, self._inputs = rooms.results, rooms.types, rooms.inputs
        self._places: list[Any] | None = None  # of results
        self._copied = _copies(self._types, device, into=self._types) if self._types else None
        self._given: list[list[Any]] = []  # the last results, whose memory is used again if nobody has them
        self._fixed = list(rooms.inputs)  # small inputs that do not change from call to call
        self._seen: list[int] = []  # the identities of their buffers at the last call
        self._moved: set[int] = set()  # those that have changed once, as weights do after a first call
        self._varying: list[int] = []  # the others
        self._slots: list[Any] = []  # their places
        self._fill: xla.Executable | None = None

    def memory(self) -> int:
        return self.executable.memory()

    def hlo(self) -> str:
        return self.executable.hlo()

    def __call__(self, buffers: Sequence[Any], held: list[Any] | None = None) -> list[Any]:
        held = [] if held is None else held
        with self._lock:
            given = self._settled(list(buffers))
            places, self._places = self._places or _zeros(self._types, self._device), None
            inner: list[Any] = []
            try:
                results = self.executable([*given, *places], inner)
                self._places = [results[i] for i in self._results]
                if self._copied is not None:
                    copies = self._copied([*self._free(), *self._places])
                    self._given.append(copies)
                    for i, copy in zip(self._results, copies, strict=True):
                        results[i] = copy
            finally:
                held.extend(inner)
                if not inner or (self._places and inner[0][self._results[0]] is self._places[0]):
                    self._places = None  # an interrupt: whoever asked has the places themselves
        return results

    def _free(self) -> list[Any]:
        """Memory for results: that of earlier ones which nobody holds any more. Fresh memory now and then
        would make XLA place its own elsewhere."""
        for i, copies in enumerate(self._given):
            if all(owners.count(copy) <= owners.NAMED + 1 for copy in copies):  # the list's
                return self._given.pop(i)
        del self._given[:-MOST]
        return _zeros(self._types, self._device)

    def _settled(self, buffers: list[Any]) -> list[Any]:
        """The buffers, with copies in the places of those that are not the same at every call."""
        now = [id(buffers[i]) for i in self._fixed]
        if self._seen and now != self._seen:
            pairs = zip(self._fixed, self._seen, now, strict=True)
            changed = {i for i, before, after in pairs if before != after}
            if changed & self._moved:
                self._vary(sorted(changed & self._moved))
            self._moved |= changed
            now = [id(buffers[i]) for i in self._fixed]
        self._seen = now
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
        types = [self._inputs[i] for i in self._varying]
        self._fill = _copies(types, self._device, into=types)


def _zeros(types: Sequence[TensorType], device: Device) -> list[Any]:
    return [xla.put(np.zeros(each.shape, each.dtype.numpy), device) for each in types]


def _copies(types: Sequence[TensorType], device: Device, into: Sequence[TensorType] = ()) -> xla.Executable:
    """A program that copies arrays, `into` the memory of others if they are given first."""
    rooms, params = [Value(each) for each in into], [Value(each) for each in types]
    donated = [(i, i) for i in range(len(rooms))]
    return xla.compile(stablehlo.emit(Function([*rooms, *params], params, "copies"), donated), device)
