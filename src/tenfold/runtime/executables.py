"""Executables: in memory, on disk, or compiled now.

A program is looked up by its structure, which was interned as it was recorded; only a new one is lowered,
emitted and compiled.
"""

from __future__ import annotations

import contextlib
import functools
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from tenfold.base import log, progress
from tenfold.base.devices import Device
from tenfold.base.errors import EngineError, TenfoldError
from tenfold.base.forking import forkable
from tenfold.base.garbage import uncollected
from tenfold.base.late import on_first_use
from tenfold.base.meshes import Partitioned
from tenfold.engines import xla
from tenfold.flat.ir import Function
from tenfold.flat.structured import Check
from tenfold.flat.windows import Convolution
from tenfold.runtime import tiers
from tenfold.runtime.background import background
from tenfold.runtime.checks import Chained, Donations, Loaded, chained, guarded
from tenfold.runtime.packing import Packing
from tenfold.runtime.reduced_overhead import PLATFORMS, Rooms, Steady
from tenfold.trace import late_numbers
from tenfold.trace.collect import Trace
from tenfold.trace.lower import lower

with on_first_use(__name__):
    from tenfold.base.heap import give_back
    from tenfold.flat.cut_images import cut_within
    from tenfold.flat.fusions import is_plain
    from tenfold.flat.half_products import narrowed
    from tenfold.flat.quotients import rounded_once
    from tenfold.flat.reducing import summed_wide
    from tenfold.flat.regions import everywhere
    from tenfold.flat.sharding import unconstrained
    from tenfold.flat.split_products import products_apart
    from tenfold.mlir import stablehlo
    from tenfold.ops.cusolver import on_cuda
    from tenfold.ops.loop_matrices import transposed_before_loops
    from tenfold.ops.tile_absorbing import absorbed
    from tenfold.runtime import cache
    from tenfold.runtime.stepwise import stepwise
    from tenfold.runtime.unoptimized import Hasty


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
    """The executable of a program.

    Programs that differ in their numbers alone share one from the third on: it takes the numbers as inputs.
    Then the numbers are returned too, and the order of its inputs, which are the leaves followed by the
    numbers.
    """
    loaded = _recent(_executables, (device, program.key, donated))
    if loaded is not None:
        return loaded, (), None
    key, numbers = late_numbers.loose_key(program)
    opened = _recent(_opened, (device, key))
    if opened is None and numbers:
        seen = (_recent(_variants, (device, key)) or 0) + 1
        _remember(_variants, (device, key), seen)
        if seen > MAX_VARIANTS:
            rewritten = late_numbers.open_numbers(program, device)
            opened = (build(rewritten.program, device), rewritten.order)
            _remember(_opened, (device, key), opened)
    if opened is not None:
        return opened[0], numbers, opened[1]
    return build(program, device, donated), (), None


def build(
    program: Trace,
    device: Device,
    donated: Donations = (),
    packing: Packing | None = None,
    lasting: Sequence[int] | None = None,
) -> Loaded:
    """The executable of a program: one in memory, or on disk, or compiled now. With `lasting`, the places of
    inputs that seldom change, small inputs and results have fixed places, where that pays."""
    if packing is not None or device.type not in PLATFORMS:
        lasting = None
    key = (device, program.key, donated) if packing is None else (device, program.key, donated, packing.key)
    key = key if lasting is None else (*key, "steady", *lasting)
    loaded = _recent(_executables, key)
    if loaded is None:
        loaded = _loaded(lowered(program, device), device, donated, packing, lasting)
        _remember(_executables, key, loaded)
    return loaded


def has(program: Trace, device: Device, donated: Donations) -> bool:
    """Whether a program is compiled already."""
    return (device, program.key, donated) in _executables


def has_open(key: tuple[Any, ...], device: Device) -> bool:
    """Whether one is compiled for all programs of this key, whatever their numbers."""
    return (device, key) in _opened


def build_in_background(program: Trace, device: Device, donated: Donations, open_numbers: bool) -> str:
    """Compile a program in another thread for its next call; with `open_numbers`, for all its numbers.
    Returns why that failed, if it failed before."""
    key: Any = (
        (device, late_numbers.loose_key(program)[0]) if open_numbers else (device, program.key, donated)
    )
    if key in background:
        return background.failures.get(key, "")
    order: tuple[int, ...] = ()
    if open_numbers:
        opened = late_numbers.open_numbers(program, device)
        program, order, donated = opened.program, opened.order, ()
    function = lowered(program, device)

    def build() -> None:
        loaded = _loaded(function, device, donated, None)
        if open_numbers:
            _remember(_opened, key, (loaded, order))
        else:
            _remember(_executables, key, loaded)

    background.submit(key, build)
    return ""


