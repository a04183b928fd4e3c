"""Running programs: values of every form, proper tail calls, closures, errors with their places."""

from __future__ import annotations

import gc

import pytest

from tenfold.purple.deep_stack import with_deep_stack
from tenfold.purple.errors import report
from tenfold.purple.interpret import Session


@pytest.mark.parametrize(
    ("program", "shown"),
    [
        # Forms
        ("(if nil 1 2)", "2"),
        ("(if '() 1 2)", "2"),
        ("(if #f 1 2)", "2"),
        ("(if 0 1 2)", "1"),
        ('(if "" 1 2)', "1"),
        ("(if #t 1)", "1"),
        ("t", "#t"),
        ("(let ((t 5)) t)", "5"),
        ("(let ((x 1) (y 2)) (+ x y))", "3"),
        ("(let* ((x 1) (y (+ x 1))) (list x y))", "(1 2)"),
        ("(letrec ((even (lambda (n) (if (= n 0) #t (odd (- n 1))))) "
        "(odd (lambda (n) (if (= n 0) #f (even (- n 1)))))) (even 101))", "#f"),
        ("(let loop ((i 0) (acc nil)) (if (= i 3) (reverse acc) (loop (+ i 1) (cons i acc))))", "(0 1 2)"),
        ("(cond (#f 1) ((assoc 2 '((1 . a) (2 . b))) => cdr) (else 3))", "b"),
        ("(cond (#f 1) (5))", "5"),
        ("(cond (#f 1))", "#<unspecified>"),
        ("(case 3 ((1 2) 'low) ((3 4) 'mid) (else 'high))", "mid"),
        ("(case 'x ((y) 1) (else 2))", "2"),
        ("(case 3 ((1) 'no) ((2 3) => -) (else => list))", "-3"),
        ("(case 4 ((1) 'no) ((2 3) => -) (else => list))", "(4)"),
        ("`(a . `(b ,(c ,(+ 1 2))))", "(a quasiquote (b (unquote (c 3))))"),
        ('(case "s" (("s" "t") 1) (else 2))', "1"),
        ("(when #t 1 2)", "2"),
        ("(unless #t 1 2)", "#<unspecified>"),
        ("(and)", "#t"),
        ("(and 1 2)", "2"),
        ("(and nil 2)", "()"),
        ("(and #f 2)", "#f"),
        ("(or)", "#f"),
        ("(or #f nil)", "()"),
        ("(or #f 2)", "2"),
        ("(if (and 1 (or #f 2)) 'yes 'no)", "yes"),
        ("(not nil)", "#t"),
        ("(do 1 2 3)", "3"),
        ("(begin 1 2 3)", "3"),
        ("(let ((i 0)) (while (< i 5) (set! i (+ i 1))) i)", "5"),
        ("(let ((s 0)) (dotimes (i 5) (set! s (+ s i))) s)", "10"),
        ("(dotimes (i 3 (* i 10)))", "30"),
        ("(let ((s 0)) (for-each (lambda (x) (set! s (+ s x))) '(1 2 3)) s)", "6"),
        ("(let-values (((a b) (values 1 2)) ((c) (values 3))) (list a b c))", "(1 2 3)"),
        ("(apply + 1 2 '(3 4))", "10"),
        ("`(1 ,(+ 1 1) ,@(list 3 4) 5)", "(1 2 3 4 5)"),
        ("`(1 . ,(+ 1 1))", "(1 . 2)"),
        ("`#(1 ,(+ 1 1))", "#(1 2)"),
        ("`#(,@(list 1 2) unquote ,(+ 1 2))", "#(1 2 unquote 3)"),
        ("`(1 `(2 ,,@(list 3) . ,@(list 4 ,(+ 2 3))))",
         "(1 (quasiquote (2 (unquote 3) unquote-splicing (list 4 5))))"),
        ("`(a `(b ,(c ,(+ 1 2))))", "(a (quasiquote (b "
        "(unquote (c (unquote (+ 1 2)))))))".replace("(unquote (+ 1 2))", "3")),
        ("(define x 1) (set! x (+ x 1)) x", "2"),
        ("(let ((b (box 1))) (set-box! b 5) (unbox b))", "5"),
        ("(define (f) (define a 1) (define (g) (* a 2)) (g)) (f)", "2"),
        ("(define (f a . rest) (list a rest)) (list (f 1) (f 1 2 3))", "((1 ()) (1 (2 3)))"),
        ("(define (f . all) all) (f 1 2)", "(1 2)"),
        ("((lambda all all) 1 2)", "(1 2)"),
        ("(define (f a :b 2 :c (+ a b)) (list a "
        "b c)) (list (f 1) (f 1 :c 0) (f 1 :b 5))", "((1 2 3) (1 2 0) (1 5 6))"),
        ("(define (f :b) b) (f :b 3)", "3"),
        ("(define (f :k nil . rest) (list k rest)) (list (f 1 2 :k 3) (f))", "((3 (1 2)) (() ()))"),
        ("(list :a 1)", "(:a 1)"),
        ("(define (f x) \"documents f\" x) (f 1)", "1"),
        ("(define (f) \"a string\") (f)", '"a string"'),
        # Closures
        ("(define (counter) (let ((n 0)) (lambda () (set! n (+ n 1)) n))) (define c (counter)) (c) (c)", "2"),
        ("(define fs (let loop ((i 0) (fs nil)) (if (= i 3) fs (loop "
        "(+ i 1) (cons (lambda () i) fs))))) (map (lambda (f) (f)) fs)", "(2 1 0)"),
        ("(let ((fs nil)) (dotimes (i 3) (set! fs (cons "
        "(lambda () i) fs))) (map (lambda (f) (f)) fs))", "(2 1 0)"),
        ("(let ((fs nil) (i 0)) (while (< i 3) (let ((j i)) (set! fs "
        "(cons (lambda () j) fs))) (set! i (+ i 1))) (map (lambda (f) (f)) fs))", "(2 1 0)"),
        ("(let loop ((i 0) (s 0)) (if (= i 3) s (loop (+ i 1) (+ s (let "
        "inner ((j 0) (t 0)) (if (= j i) t (inner (+ j 1) (+ t i))))))))", "5"),
        ("(define x 10) (define (f) x) (let ((x 20)) (f))", "10"),
        ("(let ((x 1)) (+ x (begin (set! x 10) x) x))", "21"),
        ("(define n 1) (define (bump) (set! n (+ n 1)) n) (list (+ n (bump)) n)", "(3 2)"),
        ("(let ((x 1)) (let ((f (lambda () (set! x 5) x))) (list x (f) x)))", "(1 5 5)"),
        ("(define (compose . fs) (if (null? fs) (lambda (x) x) (lambda "
        "(x) ((car fs) ((apply compose (cdr fs)) x))))) ((compose 1+ 1+) 5)", "7"),
        # Match
        ("(match 5 (5 'five) (_ 'other))", "five"),
        ("(match '(1 2) ((cons a b) (list a b)))", "(1 (2))"),
        ("(match '(1 2 3) ((list a b) 2) ((list a b c) (+ a b c)))", "6"),
        ("(match '(1 2 3) ((list* a rest) rest))", "(2 3)"),
        ("(match 'x ('y 1) ('x 2))", "2"),
        ("(match '(a b) ('(a b) 1))", "1"),
        ("(match 3 ((or 1 2) 'low) ((or 3 4) 'mid))", "mid"),
        ("(match '(add 1 2) ((or (list 'plus a b) (list 'add a b)) (+ a b)))", "3"),
        ("(match '(1 2) ((as whole (list a _)) (list whole a)))", "((1 2) 1)"),
        ("(match '(1 2 3 4) ((list (or 1 2 3 4) (or 1 2 3 4) (or 1 2 3 4) (or 1 2 3 4)) 'fits))", "fits"),
        ("(match 5 (x :when (> x 10) 'big) (x :when (> x 3) 'mid) (_ 'small))", "mid"),
        ("(match #(1 2) ((vector a b) (+ a b)))", "3"),
        ("(match 5 ((? string? s) s) ((? number? n) (* n 2)))", "10"),
        ("(match nil (nil 'empty) (_ 'full))", "empty"),
        ("(deftype P x y) (match (mk-P 1 2) ((P 0 y) y) ((P x y) (list x y)))", "(1 2)"),
        # Records
        ("(deftype Point x y) (let ((p (mk-Point 1 2))) (set! "
        "(Point-x p) 10) (list (Point-x p) (Point? p) (Point? 5) p))", "(10 #t #f #<Point x: 10 y: 2>)"),
        ("(deftype P x) (map P-x (map mk-P '(1 2)))", "(1 2)"),
        ("(deftype Node value (parent Node :weak)) (define a (mk-Node 1 nil)) "
        "(define b (mk-Node 2 a)) (list (Node-value (Node-parent b)) (Node-parent a))", "(1 ())"),
        ("(let ((v (vector 1 2))) (set! (vector-ref v 0) 5) v)", "#(5 2)"),
        ("(let ((p (cons 1 2))) (set! (car p) 5) p)", "(5 . 2)"),
        # Errors
        ("(try (error \"bad:\" 1 \"x\") (lambda (e) (list "
        "(error-message e) (error-irritants e) (error-kind e))))", '("bad: 1 \\"x\\"" (1 "x") error)'),
        ("(try (raise 42) (lambda (e) (+ e 1)))", "43"),
        ("(try (+ 1 (try (car 5) (lambda (e) 10))) (lambda (e) 0))", "11"),
        ("(try (try (error \"inner\") (lambda (e) (raise e))) (lambda (e) (error-message e)))", '"inner"'),
        ("(try 5 (lambda (e) 0))", "5"),
        ("(define m (try (nothing-such-yet) "
        "error-message)) (define (nothing-such-yet) (car 1)) m", '"nothing-such-yet is '
        'used before its definition"'),
        ("(try (5 1) error-message)", '"5 is not a procedure"'),
        ("(define (f a) a) (try (f 1 2) error-message)", '"f: expected 1 argument, got 2"'),
        ("(define (f a . b) a) (try (f) error-message)", '"f: expected at least 1 argument, got 0"'),
        ("(define (f :a) a) (try (f) error-message)", '"f: the keyword :a is missing"'),
        ("(define (f :a 1) a) (define (g h) "
        "(h :b 2)) (try (g f) error-message)", '"f: there is no keyword :b"'),
        ("(define (g h) (h :b 2)) (try (g 5) error-message)", '"5 is not a procedure"'),
        ("(try (tensor 1 :nosuch 2) error-message)", '"tensor: there is no keyword :nosuch"'),
        ("(try (car) error-message)", '"car: expected 1 argument, got 0"'),
        ("(let ((f car)) (try (f 1 2) error-message))", '"car: expected 1 argument, got 2"'),
        ("(try (let-values (((a b) (values 1 2 3))) a) error-message)", '"expected 2 values, got 3"'),
        ("(try (match 5 (1 2)) error-message)", '"no clause of match fits 5"'),
        ("(deftype P (x int)) (try "
        "(mk-P \"a\") error-message)", '"P: the field x expects '
        'an integer, got \\"a\\""'),
        ("(deftype P x) (try (P-x 5) error-message)", '"P-x: expected a P, got 5"'),
        ("(deftype P x) (try (mk-P 1 2) error-message)", '"mk-P: expected 1 argument, got 2"'),
        ("(letrec ((a (lambda () b)) (b (a))) b)", None),
        ("(try (letrec ((a? b!) (b! 2)) a?) error-message)", '"b! is used before its definition"'),
    ],
)  # fmt: skip
def test_a_program_has_its_value(value, failure, program, shown):
    if shown is None:
        assert failure(program).kind == "unbound"
    else:
        assert value(program) == shown


