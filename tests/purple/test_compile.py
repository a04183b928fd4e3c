"""The C that a program becomes: readable, with numbers as C has them and loops that are loops."""

import re

from tenfold.purple.emit_c import compile_program, deep
from tenfold.purple.interpret import expand_program
from tests.purple.compiled import FILE, compiled, interpreted


def c_of(text: str) -> str:
    return compile_program(deep(lambda: expand_program(text, FILE)))


def function(c: str, name: str) -> str:
    """The definition of a C function."""
    return re.search(rf"^static [^\n]*\b{name}\([^\n]*\) \{{\n.*?^\}}", c, re.MULTILINE | re.DOTALL)[0]


def test_integers_and_floats_are_unboxed_where_their_types_are_inferred():
    c = c_of("(define (count n) (let loop ((i 0)) (if (< i n) (loop (+ i 1)) i))) (print (count 10))")
    assert "static int64_t p_count(int64_t n)" in c
    assert "pu_of_int" not in function(c, "p_count")
    c = c_of("(define (fib n) (if (< n 2) n (+ (fib (- n 1)) (fib (- n 2))))) (print (fib 10))")
    assert "static Value p_fib(int64_t n)" in c, "what it gives may outgrow 64 bits, its argument may not"
    c = c_of("(define (area r) (* 3.14 (* r r))) (print (area 2.0))")
    assert "static double p_area(double r)" in c


def test_the_source_form_stands_beside_its_function():
    c = c_of("(define (twice x)\n  (* 2 x)) ; remark\n(print (twice 4))")
    assert f"/* {FILE}:1\n   (define (twice x)\n     (* 2 x)) */\nstatic int64_t p_twice(int64_t x)" in c


def test_a_self_tail_call_and_a_named_let_are_jumps():
    c = c_of("(define (down n) (if (= n 0) 0 (down (- n 1)))) (print (down 5))")
    assert "goto again_p_down" in function(c, "p_down")
    assert function(c, "p_down").count("p_down(") == 1
    c = c_of(
        "(define (f n) (let loop ((i 0) (s 0)) (if (= i n) (* 2 s) (loop (+ i 1) (+ s i))))) (print (f 5))"
    )
    assert "goto p_loop_loop" in function(c, "p_f")


def test_mutual_tail_calls_are_jumps_inside_one_function():
    c = c_of(
        "(define (ev? n) (if (= n 0) #t (od? (- n 1))))"
        "(define (od? n) (if (= n 0) #f (ev? (- n 1)))) (print (ev? 4))"
    )
    merged = function(c, "jumps_p_ev_p_p_od_p")
    assert "goto enter_p_ev_p" in merged and "goto enter_p_od_p" in merged


def test_a_list_that_grows_by_recursion_is_built_from_its_front():
    c = c_of("(define (copy xs) (if (null? xs) nil (cons (car xs) (copy (cdr xs))))) (print (copy '(1 2)))")
    body = function(c, "p_copy")
    assert "pu_extend(&hole" in body and body.count("p_copy(") == 1


def test_known_functions_take_what_they_capture_as_parameters():
    c = c_of(
        "(define (f a) (define (g b) (if (< b a) (g (+ b 1)) (list a b))) (list (g 1) (g 2))) (print (f 3))"
    )
    assert "static Value p_g(int64_t b, int64_t a)" in c
    assert "pu_closure(" not in c


def test_each_release_says_why_it_is_where_it_is():
    c = c_of("(define (f x) (let ((v (vector x))) (vector-length v))) (print (f 1))")
    assert "/* last used at line 1; static: made by vector, never shared */" in c


def test_debug_builds_name_the_lines_of_the_source():
    c = compile_program(expand_program("(define (f x)\n  (car x))\n(print (f '(1)))", FILE), lines=True)
    assert f'#line 2 "{FILE}"' in c


def test_names_that_c_reserves_are_fine():
    c = c_of(
        "(define (main int) (let ((double int) (exp 1) (Value 2)) (+ double exp Value))) (print (main 1))"
    )
    assert "static int64_t p_main(int64_t int_2)" in c


def test_deep_nesting_compiles():
    text = "(+ 1 " * 900 + "1" + ")" * 900
    assert "pu_int_add" in c_of(f"(print {text})")


def test_a_default_reads_a_parameter_that_a_closure_shares(tmp_path):
    text = """
      (define (f a :b a) (set! a (let ((g (lambda (y :by 18) a))) (list (g 5) (g 5 :by 1)))) (list a b))
      (print (f #t) (f #t :b 3))"""
    assert compiled(text, tmp_path) == interpreted(text) == "((#t #t) #t) ((#t #t) 3)\n"
