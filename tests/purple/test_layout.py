"""`purple fmt`: one layout for one program, which changes no datum."""

from pathlib import Path

import pytest

from tenfold.purple.cli import main
from tenfold.purple.errors import PurpleError
from tenfold.purple.layout import formatted
from tenfold.purple.printing import write_text
from tenfold.purple.reader import read, to_value
from tests.purple.generate_programs import batch

ROOT = Path(__file__).parents[2]
FILES = sorted(p for p in ROOT.rglob("*.purple") if not {".venv", "build"} & set(p.relative_to(ROOT).parts))


def data(text: str) -> list[str]:
    return [write_text(to_value(each)) for each in read(text)]


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ("(define   (f x)\n(+ x\n1))", "(define (f x)\n  (+ x\n     1))\n"),
        ("(if a\nb\nc\n)", "(if a\n    b\n    c)\n"),
        ("(cond ((null? x)\n1)\n(else\n2))", "(cond ((null? x)\n       1)\n      (else\n       2))\n"),
        ("(list\n1 2)\n\n\n\n( print 1 )", "(list\n  1 2)\n\n(print 1)\n"),
        ("'(a\nb)", "'(a\n  b)\n"),
        ("(f 1 ; one\n)", "(f 1 ; one\n   )\n"),
        ('(print "a\n  b"   1)', '(print "a\n  b" 1)\n'),
        ("#| a\n b |# (f\n)", "#| a\n b |# (f)\n"),
        ("(map f\n(lambda (x)\nx))", "(map f\n  (lambda (x)\n    x))\n"),
    ],
)
def test_lines_begin_where_their_parentheses_say(given, wanted):
    assert formatted(given) == wanted
    assert formatted(wanted) == wanted


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_the_repositorys_programs_are_in_the_house_layout(path):
    text = path.read_text(encoding="utf-8")
    assert formatted(text) == text


def test_random_programs_keep_their_data_and_need_one_pass():
    text = batch(5, 40, 0).replace(" (", "\n(")
    once = formatted(text)
    assert data(once) == data(text)
    assert formatted(once) == once


def test_what_is_no_program_is_refused_with_its_place():
    with pytest.raises(PurpleError, match="never closed"):
        formatted("(print 1")


def test_the_command_rewrites_files_or_tells_of_them(tmp_path, capsys):
    file = tmp_path / "p.purple"
    file.write_text("(print  1)")
    assert main(["fmt", "--check", str(file)]) == 1
    assert "not in the house layout" in capsys.readouterr().out
    assert main(["fmt", str(file)]) == 0
    assert file.read_text() == "(print 1)\n"
    assert main(["fmt", "--check", str(file)]) == 0


def test_a_lambda_is_laid_out_alike_whatever_stands_between_its_words():
    for lambda_ in ("(lambda (x)", "( lambda (x)", "(lambda\t(x)", "(\tlambda  (x)"):
        laid_out = formatted(f"(for-each print\n{lambda_}\nx))\n")
        assert laid_out == "(for-each print\n  (lambda (x)\n    x))\n"
        assert formatted(laid_out) == laid_out
