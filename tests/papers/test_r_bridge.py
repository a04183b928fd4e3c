"""The R calls of the paper on the bridge to R; the C++ that is handed functions and lists is in
tests/bindings/test_r_linking.py, which builds both example packages."""

from __future__ import annotations

from pathlib import Path

from tests.bindings.r_process import evaluate


def test_a_function_of_the_package_is_traced_and_called_with_a_list(tmp_path: Path) -> None:
    printed = evaluate(
        tmp_path,
        "f <- jit_trace(nnf_relu, torch_randn(1))\n"
        "stopifnot(inherits(f, 'script_function'))\n"
        "inputs <- list(torch_tensor(c(-1, 2)))\n"
        "cat(as_array(do.call(f, inputs)), as_array(run_script_module(f, inputs)))\n",
    )
    assert printed == "0 2 0 2"


def test_a_list_is_a_stack_and_comes_back(tmp_path: Path) -> None:
    printed = evaluate(
        tmp_path,
        "back <- jit_stack(list(torch_ones(2), 1L, 2.5, 'text', TRUE, NULL, list(a = 1, b = 2)))\n"
        "stopifnot(as_array(back[[1]]) == 1, identical(back[2:6], list(1L, 2.5, 'text', TRUE, NULL)))\n"
        "cat(names(back[[7]]), unlist(back[[7]]))\n",
    )
    assert printed == "a b 1 2"
