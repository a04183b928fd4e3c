"""`tenfold explain`, through its own entry point."""

import base64
import gzip
import json
import re

import pytest

from tenfold.command import cli
from tenfold.explain.html import programs_of


@pytest.fixture
def explain(tmp_path, monkeypatch):
    """Explains a program given as text; the data of the page."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", [*__import__("sys").path])

    def run(text: str, *options: str) -> dict:
        (tmp_path / "program.py").write_text(text)
        status = cli.main(["explain", "program.py", *options])
        assert status == 0
        page = (tmp_path / "program.html").read_text(encoding="utf-8")
        packed = re.search(r'id="data">([A-Za-z0-9+/=]*)</script>', page)
        return json.loads(gzip.decompress(base64.b64decode(packed[1])))

    return run


def lines(program, key):
    return next(stage["lines"] for stage in program["stages"] if stage["key"] == key)


def test_each_program_that_a_file_evaluates_is_on_the_page(explain, capsys, on_all_tiers):
    data = explain("import tenfold as tn\nx = tn.ones(3)\nprint((x + 1).sum())\nprint(x.tanh() @ x)\n")
    assert data["title"] == "program.py"
    assert len(data["programs"]) == 2
    assert "aten.tanh" in lines(data["programs"][0], "trace") + lines(data["programs"][1], "trace")
    assert "program.html: 2 programs, " in capsys.readouterr().out


def test_a_program_that_runs_often_is_there_once(explain, on_all_tiers):
    data = explain("import tenfold as tn\nx = tn.ones(3)\nfor i in range(5):\n    (x * 2).sum().item()\n")
    assert len(data["programs"]) == 2  # that of `ones` with the first sum, and the other sums


def test_a_function_is_explained_on_the_inputs_of_its_file(explain):
    text = """
import tenfold as tn
def score(x):
    return (x * 3).sum()
inputs = tn.ones(2, 2)
if __name__ == "__main__":
    raise SystemExit("was run")
"""
    (program,) = explain(text, "--function", "score")["programs"]
    assert program["title"] == "score"
    assert "aten.mul" in lines(program, "trace")


def test_a_function_without_inputs_is_looked_for_in_what_runs(explain):
    text = """
import tenfold as tn
def score(x):
    return (x * 3).sum()
print(tn.ones(2).tanh())
print(score(tn.ones(2, 2)))
"""
    (program,) = explain(text, "--function", "score")["programs"]
    assert "aten.mul" in lines(program, "trace")


NETWORK = """
import tenfold as tn
class Net(tn.nn.Module):
    def forward(self, x):
        return (x * 3).sum()
def train(x, y):
    return (Net()(x) - y).tanh()
inputs = tn.ones(2)
"""


@pytest.mark.parametrize("name", ["Net", "forward", "train"])
def test_methods_classes_and_what_inputs_do_not_fit_are_looked_for_in_what_runs(explain, name, on_all_tiers):
    (program,) = explain(f"{NETWORK}print(train(inputs, 1))\n", "--function", name)["programs"]
    assert "aten.mul" in lines(program, "trace") and "aten.tanh" in lines(program, "trace")


@pytest.mark.parametrize(
    ("name", "complaint"),
    [
        ("train", "train takes (x, y): `inputs` of program.py do not fit"),
        ("Net", "program.py calls Net on no tensor"),
        ("test", "program.py neither defines 'test' nor calls a method of that name on a tensor"),
    ],
)
def test_a_function_that_cannot_be_called_is_told_in_one_line(tmp_path, monkeypatch, capsys, name, complaint):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "program.py").write_text(NETWORK)
    assert cli.main(["explain", "program.py", "--function", name]) == 1
    told = capsys.readouterr().err
    assert told.startswith(f"ArgumentError: {complaint}\n") and "Traceback" not in told


def test_a_program_is_named_after_the_function_of_its_last_line(explain, on_all_tiers):
    text = """
import tenfold as tn
def doubled(x):
    return x * 2
print(doubled(tn.ones(3)))
print((tn.ones(3, 3) @ tn.ones(3, 3)).sum())
"""
    titles = {each["title"] for each in explain(text)["programs"]}
    assert any(title.startswith("doubled at ") for title in titles), titles
    assert any(" at " not in title and title.endswith("nodes") for title in titles), titles


def test_the_largest_program_is_first(explain, on_all_tiers):
    text = "import tenfold as tn\nx = tn.ones(3)\nprint((x + 1 + 1 + 1).sum())\nprint(x.softmax(0).std())\n"
    first, second = explain(text)["programs"]
    assert len(first["ops"]) > len(second["ops"]) and len(first["nodes"]) < len(second["nodes"])


def test_what_a_file_leaves_behind_is_explained(explain):
    (program,) = explain("import tenfold as tn\ny = tn.ones(3).tanh()\n")["programs"]
    assert "aten.tanh" in lines(program, "trace")


def test_a_file_without_tensors_is_refused(tmp_path, capsys):
    path = tmp_path / "empty.py"
    path.write_text("x = 1\n")
    assert cli.main(["explain", str(path)]) == 1
    assert "evaluates no tensor" in capsys.readouterr().err


def test_show_prints_programs_that_run_on_tier_0(tmp_path, capsys, on_all_tiers):
    path = tmp_path / "program.py"
    path.write_text("import tenfold as tn\nprint(tn.ones(3).tanh().sum())\n")
    assert cli.main(["show", str(path)]) == 0
    assert capsys.readouterr().out.count("==== Trace IR ====") == 1


def test_runs_are_told_on_a_page_of_their_own(explain, on_all_tiers):
    text = """
