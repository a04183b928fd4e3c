"""The fuzzer itself: a few inputs of each format, and that it sees what goes wrong. `make fuzz` runs more."""

from __future__ import annotations

import random
import subprocess
import sys
from argparse import Namespace
from contextlib import suppress

import pytest

import tenfold as tn
from tenfold.mlir import portable
from tests.fuzz import __main__ as driver, inputs, modules


@pytest.mark.filterwarnings("ignore:compilation cache. ignoring")
@pytest.mark.parametrize("name", ["pt", "safetensors", "mlir", "program", "stablehlo", "purple", "cache"])
def test_a_few_hostile_inputs_are_refused_by_errors_of_ours(name, monkeypatch, tmp_path):
    monkeypatch.setenv("TENFOLD_CACHE_DIR", str(tmp_path))
    inputs.entry.cache_clear()
    for seed in range(10):
        inputs.attempt(inputs.FORMATS[name], seed)


@pytest.mark.slow
@pytest.mark.parametrize("name", inputs.FORMATS)
def test_hostile_inputs_of_every_format(name):
    assert driver.watch(name, seed=1_000_000, count=100) == []


def test_many_of_the_programs_that_the_grammar_makes_are_well_typed():
    """Others are refused before XLA sees them."""
    typed = 0
    for seed in range(40):
        with suppress(tn.TenfoldError):
            portable.read(modules.hostile_program(random.Random(seed)))
            typed += 1
    assert typed > 12


@pytest.mark.slow
def test_an_index_that_leads_out_of_a_vmfb_is_found_on_trial():
    """IREE reads outside of this file, and dies only if nothing lies there."""
    assert driver.watch("vmfb", seed=408_312, count=1) == []


BROKEN = """
import sys, time
print("at 7", flush=True)
{}
print("done")
"""


@pytest.mark.parametrize(
    ("what", "told"),
    [
        ("import os; os.abort()", "died with -6"),
        ("time.sleep(60)", "hangs for over 2 s"),
        ("while True: pass", "computes for over 1 s"),
        ("held = b'x' * (1 << 28); print('at 100', flush=True); time.sleep(1)", "holds"),
    ],
)
def test_a_worker_that_goes_wrong_is_a_finding(what, told, monkeypatch):
    monkeypatch.setattr(driver, "SECONDS", 1.0)
    monkeypatch.setattr(driver, "WAIT", 2.0 if "sleep(60)" in what else 600.0)
    monkeypatch.setattr(driver, "BYTES", 1 << 28)
    command = [sys.executable, "-c", BROKEN.format(what)]
    worker = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    _, why = driver.follow(worker, [], "x")
    assert why is not None and told in why


def test_a_finding_is_printed_before_the_run_ends(capsys):
    command = [sys.executable, "-c", BROKEN.format("print('wrong 7 KeyError: no key', flush=True)")]
    worker = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    findings = []
    assert driver.follow(worker, findings, "x") == (7, None)
    assert findings == ["x seed 7: KeyError: no key"]
    assert capsys.readouterr().out == "  x seed 7: KeyError: no key\n"


@pytest.mark.parametrize("endless", ["while True: pass", "time.sleep(60)"])
def test_a_program_that_takes_long_itself_is_no_finding(endless, monkeypatch):
    monkeypatch.setattr(driver, "SECONDS", 1.0)
    monkeypatch.setattr(driver, "WAIT", 2.0 if "sleep" in endless else 600.0)
    looping = f"print({inputs.LOOPING!r}, flush=True)\n{endless}"
    command = [sys.executable, "-c", BROKEN.format(looping)]
    worker = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    assert driver.follow(worker, [], "x") == (7, "")


def test_a_worker_that_computes_now_and_then_does_not_hang(monkeypatch):
    monkeypatch.setattr(driver, "WAIT", 2.0)
    slowly = "for _ in range(8): time.sleep(0.5); sum(range(3_000_000))"
    command = [sys.executable, "-c", BROKEN.format(slowly)]
    worker = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    assert driver.follow(worker, [], "x") == (7, None)


@pytest.mark.slow
def test_a_module_whose_loop_runs_a_billion_times_is_no_finding():
    assert driver.watch("mlirbc", seed=27_009_730, count=1) == []


def test_what_the_fuzzer_of_c_prints_need_not_be_text(tmp_path, monkeypatch):
    """libtorch's warnings repeat the names that it was given."""
    failing = tmp_path / "failing"
    failing.write_text("#!/bin/sh\nprintf '\\377' >&2\nexit 3\n")
    failing.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(failing))
    assert driver.call_c(Namespace(count=1, seed=7)) == ["c seed 7: \N{REPLACEMENT CHARACTER}"]
