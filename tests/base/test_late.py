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


ON_FIRST_USE = """
from tenfold.base.late import on_first_use
with on_first_use(__name__):
    import wave
    from late_package import first
    from late_package.second import double, Pair as Two

def use(what):
    if what == "Two":
        return Two(1, 2)
    return double(2) if what == "double" else first.one if what == "first" else wave.Error
"""
SECOND = """
def double(x):
    return 2 * x
class Pair(tuple):
    def __new__(cls, *parts):
        return super().__new__(cls, parts)
"""


@pytest.mark.parametrize("what, expected", [("first", 1), ("double", 4), ("Two", (1, 2))])
def test_a_name_is_bound_to_what_it_stands_for_when_it_is_first_used(package, what, expected):
    ordinary = builtins.__import__
    found = package(ON_FIRST_USE, first="one = 1", second=SECOND)
    assert builtins.__import__ is ordinary
    assert not {"late_package.first", "late_package.second"} & set(sys.modules)
    standing = vars(found)[what]
    assert found.use(what) == expected
    bound = vars(found)[what]
    assert bound is not standing
    assert found.use(what) == expected and vars(found)[what] is bound
    others = {"first", "double", "Two"} - {what}
    assert all(type(vars(found)[name]) is type(standing) for name in others)


def test_what_stands_for_a_name_passes_everything_on(package):
    found = package(ON_FIRST_USE, first="one = 1", second=SECOND)
    standing = vars(found)["first"]
    standing.two = 2
    module = sys.modules["late_package.first"]
    assert module.two == standing.two == 2 and vars(found)["first"] is module
    del standing.two
    assert not hasattr(module, "two") and "one" in dir(standing) and repr(standing) == repr(module)
    with pytest.raises(AttributeError, match="no attribute 'three'"):
        standing.three  # noqa: B018
    with pytest.raises(TypeError, match="unhashable"):
        hash(standing)


def test_a_name_that_a_program_has_put_there_stays_when_it_is_loaded(package):
    found = package(ON_FIRST_USE, first="one = 1", second=SECOND)
    standing, found.double = vars(found)["double"], abs
    assert standing(2) == 4 and found.double is abs


def test_threads_that_first_use_a_name_at_once_see_all_of_it(package):
    slow = "import time\nbegun = True\ntime.sleep(0.1)\none = 1"
    found = package(ON_FIRST_USE, first=slow, second=SECOND)
    ready, seen = threading.Barrier(8), []

    def use():
        ready.wait()
        seen.append(found.use("first"))

    threads = [threading.Thread(target=use) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == [1] * 8
