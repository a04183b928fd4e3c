"""From data to the core language: what programs may not say, and what becomes of what they may."""

from __future__ import annotations

from collections import Counter

import pytest

from tenfold.purple import core
from tenfold.purple.errors import PurpleError
from tenfold.purple.expand import prelude_data
from tenfold.purple.interpret import expand_program
from tenfold.purple.reader import Name
from tenfold.purple.subexpressions import children


def nodes(text: str) -> list[core.Form]:
    found: list[core.Form] = []
    stack = list(expand_program(text, "t.purple").forms)
    while stack:
        found.append(stack.pop())
        stack += children(found[-1])
    return found


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("(if)", "if is written (if TEST THEN [ELSE])"),
        ("(let ((x)) x)", "a binding of let is written (NAME VALUE)"),
        ("(let ((x 1) (x 2)) x)", "two variables of this let have the same name"),
        ("(lambda (x x) x)", "two parameters have the same name"),
        ("(lambda (1) 1)", "a parameter is a name, or a keyword and its default"),
        ("(define)", "define needs a name"),
        ("(define 5 1)", "what is defined must be a name"),
        ("(define x)", "define is written (define NAME VALUE) or (define (NAME PARAMETER …) BODY …)"),
        ("(define (f))", "the function f has no body"),
        ("(define x 1 2)", "define takes a name and one value"),
        ("(+ 1 (define x 2))", "define may stand only at the top level or in a body"),
        ("(lambda (x))", "lambda is written (lambda (PARAMETER …) BODY …)"),
        ("(set! 5 1)", "set! assigns to a name or to a place such as (Point-x p)"),
        ("(set! car 1)", "car belongs to the language and cannot be assigned"),
        ("(set! (f x) 1)", "(f …) is not a place that can be assigned"),
        ("if", "if is a form, not a value"),
        ("(list (deftype P a))", "deftype may stand only at the top level"),
        ("(deftype P a a)", "two fields of P have the same name"),
        ("(deftype P (a nosuch))", "there is no type nosuch"),
        ("(deftype P a) (deftype P b)", "the type P is defined twice"),
        ("(deftype P a) P", "P is a type, not a value"),
        ("(cond (else 1) (#t 2))", "else must be the last clause"),
        ("(f . x)", "a call cannot end with a dot"),
        ("(list 1 :a)", None),
        ("(define (f) 1) (f :a)", "no value follows :a"),
        ("(define (f) 1) (f :a 1 2)", "arguments in order stand before those by keyword"),
        ("(define (f) 1) (f :a 1 :a 2)", ":a is given twice"),
        (",x", "a comma may stand only inside a quasiquotation"),
        ("`,@(list 2)", ",@ may stand only before an item of a list or a vector"),
        ("(match 1 ((nosuch a) 1))", "there is no pattern (nosuch …)"),
        ("(match 1 ((or a 1) 1))", "all patterns of an `or` must name the same variables"),
        ("(match 1 ((list a a) 1))", "a pattern names the same variable twice"),
        ("(deftype P a) (match 1 ((P a b) 1))", "P has 1 fields, and this pattern 2"),
        ("(define (f) (define a 1) (define a 2) a)", "a is defined twice in one body"),
        (
            "(lambda () (let ((x 1))))",
            "let is written (let ((NAME VALUE) …) BODY …) or (let NAME ((NAME VALUE) …) BODY …)",
        ),
        ("(ffi-declare f (nosuch) int)", "this is no type of a foreign function"),
        ("(%uniform 1)", "%uniform is not defined"),
        ("(match 1 ((list (or a 1)) a))", "all patterns of an `or` must name the same variables"),
    ],
)
def test_what_means_nothing_is_refused(text, message):
    if message is None:
        nodes(text)
        return
    with pytest.raises(PurpleError) as caught:
        nodes(text)
    assert caught.value.message == message
    assert caught.value.place.line == 1


def test_an_unknown_name_is_found_before_anything_runs_and_a_near_one_offered():
    with pytest.raises(PurpleError) as caught:
        nodes('(print "not this")\n(define (f x) (lenght x))')
    assert caught.value.message == "lenght is not defined"
    assert caught.value.help == "did you mean length?"
    assert (caught.value.place.line, caught.value.place.column) == (2, 16)


def test_an_op_without_its_prefix_is_offered_with_it():
    with pytest.raises(PurpleError) as caught:
        nodes("(matmul x y)")
    assert (caught.value.message, caught.value.help) == (
        "matmul is not defined",
        "did you mean tensor-matmul?",
    )


def test_a_splice_after_a_dot_is_refused_where_it_stands():
    with pytest.raises(PurpleError) as caught:
        nodes("(list\n `(1 . ,@(list 2)))")
    assert caught.value.message == ",@ may stand only before an item of a list or a vector"
    assert (caught.value.place.line, caught.value.place.column) == (2, 8)


