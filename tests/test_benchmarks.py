"""The benchmarks' harness, tried on contenders of known speed, and one quick run of the real benchmarks."""

import json
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from benchmarks import long_runs
from benchmarks.__main__ import BENCHMARKS, main
from benchmarks.first_result import with_jax, with_numpy
from benchmarks.gpu.offline import Kernel, kernels_of
from benchmarks.harness import (
    Benchmark,
    Result,
    first_line,
    import_time,
    measure,
    ratio_text,
    readable,
    statement,
    table,
)
from benchmarks.plot import ROWS, draw
from tenfold.runtime import tiers

ROOT = Path(__file__).parent.parent


def scripted(*seconds: float):
    """A contender that takes these times, one after another."""
    return iter(seconds).__next__


def benchmark(ours, peer, goal: float, repeats: int = 3) -> Benchmark:
    return Benchmark(
        "sample", "a sample", "JAX", goal, lambda folder: {"Tenfold": ours, "JAX": peer}, repeats
    )


def test_the_first_run_is_thrown_away_and_the_median_kept(tmp_path):
    result = measure(benchmark(scripted(9, 1, 5, 2), scripted(0, 4, 4, 100), goal=0.5), tmp_path)
    assert result.samples == {"Tenfold": [1, 5, 2], "JAX": [4, 4, 100]}
    assert (result.median("Tenfold"), result.median("JAX"), result.ratio) == (2, 4, 0.5)
    assert result.met


def test_a_goal_that_is_missed_is_not_met(tmp_path):
    result = measure(benchmark(scripted(0, 3), scripted(0, 4), goal=0.5), tmp_path, repeats=1)
    assert not result.met


def test_contenders_take_turns(tmp_path):
    turns = []
    note = lambda name: lambda: turns.append(name) or 1.0
    measure(benchmark(note("ours"), note("peer"), goal=1, repeats=2), tmp_path)
    assert turns == ["ours", "peer"] * 3


def test_a_benchmark_without_the_peer_of_its_goal_is_refused(tmp_path):
    alone = Benchmark("alone", "", "JAX", 1, lambda folder: {"Tenfold": lambda: 1.0})
    with pytest.raises(ValueError, match="alone has no contender JAX"):
        measure(alone, tmp_path)


def test_the_table_shows_figures_ratio_goal_and_verdict():
    slow = Result(Benchmark("slow", "a slow thing", "JAX", 1 / 3, dict), {"Tenfold": [2e-3], "JAX": [4e-3]})
    quick = Result(
        Benchmark("quick", "a quick one", "PyTorch", 3, dict), {"Tenfold": [2.5e-6], "PyTorch": [1e-6]}
    )
    assert table([slow, quick]).splitlines() == [
        "              Tenfold  peer     its figure  ratio  goal",
        "------------------------------------------------------------------------",
        "a slow thing     2 ms  JAX            4 ms   0.50  at most 0.33  not met",
        "a quick one    2.5 µs  PyTorch        1 µs   2.50  at most 3     met",
    ]


def test_a_second_peer_has_a_line_of_its_own_and_counts_are_no_times():
    op = Benchmark("op", "an op", "C", 1.1, dict, unit="instructions", also=(("C++", 0.5),))
    samples = {"Tenfold": [3000], "by hand": [6000], "C++": [4000], "C": [3000]}
    assert [line.split() for line in table([Result(op, samples)]).splitlines()[2:]] == [
        ["an", "op", "3,000", "C", "3,000", "1.00", "at", "most", "1.1", "met"],
        ["C++", "4,000", "0.75", "at", "most", "0.5", "not", "met"],
        ["by", "hand", "6,000", "0.50"],
    ]


@pytest.mark.parametrize(
    "seconds, text",
    [(2.5, "2.5 s"), (0.1234, "123 ms"), (99.9e-6, "99.9 µs"), (1e-6, "1 µs"), (3.21e-7, "321 ns")],
)
def test_seconds_are_shown_in_the_unit_that_fits(seconds, text):
    assert readable(seconds) == text


