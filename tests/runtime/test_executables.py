"""Executables: when numbers are opened, what is remembered, and what is let go."""

import os
import subprocess
import sys

import pytest

import tenfold as tn
from tenfold.base.devices import Device
from tenfold.runtime import executables
from tenfold.runtime.executables import MAX_VARIANTS, counting_compiles, observing

CPU = Device("cpu")


@pytest.fixture(autouse=True)
def _on_xla(on_xla):
    executables.forget("cpu")


NUMBERS = """
import tenfold as tn
from tenfold.runtime.executables import counting_compiles

x = tn.ones(3).eval()
with counting_compiles() as compiles:
    for number in range(2, 10):
        assert (x * number).sum().item() == 3 * number
print(compiles.end - compiles.start)
"""


def test_the_third_program_that_differs_in_its_numbers_is_compiled_for_all(tmp_path):
    environment = os.environ | {"TENFOLD_TIER": "xla", "TENFOLD_CACHE_DIR": str(tmp_path)}
    command = [sys.executable, "-c", NUMBERS]  # alone: other tests have such programs, too
    printed = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
    assert int(printed) == MAX_VARIANTS + 1


def test_a_program_that_was_forgotten_is_compiled_again():
    x = tn.ones(3).eval()
    for expected in (1, 0):
        with counting_compiles() as compiles:
            (x + 1).eval()
        assert compiles == expected
    executables.forget("cuda")
    with counting_compiles() as compiles:
        (x + 1).eval()
    assert compiles == 0
    executables.forget("cpu")
    with counting_compiles() as compiles:
        (x + 1).eval()
    assert compiles == 1


def test_the_least_recently_used_goes_first(monkeypatch):
    monkeypatch.setattr(executables, "MAX_EXECUTABLES", 2)
    programs = {}
    for name in ("a", "b"):
        executables._remember(programs, name, name.upper())
    assert executables._recent(programs, "a") == "A" and executables._recent(programs, "none") is None
    executables._remember(programs, "c", "C")
    assert list(programs) == ["a", "c"]


def test_executables_go_by_halves_until_mappings_are_few(monkeypatch):
    kept = {i: i for i in range(8)}
    counts = iter([5, 5, 2])
    monkeypatch.setattr(executables, "_executables", kept)
    monkeypatch.setattr(executables, "_opened", {})
    monkeypatch.setattr(executables, "_mappings", lambda: next(counts))
    monkeypatch.setattr(executables, "MAX_MAPPINGS", 3)
    executables._relieve()
    assert list(kept) == [7]


def test_an_observer_hears_of_a_program_once_and_only_inside_its_block():
    heard, x = [], tn.ones(3).eval()
    with observing(lambda program, device: heard.append((len(program.nodes), device))):
        for _ in range(2):
            (x.exp() + x).eval()
    assert heard == [(2, CPU)]
    x.sinh().eval()
    assert len(heard) == 1


def test_a_count_of_compiles_stays_when_its_block_ends():
    x = tn.ones(2).eval()
    with counting_compiles() as compiles:
        x.cosh().eval()
        assert compiles == 1 and not compiles < 1
    x.sinh().eval()
    assert compiles == 1 and compiles < 2 and repr(compiles) == "1 compiles"
