"""Every error reads as the design says: what, where in the user's program, on what, and what to do."""

import copy
import importlib
import linecache
import pickle
import sys
import traceback
import types
import warnings

import pytest

import tenfold as tn
from tenfold.base import errors
from tenfold.base.errors import Operand, ShapeError, TenfoldError, did_you_mean
from tenfold.base.source import capture, internal

# A package that stands for Tenfold: its tensors know where they were made, and every operator on two fails.
TINY = """
class Tensor:
    def __init__(self, *shape):
        self.type = "f32[" + ",".join(map(str, shape)) + "]"
        self.source = capture()

    def __add__(self, other):
        fail("add", (None, self), (None, other))

    def matmul(self, other):
        fail("matmul", ("self", self), ("other", other))

    def relu(self):
        return self

class Linear:
    def __init__(self, inputs, outputs):
        self.weight = Tensor(outputs, inputs)

    def __call__(self, x):
        fail("linear", ("input", x), ("weight", self.weight))

def fail(op, *operands):
    error = ShapeError("3 and 4 differ", help="slice one")
    raise error.located(op, capture(), [Operand(hint, one.type, one.source) for hint, one in operands])

ones = zeros = Tensor
"""


@pytest.fixture
def train(monkeypatch, tmp_path):
    """Runs a program as train.py and returns the error that it raises."""
    internal("<tiny>")
    tiny = types.ModuleType("tiny")
    vars(tiny).update(capture=capture, ShapeError=ShapeError, Operand=Operand)
    exec(compile(TINY, "<tiny>", "exec"), vars(tiny))
    monkeypatch.setitem(sys.modules, "tiny", tiny)

    def run(program: str, filename: str | None = None) -> TenfoldError:
        path = tmp_path / "train.py"
        path.write_text(program, encoding="utf-8")
        with pytest.raises(TenfoldError) as caught:
            exec(compile(program, filename or str(path), "exec"), {})
        return caught.value

    return run


def test_the_message_of_the_design(train):
    program = "import tiny as tn\n\n\n\n\n\n\nx = tn.ones(2, 3)\nb = tn.zeros(4)\n\ny = x + b\n"
    located = train(program)
    error = ShapeError(
        "cannot broadcast f32[2,3] with f32[4]: 3 and 4 differ in the last dimension",
        help="unsqueeze or slice one operand so that the trailing dimensions agree",
    ).located("add", located.source, located.operands)
    text = """\
add: cannot broadcast f32[2,3] with f32[4]: 3 and 4 differ in the last dimension
  --> train.py:11   y = x + b
                        ^^^^^
      x: f32[2,3] made at train.py:8    x = tn.ones(2, 3)
      b: f32[4]   made at train.py:9    b = tn.zeros(4)
  help: unsqueeze or slice one operand so that the trailing dimensions agree"""
    assert str(error) == text
    assert traceback.format_exception_only(error) == [f"tenfold.base.errors.ShapeError: {text}\n"]


def test_a_chain_over_several_lines(train):
    error = train(
        "import tiny as tn\n"
        "def step(batch, w):\n"
        "    return (\n"
        "        batch.relu()\n"
        "        .matmul(w)  # project\n"
        "        .relu()\n"
        "    )\n"
        "step(tn.ones(2, 3), w=tn.ones(4, 4))\n"
    )
    assert str(error) == (
        "matmul: 3 and 4 differ\n"
        "  --> train.py:5   .matmul(w)  # project\n"
        "                    ^^^^^^^^^\n"
        "      batch.relu(): f32[2,3] made at train.py:8   step(tn.ones(2, 3), w=tn.ones(4, 4))\n"
        "      w:            f32[4,4] made at train.py:8   step(tn.ones(2, 3), w=tn.ones(4, 4))\n"
        "  help: slice one"
    )


def test_a_layer_names_the_arguments_of_its_operator(train):
    error = train("import tiny as tn\nlayer = tn.Linear(3, 4)\nx = tn.ones(2, 5)\ny = layer(x)\n")
    assert str(error) == (
        "linear: 3 and 4 differ\n"
        "  --> train.py:4   y = layer(x)\n"
        "                       ^^^^^^^^\n"
        "      input:  f32[2,5] made at train.py:3   x = tn.ones(2, 5)\n"
        "      weight: f32[4,3] made at train.py:2   layer = tn.Linear(3, 4)\n"
        "  help: slice one"
    )


