"""The data of `explain --runs`: which tier each program ran on and why, and why functions recompiled."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from tenfold.explain import html
from tenfold.runtime import compile, runs
from tenfold.runtime.guards import Owners


@dataclass(frozen=True)
class Compiled:
    """A compiled function: its name and place, how many programs it has, what they are guarded by, and why
    it was recompiled, in words, the latest reason last."""

    name: str
    place: str
    programs: int
    guards: str
    recompiled: list[str]


@dataclass(frozen=True)
class Run:
    """A program that ran on a tier, how often, and why there."""

    times: int
    tier: str
    program: str
    place: str
    reason: str


def compiled_functions() -> list[Compiled]:
    """Every function of `tenfold.compile` that is still there, by its place."""
    functions = []
    everyone = compile.everyone()
    owners = Owners([container for programs in everyone for container in programs.containers()])
    for compiled in everyone:
        code = getattr(compiled.function, "__code__", None)
        place = f"{code.co_filename}:{code.co_firstlineno}" if code is not None else ""
        name = getattr(compiled.function, "__name__", type(compiled.function).__name__)
        guards = compiled.guards(owners).partition("\nlast recompiled because ")[0]
        functions.append(
            Compiled(name, place, compiled.count + compiled.open_count, guards, list(compiled.recompiles))
        )
    return sorted(functions, key=lambda one: (one.place, one.name))


def programs_run() -> list[Run]:
    """Every program that ran on tier 0 or was about to be compiled, the most frequent first. Small programs
    that ran op by op are counted together."""
    programs = []
    for record, times in runs.all_records():
        ops = ", ".join(record.names) + (f", and {record.more} more" if record.more else "")
        place = record.source.short if record.source else ""
        programs.append(Run(times, record.tier, ops, place, record.reason))
    return sorted(programs, key=lambda one: -one.times)


def page(title: str) -> str:
    """The page of what has run in this process."""
    facts = {
        "programs": [asdict(each) for each in programs_run()],
        "functions": [asdict(compiled_function) for compiled_function in compiled_functions()],
    }
    return html.page(title, [], runs=facts)
