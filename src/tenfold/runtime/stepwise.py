"""Runs a long program step by step: what repeats in it, as the layers of a network do, is compiled once and
called again and again. Kernels that XLA would fuse across steps are not, so this is for programs that are
compiled in haste."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from tenfold.base.devices import Device
from tenfold.base.dtypes import int32
from tenfold.engines import xla
from tenfold.flat.ir import Function, Value, in_order
from tenfold.flat.repeats import Step, steps
from tenfold.flat.structured import Case, Check
from tenfold.mlir.interrupts import aside, uninterrupted
from tenfold.runtime.checks import Donations, verdict_of, without_checks

Compiled = Callable[[Sequence[Any]], list[Any]]
Compile = Callable[[Function, Donations, Device], Callable[[], Compiled]]
"""Gives what compiles a function, which writes results over the parameters that are donated. Several of those
run at once."""
MOST = 0.6  # of the ops of a program that may be left to compile for steps to pay


class Steps:
    """A program as calls of functions. Values lie in slots, the parameters first; a slot is emptied after its
    last use."""

    def __init__(self, function: Function, donated: Donations):
        self.ops = len(function.ops)
        self.steps = steps(function)
        self.params, self.values = function.params, list(function.results)
        self._copy_results()
        last = {value: place for place, step in enumerate(self.steps) for value in step.operands}
        self.donations = self._donations(donated, last)
        kept = set(self.values)
        self.freed = [
            [v for v in dict.fromkeys(step.operands) if last[v] == place and v not in kept]
            for place, step in enumerate(self.steps)
        ]

    @property
    def functions(self) -> list[Function]:
        return list(dict.fromkeys([step.function for step in self.steps]))

    def _copy_results(self) -> None:
        """Add a step for results that are parameters, or the same as others: each is in memory of its own."""
        seen = set(self.params)
        places = []
        for place, value in enumerate(self.values):
            if value in seen:
                places.append(place)
            seen.add(value)
        if places:
            given = [self.values[place] for place in places]
            params = {value: Value(value.type) for value in given}
            copies = [Value(value.type) for value in given]
            same = Function(list(params.values()), [params[value] for value in given])
            self.steps.append(Step(same, tuple(params), tuple(copies)))
            for place, copy in zip(places, copies):
                self.values[place] = copy

    def _donations(self, donated: Donations, last: dict[Value, int]) -> dict[Function, Donations]:
        """For each function, which operands give their memory to which results every time it is called."""
        donors = {self.values[result]: self.params[place] for place, result in donated}
        common: dict[Function, set[tuple[int, int]]] = {}
        for place, step in enumerate(self.steps):
            given = Counter(step.operands)
            pairs = set()
            for j, result in enumerate(step.results):
                donor = donors.get(result)
                if (
                    donor is not None
                    and given[donor] == 1
                    and last[donor] == place
                    and donor.type is result.type
                ):
                    pairs.add((step.operands.index(donor), j))
            common[step.function] = common.get(step.function, pairs) & pairs
        return {function: tuple(sorted(pairs)) for function, pairs in common.items()}

    def linked(self, executables: dict[Function, Compiled]) -> Compiled:
        """The program, of the executables of its functions."""
        slots = {param: place for place, param in enumerate(self.params)}
        for step in self.steps:
            for result in step.results:
                slots[result] = len(slots)
        empty = [None] * (len(slots) - len(self.params))
        calls = [
            (
                executables[step.function],
                [slots[operand] for operand in step.operands],
                slice(slots[step.results[0]], slots[step.results[-1]] + 1),
                [slots[value] for value in freed],
            )
            for step, freed in zip(self.steps, self.freed)
        ]
        results = [slots[value] for value in self.values]

        def call(buffers: Sequence[Any]) -> list[Any]:
            held = [*buffers, *empty]
            for executable, operands, made, freed in calls:
                held[made] = executable([held[place] for place in operands])
                for place in freed:
                    held[place] = None
            return [held[place] for place in results]

        return call


class Stepwise:
    """An executable of several: the steps of a program. Or the steps that decide about a branch, and those of
    each branch."""

    def __init__(
        self, first: Compiled, branches: Sequence[Compiled], device: Device, donates: bool, share: float
    ):
        self.share = share  # of the program's ops that were compiled
        self._first = first
        self._branches = branches
        self._device = device
        self._donates = donates

    def __call__(self, buffers: Sequence[Any], held: list[Any] | None = None) -> list[Any]:
        """The results, which `held` has even if an interrupt keeps this from returning them."""
        held = [] if held is None else held
        # Between two steps, what was computed into donated memory is not yet where it belongs.
        with uninterrupted() if self._donates else contextlib.nullcontext():
            results = self._first(buffers)
            if self._branches:
                chosen = xla.number(results[0], int32, self._device)
                results = [*self._branches[chosen](buffers), *results[1:]]
            held.append(results)
        return results


def stepwise(function: Function, donated: Donations, device: Device, compile: Compile) -> Stepwise | None:
    """A program step by step, if that saves much of its compile."""
    checks = [op for op in function.ops if isinstance(op, Check)]
    if checks:  # whose verdict is a result like the others
        told = Function(function.params, [*function.results, verdict_of(checks)], function.name)
        function = without_checks(told)
    case = _deciding(function)
    if case is None:
        programs = [Steps(function, donated)]
    else:
        decision = Function(function.params, [case.index, *function.results[len(case.results) :]])
        programs = [Steps(decision, ()), *[Steps(branch, donated) for branch in case.branches]]
    functions = [part for program in programs for part in program.functions]
    share = sum([len(part.ops) for part in functions]) / sum([program.ops for program in programs])
    if share > MOST:
        return None
    prepared = [
        compile(part, program.donations[part], device) for program in programs for part in program.functions
    ]
    executables = dict(zip(functions, aside(*prepared), strict=True))
    first, *branches = [program.linked(executables) for program in programs]
    return Stepwise(first, branches, device, bool(donated), share)


def _deciding(function: Function) -> Case | None:
    """The branching that a program consists of, apart from what decides about it: run-time checks, mostly."""
    case = function.results[0].op if function.results else None
    if not isinstance(case, Case) or case.arguments != function.params:
        return None
    others = function.results[len(case.results) :]
    alone = function.results[: len(case.results)] == case.results and case not in in_order(others)
    return case if alone else None