def test_what_only_the_library_may_use_is_not_offered():
    with pytest.raises(PurpleError) as caught:
        nodes("(permutation 3)")
    assert caught.value.help is None


def test_nesting_beyond_the_limit_is_a_located_error():
    with pytest.raises(PurpleError) as caught:
        from_deep = "(+ 1 " * 5000 + "1" + ")" * 5000
        expand_deep(from_deep)
    assert caught.value.message == "expressions are nested too deeply: more than 1000 levels"
    assert caught.value.place.line == 1


def expand_deep(text: str) -> None:
    from tenfold.purple.deep_stack import with_deep_stack

    with_deep_stack(lambda: expand_program(text, "t.purple"))


def test_a_primitive_is_called_directly_unless_its_name_is_taken():
    assert any(isinstance(each, core.Prim) and each.name == "car" for each in nodes("(car '(1))"))
    shadowed = nodes("(define (f car) (car 1))")
    assert not any(isinstance(each, core.Prim) for each in shadowed)
    redefined = nodes("(define (car x) x) (car 1)")
    assert any(isinstance(each, core.Call) for each in redefined)


def test_only_what_is_needed_of_the_prelude_comes_along():
    names = {each.name for each in nodes("(zero? 1)") if isinstance(each, core.Define)}
    assert names == {"prelude::zero?"}


def test_a_program_may_redefine_what_the_prelude_uses(output):
    assert (
        output("(define (reverse xs) 'mine) (print (map car '((1) (2))) (reverse '(1 2)))") == "(1 2) mine\n"
    )
    assert output("(define (%map1 f xs done) 'mine) (print (map car '((1))))") == "(1)\n"


def test_variables_know_whether_they_are_assigned_and_captured():
    (function,) = [
        each
        for each in nodes("(define (f a b c) (set! a 1) (lambda () b))")
        if isinstance(each, core.Lambda) and each.name == "f"
    ]
    assert [(var.assigned, var.captured) for var in function.params] == [
        (True, False),
        (False, True),
        (False, False),
    ]


def test_definitions_of_a_body_that_do_not_mention_each_other_are_nested():
    kinds = [type(each).__name__ for each in nodes("(define (f) (define a 1) (define (g) (g)) (+ a 1))")]
    assert kinds.count("Let") == 1 and kinds.count("Letrec") == 1


def test_a_files_exports_are_what_its_module_form_says(tmp_path, output, failure):
    (tmp_path / "geometry.purple").write_text(
        "(module geometry (export area Circle))\n(deftype Circle r)\n(define (helper r) (* r r))\n"
        "(define (area c) (* 3 (helper (Circle-r c))))"
    )
    path = tmp_path / "geometry.purple"
    assert (
        output(f'(import "{path}") (define (helper x) x) (print (area (mk-Circle 2)) (helper 5))') == "12 5\n"
    )
    assert output(f'(import "{path}" :as g) (print (g/area (g/mk-Circle 1)))') == "3\n"
    assert output(f'(import "{path}" :only (area)) (print (procedure? area))') == "#t\n"
    assert failure(f'(import "{path}") (helper 1)').message == "helper is not defined"
    assert failure(f'(import "{path}" :only (helper))').message == "geometry does not export helper"


def test_a_file_is_run_once_however_often_it_is_imported(tmp_path, output):
    (tmp_path / "a.purple").write_text('(print "a runs") (define x 1)')
    (tmp_path / "b.purple").write_text('(import "a.purple") (define y (+ x 1))')
    program = f'(import "{tmp_path}/b.purple") (import "{tmp_path}/a.purple") (print x y)'
    assert output(program) == "a runs\n1 2\n"


def test_files_that_import_each_other_are_refused(tmp_path, failure):
    (tmp_path / "a.purple").write_text('(import "b.purple")')
    (tmp_path / "b.purple").write_text('(import "a.purple")')
    error = failure(f'(import "{tmp_path}/a.purple")')
    assert error.message.endswith("imports itself, by way of others")
    assert error.place.file.endswith("b.purple")


def test_a_missing_import_is_an_error_at_the_import(failure):
    error = failure('\n(import "/nowhere/at-all.purple")')
    assert error.message == "cannot read /nowhere/at-all.purple: no such file or directory"
    assert (error.place.file, error.place.line) == ("test.purple", 2)


def test_no_name_of_the_library_is_defined_twice():
    _, data = prelude_data()
    names = [each.value[1].value for each in data if isinstance(each.value[1], Name)]
    names += [each.value[1].value[0].value for each in data if not isinstance(each.value[1], Name)]
    assert not [name for name, count in Counter(names).items() if count > 1]
