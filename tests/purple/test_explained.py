"""Purple programs on the page: each line of the owned form and of the C is linked to its source line."""

import re

import pytest

from tenfold.base.errors import ArgumentError
from tenfold.purple import emit_c
from tenfold.purple.explained import explain_purple
from tenfold.purple.interpret import expand_program
from tenfold.runtime import executables

PROGRAM = """; a norm
(define (norm x)
  (tensor-sqrt (tensor-sum (* x x))))
(define y (tensor '(3.0 4.0)))
(print (norm y))
"""


@pytest.fixture(autouse=True)
def nothing_compiled_before():
    """A program that is found compiled is not observed."""
    executables.forget("cpu")


@pytest.fixture
def explanation(tmp_path):
    path = tmp_path / "norm.purple"
    path.write_text(PROGRAM)
    (explanation,) = explain_purple(str(path))
    return explanation


def test_a_line_lights_its_releases_and_its_c(explanation):
    lit = explanation.lit("source", 2)
    owned = [explanation.stage("owned").lines[i] for i in lit["owned"]]
    assert any("tensor-sum" in line for line in owned)
    assert any(re.match(r"\s+free .*; .*static: ", line) for line in owned)
    c = [explanation.stage("c").lines[i] for i in lit["c"]]
    assert any("pu_multiply" in line for line in c) and any("pu_free_unique" in line for line in c)


def test_functions_of_the_owned_form_name_their_file_without_its_folder(explanation):
    assert "(norm x)   norm.purple:2:1" in explanation.stage("owned").lines


def test_the_c_is_the_one_that_is_compiled(explanation, tmp_path):
    plain = emit_c.compile_program(expand_program(PROGRAM, str(tmp_path / "norm.purple")))
    assert list(explanation.stage("c").lines) == plain.rstrip().split("\n")


def test_lines_without_code_have_no_links(explanation):
    assert explanation.stage("source").links[0] == ()
    assert dict(explanation.facts)["decided by the compiler"].endswith(" %")


def test_a_line_lights_the_stages_of_the_tensor_program_that_it_records(explanation):
    lit = explanation.lit("source", 2)
    trace = [explanation.stage("trace").lines[i] for i in lit["trace"]]
    assert [re.search(r"aten\.\w+", line)[0] for line in trace] == ["aten.mul", "aten.sum", "aten.sqrt"]
    assert lit["flat"] and lit["stablehlo"] and lit["torch"] and lit["hlo"]
    (product,) = [i for i in lit["trace"] if "aten.mul" in explanation.stage("trace").lines[i]]
    back = explanation.lit("trace", product)
    assert back["source"] == [2] and set(back["owned"]) >= set(lit["owned"])


def test_what_the_library_records_belongs_to_the_line_that_calls_it(tmp_path):
    path = tmp_path / "layer.purple"
    path.write_text(
        "(define model (sequential (linear 2 3)\n  (tanh)))\n(print (forward model (tensor-ones '(1 2))))\n"
    )
    explanation = explain_purple(str(path))[0]
    assert {node.place[:2] for node in explanation.nodes if node.op in ("linear", "tanh")} == {(str(path), 3)}


def test_one_function_can_be_asked_for(tmp_path):
    path = tmp_path / "two.purple"
    path.write_text(
        "(define (half x) (/ x 2.0))\n(print (half (tensor-ones '(2))))\n(print (tensor-ones '(3)))\n"
    )
    (explanation,) = explain_purple(str(path), "half")
    assert any("aten.div" in line for line in explanation.stage("trace").lines)
    with pytest.raises(ArgumentError, match="defines no 'third'"):
        explain_purple(str(path), "third")


def test_a_program_that_ends_itself_is_explained(tmp_path):
    path = tmp_path / "ends.purple"
    path.write_text("(print (tensor-sin (tensor-ones '(3))))\n(exit 0)\n")
    assert [len(explanation.ops) > 0 for explanation in explain_purple(str(path))] == [True]
