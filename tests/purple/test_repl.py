"""Talking with Purple: answers, commands, completion, and editing, without a terminal and on a simulated
one.
"""

from __future__ import annotations

import subprocess
import sys

import pytest

from tenfold.purple import repl as repl_module
from tenfold.purple.prims.control import Exit
from tenfold.purple.repl import Repl, coloured, indentation


@pytest.fixture
def repl() -> Repl:
    return Repl()


def test_values_are_shown_and_definitions_stay(repl):
    assert repl.answer("(define (f x) (* x 2))") == ""
    assert repl.answer("(f 21)") == "42"
    assert repl.answer('"text"') == '"text"'
    assert repl.answer("(if #f #f)") == ""
    assert repl.answer("(tensor '(1 2))") == "tensor([1, 2])"


def test_an_error_is_told_and_the_talk_goes_on(repl):
    assert repl.answer("(car 5)") == "<1>:1:1: error: car: expected a pair, got 5\n  (car 5)\n  ^^^^^^^"
    assert repl.answer("(lenght 1)").endswith("help: did you mean length?")
    assert repl.answer("(if)").startswith("<3>:1:1: error: if is written")
    assert "this ( is never closed" in repl.answer("(+ 1")
    assert repl.answer("(tensor-matmul (tensor-ones 2) (tensor-ones 3))").startswith("<5>:1:1: error:")
    assert repl.answer("(+ 1 2)") == "3"


def test_a_function_may_call_what_is_defined_later(repl):
    repl.answer("(define (f) (g 1))")
    assert "g is not defined" in repl.answer("(f)")
    assert "g is not defined" in repl.answer("(g 1)")
    repl.answer("(define (g x) (+ x 1))")
    assert repl.answer("(f)") == "2"
    repl.answer("(define (g x) (+ x 2))")
    assert repl.answer("(f)") == "3"


def test_a_failed_definition_leaves_nothing_half_done(repl):
    assert "error" in repl.answer("(begin (define a 1) (car a) (define b 2))")
    assert repl.answer("a") == "1"
    assert repl.answer("(map (lambda (x) (nosuch x)) '(1))").endswith("…) at <3>:1:1")
    assert repl.answer("(map 1+ '(1))") == "(2)"


def test_types_and_macros_stay(repl):
    repl.answer("(deftype P x)")
    repl.answer("(define-syntax twice (syntax-rules () ((_ e) (list e e))))")
    assert repl.answer("(twice (P-x (mk-P 1)))") == "(1 1)"
    repl.answer("(deftype P x y)")
    assert repl.answer("(mk-P 1 2)") == "#<P x: 1 y: 2>"


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("car", "(car pair) → any\n  The first of a pair."),
        ("if", "(if TEST THEN [ELSE])\n  THEN when TEST is neither nil nor #f, else ELSE."),
        ("linear", "(linear inputs outputs :bias #t)\n  x · Wᵀ + b, initialised as PyTorch does."),
        ("tensor-tanh", "tanh(Tensor self) -> Tensor"),
        ("mk-Layer", "(mk-Layer name compute tensors children training buffers)\n  Of a record type."),
        ("time", "(time expression)\n  A macro."),
        ("mine", '(mine x)\n  What mine does.'),
    ],
)  # fmt: skip
def test_names_are_documented(repl, name, shown):
    repl.answer('(define (mine x) "What mine does." x)')
    assert repl.answer(f",doc {name}").startswith(shown)


def test_commands_answer(repl):
    assert ",stages" in repl.answer(",help")
    stages = repl.answer(",stages (+ (tensor '(1.0 2.0)) 1)")
    assert [
        part in stages for part in ("==== Trace IR ====", "==== Flat IR ====", "==== StableHLO IR ====")
    ] == [True] * 3
    assert repl.answer(",time (+ 1 2)").startswith("3\n0.0")
    assert "is not a tensor" in repl.answer(",stages 5")
    assert repl.answer(",dco car").endswith("help: did you mean ,doc?")
    assert repl.answer(",doc lenght").endswith("help: did you mean length?")
    with pytest.raises(EOFError):
        repl.answer(",quit")
    with pytest.raises(Exit):
        repl.answer("(exit 2)")


