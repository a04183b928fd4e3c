"""Packages whose submodules load when used."""

import subprocess
import sys
from types import ModuleType

import pytest

import tenfold as tn
from tenfold.base.late import late_names, written_names

FRESH = """
import sys
import tenfold as tn
tn.nn, tn.optim
for name in ("nn.recurrent", "nn.utils.prune", "nn.utils.parametrize", "optim.adam", "optim.swa_utils"):
    assert f"tenfold.{name}" not in sys.modules, name
import tenfold.nn.utils.spectral_norm
assert callable(tn.nn.utils.spectral_norm) and tn.nn.utils.prune.__name__ == "tenfold.nn.utils.prune"
assert tn.nn.utils.clip_grad_norm_ is tn.nn.utils.clip_grad.clip_grad_norm_
assert tn.nn.LSTM is tn.nn.recurrent.LSTM and tn.optim.AdamW is tn.optim.adam.AdamW
assert tn.optim.lr_scheduler.StepLR and tn.optim.swa_utils.AveragedModel
"""


def test_submodules_load_when_one_of_their_names_is_used():
    subprocess.run([sys.executable, "-c", FRESH], check=True)


def test_every_public_name_is_there_and_listed():
    for package in (tn.nn, tn.nn.utils, tn.optim):
        assert set(package.__all__) <= set(dir(package))
        assert all(getattr(package, name) is not None for name in package.__all__)


REPLACED = """
import tenfold as tn
tn.nn.Conv2d = "another layer"
assert tn.nn.Conv1d.__module__ == "tenfold.nn.convolution" and tn.nn.Conv2d == "another layer"
"""


def test_a_name_that_a_program_has_replaced_stays_when_its_submodule_loads():
    subprocess.run([sys.executable, "-c", REPLACED], check=True)


def test_an_unknown_name_is_an_error_that_suggests_one():
    with pytest.raises(AttributeError, match="tenfold.nn.utils has no 'clip_grad_nrm_'"):
        tn.nn.utils.clip_grad_nrm_  # noqa: B018


WRITTEN = """
from tenfold.base.late import late_names
from p.first import One as One

if TYPE_CHECKING:
    from p import third as third
    from p.second import (
        Two as Two,  # with a word on it
        Three as Three,
    )
    from p.third import hidden
"""


def test_late_and_public_names_are_those_imported_as_themselves():
    late = {"third": [], "second": ["Two", "Three"]}
    assert written_names("p", WRITTEN) == (late, ["One", "third", "Two", "Three"])


def test_a_submodule_may_not_bring_its_own_name(tmp_path, monkeypatch):
    package = ModuleType("p")
    package.__file__ = str(tmp_path / "p.py")
    (tmp_path / "p.py").write_text("if TYPE_CHECKING:\n    from p.sgd import sgd as sgd\n")
    monkeypatch.setitem(sys.modules, "p", package)
    with pytest.raises(AssertionError):
        late_names("p")
