"""Profiles: kernels with the user's lines and what they cost, the host's part, memory, and the files."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import tenfold as tn
from tenfold.engines import xla
from tenfold.profiler import ProfilerAction, events, profile, record_function, schedule
from tenfold.profiler.hlo import Program
from tenfold.profiler.memory import liveness

HERE = __file__.rsplit("/", 1)[-1]


@pytest.fixture(scope="module")
def product():
    """A compiled function and its arguments, run before."""
    x, y = tn.randn(64, 128).eval(), tn.randn(128, 256).eval()
    function = tn.compile(lambda x, y: (x @ y).tanh().sum())  # the user's line
    function(x, y).item()
    return function, x, y


@pytest.fixture(scope="module")
def taken(product):
    function, x, y = product
    with profile() as prof:
        for _ in range(3):
            with record_function("my step"):
                function(x, y).item()
    return prof


def by_key(prof):
    return {each.key: each for each in prof.key_averages()}


def test_the_product_has_its_arithmetic_its_line_and_its_runs(taken):
    kernels = [each for each in taken.key_averages() if each.is_kernel]
    product = max(kernels, key=lambda each: each.flops)
    assert product.count == 3
    assert product.flops == 3 * 2 * 64 * 128 * 256
    assert product.bytes == 3 * 4 * (64 * 128 + 128 * 256 + 64 * 256)
    assert product.cpu_time_total > 0
    lines = Path(__file__).read_text().splitlines()
    line = next(i for i, text in enumerate(lines, 1) if "# the user's " in text and "compile" in text)
    assert f"{HERE}:{line}" in product.lines[0]


def test_a_fusion_tells_the_ops_that_it_fuses(taken):
    fused = [each.fused for each in taken.key_averages() if each.is_kernel]
    assert any("tanh" in each for each in fused)


def test_the_host_is_apart_from_the_kernels(taken):
    found = by_key(taken)
    assert found["my step"].count == 3
    assert found["tenfold: waiting for a number"].count == 3
    assert found["my step"].cpu_time_total > found["my step"].self_cpu_time_total
    assert not found["tenfold: waiting for a number"].is_kernel


def test_outside_of_a_profile_nothing_is_timed(product, taken):
    before = len(taken.spans())
    with record_function("unseen"):
        product[0](*product[1:]).item()
    assert len(taken.spans()) == before


def test_the_table_has_a_row_for_each_and_sorts_by_pytorch_s_names(taken):
    text = taken.key_averages().table(sort_by="self_cpu_time_total", row_limit=2, header="steps")
    assert text.startswith("steps\n")
    assert len(text.splitlines()) == 5  # that, the titles, two rows, the totals
    assert "kernels" in text.splitlines()[-1]
    with pytest.raises(tn.ArgumentError, match="sorted by"):
        taken.key_averages().table(sort_by="beauty")


def test_the_trace_is_json_that_chrome_reads(taken, tmp_path):
    taken.export_chrome_trace(tmp_path / "trace.json")
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    kernels = [each for each in events if each.get("cat") == "kernel"]
    steps = [each for each in events if each["name"] == "my step"]
    assert len(kernels) == len(taken.events())
    assert len(steps) == 3
    # Both clocks are one: every kernel lies in a step.
    for each in kernels:
        assert any(step["ts"] <= each["ts"] <= step["ts"] + step["dur"] for step in steps)
    assert any(each["ph"] == "C" and each["args"]["held"] > 0 for each in events)


def test_memory_tells_which_arrays_hold_the_peak(taken):
    (ran,) = taken.memory()
    sizes = [each.bytes for each in ran.memory.holders[:2]]
    assert sizes == [128 * 256 * 4, 64 * 256 * 4]
    assert ran.memory.peak == sum(each.bytes for each in ran.memory.holders)
    assert "MB at most" in taken.memory_table()


def test_a_schedule_records_the_steps_that_it_names(product):
    function, x, y = product
    ready = []
    with profile(
        schedule=schedule(wait=1, warmup=1, active=2, repeat=1),
        on_trace_ready=lambda prof: ready.append(by_key(prof)["tenfold: waiting for a number"].count),
    ) as prof:
        for _ in range(6):
            function(x, y).item()
            prof.step()
    assert ready == [2]


def test_actions_of_a_schedule():
    action = schedule(wait=1, warmup=1, active=2, repeat=1, skip_first=1)
    names = [action(i).name for i in range(7)]
    assert names == ["NONE", "NONE", "WARMUP", "RECORD", "RECORD_AND_SAVE", "NONE", "NONE"]
    assert ProfilerAction.RECORD.value == 2


def test_two_profiles_at_once_are_refused(product):
    with profile(), pytest.raises(tn.ArgumentError, match="already"):
        profile().start()


def test_lazy_evaluation_is_profiled_too():
    x = tn.randn(40, 30).eval()
    (x @ x.mT).sum().item()
    with tn.profile() as prof:
        (x @ x.mT).sum().item()
    assert any(each.flops == 2 * 40 * 40 * 30 for each in prof.key_averages())


def test_programs_on_tier_0_are_kernels_with_their_ops_and_lines(tmp_path, choose_tier):
    choose_tier("numpy")
    large, small = tn.randn(300, 300).eval(), tn.randn(3).eval()
    with tn.profile() as prof:
        for _ in range(3):
            (large * 2 + 1).amax().item()
        (small * 2 - 1).tanh().eval()
    found = {tuple(each.fused): each for each in prof.key_averages() if each.is_kernel}
    assert found["mul", "add", "amax"].count == 3
    assert found["mul", "sub", "tanh"].count == 1
    assert all(each.time > 0 and HERE in each.lines[0] for each in found.values())
    assert [each.line for each in prof.events()] == ["numpy"] * 4
    assert not prof.key_averages().table().splitlines()[-1].startswith("kernels 0.0")
    prof.export_chrome_trace(tmp_path / "trace.json")
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    assert [each["name"] for each in events if each.get("cat") == "kernel"].count("numpy: mul add amax") == 3


@pytest.mark.parametrize("name", ["start_trace", "synchronize", "end_trace"])
def test_functions_are_timed_no_longer_if_a_profile_fails(monkeypatch, name):
    from tenfold.profiler import spans

    def fail(*arguments):
        raise RuntimeError("no profiler")

    before = [getattr(owner, each) for owner, each, _ in spans.PHASES]
    with monkeypatch.context() as patch:
        patch.setattr(xla, name, fail)
        with pytest.raises(RuntimeError, match="no profiler"), profile():
            pass
    assert [getattr(owner, each) for owner, each, _ in spans.PHASES] == before
    assert not spans.is_active()
    with profile() as prof:  # and the next one works
        pass
    assert prof.events() == []


HLO = """HloModule m, is_scheduled=true, input_output_alias={ {1}: (0, {}, may-alias) }

