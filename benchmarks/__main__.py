"""The command line of the benchmarks."""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import tempfile
import traceback
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

from benchmarks import (
    bindings,
    bindings_lua_node,
    capi,
    cold,
    core,
    decoding,
    devices,
    emission,
    purple,
    sizes,
    training,
)  # fmt: skip
from benchmarks.harness import Benchmark, Result, measure, table
from benchmarks.plot import draw

EXAMPLE = """example:
  python -m benchmarks --only record --only call --json build/bench.json
"""


BENCHMARKS = (
    *core.BENCHMARKS,
    *cold.BENCHMARKS,
    *training.BENCHMARKS,
    *sizes.BENCHMARKS,
    *decoding.BENCHMARKS,
    *devices.BENCHMARKS,
    *emission.BENCHMARKS,
    *capi.BENCHMARKS,
    *purple.BENCHMARKS,
    *bindings.BENCHMARKS,
    *bindings_lua_node.BENCHMARKS,
)


def main(arguments: Sequence[str] | None = None, benchmarks: Sequence[Benchmark] = BENCHMARKS) -> int:
    groups = [benchmark.group for benchmark in benchmarks if benchmark.group]
    names = list(dict.fromkeys([*(benchmark.name for benchmark in benchmarks), *groups]))
    options = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description="Times Tenfold and its peers in one run and prints the ratios beside their goals.",
        epilog=EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    options.add_argument(
        "--only", metavar="NAME", action="append", choices=names, help=f"any of {', '.join(names)}"
    )
    options.add_argument("--json", metavar="FILE", type=Path, help="write every sample there too")
    options.add_argument("--picture", metavar="FILE", type=Path, help="draw all ratios there: .png or .svg")
    options.add_argument("--repeats", metavar="N", type=int, help="samples of each contender")
    chosen = options.parse_args(arguments)

    results: list[Result] = []
    failed: list[str] = []
    with tempfile.TemporaryDirectory(prefix="tenfold-bench-") as folder:
        # The peers and Tenfold on the same device, and no cache but the ones a benchmark asks for.
        os.environ.update(JAX_PLATFORMS="cpu", TENFOLD_CACHE_DIR=str(Path(folder, "cache")))
        # Processes find byte code, as those of an installed package do.
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        for benchmark in benchmarks:
            if not chosen.only or {benchmark.name, benchmark.group} & set(chosen.only):
                print(f"{benchmark.name} ...", file=sys.stderr, flush=True)
                own = Path(folder, benchmark.name)
                own.mkdir()
                try:
                    results.append(measure(benchmark, own, chosen.repeats))
                except Exception as error:  # the others are still worth their time
                    traceback.print_exc()
                    failed.append(f"{benchmark.name}: {error}")
                    continue
                print(f"{benchmark.name}: {results[-1].ratio:.2f} x {benchmark.against}", file=sys.stderr)
    if results:
        print(table(results))
    for complaint in failed:
        print(f"failed: {complaint}")
    report = {"machine": machine(), "results": [result.as_json() for result in results]}
    if chosen.json:
        chosen.json.parent.mkdir(parents=True, exist_ok=True)
        chosen.json.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
    if chosen.picture and results:
        draw([result.as_json() for result in results], chosen.picture)
        print(f"\nall ratios: {chosen.picture}")
    return 1 if failed else 0


def machine() -> dict[str, object]:
    packages = ("numpy", "jax", "jaxlib", "torch")
    return {
        "platform": platform.platform(),
        "python": platform.python_version(),
        "cores": os.cpu_count(),
        "packages": {package: version(package) for package in packages},
    }


if __name__ == "__main__":
    sys.exit(main())
