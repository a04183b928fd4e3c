"""What all tests share: no compilation cache on disk, and a summary of what the generated suite compared."""

from __future__ import annotations

import atexit
import gc
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.compiling import QUICK, compiles_quickly

# Before any import of Tenfold: a test must not pass because of what an earlier run has left on disk.
os.environ["TENFOLD_CACHE_DIR"] = ""
# Before any import of PyTorch: the workers of a run fill the cores, and threads that wait would spin.
os.environ.setdefault("OMP_NUM_THREADS", "1")
# A worker holds millions of objects that stay: to look through them as often as Python does by default takes
# a tenth of the suite's time.
gc.set_threshold(20_000, 20, 20)
TIER = os.environ.get("TENFOLD_TIER")
# Folders whose tests run as programs of users do, by the policy of tiers. Those of the others examine what
# XLA computes. A test that needs one or the other says so by a fixture, `on_xla` or `on_all_tiers`.
BY_POLICY = ("autograd", "nn", "optim", "runtime", "tensor")
# Tests about the executables that users get.
OPTIMIZED = ("engines/test_numpy_elementwise", "engines/xla", "examples", "explain", "profiler")


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Choose the tier before any fixture of the test is made. TENFOLD_TIER chooses for the whole suite."""
    policy = "" if item.path.relative_to(Path(__file__).parent).parts[0] in BY_POLICY else "xla"
    os.environ["TENFOLD_TIER"] = policy if TIER is None else TIER
    _read_again()


def _read_again() -> None:
    tiers = sys.modules.get("tenfold.runtime.tiers")
    if tiers is not None:
        tiers.setting.cache_clear()


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """How many calls the generated suite compared with PyTorch, and what became of the others."""
    counted: dict[str, list[tuple[int, ...]]] = {"cases": [], "interpreted": [], "through torch-mlir": []}
    for reports in terminalreporter.stats.values():
        for report in reports:
            for name, counts in getattr(report, "user_properties", []):
                if name in counted and getattr(report, "when", "") == "call":
                    counted[name].append(tuple(counts))
    lines = []
    if counted["cases"]:
        compared, refused, more = map(sum, zip(*counted["cases"]))
        lines.append(
            f"{len(counted['cases'])} rows: {compared} calls compared with PyTorch; of those that it refuses "
            f"{refused} are refused and {more}, for which it has no kernel, run"
        )
    if counted["interpreted"]:
        ran, unable = map(sum, zip(*counted["interpreted"]))
        lines.append(
            f"{len(counted['interpreted'])} rows on StableHLO's interpreter: {ran} calls; {unable} beyond it"
        )
    if counted["through torch-mlir"]:
        rows, passed, calls, through = map(sum, zip(*counted["through torch-mlir"]))
        lines.append(
            f"{rows} rows that the torch dialect defines: torch-mlir lowers {passed} itself, "
            f"{through} of {calls} calls"
        )
    if lines:
        terminalreporter.section("generated from the op table")
    for line in lines:
        terminalreporter.line(line)


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish() -> None:
    """Let everything lie that this process holds when its tests are done, until it ends. pytest and
    hypothesis would look through it for garbage several times, which takes seconds each."""
    gc.freeze()
    if "iree" in sys.modules:  # whose bindings print what was not freed at the end
        atexit.register(gc.unfreeze)


@pytest.fixture
def collects_quickly() -> Iterator[None]:
    """Let the garbage collector look at the test's own objects alone. A worker that has run thousands of
    tests has millions of others, and to look through them takes seconds."""
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.fixture
def choose_tier(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Chooses a tier: "numpy", "xla", or "" for what the policy says."""

    def choose(name: str) -> None:
        monkeypatch.setenv("TENFOLD_TIER", name)
        _read_again()

    return choose


@pytest.fixture
def on_all_tiers(choose_tier: Callable[[str], None]) -> None:
    """Let programs run where the policy of tiers says, as they do for users."""
    choose_tier("")


@pytest.fixture
def on_xla(choose_tier: Callable[[str], None]) -> None:
    """Let XLA compile all programs: the test is about executables, or compares results to the last bit."""
    choose_tier("xla")


@pytest.fixture(autouse=True)
def _compiled_quickly(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Compile without optimising, which is most of what a test costs. `make test-all` compiles as users do,
    and so do the tests OPTIMIZED."""
    path = request.path.relative_to(Path(__file__).parent).as_posix()
    if compiles_quickly(request.config) and not path.startswith(OPTIMIZED):
        from tenfold.engines import xla

        monkeypatch.setitem(xla.OPTIONS, "cpu", [*xla.OPTIONS["cpu"], *QUICK])


@pytest.fixture
def compiled_as_by_users(_compiled_quickly: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let XLA optimise: for results that are compared to the last bit, and for integers to negative powers,
    which its quick kernels get wrong (-1 to the -1)."""
    from tenfold.engines import xla

    options = [option for option in xla.OPTIONS["cpu"] if option not in QUICK]
    monkeypatch.setitem(xla.OPTIONS, "cpu", options)
