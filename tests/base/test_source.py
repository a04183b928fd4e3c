"""A Source points at exactly the expression that the user wrote, and names its operands as the user does."""

import _thread
import copy
import linecache
import os
import queue
import subprocess
import sys
import types

import pytest

import tenfold as tn
from tenfold.base import source
from tenfold.base.source import Source, capture, internal

# A package that stands for Tenfold: each operator captures where it was called from and stops the program
# there, so that a statement such as `x[i] = v` can be looked at as well as an expression.
SPIES = """
class Captured(Exception):
    pass

def spy(*args, **kwargs):
    raise Captured(capture())

def harmless(*args, **kwargs):
    return args[0]

class Spy:
    __add__ = __radd__ = __iadd__ = __rsub__ = __matmul__ = __neg__ = __invert__ = __lt__ = __and__ = spy
    __getitem__ = __setitem__ = __bool__ = __iter__ = matmul = add_ = sum = spy
    T = property(spy)
    relu = harmless

class Layers:
    relu = spy
    linear = spy

matmul = cat = linear = norm = spy
"""


@pytest.fixture
def spies(monkeypatch):
    internal("<spies>")
    module = types.ModuleType("spies")
    module.capture = capture
    exec(compile(SPIES, "<spies>", "exec"), vars(module))
    monkeypatch.setitem(sys.modules, "spies", module)
    return module


@pytest.fixture
def where(spies, tmp_path):
    """Runs a program, of which one line calls an operator, and returns the Source that the operator saw."""

    def run(program: str, filename: str | None = None) -> Source:
        text = f"import spies as tn\nfrom spies import matmul\n{program}\n"
        if filename is None:
            path = tmp_path / "train.py"
            path.write_text(text, encoding="utf-8")
            filename = str(path)
        names = {name: spies.Spy() for name in ("x", "b", "v", "i", "j", "long_name_of_an_operand")}
        with pytest.raises(spies.Captured) as caught:
            exec(compile(text, filename, "exec"), names | {"model": spies.Layers(), "self": spies.Layers()})
        return caught.value.args[0]

    return run


def marked(place: Source) -> str:
    """The line's text with the expression between ‹ and ›."""
    start, end = place.span()
    return f"{place.text[:start]}‹{place.text[start:end]}›{place.text[end:]}"


@pytest.mark.parametrize(
    "program",
    [
        "y = ‹x + b›",
        "y = 1 if (‹x @ b›) + 1 else 2",
        "‹x += b›",
        "y = ‹2 - x›",
        "y = ~‹-x›",
        "y = ‹~x›",
        "assert ‹x < b›",
        "y = [1, ‹x[i]›]",
        "y = ‹x[i, 0, 1:2]›",
        "‹x[i]› = v",
        "‹x[i]› += v",
        "y = ‹x.matmul(b)›",
        "y = ‹tn.matmul(x, b)›.relu()",
        "y = ‹x.relu().matmul(b)›.relu()",
        "y = ‹x.T›",
        "a, c = 1, ‹matmul(x, b)›",
        "y = [‹k + b› for k in (x,)]",
        "(lambda k: ‹k + b›)(x)",
        'y = f"{‹x + b›}"',
        "if ‹x›: pass",
        "while ‹x›: pass",
        "assert ‹x›, 'no'",
        "y = 1 if ‹x› else 2",
        "y = ‹not x›",
        "for row in ‹x›: pass",
        "‹a, c› = x",
        "with ‹x + b› as c: pass",
        "y = '漢é\u0301' and ‹x + b›",
        "y\t=\t‹x +\tb›  # why",
    ],
)
def test_the_span_is_the_expression(where, program):
    assert marked(where(program.replace("‹", "").replace("›", ""))) == program


@pytest.mark.parametrize(
    "program, line, expected",
    [
        ("y = (x.relu()\n     .matmul(b)\n     .relu())", 4, ".‹matmul(b)›"),
        ("y = x.matmul(  # the weights\n    b,\n)", 3, "y = ‹x.matmul(›  # the weights"),
        ("y = (x  # left\n     + b)", 3, "y = (‹x›  # left"),
        ("y = x \\\n    + b", 3, "y = ‹x› \\"),
        ("y = [\n    1,\n    x +\n    b,\n]", 5, "‹x +›"),
        ("if True:\n    if x:\n        pass\n    else:\n        pass", 4, "if ‹x›:"),
        ("if False:\n    pass\nelif x:\n    pass", 5, "elif ‹x›:"),
        ("y = tn.matmul(x, '''a\nb''')", 3, "y = ‹tn.matmul(x,› '''a"),
    ],
)
def test_of_an_expression_on_several_lines_the_first_is_marked(where, program, line, expected):
    place = where(program)
    assert (place.line, marked(place)) == (line, expected)


