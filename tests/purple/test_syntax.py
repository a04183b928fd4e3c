"""Macros: patterns, ellipses, literals, and hygiene."""

from __future__ import annotations

import pytest

SWAP = "(define-syntax swap! (syntax-rules () ((_ a b) (let ((tmp a)) (set! a b) (set! b tmp)))))"
MY_OR = """(define-syntax my-or
  (syntax-rules () ((_) #f) ((_ e) e) ((_ e r ...) (let ((t e)) (if t t (my-or r ...))))))"""
MY_LET = (
    "(define-syntax my-let (syntax-rules () ((_ ((n v) ...) body ...) ((lambda (n ...) body ...) v ...))))"
)
FOR = """(define-syntax for (syntax-rules (in from to)
  ((_ x in xs body ...) (for-each (lambda (x) body ...) xs))
  ((_ x from a to b body ...) (let loop ((x a)) (when (< x b) body ... (loop (+ x 1)))))))"""
FLAT = "(define-syntax flat (syntax-rules () ((_ (a b ...) ...) '(a ... (b ... ) ... b ... ...))))"


@pytest.mark.parametrize(
    ("program", "shown"),
    [
        (SWAP + "(let ((tmp 1) (y 2)) (swap! tmp y) (list tmp y))", "(2 1)"),
        (MY_OR + "(let ((t 5)) (my-or #f t))", "5"),
        (MY_OR + "(let ((if list)) (my-or #f 3))", "3"),
        (MY_LET + "(my-let ((a 1) (b 2)) (+ a b))", "3"),
        (FOR + "(let ((s 0)) (for x in '(1 2 3) (set! s (+ "
        "s x))) (for i from 0 to 4 (set! s (+ s i))) s)", "12"),
        (FLAT + "(flat (1 2 3) (4) (5 6))", "(1 4 5 (2 3) () (6) 2 3 6)"),
        ("(define-syntax last (syntax-rules () ((_ a ... z) 'z))) (last 1 2 3)", "3"),
        ("(define-syntax tail (syntax-rules () ((_ a . b) 'b))) (list (tail 1 2 3) (tail 1))", "((2 3) ())"),
        ("(define-syntax vec (syntax-rules () ((_ #(a ...)) (list a ...)))) (vec #(1 2 3))", "(1 2 3)"),
        ("(define-syntax lit (syntax-rules () ((_ 1) 'one) ((_ \"s\") "
        "'string) ((_ x) 'other))) (list (lit 1) (lit \"s\") (lit 2))",
         "(one string other)"),
        ("(define-syntax dots (syntax-rules () ((_ a) '(a (... ...))))) (dots 1)", "(1 ...)"),
        ("(define-syntax m (syntax-rules dots () ((_ a dots) (list a dots '...)))) (m 1 2)", "(1 2 ...)"),
        ("(define-syntax def (syntax-rules () ((_ n v) (define n v)))) (def x 4) x", "4"),
        ("(define (f) (define-syntax two (syntax-rules () ((_) 2))) (define x (two)) (* x 2)) (f)", "4"),
        ("(define x 1) (define-syntax get-x (syntax-rules () ((_) x))) (let ((x 2)) (get-x))", "1"),
        ("(define-syntax while2 (syntax-rules () ((_ c b ...) (let loop () (when c b ... "
        "(loop)))))) (let ((i 0) (loop 7)) (while2 (< i 3) (set! i (+ i 1))) (list i loop))",
         "(3 7)"),
        ("""(define-syntax def-getter
              (syntax-rules ()
                ((_ name) (define-syntax name (syntax-rules () ((_ x (... ...)) (list x (... ...))))))))
            (def-getter g) (g 1 2)""", "(1 2)"),
        ("(define-syntax my-cond (syntax-rules (else) ((_ (else e)) e) ((_ "
        "(c e) r ...) (if c e (my-cond r ...))))) (my-cond (#f 1) (else 2))", "2"),
        ("(-> 5 (- 2) (* 3) 1+)", "10"),
    ],
)  # fmt: skip
def test_a_macro_expands(value, program, shown):
    assert value(program) == shown


