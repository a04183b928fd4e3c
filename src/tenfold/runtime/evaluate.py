"""Evaluation of lazy values: find the program that computes them, its executable, run it, keep the results.

A program is looked up by its structure, which was interned as it was recorded; only a new one is lowered,
emitted and compiled. Beside what was asked for, a program gives back what others still hold of it and what
in-place ops have written, so that nothing is computed twice.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import sys
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from tenfold.devices import Device
from tenfold.engines import xla
from tenfold.errors import EngineError, OutOfMemory, TenfoldError, TraceError
from tenfold.flat.structured import Check
from tenfold.mlir import stablehlo
from tenfold.runtime import cache, late
from tenfold.source import capture
from tenfold.trace import graph
from tenfold.trace.graph import Holder, Program, Value, collect
from tenfold.trace.lower import lower

lock = threading.RLock()  # of all that is computed: one evaluation at a time
_executables: dict[tuple[Any, ...], Loaded] = {}
_opened: dict[tuple[Any, ...], tuple[Loaded, tuple[int, ...]]] = {}
_variants: dict[tuple[Any, ...], int] = {}
MAX_VARIANTS = 2
MAX_EXECUTABLES = 1000
_written: dict[int, weakref.ref[Holder]] = {}
_observers: list[Callable[[Program, Device], None]] = []
_compiles = 0


class Loaded:
    """An executable and the run-time checks whose verdict is its last result."""

    __slots__ = ("checks", "executable")

    def __init__(self, executable: xla.Executable, checks: Sequence[Check]):
        self.executable = executable
        self.checks = tuple(checks)

    def __call__(self, buffers: Sequence[Any]) -> list[Any]:
        results = self.executable(buffers)
        if self.checks:
            _raise_failed(int(xla.fetch(results.pop())), self.checks)
        return results


class Pending:
    """The results of a run, not yet taken apart: making buffers of them costs as much as a small program."""

    __slots__ = ("buffers", "results")

    def __init__(self, results: Any):
        self.results = results
        self.buffers: list[Any] = []

    def take(self, index: int) -> Any:
        with lock:
            if self.results is not None:
                self.buffers, self.results = xla.take_apart(self.results), None
            return self.buffers[index]


def evaluate(values: Sequence[Value]) -> None:
    """Give every one of these values its data, and with them the tensors that were written in place."""
    if all(each.buffer is not None for each in values):
        return
    with lock:
        wanted = [each for each in values if each.buffer is None]  # another thread may have been here first
        if not wanted:
            return
        pending = _take_written()
        try:
            _run_by_device(wanted + pending)
        except TenfoldError:
            # If a write is at fault, it is for those to hear who read what was written.
            remaining = [each for each in wanted if each.buffer is None]
            if not pending or not remaining:
                raise
            _run_by_device(remaining)


def _run_by_device(values: Sequence[Value]) -> None:
    by_device: dict[Device, list[Value]] = {}
    for each in values:
        by_device.setdefault(each.device, []).append(each)
    for device, targets in by_device.items():
        _run(list(dict.fromkeys(targets)), device)


def _run(targets: list[Value], device: Device) -> None:
    program, given = collect(targets, held)
    try:
        results = _execute(program, device)
    except TenfoldError as error:
        raise placed(error, program) from None
    for value, buffer in zip(given, results, strict=True):
        value.settle(buffer)


def _execute(program: Program, device: Device) -> list[Any]:
    """Run a program. The third that differs from others in its numbers alone is compiled for all numbers."""
    buffers = [buffer_of(leaf, device) for leaf in program.leaves]
    loaded = _recent(_executables, (device, program.key))
    if loaded is None:
        key, numbers = late.loose_key(program)
        opened = _recent(_opened, (device, key))
        if opened is None and numbers:
            seen = _variants[device, key] = _variants.get((device, key), 0) + 1
            if seen > MAX_VARIANTS:
                found = late.open_numbers(program, device)
                opened = (build(found.program, device), found.order)
                _remember(_opened, (device, key), opened)
        if opened is not None:
            loaded, order = opened
            given = buffers + [xla.put(np.asarray(each), device) for each in numbers]
            return loaded([given[place] for place in order])
        loaded = build(program, device)
        _remember(_executables, (device, program.key), loaded)
    return loaded(buffers)


def _recent(programs: dict[Any, Any], key: Any) -> Any:
    """What is remembered under a key, which thereby becomes the most recently used."""
    found = programs.pop(key, None)
    if found is not None:
        programs[key] = found
    return found


def _remember(programs: dict[Any, Any], key: Any, found: Any) -> None:
    """Keep an executable, and let the least recently used go: each holds several mappings of memory, of which
    a process may have 65,530."""
    programs[key] = found
    while len(programs) > MAX_EXECUTABLES:
        del programs[next(iter(programs))]


def held(uses: dict[Value, int]) -> list[Value]:
    """The values of a program that something outside of it refers to: else they would be computed again."""
    own = 4  # the key of `uses`, the item, the loop's name, and getrefcount's argument
    return [value for value, count in list(uses.items()) if sys.getrefcount(value) > count + own]


def written(holder: Holder) -> None:
    """Note an in-place write: its value is computed with the next evaluation, as program order implies."""
    _written[id(holder)] = weakref.ref(holder)


def _take_written() -> list[Value]:
    holders = [reference() for reference in _written.values()]
    _written.clear()
    values = [holder.current() for holder in holders if holder is not None]
    return [each for each in values if each.buffer is None and each.node is not None]


def host_array(value: Value) -> np.ndarray:
    """A value's data as a NumPy array that shares its memory where it can."""
    return value.buffer if type(value.buffer) is np.ndarray else xla.fetch(buffer_of(value, value.device))


