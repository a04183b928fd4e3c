"""Memory of compiled programs: what `purple memory` shows, and what libtenfold counts while they run."""

import pytest

from tenfold.purple.expand import expand_program
from tenfold.purple.memory import report
from tests.purple.compiled import FILE, compiled, interpreted

COUNTERS = """
(ffi-declare live-bytes () int :symbol "tn_live_bytes")
(ffi-declare peak-bytes () int :symbol "tn_peak_bytes")
(ffi-declare reset-peak () void :symbol "tn_reset_peak_bytes")
"""
TRAINING = """
(define model (sequential (linear 2 8) (tanh) (linear 8 2)))
(define x (tensor '((0.0 0.0) (0.0 1.0) (1.0 0.0) (1.0 1.0))))
(define y (tensor '(0 1 1 0)))
(define opt (adam model :lr 0.05))
(define (step)
  (zero-grad opt)
  (let ((loss (cross-entropy (forward model x) y)))
    (backward loss)
    (optimizer-step opt)
    (tensor-item loss)))
"""
FLAT = "(define before (live-bytes)) (dotimes (i {}) (step)) (print (- (live-bytes) before))"


def test_the_report_shows_each_release_and_the_share_that_is_static():
    text = "(define (f x) (let ((v (vector x))) (if (> x 1) (vector-length v) 0)))\n(print (f 1))"
    shown = report(expand_program(text, FILE))
    assert f"(f x)   {FILE}:1:1" in shown
    assert "; last used at line 1; static: made by vector" in shown
    assert "; not needed in this branch; static: made by vector" in shown
    assert "certified: each owned value is released exactly once on every path" in shown
    assert "%)" in shown


def test_the_report_shows_what_is_taken_apart_and_what_is_reused():
    shown = report(
        expand_program("(define (f x) (let ((a (car x))) (cons a (cdr x)))) (print (f '(1)))", FILE)
    )
    assert "take apart" in shown
    shown = report(
        expand_program("(define (f x) (tensor-relu (* 2 (tensor-exp x)))) (print (f (tensor 1.0)))", FILE)
    )
    assert "tensors reused: 2" in shown


def test_a_chain_of_calls_holds_two_tensors(tmp_path):
    text = (
        COUNTERS
        + """
      (define (chain x n) (if (= n 0) x (chain (tensor-tanh x) (- n 1))))
      (define before (live-bytes))
      (reset-peak)
      (define y (chain (tensor-ones 100 100) 32))
      (print (/ (- (peak-bytes) before) 40000.0))"""
    )
    assert compiled(text, tmp_path) == "2.0\n"


def test_a_dying_tensor_is_the_result_s_memory_unless_gradients_are_recorded(tmp_path):
    text = (
        COUNTERS
        + """
      (define x (tensor-ones 100 100))
      (define (f x) (tensor-relu (+ (* (tensor-exp x) 2) 1)))
      (define before (live-bytes))
      (reset-peak)
      (no-grad (f x))
      (print (quotient (- (peak-bytes) before) 40000))
      (define w (tensor '(1.0 2.0) :requires-grad #t))
      (backward (tensor-sum (tensor-sqrt (tensor-exp (* w 2)))))
      (print (tensor-grad w))"""
    )
    assert compiled(text, tmp_path) == "1\ntensor([2.7183, 7.3891])\n"


def test_training_is_the_same_both_ways_and_keeps_no_memory(tmp_path):
    steps = "(dotimes (i 60) (step)) (print (tensor-argmax (forward model x) 1) (< (step) 0.1))"
    flat = COUNTERS + TRAINING + "(step) (step) " + FLAT.format(60)
    assert compiled(flat, tmp_path) == "0\n"
    assert compiled(TRAINING + steps, tmp_path) == interpreted(TRAINING + steps)


@pytest.mark.slow
def test_live_bytes_are_flat_over_ten_thousand_steps(tmp_path):
    text = COUNTERS + TRAINING + "(step) (step) " + FLAT.format(10_000)
    assert compiled(text, tmp_path, "-O2") == "0\n"


def test_tensors_print_alike_both_ways(tmp_path):
    text = """
      (define x (tensor '((1.5 -2.0) (1e6 0.0))))
      (print x (* x x) (tensor '(1 2 -30)) (tensor '(#t #f)) (tensor-zeros 0 3) (tensor 2.5) (tensor-arange
      3000))
      (print (tensor '(1e-9 1.0)) (tensor '(0.1 0.25) :dtype :float64) (tensor-ones 2 2 2) (/ (tensor '(1.0
      -1.0 0.0)) 0.0))
      (print (tensor-ref x 0) (tensor-ref x :all 1) (tensor-ref x 1 0) (tensor-ref x '(0 1)) (tensor->list x)
      (tensor-shape x))
      (print (tensor-sum x :dim 0) (tensor-max x 1) (tensor-cat (list x x) 1) (tensor-view x 4)
      (tensor-reshape x '(4 1)))
      (manual-seed 5)
      (print (tensor-randn 2 3) (tensor-rand 3) (tensor-randperm 5) (random) (random 10))"""
    assert compiled(text, tmp_path) == interpreted(text)