def build_function(function: Function, device: Device, donated: Donations, packing: Packing | None) -> Loaded:
    """The executable of a FlatIR function that no Trace stands for. The caller keeps it."""
    return _loaded(function, device, donated, packing)


def lowered(program: Trace, device: Device, kind: str | None = None) -> Function:
    """The FlatIR of a new program, of which observers are told. `kind` says for what it is lowered, if not
    for the device's type."""
    xla.require_unforked()
    announce(program, device)
    with uncollected():
        return lower(program, kind=kind)


def observed() -> bool:
    """Whether somebody wants to be told of programs."""
    return bool(_observers)


def announce(program: Trace, device: Device) -> None:
    """Tell the observers of a program that is about to run or to be compiled."""
    for observe in list(_observers):
        _observers.remove(observe)  # what it does to look at the program is not news
        try:
            observe(program, device)
        finally:
            _observers.append(observe)


def _loaded(
    function: Function,
    device: Device,
    donated: Donations,
    packing: Packing | None,
    lasting: Sequence[int] | None = None,
) -> Loaded:
    """The executable of a FlatIR function."""
    with _emitting, uncollected():
        if packing is not None:
            function = packing.applied(_prepared(function, device))
            donated = packing.donated(donated, function)
        else:
            function = _prepared(function, device)
        if lasting is not None:
            return _steady(function, device, donated, lasting)
        function, checks = guarded(function, donated, device)
    work = tiers.work_of(function)
    if tiers.compiles_in_haste(work, device, xla.is_deterministic()) and is_plain(function):
        return _loaded_in_haste(function, device, checks, donated)
    return Loaded(device, _compiled(_emitted(function, donated, device), device), checks, bool(donated))


def _emitted(function: Function, donated: Donations, device: Device) -> stablehlo.Module:
    layout = device if isinstance(device, Partitioned) else None
    with _emitting, uncollected():
        return stablehlo.emit(function, donated, layout, xla.exact(device))


def _steady(function: Function, device: Device, donated: Donations, lasting: Sequence[int]) -> Loaded:
    """The executable of a function whose small inputs and results keep their places."""
    function, checks = chained(function, donated, device)
    rooms = Rooms(function, donated, lasting)
    module = stablehlo.emit(rooms.function, rooms.donated, None, xla.exact(device))
    executable = _compiled(module, device)
    again = functools.partial(_copy, executable, module, device)
    kind = Chained if checks else Loaded
    return kind(device, Steady(executable, rooms, device, again), checks, bool(donated))


def _loaded_in_haste(function: Function, device: Device, checks: list[Check], donated: Donations) -> Loaded:
    """An executable without optimisations, unless the optimised one is on disk. It is replaced by that one
    after it has run for a while."""
    module = functools.cache(lambda: _emitted(function, donated, device))
    if cache.folder() is not None:
        xla.provide(module(), device)
        stored = _stored(module(), device)
        if stored is not None:
            return Loaded(device, stored, checks, bool(donated))
    start = time.perf_counter()
    with log.timed("compile", f"for {device}, not optimised"), progress.compiling():
        steps = stepwise(function, donated, device, _step)
        executable: Any = steps or xla.compile(module(), device, optimised=False)
    seconds = (time.perf_counter() - start) / (steps.share if steps else 1)  # for all of its ops
    _count_compile()
    loaded = Loaded(device, executable, checks, bool(donated))
    loaded.executable = Hasty(executable, loaded, lambda: _optimised(module(), device), seconds)
    return loaded


def _step(function: Function, donated: Donations, device: Device) -> Callable[[], xla.Executable]:
    """What compiles a step of a program without optimisations, in any thread."""
    module = _emitted(function, donated, device)
    xla.provide(module, device)  # which one thread does
    return functools.partial(xla.compile, module, device, optimised=False)


def _for_kernels(function: Function) -> Function:
    """A program for one GPU, with kernels of our own."""
    return cut_within(absorbed(products_apart(narrowed(on_cuda(function)))))


def _prepared(function: Function, device: Device) -> Function:
    if device.mesh is not None:
        function = summed_wide(function)
    is_alone = device.mesh is None or device.mesh.size == 1
    if device.mesh is not None and is_alone:
        function = unconstrained(function)
    if device.type == "cuda":
        if not is_alone:  # XLA's partitioner knows nothing of kernels of our own
            return everywhere(function, lambda part: narrowed(on_cuda(part)), "cuda")
        function = transposed_before_loops(function, "triton")
        return everywhere(function, _for_kernels, "triton")
    if is_alone and any(isinstance(op, Convolution) for op in function.ops):
        from tenfold.engines.onednn.convolutions import by_onednn

        function = by_onednn(function)
    return rounded_once(function)


