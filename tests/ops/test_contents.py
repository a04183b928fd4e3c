"""What the families of rows declare is known before they are loaded."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import tenfold
from tenfold.ops import contents
from tenfold.ops.table import OTHERS, TABLE, LateRows, all_rows

PACKAGE = Path(tenfold.__file__).parent
LOADED = "[name.removeprefix('tenfold.ops.') for name in sys.modules if name.startswith('tenfold.ops.')]"


@pytest.fixture(scope="module")
def bytecode(tmp_path_factory):
    return tmp_path_factory.mktemp("bytecode")


@pytest.fixture
def kept(tmp_path, bytecode):
    """Runs programs whose bytecode, and the contents beside it, are in a folder of their own."""
    for path in bytecode.rglob("contents.*.table"):
        path.unlink()

    def run(code: str, *options: str, package: Path = PACKAGE, **variables: str) -> str:
        environment = {**os.environ, "PYTHONPATH": str(package.parent), "PYTHONPYCACHEPREFIX": str(bytecode)}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        command = [sys.executable, *options, "-c", code]
        done = subprocess.run(
            command, env=environment | variables, cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    return run


def test_a_second_process_loads_the_families_that_it_uses(kept):
    program = f"import sys, tenfold as tn; tn.ones(2, 3).tanh().sum().item(); print({LOADED})"
    assert {"fourier", "reductions"} <= set(eval(kept(program)))
    second = set(eval(kept(program)))
    assert "reductions" in second and not {"fourier", "losses", "convolution"} & second


def test_a_table_says_the_same_however_it_is_filled(kept):
    program = """
import hashlib
import tenfold as tn
from tenfold.ops.table import OTHERS, TABLE, with_form
doors = [(name, TABLE.doors(name)) for name in TABLE.names()]
told = [doors, with_form("foreach"), with_form("function_"), list(OTHERS)]
if FIRST:
    tn.ones(2).view(2), tn.fft.fft
for table in (TABLE, *OTHERS.values()):
    told += [[(name, [(row.text, row.home) for row in rows]) for name, rows in table.items()], len(table)]
told += [[(name, TABLE.doors(name)) for name in TABLE] == doors]
told += [sorted(dir(tn)), sorted(dir(tn.Tensor)), tn.__all__]
print(hashlib.sha256(repr(told).encode()).hexdigest())
"""
    without = kept(f"FIRST = False\n{program}")
    assert kept(f"FIRST = False\n{program}") == kept(f"FIRST = True\n{program}") == without


def test_contents_of_other_sources_are_not_used(kept, tmp_path):
    copy = tmp_path / "copy" / "tenfold"
    shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__", "capi", "purple"))
    used = f"import sys, tenfold as tn; print('fourier' in {LOADED})"
    assert [kept(used, package=copy), kept(used, package=copy)] == ["True", "False"]
    family = copy / "ops" / "fourier.py"
    source = family.read_text(encoding="utf-8")
    family.write_text(
        source + "\n\n@op('twice_over(Tensor self) -> Tensor')\ndef twice_over(x):\n    return x + x\n"
    )
    called = (
        "import tenfold as tn; print(tn.twice_over(tn.ones(2)).tolist(), tn.ones(()).twice_over().item())"
    )
    assert kept(called, package=copy) == kept(called, package=copy) == "[2.0, 2.0] 2.0"
    assert kept(used, package=copy) == "False"


@pytest.mark.parametrize("damage", [b"", b"\0damaged", None])
def test_damaged_contents_are_made_anew(kept, bytecode, damage):
    program = f"import sys, tenfold as tn; print('fourier' in {LOADED}, tn.fft.fft(tn.ones(2)).real.tolist())"
    kept(program)
    (path,) = bytecode.rglob("contents.*.table")
    path.write_bytes(path.read_bytes()[:2000] if damage is None else damage)
    assert kept(program) == "True [2.0, 0.0]" and kept(program) == "False [2.0, 0.0]"


def test_nothing_is_kept_where_bytecode_is_not(kept, bytecode):
    program = f"import sys, tenfold as tn; print('fourier' in {LOADED})"
    assert kept(program, "-B") == kept(program, "-B") == "True"
    assert not list(bytecode.rglob("contents.*.table"))


def test_contents_of_bytecode_alone_are_not_kept(tmp_path, monkeypatch):
    monkeypatch.setattr(contents, "__file__", str(tmp_path / "ops" / "contents.pyc"))
    assert contents._sources() is None
    for layer in contents.LAYERS:
        (tmp_path / layer).mkdir(parents=True, exist_ok=True)
        (tmp_path / layer / "family.pyc").touch()
    assert contents._sources() is None
    (tmp_path / "ops" / "family.py").touch()
    assert [name for name, _, _ in contents._sources()] == ["ops/family.py"]


def test_threads_that_first_use_a_family_at_once_see_all_of_it(kept):
    program = """