@pytest.mark.parametrize(
    "program, op, names",
    [
        ("y = x + b", "add", ["x", "b"]),
        ("y = x.T + b if False else (x + b.relu())", "aten::add.Tensor", ["x", "b.relu()"]),
        ("x += b", "add_", ["x", "b"]),
        ("y = x & b", "__and__", ["x", "b"]),
        ("y = 2 - x", "rsub", ["x"]),
        ("y = b.relu - x", "rsub", ["x", "b.relu"]),
        ("y = -x", "neg", ["x"]),
        ("y = x < b", "lt", ["x", "b"]),
        ("y = x < b < v", "lt", [None, None]),
        ("y = x.matmul(b)", "matmul", ["x", "b"]),
        ("y = (x\n  .matmul(\n   b))", "matmul", ["x", "b"]),
        ("x.add_(b)", "add_", ["x", "b"]),
        ("y = x.sum(-1, True)", "sum", ["x"]),
        ("y = tn.matmul(x, b)", "matmul", ["x", "b"]),
        ("y = matmul(x, b)", "matmul", ["x", "b"]),
        ("y = tn.matmul(*[x, b])", "matmul", [None, None]),
        ("y = tn.norm(x)", "linalg_norm", ["x"]),
        ("y = tn.cat([x, b, v])", "cat", ["x", "b", "v"]),
        ("y = tn.cat([x, b], 1)", "cat", [None, None]),
        ("y = x[i]", "index", ["x", "i"]),
        ("y = x[i, 1:2, None, ..., j]", "index", ["x", "i", "j"]),
        ("y = x[i, 'a'.upper()]", "index", ["x", None]),
        ("x[i] = v", "index_put_", ["x", "i", "v"]),
        ("x[0] = v", "copy_", ["x[0]", "v"]),
        ("y = x.T", "numpy_T", ["x"]),
        ("if x: pass", "item", ["x"]),
        ("y = not x", "item", ["x"]),
        ("for row in x: pass", "unbind", ["x"]),
        ("a, c = x", "unbind", ["x"]),
    ],
)
def test_operands_are_called_what_the_user_calls_them(where, program, op, names):
    assert where(program).operand_names(op, [None] * len(names)) == names


def test_keywords_are_matched_by_the_name_of_the_argument(where):
    place = where("y = tn.linear(x, bias=v, weight=b)")
    assert place.operand_names("linear", ["input", "weight", "bias"]) == ["x", "b", "v"]


@pytest.mark.parametrize(
    "program, op, arguments",
    [
        ("y = self.relu(x)", "matmul", ["self", "mat2"]),
        ("y = model.linear(x)", "linear", ["input", "weight"]),
        ("y = model.relu(x)", "relu", ["self"]),
        ("y = x + b", "mul", ["self", "other"]),
        ("y = x.matmul(b)", "mul", ["self", "other"]),
    ],
)
def test_a_call_that_is_not_the_operator_itself_names_nothing(where, program, op, arguments):
    assert where(program).operand_names(op, arguments) == [None] * len(arguments)


def test_a_layer_without_parameters_passes_its_argument_on(where):
    assert where("y = self.relu(x)").operand_names("relu", ["self"]) == ["x"]


def test_a_source_tells_file_line_and_columns(where, tmp_path):
    place = where("if True:\n    y = x + b")
    assert place.filename == str(tmp_path / "train.py")
    assert (place.line, place.end_line, place.columns) == (4, 4, (8, 13))
    assert place.text == "y = x + b"
    assert place.short == "train.py:4"
    assert repr(place) == "<Source train.py:4>"


def test_the_nearest_frame_outside_the_package_is_found(spies):
    exec(compile("def through(x):\n    return x.relu() + 1", "<spies>", "exec"), vars(spies))
    with pytest.raises(spies.Captured) as caught:
        spies.through(spies.Spy())
    assert caught.value.args[0].text == "spies.through(spies.Spy())"


def test_a_context_manager_of_the_package_belongs_to_the_line_that_enters_it(spies):
    text = "import contextlib\n@contextlib.contextmanager\ndef managed(x):\n    yield\n    x.T"
    exec(compile(text, "<spies>", "exec"), vars(spies))
    with pytest.raises(spies.Captured) as caught, spies.managed(spies.Spy()):
        pass
    assert caught.value.args[0].text.endswith("spies.managed(spies.Spy()):")


def test_depth_starts_further_out():
    def operator():
        return capture(2)

    place = operator()
    assert place.text == "place = operator()"


def test_the_import_system_is_nobodys_program(spies):
    code = compile("from spies import spy; spy()", "<frozen runpy>", "exec")
    with pytest.raises(spies.Captured) as caught:
        exec(code)
    assert caught.value.args[0].text == "exec(code)"


def test_files_of_the_package_are_internal_and_others_are_not():
    package = os.path.dirname(tn.__file__)
    code = compile("place = capture()", f"{package}/nn/linear.py", "exec")
    names = {"capture": capture}
    exec(code, names)
    assert names["place"].text == "exec(code, names)"
    beside = package + "_user.py"
    exec(compile("place = capture()", beside, "exec"), names)
    assert names["place"].filename == beside


