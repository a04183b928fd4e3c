"""Hostile and mistaken programs: each ends in a located error, none in a crash, a hang or a Python
traceback.
"""

from __future__ import annotations

import os
import random

import pytest
from hypothesis import given, settings, strategies as st

from tenfold.purple.deep_stack import with_deep_stack
from tenfold.purple.errors import PurpleError, report
from tenfold.purple.interpret import Session, expand_program

PROGRAMS = {
    "unbalanced": "(print (+ 1 2)",
    "closed too often": "(print 1))",
    "deep nesting": "(" * 100_000 + ")" * 100_000,
    "deep arithmetic": "(+ 1 " * 20_000 + "1" + ")" * 20_000,
    "deep quotation outside quote": "(print " + "'" * 20_000 + ")",
    "deep lets": "(let ((x 1)) " * 20_000 + "x" + ")" * 20_000,
    "deep lambdas": "(lambda (x) " * 20_000 + "x" + ")" * 20_000,
    "deep quasiquote": "`(" * 5_000 + "," * 3 + ")" * 5_000,
    "deep quasiquotations inside each other": "`(," * 50_000 + "1" + ")" * 50_000,
    "deep template": "`" + "(" * 100_000 + ",1" + ")" * 100_000,
    "deep pattern": "(match 1 (" + "(cons _ " * 50_000 + "_" + ")" * 50_000 + " 1))",
    "deep definitions": "(define (f) " * 20_000 + "1" + ")" * 20_000,
    "deep macro use": "(-> " * 20_000 + "1" + ")" * 20_000,
    "a million parentheses": "(" * 1_000_000,
    "a million quotation marks": "'" * 1_000_000,
    "doubling macros": "".join(
        f"(define-syntax m{i} (syntax-rules () ((_ x) (m{i + 1} (+ x x)))))" for i in range(40)
    )
    + "(define-syntax m40 (syntax-rules () ((_ x) x))) (print (m0 1))",
    "huge integer": "(print (expt 10 2000000))",
    "huge float": "(print 1e99999)",
    "unbound name": "(print undefined-thing)",
    "wrong arity": "(define (f x) x) (f 1 2)",
    "wrong type": '(+ 1 "a")',
    "shape error": "(tensor-add (tensor-ones 2) (tensor-ones 3))",
    "division by zero": "(/ 1 0)",
    "missing file": '(read-file "/nowhere/file")',
    "missing import": '(import "/nowhere/file.purple")',
    "not a procedure": "(1 2)",
    "vector that cannot be": "(make-vector -1)",
    "endless recursion": "(define (f x) (+ 1 (f x))) (f 1)",
    "endless mutual recursion": "(define (f x) (+ 1 (g x))) (define (g x) (+ 1 (f x))) (f 1)",
    "endless recursion through map": "(define (f x) (map f (list x))) (f 1)",
    "endless recursion through apply": "(define (f . x) (+ 1 (apply f x))) (f 1 2 3 4 5 6)",
    "macro bomb": "(define-syntax m (syntax-rules () ((_ x ...) (m x ... x ... 1)))) (m 1)",
    "keyword at the end": "(tensor-sum (tensor 1) :dim)",
    "NUL in a path": '(read-file "a\\0b")',
    "too many nested loops": "(while #f " * 50 + "1" + ")" * 50,
    "redefined form": "(define if 1) (if 1 2 3)",
}


@pytest.mark.parametrize("what", PROGRAMS)
def test_a_bad_program_ends_in_a_located_error(what):
    session = Session()
    with pytest.raises(PurpleError) as caught:
        with_deep_stack(lambda: session.run_text(PROGRAMS[what], "bad.purple"))
    assert caught.value.place.line >= 1
    assert report(caught.value, session.sources).startswith("bad.purple:")


def test_deep_data_is_fine(value):
    assert value("(pair? '" + "(" * 100_000 + ")" * 100_000 + ")") == "#t"


