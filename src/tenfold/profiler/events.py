"""What ran, as XLA's profiler saw it: kernels, each with the program's instruction that it runs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from tenfold.engines import xla
from tenfold.profiler.hlo import Instruction, Program
from tenfold.profiler.memory import Memory, liveness
from tenfold.profiler.spans import Span


@dataclass
class Kernel:
    """One run of a kernel: when, in nanoseconds since the profile began, where, and of which instruction."""

    name: str
    start: int
    duration: int
    line: str  # the stream or thread
    on_gpu: bool
    instruction: Instruction | None
    program: int  # which of the profile's programs


@dataclass
class Average:
    """All runs of one kernel, or of one phase on the host. Times are in microseconds, as PyTorch has them."""

    key: str
    count: int = 0
    cpu_time_total: float = 0.0
    self_cpu_time_total: float = 0.0
    device_time_total: float = 0.0
    flops: float = 0.0
    bytes: float = 0.0
    lines: list[str] = field(default_factory=list)
    fused: list[str] = field(default_factory=list)
    is_kernel: bool = False
    on_gpu: bool = False

    @property
    def self_device_time_total(self) -> float:
        return self.device_time_total

    @property
    def cuda_time_total(self) -> float:
        return self.device_time_total

    self_cuda_time_total = cuda_time_total

    @property
    def time(self) -> float:
        """What it took itself, wherever it ran."""
        return self.device_time_total if self.on_gpu else self.self_cpu_time_total

    @property
    def cpu_time(self) -> float:
        return self.cpu_time_total / max(1, self.count)

    @property
    def device_time(self) -> float:
        return self.device_time_total / max(1, self.count)

    cuda_time = device_time


@dataclass
class Ran:
    """A program that ran while the profile was taken."""

    program: Program
    memory: Memory
    bytes: int  # that XLA gives it


def kernels(trace: Iterable[xla.TraceEvent]) -> tuple[list[Kernel], list[Ran]]:
    """The kernels in a trace, and the programs that they are of."""
    groups: dict[tuple[str, int, int], list[xla.TraceEvent]] = {}
    for event in trace:
        if event.instruction:
            groups.setdefault((event.module, event.program, event.run), []).append(event)
    known = _programs([events[0] for events in groups.values()])
    runs: list[Kernel] = []
    ran: dict[int, Ran] = {}
    places: dict[int, int] = {}
    for events in groups.values():
        place = _matching(events, known)
        instructions = {} if place is None else known[place].instructions
        if place is not None and place not in ran:
            program, executable = known[place].program, known[place].executable
            ran[place] = Ran(program, liveness(program), executable.memory())
            places[place] = len(places)
        for event in events:
            name = _label(event, instructions)
            at = -1 if place is None else places[place]
            runs.append(
                Kernel(
                    name, event.start, event.duration, event.line, event.on_gpu, instructions.get(name), at
                )
            )
    return sorted(runs, key=lambda kernel: kernel.start), list(ran.values())


class _Known(NamedTuple):
    """A program that may have run, and its instructions by name."""

    executable: xla.Executable
    number: int | None
    program: Program
    instructions: dict[str, Instruction]


def _programs(events: Sequence[xla.TraceEvent]) -> list[_Known]:
    """The programs that these events may be of: to read the text of all that there are takes long."""
    on_gpu, numbers = any(event.on_gpu for event in events), {event.program for event in events}
    programs = []
    for executable in xla.executables():
        number = xla.program_number(executable)
        if on_gpu or number is None or number in numbers:
            program = Program(executable.hlo())
            programs.append(_Known(executable, number, program, program.instructions()))
    return programs


def on_tier0(spans: Iterable[Span], started: int) -> list[Kernel]:
    """The programs that ran on tier 0, each as one kernel."""
    return [
        Kernel(
            span.name, span.start - started, span.end - span.start, "numpy", False,
            Instruction(span.name, "", [], [], "", [], list(span.lines), fused=list(span.ops)), -1,
        )
        for span in spans
        if span.kind == "kernel"
    ]  # fmt: skip


def _label(event: xla.TraceEvent, instructions: dict[str, Instruction]) -> str:
    """The instruction that a kernel is of. XLA reports those of a CUDA graph as the graph's: then it is the
    one that the kernel is named after, or for a library's kernel its own name."""
    if not event.instruction.startswith("command_buffer"):
        return event.instruction
    stem, _, number = event.name.rpartition("_")
    dotted = f"{stem}.{number}" if number.isdigit() else event.name
    return dotted if dotted in instructions else event.name


def _matching(events: Sequence[xla.TraceEvent], programs: Sequence[_Known]) -> int | None:
    """The place of the program that has most of these events' instructions, if there is one; of several the
    one with their number, then the one with the fewest other instructions. On GPUs numbers say nothing: they
    are the plugin's own."""
    best = (0, False, 0, -1)
    for i, (_, number, _, instructions) in enumerate(programs):
        matched = len({name for event in events if (name := _label(event, instructions)) in instructions})
        is_numbered = not events[0].on_gpu and number == events[0].program
        best = max(best, (matched, is_numbered, -len(instructions), i))
    return best[-1] if best[0] else None


def averages(kernels: Sequence[Kernel], spans: Sequence[Span]) -> list[Average]:
    """Kernels and phases of the host by their names, those that took longest first."""
    rows: dict[tuple[int, str], Average] = {}
    for kernel in kernels:
        average = rows.setdefault((kernel.program, kernel.name), Average(kernel.name, is_kernel=True))
        average.count += 1
        average.on_gpu = kernel.on_gpu
        if kernel.on_gpu:
            average.device_time_total += kernel.duration / 1e3
        else:
            average.cpu_time_total += kernel.duration / 1e3
            average.self_cpu_time_total += kernel.duration / 1e3
        if kernel.instruction is not None:
            average.flops += kernel.instruction.flops
            average.bytes += kernel.instruction.bytes
            average.lines, average.fused = kernel.instruction.lines, kernel.instruction.fused
    for span in spans:
        average = rows.setdefault((-2, span.name), Average(span.name))
        average.count += 1
        average.cpu_time_total += (span.end - span.start) / 1e3
        average.self_cpu_time_total += (span.end - span.start - span.inner) / 1e3
    return sorted(rows.values(), key=lambda row: -row.time)
