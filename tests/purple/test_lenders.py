"""Functions that give a part of what their caller goes on holding, without a share of it."""

import pytest

from tenfold.purple import ir
from tenfold.purple.certify import CompilerBug, certify
from tenfold.purple.emit_c import analysed
from tenfold.purple.interpret import expand_program
from tests.purple.compiled import CHECKED, FILE, build, check_failures, function_of, interpreted, run

LOOKUP = """
(define (lookup key table)
  (cond ((null? table) "none")
        ((eq? key (car (car table))) (cdr (car table)))
        (else (lookup key (cdr table)))))
"""
PROGRAM = (
    LOOKUP
    + """
(deftype Node (name string) next)
(define (after node) (Node-next node))
(define (either a b) (if (pair? a) (car a) (car b)))
(define (from key table) (let ((found (lookup key table))) (list found (string-length found))))
(define table (list (cons 'a (string-append "x" "y")) (cons 'b (string-append "z" ""))))
(define (kept) (let ((own (list (cons 'k (string-append "o" "wn"))))) (lookup 'k own)))
(define (tail-of xs) (rest xs))
(define (set-after! node) (let ((held (after node))) (set! (Node-next node) nil) (Node-name held)))
(print (from 'a table) (from 'c table) (kept) (lookup 'b table) (either nil (list "e"))
       (either (list "f") nil))
(print (let ((xs (list 1 2 3))) (cons (first xs) (tail-of xs))) (first (rest (list "p" "q"))))
(print (Node-name (after (mk-Node "one" (mk-Node "two" nil)))) (set-after! (mk-Node "1" (mk-Node "2" nil))))
(print (try (first 5) error-message) (try (after table) error-message))
"""
)


def test_a_search_lends_what_the_table_holds():
    module = analysed(expand_program(PROGRAM, FILE))
    assert function_of(module, "lookup").lends == (1, frozenset(("pair",)))
    assert function_of(module, "after").lends == (0, frozenset(("Node next",)))
    found = next(
        s
        for s in ir.statements(function_of(module, "from").body)
        if isinstance(s, ir.Let) and isinstance(s.op, ir.CallKnown)
    )
    assert found.var.lender is not None


def test_a_result_that_may_be_of_either_of_two_parameters_is_no_loan():
    assert function_of(analysed(expand_program(PROGRAM, FILE)), "either").lends is None


def test_a_parameter_that_may_be_given_back_whole_is_no_loan():
    text = "(define (head x) (if (pair? x) (car x) x)) (print (head (list 1)) (head 2))"
    assert function_of(analysed(expand_program(text, FILE)), "head").lends is None


def test_a_part_of_a_global_is_no_loan_of_a_parameter(tmp_path):
    text = """(define table (list (string-append "a" "b")))
(define (nobody) (car table)) (define (other x) (if (pair? x) (car table) "none"))
(print (nobody) (nobody) (other (list 1)) (other 2))"""
    module = analysed(expand_program(text, FILE))
    assert function_of(module, "nobody").lends is None and function_of(module, "other").lends is None
    done = run(build(text, tmp_path, *CHECKED))
    assert (done.returncode, done.stderr, done.stdout) == (0, "", "ab ab ab none\n")
    function_of(module, "other").lends = (-1, frozenset(("pair",)))
    with pytest.raises(CompilerBug, match="by none of its parameters"):
        certify(module)


def test_a_part_that_is_kept_longer_than_its_list_is_shared(tmp_path):
    text = """(define (tail-of xs) (cdr xs))
(define (kept) (let* ((xs (list 1 2 3)) (ys (cons 9 (tail-of xs))))
  (let loop ((xs xs) (n 0)) (if (null? xs) (cons n ys) (loop (cdr xs) (+ n 1))))))
(print (kept))"""
    done = run(build(text, tmp_path, *CHECKED))
    assert (done.returncode, done.stderr, done.stdout) == (0, "", "(3 9 2 3)\n")


def test_a_loan_that_no_caller_holds_is_found_by_the_certifier():
    module = analysed(expand_program(PROGRAM, FILE))
    either = function_of(module, "either")
    for param in either.params:
        param.borrowed = True
    either.lends = (0, frozenset(("pair",)))
    with pytest.raises(CompilerBug):
        certify(module)
    module = analysed(expand_program(PROGRAM, FILE))
    function_of(module, "lookup").lends = (0, frozenset(("pair",)))
    with pytest.raises(CompilerBug, match="given without a share"):
        certify(module)


def test_loans_print_the_same_both_ways_and_leak_nothing_wherever_a_program_fails(tmp_path):
    program = build(PROGRAM, tmp_path, *CHECKED)
    done = run(program)
    assert (done.returncode, done.stderr, done.stdout) == (0, "", interpreted(PROGRAM))
    check_failures(program, range(1, 120, 3))
