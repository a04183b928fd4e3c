"""Purple programs on the page: each line of the owned form and of the C is linked to its source line."""

import re

import pytest

from tenfold.purple import emit_c
from tenfold.purple.explained import explain_purple
from tenfold.purple.interpret import expand_program

PROGRAM = """; a norm
(define (norm x)
  (sqrt (tensor-sum (* x x))))
(define y (tensor '(3.0 4.0)))
(print (norm y))
"""


@pytest.fixture
def explanation(tmp_path):
    path = tmp_path / "norm.purple"
    path.write_text(PROGRAM)
    return explain_purple(str(path))


def test_a_line_lights_its_releases_and_its_c(explanation):
    lit = explanation.lit("source", 2)
    owned = [explanation.stage("owned").lines[i] for i in lit["owned"]]
    assert any("tensor-sum" in line for line in owned)
    assert any(re.match(r"\s+free .*; .*static: ", line) for line in owned)
    c = [explanation.stage("c").lines[i] for i in lit["c"]]
    assert any("pu_multiply" in line for line in c) and any("pu_free_unique" in line for line in c)


def test_the_c_is_the_one_that_is_compiled(explanation, tmp_path):
    plain = emit_c.compile_program(expand_program(PROGRAM, str(tmp_path / "norm.purple")))
    assert list(explanation.stage("c").lines) == plain.rstrip().split("\n")


def test_lines_without_code_have_no_links(explanation):
    assert explanation.stage("source").links[0] == ()
    assert dict(explanation.facts)["decided by the compiler"].endswith(" %")
