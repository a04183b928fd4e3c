"""Which tier each program runs on, by the policy in `tiers.py`, and a record of it for `explain_runs`."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import Any, NamedTuple

from tenfold.base.bounded import Bounded
from tenfold.base.devices import Device
from tenfold.base.errors import MissingEngine, UnsupportedError
from tenfold.base.forking import forkable
from tenfold.engines import xla
from tenfold.runtime import executables, late, tiers
from tenfold.runtime.checks import Donations
from tenfold.runtime.tiers import Decision, Tier, Work
from tenfold.trace.collect import Trace
from tenfold.trace.gradient import GradientNode
from tenfold.trace.graph import Node

KEPT = 1000  # programs whose runs are told of


class Record(NamedTuple):
    """How often a program ran on a tier, and why there."""

    program: str
    tier: str
    reason: str
    times: int


_lock = forkable(threading.Lock())
_records: OrderedDict[tuple[str, str, str], Record] = OrderedDict()
_seen: OrderedDict[Any, int] = OrderedDict()  # programs, and programs but for their numbers
_works = Bounded(4096)


def on_tier0(trace: Trace, device: Device, donated: Donations) -> bool:
    """Whether a program runs on tier 0 this time; the program may be compiled meanwhile."""
    if device.type != "cpu" or executables.has(trace, device, donated):
        return False
    setting = tiers.setting()
    if setting == "xla":
        return False
    key, numbers = late.loose_key(trace)
    if executables.has_open(key, device):
        return False
    again, alike = _sighted(("same", trace.key)), _sighted(("alike", key))
    work = _work(trace)
    decision = tiers.decide(work, max(again, alike), setting=setting, pinned=xla.is_deterministic())
    if decision.tier is not Tier.XLA and not setting and not _has_kernels(trace):
        decision = Decision(Tier.XLA, "tier 0 has no kernel for one of its ops")
    reason = decision.reason
    if decision.tier is Tier.BACKGROUND:
        opens = bool(numbers) and not again
        reason = executables.build_in_background(trace, device, donated, opens) or reason
    _note(trace, decision.tier.value, reason)
    return decision.tier is not Tier.XLA


def explain_runs() -> str:
    """What ran on which tier, how often, and why: a line for each program that ran on tier 0 or was about to
    be compiled, the last one last."""
    with _lock:
        records = list(_records.values())
    if not records:
        return "no program was run yet, or all were found compiled"
    return "\n".join(f"{each.times:>6} x {each.tier:<10} {each.program}  ({each.reason})" for each in records)


def _sighted(key: Any) -> int:
    """How often a program was seen before; now it is seen once more."""
    with _lock:
        count = _seen.pop(key, 0)
        _seen[key] = count + 1
        while len(_seen) > 4 * KEPT:
            _seen.popitem(last=False)
    return count


def _note(trace: Trace, tier: str, reason: str) -> None:
    program = _described(trace)
    key = (program, tier, reason)
    with _lock:
        known = _records.pop(key, None)
        _records[key] = Record(program, tier, reason, 1 if known is None else known.times + 1)
        while len(_records) > KEPT:
            _records.popitem(last=False)


def _described(trace: Trace) -> str:
    names = [node.callee.name for node in trace.nodes]
    shown = ", ".join(names[:4]) + (f", and {len(names) - 4} more" if len(names) > 4 else "")
    last = next((node.source for node in reversed(trace.nodes) if node.source), None)
    return f"{shown} at {last.short}" if last else shown


def _work(trace: Trace) -> Work:
    """What the program costs, from the types of its values."""
    total = Work()
    for node in trace.nodes:
        total = total.plus(_node_work(node))
    return total


def _node_work(node: Node) -> Work:
    if isinstance(node, GradientNode):  # as a rule twice the work of what it goes back through
        total = Work()
        for each in node.path:
            total = total.plus(_node_work(each), 2)
        return total
    callee = node.callee
    return _works.get(callee.id, lambda: tiers.total(callee.fragment.ops))


def _has_kernels(trace: Trace) -> bool:
    """Whether tier 0 can run the program: for factorisations it needs SciPy, and it cannot call C functions
    that were made known to XLA."""
    from tenfold.engines.numpy import programs

    try:
        programs.planned_once(trace)
    except (MissingEngine, UnsupportedError):
        return False
    return True
