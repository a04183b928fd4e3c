"""The paper on a Lisp over libtorch: its phases and its goal as they stand there, interpreted, compiled, and
compiled by hand from the C that `purple -c` prints; and what its C wrapper offers. What a phase leaves open
stands before it, such as the tensors that it computes with, and what shows its result after it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

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


def shell(commands: str, folder: Path, **variables: str) -> str:
    """What commands print, in a folder of which `tenfold` and `./purple` are this environment's."""
    for name, module in {"tenfold": "tenfold", "purple": "tenfold.purple.cli"}.items():
        script = folder / name
        script.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m {module} "$@"\n', encoding="utf-8")
        script.chmod(0o755)
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-euc", commands],
        cwd=folder,
        env={**os.environ, "PATH": path, **variables},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr[-3000:]
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
        ./purple -c program.purple > program.c
        {compiler} -std=c99 -Wall -Wextra -Werror program.c $(./purple flags) -o program
        ./program
    """
    assert shell(build, tmp_path).strip() == EXPECTED[name]


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


# The paper's header as it stands there, and the C that it shows for a program.
HEADER = """
// purple_torch.h - C wrapper for libtorch
typedef struct PTensor PTensor;  // Opaque pointer to at::Tensor

PTensor* pt_zeros(int* dims, int ndims);
PTensor* pt_ones(int* dims, int ndims);
PTensor* pt_randn(int* dims, int ndims);
PTensor* pt_from_data(float* data, int* dims, int ndims);

// Operations
PTensor* pt_add(PTensor* a, PTensor* b);
PTensor* pt_mul(PTensor* a, PTensor* b);
PTensor* pt_matmul(PTensor* a, PTensor* b);
PTensor* pt_relu(PTensor* a);
PTensor* pt_softmax(PTensor* a, int dim);

// Memory
void pt_free(PTensor* t);
PTensor* pt_clone(PTensor* t);

// Data access
float* pt_data(PTensor* t);
int pt_ndims(PTensor* t);
int pt_dim(PTensor* t, int i);
"""
GENERATED = """
Obj* main_fn() {
    PTensor* x = pt_randn((int[]){10, 10}, 2);
    PTensor* y = pt_relu(x);
    Obj* result = pt_sum(y);
    pt_free(y);  // ASAP insertion
    pt_free(x);  // ASAP insertion
    return result;
}
"""
# The header's functions are libtenfold's under other names, with dims of another type.
WRAPPER = """
#include "purple_torch.h"

#include <tenfold.h>

typedef tn_tensor *creator(const int64_t *, int64_t);

static PTensor *created(creator *create, const int *dims, int ndims) {
    int64_t shape[8];
    for (int i = 0; i < ndims; i++) shape[i] = dims[i];
    return (PTensor *)create(shape, ndims);
}

static tn_tensor *handle(PTensor *t) { return (tn_tensor *)t; }

PTensor* pt_zeros(int* dims, int ndims) { return created(tn_zeros, dims, ndims); }
PTensor* pt_ones(int* dims, int ndims) { return created(tn_ones, dims, ndims); }
PTensor* pt_randn(int* dims, int ndims) { return created(tn_randn, dims, ndims); }
PTensor* pt_from_data(float* data, int* dims, int ndims) {
    int64_t shape[8];
    for (int i = 0; i < ndims; i++) shape[i] = dims[i];
    return (PTensor *)tn_tensor_from_data(data, TN_FLOAT32, shape, ndims, NULL, 0);
}
PTensor* pt_add(PTensor* a, PTensor* b) { return (PTensor *)tn_add(handle(a), handle(b)); }
PTensor* pt_mul(PTensor* a, PTensor* b) { return (PTensor *)tn_mul(handle(a), handle(b)); }
PTensor* pt_matmul(PTensor* a, PTensor* b) { return (PTensor *)tn_matmul(handle(a), handle(b)); }
PTensor* pt_relu(PTensor* a) { return (PTensor *)tn_relu(handle(a)); }
PTensor* pt_softmax(PTensor* a, int dim) { return (PTensor *)tn_softmax(handle(a), dim, NULL); }
void pt_free(PTensor* t) { tn_free(handle(t)); }
PTensor* pt_clone(PTensor* t) { return (PTensor *)tn_clone(handle(t)); }
float* pt_data(PTensor* t) { return tn_tensor_data(handle(t)); }
int pt_ndims(PTensor* t) { return (int)tn_tensor_dim(handle(t)); }
int pt_dim(PTensor* t, int i) { return (int)tn_tensor_size(handle(t), i); }

