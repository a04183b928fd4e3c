"""Programs that IREE compiled, called as functions of tensors."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import tenfold as tn
from tenfold.base.dim import Dim
from tenfold.exporting import untrusted, vmfb, vmfb_process


def test_a_loaded_module_checks_sizes():
    pytest.importorskip("iree.compiler")
    n = Dim("n", min=2, max=8)
    given = (tn.ones(2, 3), tn.ones(2, 3))
    run = tn.load_vmfb(tn.export(lambda x, y: x + y, given, dynamic={0: {0: n}, 1: {0: n}}).build())
    assert repr(run) == "<BuiltModule: (f32[n,3], f32[n,3]) -> (f32[n,3])>"
    assert run(tn.ones(8, 3), tn.ones(8, 3)).shape == (8, 3)
    with pytest.raises(tn.ShapeError, match="n is 2 in argument 0 and 3 in 1"):
        run(tn.ones(2, 3), tn.ones(3, 3))
    with pytest.raises(tn.ShapeError, match=r"n must be from 2 to 8, not 9 \(argument 0\)"):
        run(tn.ones(9, 3), tn.ones(9, 3))
    with pytest.raises(tn.ShapeError, match=r"argument 0 of the module is f32\[n,3\], not f32\[2,4\]"):
        run(tn.ones(2, 4), tn.ones(2, 3))


class Executable:
    """In the place of IREE: gives what it is told to, and keeps what it was given."""

    about: dict[str, Any] = {}
    results: tuple[np.ndarray, ...] = ()

    def __init__(self, data: bytes, target: str):
        self.data, self.target = data, target

    def __call__(self, arrays: list[np.ndarray]) -> list[np.ndarray]:
        self.given = arrays
        return list(self.results)


@pytest.fixture
def module(monkeypatch):
    """Makes a module of what a file tells of itself and of what it computes."""
    from tenfold.engines import iree

    monkeypatch.setattr(iree, "runtime", lambda: None)
    monkeypatch.setattr(untrusted, "loadable", lambda data, target: True)

    def make(about: dict[str, Any], *results: np.ndarray) -> vmfb.BuiltModule:
        kind = type("Known", (Executable,), {"about": about, "results": results})
        monkeypatch.setattr(iree, "Executable", kind)
        return tn.load_vmfb(b"data")

    return make


ABOUT = {"inputs": ["f32[2]", "i64[2]"], "outputs": ["u8[2]"], "parameters": [], "dimensions": {}}


def test_a_file_may_lie_on_disk_and_be_for_another_device(module, tmp_path, monkeypatch):
    module({})
    path = tmp_path / "model.vmfb"
    path.write_bytes(b"from disk")
    for source in (path, str(path)):
        run = tn.load_vmfb(source, "cuda")
        assert (run._executable.data, run._executable.target) == (b"from disk", "cuda")
    monkeypatch.setattr(untrusted, "loadable", lambda data, target: False)
    apart = SimpleNamespace(about={})
    monkeypatch.setattr(vmfb_process, "Apart", lambda data, target: apart)
    assert tn.load_vmfb(memoryview(b"bytes"))._executable is apart


def test_a_file_that_tells_nothing_is_checked_by_iree_alone(module):
    run = module({}, np.array([1, 2], np.int8))
    assert (run.inputs, run.outputs, repr(run)) == (None, None, "<BuiltModule of unknown types>")
    assert run(tn.ones(3, 3), 5).tolist() == [1, 2]
    assert [each.shape for each in run._executable.given] == [(3, 3), ()]


def test_results_get_their_sign_back_and_one_is_alone(module):
    signless = np.array([200, 7], np.uint8).view(np.int8)
    run = module(ABOUT, signless)
    found = run(tn.ones(2), tn.tensor([1, 2]))
    assert (found.dtype, found.tolist()) == (tn.uint8, [200, 7])
    both = module({**ABOUT, "outputs": ["u8[2]", "i8[2]"]}, signless, signless)(tn.ones(2), tn.tensor([1, 2]))
    assert [each.tolist() for each in both] == [[200, 7], [-56, 7]]


def test_other_results_than_the_file_tells_of_are_refused(module):
    for results in ((np.zeros(2, np.int16),), (), (np.zeros(2, np.int8), np.zeros(2, np.int8))):
        with pytest.raises(tn.FormatError, match="gives other results"):
            module(ABOUT, *results)(tn.ones(2), tn.tensor([1, 2]))


def test_arguments_are_counted_and_parameters_named(module):
    run = module({**ABOUT, "parameters": ["weight", "bias"]}, np.zeros(2, np.int8))
    with pytest.raises(tn.ArgumentError, match="takes 2 tensors, not 1") as told:
        run(tn.ones(2))
    assert "weight, bias" in told.value.help
    with pytest.raises(tn.ArgumentError) as told:
        module(ABOUT, np.zeros(2, np.int8))(tn.ones(2))
    assert told.value.help is None
    with pytest.raises(tn.TenfoldError, match=r"i64\[2\]"):
        run(tn.ones(2), tn.ones(2))


def test_gradients_do_not_flow_through_a_file(module):
    with pytest.raises(tn.TenfoldError, match="gradient"):
        module({}, np.zeros(2, np.int8))(tn.ones(2, requires_grad=True))


@pytest.mark.parametrize("damaged", [
    {"inputs": 3}, {"inputs": ["tensor"]}, {"parameters": None}, {"dimensions": []},
    {"dimensions": {"n": {"most": 3}}},
], ids=str)  # fmt: skip
def test_what_a_damaged_file_tells_of_itself_is_not_believed(module, damaged):
    with pytest.raises(tn.FormatError):
        module({**ABOUT, **damaged})
