"""Run-time checks: what a program finds wrong with its data, such as an index out of range, and when an error
is raised for it.

A program that writes over its inputs must lose nothing when a check fails: it gives them back unchanged. On a
GPU nobody waits for the verdict: the error is raised by whoever reads a result, or a few runs later, or else
printed when the program ends. Reading a verdict costs as much as a tenth of a short call, so with
`mode="reduce-overhead"` a run passes its verdict to the next, and one in several is read.
"""

from __future__ import annotations

import atexit
import functools
import os
import sys
import threading
from collections.abc import Sequence
from typing import Any

import numpy as np

from tenfold import flat
from tenfold.base import dtypes
from tenfold.base.devices import Device
from tenfold.base.errors import EngineError, TenfoldError
from tenfold.base.forking import forkable
from tenfold.base.late import on_first_use
from tenfold.engines import xla
from tenfold.flat.ir import Function, TensorType, in_order, replay
from tenfold.flat.structured import Case, Check
from tenfold.runtime.reduced_overhead import Steady

with on_first_use(__name__):
    from tenfold.flat.channels_last import channels_last
    from tenfold.flat.guarded_writes import idle_when_failing
    from tenfold.flat.in_place import updated_last


Donations = tuple[tuple[int, int], ...]  # which leaf gives its memory to which result

VERDICT = dtypes.int32
LARGE = 1 << 20  # bytes of state that are better not read and written once more
CHEAP = 1 << 20  # elements that checks may compute on their own


def guarded(function: Function, donated: Donations, device: Device) -> tuple[Function, list[Check]]:
    """The program as one whose donated parameters survive a check that fails; and its checks."""
    checks = [op for op in function.ops if isinstance(op, Check)]
    idle, others = idle_when_failing(function, checks, donated, by_branches=device.type == "cpu")
    if device.type != "cpu":  # XLA for GPUs copies no weight, and waits for the processor at a branch
        return _restoring(idle, checks, others), checks
    if _costly(function, checks, others):
        return _branching(function, checks, donated), checks
    return _restoring(updated_last(idle, donated), checks, others), checks


def chained(function: Function, donated: Donations, device: Device) -> tuple[Function, list[Check]]:
    """As `guarded`, for a program whose last parameter is the verdict of the run before and whose last result
    is its own. After a run that failed, the next ones change nothing and pass its verdict on. A program
    without checks gets neither."""
    if not any(isinstance(op, Check) for op in function.ops):
        return guarded(function, donated, device)
    before = flat.Value(TensorType(VERDICT, ()))
    follows = flat.eq(before, 0)
    results = [flat.check(function.results[0], follows, EngineError, "an earlier run failed")]
    params = [*function.params, before]
    function, checks = guarded(
        Function(params, [*results, *function.results[1:]], function.name), donated, device
    )
    if any(isinstance(op, Check) for op in function.ops):
        results = [*function.results, verdict_of(checks)]
        function = without_checks(Function(function.params, results, function.name))
    *results, verdict = function.results
    return Function(params, [*results, flat.where(follows, verdict, before)], function.name), checks


class Loaded:
    """An executable with its run-time checks, whose verdict is its last result. `donated`: it writes over its
    inputs."""

    __slots__ = ("checks", "device", "donated", "executable")

    def __init__(
        self, device: Device, executable: xla.Executable | Steady, checks: Sequence[Check], donated: bool
    ):
        self.device = device
        self.executable: Any = executable  # or one that was compiled in haste: see `unoptimized.py`
        self.checks = tuple(checks)
        self.donated = donated

    def __call__(
        self, buffers: Sequence[Any], held: list[Any], ahead: bool = False
    ) -> tuple[list[Any], TenfoldError | None]:
        """The results, the verdict among them, and the error of a check that failed. Then the results must be
        kept nevertheless where they replace what was donated: the program made them equal to it. `held` has
        the results even if an interrupt keeps this from giving them. To run `ahead` is not to wait for the
        verdict on a GPU, even where nothing is donated."""
        results = self.executable(buffers, held)
        if not self.checks:
            return results, None
        if (self.donated or ahead) and self.device.type != "cpu":
            if self.device.mesh is None:
                xla.fetch_ahead(results[-1])
            _settle_later(self, results[-1:])
            return results, None
        return results, self.failure(results)

    def failure(self, results: list[Any]) -> Any:
        """The error of the first check that failed; its number, counted from 1, is the verdict."""
        if not self.checks:
            return None
        verdict = xla.number(results[-1], VERDICT, self.device)
        if not verdict:
            return None
        failed = self.checks[verdict - 1]
        error = failed.error(failed.message)
        return error.located("", failed.source, []) if isinstance(error, TenfoldError) else error