LOOPS = {
    "self": "(define (loop i) (if (< i 1000000) (loop (+ i 1)) i)) (loop 0)",
    "mutual": "(define (a i) (if (< i 300000) (b (+ i 1)) i)) "
        "(define (b i) (if (< i 300000) (a (+ i 1)) i)) (a 0)",
    "through a variable": "(define (loop f i) (if (< i 300000) (f f (+ i 1)) i)) (loop loop 0)",
    "through apply": "(define (loop i) (if (< i 100000) (apply loop (list (+ i 1))) i)) (loop 0)",
    "in cond, when, let and match": "(define (loop i) (cond ((= i 200000) i) (else (let "
        "((j (+ i 1))) (match j (x :when #t (loop x))))))) (loop 0)",
    "from a handler": "(define (loop i) (if (< i 20000) (try (error "
        "\"x\") (lambda (e) (loop (+ i 1)))) i)) (loop 0)",
    "with closures": "(define (loop i fs) (if (< i 200000) (loop (+ "
        "i 1) (lambda () i)) (fs))) (loop 0 (lambda () 0))",
    "with keywords": "(define (loop f i :by 1) (if (< i 100000) (f f (+ i by) :by 1) i)) (loop loop 0)",
    "while": "(let ((i 0)) (while (< i 1000000) (set! i (+ i 1))) i)",
}  # fmt: skip


