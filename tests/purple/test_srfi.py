"""SRFI 1, which programs import: the report's own lists and orders of arguments, both ways."""

import pytest

from tests.purple.compiled import build, compiled, interpreted, run

LISTS = """
(import (scheme base) (srfi 1))
(define-syntax both (syntax-rules () ((_ e) (call-with-values (lambda () e) list))))
(print (fold cons* '() '(a b c) '(1 2 3 4)) (fold-right cons* '() '(a b c) '(1 2 3)) (reduce - 0 '(1 2 3)))
(print (take-right '(1 2 3 . d) 2) (drop-right '(a b c d) 1) (both (split-at '(a b c) 2)) (last-pair '(a b)))
(print (both (span even? '(2 4 5 6))) (both (break even? '(1 2 3))) (both (partition odd? '(1 2 3))))
(print (unfold (lambda (x) (> x 3)) square 1+ 1) (unfold-right zero? square 1- 3) (list-tabulate 3 -))
(print (pair-fold-right cons '() '(a b)) (pair-fold (lambda (xs n) (+ n (length xs))) 0 '(1 2 3)))
(print (any < '(3 1) '(2 7)) (every + '(1 2) '(3 4)) (list-index = '(1 2) '(3 2)) (count < '(1 5) '(2 3)))
(print (delete-duplicates '(a b a c b)) (delete 3 '(1 5 2) <) (alist-delete 'a '((a . 1) (b . 2))))
(print (lset-union eq? '(a b) '(b c)) (lset-intersection eq? '(a b c) '(c a)) (lset-xor eq? '(a b) '(b c)))
(print (lset-intersection < '(1 5) '(3)) (lset-difference < '(1 5) '(3)))
(print (lset<= = '(1) '(1 2)) (lset= = '(1 2) '(2 1 1)) (lset-difference = '(1 2 3) '(2)))
(print (both (unzip2 '((1 a)))) (both (car+cdr '(1 . 2))) (cons* 1 2 '(3)))
(print (proper-list? '(1)) (dotted-list? '(1 . 2)) (length+ '(1 2)))
"""
PRINTED = """\
(c 3 b 2 a 1) (a 1 b 2 c 3) 2
(2 3 . d) (a b c) ((a b) (c)) (b)
((2 4) (5 6)) ((1) (2 3)) ((1 3) (2))
(1 4 9) (1 4 9) (0 -1 -2)
((a b) (b)) 6
#t 6 1 1
(a b c) (1 2) ((b . 2))
(c a b) (a c) (c a)
(1) (5)
#t #t (1 3)
((1) (a)) (1 2) (1 2 3)
#t #t 2
"""


def test_the_list_library_is_that_of_the_report_both_ways(tmp_path):
    assert interpreted(LISTS) == PRINTED
    assert compiled(LISTS, tmp_path) == PRINTED


@pytest.mark.parametrize("name", ["(srfi 1)", "(scheme list)", "(only (srfi 1) fold)"])
def test_what_is_not_imported_keeps_the_languages_own_order(name):
    program = "(print (fold (lambda (a b) (list a b)) 0 '(1 2)))"
    assert interpreted(program) == "((0 1) 2)\n"
    assert interpreted(f"(import {name}) {program}") == "(2 (1 0))\n"


def test_a_list_that_never_ends_stops_at_the_end_of_another(tmp_path):
    text = """
      (import (srfi 1))
      (define turns (circular-list 'a 'b))
      (print (map cons '(1 2 3) turns) (length+ turns) (circular-list? turns) (take turns 3))"""
    expected = "((1 . a) (2 . b) (3 . a)) #f #t (a b a)\n"
    assert interpreted(text) == expected
    assert run(build(text, tmp_path)).stdout == expected
