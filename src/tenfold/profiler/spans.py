"""Time on the host: what Tenfold does around a program's kernels, and the parts that the user named."""

from __future__ import annotations

import contextlib
import functools
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ContextDecorator
from typing import Any, NamedTuple

from tenfold.engines import xla
from tenfold.runtime import calls, evaluate, executables, recordings, runs, small, specialization
from tenfold.trace.collect import Trace
from tenfold.trace.graph import Node, Value


class Span(NamedTuple):
    """A stretch of time on the host, in nanoseconds of `time.time_ns`."""

    name: str
    kind: str  # "host" for Tenfold's own work, "user" for what `record_function` names, "kernel" for tier 0
    start: int
    end: int
    thread: int
    inner: int  # nanoseconds of other spans inside
    ops: tuple[str, ...] = ()  # of a program on tier 0, and the user's lines that they are of
    lines: tuple[str, ...] = ()


# The functions that are timed while a profile is taken: where they stand, and what they do.
PHASES: tuple[tuple[Any, str, str], ...] = (
    (recordings, "record_call", "tenfold: recording a function"),
    (specialization.Specialization, "fits", "tenfold: guards"),
    (specialization.Specialization, "_lend", "tenfold: lending memory"),
    (specialization.Specialization, "_place", "tenfold: placing results"),
    (executables, "lower", "tenfold: lowering"),
    (executables, "_compiled", "tenfold: compiling by XLA"),
    (evaluate, "collect", "tenfold: collecting the Trace"),
    (runs, "chosen", "tenfold: choosing a tier"),
    (xla.Executable, "__call__", "tenfold: starting a program"),
    (xla, "fetch", "tenfold: waiting for a result"),
    (xla, "number", "tenfold: waiting for a number"),
    (xla, "put", "tenfold: copying to the device"),
    (xla, "copy", "tenfold: copying on the device"),
)
NAMED = 4  # ops in the name of a program on tier 0
assert calls.record_call is recordings.record_call

_recorded: list[Span] | None = None  # of the profile that is being taken
_open = threading.local()


def is_active() -> bool:
    return _recorded is not None


@contextlib.contextmanager
def _timed(name: str, kind: str) -> Iterator[None]:
    stack = _open.__dict__.setdefault("stack", [])
    start = time.time_ns()
    stack.append(0)
    try:
        yield
    finally:
        end, inner = time.time_ns(), stack.pop()
        if stack:
            stack[-1] += end - start
        if _recorded is not None:
            _recorded.append(Span(name, kind, start, end, threading.get_ident(), inner))


class record_function(ContextDecorator):
    """A named part of a program: profiles tell how long it took on the host."""

    def __init__(self, name: str, args: str | None = None):
        self.name, self.args = name, args

    def __enter__(self) -> record_function:
        self._span = _timed(self.name, "user") if _recorded is not None else contextlib.nullcontext()
        self._span.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self._span.__exit__(*error)


@contextlib.contextmanager
def recording() -> Iterator[list[Span]]:
    """Time the phases inside the block, in all threads."""
    global _recorded
    from tenfold.engines.numpy import programs

    timed = {(owner, name): _timing(getattr(owner, name), title) for owner, name, title in PHASES}
    timed[small, "run"] = _on_tier0(small.run, _nodes_of_values)
    timed[programs, "run_program"] = _on_tier0(programs.run_program, _nodes_of_program)
    before = [(owner, name, getattr(owner, name)) for owner, name in timed]
    found: list[Span] = []
    _recorded = found
    for (owner, name), function in timed.items():
        setattr(owner, name, function)
    try:
        yield found
    finally:
        for owner, name, function in before:
            setattr(owner, name, function)
        _recorded = None


def _timing(function: Callable[..., Any], name: str) -> Callable[..., Any]:
    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        with _timed(name, "host"):
            return function(*args, **kwargs)

    return call


# Tier 0: a program there is one kernel


def _on_tier0(function: Callable[..., Any], nodes_of: Callable[[Any], Iterable[Node]]) -> Callable[..., Any]:
    """A function that runs a program, told by its nodes; or gives False, if it left that to others."""

    @functools.wraps(function)
    def call(given: Any, *args: Any) -> Any:
        nodes = list(nodes_of(given))
        start = time.time_ns()
        result = function(given, *args)
        end = time.time_ns()
        if result is not False and nodes and _recorded is not None:
            stack = _open.__dict__.get("stack")
            if stack:
                stack[-1] += end - start
            ops = tuple([node.callee.name for node in nodes])
            lines = tuple(dict.fromkeys([str(node.source.short) for node in nodes if node.source]))
            name = "numpy: " + " ".join(ops[:NAMED]) + (" …" if len(ops) > NAMED else "")
            _recorded.append(Span(name, "kernel", start, end, threading.get_ident(), 0, ops, lines))
        return result

    return call


def _nodes_of_program(program: Trace) -> list[Node]:
    return program.nodes


def _nodes_of_values(values: Sequence[Value]) -> Iterable[Node]:
    """The nodes that these values wait for, in order, as far as a small program goes."""
    found: dict[Node, None] = {}

    def visit(value: Value) -> None:
        node = value.node
        if value.buffer is not None or node is None or node in found or node.depth > small.MOST:
            return
        for each in node.inputs:
            visit(each)
        found[node] = None

    for value in values:
        visit(value)
    return found
