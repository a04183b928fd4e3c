"""Explains the programs that a script evaluates: it records them while the script runs and compiles them when
it has ended.

Programs that differ in Python numbers alone, such as a learning rate, count as one.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from types import CodeType
from typing import Any

from tenfold.base.devices import Device
from tenfold.base.source import Source
from tenfold.explain.explanation import Explanation, drafted
from tenfold.explain.modules import Paths, watching_modules
from tenfold.runtime import executables
from tenfold.trace.collect import Trace
from tenfold.trace.late_numbers import loose_key

KEPT = 12  # programs on one page, the largest of those that ran
Concerns = Callable[[CodeType], bool]


class Observed:
    """The programs of a script so far, each once. With `concerns`, only those with ops recorded by code for
    which it is true."""

    def __init__(self, paths: Paths, concerns: Concerns | None = None):
        self.paths = paths
        self.concerns = concerns
        self.seen: set[Any] = set()
        self.drafts: list[tuple[int, int, Callable[[], Explanation]]] = []  # nodes, order, what finishes it

    def observe(self, trace: Trace, device: Device) -> None:
        key, _numbers = loose_key(trace)
        if key in self.seen or not trace.nodes or not self._is_wanted(trace):
            return
        self.seen.add(key)
        smallest = min(self.drafts, default=None, key=lambda draft: draft[0])
        if len(self.drafts) >= KEPT and smallest is not None:
            if smallest[0] >= len(trace.nodes):
                return
            self.drafts.remove(smallest)
        finish = drafted(trace, device, described(trace), self.paths)
        self.drafts.append((len(trace.nodes), len(self.seen), finish))

    def _is_wanted(self, trace: Trace) -> bool:
        if self.concerns is None:
            return True
        sources = {node.source for node in trace.nodes if isinstance(node.source, Source)}
        return any(self.concerns(source[0]) for source in sources)

    def explanations(self) -> list[Explanation]:
        """The programs, the one with most FlatIR ops first; of equals, the one that records most."""
        finished = [finish() for _, _, finish in sorted(self.drafts, key=lambda draft: draft[1])]
        return sorted(finished, key=lambda explanation: (-len(explanation.ops), -len(explanation.nodes)))


@contextlib.contextmanager
def observing_programs(concerns: Concerns | None = None) -> Iterator[Observed]:
    """A block whose programs are looked at as they are about to run."""
    with watching_modules() as paths:
        observed = Observed(paths, concerns)
        with executables.observing(observed.observe):
            yield observed


def described(trace: Trace) -> str:
    """A program in a few words: the function and place of its last line, and how large it is."""
    last = next((node.source for node in reversed(trace.nodes) if node.source), None)
    count = len(trace.nodes)
    size = f"{count} node" + ("s" if count != 1 else "")
    if last is None:
        return size
    code = last[0] if isinstance(last, Source) else None
    # Code outside of functions and lambdas are named "<…>"; Purple's functions have names of its compiler's.
    named = code is not None and not code.co_name.startswith("<") and not code.co_filename.endswith(".purple")
    return f"{code.co_name} at {last.short}, {size}" if code and named else f"{last.short}, {size}"