@pytest.mark.parametrize("kind", LOOPS)
def test_a_tail_call_takes_no_room(kind):
    session = Session()
    assert session.run_text(LOOPS[kind], "loop.purple") in (1000000, 300000, 100000, 200000, 20000, 199999)


@pytest.mark.slow
def test_ten_million_iterations_run():
    program = "(define (loop i s) (if (< i 10000000) (loop (+ i 1) (+ s i)) s)) (loop 0 0)"
    assert Session().run_text(program, "loop.purple") == 49999995000000


def test_recursion_may_be_deep_and_too_deep_is_an_error(value):
    assert value("(define (count n) (if (= n 0) 0 (+ 1 (count (- n 1))))) (count 100000)") == "100000"
    forever = "(define (count n) (+ 1 (count n))) (try (count 1) error-message)"
    assert value(forever) == '"recursion is too deep"'


@pytest.mark.usefixtures("collects_quickly")
def test_a_long_list_is_freed_without_recursion(value):
    assert value("(define xs (iota 1000000)) (set! xs nil) (length xs)") == "0"
    gc.collect()


def test_a_weak_field_does_not_keep_what_it_looks_at(value):
    program = """(deftype Node name (up :weak))
      (define child (mk-Node "child" nil))
      (define parent (mk-Node "parent" child))
      (set! (Node-up child) parent)
      (define before (Node-name (Node-up child)))
      (set! parent nil)
      (list before (Node-up child))"""
    assert value(program) == '("parent" ())'


