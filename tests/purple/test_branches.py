"""Branches that types decide are not compiled, and widen no type."""

import pytest

from tenfold.purple import ir
from tenfold.purple.emit_c import analysed
from tenfold.purple.interpret import expand_program
from tests.purple.compiled import FILE, compiled, function_of, interpreted

PROGRAM = """
(define (f x :scale 2 :on #t) (if on (* x scale) x))
(define (kind x) (cond ((null? x) 'nothing) ((pair? x) (kind (cdr x))) ((number? x) 'number) (else 'other)))
(define (start . more) (let ((from (if (pair? more) (car more) 0))) (+ from 1)))
(define (loud x) (if (string? x) (string-append x "!") (if (not (null? x)) "?" "")))
(define (flag n) (let ((big (if (> n 3) #t #f))) (if big 'big 'small)))
(print (f 3) (f 3 :on #f) (f 3 :scale 5) (kind '(1 . 2)) (kind 2) (kind "s") (start))
(print (loud "a") (flag 2) (flag 9))
"""


def branches(text: str, name: str) -> list[ir.If]:
    body = function_of(analysed(expand_program(text, FILE)), name).body
    return [each for each in ir.statements(body) if isinstance(each, ir.If)]


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ('(define (f x) (if (pair? x) 1 2)) (print (f "a"))', 0),
        ('(define (f x) (if (pair? x) 1 2)) (print (f "a") (f (list 1)))', 1),
        ("(define (f . more) (if (pair? more) (car more) 0)) (print (f))", 0),
        ("(define (f x :on #t) (if on x 1)) (print (f 2) (f 2 :on #f))", 1),
        ("(define (f x) (while (pair? x) (set! x (cdr x))) x) (print (f 2))", 0),
    ],
)
def test_a_predicate_of_a_known_type_is_no_branch(text, count):
    decided = [each for each in branches(text, "f") if len(each.then) + len(each.otherwise) > 0]
    assert len(decided) - text.count(":on #t") == count


def test_what_a_branch_that_is_never_taken_gives_widens_no_type():
    module = analysed(expand_program("(define (f . xs) (if (pair? xs) (car xs) 0)) (print (+ 1 (f)))", FILE))
    assert function_of(module, "f").rep == ir.INT


def test_decided_branches_print_the_same_both_ways(tmp_path):
    assert compiled(PROGRAM, tmp_path) == interpreted(PROGRAM)