def compile_apart(function: Function, device: Device) -> xla.Executable:
    """Compile a function without remembering it: its ops may have places of their own."""
    layout = device if isinstance(device, Partitioned) else None
    with _emitting, uncollected():
        function, _ = guarded(_prepared(function, device), (), device)
        module = stablehlo.emit(function, (), layout, xla.exact(device))
    return xla.compile(module, device)


def _copy(executable: xla.Executable, module: stablehlo.Module, device: Device) -> xla.Executable:
    """The same executable once more. XLA cannot run a copy of one that was itself read from a copy."""
    if cache.folder() is not None:
        return _stored(module, device) or xla.compile(module, device)
    return xla.deserialize(xla.serialize(executable), module, device)


def _compiled(module: stablehlo.Module, device: Device) -> xla.Executable:
    """The executable of a module: the one on disk, or compiled now."""
    xla.provide(module, device)
    if isinstance(device, Partitioned) and not device.mesh.own:
        return xla.compile(module, device)  # where other processes wait for this one to do so
    stored = _stored(module, device)
    if stored is not None:
        return stored
    executable = _optimised(module, device)
    _count_compile()
    return executable


def _stored(module: stablehlo.Module, device: Device) -> xla.Executable | None:
    """The executable of a module that is on disk."""
    if cache.folder() is None:
        return None
    name = _name(module, device)
    stored = cache.load(name)
    if stored is None:
        log.write("cache", f"no program {name[:12]} on disk")
        return None
    try:
        with log.timed("cache", f"loaded {name[:12]}, {len(stored):,} bytes"):
            return xla.deserialize(stored, module, device)
    except TenfoldError as error:
        cache.discard(name, f"XLA cannot load it ({error})")
        return None


def _optimised(module: stablehlo.Module, device: Device) -> xla.Executable:
    """The executable of a module, compiled now with all optimisations, and kept on disk."""
    name = _name(module, device)
    with log.timed("compile", f"{name[:12]} for {device}"), progress.compiling():
        executable = xla.compile(module, device)
    if cache.folder() is not None:
        try:
            cache.store(name, xla.serialize(executable))
        except EngineError as error:
            cache.warn(f"a program cannot be stored: {error.message}")
    return executable


def _name(module: stablehlo.Module, device: Device) -> str:
    return cache.key(module.text(whole=True), xla.fingerprint(module, device))


def _count_compile() -> None:
    global _compiles
    with _counting:
        _compiles += 1
        if _compiles % 8 == 0:
            _relieve()


def _recent(programs: dict[Any, Any], key: Any) -> Any:
    """What is remembered under a key, which thereby becomes the most recently used."""
    program = programs.pop(key, None)
    if program is not None:
        programs[key] = program
    return program


def _remember(programs: dict[Any, Any], key: Any, program: Any) -> None:
    """Keep an executable, or a count of them, and let the least recently used go."""
    programs[key] = program
    while len(programs) > MAX_EXECUTABLES:
        del programs[next(iter(programs))]


def forget(platform: str) -> None:
    """Drop the executables for a platform, because it is compiled for in another way from now on."""
    with lock:
        for programs in (_executables, _opened):
            for key in [key for key in programs if key[0].type == platform]:
                del programs[key]


def _relieve() -> None:
    """Let executables go that have not been used for long, before the process runs out of memory mappings.

    A large program holds thousands of them, and a process may have 65,530: past that XLA's compiler crashes.
    What compilers leave behind goes back to the system, too.
    """
    give_back()
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
    """Call `observe` with every program inside the block, once, before it is compiled or runs on tier 0.
    Programs that are already compiled are left out."""
    heard: set[Any] = set()

    def once(program: Trace, device: Device) -> None:
        if program.key not in heard:
            heard.add(program.key)
            observe(program, device)

    _observers.append(once)
    try:
        yield
    finally:
        _observers.remove(once)


@contextlib.contextmanager
def counting_compiles() -> Iterator[CompileCount]:
    """Count the programs that XLA compiles inside the block. Reading the count waits for compiles in the
    background. Programs found on disk do not count."""
    count = CompileCount()
    try:
        yield count
    finally:
        count.stop()


@functools.total_ordering
class CompileCount:
    """How many programs XLA has compiled since it was made, up to `stop`."""

    def __init__(self) -> None:
        self.start = self._now()
        self.end: int | None = None

    def stop(self) -> None:
        self.end = self._now()

    @staticmethod
    def _now() -> int:
        background.wait()
        return _compiles

    def __int__(self) -> int:
        return (self._now() if self.end is None else self.end) - self.start

    def __eq__(self, other: object) -> bool:
        return int(self) == other

    def __lt__(self, other: int) -> bool:
        return int(self) < other

    def __repr__(self) -> str:
        return f"{int(self)} compiles"