def test_a_statement_is_timed_by_the_run():
    calls = []
    sample = statement("calls.append(0); sleep(0.01)", calls=calls, sleep=time.sleep)
    calls.clear()
    start = time.perf_counter()
    seconds = sample()
    assert 0.01 <= seconds <= (time.perf_counter() - start) / len(calls)
    assert len(calls) > 1


def test_a_process_is_timed_up_to_its_first_line():
    code = "import time; time.sleep(0.2); print(7, flush=True); time.sleep(0.5)"
    start = time.perf_counter()
    seconds = first_line(["-c", code], dict, expected=7)()
    assert 0.2 <= seconds <= time.perf_counter() - start - 0.4


def test_a_process_that_prints_another_number_is_an_error():
    with pytest.raises(RuntimeError, match="printed '8"):
        first_line(["-c", "print(8)"], dict, expected=7)()


def test_an_import_is_timed_in_a_fresh_process():
    start = time.perf_counter()
    seconds = import_time("json")()
    assert 0 < seconds < time.perf_counter() - start


def test_jax_computes_the_program_of_the_start_up_benchmarks():
    assert with_jax(200) == pytest.approx(with_numpy(200), abs=1e-4)


@pytest.fixture
def environment(monkeypatch):
    """What the command sets for its whole process is undone after the test."""
    monkeypatch.setenv("JAX_PLATFORMS", "cpu")
    monkeypatch.setenv("TENFOLD_CACHE_DIR", "")


def test_the_command_prints_a_table_and_writes_json(tmp_path, capsys, environment):
    report = tmp_path / "out" / "bench.json"
    chosen = ["--only", "sample", "--repeats", "2", "--json", str(report)]
    main(chosen, [benchmark(lambda: 1.0, lambda: 4.0, goal=0.5)])
    assert "a sample" in capsys.readouterr().out
    (result,) = json.loads(report.read_text())["results"]
    assert result["seconds"] == {"Tenfold": 1.0, "JAX": 4.0}
    assert (result["ratio"], result["goal"], result["met"]) == (0.25, 0.5, True)


def test_a_benchmark_that_fails_is_told_and_the_others_run(tmp_path, capsys, environment):
    def broken(folder):
        raise RuntimeError("no such peer")

    report = tmp_path / "bench.json"
    chosen = [Benchmark("broken", "", "JAX", 1, broken), benchmark(lambda: 1.0, lambda: 4.0, goal=0.5)]
    assert main(["--repeats", "1", "--json", str(report)], chosen) == 1
    assert "failed: broken: no such peer" in capsys.readouterr().out
    assert [result["name"] for result in json.loads(report.read_text())["results"]] == ["sample"]


def test_an_unknown_benchmark_is_refused_with_the_known_ones(capsys):
    with pytest.raises(SystemExit):
        main(["--only", "recrod"])
    assert "'record'" in capsys.readouterr().err


@pytest.mark.slow
def test_every_benchmark_runs(tmp_path):
    report = tmp_path / "bench.json"
    command = [sys.executable, "-m", "benchmarks", "--repeats", "1", "--json", str(report)]
    subprocess.run(command, cwd=ROOT, check=True)
    results = json.loads(report.read_text())["results"]
    assert [result["name"] for result in results] == [benchmark.name for benchmark in BENCHMARKS]