%fused (p: f32[8,4], q: f32[1,4]) -> f32[8,4] {
  %p = f32[8,4]{1,0} parameter(0)
  %q = f32[1,4]{1,0} parameter(1)
  %zero = s32[] constant(0)
  ROOT %dynamic-update-slice.1 = f32[8,4]{1,0} dynamic-update-slice(%p, %q, %zero, %zero)
}

ENTRY %main (a: f32[8,4], b: f32[1,4]) -> (f32[16], f32[8,4]) {
  %a = f32[8,4]{1,0} parameter(0)
  %b = f32[1,4]{1,0} parameter(1)
  %c = f32[16]{0} broadcast(%b), dimensions={}
  %d = (f32[16]{0}, f32[2]{0}) custom-call(%c), custom_call_target="x"
  %e = f32[16]{0} get-tuple-element(%d), index=0
  %write = f32[8,4]{1,0} fusion(%a, %b), kind=kLoop, calls=%fused
  ROOT %tuple = (f32[16]{0}, f32[8,4]{1,0}) tuple(%e, %write)
}
"""


def test_a_write_in_place_moves_its_part_alone_and_holds_nothing_more():
    program = Program(HLO)
    assert program.instructions()["write"].bytes == 3 * 16
    memory = liveness(program)
    assert memory.timeline["b"] == 128 + 16
    assert memory.timeline["d"] == 128 + 16 + 64 + 72
    assert memory.timeline["write"] == 128 + 16 + 72
    assert memory.peak == 128 + 16 + 64 + 72


def test_the_command_profiles_a_script(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "import sys\nimport tenfold as tn\nf = tn.compile(lambda x: (x @ x).sum())\n"
        "for _ in range(int(sys.argv[1])):\n    print(f(tn.ones(50, 50)).item())\n"
    )
    command = [sys.executable, "-m", "tenfold", "profile", "--rows", "50", "--memory", "--trace"]
    done = subprocess.run(
        [*command, str(tmp_path / "trace.json"), str(script), "2"], capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith("125000.0\n125000.0\n")
    assert "script.py:3" in done.stdout
    assert "MB at most" in done.stdout
    assert json.loads((tmp_path / "trace.json").read_text())["traceEvents"]


def test_kernels_of_a_cuda_graph_are_told_apart_by_their_own_names():
    from tenfold.engines.xla import TraceEvent
    from tenfold.profiler.events import _Known, _label, _matching

    def event(name: str, instruction: str = "command_buffer_2") -> TraceEvent:
        return TraceEvent(name, "", True, 0, 1, instruction, "step", 1, 1)

    names = (["copy.1"], ["loop_add_fusion.12", "sum", "copy.1"])
    other, ours = (_Known(None, 1, None, dict.fromkeys(each)) for each in names)
    events = [event("loop_add_fusion_12"), event("sum"), event("nvjet_tst_128x64"), event("copy_1", "copy.1")]
    assert _matching(events, [other, ours]) == 1
    labels = [_label(each, ours.instructions) for each in events]
    assert labels == ["loop_add_fusion.12", "sum", "nvjet_tst_128x64", "copy.1"]


def test_a_profile_reads_the_programs_that_ran_alone(product, monkeypatch):
    read = []
    monkeypatch.setattr(events, "Program", lambda text: read.append(text) or Program(text))
    others = [tn.compile(lambda x, power=power: (x**power).sum()) for power in (2, 3)]
    for other in others:
        other(product[1]).item()
    with profile():
        product[0](*product[1:]).item()
    unnumbered = [each for each in xla.executables() if xla.program_number(each) is None]
    assert len(read) == 1 + len(unnumbered)  # those were read from disk, and may be any


def test_two_programs_whose_instructions_have_the_same_names_are_told_apart():
    functions = [tn.compile(lambda x: x @ x), tn.compile(lambda x: x @ x)]
    small, large = tn.randn(8, 8).eval(), tn.randn(80, 80).eval()
    for function, x in zip(functions, (small, large), strict=True):
        function(x).eval()
    for function, x in zip(functions, (small, large), strict=True):
        with profile() as prof:
            function(x).eval()
        (product,) = [each for each in prof.key_averages() if each.flops]
        assert product.flops == 2 * x.shape[0] ** 3


def test_programs_that_come_from_the_cache_have_their_lines(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "import tenfold as tn\nf = tn.compile(lambda x: (x @ x).sum())\nx = tn.ones(50, 50)\nf(x).item()\n"
        "with tn.profile() as prof:\n    f(x).item()\nprint(prof.key_averages().table())\n"
    )
    environment = os.environ | {"TENFOLD_CACHE_DIR": str(tmp_path / "cache")}
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, script], env=environment, capture_output=True, text=True, check=True
        )
        assert "script.py:2" in done.stdout
