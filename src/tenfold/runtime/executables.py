"""Executables: in memory, on disk, or compiled now.

A program is looked up by its structure, which was interned as it was recorded; only a new one is lowered,
emitted and compiled.
"""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from tenfold.base.devices import Device
from tenfold.base.errors import EngineError, TenfoldError
from tenfold.base.forking import forkable
from tenfold.base.garbage import uncollected
from tenfold.engines import xla
from tenfold.flat.ir import Function
from tenfold.flat.narrow import narrowed
from tenfold.flat.quotients import rounded_once
from tenfold.mlir import stablehlo
from tenfold.runtime import cache, late
from tenfold.runtime.background import background
from tenfold.runtime.checks import Donations, Loaded, guarded
from tenfold.runtime.packing import Packing
from tenfold.trace.collect import Trace
from tenfold.trace.lower import lower

lock = forkable(threading.RLock())  # of all that is computed: one evaluation at a time
_executables: dict[tuple[Any, ...], Loaded] = {}
_opened: dict[tuple[Any, ...], tuple[Loaded, tuple[int, ...]]] = {}
_variants: dict[tuple[Any, ...], int] = {}
MAX_VARIANTS = 2
MAX_EXECUTABLES = 1000
MAX_MAPPINGS = 30_000
_observers: list[Callable[[Trace, Device], None]] = []
_compiles = 0
_counting = forkable(threading.Lock())
_emitting = forkable(threading.RLock())  # MLIR's context is built on by one thread at a time


def found(
    program: Trace, device: Device, donated: Donations = ()
) -> tuple[Loaded, Sequence[int | float], tuple[int, ...] | None]:
    """The executable of a program. The third program that differs from others in its numbers alone is
    compiled for all numbers: then they come with it, and in which order it takes what it is given, the
    leaves and then the numbers."""
    loaded = _recent(_executables, (device, program.key, donated))
    if loaded is not None:
        return loaded, (), None
    key, numbers = late.loose_key(program)
    opened = _recent(_opened, (device, key))
    if opened is None and numbers:
        seen = (_recent(_variants, (device, key)) or 0) + 1
        _remember(_variants, (device, key), seen)
        if seen > MAX_VARIANTS:
            made = late.open_numbers(program, device)
            opened = (build(made.program, device), made.order)
            _remember(_opened, (device, key), opened)
    if opened is not None:
        return opened[0], numbers, opened[1]
    return build(program, device, donated), (), None


def build(program: Trace, device: Device, donated: Donations = (), packing: Packing | None = None) -> Loaded:
    """The executable of a program: one in memory, or on disk, or compiled now."""
    key = (device, program.key, donated) if packing is None else (device, program.key, donated, packing.key)
    loaded = _recent(_executables, key)
    if loaded is None:
        loaded = _built(program, device, donated, packing)
        _remember(_executables, key, loaded)
    return loaded


def has(program: Trace, device: Device, donated: Donations) -> bool:
    """Whether a program is compiled already."""
    return (device, program.key, donated) in _executables


def has_open(key: tuple[Any, ...], device: Device) -> bool:
    """Whether one is compiled for all programs of this key, whatever their numbers."""
    return (device, key) in _opened


def build_in_background(program: Trace, device: Device, donated: Donations, open_numbers: bool) -> str:
    """Compile a program in another thread, for the next time; with `open_numbers`, for all its numbers. Why
    that failed, if it did before."""
    key: Any = (device, late.loose_key(program)[0]) if open_numbers else (device, program.key, donated)
    if key in background:
        return background.failures.get(key, "")
    order: tuple[int, ...] = ()
    if open_numbers:
        opened = late.open_numbers(program, device)
        program, order, donated = opened.program, opened.order, ()
    function = _lowered(program, device)

    def build() -> None:
        loaded = _loaded(function, device, donated, None)
        if open_numbers:
            _remember(_opened, key, (loaded, order))
        else:
            _remember(_executables, key, loaded)

    background.submit(key, build)
    return ""


def _built(program: Trace, device: Device, donated: Donations, packing: Packing | None) -> Loaded:
    return _loaded(_lowered(program, device), device, donated, packing)


def _lowered(program: Trace, device: Device) -> Function:
    """The FlatIR of a new program, of which observers are told."""
    xla.require_unforked()
    for observe in list(_observers):
        _observers.remove(observe)  # what it does to look at the program is not news
        try:
            observe(program, device)
        finally:
            _observers.append(observe)
    with uncollected():
        return lower(program)


def _loaded(function: Function, device: Device, donated: Donations, packing: Packing | None) -> Loaded:
    """The executable of a FlatIR function."""
    with _emitting, uncollected():
        function = narrowed(function) if device.type == "cuda" else rounded_once(function)
        if packing is not None:
            function = packing.applied(function)
            donated = packing.donated(donated, function)
        function, checks = guarded(function, donated, device)
        module = stablehlo.emit(function, donated)
    return Loaded(device, _compiled(module, device), checks, bool(donated))


def _compiled(module: stablehlo.Module, device: Device) -> xla.Executable:
    global _compiles
    xla.provide(module, device)
    name = cache.key(module.text(whole=True), xla.fingerprint(module, device))
    stored = cache.load(name)
    if stored is not None:
        try:
            return xla.deserialize(stored, module, device)
        except TenfoldError as error:
            cache.discard(name, f"XLA cannot load it ({error})")
    executable = xla.compile(module, device)
    with _counting:
        _compiles += 1
        if _compiles % 8 == 0:
            _relieve()
    if cache.folder() is not None:
        try:
            cache.store(name, xla.serialize(executable))
        except EngineError as error:
            cache.warn(f"a program cannot be stored: {error.message}")
    return executable


def _recent(programs: dict[Any, Any], key: Any) -> Any:
    """What is remembered under a key, which thereby becomes the most recently used."""
    found = programs.pop(key, None)
    if found is not None:
        programs[key] = found
    return found


def _remember(programs: dict[Any, Any], key: Any, found: Any) -> None:
    """Keep an executable, or a count of them, and let the least recently used go."""
    programs[key] = found
    while len(programs) > MAX_EXECUTABLES:
        del programs[next(iter(programs))]


def forget(platform: str) -> None:
    """Let go of the executables for a platform: it is compiled for in another way from now on."""
    with lock:
        for programs in (_executables, _opened):
            for key in [key for key in programs if key[0].type == platform]:
                del programs[key]


def _relieve() -> None:
    """Let executables go that have not been used for long, before the process runs out of memory mappings.

    A large program holds thousands of them, and a process may have 65,530: past that XLA's compiler crashes.
    """
    while _mappings() > MAX_MAPPINGS and (_executables or _opened):
        for programs in (_executables, _opened):
            for key in list(programs)[: len(programs) // 2 + 1]:
                del programs[key]


def _mappings() -> int:
    """How many mappings of memory the process has, where the system tells."""
    try:
        with open("/proc/self/maps", "rb") as file:
            return file.read().count(b"\n")
    except OSError:
        return 0


@contextlib.contextmanager
def observing(observe: Callable[[Trace, Device], None]) -> Iterator[None]:
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
