"""What XLA's profiler sees of the programs that run."""

from __future__ import annotations

import time
import weakref
from collections.abc import Sequence
from typing import Any, NamedTuple

from tenfold.engines.xla.clients import unprofiled
from tenfold.engines.xla.compiling import Executable
from tenfold.engines.xla.door import profile_data, profiler

RUNS = 6  # of a program that is profiled, at most
LONG = 0.1  # seconds after which no further run begins


class TraceEvent(NamedTuple):
    """Something that XLA's profiler saw: times in nanoseconds since it began; of a kernel the instruction,
    and the module, program and run that it belongs to."""

    name: str
    line: str
    on_gpu: bool
    start: int
    duration: int
    instruction: str
    module: str
    program: int
    run: int


def start_trace() -> Any:
    """Begin to watch what runs; the session is for `end_trace`."""
    while unprofiled:
        profiler().register_plugin_profiler(unprofiled.pop())
    options = profiler().ProfileOptions()
    options.python_tracer_level = 0
    options.host_tracer_level = 2
    options.enable_hlo_proto = False
    return profiler().ProfilerSession(options)


def end_trace(session: Any) -> tuple[list[TraceEvent], int]:
    """What was seen, and when it began, in nanoseconds since 1970."""
    data = profile_data().ProfileData.from_serialized_xspace(session.stop())
    events, started = [], 0
    for plane in data.planes:
        started = int(dict(plane.stats).get("profile_start_time", started))
        on_gpu = plane.name.startswith("/device:GPU")
        for line in plane.lines:
            if on_gpu and not line.name.startswith("Stream"):
                continue  # the same again, by module and by op
            for event in line.events:
                facts = dict(event.stats)
                at = (int(event.start_ns), int(event.duration_ns), str(facts.get("hlo_op", "")))
                run = int(facts.get("run_id", 0)) if not on_gpu else 0
                owner = (str(facts.get("hlo_module", "")), int(facts.get("program_id", 0)), run)
                if on_gpu or at[2]:
                    events.append(TraceEvent(event.name, f"{plane.name} {line.name}", on_gpu, *at, *owner))
    return events, started


def profiled(executable: Executable, buffers: Sequence[Any]) -> tuple[list[TraceEvent], float]:
    """What the profiler saw of one run, and the seconds that it took: of a short program the quickest of
    several runs, since whatever else the machine does delays some. The first is thrown away."""
    runs: list[tuple[list[TraceEvent], float]] = []
    begun = time.perf_counter()
    while len(runs) < 2 or (len(runs) < RUNS and time.perf_counter() - begun < LONG):
        session = start_trace()
        start = time.perf_counter()
        for buffer in executable(buffers):
            buffer.block_until_ready()
        seconds = time.perf_counter() - start
        runs.append((end_trace(session)[0], seconds))
    return min(runs[1:], key=lambda run: run[1])


_numbers: weakref.WeakKeyDictionary[Executable, int] = weakref.WeakKeyDictionary()


def program_number(executable: Executable) -> int | None:
    """The number by which events on the CPU name a program, if it can be known: XLA gives a program that is
    loaded from disk several."""
    if executable.restored:
        return None
    number = _numbers.get(executable)
    if number is None:
        (module,) = executable.loaded.hlo_modules()[:1]
        number = _numbers[executable] = _id_of(module.as_serialized_hlo_module_proto())
    return number


ID = 5  # the field of an HloModuleProto
VARINT, BYTES = 0, 2  # how a protocol buffer writes a field


def _id_of(module: bytes) -> int:
    """The id in an HloModuleProto, whose fields stand in the order of their numbers; 0 is not written."""
    position = 0
    while position < len(module):
        key, position = _varint(module, position)
        field, kind = key >> 3, key & 7
        if field >= ID:
            return _varint(module, position)[0] if (field, kind) == (ID, VARINT) else 0
        length, position = _varint(module, position)
        position += length if kind == BYTES else 0
    return 0


def _varint(data: bytes, position: int) -> tuple[int, int]:
    """A number of seven bits a byte, the lowest first, and the position behind it."""
    number = shift = 0
    while True:
        byte = data[position]
        number |= (byte & 0x7F) << shift
        position, shift = position + 1, shift + 7
        if byte < 0x80:
            return number, position
