"""Packages whose submodules load when used."""

import builtins
import compileall
import importlib
import subprocess
import sys
import threading
from types import ModuleType

import pytest

import tenfold as tn
from tenfold.base.late import late_imports

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


@pytest.fixture
def package(tmp_path, monkeypatch):
    """Writes a package `late_package` from its source and those of its submodules, and imports it."""

    def write(source: str, **submodules: str) -> ModuleType:
        folder = tmp_path / "late_package"
        folder.mkdir()
        for name, text in {"__init__": source, **submodules}.items():
            (folder / f"{name}.py").write_text(text)
        monkeypatch.syspath_prepend(tmp_path)
        for name in ("late_package", *[f"late_package.{each}" for each in submodules]):
            monkeypatch.delitem(sys.modules, name, raising=False)
        return importlib.import_module("late_package")

    return write


LATE = """
from tenfold.base.late import late_imports
from late_package.first import One as One
import late_package.first

with late_imports(__name__) as late:
    from late_package import third as third, first as first
    from late_package.second import Two as Two, Three as Three

__getattr__, __dir__, __all__ = late.attributes()
"""


def test_names_are_public_and_load_with_their_submodule(package):
    second = "loaded = True\nTwo, Three, other = 2, 3, 4"
    found = package(LATE, first="One = 1", second=second, third="Four = 4")
    assert set(found.__all__) == {"One", "third", "first", "Two", "Three"}
    assert {"third", "second", "Two"} <= set(dir(found))
    assert not {"late_package.second", "late_package.third"} & set(sys.modules)
    assert (found.Two, found.__dict__["Three"]) == (2, 3) and "other" not in found.__dict__
    assert found.third.Four == 4 and found.first.One == 1 and found.second.loaded


def test_a_block_reads_no_source_and_leaves_imports_as_they_were(package, tmp_path):
    ordinary = builtins.__import__
    found = package(LATE, first="One = 1", second="Two = Three = 2", third="")
    assert builtins.__import__ is ordinary
    compileall.compile_dir(tmp_path, quiet=1, legacy=True)
    for path in (tmp_path / "late_package").glob("*.py"):
        path.unlink()
    for name in [name for name in sys.modules if name.startswith("late_package")]:
        del sys.modules[name]
    importlib.invalidate_caches()
    again = importlib.import_module("late_package")
    assert again.__file__.endswith(".pyc") and again.__all__ == found.__all__ and again.Two == 2


def test_other_threads_import_while_a_block_runs():
    module = ModuleType("late_package")
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "late_package", module)
        with late_imports("late_package"):
            thread = threading.Thread(target=exec, args=("from wave import open as taken", seen := {}))
            thread.start()
            thread.join()
    assert callable(seen["taken"])


def test_a_submodule_may_not_bring_its_own_name(package):
    source = (
        "from tenfold.base.late import late_imports\n"
        "with late_imports(__name__) as late:\n    from late_package.sgd import sgd as sgd\n"
    )
    with pytest.raises(AssertionError):
        package(source, sgd="sgd = 1")
