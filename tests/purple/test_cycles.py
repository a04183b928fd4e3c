"""Cycles of references: the compiler says where one is closed that nothing breaks, and a program that ends
with one frees it then."""

import pytest

from tenfold.purple.emit_c import compile_program
from tenfold.purple.interpret import expand_program
from tenfold.purple.memory import report
from tests.purple.compiled import FILE, build, run

RECORDS = """(deftype Node value next back)
(define (node) (mk-Node 1 nil nil))
(deftype Tree (children list) parent)
(deftype Weak next (back :weak))
"""


def cycles(text: str) -> list[str]:
    """The forms that close a cycle."""
    found = []
    program = expand_program(RECORDS + text, FILE)
    compile_program(program, warn=lambda cycle: found.append(program.source(cycle.place)))
    return found


@pytest.mark.parametrize(
    ("text", "closing"),
    [
        (
            "(define (link! a b) (set! (Node-next a) b) (set! (Node-back b) a))\n(link! (node) (node))",
            "(set! (Node-back b) a)",
        ),
        (
            """(define (add! parent child)
                 (set! (Tree-children parent) (cons child (Tree-children parent)))
                 (set! (Tree-parent child) parent))
               (define root (mk-Tree nil nil))
               (add! root (mk-Tree nil nil))""",
            "(set! (Tree-parent child) parent)",
        ),
        (
            """(define (on! a b) (set! (Node-next a) b))
               (define (back! a b) (set! (Node-back a) b))
               (define (both a b) (on! a b) (back! b a))
               (both (node) (node))""",
            "(back! b a)",
        ),
        ("(define b (box nil)) (set-box! b (list 1 b))", "(set-box! b (list 1 b))"),
        ("(let ((v (vector 1))) (vector-set! v 0 (lambda () v)))", "(vector-set! v 0 (lambda () v))"),
        ("(let ((f nil)) (set! f (lambda (n) (f n))))", "(set! f (lambda (n) (f n)))"),
        (
            "(let ((t (make-hash-table)) (i 0)) (while (< i 9) (set! i 10) (hash-table-set! t i (list t))))",
            "(hash-table-set! t i (list t))",
        ),
    ],
)
def test_a_mutation_that_closes_a_cycle_is_warned_of(text, closing):
    assert cycles(text) == [closing]


@pytest.mark.parametrize(
    "text",
    [
        "(let ((a (mk-Weak 1 2)) (b (mk-Weak 1 2))) (set! (Weak-next a) b) (set! (Weak-back b) a))",
        "(define (add-last! last new) (set! (Node-next last) new) new)\n(add-last! (node) (node))",
        "(let ((p (mk-Node 1 2 3))) (set! (Node-next p) (list p)) (set! (Node-next p) nil))",
        "(let ((n 0) (all nil)) (list (lambda (x) (set! all (cons x all)) (set! n (+ n 1)))))",
        """(define (reverse! xs)
             (let loop ((done nil) (xs xs))
               (if (null? xs) done (let ((next (cdr xs))) (set-cdr! xs done) (loop xs next)))))
           (print (reverse! (list 1 2 3)))""",
        "(letrec ((e? (lambda (n) (o? n))) (o? (lambda (n) (e? n)))) (list e? o?))",
    ],
)
def test_what_makes_no_cycle_is_not_warned_of(text):
    assert cycles(text) == []


def test_cycles_that_a_shipped_library_closes_are_not_warned_of():
    assert cycles("(import (srfi 1))\n(print (fold + 0 (list 1 2)) (car (circular-list 1 2)))") == []


def test_the_warning_shows_the_form_and_says_which_field_to_declare_weak():
    text = "(deftype Node next back)\n(define (link! a b) (set! (Node-next a) b) (set! (Node-back b) a))"
    shown = report(expand_program(f"{text}\n(link! (mk-Node 1 2) (mk-Node 1 2))", FILE))
    assert f"{FILE}:2:44: warning: this closes a cycle of references" in shown
    assert "(back any :weak) in the deftype of Node" in shown


def test_a_cycle_is_reported_and_freed_at_exit(tmp_path):
    text = "(deftype Ring next) (define r (mk-Ring nil)) (set! (Ring-next r) (list r)) (print 1)"
    done = run(build(text, tmp_path, "-fsanitize=address", "-g"))
    assert done.returncode == 0
    assert "2 objects were kept alive by reference cycles, and freed only now, at exit: Ring" in done.stderr
    assert "Sanitizer" not in done.stderr