def test_with_no_user_on_the_stack_there_is_no_source(spies):
    exec(compile("def ask(answers):\n    answers.put(capture())", "<spies>", "exec"), vars(spies))
    answers = queue.SimpleQueue()
    _thread.start_new_thread(spies.ask, (answers,))
    assert answers.get(timeout=10) is None


def test_one_place_is_equal_however_the_interpreter_has_specialised_it(spies):
    exec(
        compile("class Row:\n    def __getitem__(self, i):\n        return capture()", "<spies>", "exec"),
        vars(spies),
    )
    row = spies.Row()
    places = [row[0] for _ in range(100)]
    assert len(set(places)) == 1
    # Specialised or not, f_lasti may stand on the instruction or on a cache entry (opcode 0) that follows it.
    code, lasti = places[0]
    while code.co_code[lasti] == 0:
        lasti -= 2
    assert code.co_code[lasti + 2] == 0
    assert Source((code, lasti)) == Source((code, lasti + 2)) == places[0]
    assert hash(Source((code, lasti))) == hash(Source((code, lasti + 2)))


def test_places_differ_by_instruction_and_by_code_object():
    def here():
        return capture(), capture()

    first, second = here()
    again, _ = here()
    assert first == again and first != second
    assert {first, second, again} == {first, second}
    twin = Source((here.__code__.replace(), first[1]))
    assert first != twin
    assert first != tuple(first)


def test_a_source_can_be_copied():
    place = capture()
    assert copy.deepcopy(place) == place


@pytest.mark.parametrize("filename", ["<stdin>", "<string>", "/no/such/folder/train.py"])
def test_without_the_file_only_the_place_is_known(where, filename):
    place = where("y = x + b", filename)
    assert (place.short, place.text) == (f"{filename.rpartition('/')[2]}:3", "")
    assert place.span() is None
    assert place.operand_names("add", [None, None]) == [None, None]


def test_a_notebook_cell_is_read_from_linecache(where, monkeypatch):
    lines = ["import spies as tn\n", "from spies import matmul\n", "y = x + b\n"]
    monkeypatch.setitem(linecache.cache, "<ipython-input-1>", (30, None, lines, "<ipython-input-1>"))
    place = where("y = x + b", "<ipython-input-1>")
    assert marked(place) == "y = ‹x + b›"
    assert place.operand_names("add", [None, None]) == ["x", "b"]


@pytest.fixture
def notebook(monkeypatch):
    """A running IPython, to which `/tmp/ipykernel_1/77.py` is the fourth cell."""
    names = {"/tmp/ipykernel_1/77.py": ("Cell", "In[4]")}
    shell = types.SimpleNamespace(compile=types.SimpleNamespace(format_code_name=names.get))
    monkeypatch.setitem(sys.modules, "IPython", types.SimpleNamespace(get_ipython=lambda: shell))


def test_a_notebook_cell_is_named_as_the_notebook_names_it(where, monkeypatch, notebook):
    lines = ["import spies as tn\n", "from spies import matmul\n", "y = x + b\n"]
    cell = "/tmp/ipykernel_1/77.py"
    monkeypatch.setitem(linecache.cache, cell, (30, None, lines, cell))
    assert where("y = x + b", cell).short == "In[4]:3"
    assert where("y = x + b").short == "train.py:3"


def test_a_notebook_imports_in_another_cell(where, monkeypatch):
    session = types.ModuleType("__main__")
    session.torch = types
    monkeypatch.setitem(sys.modules, "__main__", session)
    place = where("torch = tn; y = torch.matmul(x, b)")
    assert place.operand_names("matmul", ["self", "other"]) == ["x", "b"]


def test_a_file_that_changed_marks_nothing_beyond_its_end(where, tmp_path):
    place = where("y = x + b")
    (tmp_path / "train.py").write_text("# all gone\n\ny =\n")
    assert (place.text, place.span()) == ("y =", None)
    (tmp_path / "train.py").write_text("# shorter\n")
    assert (place.text, place.span()) == ("", None)
    (tmp_path / "train.py").write_text("# does not parse\n\ny = x ? b\n")
    assert place.operand_names("add", [None, None]) == [None, None]


def test_an_interpreter_without_columns_still_tells_the_line(tmp_path):
    script = tmp_path / "train.py"
    script.write_text(
        "from tenfold.base.source import capture\n"
        "place = capture()\n"
        "print(place.short, place.text, place.columns, place.span(), place.operand_names('add', [None]))\n"
    )
    command = [sys.executable, "-X", "no_debug_ranges", str(script)]
    package_root = source.__file__.removesuffix("/tenfold/base/source.py")
    done = subprocess.run(
        command, env={"PYTHONPATH": package_root}, capture_output=True, text=True, check=True
    )
    assert done.stdout == "train.py:2 place = capture() None None [None]\n"
