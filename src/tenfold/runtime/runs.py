"""Which tier each program runs on, by the policy in `tiers.py`, and a record of it for `explain_runs`."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import Any, NamedTuple

from tenfold.base import log
from tenfold.base.devices import Device
from tenfold.base.errors import MissingEngine, UnsupportedError
from tenfold.base.forking import forkable
from tenfold.engines import xla
from tenfold.ops.callee import Callee
from tenfold.runtime import executables, lazy_sizes, small, tiers
from tenfold.runtime.checks import Donations
from tenfold.runtime.lazy_sizes import Found
from tenfold.runtime.tiers import Decision, Tier, Work
from tenfold.trace import late_numbers
from tenfold.trace.collect import Trace
from tenfold.trace.gradient import GradientNode

KEPT = 1000  # programs whose runs are told of
SHOWN = 4  # ops of each


class Record(NamedTuple):
    """A program, the tier that it ran on, and why there."""

    names: tuple[str, ...]  # of its first ops
    more: int  # ops
    source: Any  # the user's line of the last
    tier: str
    reason: str

    def __str__(self) -> str:
        ops = ", ".join(self.names) + (f", and {self.more} more" if self.more else "")
        program = f"{ops} at {self.source.short}" if self.source else ops
        return f"{self.tier:<10} {program}  ({self.reason})"


_SMALL = Record(
    ("small programs, op by op",), 0, None, Tier.NUMPY.value, "calling an executable would take as long"
)
_lock = forkable(threading.Lock())
_records: OrderedDict[Record, int] = OrderedDict()  # how often
_seen: OrderedDict[int, int] = OrderedDict()  # programs, and programs but for their numbers


def chosen(trace: Trace, device: Device, donated: Donations) -> Tier | Found:
    """Where a program runs this time: on tier 0, by XLA, or by an executable for open sizes. It may be
    compiled meanwhile."""
    if executables.has(trace, device, donated):
        return Tier.XLA
    setting = tiers.setting()
    if setting == "numpy" and device.type == "cpu":
        _note(trace, setting, f"TENFOLD_TIER={setting}")
        return Tier.NUMPY
    work = _work(trace)
    if work.seconds <= tiers.SMALL and device.type == "cpu" and small_allowed():
        again = alike = 0  # it is never compiled, however often it is seen
        sized = None
    else:
        key, numbers = late_numbers.loose_key(trace)
        if executables.has_open(key, device):
            return Tier.XLA
        # An executable for open sizes may add up in another order than one for closed sizes.
        sized = None if xla.is_deterministic() else lazy_sizes.Lookup(trace, device, donated)
        executable = None if sized is None else sized.found()
        if executable is not None:
            return executable
        size_key = None if sized is None else sized.key
        again, alike, resized = _sighted(("same", trace.key), ("alike", key), ("sized", size_key))
        if again or alike or not resized:
            sized = None
    seen = max(again, alike) if sized is None else resized
    decision = tiers.decide(work, seen, setting=setting, device=device.type, pinned=xla.is_deterministic())
    if decision.tier is not Tier.XLA and not _has_kernels(trace):
        decision = Decision(Tier.XLA, "tier 0 has no kernel for one of its ops")
    reason = decision.reason
    if sized is not None and decision.tier is not Tier.NUMPY and sized.opens:
        reason = sized.build(wait=decision.tier is Tier.XLA) or "its sizes change"
        executable = sized.found() if decision.tier is Tier.XLA else None
        if executable is not None:
            return executable
    elif sized is None and decision.tier is Tier.BACKGROUND:
        opens = bool(numbers) and not again
        reason = executables.build_in_background(trace, device, donated, opens) or reason
    if setting != "xla":
        _note(trace, decision.tier.value, reason)
    return decision.tier


def small_allowed() -> bool:
    """Whether small programs may run op by op on tier 0."""
    return tiers.setting() != "xla" and not xla.is_deterministic()


def records() -> list[tuple[Record, int]]:
    """What ran on which tier and why, and how often, the last one last."""
    with _lock:
        return list(_records.items())


def all_records() -> list[tuple[Record, int]]:
    """The records, and before them one for all small programs that ran op by op."""
    return [(_SMALL, small.ran), *records()] if small.ran else records()


def explain_runs() -> str:
    """What ran on which tier, how often, and why: a line for each program that ran on tier 0 or was about to
    be compiled, the last one last. Small programs that ran op by op are counted together."""
    lines: dict[str, int] = {}
    for record, times in all_records():  # places in one line of the user's are one
        lines[str(record)] = lines.pop(str(record), 0) + times
    if not lines:
        return "no program was run yet, or all were found compiled"
    return "\n".join(f"{times:>6} x {line}" for line, times in lines.items())


def _sighted(*keys: Any) -> list[int]:
    """How often each of these was seen before; now it is seen once more. Their hashes are remembered, not the
    keys of long programs; two keys with one hash are at worst compiled early."""
    counts = []
    with _lock:
        for key in map(hash, keys):
            counts.append(_seen.pop(key, 0))
            _seen[key] = counts[-1] + 1
        while len(_seen) > 4 * KEPT:
            _seen.popitem(last=False)
    return counts


def _note(trace: Trace, tier: str, reason: str) -> None:
    nodes = trace.nodes
    source = next((node.source for node in reversed(nodes) if node.source), None)
    record = Record(
        tuple([node.callee.name for node in nodes[:SHOWN]]), max(len(nodes) - SHOWN, 0), source, tier, reason
    )
    if log.topics:
        log.write("tiers", str(record))
    with _lock:
        _records[record] = _records.pop(record, 0) + 1
        while len(_records) > KEPT:
            _records.popitem(last=False)


def _work(trace: Trace) -> Work:
    """What the program costs, from the types of its values."""
    ops = moved = flops = calls = 0
    for node in trace.nodes:
        times, nodes = (2, node.path) if isinstance(node, GradientNode) else (1, (node,))
        for step in nodes:  # a gradient is as a rule twice the work of what it goes back through
            work = _callee_work(step.callee)
            ops += times * work.ops
            moved += times * work.bytes
            flops += times * work.flops
            calls += times * work.calls
    return Work(ops, moved, flops, calls)


def _callee_work(callee: Callee) -> Work:
    if callee.work is None:
        callee.work = tiers.total(callee.fragment.ops)
    return callee.work


def _has_kernels(trace: Trace) -> bool:
    """Whether tier 0 can run the program: for factorisations it needs SciPy, and it cannot call C functions
    that were made known to XLA."""
    from tenfold.engines.numpy import programs

    try:
        programs.planned_once(trace)
    except (MissingEngine, UnsupportedError):
        return False
    return True
