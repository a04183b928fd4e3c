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


def test_nested_lists_and_named_lists_are_traced(tmp_path: Path) -> None:
    printed = evaluate(
        tmp_path,
        "f <- jit_trace(function(x, of) list(sum = x + of$a, parts = list(of$b[[1]], of$b[[2]] * 2)),\n"
        "  torch_ones(2), list(a = torch_ones(2), b = list(torch_ones(1), torch_ones(1))))\n"
        "of <- list(a = torch_tensor(c(1, 2)), b = list(torch_tensor(3), torch_tensor(4)))\n"
        "found <- f(torch_ones(2), of)\n"
        "cat(names(found), as_array(found$sum), as_array(found$parts[[1]]), as_array(found$parts[[2]]))\n",
    )
    assert printed == "sum parts 2 3 3 8"


def test_methods_of_a_module_are_traced_together_and_saved(tmp_path: Path) -> None:
    printed = evaluate(
        tmp_path,
        "net <- nn_module(initialize = function() self$w <- nn_parameter(torch_tensor(3)),\n"
        "  forward = function(x) x * self$w, shifted = function(x, by) x + by)()\n"
        "one <- torch_ones(1)\n"
        "traced <- jit_trace_module(net, forward = list(one), shifted = list(one, one))\n"
        "path <- file.path(commandArgs(TRUE)[1], 'net.pt')\n"
        "jit_save(traced, path)\n"
        "jit_save_for_mobile(traced, paste0(path, 'l'))\n"
        "again <- jit_load(path)\n"
        "cat(as_array(again(torch_tensor(2))), as_array(again$shifted(one, one)),\n"
        "  file.size(paste0(path, 'l')) > 0, as_array(jit_ops$aten$add(one, one, jit_scalar(2L))))\n",
        tmp_path,
    )
    assert printed == "6 2 TRUE 3"
