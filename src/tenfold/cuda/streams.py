"""Streams, events and graphs of CUDA, by PyTorch's names. XLA orders a device's work itself, so a stream
orders nothing further; an event tells the time at which the work before it was done; a graph of CUDA's is
refused."""

from __future__ import annotations

import contextlib
import time
from typing import Any

from tenfold.base.devices import Device
from tenfold.base.errors import ArgumentError, UnsupportedError, located

_HELP = "use tenfold.compile: XLA makes graphs of CUDA's of its programs by itself"


class Event:
    """A point in a device's work. `record` notes the time: evaluate what comes before it to time that."""

    def __init__(
        self, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False, **_: Any
    ):
        self.enable_timing = enable_timing
        self._time: float | None = None

    def record(self, stream: Any = None) -> None:
        self._time = time.perf_counter()

    def query(self) -> bool:
        """Whether the work before the event is done: it is."""
        return True

    def wait(self, stream: Any = None) -> None:
        """Does nothing: XLA orders the work."""

    def synchronize(self) -> None:
        """Nothing: who reads a value waits for it."""

    @located
    def elapsed_time(self, end_event: Event) -> float:
        """Milliseconds from this event to another."""
        if self._time is None or end_event._time is None:
            raise ArgumentError("both events must be recorded before the time between them is known")
        return 1000.0 * (end_event._time - self._time)


class Stream:
    """A queue of a device's work. XLA has its own, so this one orders nothing."""

    def __init__(self, device: Any = None, priority: int = 0, **_: Any):
        self.device = Device("cuda" if device is None else device)
        self.priority, self.stream_id, self.cuda_stream = priority, 0, 0

    def synchronize(self) -> None:
        """Nothing: who reads a value waits for it."""

    def query(self) -> bool:
        return True

    def wait_stream(self, stream: Any) -> None:
        """Does nothing: XLA orders the work."""

    def wait_event(self, event: Event) -> None:
        """Does nothing: XLA orders the work."""

    def record_event(self, event: Event | None = None) -> Event:
        event = Event() if event is None else event
        event.record(self)
        return event

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *error: Any) -> None:
        pass


ExternalStream = Stream


class StreamContext(contextlib.nullcontext):
    """A block whose work goes to a stream: XLA orders it as any other."""

    def __init__(self, stream: Any = None):
        super().__init__(stream)


def stream(stream: Any) -> StreamContext:
    """A block whose work goes to a stream."""
    return StreamContext(stream)


def current_stream(device: Any = None) -> Stream:
    """The device's stream, of which there is one: XLA orders the work."""
    return Stream(device)


default_stream = current_stream


def set_stream(stream: Any) -> None:
    """Does nothing: XLA orders the work."""


def is_current_stream_capturing() -> bool:
    """Whether a CUDA graph is being captured: never, XLA makes them itself."""
    return False


class CUDAGraph:
    """A graph of CUDA's, which is refused: XLA makes them by itself."""

    @located
    def __init__(self, keep_graph: bool = False):
        raise UnsupportedError("graphs of CUDA's are not captured by hand", help=_HELP)


class graph:
    """The block that would be captured, which is refused."""

    @located
    def __init__(self, cuda_graph: Any, **options: Any):
        raise UnsupportedError("graphs of CUDA's are not captured by hand", help=_HELP)