def test_all_ratios_are_drawn_in_one_picture(tmp_path):
    contenders = {"Tenfold": [1.0], "JAX": [2.0], "PyTorch": [0.5]}
    results = [
        Result(Benchmark(name, name, "JAX", 1.0, lambda folder: {}, also=(("PyTorch", 1.5),)), contenders)
        for name in ("one", "two")
    ]
    draw([each.as_json() for each in results], tmp_path / "made" / "bench.png")
    assert (tmp_path / "made" / "bench.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.usefixtures("collects_quickly")
def test_a_long_run_measures_memory_and_draws_it(tmp_path, monkeypatch):
    monkeypatch.setattr(tiers, "setting", lambda: "")  # nothing pays to be compiled
    path = tmp_path / "long.svg"
    runs = long_runs.main(["--programs", "6", "--steps", "0", "--picture", str(path)])
    assert [run.counts for run in runs] == [[1, 2, 3, 4, 5, 6]]
    assert all(each > 1 << 20 for run in runs for each in run.memory)
    assert "<svg" in path.read_text(encoding="utf-8")


@pytest.mark.usefixtures("collects_quickly")
def test_a_long_run_that_is_stopped_tells_how_far_it_came():
    def work():
        yield from (1, 2, 3)
        raise KeyboardInterrupt

    assert long_runs.measured("work", work(), 10).counts == [1, 2, 3]
    assert long_runs.measured("work", iter(range(1, 10)), 10, minutes=0).counts == [1]


@pytest.mark.slow
def test_training_steps_of_a_long_run_take_no_more_memory():
    (run,) = long_runs.main(["--programs", "0", "--steps", "4000"])
    assert run.growth * 2000 < 1 << 20


def test_growth_is_what_one_more_costs_in_the_second_half():
    flat = [100 * i for i in range(10)] + [1000] * 10
    assert long_runs.Run("", list(range(20)), flat).growth == 0
    assert long_runs.Run("", list(range(20)), [7 * i for i in range(20)]).growth == pytest.approx(7)


def test_the_traffic_of_a_compiled_gpu_program_is_that_of_its_kernels():
    hlo = """HloModule m
%fused (p: f32[4]) -> f32[4] {
  ROOT %negate = f32[4]{0} negate(%p)
}

ENTRY %main (a: bf16[8,16], b: bf16[16,2]) -> f32[2] {
  %a = bf16[8,16]{1,0} parameter(0)
  %b = bf16[16,2]{1,0} parameter(1)
  %product = (bf16[8,2]{1,0}, s8[64]{0}) custom-call(%a, %b), custom_call_target="__cublas$lt$matmul"
  %part = bf16[8,2]{1,0} get-tuple-element(%product), index=0
  ROOT %sums = f32[2]{0} fusion(%part), kind=kInput, calls=%fused
}
"""
    assert kernels_of(hlo) == [
        Kernel("product", "__cublas$lt$matmul", "(bf16[8,2]{1,0}, s8[64]{0})", 256 + 64 + 32 + 64),
        Kernel("sums", "fusion kInput", "f32[2]{0}", 32 + 8),
    ]


def test_a_count_of_none_is_drawn_beside_the_others(tmp_path):
    ratios = {"none": 0.0, "half": 0.5}
    results = [
        {"name": name, "against": "limit", "ratio": ratio, "goal": 1.0, "also": []}
        for name, ratio in ratios.items()
    ]
    draw(results, tmp_path / "bench.svg")
    text = (tmp_path / "bench.svg").read_text(encoding="utf-8")
    assert all(f"<!-- {name} beside limit -->" in text for name in ratios)


def test_many_ratios_stand_in_columns(tmp_path):
    results = [
        {"name": f"row-{i}", "against": "JAX", "ratio": 4.0 ** (i % 9 - 5), "goal": 1.0, "also": []}
        for i in range(2 * ROWS)
    ]
    for count, columns in ((3, 1), (ROWS, 1), (2 * ROWS, 2)):
        draw(results[:count], tmp_path / "bench.svg")
        text = (tmp_path / "bench.svg").read_text(encoding="utf-8")
        assert len(set(re.findall(r'id="(axes_\d+)"', text))) == columns
        assert all(f"<!-- row-{i} beside JAX -->" in text for i in range(count))
        assert "<!-- 1× -->" in text


def test_small_ratios_keep_two_digits():
    assert [ratio_text(each) for each in (0.0041, 0.43, 2.084, 90.2)] == ["0.0041", "0.43", "2.08", "90"]
