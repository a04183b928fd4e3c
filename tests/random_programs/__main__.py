"""`python -m tests.random_programs [--engine E] [--kind K] [--count N] [--seed S]`: random programs on every
engine and tier, in-place writes and views of views included, compared with PyTorch.

What differs is printed with its kind and seed: `--engine E --kind K --seed S --count 1` runs it again.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

import tenfold as tn
from tenfold.engines import xla
from tenfold.runtime import tiers
from tests.random_programs import alias, general, open_sizes
from tests.random_programs.programs import Program, differences, run, run_compiled

EXAMPLE = "example: python -m tests.random_programs --engine xla --kind alias --count 10000 --seed 1"
KINDS: dict[str, Callable[[int], list[Program]]] = {
    "general": lambda seed: [general.grow(seed)],
    "long": lambda seed: [general.grow(seed, length=60)],
    "alias": lambda seed: [alias.grow(seed)],
    "open": open_sizes.grow,  # one program at several sizes
}


class Way(NamedTuple):
    """A way to run programs: the engine, what TENFOLD_TIER says, and how many run in step."""

    engine: str
    tier: str
    together: int
    run: Callable[[Sequence[Program]], list[list[tn.Tensor]]] = run


WAYS = {
    "xla": Way("xla", "xla", 50),
    "compile": Way("xla", "xla", 50, run_compiled),
    "numpy": Way("numpy", "", 1),
    "policy": Way("xla", "", 1),
    "libtorch": Way("libtorch", "", 1),
    "open": Way("xla", "xla", 1, open_sizes.run_open),  # one executable for all sizes, NaN in the padding
}


@contextmanager
def chosen(way: Way) -> Iterator[None]:
    before = os.environ.get("TENFOLD_TIER")
    os.environ["TENFOLD_TIER"] = way.tier
    tiers.setting.cache_clear()
    tn.set_engine(way.engine)
    try:
        yield
    finally:
        tn.set_engine("xla")
        del os.environ["TENFOLD_TIER"]
        os.environ.update({"TENFOLD_TIER": before} if before is not None else {})
        tiers.setting.cache_clear()


def compare(way: Way, kind: str, seeds: range) -> Iterator[str]:
    """What programs of these seeds do on Tenfold that they do not on PyTorch, as it is found."""
    with chosen(way):
        for start in tn.progress(range(seeds.start, seeds.stop, way.together), kind):
            batch = range(start, min(start + way.together, seeds.stop))
            yield from differences([program for seed in batch for program in KINDS[kind](seed)], way.run)


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.random_programs", description=__doc__, epilog=EXAMPLE
    )
    parser.add_argument("--engine", choices=WAYS, action="append", help="all of them, unless named")
    parser.add_argument("--kind", choices=KINDS, action="append", help="all of them, unless named")
    parser.add_argument("--count", metavar="N", type=int, default=1000, help="programs of each kind")
    parser.add_argument("--seed", metavar="S", type=int, default=0, help="of the first program")
    parser.add_argument("--optimised", action="store_true", help="compile as users do, which takes longer")
    options = parser.parse_args()
    os.environ["TENFOLD_CACHE_DIR"] = ""
    if not options.optimised:
        xla.OPTIONS["cpu"] = [*xla.OPTIONS["cpu"], *xla.HASTY]
    differing = 0
    for engine in options.engine or WAYS:
        for kind in ["open"] if engine == "open" else options.kind or KINDS:
            differ = 0
            for told in compare(WAYS[engine], kind, range(options.seed, options.seed + options.count)):
                print(told, end="\n\n", flush=True)
                differ += 1
            print(f"{engine:9} {kind:8} {options.count} programs, {differ} differ", flush=True)
            differing += differ
    if "open" in (options.engine or WAYS):
        print(f"open sizes: {open_sizes.counts['open']}, closed: {open_sizes.counts['closed']}")
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