PIECES = [
    "(",
    ")",
    "[",
    "]",
    "'",
    "`",
    ",",
    ",@",
    ".",
    ";",
    "#;",
    "#|",
    "|#",
    "#(",
    "#\\a",
    '"s"',
    '"',
    "1",
    "-5",
    "2.5",
    "1e999",
    "nil",
    "#t",
    "#f",
    "t",
    "x",
    "y",
    "f",
    "g",
    ":k",
    ":lr",
    "define",
    "lambda",
    "let",
    "let*",
    "letrec",
    "if",
    "cond",
    "case",
    "when",
    "unless",
    "and",
    "or",
    "not",
    "do",
    "begin",
    "while",
    "dotimes",
    "set!",
    "match",
    "deftype",
    "try",
    "let-values",
    "quasiquote",
    "unquote",
    "define-syntax",
    "syntax-rules",
    "import",
    "module",
    "ffi-declare",
    "with-device",
    "no-grad",
    "car",
    "cdr",
    "cons",
    "list",
    "+",
    "-",
    "*",
    "/",
    "<",
    "=",
    "print",
    "tensor",
    "tensor-sum",
    "map",
    "fold",
    "else",
    "=>",
    "...",
    "_",
    "P",
    "mk-P",
    "P-x",
    "error",
    "raise",
    "box",
    "unbox",
    "vector",
    "apply",
    "values",
    "quote",
    "int",
    "weak",
    ":weak",
    ":when",
    "or",
    "as",
    "cons",
    "list",
]


@pytest.mark.parametrize("seed", range(4))
def test_random_words_neither_crash_nor_hang_the_expander(seed):
    chosen = random.Random(seed)
    for _ in range(100):
        words = [chosen.choice(PIECES) for _ in range(chosen.randrange(1, 40))]
        text = " ".join(words)
        if chosen.random() < 0.7:
            text = balanced(words)
        try:
            with_deep_stack(lambda text=text: expand_program(text, "fuzz.purple"))
        except PurpleError as error:
            assert error.message


def balanced(words: list[str]) -> str:
    """The words with every parenthesis closed."""
    kept, depth = [], 0
    for word in words:
        if word in (")", "]", "[", "#|", "|#", '"', ";"):
            word = ")"
        if word == ")" and depth == 0:
            continue
        depth += {"(": 1, "#(": 1, ")": -1}.get(word, 0)
        kept.append(word)
    return " ".join(kept + [")"] * depth)


@settings(max_examples=100, deadline=None)
@given(
    st.recursive(
        st.sampled_from(["x", "1", "2.5", '"s"', "car", "list", "nil", "#t", "f", ":k"]),
        lambda inner: st.builds(
            lambda items: f"({' '.join(items)})", st.lists(inner, min_size=1, max_size=5)
        ),
        max_leaves=20,
    )
)
def test_any_expression_runs_or_fails_with_a_place(expression):
    session = Session()
    try:
        session.run_text(f"(define x 1) (define (f . all) all) {expression}", "any.purple")
    except PurpleError as error:
        assert error.place.line == 1


def test_files_that_include_themselves_are_refused(tmp_path):
    (tmp_path / "one.purple").write_text('(include "two.purple")')
    (tmp_path / "two.purple").write_text('(include "one.purple" "one.purple")')
    with pytest.raises(PurpleError, match=r"over 1,000 files are included: does one include itself\?"):
        with_deep_stack(lambda: expand_program('(include "one.purple")', str(tmp_path / "main.purple")))


@pytest.mark.parametrize("form", ["(include {!r})", "(import {!r})"])
def test_a_pipe_or_a_device_is_no_part_of_a_program(form, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path in (str(tmp_path / "pipe"), "/dev/zero"):
        with pytest.raises(PurpleError, match="it is no regular file"):
            expand_program(form.format(path).replace("'", '"'), "main.purple")