def test_an_error_shows_its_line_and_the_calls_that_led_there():
    program = "(define (inner x)\n  (+ 1 (car x)))\n(define (outer y)\n  (* 2 (inner y)))\n(print (outer 5))"
    session = Session()
    with pytest.raises(Exception) as caught:
        with_deep_stack(lambda: session.run_text(program, "t.purple"))
    assert report(caught.value, session.sources) == (
        "t.purple:2:8: error: car: expected a pair, got 5\n"
        "    (+ 1 (car x)))\n"
        "         ^^^^^^^\n"
        "  in (inner …) at t.purple:4:8\n"
        "  in (outer …) at t.purple:5:8"
    )


def test_an_error_inside_the_prelude_is_placed_at_its_call(failure):
    error = failure("(define (f xs)\n  (list (fold + 0 xs)))\n(f 5)")
    assert (error.place.file, error.place.line, error.place.column) == ("test.purple", 2, 9)


def test_a_wrong_call_shows_the_definition(failure):
    error = failure("(define (f a b) a)\n\n(list (f 1))")
    assert error.message == "f: expected 2 arguments, got 1"
    assert error.place.line == 3
    assert error.notes[0][0] == "f is defined here" and error.notes[0][1].line == 1


def test_an_error_raised_again_keeps_its_place(failure):
    error = failure("(try\n (car 1)\n (lambda (e) (raise e)))")
    assert (error.message, error.place.line) == ("car: expected a pair, got 1", 2)


def test_a_raised_value_that_nobody_catches_is_an_error(failure):
    assert failure("(raise 'oops)").message == "uncaught value: oops"


def test_names_of_one_session_may_be_defined_later_and_again():
    session = Session(late=True)
    session.run_text("(define (f) (g))", "1")
    session.run_text("(define (g) 1)", "2")
    assert session.run_text("(f)", "3") == 1
    session.run_text("(define (g) 2)", "4")
    assert session.run_text("(f)", "5") == 2


def test_a_foreign_function_is_called(value, failure):
    declared = (
        '(ffi-declare c-abs (int32) int32 :symbol "abs") '
        '(ffi-declare hypot (float float) float :library "libm.so.6")'
    )
    assert value(declared + "(list (c-abs -5) (hypot 3 4) (map c-abs '(-1 2)))") == "(5 5.0 (1 2))"
    assert value('(ffi-declare getenv (string) (borrow string)) (getenv "NO_SUCH_VARIABLE")') == "()"
    assert value('(ffi-declare strdup (string) string) (strdup "héllo")') == '"héllo"'
    assert failure(declared + '(c-abs "x")').message == 'c-abs: expected an integer, got "x"'
    assert (
        failure("(ffi-declare no-such-c () int) (no-such-c)").message
        == "no-such-c: the C library has no function no_such_c"
    )
    assert failure('(ffi-declare f () int :library "libnothing.so") (f)').kind == "foreign"


def test_operands_are_evaluated_before_the_operator_runs(value):
    text = """(try (+ 9223372036854775807 1 (vector-ref (vector) 0)) error-kind)"""
    assert value(text) == "index"
