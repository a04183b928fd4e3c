"""Programs for one exact number of elements each, where that number depends on data and the open program does
not serve it. A run reports the number that it found; if that is another one, its results are discarded."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, NamedTuple

from tenfold.base.bounded import Bounded
from tenfold.base.errors import UnsupportedError
from tenfold.flat.open_layout import LIMIT
from tenfold.runtime import data_sizes, executables
from tenfold.runtime.checks import Loaded
from tenfold.runtime.guards import Owners
from tenfold.runtime.plan import Plan
from tenfold.runtime.recordings import Recorder
from tenfold.runtime.specialization import OTHER, Specialization, Wrap
from tenfold.trace import tree

KEPT = 32  # programs of a function on arguments of given types
ATTEMPTS = 16  # a size may depend on what another one was taken for


class Elsewhere(NamedTuple):
    """The result of a run that found other numbers of elements than its program serves. The first `sure`
    numbers are right; later ones may have been counted from wrong data."""

    counts: tuple[int, ...]
    sure: int = 1


class ExactSpecialization(Specialization):
    """A function for given numbers of elements."""

    tells_elsewhere = True

    def __init__(self, plan: Plan):
        super().__init__(plan)
        self.plain = False
        self.taken = tuple([count.size for count in plan.counts])
        self.counts = [i for i, (kind, _) in enumerate(plan.alone_targets) if kind == "count"]

    def _elsewhere(self, computed: Sequence[Any], arguments: Sequence[Any]) -> Any:
        counts = data_sizes.counted(self.counts, computed)
        if counts == self.taken:
            return None
        return Elsewhere(counts, 1 + [one == two for one, two in zip(counts, self.taken)].index(False))

    def _load(self) -> Loaded:
        plan = self.plan
        function = executables.lowered(plan.trace, plan.device)
        return executables.build_function(function, plan.device, plan.donated, plan.packing)


class EachSpecialization(Specialization):
    """A function that cannot be open: it is compiled apart for each number of elements."""

    def __init__(self, plan: Plan, recorder: Recorder, reason: str):
        super().__init__(plan)
        self.plain = False
        self.exact, self.room, self.reason = Exact(recorder), recorder.room, reason
        self.last = Elsewhere(tuple([count.size for count in plan.counts]))

    def run(self, arguments: Sequence[Any], wrap: Wrap) -> Any:
        recorder = self.exact.recorder(arguments, self.room)
        result, self.last = self.exact.run(recorder, self.last, arguments, wrap)
        return result

    def described(self, owners: Owners) -> list[str]:
        what = ", ".join(dict.fromkeys([count.what for count in self.plan.counts]))
        return [
            f"{what}: compiled apart for each number of elements, since {self.reason}",
            *super().described(owners),
        ]


class Exact:
    """The programs of a function for given numbers of elements."""

    def __init__(self, recorder: Recorder):
        self.function, args, kwargs, self.tensor = recorder.call
        self.given = len(recorder.given)
        self.structure = tree.flatten((args, kwargs), lambda leaf: isinstance(leaf, self.tensor), [])
        self.programs = Bounded(KEPT)

    def recorder(self, arguments: Sequence[Any], room: dict[int, int]) -> Recorder:
        """What records a call on these arguments."""
        args, kwargs = tree.unflatten(self.structure, iter(arguments[: self.given]))
        return Recorder(self.function, args, kwargs, self.tensor, room)

    def run(
        self, recorder: Recorder, elsewhere: Elsewhere, arguments: Sequence[Any], wrap: Wrap
    ) -> tuple[Any, Elsewhere]:
        """Run the function for this many elements, or for as many as the runs turn out to find. Returns its
        result with the numbers found; OTHER if the function must be recorded anew."""
        shapes = tuple([tuple(argument.shape) for argument in recorder.given])
        for _ in range(ATTEMPTS):
            make = functools.partial(_made, recorder, shapes, elsewhere)
            result = self.programs.get((shapes, elsewhere), make).run(arguments, wrap)
            if type(result) is not Elsewhere:
                return result, elsewhere
            elsewhere = result
        return OTHER, elsewhere


def _made(recorder: Recorder, shapes: Sequence[Sequence[int]], elsewhere: Elsewhere) -> ExactSpecialization:
    if max(elsewhere.counts[: elsewhere.sure]) >= LIMIT:
        raise UnsupportedError(f"a size that depends on data is {max(elsewhere.counts)}, which is too large")
    try:
        plan = recorder.at(shapes, counts=elsewhere.counts)
    except Exception:  # whatever the user's function raises there
        if elsewhere.sure >= len(elsewhere.counts):
            raise
        plan = recorder.at(shapes, counts=elsewhere.counts[: elsewhere.sure])
    return ExactSpecialization(plan)
