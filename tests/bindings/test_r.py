"""The R package in real R processes: every operator beside PyTorch, R's own ways, training, mistakes."""

from __future__ import annotations

import os
import re
import signal
import string
import subprocess
import time
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from torch.jit.mobile import _load_for_lite_interpreter

from tenfold.capi.bindings_r import operators
from tenfold.capi.describe import describe
from tenfold.capi.locate import find_libtorch
from tenfold.capi.r_examples import example
from tests.bindings import learning
from tests.bindings.r_process import ROOT, built_library, evaluate, library, run, start
from tests.bindings.r_sweep import SHADOWED, Sweep

EXAMPLES = ROOT / "examples" / "r"
SCRIPTS = Path(__file__).with_name("r")


# ---- operators ------------------------------------------------------------------------------------------


@pytest.fixture(scope="module", autouse=True)
def installed() -> None:
    library()


def test_every_operator_gives_what_pytorch_gives(tmp_path: Path) -> None:
    sweep = Sweep.collected("_" + string.ascii_letters)
    script = sweep.write(tmp_path)
    files = [tmp_path / each for each in ("given.safetensors", "results.safetensors", "problems.txt")]
    run(script, *files)
    wrong = sweep.differences(tmp_path)
    assert not wrong, "\n".join([f"{len(wrong)} of {len(sweep.lines)} differ", *wrong[:20]])
    assert len(sweep.overloads) > 1200
    assert not sweep.overloads & SHADOWED


# ---- R's own ways ---------------------------------------------------------------------------------------


def test_indexing_does_what_it_does_to_arrays() -> None:
    assert run(SCRIPTS / "indexing.R") == "fine"


def test_values_go_to_tensors_and_back() -> None:
    assert run(SCRIPTS / "values.R") == "fine"


def test_tensors_print_as_r_prints(tmp_path: Path) -> None:
    printed = evaluate(
        tmp_path, "print(torch_tensor(matrix(c(1, 2, 3, 4), 2)))\nprint(torch_zeros(100, 100))"
    )
    assert printed.startswith("torch_tensor float32[2, 2]\n     [,1] [,2]\n[1,]    1    3\n[2,]    2    4\n")
    assert "... and more of its 10,000 elements" in printed


def test_the_tutorials_programs_run(tmp_path: Path) -> None:
    text = (ROOT / "docs" / "tutorials" / "r.md").read_text(encoding="utf-8")
    programs = re.findall(r"```r\n(.*?)```", text, re.DOTALL)
    assert len(programs) == 3
    evaluate(tmp_path, "\n".join(programs))


def test_lists_are_stacks_and_stacks_are_lists() -> None:
    assert run(SCRIPTS / "stacks.R") == "fine"


def test_traced_functions_and_modules_are_called_saved_and_loaded(tmp_path: Path) -> None:
    class Twice(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = torch.nn.Parameter(torch.tensor([2.0]))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x * self.weight

        @torch.jit.export
        def describe(self, numbers: list[int], factor: float = 2.0) -> tuple[int, dict[str, float]]:
            return len(numbers), {"total": sum(numbers) * factor}

    torch.jit.script(Twice()).save(str(tmp_path / "twice.pt"))
    assert run(SCRIPTS / "script.R", tmp_path) == "fine"
    told = load_file(str(tmp_path / "net.safetensors"))
    torch.testing.assert_close(torch.jit.load(str(tmp_path / "net.pt"))(told["x"]), told["y"])
    lite = _load_for_lite_interpreter(str(tmp_path / "net.ptl"))
    torch.testing.assert_close(lite(told["x"]), told["y"])


def test_gradients_flow_where_they_are_wanted() -> None:
    assert run(SCRIPTS / "gradients.R") == "fine"


def test_functions_and_hooks_of_r_take_part_in_gradients() -> None:
    assert run(SCRIPTS / "functions.R") == "fine"


def test_samples_come_in_batches_and_networks_go_into_files() -> None:
    assert run(SCRIPTS / "data.R") == "fine"


def test_files_of_pythons_torch_save_are_read(tmp_path: Path) -> None:
    network = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4))
    x = torch.arange(6.0).reshape(2, 3)
    kinds = {
        str(dtype).removeprefix("torch."): x.t().to(dtype)
        for dtype in (torch.float64, torch.bfloat16, torch.int32, torch.bool, torch.complex64, torch.uint16)
    }
    plain = {"list": [1, -2, 3.5, None, True, "é", 2**40], "tuple": (1, (2,)), 3: torch.nn.Parameter(x)}
    torch.save(network.state_dict(), tmp_path / "state.pth")
    torch.save({"kinds": kinds, "plain": plain, "shared": [x, x[1]]}, tmp_path / "all.pth", pickle_protocol=4)
    torch.save(network, tmp_path / "whole.pth")
    torch.save(x, tmp_path / "old.pth", _use_new_zipfile_serialization=False)
    (tmp_path / "short.pth").write_bytes((tmp_path / "all.pth").read_bytes()[:300])
    assert run(SCRIPTS / "pickles.R", tmp_path) == "fine"
    told = load_file(str(tmp_path / "told.safetensors"))
    for name, tensor in {**network.state_dict(), **kinds}.items():
        torch.testing.assert_close(told[name], tensor, rtol=0, atol=0)


