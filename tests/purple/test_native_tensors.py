"""Tensors in compiled programs: printed, placed, loaded from files and called as the interpreter does."""

import contextlib
import io
import shlex
import subprocess

import torch

from tenfold.purple.build import build as build_file
from tenfold.purple.cli import main as purple
from tenfold.purple.emit_c import compile_program
from tenfold.purple.interpret import Session, expand_program
from tests.capi.bridge import built as libtenfold
from tests.purple.compiled import FILE, compiled, interpreted, run


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


def test_complex_tensors_print_alike_both_ways(tmp_path):
    text = """
      (define z (tensor-complex (tensor '(1.0 2.5 -3.0)) (tensor '(0.0 -1.0 2.0))))
      (print z (* z z) (tensor-conj z) (tensor-to z :complex128) (tensor-abs z) (tensor-reshape z '(3 1)))
      (print (tensor-complex (tensor 1.0) (tensor 2.0)) (tensor-complex (tensor-zeros 0) (tensor-zeros 0)))
      (print (tensor-complex (/ (tensor '(1.0 -1.0 0.0)) 0.0) (tensor '(1e-9 1.0 2e10))))
      (print (tensor-complex (tensor-arange 0.0 40.0) (tensor-ones 40)))
      (print (tensor-complex (tensor-ones 1200) (tensor-arange 0.0 1200.0)))
      (define (told e) (list (error-kind e) (error-message e)))
      (print (try (tensor->list z) told) (try (tensor-ref z 1) told))
      (print (try (tensor-item (tensor-ref z '(0 1))) told))"""
    assert compiled(text, tmp_path) == interpreted(text)


def test_a_bool_stands_for_a_float_and_for_no_integer(tmp_path):
    text = """
      (define x (tensor '((1.0 2.0) (3.0 4.0))))
      (define (at q) (tensor-quantile x q))
      (define (told e) (list (error-kind e) (error-message e)))
      (print (tensor-quantile x #t) (tensor-quantile x #f) (at #t) (at (> 1 2)) (at 0.5) (at 1))
      (print (tensor-cdist x (tensor-zeros 2 2) #t) (tensor-cdist x (tensor-zeros 2 2) :p #t))
      (print (tensor-nan-to-num (/ x 0.0) :nan #t :posinf #f) (tensor-cosine-similarity x x 1 #t))
      (print (tensor-upsample-nearest2d (tensor-ones 1 1 2 2) :output-size nil :scale-factors '(#t 2)))
      (print (try (tensor-view x #t 4) told) (try (tensor-sum x #t) told) (try (tensor-cumsum x #f) told))
      (print (try (tensor-sum x 0 :keepdim 1) told) (try (tensor-add x x :alpha "a") told))"""
    assert compiled(text, tmp_path) == interpreted(text)
    x = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    assert interpreted(text).startswith(f"{torch.quantile(x, True)!s} {torch.quantile(x, False)!s}")


def test_an_operator_in_place_names_what_is_no_tensor(tmp_path):
    text = """
      (define (told e) (list (error-kind e) (error-message e)))
      (define (double! x) (try (tensor-mul! x 2) told))
      (print (map double! (list '(1 2 3) '(3 . 4) 5 1/2 "a" 'a nil (vector 1) (expt 10 30) (tensor 2.0))))
      (print (try (tensor-mul!) told) (try (tensor-mul! :other 2) told) (try (tensor-relu! 5) told))
      (print (try (tensor-mul! :self 3 :other 2) told) (tensor-mul! :other 2 :self (tensor 3.0)))"""
    assert compiled(text, tmp_path) == interpreted(text)
    assert "tensor-mul!: (1 2 3) is no tensor to write into" in interpreted(text)


def test_a_torchscript_file_is_loaded_and_called(tmp_path):
    class Twice(torch.nn.Module):
        def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
            return x * 2 + y

    torch.jit.script(Twice()).save(str(tmp_path / "twice.pt"))
    text = f"""
      (define twice (jit-load "{tmp_path}/twice.pt"))
      (print (twice (tensor '(1.0 2.0)) (tensor 1.0)) (procedure? twice))
      (print (map (lambda (x) (twice x x)) (list (tensor '(1.0)) (tensor '(2.0)))))
      (print (try (twice 5) (lambda (e) (list (error-kind e) (error-message e)))))
      (print (try (twice (tensor 1.0)) error-kind) (try (jit-load "{tmp_path}/none.pt") error-kind))"""
    assert compiled(text, tmp_path) == interpreted(text)


def test_a_device_holds_inside_its_form_only(tmp_path):
    text = """
      (define (made) (tensor-device (tensor-ones 1)))
      (print (made) (with-device "cpu" (made)) (with-device "cpu" (with-device "cpu:0" (made)) (made)))
      (print (try (with-device "cpu" (error "inside")) error-message) (made))
      (print (try (with-device "nowhere" (made)) error-message) (try (with-device 5 (made)) error-message))
      (print (with-device "cpu" (let loop ((i 0)) (if (< i 1000) (loop (+ i 1)) i))))"""
    assert compiled(text, tmp_path) == interpreted(text)