def buffer_of(leaf: Value, device: Device) -> Any:
    """A leaf's data on the device; host arrays and tensors of other devices are copied there."""
    buffer = leaf.buffer
    if buffer is None:
        raise TraceError(
            "a tensor from inside a compiled function has no value outside of it",
            help="return it from the function",
        )
    if type(buffer) is Pending:
        buffer = leaf.buffer = buffer.take(leaf.index)
    if type(buffer) is np.ndarray:
        buffer = xla.put(buffer, device)
        if leaf.device is device:
            leaf.buffer = buffer
    elif leaf.device is not device:
        return xla.put(xla.fetch(buffer), device)
    return buffer


def build(program: Program, device: Device, donated: Sequence[int] = ()) -> Loaded:
    """Compile a program, or find it on disk."""
    global _compiles
    for observe in list(_observers):
        _observers.remove(observe)  # what it does to look at the program is not news
        try:
            observe(program, device)
        finally:
            _observers.append(observe)
    with uncollected():
        module = stablehlo.emit(lower(program), donated)
    name = cache.key(module.text(whole=True), xla.fingerprint(device))
    stored = cache.load(name)
    if stored is not None:
        try:
            return Loaded(xla.deserialize(stored, device), module.checks)
        except Exception as error:
            cache.discard(name, f"XLA cannot load it ({error})")
    executable = xla.compile(module, device)
    _compiles += 1
    if cache.folder() is not None:
        try:
            cache.store(name, xla.serialize(executable))
        except EngineError as error:
            cache.warn(f"a program cannot be stored: {error.message}")
    return Loaded(executable, module.checks)


@contextlib.contextmanager
def uncollected() -> Iterator[None]:
    """Without the garbage collector: a program being built is thousands of objects, all of them in use."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _raise_failed(verdict: int, checks: Sequence[Check]) -> None:
    if verdict:
        failed = checks[verdict - 1]
        error = failed.error(failed.message)
        if isinstance(error, TenfoldError):
            error = error.located("", failed.source, [])
        raise error


def placed(error: TenfoldError, program: Program) -> TenfoldError:
    """An engine's error at a line of the user's: for memory the op of the largest result, else who asked."""
    if isinstance(error, OutOfMemory) and program.nodes:
        sizes = [
            max(t.numel * t.dtype.itemsize for t in node.signature.result_types) for node in program.nodes
        ]
        largest = program.nodes[sizes.index(max(sizes))]
        return error.located(largest.signature.row.python_name, largest.source)
    return error.located("evaluate", capture())


@contextlib.contextmanager
def observing(observe: Callable[[Program, Device], None]) -> Iterator[None]:
    """Be told of every new program inside the block, before it is compiled."""
    _observers.append(observe)
    try:
        yield
    finally:
        _observers.remove(observe)


@contextlib.contextmanager
def counting_compiles() -> Iterator[CompileCount]:
    """How many programs XLA compiles inside the block; those found on disk do not count."""
    count = CompileCount()
    try:
        yield count
    finally:
        count.stop()


@functools.total_ordering
class CompileCount:
    def __init__(self) -> None:
        self.start = _compiles
        self.end: int | None = None

    def stop(self) -> None:
        self.end = _compiles

    def __int__(self) -> int:
        return (_compiles if self.end is None else self.end) - self.start

    def __eq__(self, other: object) -> bool:
        return int(self) == other

    def __lt__(self, other: int) -> bool:
        return int(self) < other

    def __repr__(self) -> str:
        return f"{int(self)} compiles"


graph.settle = evaluate