def test_kinds_inherit_and_samples_and_sequences_come_as_one_likes() -> None:
    assert run(SCRIPTS / "kinds.R") == "fine"


def test_distributions_have_the_densities_that_r_has() -> None:
    assert run(SCRIPTS / "distributions.R") == "fine"


# ---- training -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("way", ["in_r", "one_call"])
@pytest.mark.parametrize(("task", "lr"), [(learning.xor, 0.05), (learning.digits, 0.01)])
def test_a_hundred_steps_have_pytorchs_losses(task, lr: float, way: str, tmp_path: Path) -> None:
    theirs = task(tmp_path / "given.safetensors")
    ours = [
        float(each) for each in run(SCRIPTS / "training.R", tmp_path / "given.safetensors", lr, way).split()
    ]
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-4)


# ---- memory, interrupts ---------------------------------------------------------------------------------

LOOP = """
keep <- torch_zeros(10)
for (i in 1:{count}) x <- torch_zeros(262144) + i
line <- grep("VmHWM", readLines("/proc/self/status"), value = TRUE)
cat(as.numeric(gsub("[^0-9]", "", line)) / 1024)
"""


def test_a_loop_of_tensors_stays_small_without_collecting_by_hand(tmp_path: Path) -> None:
    assert float(evaluate(tmp_path, LOOP.format(count=2_000))) < 500


@pytest.mark.slow
def test_a_hundred_thousand_megabytes_pass_through_five_hundred(tmp_path: Path) -> None:
    assert float(evaluate(tmp_path, LOOP.format(count=100_000))) < 500


def test_an_interrupt_stops_a_long_loop() -> None:
    process = start(SCRIPTS / "loop.R")
    try:
        assert process.stdout is not None and process.stdout.readline() == "ready\n"
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        assert process.communicate(timeout=60)[0] == "stopped TRUE"
    finally:
        process.kill()


# ---- mistakes -------------------------------------------------------------------------------------------

MISTAKES = {
    "torch_relu('a')": "ARGUMENT",
    "torch_add(torch_ones(2), NA)": "ARGUMENT",
    "torch_sum(torch_ones(2), 0)": "ARGUMENT",
    "torch_sum(torch_ones(2), 1.5)": "ARGUMENT",
    "torch_sum(torch_ones(2), 7)": "INDEX|TORCH",
    "torch_tensor(c(TRUE, NA))": "ARGUMENT",
    "torch_tensor(c(1L, NA))": "ARGUMENT",
    "torch_tensor('text')": "TYPE",
    "torch_tensor(list(c(1, 2), 3))": "ARGUMENT",
    "torch_tensor(factor('a'))": "ARGUMENT",
    "torch_tensor(data.frame(a = 'x'))": "ARGUMENT",
    "torch_tensor(1, dtype = 'float33')": "ARGUMENT",
    "torch_ones(2, device = 'gpu')": "ARGUMENT",
    "torch_ones(-1)": "TORCH",
    "torch_ones(2)[3]": "INDEX",
    "torch_ones(2)[0]": "INDEX",
    "torch_ones(2)[1, 1]": "INDEX",
    "torch_ones(2)[NA]": "INDEX",
    "torch_ones(2)[c(-3, 1)]": "INDEX",
    "torch_ones(2)['a']": "INDEX",
    "torch_ones(2)[c(TRUE, FALSE, TRUE)]": "INDEX",
    "{x <- torch_ones(2); x[1:2] <- c(1, 2, 3)}": "TORCH",
    "{x <- torch_tensor(1:2); x[1] <- NA}": "ARGUMENT",
    "{x <- torch_ones(2); close(x); x + 1}": "HANDLE",
    "{x <- torch_ones(2); close(x); close(x); x$shape}": "HANDLE",
    "unserialize(serialize(torch_ones(2), NULL, version = 2)) + 1": "HANDLE",
    "torch_ones(2)$nonsense": "NOT_FOUND",
    "torch_matmul(torch_ones(2, 3), torch_ones(2, 3))": "TORCH",
    "torch_gather(torch_ones(2), 1, torch_tensor(c(0L, 1L)))": "INDEX",
    "torch_ones(2)$backward()": "TORCH",
    "torch_cat(list(torch_ones(2), 1))": "TORCH",
    "torch_cat('a')": "ARGUMENT",
    "jit_load('/nonexistent.pt')": "NOT_FOUND",
    "jit_load(as.raw(1:100))": "TORCH",
    "jit_trace(function(x) 'text', torch_ones(1))": "TORCH",
    "jit_trace(1, torch_ones(1))": "TYPE",
    "optim_sgd('a', lr = 1)": "TYPE",
    "optim_sgd(torch_ones(1), lr = NA)": "ARGUMENT",
    "torch_load('/nonexistent')": "NOT_FOUND",
    "tenfold_call('aten::nonsense')": "NOT_FOUND",
    "tenfold_call('aten::relu', 'text')": "TYPE|ARGUMENT|TORCH",
    "nn_linear(2, 2)(torch_ones(3))": "TORCH",
    "nn_sequential(1)": "TYPE",
    "torch_ones(2)[slc(1, NA)]": "ARGUMENT",
    "torch_ones(2)[slc(1, 2, 0)]": "INDEX",
    "torch_ones(2)[newaxis, 1, 1]": "INDEX",
    "torch_arange(1, 5, -1)": "ARGUMENT",
    "torch_arange(1, NA)": "ARGUMENT",
    "torch_index_select(torch_ones(2), 1, 1.5)": "INDEX",
    "torch_ones(2)$register_hook(identity)": "TORCH|ARGUMENT",
    "autograd_function(1, 2)": "TYPE",
    "nn_lstm(2, 2)(torch_ones(2))": "ARGUMENT",
    "nn_multihead_attention(7, 2)": "ARGUMENT",
    "lr_step(1, 1)": "TYPE",
    "optim_lbfgs('a')": "TYPE",
    "nnf_interpolate(torch_ones(1, 1, 2, 2), 3, mode = 'linear')": "ARGUMENT",
    "dataloader(1)": "TYPE",
    "dataloader(tensor_dataset(torch_ones(2)), batch_size = 0)": "ARGUMENT",
    "torch_ones(2, requires_grad = TRUE)$register_hook(3)": "TYPE",
    "tensor_dataset(torch_ones(2), torch_ones(3))": "ARGUMENT",
    "torch_save(torch_ones(2), '/nowhere/x.pt')": "NOT_FOUND",
    "linalg_inv(torch_zeros(2, 2))": "TORCH",
    "jit_train_step(1, 2, 'mse_loss', torch_ones(1), torch_ones(1))": "TYPE",
}