def test_a_long_or_broken_name_gives_way_to_a_number(train):
    error = train(
        "from tiny import ones\na_name_of_21_letters_ = ones(2)\na_name_of_21_letters_ + (ones(\n    3))\n"
    )
    assert str(error) == (
        "add: 3 and 4 differ\n"
        "  --> train.py:3   a_name_of_21_letters_ + (ones(\n"
        "                   ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^\n"
        "      operand 0: f32[2] made at train.py:2   a_name_of_21_letters_ = ones(2)\n"
        "      operand 1: f32[3] made at train.py:3   a_name_of_21_letters_ + (ones(\n"
        "  help: slice one"
    )


def test_an_operand_used_twice_is_shown_once(train):
    assert str(train("from tiny import ones\nx = ones(2)\nx + x\n")) == (
        "add: 3 and 4 differ\n"
        "  --> train.py:3   x + x\n"
        "                   ^^^^^\n"
        "      x: f32[2] made at train.py:2   x = ones(2)\n"
        "  help: slice one"
    )


@pytest.mark.parametrize("filename", ["<stdin>", "<string>", "/no/such/folder/train.py"])
def test_without_the_source_the_places_remain(train, filename):
    short = filename.rpartition("/")[2]
    assert str(train("from tiny import ones\nx = ones(2)\nx + ones(3, 4)\n", filename)) == (
        "add: 3 and 4 differ\n"
        f"  --> {short}:3\n"
        f"      operand 0: f32[2]   made at {short}:2\n"
        f"      operand 1: f32[3,4] made at {short}:3\n"
        "  help: slice one"
    )


def test_a_file_that_is_gone_by_the_time_of_printing(train, tmp_path):
    error = train("from tiny import ones\nones(2) + ones(3)\n")
    (tmp_path / "train.py").unlink()
    assert str(error) == (
        "add: 3 and 4 differ\n"
        "  --> train.py:2\n"
        "      operand 0: f32[2] made at train.py:2\n"
        "      operand 1: f32[3] made at train.py:2\n"
        "  help: slice one"
    )


def test_tabs_and_wide_characters_keep_the_columns(train):
    error = train(
        "from tiny import ones\n"
        "if True:\n"
        "\t重み, e\u0301\t=\tones(2), ones(3)\n"
        "\ty = '→漢', 重み +\te\u0301\n"
    )
    assert str(error) == (
        "add: 3 and 4 differ\n"
        "  --> train.py:4   y = '→漢', 重み + e\u0301\n"
        "                              ^^^^^^^^\n"
        "      重み: f32[2] made at train.py:3   重み, e\u0301 = ones(2), ones(3)\n"
        "      e\u0301:    f32[3] made at train.py:3   重み, e\u0301 = ones(2), ones(3)\n"
        "  help: slice one"
    )


def test_a_long_line_is_cut_to_what_matters(train):
    numbers = ", ".join(["1"] * 50)
    error = train(f"from tiny import ones\nx = ones({numbers})\ny = [{numbers}, x + x, {numbers}]\n")
    _, line, carets, operand, _ = str(error).splitlines()
    assert line == "  --> train.py:3   …x + x, " + ("1, " * 50)[:81] + "…"
    assert carets == "                    ^^^^^"
    assert operand.endswith("made at train.py:2   x = ones(" + ("1, " * 50)[:80] + "…")


def test_an_expression_longer_than_the_line_is_marked_to_the_cut(train):
    error = train(f"from tiny import ones\nones({'1, ' * 50}) + ones(2)\n")
    _, line, carets, *_ = str(error).splitlines()
    assert line == "  --> train.py:2   ones(" + ("1, " * 50)[:84] + "…"
    assert carets == "                   " + "^" * 90


def test_without_a_place_the_message_stands_alone():
    assert str(ShapeError("empty")) == "empty"
    assert (
        str(ShapeError("empty", help="fill it\nor leave it")) == "empty\n  help: fill it\n        or leave it"
    )


def test_operands_are_listed_even_where_the_place_is_unknown():
    error = ShapeError("bad").located(
        "add", None, [Operand(None, "f32[2]", None), Operand("other", "f32[]", None)]
    )
    assert str(error) == "add: bad\n      operand 0: f32[2]\n      other:     f32[]"


def test_the_first_place_stays():
    error = ShapeError("bad")
    inner = capture()
    assert error.located("inner", None) is error
    assert error.located("without a place", None).op == "inner"
    assert error.located("add", inner).located("outer", capture(), [Operand("x", "f32[]", None)]) is error
    assert (error.op, error.source, error.operands) == ("add", inner, ())