def test_a_device_is_named_by_a_string_or_a_keyword(tmp_path):
    text = """
      (define (told e) (list (error-kind e) (error-message e)))
      (define (place) :cpu)
      (define here (if (cuda-available?) :cuda :cpu))
      (print (cuda-available?) (with-device here (tensor-device (tensor-ones 2))))
      (print (with-device (place) (tensor-ones 1)))
      (print (tensor-ones 2 :device :cpu) (tensor '(1 2) :device :cpu) (tensor-to (tensor-ones 2) :cpu))
      (print (try (with-device "cuda:99" (tensor-ones 1)) told) (try (with-device :nowhere 1) error-kind))
      (print (try (tensor-to (tensor-ones 1) :nosuch) told) (try (with-device 'cpu 1) told))"""
    assert compiled(text, tmp_path) == interpreted(text)


def test_a_refused_call_tells_all_that_it_was_given(tmp_path):
    text = """
      (define (told e) (list (error-kind e) (error-message e)))
      (print (try (tensor-l1-loss "s" '(1 . 2)) told))
      (print (try (tensor-ones (list '(1 . 2))) told))
      (print (try (tensor-rand '(-1 a)) told))"""
    assert compiled(text, tmp_path) == interpreted(text)
    assert interpreted(text).splitlines() == [
        '(tensor tensor-l1-loss: cannot take "s", (1 . 2))',
        "(tensor tensor-ones: cannot take ((1 . 2)))",
        "(tensor tensor-rand: sizes cannot be negative)",
    ]


OPERATORS = """
(define (f x y)
  (list (tensor-sum x) (tensor-add x 2) (tensor-add x y :alpha 0.5) (tensor-softmax x 0) (tensor-max x)
        (tensor-log-softmax x :dim 0) (tensor-argmax x) (tensor-clamp x :min 0) (tensor-pow x 2)
        (tensor-pow 2 x) (tensor-transpose x 0 -1) (tensor-mean x) (tensor-eq x 2.0) (tensor-zeros-like x)
        (tensor-cumsum x 0) (tensor-matmul x y) (tensor-leaky-relu x 0.1) (tensor-var x :unbiased #f)))
(define (g x)
  (tensor-mul! x 2)
  (tensor-add! x x :alpha 0.5)
  (tensor-addcdiv! x x x :value 2)
  (tensor-relu! x))
(for-each print (f (tensor '(1.0 2.0 3.0)) (tensor '(4.0 5.0 6.0))))
(print (g (tensor '(1.0 -2.0))) (try (g (tensor '(1 2))) error-kind))
"""


def test_an_overload_that_operands_decide_is_called_directly(tmp_path):
    text = compile_program(expand_program(OPERATORS, FILE))
    assert "pu_row_call" not in text and "tn_add_with_(pu_handle(x), " in text
    assert compiled(OPERATORS, tmp_path) == interpreted(OPERATORS)


def test_an_overload_that_operands_leave_open_is_chosen_when_the_program_runs(tmp_path):
    text = """
      (define (f x y) (list (tensor-add x y) (tensor-view x 2 1) (tensor-sum x '(0)) (tensor-max x :dim 0)))
      (for-each (lambda (y) (print (f (tensor '(1.0 2.0)) y))) (list 1 2.5 (tensor '(3.0 4.0))))"""
    assert compiled(text, tmp_path) == interpreted(text)


def test_an_error_of_libtorch_names_the_operator_as_purple_does(tmp_path):
    text = """
      (define (f a b) (tensor-matmul a b))
      (print (try (f (tensor-ones 2 3) (tensor-ones 2 3)) error-message))
      (print (try (+ (tensor '(1 2)) (tensor '(1 2 3))) error-message))"""
    assert [line.split(":")[0] for line in compiled(text, tmp_path).splitlines()] == ["tensor-matmul", "+"]
    assert "tn_" not in compiled(text, tmp_path)


def test_operators_refuse_the_same_arguments_both_ways(tmp_path):
    text = """
      (define x (tensor '(1.0 2.0)))
      (define-syntax kind (syntax-rules () ((_ e) (print 'e (try e error-kind)))))
      (kind (tensor-relu 'a)) (kind (tensor-relu)) (kind (tensor-sum x :dim 'a)) (kind (tensor-sum x :nope 1))
      (kind (tensor-add x '(1))) (kind (tensor-cat (list 1 2))) (kind (tensor-reshape x (list 2 'a)))
      (kind (tensor-relu! 5)) (kind (tensor-zeros 2 :dtype :nope)) (kind (tensor-gelu x :approximate :nope))
      (kind (tensor-mse-loss x x :reduction :nope)) (kind (tensor-softmax x 5)) (kind (tensor-add x car))
      (kind (tensor-mul! #f 2)) (kind (tensor-mul! :self 1 :other 2)) (kind (tensor-relu 5))
      (kind (tensor-mul 5 2))"""
    assert compiled(text, tmp_path) == interpreted(text)


