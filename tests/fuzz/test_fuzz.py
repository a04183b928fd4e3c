"""The fuzzer itself: a few inputs of each format, and that it sees what goes wrong. `make fuzz` runs more."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.fuzz import __main__ as driver
from tests.fuzz import inputs


@pytest.mark.filterwarnings("ignore:compilation cache. ignoring")
@pytest.mark.parametrize("name", ["pt", "safetensors", "mlir", "stablehlo", "purple", "cache"])
def test_a_few_hostile_inputs_are_refused_by_errors_of_ours(name, monkeypatch, tmp_path):
    monkeypatch.setenv("TENFOLD_CACHE_DIR", str(tmp_path))
    inputs.entry.cache_clear()
    for seed in range(10):
        inputs.attempt(inputs.FORMATS[name], seed)


@pytest.mark.slow
@pytest.mark.parametrize("name", inputs.FORMATS)
def test_hostile_inputs_of_every_format(name):
    assert driver.watch(name, seed=1_000_000, count=100) == []


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