@pytest.mark.parametrize(
    "name, builtin",
    [
        ("ShapeError", ValueError),
        ("DTypeError", TypeError),
        ("DeviceError", ValueError),
        ("ArgumentError", TypeError),
        ("IndexOutOfRange", IndexError),
        ("UnknownName", AttributeError),
        ("UnsupportedError", NotImplementedError),
        ("MissingEngine", ImportError),
        ("TraceError", TypeError),
        ("OutOfMemory", MemoryError),
        ("EngineError", RuntimeError),
        ("FormatError", ValueError),
        ("FileError", OSError),
        ("MissingFile", FileNotFoundError),
        ("FolderGiven", IsADirectoryError),
        ("ForbiddenFile", PermissionError),
        ("NumberOutOfRange", OverflowError),
        ("MissingDevice", AssertionError),
        ("CacheWarning", UserWarning),
    ],
)
def test_an_error_is_also_what_python_and_pytorch_would_raise(name, builtin):
    error = getattr(errors, name)("broken", help="mend it").located("add", None)
    assert isinstance(error, TenfoldError) and isinstance(error, RuntimeError) and isinstance(error, builtin)
    assert str(error) == "add: broken\n  help: mend it"
    assert (error.message, error.help, error.args) == ("broken", "mend it", ("broken",))


@pytest.mark.parametrize("travel", [lambda error: pickle.loads(pickle.dumps(error)), copy.deepcopy])
def test_an_error_reads_the_same_in_another_process(train, tmp_path, travel):
    error = train("from tiny import ones\nones(2) + ones(3)\n")
    error.add_note("in worker 3")
    text = str(error)
    arrived = travel(error)
    (tmp_path / "train.py").unlink()
    assert type(arrived) is ShapeError
    assert str(arrived) == str(arrived.located("load", capture())) == text
    assert (arrived.message, arrived.help, arrived.op) == ("3 and 4 differ", "slice one", "add")
    assert arrived.__notes__ == ["in worker 3"]


def test_an_error_without_a_place_can_get_one_after_travelling():
    arrived = pickle.loads(pickle.dumps(ShapeError("bad")))
    assert str(arrived.located("add", None)) == "add: bad"


def test_a_cache_warning_warns():
    with pytest.warns(errors.CacheWarning, match="^damaged entry\n  help: remove it$"):
        warnings.warn(errors.CacheWarning("damaged entry", help="remove it"), stacklevel=1)


def test_did_you_mean_the_nearest_name():
    names = ["tanh", "atanh", "sum", "cumsum", "softmax"]
    assert did_you_mean("tahn", names) == "did you mean tanh?"
    assert did_you_mean("soft_max", iter(names)) == "did you mean softmax?"
    assert did_you_mean("zzz", names) is None


def test_a_notebook_shows_the_frames_of_the_user_alone(train):
    error = train("import tenfold as tn\nx = tn.ones(2)\ny = x + tn.ones(3)\n")
    *frames, message = error._render_traceback_()
    assert "dispatch.py" not in "".join(frames) and "tenfold" not in "".join(frames).partition("train.py")[2]
    assert any("train.py" in line and "line 3" in line for line in frames)
    assert message == f"ShapeError: {error}"


def test_a_notebook_names_its_cells(monkeypatch):
    cell = "/tmp/ipykernel_1/77.py"
    shell = types.SimpleNamespace(
        compile=types.SimpleNamespace(format_code_name={cell: ("Cell", "In[4]")}.get)
    )
    monkeypatch.setitem(sys.modules, "IPython", types.SimpleNamespace(get_ipython=lambda: shell))
    monkeypatch.setitem(linecache.cache, cell, (30, None, ["x = tn.ones(2)\n", "x + tn.ones(3)\n"], cell))
    with pytest.raises(ShapeError) as raised:
        exec(compile("x = tn.ones(2)\nx + tn.ones(3)\n", cell, "exec"), {"tn": tn, "__name__": "__main__"})
    lines = raised.value._render_traceback_()
    assert '  File "In[4]", line 2, in <module>' in lines and "    x + tn.ones(3)" in lines
    assert "--> In[4]:2" in lines[-1] and cell not in "".join(lines)


def test_a_notebook_shows_errors_whatever_the_limit_of_tracebacks(train, monkeypatch):
    error = train("import tenfold as tn\nx = tn.ones(2)\ny = x + tn.ones(3)\n")
    monkeypatch.setattr(sys, "tracebacklimit", 2, raising=False)
    assert error._render_traceback_()[-1] == f"ShapeError: {error}"


def test_frames_of_an_import_are_not_the_users(tmp_path, monkeypatch):
    (tmp_path / "fails_when_imported.py").write_text("import tenfold as tn\ntn.ones(2) + tn.ones(3)\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ShapeError) as raised:
        importlib.import_module("fails_when_imported")
    frames = "".join(errors.user_frames(raised.value))
    assert "fails_when_imported.py" in frames and "importlib" not in frames.replace(
        "importlib.import_module", ""
    )