def test_completion_offers_names_with_what_they_do(repl):
    repl.answer('(define (string-mine x) "Mine." x)')
    offered = {name: about for name, replaced, about in repl.completions("(list (string-") if replaced == 7}
    assert {"string-append", "string-split", "string-mine"} <= set(offered)
    assert offered["string-mine"] == "(string-mine x)  Mine."
    assert "tensor-log-softmax" in {name for name, _, _ in repl.completions("tensor-log")}
    assert not [name for name, _, _ in repl.completions("(") if name]
    assert not any(name.startswith("%") for name, _, _ in repl.completions("%"))
    assert [name for name, _, _ in repl.completions(",st")] == [",stages"]


def test_enter_ends_what_is_whole(repl):
    assert repl.is_complete("(+ 1 2)") and repl.is_complete(",doc car") and repl.is_complete(")")
    assert not repl.is_complete("(+ 1") and not repl.is_complete('"a') and not repl.is_complete("'")


def test_the_next_line_is_indented_under_the_open_parenthesis():
    assert indentation("(define (f x)") == 2
    assert indentation('(let ((x "(")') == 7
    assert indentation("(a)") == 0
    assert indentation("(a\n  (b") == 4


def test_lines_are_coloured():
    parts = {text: style for style, text in coloured('(map :k "s" 12 x) ; note')}
    assert parts["map"] == "ansiblue bold" and parts[":k"] == "ansimagenta" and parts['"s"'] == "ansigreen"
    assert parts["12"] == "ansicyan" and parts["; note"].startswith("ansibrightblack")
    assert "".join(text for _, text in coloured('(map :k "s" 12 x) ; note')) == '(map :k "s" 12 x) ; note'


def test_a_terminal_edits_over_lines_and_completes(repl, tmp_path, monkeypatch):
    from prompt_toolkit.application import create_app_session
    from prompt_toolkit.input import create_pipe_input
    from prompt_toolkit.output import DummyOutput

    monkeypatch.setattr(repl_module, "HISTORY", tmp_path / "history")
    with create_pipe_input() as keys, create_app_session(input=keys, output=DummyOutput()):
        session = repl_module.terminal(repl)
        keys.send_text("(+ 1\r2)\r")
        assert session.prompt("purple> ") == "(+ 1\n  2)"
    assert "(+ 1" in (tmp_path / "history").read_text()


def test_without_prompt_toolkit_the_error_says_what_to_install():
    program = (
        "import sys; sys.modules['prompt_toolkit'] = None\n"
        "from tenfold.purple.repl import Repl, terminal\n"
        "try: terminal(Repl())\n"
        "except Exception as error: print(type(error).__name__, error)"
    )
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    assert (
        found.stdout
        == "MissingEngine talking with Purple needs prompt_toolkit\n  help: pip install prompt_toolkit\n"
    )


def test_the_last_values_have_names(repl):
    repl.answer("(+ 1 2)")
    assert repl.answer("(* *1 10)") == "30"
    assert repl.answer("(list *1 *2)") == "(30 3)"


def test_a_file_is_loaded_into_the_talk(repl, tmp_path):
    (tmp_path / "twice.purple").write_text("(define (twice x) (* 2 x))\n")
    assert repl.answer(f",load {tmp_path / 'twice.purple'}").startswith("loaded ")
    assert repl.answer("(twice 4)") == "8"
    assert "cannot read" in repl.answer(",load nowhere.purple")


def test_a_macro_is_expanded_one_step(repl):
    repl.answer("(define-syntax twice (syntax-rules () ((_ e) (begin e e))))")
    assert repl.answer(",expand (twice (f 1))") == "(begin (f 1) (f 1))"
    assert "takes one form" in repl.answer(",expand 1 2")


def test_memory_is_reported_of_what_was_typed(repl):
    repl.answer("(define (f xs) (length xs))")
    repl.answer("(f (list 1 2))")
    repl.answer("(+ *1 1)")
    shown = repl.answer(",memory")
    assert "(f &xs)" in shown and "vanished" in shown
