"""What `tenfold explain --runs` tells: tiers, guards, why a function was recorded again."""

import tenfold as tn
from tenfold.explain import runs

scale = 2.0


def test_a_recompile_is_told_with_its_reason(monkeypatch):
    @tn.compile
    def scaled(x):
        return x * scale

    scaled(tn.ones(2))
    monkeypatch.setitem(globals(), "scale", 3.0)
    scaled(tn.ones(2))
    (found,) = [each for each in runs.compiled_functions() if each.name == "scaled"]
    (reason,) = found.recompiled
    assert found.programs == 2 and "`scale`" in reason and "3.0" in reason
    assert "the global `scale`" in found.guards and "last recompiled" not in found.guards
    assert found.place.startswith(__file__)


def test_every_recompile_is_told():
    @tn.compile
    def shifted(x, by):
        return x + by

    for dtype in (tn.float32, tn.float64, tn.int32):
        shifted(tn.ones(2, dtype=dtype), tn.ones(2, dtype=dtype))
    (found,) = [each for each in runs.compiled_functions() if each.name == "shifted"]
    assert ["f64" in reason for reason in found.recompiled] == [True, True]
    assert ["i32" in reason for reason in found.recompiled] == [False, True]


def test_programs_are_told_with_their_tier_and_place(on_all_tiers):
    x = tn.ones(300, 300).eval()
    (x @ x).erf().sum().item()
    places = {(each.place.partition(":")[0], each.tier) for each in runs.programs_run()}
    assert any(place == "test_runs.py" and tier in ("numpy", "background", "xla") for place, tier in places)


def test_small_programs_are_counted_together(on_all_tiers):
    before = sum(each.times for each in runs.programs_run() if each.program.startswith("small programs"))
    (tn.ones(2) + 1).tolist()
    (tn.ones(2) * 3).tolist()
    (small,) = [each for each in runs.programs_run() if each.program.startswith("small programs")]
    assert small.times >= before + 2 and small.tier == "numpy"


def test_programs_for_open_sizes_are_counted():
    @tn.compile
    def doubled(x):
        return x * 2

    for size in (2, 3, 4):
        doubled(tn.ones(size))
    (found,) = [each for each in runs.compiled_functions() if each.name == "doubled"]
    assert found.programs == 2  # one for the first size, one for the others