def test_mistakes_are_conditions_and_the_process_lives_on(tmp_path: Path) -> None:
    lines = [
        f"e <- tryCatch({{ {code}; NULL }}, error = identity)\n"
        f"cat(class(e)[1], if (is.null(e)) '' else e$name, {code!r}, '\\n', sep = '\\t')"
        for code in MISTAKES
    ]
    printed = evaluate(tmp_path, "\n".join([*lines, "cat(as.numeric(torch_ones(1) + 1))"]))
    *told, alive = printed.splitlines()
    wrong = []
    for (code, expected), line in zip(MISTAKES.items(), told, strict=True):
        kind, name = line.split("\t")[:2]
        if kind != "tenfold_error" or not re.search(expected, name):
            wrong.append(f"{code}: {line}")
    assert not wrong, "\n".join(wrong)
    assert alive == "2"


def test_a_missing_libtorch_is_told_and_can_be_lived_without(tmp_path: Path) -> None:
    code = """
stopifnot(!torch_is_installed())
e <- tryCatch(torch_ones(2), error = identity)
cat(class(e)[1], e$name, conditionMessage(e))
"""
    printed = evaluate(tmp_path, code, TENFOLD_TORCH_LIBRARY=str(tmp_path / "missing.so"))
    assert printed.startswith("tenfold_error TN_ERROR_NOT_AVAILABLE") and "missing.so" in printed


# ---- examples, the package ------------------------------------------------------------------------------


@pytest.mark.parametrize("name", sorted(each.name for each in EXAMPLES.glob("*.R")))
def test_examples_run(name: str, tmp_path: Path) -> None:
    path = tmp_path / "digits.safetensors"
    learning.all_digits(path)
    run(EXAMPLES / name, path)


def test_examples_of_help_pages_run(tmp_path: Path) -> None:
    public = [op for op in operators(describe(find_libtorch()).functions) if not op.is_part]
    examples = {op.name: example(op) for op in public}
    for name in ("relu", "rand", "arange", "add_", "nonzero", "bernoulli", "dropout"):
        assert examples[name], name
    assert sum(shown is not None for shown in examples.values()) > 0.95 * len(public)
    (tmp_path / "examples.R").write_text("\n".join(filter(None, examples.values())), encoding="utf-8")
    code = f"""
    for (call in parse("{tmp_path}/examples.R")) {{
      tryCatch(eval(call, new.env()), error = function(e) cat(deparse(call), conditionMessage(e), "\\n"))
    }}"""
    assert evaluate(tmp_path, code) == ""


@pytest.mark.slow
def test_r_itself_finds_nothing_wrong_with_the_package(tmp_path: Path) -> None:
    library()
    environment = {**os.environ, **built_library(), "_R_CHECK_FORCE_SUGGESTS_": "false"}
    source = ROOT / "build/r/tenfold"
    for command in (["build", str(source)], ["check", "--no-manual", "tenfold_0.1.0.tar.gz"]):
        done = subprocess.run(
            ["R", "CMD", *command], cwd=tmp_path, env=environment, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    assert "Status: OK" in done.stdout, done.stdout[-4000:]
    assert "tenfold.Rcheck" in done.stdout and (tmp_path / "tenfold.Rcheck/tenfold/doc/tenfold.html").exists()
