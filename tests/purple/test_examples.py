"""The examples, interpreted: each runs, and prints what it should."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

import pytest

import tenfold as tn
from tenfold.command.demo import digits
from tenfold.purple.core import FIELD_TYPES
from tenfold.purple.deep_stack import with_deep_stack
from tenfold.purple.interpret import Session
from tenfold.purple.prims import control

EXAMPLES = Path(__file__).parents[2] / "examples" / "purple"


def printed(name: str, *arguments: str) -> str:
    output = io.StringIO()
    control.command_line[:] = arguments
    path = EXAMPLES / f"{name}.purple"
    with contextlib.redirect_stdout(output):
        with_deep_stack(lambda: Session().run_text(path.read_text(encoding="utf-8"), str(path)))
    return output.getvalue()


@pytest.fixture(scope="module")
def digits_file(tmp_path_factory) -> str:
    path = tmp_path_factory.mktemp("digits") / "digits.safetensors"
    train, test = digits.load()
    flat = lambda images: images.reshape(-1, 64)
    tensors = {"train-images": flat(train.images), "train-labels": train.labels}
    tn.save(tensors | {"test-images": flat(test.images), "test-labels": test.labels}, str(path))
    return str(path)


def test_the_planned_expressions_print():
    assert printed("seeds").endswith("#t\ntensor([2., 4., 6.])\n(2 128)\n(1 64 6 6)\n")


def test_the_planned_training_loop_trains():
    assert printed("training") == "trained on 3 batches\n"


def test_line_quad_and_plane_are_fitted_with_the_books_figures():
    assert (
        printed("little_learner") == "line: (1.05 0.00)\nquad: (1.48 0.99 2.05)\nplane: ((3.98 2.05) 5.79)\n"
    )


@pytest.mark.parametrize("name", ["iris", "morse"])
def test_flowers_and_letters_are_told_apart_by_gradients(name):
    assert printed(name) == "before: #t\nafter: #t\n"


def test_exclusive_or_is_learnt():
    assert printed("xor") == "0 xor 0 = 0\n0 xor 1 = 1\n1 xor 0 = 1\n1 xor 1 = 0\n"


def test_a_glider_comes_back():
    text = printed("life")
    assert text.startswith("generation 0\n.#....\n..#...\n###...\n")
    assert text.endswith("generation 4\n......\n..#...\n...#..\n.###..\n......\n......\n#t\n")


def test_json_is_parsed_and_mistakes_in_it_located():
    text = printed("json")
    assert "Purple -300.0\n" in text
    assert text.endswith(
        '{"a" 1} → expected #\\: at 5\n[1] x → expected the end at 4\ntru → expected #\\e at 3\n'
    )


def test_digits_are_read_by_linear_layers(digits_file):
    assert printed("digits_mlp", digits_file) == "accuracy above 0.95\n"


@pytest.mark.slow
def test_digits_are_read_by_convolutions(digits_file):
    assert printed("digits_cnn", digits_file) == "accuracy above 0.95\n"


@pytest.mark.slow
def test_a_sentence_is_learnt_by_its_characters():
    assert printed("characters") == "ensors freed at their last use. t\n"


def test_every_example_is_tested_here():
    source = Path(__file__).read_text(encoding="utf-8")
    assert all(f'"{path.stem}"' in source for path in EXAMPLES.glob("*.purple"))


def documented() -> list[tuple[str, str]]:
    """The programs of the manual and the tutorial, each with what it is said to print."""
    docs = Path(__file__).parents[2] / "docs"
    text = "\n".join((docs / each).read_text(encoding="utf-8") for each in ("purple.md", "tutorials/lisp.md"))
    return re.findall(r"```lisp\n(.*?)```\n\n```output\n(.*?)```", text, re.DOTALL)


def test_the_manuals_programs_print_what_it_says(output):
    programs = documented()
    assert len(programs) == 14
    for program, shown in programs:
        assert output(program) == shown


def test_the_manual_names_every_type_of_a_field():
    manual = (Path(__file__).parents[2] / "docs" / "purple.md").read_text(encoding="utf-8")
    described = manual.partition("A field is `name`")[2].partition("\n### ")[0]
    assert all(f"`{each}`" in described for each in FIELD_TYPES)
