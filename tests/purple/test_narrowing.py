"""Integers that a check has told more of are plain numbers from there on."""

import pytest

from tenfold.purple import ir
from tenfold.purple.emit_c import analysed
from tenfold.purple.interpret import expand_program
from tests.purple.compiled import FILE, compiled, function_of, interpreted

FOUND = """(define (found items i)
  (if (and (< i (vector-length items)) (= (vector-ref items i) 5)) (found items (* 2 i)) i))
(print (found (vector 5 5 5 5 5 5 5 5 0 0) 1) (found (vector 5 5) 1))"""
BOUNDED = """(define (last-below n step) (let loop ((i 0)) (if (< i n) (loop (+ i step)) i)))
(print (last-below 100 7) (last-below 5 3))"""
PROGRAM = f"""{FOUND}
{BOUNDED}
(define (reached i n)
  (cond ((>= i n) i) ((= i 5) (set! i (* i i i)) (reached i n)) (else (reached (+ i 1) n))))
(define (either i n) (if (or (< i 0) (>= i n)) 'outside (* i 1000000000000)))
(define (grown i) (if (< i 1000000000000000000000) (grown (* i i)) i))
(define (halves i) (if (> i 0.5) (halves (/ i 2)) i))
(define (kinds x) (if (< x 3) (list x 'small) (list x 'large)))
(print (reached 0 200) (either 4 10) (either -1 10) (either 12345678901234567890 3) (grown 3) (halves 9))
(print (kinds 1) (kinds 2.5) (kinds 7/2) (kinds 98765432109876543210) (kinds -98765432109876543210))
(print (try (vector-ref (vector 1 2) 98765432109876543210) error-message))
"""


@pytest.mark.parametrize(("text", "name"), [(FOUND, "found"), (BOUNDED, "last-below")])
def test_an_integer_that_a_check_bounds_is_a_plain_number(text, name):
    function = function_of(analysed(expand_program(text, FILE)), name)
    numbers = [s.var for s in ir.statements(function.body) if isinstance(s, ir.Let) and s.var.name == "i"]
    assert {var.rep for var in [*function.params, *numbers] if var.name == "i"} == {ir.INT}


def test_checked_integers_print_the_same_both_ways(tmp_path):
    assert compiled(PROGRAM, tmp_path) == interpreted(PROGRAM)