import threading
import tenfold as tn
from tenfold.ops.table import TABLE
names = ["view", "index", "conv2d", "fft_fft", "linalg_svd", "narrow", "view_copy", "cross_entropy_loss"]
seen, ready = [], threading.Barrier(8)
def use(turn):
    ready.wait()
    for name in names[turn:] + names[:turn]:
        seen.append((name, tuple(row.text for row in TABLE[name])))
    seen.append(len(TABLE))
threads = [threading.Thread(target=use, args=(turn,)) for turn in range(8)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
print(len(seen), len(set(seen)))
"""
    kept("import tenfold")
    assert kept(program) == "72 9"


def test_an_op_of_ones_own_may_share_a_name_with_a_family_that_is_not_loaded(kept):
    program = """
import tenfold as tn
from tenfold.ops.table import TABLE, op
@op("fft_fft.mine(Tensor self, str word) -> Tensor")
def mine(x, word):
    return x
assert [row.overload for row in TABLE["fft_fft"]] == ["", "mine"]
try:
    op("fft_fft(Tensor self) -> Tensor")(mine)
except TypeError as error:
    print(error, tn.fft.fft(tn.ones(2)).real.tolist())
"""
    kept("import tenfold")
    assert kept(program) == "op fft_fft is declared twice [2.0, 0.0]"


def test_a_family_whose_import_is_interrupted_loads_again(kept):
    program = """
import sys
import tenfold as tn
def trace(frame, event, arg):
    if frame.f_code.co_filename.endswith("fourier.py") and frame.f_lineno > LINE:
        raise KeyboardInterrupt
    return trace
sys.settrace(trace)
try:
    tn.fft.fft(tn.ones(2))
except KeyboardInterrupt:
    print("interrupted", end=" ")
sys.settrace(None)
print(tn.fft.fft(tn.ones(2)).real.tolist(), len(tn.ops.TABLE["fft_fft"]))
"""
    kept("import tenfold")
    lines = (PACKAGE / "ops" / "fourier.py").read_text(encoding="utf-8").splitlines()
    for line in (len(lines) // 2, next(i for i, text in enumerate(lines) if "    _declare(" in text)):
        assert kept(f"LINE = {line}\n{program}") == "interrupted [2.0, 0.0] 1"


def test_every_family_is_listed():
    files = {
        path.stem for path in (PACKAGE / "ops").glob("*.py") if "@op(" in path.read_text(encoding="utf-8")
    }
    assert files <= {*tenfold.ops.FAMILIES, "table"}
    homes = {row.home for row in all_rows()} | {
        row.home for t in OTHERS.values() for rows in t.values() for row in rows
    }
    assert {home.split(".")[2] for home in homes if home.startswith("tenfold.ops.")} <= set(
        tenfold.ops.FAMILIES
    )


def test_a_table_is_a_dictionary():
    table = contents.Table()
    assert table == {} and not table and "tanh" in TABLE and "no_such_op" not in TABLE
    assert TABLE.get("no_such_op") is None and TABLE.get("no_such_op", 3) == 3
    with pytest.raises(KeyError):
        TABLE["no_such_op"]
    rows = table.setdefault("one", [])
    assert table.setdefault("one", [1]) is rows and list(table) == ["one"] and dict(table) == {"one": []}
    del table["one"]
    assert table.pop("one", None) is None and len(table) == 0


def test_late_rows_are_found_once():
    rows = LateRows(select="select.int")
    assert (
        rows.select is rows.select is TABLE["select"][[row.overload for row in TABLE["select"]].index("int")]
    )
    with pytest.raises(AttributeError):
        rows._absent  # noqa: B018
