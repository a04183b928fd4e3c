"""Run-time checks: what a program finds wrong with its data, such as an index out of range, and when an error
is raised for it.

A program that writes over its inputs must lose nothing when a check fails. Either it puts them back then, or,
where that costs more, the checks are a program of their own that runs before. On a GPU nobody waits for that
one: the program proper puts back what it would have changed, and the error is raised by whoever reads a
result, or a few runs later.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Sequence
from typing import Any

from tenfold import dtypes, flat
from tenfold.devices import Device
from tenfold.engines import xla
from tenfold.errors import TenfoldError
from tenfold.flat.graph import Function, TensorType, in_order, replay
from tenfold.flat.structured import Check

Donations = tuple[tuple[int, int], ...]  # which leaf gives its memory to which result

VERDICT = dtypes.int32
LARGE = 1 << 20  # bytes of state that are better not read and written once more
CHEAP = 1 << 20  # elements that checks may compute on their own


class Guarded:
    """A program whose donated parameters survive a check that fails; `verdict`, if there is one, is the
    program of the checks alone, to run before it on the parameters that it `reads`."""

    def __init__(self, function: Function, donated: Donations, device: Device):
        self.checks = [op for op in function.ops if isinstance(op, Check)]
        self.verdict: Function | None = None
        self.reads: list[int] = []
        if donated and self.checks and _costly(function, self.checks, donated):
            verdict = _verdict(self.checks)
            read = {operand for op in in_order([verdict]) for operand in op.operands}
            self.reads = [i for i, each in enumerate(function.params) if each in read]
            self.verdict = Function([function.params[i] for i in self.reads], [verdict])
            if device.type != "cpu":
                function = _restoring(function, self.checks, donated)
            function = _without_checks(function)
        elif donated and self.checks:
            function = _restoring(function, self.checks, donated)
        self.function = function


class Loaded:
    """An executable and the run-time checks, whose verdict is its last result, or that of a program that runs
    `first`, on those of the buffers that it `reads`."""

    __slots__ = ("checks", "device", "executable", "first", "reads")

    def __init__(
        self,
        device: Device,
        executable: xla.Executable,
        checks: Sequence[Check],
        first: xla.Executable | None = None,
        reads: Sequence[int] = (),
    ):
        self.device = device
        self.executable = executable
        self.checks = tuple(checks)
        self.first = first
        self.reads = reads

    def __call__(self, buffers: Sequence[Any]) -> tuple[list[Any], TenfoldError | None]:
        """The results, and the error of a check that failed. Then the results must be kept nevertheless where
        they replace what was donated: the program made them equal to it."""
        if self.first is not None:
            verdict = self.first([buffers[i] for i in self.reads])[0]
            if self.device.type != "cpu":
                with _lock:
                    _unsettled.append((self, verdict))
                return self.executable(buffers), None
            failure = self.failure(verdict)
            if failure is not None:
                raise failure
            return self.executable(buffers), None
        results = self.executable(buffers)
        return results, self.failure(results.pop()) if self.checks else None

    def failure(self, verdict: Any) -> Any:
        """The error of the first check that failed; its number, counted from 1, is the verdict."""
        found = xla.number(verdict, VERDICT, self.device)
        if not found:
            return None
        failed = self.checks[found - 1]
        error = failed.error(failed.message)
        return error.located("", failed.source, []) if isinstance(error, TenfoldError) else error


_lock = threading.Lock()
_unsettled: list[tuple[Loaded, Any]] = []
AHEAD = 2  # runs that may be under way unsettled, so that the device never waits for the next


def settle(ahead: int = 0) -> None:
    """Raise the error of a run whose verdict nobody has waited for, if there is one; but do not wait for the
    last runs, so many `ahead`."""
    while len(_unsettled) > ahead:
        with _lock:
            if len(_unsettled) <= ahead:
                return
            loaded, verdict = _unsettled.pop(0)
        failure = loaded.failure(verdict)
        if failure is not None:
            raise failure


def size_in_bytes(type: TensorType) -> int:
    return type.numel * type.dtype.itemsize


def _costly(function: Function, checks: Sequence[Check], donated: Donations) -> bool:
    """Whether to put donated parameters back costs more than to run the checks on their own."""
    state = sum([size_in_bytes(function.params[place].type) for place, _ in donated])
    work = sum([result.numel for op in in_order([each.holds for each in checks]) for result in op.results])
    return state > LARGE and work < CHEAP


def _verdict(checks: Sequence[Check]) -> flat.Value:
    """0, or the number of the first check that does not hold, counted from 1."""
    verdict = flat.full((), 0, VERDICT)
    for i in range(len(checks), 0, -1):
        verdict = flat.where(checks[i - 1].holds, verdict, flat.full((), i, VERDICT))
    return verdict


def _without_checks(function: Function) -> Function:
    values: dict[flat.Value, flat.Value] = {}
    for op in function.ops:
        if isinstance(op, Check):
            values[op.result] = values.get(op.x, op.x)
        elif any(operand in values for operand in op.operands):
            replay((op,), values)
    return Function(function.params, [values.get(each, each) for each in function.results], function.name)


def _restoring(function: Function, checks: Sequence[Check], donated: Donations) -> Function:
    """The program that gives donated parameters back unchanged where a check fails."""
    holds = functools.reduce(lambda x, y: x & y, [each.holds for each in checks])
    results = list(function.results)
    for place, result in donated:
        results[result] = flat.where(holds, results[result], function.params[place])
    return Function(function.params, results, function.name)