import tenfold as tn
@tn.compile
def twice(x):
    return x * 2
twice(tn.ones(3))
twice(tn.ones(4, 4))
"""
    runs = explain(text, "--runs")["runs"]
    (twice,) = [each for each in runs["functions"] if each["name"] == "twice"]
    assert "f32[3]" in "".join(twice["recompiled"]) or twice["programs"] == 1


def test_a_purple_program_is_explained(tmp_path, capsys):
    path = tmp_path / "a.purple"
    path.write_text("(print (tensor-sum (tensor '(1.0 2.0))))\n")
    output = tmp_path / "a.html"
    assert cli.main(["explain", str(path), "-o", str(output)]) == 0
    assert "lines" in capsys.readouterr().out and output.exists()


def test_another_version_is_explained_beside_it(explain, tmp_path):
    (tmp_path / "old.py").write_text("import tenfold as tn\nprint(tn.ones(3).tanh())\n")
    data = explain("import tenfold as tn\nprint(tn.ones(3).sin())\n", "--against", "old.py")
    assert "aten.tanh" in lines(data["before"][0], "trace")
    assert "aten.sin" in lines(data["programs"][0], "trace")


def test_a_file_that_exits_is_explained(explain):
    text = "import sys\nimport tenfold as tn\ny = tn.ones(3).tanh()\nif y.sum() > 0:\n    sys.exit(0)\n"
    assert "aten.tanh" in lines(explain(text)["programs"][0], "trace")


def test_the_status_of_a_file_that_fails_is_the_commands(tmp_path, capsys):
    path = tmp_path / "fails.py"
    path.write_text("import sys\nsys.exit('no data')\n")
    assert cli.main(["explain", str(path)]) == 1
    ended = f"{path} ended with status 1: no page was written\n"
    assert capsys.readouterr().err == "no data\n" + ended
    path.write_text("def read():\n    raise ValueError('bad data')\nread()\n")
    assert cli.main(["explain", str(path)]) == 1
    told = capsys.readouterr().err
    assert told.endswith("ValueError: bad data\n" + ended) and told.count("File ") == 2


@pytest.mark.parametrize(("output", "complaint"), [("none/page.html", "no folder"), (".", "is a folder")])
def test_a_wrong_place_for_the_page_is_told_before_the_file_runs(tmp_path, capsys, output, complaint):
    path = tmp_path / "program.py"
    path.write_text("print('was run')\n")
    assert cli.main(["explain", str(path), "-o", str(tmp_path / output)]) == 1
    told = capsys.readouterr()
    assert complaint in told.err and told.out == ""


def test_programs_that_differ_in_numbers_alone_are_one(explain, on_all_tiers):
    text = """
import tenfold as tn
x = tn.ones(17).eval()
for i in range(6):
    (x * (i + 0.5)).erf().sum().item()
"""
    programs = explain(text)["programs"]
    assert len([program for program in programs if "aten.erf" in lines(program, "trace")]) == 1


def test_two_versions_of_a_purple_program_are_compared(tmp_path):
    for name, op in (("old", "tensor-sin"), ("new", "tensor-cos")):
        (tmp_path / f"{name}.purple").write_text(f"(print ({op} (tensor-ones '(3))))\n")
    new, old, output = (str(tmp_path / name) for name in ("new.purple", "old.purple", "page.html"))
    assert cli.main(["explain", new, "--against", old, "-o", output]) == 0
    before = programs_of((tmp_path / "page.html").read_text(encoding="utf-8"), "before")
    assert "aten.sin" in lines(before[0], "trace") and "pu_" in lines(before[0], "c")


def test_runs_of_a_purple_program_are_told(tmp_path, capsys):
    path = tmp_path / "a.purple"
    path.write_text("(print (tensor-sin (tensor-ones '(3))))\n")
    assert cli.main(["explain", "--runs", str(path), "-o", str(tmp_path / "runs.html")]) == 0
    assert re.search(r"\d+ compiled functions?, \d+ programs? by tier", capsys.readouterr().out)
