"""The programs of the paper on a Lisp over libtorch, as they stand there: interpreted, and compiled by hand
from the C that `purple -c` prints."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.purple.compiled import interpreted

PRIMITIVES = """
(define a (tensor '((1 2) (3 4))))
(define b (tensor '((5 6) (7 8))))
(define x (tensor-randn 2 784))
; Create tensors
(print (tensor-shape (tensor-zeros 2 3)))        ; 2x3 zeros
(print (tensor-shape (tensor-ones 3 4 5)))       ; 3x4x5 ones
(print (tensor-shape (tensor-randn 10 10)))      ; 10x10 random normal

; Operations
(print (tensor-add a b))
(print (tensor-mul a b))
(print (tensor-matmul a b))
(print (tensor-relu a))

; Neural network layers (higher-level)
(print (tensor-shape (linear-layer 784 128 x)))  ; Linear transformation
(print (tensor-shape (conv2d-layer 3 64 3 (tensor-randn 1 3 8 8))))   ; Convolution
"""
MEMORY = """
(print (> (tensor-item
(let ((x (tensor-randn 10 10)))
  (let ((y (tensor-relu x)))
    ; When y goes out of scope, pt_free(y) is called
    (tensor-sum y)))
) 0))
"""
AUTOGRAD = """
(print (tensor-shape
(with-grad
  (let ((x (tensor-randn 10 10 :requires-grad t)))
    (let ((loss (tensor-sum (tensor-mul x x))))
      (backward loss)
      (tensor-grad x))))
))
"""
# The paper's goal; what its data is, the paper leaves open.
TRAINING = """
(define training-data
  (map (lambda (i) (list (tensor-randn 16 784) (tensor-randint 0 10 '(16)))) (iota 3)))

; Define model
(define model
  (sequential
    (linear 784 128)
    (relu)
    (linear 128 10)
    (softmax -1)))

; Training loop
(define (train-step x y)
  (let ((pred (forward model x)))
    (let ((loss (cross-entropy pred y)))
      (backward loss)
      (optimizer-step)
      loss)))

; Run training
(for-each train-step training-data)
(define before (tensor-item (train-step (car (car training-data)) (cadr (car training-data)))))
(for-each train-step training-data)
(for-each train-step training-data)
(print (< (tensor-item (train-step (car (car training-data)) (cadr (car training-data)))) before))
"""
PROGRAMS = {"primitives": PRIMITIVES, "memory": MEMORY, "autograd": AUTOGRAD, "training": TRAINING}
EXPECTED = {"memory": "#t", "autograd": "(10 10)", "training": "#t"}


def purple(*arguments: str) -> str:
    command = [sys.executable, "-m", "tenfold.purple.cli", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_of_the_paper_runs_interpreted(name: str) -> None:
    printed = interpreted(PROGRAMS[name])
    assert printed.strip() and EXPECTED.get(name, "") in printed


@pytest.mark.slow
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_of_the_paper_is_compiled_by_hand(name: str, tmp_path: Path) -> None:
    source, text = tmp_path / "program.purple", tmp_path / "program.c"
    source.write_text(PROGRAMS[name], encoding="utf-8")
    text.write_text(purple("-c", str(source)), encoding="utf-8")
    flags = purple("flags").split()
    build = [
        "cc",
        "-std=c99",
        "-Wall",
        "-Wextra",
        "-Werror",
        str(text),
        *flags,
        "-o",
        str(tmp_path / "program"),
    ]
    done = subprocess.run(build, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    ran = subprocess.run([tmp_path / "program"], capture_output=True, text=True, timeout=100)
    assert ran.returncode == 0 and ran.stdout.split("\n")[0] == interpreted(PROGRAMS[name]).split("\n")[0]
