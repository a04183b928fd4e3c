"""Checks that were made before: C takes the parts of pairs and records as they are, and only there."""

from tenfold.purple.emit_c import compile_program
from tenfold.purple.interpret import expand_program
from tests.purple.compiled import CHECKED, FILE, compiled, interpreted

PROGRAM = """
(deftype Point x (y int) (other any :weak))
(define (sum-up p) (+ (Point-x p) (Point-y p) (Point-x p)))
(define (second-of xs) (if (pair? xs) (begin (print (car xs)) (car (cdr xs))) 'none))
(define (both tree) (if (null? (car tree)) 1 (+ 1 (both (car tree)) (both (cdr tree)))))
(define (walk x)
  (let ((held x) (steps nil))
    (while (pair? held)
      (set! steps (cons (car held) steps))
      (set! held (cdr held)))
    (list held (reverse steps))))
(define (changing x)
  (let ((y x))
    (print (car y))
    (set! y 5)
    (try (car y) error-message)))
(define (either x flag)
  (if flag (print (car x)) (print "no"))
  (try (cdr x) error-message))
(define (turned x) (if (not (pair? x)) (try (car x) error-message) (car x)))
(define (grown p)
  (set! (Point-x p) (+ (Point-x p) 1))
  (let ((next (mk-Point (Point-x p) (Point-y p) nil))) (list (Point-x next) (Point-other next))))
(define (loop-over x n)
  (let loop ((x x) (n n)) (if (= n 0) (try (car x) error-message) (begin (car x) (loop (cdr x) (- n 1))))))
(print (sum-up (mk-Point 1 2 nil)) (second-of (list 1 2 3)) (second-of 7) (both (list nil)))
(print (walk (list 1 2 3)) (walk '(1 2 . 3)) (changing (list 1)) (turned 4) (turned '(4 5)))
(print (either (list 1 2) #t) (either 3 #f) (grown (mk-Point 4 5 nil)))
(print (loop-over (list 1 2) 2) (loop-over (list 1 2 3) 2))
(print (try (sum-up 5) error-message) (try (second-of (list 1)) error-message))
"""


def c_of(text: str) -> str:
    return compile_program(expand_program(text, FILE))


def test_what_was_checked_before_is_not_checked_again():
    c = c_of(
        "(define (both x) (begin (print (car x)) (print (cdr x)) (print (car x))))\n(both (list (clock)))"
    )
    assert c.count("pu_car_of(") == 1 and c.count("pu_car_known(") == 1 and c.count("pu_cdr_known(") == 1
    c = c_of("(deftype P a b)\n(define (f p) (list (P-a p) (P-b p)))\n(print (f (mk-P 1 2)) (f (mk-P 3 4)))")
    assert c.count("pu_field_known(") == 1


def test_what_was_defined_again_is_checked():
    text = "(define (f x) (let ((y x)) (print (car y)) (set! y (clock)) (car y)))\n(f (list 1))"
    assert "pu_car_known(" not in c_of(text)


def test_programs_with_checks_dropped_print_the_same_and_keep_nothing(tmp_path):
    assert compiled(PROGRAM, tmp_path, *CHECKED) == interpreted(PROGRAM)