class Chained(Loaded):
    """A program that `chained` made: one verdict in `RUNS` is read, while later runs are under way."""

    __slots__ = ("_before", "_lock", "_read", "_runs", "_zero")

    def __init__(self, device: Device, executable: Steady, checks: Sequence[Check], donated: bool):
        super().__init__(device, executable, checks, donated)
        self._lock = forkable(threading.Lock())
        self._zero = xla.put(np.zeros((), VERDICT.numpy), device)
        self._before = self._zero  # the verdict of the last run
        self._read: Any = None  # a verdict that is on its way to the host
        self._runs = 0  # since then, or since the first one that is not settled

    def __call__(
        self, buffers: Sequence[Any], held: list[Any], ahead: bool = False
    ) -> tuple[list[Any], TenfoldError | None]:
        with self._lock:
            results = self.executable([*buffers, self._before], held)
            self._before = results[-1]
            self._runs += 1
            if self._runs >= RUNS and self._read is None:
                self._read, self._runs = self._before, 0
                xla.fetch_ahead(self._read)
        if self.donated or ahead:
            if self not in _running:
                _settle_at_exit()
                _running[self] = None
            return results, None
        return results, self.settled()

    def settled(self, ahead: int = 0) -> TenfoldError | None:
        """The error of the first run that failed, if it is known by now without waiting for the last runs."""
        with self._lock:
            verdict = self._before if ahead == 0 else self._read if self._runs >= ahead else None
            if verdict is None:
                return None
            failure = self.failure([verdict])
            self._read = None
            if ahead == 0:
                self._runs = 0
                _running.pop(self, None)
            if failure is not None:
                self._before = self._zero
        return failure


RUNS = 8  # of a chained program, of which one verdict is read
_running: dict[Chained, None] = {}  # whose last runs are not settled
_lock = forkable(threading.Lock())
_unsettled: list[tuple[Loaded, Any]] = []
AHEAD = 2  # runs that may be under way unsettled, so that the device never waits for the next
os.register_at_fork(after_in_child=_unsettled.clear)  # the parent hears of them
os.register_at_fork(after_in_child=_running.clear)


def _settle_later(loaded: Loaded, results: list[Any]) -> None:
    _settle_at_exit()
    with _lock:
        _unsettled.append((loaded, results))


@functools.cache
def _settle_at_exit() -> None:
    """See to it that the program does not end without a word about a check that failed in its last runs."""
    atexit.register(_tell)


def _tell() -> None:
    try:
        settle()
    except TenfoldError as error:
        sys.excepthook(type(error), error, None)


def settle(ahead: int = 0) -> None:
    """Raise the error of a run whose verdict nobody has waited for, if there is one; but do not wait for the
    last runs, so many `ahead`."""
    for chain in list(_running):
        failure = chain.settled(ahead)
        if failure is not None:
            raise failure
    while len(_unsettled) > ahead:
        with _lock:
            if len(_unsettled) <= ahead:
                return
            loaded, results = _unsettled.pop(0)
        failure = loaded.failure(results)
        if failure is not None:
            raise failure


def size_in_bytes(type: TensorType) -> int:
    return type.numel * type.dtype.itemsize


def _costly(function: Function, checks: Sequence[Check], donated: Sequence[tuple[int, int]]) -> bool:
    """Whether reading the donated parameters once more costs more than computing the checks separately."""
    if not checks:
        return False
    state = sum([size_in_bytes(function.params[place].type) for place, _ in donated])
    work = sum([result.numel for op in in_order([check.holds for check in checks]) for result in op.results])
    return state > LARGE and work < CHEAP


def verdict_of(checks: Sequence[Check]) -> flat.Value:
    """0, or the number of the first check that does not hold, counted from 1."""
    verdict = flat.full((), 0, VERDICT)
    for i in range(len(checks), 0, -1):
        verdict = flat.where(checks[i - 1].holds, verdict, flat.full((), i, VERDICT))
    return verdict


def without_checks(function: Function) -> Function:
    values: dict[flat.Value, flat.Value] = {}
    for op in function.ops:
        if isinstance(op, Check):
            values[op.result] = values.get(op.x, op.x)
        elif any(operand in values for operand in op.operands):
            replay((op,), values)
    return Function(
        function.params, [values.get(result, result) for result in function.results], function.name
    )


def _branching(function: Function, checks: Sequence[Check], donated: Donations) -> Function:
    """The program that does nothing if a check fails. Its last result is the verdict."""
    (verdict,) = without_checks(Function(function.params, [verdict_of(checks)])).results
    donor_of = {result: place for place, result in donated}
    unchanged = [
        function.params[donor_of[i]] if i in donor_of else flat.full(result.shape, 0, result.dtype)
        for i, result in enumerate(function.results)
    ]
    # In this order: of two branches, XLA copies what the first one writes over.
    branches = (
        Function(function.params, unchanged),
        channels_last(updated_last(without_checks(function), donated)),
    )
    taken = Case(flat.convert(flat.eq(verdict, 0), dtypes.int32), function.params, branches)
    return Function(function.params, [*taken.results, verdict], function.name)


def _restoring(function: Function, checks: Sequence[Check], donated: Sequence[tuple[int, int]]) -> Function:
    """The program that gives donated parameters back unchanged where a check fails."""
    if not checks:
        return function
    holds = functools.reduce(lambda x, y: x & y, [check.holds for check in checks])
    results = list(function.results)
    for place, result in donated:
        results[result] = flat.where(holds, results[result], function.params[place])
    return Function(function.params, results, function.name)