CELLS = """
#include <tenfold.h>

tn_tensor *squared(const tn_tensor *x) { return tn_mul(x, x); }
int rows(const tn_tensor *x) { return (int)tn_tensor_size(x, 0); }
int double_it(tn_tensor *x) { return tn_mul_Scalar_(x, tn_int(2)); }
double let_go(tn_tensor *x) { double n = (double)tn_tensor_numel(x); tn_free(x); return n; }
tn_tensor *product(const tn_tensor *x, const tn_tensor *y) { return tn_mm(x, y); }
tn_tensor *doubled_sum(tn_tensor *x, const tn_tensor *y) {
    return tn_mul_Scalar_(x, tn_int(2)) == TN_OK ? tn_sum(y) : NULL;
}
"""
CELLS_USED = """
(ffi-declare squared (tensor) tensor :library "./lib/cells.so")
(ffi-declare rows (tensor) int32 :library "./lib/cells.so")
(ffi-declare double-it (tensor) int32 :library "./lib/cells.so")
(ffi-declare let-go ((own tensor)) float :library "./lib/cells.so")
(ffi-declare product (tensor tensor) tensor :library "./lib/cells.so")
(ffi-declare doubled-sum (tensor tensor) tensor :library "./lib/cells.so")
(ffi-declare relu (tensor) tensor :symbol "tn_relu")
(ffi-declare same (tensor) (own tensor) :symbol "tn_tensor_share")
(define x (tensor '(1.0 -2.0 3.0) :requires-grad #t))
(define y (tensor-sum (relu (squared x))))
(backward y)
(print (rows x) (tensor-item y) (tensor-grad x) (no-grad (squared x)))
(define z (tensor '((1 2) (3 4))))
(define view (tensor-ref z 0))
(print (double-it z) z view (let-go z) (product z z) (same (tensor 2.5)))
(define (told e) (list (error-kind e) (error-message e)))
(define w (tensor '((1.0 2.0) (3.0 4.0))))
(print (doubled-sum w w) w (doubled-sum (tensor-ref w 0) w) w)
(print (doubled-sum (tensor-t w) (tensor-ref w :all 1)) w)
(define v (tensor '((1.0 2.0) (3.0 4.0)) :requires-grad #t))
(backward (tensor-sum (product v v)))
(print (tensor-grad v) (doubled-sum (tensor-clone w) w))
(backward (tensor-sum (product v (tensor-t v))))
(print (tensor-grad v) (try (doubled-sum v v) error-kind))
(print (try (product z x) told) (try (squared "x") told) (try (double-it x) error-kind))
"""


def _with_cells(folder):
    """A program of foreign functions, and the library that it names, in a folder."""
    (folder / "lib").mkdir()
    (folder / "cells.c").write_text(CELLS)
    flags = [*libtenfold().compile_flags, "-shared", "-fPIC", "-Wl,-soname,cells.so"]
    command = ["cc", str(folder / "cells.c"), *flags, "-o", str(folder / "lib" / "cells.so")]
    subprocess.run(command, check=True)
    (folder / "program.purple").write_text(CELLS_USED)
    return folder / "program.purple", folder / "program"


def test_foreign_functions_compute_with_tensors_both_ways(tmp_path, monkeypatch):
    source, program = _with_cells(tmp_path)
    build_file(str(source), str(program))
    monkeypatch.chdir("/")  # the library is found from everywhere
    done = run(str(program))
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        Session().run_text(CELLS_USED, str(source))
    assert (done.stderr, done.stdout) == ("", printed.getvalue())
    assert done.stdout.startswith("3 14.0 tensor([ 2., -4.,  6.]) tensor([1., 4., 9.])\n0 ")


def test_flags_of_a_program_link_the_libraries_that_it_names(tmp_path, monkeypatch, capsys):
    source, program = _with_cells(tmp_path)
    assert purple(["-c", str(source)]) == 0
    (tmp_path / "program.c").write_text(capsys.readouterr().out)
    assert purple(["flags", str(source)]) == 0
    flags = shlex.split(capsys.readouterr().out)
    subprocess.run(["cc", "-std=c99", str(tmp_path / "program.c"), *flags, "-o", str(program)], check=True)
    monkeypatch.chdir("/")
    assert run(str(program)).stdout.startswith("3 14.0 tensor([ 2., -4.,  6.])")


def test_gradients_flow_through_a_torchscript_file_both_ways(tmp_path):
    torch.jit.script(torch.nn.Softsign()).save(str(tmp_path / "softsign.pt"))
    text = f"""
      (define f (jit-load "{tmp_path}/softsign.pt"))
      (define x (tensor '(1.0 -3.0) :requires-grad #t))
      (backward (tensor-sum (f (* x 2))))
      (print (tensor-grad x))"""
    assert compiled(text, tmp_path) == interpreted(text)


def test_the_element_of_a_boolean_tensor_is_no_number_that_is_always_true(tmp_path):
    text = """(define (which x) (if (tensor-item (tensor-any (> x 1))) 'some 'none))
(print (which (tensor '(1.0))) (which (tensor '(2.0))) (tensor-item (= (tensor 1) 2)))"""
    assert compiled(text, tmp_path) == interpreted(text) == "none some #f\n"
