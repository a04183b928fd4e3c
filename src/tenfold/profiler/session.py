"""`profile`: a stretch of a program's run, and where its time went."""

from __future__ import annotations

import contextlib
import enum
import os
import time
from collections.abc import Callable, Iterable
from typing import Any

from tenfold.base.errors import ArgumentError
from tenfold.engines import xla
from tenfold.profiler import peaks, report
from tenfold.profiler.events import Average, Kernel, Ran, averages, kernels, on_tier0
from tenfold.profiler.spans import Span, is_active, recording


class ProfilerActivity(enum.Enum):
    """What to profile. It has no effect: everything is profiled."""

    CPU = 0
    CUDA = 2


class ProfilerAction(enum.Enum):
    """What a profiler does at a step."""

    NONE = 0
    WARMUP = 1
    RECORD = 2
    RECORD_AND_SAVE = 3


Schedule = Callable[[int], ProfilerAction]
RECORDS = (ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE)


def schedule(
    *, wait: int, warmup: int, active: int, repeat: int = 0, skip_first: int = 0, skip_first_wait: int = 0
) -> Schedule:
    """A schedule of steps: wait, warm up, record. It repeats `repeat` times, or without end."""
    cycle = wait + warmup + active

    def action(step: int) -> ProfilerAction:
        step -= skip_first
        if step < 0:
            return ProfilerAction.NONE
        if skip_first_wait:  # the first cycle does not wait
            step += wait
        if repeat > 0 and step >= repeat * cycle:
            return ProfilerAction.NONE
        place = step % cycle
        if place < wait:
            return ProfilerAction.NONE
        if place < wait + warmup:
            return ProfilerAction.WARMUP
        return ProfilerAction.RECORD_AND_SAVE if place == cycle - 1 else ProfilerAction.RECORD

    return action


class Averages(list[Average]):
    """What ran, by name."""

    def __init__(self, found: Iterable[Average], limits: dict[bool, peaks.Peaks | None]):
        super().__init__(found)
        self._limits = limits

    def table(
        self, sort_by: str | None = None, row_limit: int = 100, max_src_column_width: int = 75,
        max_name_column_width: int = 55, max_shapes_column_width: int = 80, header: str | None = None,
        top_level_events_only: bool = False,
    ) -> str:  # fmt: skip
        """The rows as text, those that took longest first unless `sort_by` says otherwise."""
        text = report.table(self, sort_by, row_limit, self._limits)
        return text if header is None else f"{header}\n{text}"

    @property
    def self_cpu_time_total(self) -> float:
        return sum(each.self_cpu_time_total for each in self)


class profile(contextlib.ContextDecorator):
    """Profile a block: kernels on the CPU and on GPUs, measured by XLA's profiler, and time on the host.

    Each kernel is shown with the user's lines that it computes, the ops that it fuses, its arithmetic and
    memory traffic, and how close these are to the limits of the device.

        with tn.profile() as prof:
            step(x, y)
        print(prof.key_averages().table(row_limit=10))
        prof.export_chrome_trace("trace.json")

    With a `schedule`, call `step()` after each step of the program; `on_trace_ready(prof)` is called after
    each cycle. PyTorch's other arguments are accepted; what they request is always recorded.
    """

    def __init__(
        self,
        *,
        activities: Iterable[ProfilerActivity] | None = None,
        schedule: Schedule | None = None,
        on_trace_ready: Callable[[profile], Any] | None = None,
        record_shapes: bool = False,
        profile_memory: bool = False,
        with_stack: bool = False,
        with_flops: bool = False,
        with_modules: bool = False,
        experimental_config: Any = None,
        execution_trace_observer: Any = None,
        acc_events: bool = False,
        use_cuda: bool | None = None,
        **others: Any,
    ):
        self._schedule = schedule
        self.on_trace_ready = on_trace_ready
        self.step_num = 0
        self._recorded: list[Span] = []  # while it is taken
        self._spans: list[Span] = []
        self._kernels: list[Kernel] = []
        self._ran: list[Ran] = []
        self._started = 0
        self._session: Any = None
        self._block: Any = None

    # Taking it

    def __enter__(self) -> profile:
        self.start()
        return self

    def __exit__(self, *error: Any) -> None:
        self.stop()

    def start(self) -> None:
        if self._action(0) in RECORDS:
            self._begin()

    def stop(self) -> None:
        if self._session is not None:
            self._end()
            if self.on_trace_ready is not None:
                self.on_trace_ready(self)

    def step(self) -> None:
        """Mark the start of the next step of the program."""
        before, now = self._action(self.step_num), self._action(self.step_num + 1)
        self.step_num += 1
        if before is ProfilerAction.RECORD_AND_SAVE and self._session is not None and self._schedule:
            self.stop()
        if now in RECORDS and self._session is None:
            self._begin()

    def _action(self, step: int) -> ProfilerAction:
        return ProfilerAction.RECORD if self._schedule is None else self._schedule(step)

    def _begin(self) -> None:
        if is_active():
            raise ArgumentError("a profile is being taken already", help="take one after the other")
        block = recording()
        spans = block.__enter__()
        try:
            started = time.time_ns()
            self._session = xla.start_trace()
        except BaseException:
            block.__exit__(None, None, None)
            raise
        self._block, self._recorded, self._started = block, spans, started

    def _end(self) -> None:
        session, self._session = self._session, None
        try:
            xla.synchronize()
        finally:
            try:
                events, started = xla.end_trace(session)
            finally:
                self._block.__exit__(None, None, None)
        self._started = started or self._started
        self._kernels, self._ran = kernels(events)
        self._spans = [each for each in self._recorded if each.kind != "kernel"]
        self._kernels += on_tier0(self._recorded, self._started)
        self._kernels.sort(key=lambda each: each.start)

    # What it found

    def events(self) -> list[Kernel]:
        """Every run of a kernel, in order."""
        return list(self._kernels)

    def spans(self) -> list[Span]:
        """Time on the host: phases of Tenfold, and blocks of `record_function`."""
        return list(self._spans)

    def key_averages(self, group_by_input_shape: bool = False, group_by_stack_n: int = 0) -> Averages:
        """Kernels and phases of the host by name, the longest first."""
        gpu = xla.device_kind("cuda") if any(kernel.on_gpu for kernel in self._kernels) else None
        limits = {True: peaks.of_gpu(gpu) if gpu else None, False: peaks.of_cpu()}
        return Averages(averages(self._kernels, self._spans), limits)

    def memory(self) -> list[Ran]:
        """The programs that ran, with the memory that each holds."""
        return list(self._ran)

    def memory_table(self, row_limit: int = 10) -> str:
        """The most memory that each program holds, and the lines that hold it."""
        return report.memory_table(self._ran, row_limit)

    def export_chrome_trace(self, path: str | os.PathLike[str]) -> None:
        """Write a timeline for chrome://tracing and Perfetto."""
        text = report.chrome_trace(self._kernels, self._spans, self._ran, self._started)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)


def tensorboard_trace_handler(
    dir_name: str, worker_name: str | None = None, use_gzip: bool = False
) -> Callable[[profile], None]:
    """A function for `on_trace_ready` that writes each trace to a file in a folder."""

    def write(prof: profile) -> None:
        os.makedirs(dir_name, exist_ok=True)
        name = worker_name or f"{os.uname().nodename}_{os.getpid()}"
        prof.export_chrome_trace(os.path.join(dir_name, f"{name}.{time.time_ns()}.pt.trace.json"))

    return write