PTensor *pt_sum(PTensor *t) { return (PTensor *)tn_sum(handle(t)); }
int live(void) { return (int)tn_live_tensors(); }
"""
# What the C that the paper shows leaves open stands before it, and a call of every function after it.
WRAPPED = f"""
#include <stdio.h>
#include "purple_torch.h"

typedef PTensor Obj;
Obj *pt_sum(PTensor *t);
int live(void);
{GENERATED}
int main(void) {{
    float data[] = {{1, -2, 3, -4, 5, -6}};
    PTensor *a = pt_from_data(data, (int[]){{2, 3}}, 2), *b = pt_from_data(data, (int[]){{3, 2}}, 2);
    PTensor *zeros = pt_zeros((int[]){{2, 3}}, 2), *ones = pt_ones((int[]){{2, 3}}, 2);
    PTensor *sum = pt_add(a, ones), *product = pt_mul(a, a), *matrix = pt_matmul(a, b);
    PTensor *positive = pt_relu(a);
    PTensor *shares = pt_softmax(zeros, 1), *clone = pt_clone(sum), *result = main_fn();
    printf("%g %g %g ", pt_data(clone)[0], pt_data(product)[5], pt_data(positive)[1]);
    printf("%g %d %d ", pt_data(matrix)[3], pt_ndims(matrix), pt_dim(matrix, 1));
    printf("%.4f %d %d\\n", pt_data(shares)[0], pt_ndims(result), pt_data(result)[0] > 0);
    PTensor *all[] = {{a, b, zeros, ones, sum, product, matrix, positive, shares, clone, result}};
    for (int i = 0; i < 11; i++) pt_free(all[i]);
    return live();
}}
"""
# The end of the paper's last command line; the folder need not be there.
LINKED = """-Wl,-rpath,$(python3 -c "import torch; print(torch.utils.cmake_prefix_path + '/lib')")"""


def test_the_header_of_the_paper_is_a_library_on_ours(tmp_path: Path) -> None:
    (tmp_path / "purple_torch.h").write_text(HEADER, encoding="utf-8")
    (tmp_path / "purple_torch.c").write_text(WRAPPER, encoding="utf-8")
    (tmp_path / "program.c").write_text(WRAPPED, encoding="utf-8")
    build = f"""
        cc -shared -fPIC -Wall -Wextra -Werror -o libpurple_torch.so purple_torch.c $(./tenfold capi flags)
        gcc -o program program.c -L. -lpurple_torch \\
            {LINKED}
        ./program
    """
    assert shell(build, tmp_path, LD_LIBRARY_PATH=".") == "2 36 0 24 2 2 0.3333 0 1\n"


@pytest.mark.slow
def test_a_program_is_compiled_by_the_command_lines_of_the_paper(tmp_path: Path) -> None:
    (tmp_path / "program.purple").write_text(TRAINING, encoding="utf-8")
    build = f"""
        ./tenfold capi install --prefix "$PWD/prefix" >/dev/null
        cp -a prefix/lib/lib*.so* .
        # Compile Purple program
        ./purple -c program.purple > program.c

        # Compile with libtorch
        gcc -o program program.c -L. -lpurple -ltenfold \\
            {LINKED}
        ./program
    """
    printed = shell(
        build, tmp_path, C_INCLUDE_PATH="prefix/include/purple:prefix/include", LD_LIBRARY_PATH="."
    )
    assert printed.strip() == EXPECTED["training"]


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
        g++ -shared -fPIC -o libpurple_torch.so purple_torch.cpp $(./tenfold capi flags --torch)
        gcc -o program program.c -L. -lpurple_torch $(./tenfold capi flags) -Wl,-rpath,.
        ./program
    """
    assert shell(build, tmp_path) == "4 3\n"
