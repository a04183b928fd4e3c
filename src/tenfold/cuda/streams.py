"""CUDA streams, events and graphs, by PyTorch's names. XLA orders the work of a device itself, so streams
have no effect. An event records the time at which the work before it was done. CUDA graphs are refused."""

from __future__ import annotations

import contextlib
import time
from typing import Any

from tenfold.base.devices import Device
from tenfold.base.errors import ArgumentError, UnsupportedError, located

_HELP = "use tenfold.compile: XLA makes graphs of CUDA's of its programs by itself"


class Event:
    """A point in a device's work. `record` notes the time; evaluate the work before it in order to time
    it."""

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
        """Does nothing: reading a value waits for it."""

    @located
    def elapsed_time(self, end_event: Event) -> float:
        """Milliseconds from this event to another."""
        if self._time is None or end_event._time is None:
            raise ArgumentError("both events must be recorded before the time between them is known")
        return 1000.0 * (end_event._time - self._time)


class Stream:
    """A queue of a device's work. It has no effect, since XLA has its own."""

    def __init__(self, device: Any = None, priority: int = 0, **_: Any):
        self.device = Device("cuda" if device is None else device)
        self.priority, self.stream_id, self.cuda_stream = priority, 0, 0

    def synchronize(self) -> None:
        """Does nothing: reading a value waits for it."""

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
    """A block whose work goes to a stream. It has no effect, since XLA orders all work."""

    def __init__(self, stream: Any = None):
        super().__init__(stream)


def stream(stream: Any) -> StreamContext:
    """A block whose work goes to a stream."""
    return StreamContext(stream)


def current_stream(device: Any = None) -> Stream:
    """The only stream of the device: XLA orders the work."""
    return Stream(device)


default_stream = current_stream


def set_stream(stream: Any) -> None:
    """Does nothing: XLA orders the work."""


def is_current_stream_capturing() -> bool:
    """False: XLA captures CUDA graphs itself."""
    return False


class CUDAGraph:
    """Refused: XLA makes CUDA graphs itself."""

    @located
    def __init__(self, keep_graph: bool = False):
        raise UnsupportedError("graphs of CUDA's are not captured by hand", help=_HELP)


class graph:
    """Refused: XLA makes CUDA graphs itself."""

    @located
    def __init__(self, cuda_graph: Any, **options: Any):
        raise UnsupportedError("graphs of CUDA's are not captured by hand", help=_HELP)