def test_a_literal_that_is_bound_means_something_else(failure):
    program = "(define-syntax m (syntax-rules (else) ((_ else) 1))) (let ((else 2)) (m else))"
    assert failure(program).message == "no rule of the macro m fits this use"


def test_a_use_that_no_rule_fits_shows_the_use_and_the_definition(failure):
    error = failure("(define-syntax one (syntax-rules () ((_ a) a)))\n(one 1 2)")
    assert (error.message, error.place.line) == ("no rule of the macro one fits this use", 2)
    assert error.notes[0][1].line == 1


def test_an_error_inside_what_a_macro_made_is_at_its_use(failure):
    error = failure("(define-syntax first-of (syntax-rules () ((_ x) (car x))))\n\n  (first-of 5)")
    assert (error.place.line, error.place.column) == (3, 3)


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        ("(syntax-rules () ((_ a a) 1))", "a stands twice in one pattern"),
        ("(syntax-rules () ((_ a ... b ...) 1))", "an ellipsis follows a pattern, once in a list"),
        ("(syntax-rules () ((_ a ...) a))", "a needs 1 ellipses after it"),
        ("(syntax-rules () ((_ a) (a ...)))", "nothing before this ellipsis repeats"),
        ("(syntax-rules)", "a macro is defined by (syntax-rules (literal …) (pattern template) …)"),
        ("(syntax-rules (1) ((_) 1))", "the literals of syntax-rules are a list of names"),
        ("(syntax-rules () (x))", "a rule of syntax-rules is (pattern template)"),
        ("5", "a macro is defined by (syntax-rules (literal …) (pattern template) …)"),
    ],
)
def test_rules_that_mean_nothing_are_refused(failure, rules, message):
    assert failure(f"(define-syntax m {rules})").message == message


def test_lists_that_repeat_together_must_be_of_one_length(failure):
    error = failure("(define-syntax m (syntax-rules () ((_ (a ...) (b ...)) '((a b) ...)))) (m (1 2) (3))")
    assert error.message == "lists of different lengths repeat together in the macro m"


@pytest.mark.parametrize("template", ["(m)", "(list (m))"])
def test_a_macro_without_end_is_an_error(failure, template):
    error = failure(f"(define-syntax m (syntax-rules () ((_) {template}))) (m)")
    assert error.message.startswith(("macros expand without end", "expressions are nested too deeply"))


MY_COND = """(define-syntax my-cond (er-macro-transformer (lambda (form rename compare)
  (cond ((null? (cdr form)) #f)
        ((compare (car (cadr form)) (rename 'else)) (cadr (cadr form)))
        (else `(,(rename 'if) ,@(cadr form) (,(rename 'my-cond) ,@(cddr form))))))))"""


@pytest.mark.parametrize(
    ("program", "shown"),
    [
        (MY_COND + "(my-cond (#f 1) ((= 1 1) 2) (else 3))", "2"),
        (MY_COND + "(let ((if list)) (my-cond (#f 1) (else 3)))", "3"),
        (MY_COND + "(let ((else #f)) (my-cond (else 1) (#t 2)))", "2"),
        ("(define-syntax it (er-macro-transformer (lambda (f r c) 'it))) (let ((it 1)) (let-syntax "
         "((that (er-macro-transformer (lambda (f r c) 'here)))) (let ((here 2)) (that))))", "2"),
    ],
)  # fmt: skip
def test_a_procedure_may_be_a_macro(program, shown, value):
    assert value(program) == shown


@pytest.mark.parametrize(
    "knot",
    ["(set-car! (cdr f) f) f", "(set-cdr! (cdr f) f) f", "(let ((v (vector 1))) (vector-set! v 0 v) v)"],
)
def test_a_macro_that_gives_a_list_within_itself_is_an_error(knot, failure):
    error = failure(f"(define-syntax bad (er-macro-transformer (lambda (f r c) {knot})))\n(bad 1)")
    assert "the macro bad gives a list that holds itself" in str(error)


def test_an_error_in_a_macros_procedure_names_its_place_and_the_use(failure):
    error = failure("(define-syntax bad (er-macro-transformer (lambda (f r c) (caddr f))))\n(bad 1)")
    assert error.place.line == 1 and [place.line for _, place in error.notes] == [2]
