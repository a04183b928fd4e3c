"""The R calls of the paper on the bridge to R, and its C++ that calls a traced function with a stack. The
packages whose C++ is handed functions and lists are built in tests/bindings/test_r_linking.py."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.bindings.r_process import evaluate
from tests.capi.bridge import built


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


# The body of `_lantern_call_traced_fn` as it stands in the paper: it takes a traced function and a stack
# behind void pointers.
CALLED = """
#include <cstdio>

#include <ATen/ATen.h>
#include <tenfold/torch.h>

using torch::jit::GraphFunction;
using torch::jit::Stack;

template <class T>
void *make_ptr(const T &object) {
    return new T(object);
}

void *_lantern_call_traced_fn(void *fn, void *inputs) {
  auto fn_ = reinterpret_cast<GraphFunction*>(fn);
  Stack inputs_ = *reinterpret_cast<Stack*>(inputs);

  auto outputs = torch::jit::Stack();
  auto out = (*fn_)(inputs_);
  outputs.push_back(out);

  return make_ptr<torch::jit::Stack>(outputs);
}

static tn_status relu(const tn_tensor *const *inputs, int64_t, tn_tensor **outputs, int64_t, void *) {
    outputs[0] = tn_relu(inputs[0]);
    return outputs[0] == nullptr ? tn_error_code() : TN_OK;
}

int main() {
    const float data[] = {-1, 2};
    const int64_t shape[] = {2};
    tn_tensor *example = tn_tensor_from_data(data, TN_FLOAT32, shape, 1, nullptr, 0);
    tn_module *traced = tn_module_trace(relu, &example, 1, 1, nullptr);
    tn_function *function = tn_module_function(traced, "forward");
    tn_module_free(traced);  // the function keeps what it needs
    Stack stack{tenfold::to_torch(example)};
    auto *found = static_cast<Stack *>(_lantern_call_traced_fn(&tenfold::to_torch(function), &stack));
    const at::Tensor result = found->at(0).toTensor();
    std::printf("%g %g", result[0].item<float>(), result[1].item<float>());

    // and the same function, made one of TorchScript's again
    tn_function *again = tenfold::from_torch(tenfold::to_torch(function), nullptr);
    tn_module *module = tn_function_module(again);
    tn_tensor *output = tn_module_forward(module, &example, 1);
    std::printf(" %g\\n", tenfold::to_torch(output)[1].item<float>());
    delete found;
    tn_free(output);
    tn_module_free(module);
    tn_function_free(again);
    tn_function_free(function);
    tn_free(example);
    return tn_live_tensors() != 0;
}
"""


@pytest.mark.slow
def test_a_traced_function_is_called_as_the_graph_function_it_is(tmp_path: Path) -> None:
    source, program, made = tmp_path / "program.cpp", tmp_path / "program", built()
    source.write_text(CALLED, encoding="utf-8")
    flags = [*made.compile_flags, *made.torch_compile_flags, *made.link_flags, *made.torch_link_flags]
    subprocess.run(["c++", str(source), *flags, "-o", str(program)], check=True)
    assert subprocess.run([program], capture_output=True, text=True, check=True).stdout == "0 2 2\n"
