"""Long programs are compiled without optimisations first, and optimised while they run."""

from __future__ import annotations

import subprocess
import sys

import pytest

import tenfold as tn
from tenfold.base.errors import EngineError
from tenfold.engines import xla
from tenfold.runtime import executables, tiers
from tenfold.runtime.background import background
from tenfold.runtime.compile import Programs
from tenfold.runtime.executables import counting_compiles

pytestmark = pytest.mark.usefixtures("on_all_tiers")


@pytest.fixture
def compiles(monkeypatch):
    """Whether each program that is compiled is optimised. All are long, and worth it after one run."""
    optimised = []
    compile = xla.compile

    def noting(module, device, **options):
        optimised.append(options.get("optimised", True))
        return compile(module, device, **options)

    monkeypatch.setattr(xla, "compile", noting)
    monkeypatch.setattr(executables, "_executables", {})
    monkeypatch.setattr(tiers, "LONG", 0)
    monkeypatch.setattr(tiers, "WORTH", 0)
    yield optimised
    background.wait()


def smooth(x):
    return (x * 2).sin() + x.sum()


def test_a_program_is_optimised_after_it_has_run_for_a_while(compiles):
    x = tn.linspace(0, 1, 7)
    function = tn.compile(smooth)
    with counting_compiles() as count:
        first = function(x)
        background.wait()
        assert compiles == [False, True]
        later = [function(x) for _ in range(3)]
    assert count == 1 and compiles == [False, True]
    for result in (first, *later):
        tn.testing.assert_close(result, smooth(x))


def test_calls_go_the_short_way_once_a_program_is_optimised(compiles, monkeypatch):
    function = tn.compile(lambda x: (x * 2).sin())
    x = tn.ones(3).eval()
    function(x)
    assert function.programs.short is None
    background.wait()
    function(x)
    assert function.programs.short is not None
    monkeypatch.delattr(Programs, "as_before")  # the next shortest way
    monkeypatch.delattr(Programs, "general")
    tn.testing.assert_close(function(x), (x * 2).sin())
    with pytest.raises(AttributeError):
        function(tn.ones(4))


def test_a_program_that_ran_once_is_not_optimised(compiles, monkeypatch):
    monkeypatch.setattr(tiers, "WORTH", 1e6)
    tn.compile(smooth)(tn.ones(3))
    background.wait()
    assert compiles == [False]


def test_state_is_written_in_place_before_and_after_a_program_is_optimised(compiles):
    weight = tn.nn.Parameter(tn.ones(300))
    optimizer = tn.optim.SGD([weight], lr=0.5)

    @tn.compile
    def step():
        optimizer.zero_grad()
        weight.square().sum().backward()
        optimizer.step()

    for i in range(3):
        weight.data.fill_(3.0)
        step()
        background.wait()
        assert weight.tolist() == [0.0] * 300, i
    assert compiles[:2] == [False, True]


@pytest.mark.parametrize("setting", ["xla", "deterministic"])
def test_a_program_is_optimised_at_once_where_one_tier_is_asked_for(compiles, setting, choose_tier):
    if setting == "xla":
        choose_tier("xla")
    tn.use_deterministic_algorithms(setting == "deterministic")
    try:
        tn.compile(smooth)(tn.ones(3))
    finally:
        tn.use_deterministic_algorithms(False)
    assert compiles and all(compiles)


def test_what_quick_kernels_get_wrong_is_optimised_at_once(compiled_as_by_users, compiles):
    powers = tn.compile(lambda x, y: x**y)
    assert powers(tn.tensor([-1, 2]), tn.tensor([-1, 3])).tolist() == [-1, 8]
    assert compiles == [True]


def test_the_stage_hlo_shows_the_optimised_program(compiles):
    assert "fusion" in tn.compiler.show(smooth, tn.ones(4), stage="hlo")
    assert compiles[-1] is True


def test_the_cache_on_disk_holds_the_optimised_program(tmp_path):
    code = """if True:
        import tenfold as tn
        from tenfold.engines import xla
        from tenfold.runtime import tiers
        from tenfold.runtime.background import background
        tiers.LONG = tiers.WORTH = 0
        compile = xla.compile
        xla.compile = lambda *a, **k: print("compiled", k) or compile(*a, **k)
        function = tn.compile(lambda x: (x * 2).sin())
        function(tn.ones(3))
        background.wait()
    """
    environment = {"TENFOLD_CACHE_DIR": str(tmp_path), "PATH": ""}
    command = [sys.executable, "-c", code]
    for expected in (["compiled {'optimised': False}", "compiled {}"], []):
        ended = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        assert ended.stdout.splitlines() == expected


def test_a_program_that_cannot_be_optimised_stays_as_it_is_with_a_warning(compiles, monkeypatch):
    compile = xla.compile

    def refusing(module, device, **options):
        if options.get("optimised", True):
            raise EngineError("XLA: no room")
        return compile(module, device, **options)

    monkeypatch.setattr(xla, "compile", refusing)
    x = tn.linspace(0, 1, 7)
    function = tn.compile(smooth)
    with pytest.warns(RuntimeWarning, match="stays unoptimised: XLA: no room"):
        function(x)
        background.wait()
    assert not background.failures
    tn.testing.assert_close(function(x), smooth(x))
