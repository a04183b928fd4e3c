"""The paper on a Lisp over libtorch: its phases and its goal as they stand there, interpreted, compiled, and
compiled by hand from the C that `purple -c` prints; and what its C wrapper offers. What a phase leaves open
stands before it, such as the tensors that it computes with, and what shows its result after it."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.capi.bridge import built
from tests.purple.compiled import compiled, interpreted

PRIMITIVES = """
(define a (tensor '((1 2) (3 4))))
(define b (tensor '((5 6) (7 8))))
(define x (tensor-randn 1 3 8 784))

; Create tensors
(tensor-zeros 2 3)        ; 2x3 zeros
(tensor-ones 3 4 5)       ; 3x4x5 ones
(tensor-randn 10 10)      ; 10x10 random normal

; Operations
(tensor-add a b)
(tensor-mul a b)
(tensor-matmul a b)
(tensor-relu x)

; Neural network layers (higher-level)
(linear-layer 784 128 x)  ; Linear transformation
(conv2d-layer 3 64 3 x)   ; Convolution

(print (tensor->list (tensor-matmul a b))
       (tensor-shape (linear-layer 784 128 x))
       (tensor-shape (conv2d-layer 3 64 3 x)))
"""
MEMORY = """
(let ((x (tensor-randn 10 10)))
  (let ((y (tensor-relu x)))
    ; When y goes out of scope, pt_free(y) is called
    (tensor-sum y)))
; pt_free(x) called here
(print "all freed")
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
EXPECTED = {
    "primitives": "((19 22) (43 50)) (1 3 8 128) (1 64 6 782)",
    "memory": "all freed",
    "autograd": "(10 10)",
    "training": "#t",
}


def purple(*arguments: str) -> str:
    command = [sys.executable, "-m", "tenfold.purple.cli", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_of_the_paper_runs_interpreted(name: str) -> None:
    assert interpreted(PROGRAMS[name]).strip() == EXPECTED[name]


@pytest.mark.slow
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_of_the_paper_runs_compiled(name: str, tmp_path: Path) -> None:
    assert compiled(PROGRAMS[name], tmp_path).strip() == EXPECTED[name]


@pytest.mark.slow
@pytest.mark.parametrize("compiler", ["gcc", "clang"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_of_the_paper_is_compiled_by_hand(name: str, compiler: str, tmp_path: Path) -> None:
    if shutil.which(compiler) is None:
        pytest.skip(f"{compiler} is not installed")
    (tmp_path / "program.purple").write_text(PROGRAMS[name], encoding="utf-8")
    build = f"""
        python=$0
        purple() {{ "$python" -m tenfold.purple.cli "$@"; }}
        purple -c program.purple > program.c
        {compiler} -std=c99 -Wall -Wextra -Werror program.c $(purple flags) -o program
        ./program
    """
    done = subprocess.run(
        ["bash", "-euc", build, sys.executable], cwd=tmp_path, capture_output=True, text=True, timeout=300
    )
    assert (done.returncode, done.stdout.strip()) == (0, EXPECTED[name]), done.stderr


def test_tensors_are_freed_where_they_were_last_used(tmp_path: Path) -> None:
    source = tmp_path / "program.purple"
    source.write_text(MEMORY, encoding="utf-8")
    text = purple("-c", str(source)).partition("p_top_level(void) {")[2]
    events = [
        text.index(each)
        for each in (
            "x = p_tensor_randn(",
            "tn_relu(pu_handle(x))",
            "tn_sum(pu_handle(y))",
            "pu_free_unique(y)",
        )
    ]
    assert events == sorted(events) and text.index("tn_relu(pu_handle(x))") < text.index("pu_free_unique(x)")


# The paper's wrapper, function by function; dims are int64_t, and a softmax says its dtype or NULL.
WRAPPER = """
#include <stdio.h>
#include <tenfold.h>

int main(void) {
    const int64_t dims[] = {2, 3};
    const float data[] = {1, -2, 3, -4, 5, -6};
    tn_tensor *a = tn_tensor_from_data(data, TN_FLOAT32, dims, 2, NULL, 0);
    tn_tensor *zeros = tn_zeros(dims, 2), *ones = tn_ones(dims, 2), *randn = tn_randn(dims, 2);
    tn_tensor *sum = tn_add(a, ones), *product = tn_mul(a, ones), *turned = tn_t(a);
    tn_tensor *matrix = tn_matmul(a, turned), *positive = tn_relu(a), *shares = tn_softmax(zeros, 1, NULL);
    tn_tensor *clone = tn_clone(sum);
    const float *elements = tn_tensor_data(clone);
    int64_t shape[2];
    tn_tensor_shape(matrix, shape, 2);
    printf("%g %g %d %d ", elements[0], elements[5], (int)tn_tensor_shape(matrix, NULL, 0), (int)shape[1]);
    printf("%.4f\\n", ((const float *)tn_tensor_data(shares))[0]);
    tn_tensor *all[] = {a, zeros, ones, randn, sum, product, turned, matrix, positive, shares, clone};
    for (int i = 0; i < 11; i++) tn_free(all[i]);
    return tn_live_tensors() != 0;
}
"""


def test_the_wrapper_makes_computes_reads_and_frees(tmp_path: Path) -> None:
    source, program = tmp_path / "program.c", tmp_path / "program"
    source.write_text(WRAPPER, encoding="utf-8")
    flags = [*built().compile_flags, *built().link_flags]
    subprocess.run(
        ["cc", "-std=c99", "-Wall", "-Werror", str(source), *flags, "-o", str(program)], check=True
    )
    done = subprocess.run([program], capture_output=True, text=True, check=True)
    assert done.stdout == "2 -5 2 2 0.3333\n"


# The paper's wrapper of phase 2, as it stands there, built with our flags for C++ on libtorch.
PHASE_2 = """
// purple_torch.cpp
#include <torch/torch.h>

extern "C" {
    typedef at::Tensor* PTensor;

    PTensor pt_zeros(int* dims, int ndims) {
        std::vector<int64_t> shape(dims, dims + ndims);
        return new at::Tensor(torch::zeros(shape));
    }

    PTensor pt_add(PTensor a, PTensor b) {
        return new at::Tensor(*a + *b);
    }

    void pt_free(PTensor t) {
        delete t;
    }
}
"""
# Its tensors are libtenfold's, too: a program links both libraries, and hands the one's to the other.
PHASE_2_USED = """
#include <stdio.h>
#include <tenfold.h>

typedef void *PTensor;
PTensor pt_zeros(int *dims, int ndims);
PTensor pt_add(PTensor a, PTensor b);
void pt_free(PTensor t);

int main(void) {
    int dims[] = {2, 3};
    PTensor a = pt_zeros(dims, 2);
    tn_tensor *shared = tn_torch_wrap_tensor(a);
    tn_add_Scalar_(shared, tn_int(2), tn_int(1));
    PTensor sum = pt_add(a, a);
    tn_tensor *result = tn_torch_wrap_tensor(sum);
    printf("%g %d\\n", ((const float *)tn_tensor_data(result))[5], (int)tn_tensor_size(result, 1));
    tn_free(shared);
    tn_free(result);
    pt_free(sum);
    pt_free(a);
    return tn_live_tensors() != 0;
}
"""


@pytest.mark.slow
def test_the_wrapper_of_the_paper_is_built_and_linked(tmp_path: Path) -> None:
    (tmp_path / "purple_torch.cpp").write_text(PHASE_2, encoding="utf-8")
    (tmp_path / "program.c").write_text(PHASE_2_USED, encoding="utf-8")
    build = """
        python=$0
        tenfold() { "$python" -m tenfold "$@"; }
        g++ -shared -fPIC -o libpurple_torch.so purple_torch.cpp $(tenfold capi flags --torch)
        gcc -o program program.c -L. -lpurple_torch $(tenfold capi flags) -Wl,-rpath,.
        ./program
    """
    done = subprocess.run(
        ["bash", "-euc", build, sys.executable], cwd=tmp_path, capture_output=True, text=True, timeout=600
    )
    assert (done.returncode, done.stdout) == (0, "4 3\n"), done.stderr[-3000:]
