"""Copies of higher-order functions for procedures that are known, and lists whose every pair is unique."""

import pytest

from tenfold.purple import ir
from tenfold.purple.emit_c import analysed, deep
from tenfold.purple.interpret import expand_program
from tests.purple.compiled import CHECKED, FILE, compiled, interpreted


def analysis(text: str) -> ir.Module:
    return deep(lambda: analysed(expand_program(text, FILE)))


def operations(module: ir.Module, kind: type) -> list:
    bodies = [f.body for f in [*module.functions, module.main]]
    return [
        s.op
        for body in bodies
        for s in ir.statements(body)
        if isinstance(s, ir.Let) and isinstance(s.op, kind)
    ]


@pytest.mark.parametrize(
    "text",
    [
        "(print (map (lambda (x) (* x 2)) (list 1 2)))",
        "(define (f k) (map (lambda (x) (* x k)) (list 1 2))) (print (f 3))",
        "(for-each (lambda (x y) (print x y)) (list 1 2) (list 3 4))",
        "(print (sort (list 3 1 2) (lambda (a b) (< a b))) (fold + 0 (list 1 2)) (filter odd? (list 1 2 3)))",
        "(define (twice f x) (f (f x))) (print (twice (lambda (x) (* x x)) 3))",
    ],
)
def test_a_procedure_that_is_known_where_it_is_called_needs_no_closure(text):
    module = analysis(text)
    assert not operations(module, ir.CallClosure)
    assert not operations(module, ir.MakeClosure)


def test_a_closure_calls_the_procedures_its_maker_was_given_directly():
    text = "(define (compose f g) (lambda (x) (f (g x)))) (define h (compose car cdr)) (print h (h '(1 2)))"
    closure = next(f for f in analysis(text).functions if f.name == "lambda")
    calls = [s.op for s in ir.statements(closure.body) if isinstance(s, ir.Let)]
    assert [op.name for op in calls if isinstance(op, ir.Prim)] == ["cdr", "car"]
    assert not any(isinstance(op, ir.CallClosure) for op in calls)


def test_what_is_not_called_any_more_is_left_out():
    module = analysis("(print (map (lambda (x) x) (list 1)))")
    assert not [f.name for f in module.functions if "map" in f.name]


def test_the_rest_of_a_list_that_was_made_here_is_freed_without_counting():
    module = analysis(
        "(define (total xs n) (if (null? xs) n (total (cdr xs) (+ n (car xs)))))"
        "(print (total (reverse (list 1 2 3)) 0))"
    )
    taken = [s for f in module.functions for s in ir.statements(f.body) if isinstance(s, ir.Uncons)]
    assert all(each.unique for each in taken)


PROGRAMS = [
    # A rest that someone keeps is shared, and so are those of a list that a function looked into.
    '(define xs (string->list "abc")) (define ys (cdr xs)) (print (length xs) ys xs)',
    "(define (tails xs) (if (null? xs) nil (cons xs (tails (cdr xs))))) (print (tails (list 1 2 3)))",
    "(define (after x xs) (member x xs)) (let* ((xs (list 1 2 3)) (r (after 2 xs)))"
    " (for-each print xs) (print r))",
    "(let loop ((xs (list 1 2 3)) (seen nil)) (if (null? xs) (print seen) (loop (cdr xs) (cons xs seen))))",
    "(define a (list 1 2)) (define b (append (list 0) a)) (for-each print b) (for-each print a) (print b a)",
    "(define (go xs) (let ((y (cddr xs))) (for-each print xs) y)) (print (go (list 1 2 3 4)))",
    "(print (map (lambda (x . more) (list x more)) '(1 2)) (map + '(1 2) '(10 20)) (map + '(1) '(2) '(3)))",
    "(define (compose2 f g) (lambda (x) (f (g x)))) (print (map (compose2 car cdr) '((1 2) (3 4))))",
    "(define n 0) (for-each (lambda (x) (set! n (+ n x))) '(1 2 3)) (print n)",
    "(print (try (map (lambda (x y) x) '(1 2)) error-kind) (try (map car 5) error-message))",
    "(for-each (lambda (a b) (print a b)) '((1 2) (3 4)))",
    '(define (f x :scale 2 :name "n") (list (* x scale) name)) (print (f 1) (f 1 :scale 3) (f 2 :name \'k))',
]


def test_copies_and_unique_lists_give_the_answers_of_the_interpreter(tmp_path):
    """The sanitizer, and a check of every count that was proved to be one, look on."""
    text = "\n".join(f"(let () {program})" for program in PROGRAMS)
    assert compiled(text, tmp_path, *CHECKED) == interpreted(text)
