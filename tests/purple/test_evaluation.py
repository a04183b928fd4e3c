"""`eval`, `load` and environments."""

import pytest

from tenfold.purple.emit_c import compile_program
from tenfold.purple.errors import PurpleError
from tenfold.purple.interpret import Session, expand_program
from tests.purple.compiled import FILE, interpreted

ANSWERS = [
    ("(eval '(* 7 3) (environment '(scheme base)))", "21"),
    ("((eval '(lambda (f x) (f x x)) (null-environment 5)) + 10)", "20"),
    ("(eval '(s:+ 1 2) (environment '(prefix (scheme base) s:)))", "3"),
    ("(eval (list + 1 2))", "3"),
    ("(eval '(let-syntax ((twice (syntax-rules () ((_ a) (list a a))))) (twice 4)))", "(4 4)"),
    ("(call/cc (lambda (k) (eval `(,k 42)) 1))", "42"),
    ("(begin (eval '(begin (define-record-type p (make a) p? (a p-a)) (p-a (make 5)))))", "5"),
    ("(environment)", "#<environment>"),
]


@pytest.mark.parametrize(("expression", "answer"), ANSWERS)
def test_eval_gives_the_value_of_a_datum(expression, answer):
    assert interpreted(f"(print {expression})") == answer + "\n"


def test_what_eval_defines_anew_the_program_sees():
    program = """
        (define x 1) (define (f a) (* a x)) (define (g a) (f a))
        (eval '(define x 10) (interaction-environment))
        (eval '(define (f a b) (list a b x)) (interaction-environment))
        (eval '(define (g a) (f a a)))
        (print x (g 7))"""
    assert interpreted(program) == "10 (7 7 10)\n"


def test_definitions_in_an_environment_stay_in_it():
    program = """
        (define e (environment '(scheme base)))
        (eval '(define z 3) e)
        (print (eval 'z e) (try (eval 'z) error-message))"""
    assert interpreted(program) == "3 z is not defined\n"


def test_an_error_inside_eval_is_placed_at_the_call():
    program = "(print (try (eval '(car 5)) (lambda (e) (list (error-message e) (error-place e)))))"
    assert interpreted(program) == "(car: expected a pair, got 5 test.purple:1:13)\n"


def test_a_list_that_holds_itself_is_no_expression():
    program = "(define xs (list 1 2)) (set-cdr! (cdr xs) xs) (print (try (eval xs) error-kind))"
    assert interpreted(program) == "syntax\n"


def test_load_runs_a_file_among_the_programs_names(tmp_path):
    loaded = tmp_path / "loaded.purple"
    loaded.write_text("(define tripled (* 3 x)) (set! x 5)")
    assert interpreted(f'(define x 2) (load "{loaded}") (print x (eval (quote tripled)))') == "5 6\n"


def test_names_that_eval_defines_are_found_when_the_program_comes_to_them():
    program = """
        (define (read-later) (list made bumps)) (define (bump) (set! bumps (+ bumps 1)))
        (eval '(begin (define made 5) (define bumps 1)))
        (bump) (print made (read-later))
        (eval '(define (square x) (list 'square x))) (print (square 3))
        (print (try (begin (print "before") missing) error-message))"""
    assert interpreted(program) == "5 (5 2)\n(square 3)\nbefore\nmissing is not defined\n"


def test_a_program_uses_the_functions_macros_and_records_of_a_file_it_loads(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "macros.purple").write_text(
        "(define-syntax constant (syntax-rules () ((_ name value) (define (name) value))))"
    )
    (tmp_path / "loaded.purple").write_text("""
        (load "macros.purple") (constant seven 7)
        (define (f x) (* x (seven)))
        (define-record-type point (make-point x) point? (x point-x))""")
    program = """
        (define (twice) (f 2))
        (load "loaded.purple")
        (constant eight 8) (define (g) (eight))
        (print (f 3) (twice) (g) (point-x (make-point 9)))"""
    assert interpreted(program) == "21 14 8 9\n"


def test_without_eval_a_name_that_is_not_defined_is_refused_before_the_program_runs(capsys):
    with pytest.raises(PurpleError, match="undefined-yet is not defined"):
        Session().run_text('(print "ran") (define (f) (undefined-yet 1)) (let ((x)) 2)', FILE)
    assert capsys.readouterr().out == ""


def test_the_compiler_refuses_load_before_it_looks_for_what_the_file_defines():
    with pytest.raises(PurpleError, match="load: a compiled program has no interpreter in it"):
        compile_program(expand_program('(define (g) (f 1)) (load "f.purple") (print (f 3))', FILE))


@pytest.mark.parametrize("use", ["(eval '(+ 1 2))", "(map eval '(1 2))", '(load "other.purple")'])
def test_a_program_that_evaluates_data_is_not_compiled(use):
    with pytest.raises(PurpleError, match="a compiled program has no interpreter in it"):
        compile_program(expand_program(f"(print {use})", FILE))


def test_include_ci_reads_names_without_regard_to_case(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "shouted.purple").write_text('(DEFINE (Twice X) (* 2 x)) (define Said "As Written")')
    assert interpreted('(include-ci "shouted.purple") (print (twice 4) said)') == "8 As Written\n"
