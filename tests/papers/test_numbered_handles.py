"""The functions of the paper on handles that are numbers: each category has those that it names."""

from __future__ import annotations

import csv
import ctypes
import os
import re
import subprocess
from pathlib import Path

import pytest
import torch

from tenfold.capi import rt
from tests.capi.bridge import built

CATEGORIES = {
    "library": "available version cuda_available",
    "creation": "zeros ones randn rand full from_data arange linspace eye empty",
    "arithmetic": "add sub mul div pow neg abs sqrt exp log add_scalar mul_scalar",
    "activations": "relu sigmoid tanh leaky_relu gelu softmax log_softmax",
    "linear algebra": "matmul dot transpose t norm det inverse svd eig",
    "reductions": "sum sum_dim mean mean_dim max max_dim min min_dim argmax argmin std var",
    "shapes": "ndim numel shape reshape view permute squeeze squeeze_dim unsqueeze flatten contiguous",
    "networks": "conv2d max_pool2d avg_pool2d batch_norm layer_norm dropout linear embedding",
    "losses": "mse_loss cross_entropy binary_cross_entropy nll_loss",
    "autograd": "set_requires_grad requires_grad grad backward zero_grad detach",
    "devices": "cuda cpu is_cuda device to_stream clone",
    "streams": "stream_create sync query free",
}


@pytest.mark.parametrize("category", CATEGORIES)
def test_a_category_is_whole(category: str) -> None:
    declared = {each.name for each in rt.functions()}
    wanted = CATEGORIES[category].split()
    missing = [
        name for name in wanted if not any(each.endswith(f"_{name}") or each == name for each in declared)
    ]
    assert not missing


def test_there_are_more_than_a_hundred() -> None:
    assert sum(f"{each.name}(" in rt.header() for each in rt.functions()) > 100


# What the interface writes `i64` for.
HANDLES = ("tensor", "tensor?", "index", "stream")
with Path(__file__).with_name("rt_torch_abi.tsv").open(encoding="utf-8", newline="") as file:
    INTERFACE = list(csv.DictReader(file, delimiter="\t"))


def test_the_functions_keep_their_signatures() -> None:
    declared = {each.name: each for each in rt.functions()}
    assert len(INTERFACE) == 104
    for wanted in INTERFACE:
        found = declared[wanted["name"]]
        plain = lambda type: re.sub(r"tensor|results", "i64", "i64" if type in HANDLES else type)
        taken = ", ".join(f"{name}: {plain(type)}" for name, type in found.parameters.items())
        assert (wanted["name"], taken) == (wanted["name"], wanted["parameters"])
        assert plain(found.result) == (wanted["returns"] or "void"), wanted["name"]


# The paper's first example, with what it is to print without libtorch and with it.
CREATION = """
#include <cstdio>
#include <tenfold_rt.h>

int main() {
    std::printf("=== PyTorch Tensor Creation ===\\nBackend Check:\\n");
    std::printf("  torch_available() = %s\\n", rt_torch_available() ? "true" : "false");
    if (!rt_torch_available()) {
        std::printf("  \u26a0 Running in stub mode (PyTorch not installed)\\n");
        return 0;
    }
    std::printf("  torch_version() = %s\\n  \u2713 PyTorch FFI backend ready\\n\\n", rt_torch_version());
    const int64_t dims[] = {3, 4};
    int64_t zeros = rt_torch_tensor_zeros(dims, 2), count = 0;
    const int64_t *shape = rt_torch_torchtensor_shape(zeros, &count);
    std::printf("Creating tensors...\\n1. Zeros tensor [3, 4]:\\n");
    std::printf("   Shape: [%lld, %lld]\\n", (long long)shape[0], (long long)shape[1]);
    std::printf("   Dimensions: %lldD\\n", (long long)rt_torch_torchtensor_ndim(zeros));
    std::printf("   Total elements: %lld\\n", (long long)rt_torch_torchtensor_numel(zeros));
    rt_torch_torchtensor_free(zeros);
}
"""
WITHOUT = """=== PyTorch Tensor Creation ===
Backend Check:
  torch_available() = false
  \u26a0 Running in stub mode (PyTorch not installed)
"""
WITH = """=== PyTorch Tensor Creation ===
Backend Check:
  torch_available() = true
  torch_version() = 2.1.0+cu118
  \u2713 PyTorch FFI backend ready

Creating tensors...
1. Zeros tensor [3, 4]:
   Shape: [3, 4]
   Dimensions: 2D
   Total elements: 12
"""


def test_a_standalone_program_is_linked_and_runs(tmp_path: Path) -> None:
    made = built()
    folder = rt.add(made.include, made.lib, "cc").parent
    (tmp_path / "test_torch.cpp").write_text(CREATION, encoding="utf-8")
    build = f"g++ test_torch.cpp -L{folder} -ltenfold_rt -o test_torch"
    environment = {**os.environ, "CPLUS_INCLUDE_PATH": str(made.include)}
    subprocess.run(build.split(), cwd=tmp_path, env=environment, check=True)

    def printed(**variables: str) -> str:
        environment = {**os.environ, "LD_LIBRARY_PATH": str(folder), **variables}
        done = subprocess.run([tmp_path / "test_torch"], env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert printed() == WITH.replace("2.1.0+cu118", torch.__version__.partition("+")[0])
    assert printed(TENFOLD_TORCH_LIBRARY=str(tmp_path / "missing.so")) == WITHOUT


def test_the_library_is_loaded_at_run_time() -> None:
    library = ctypes.CDLL(str(rt.add(built().include, built().lib, "cc")))
    for name in ("rt_torch_tensor_zeros", "rt_torch_torchtensor_ndim", "rt_torch_torchtensor_numel"):
        getattr(library, name).restype = ctypes.c_int64
    handle = ctypes.c_int64(library.rt_torch_tensor_zeros((ctypes.c_int64 * 2)(3, 3), ctypes.c_int64(2)))
    try:
        assert library.rt_torch_torchtensor_ndim(handle) == 2
        assert library.rt_torch_torchtensor_numel(handle) == 9
    finally:
        library.rt_torch_torchtensor_free(handle)


def test_the_symbols_are_in_the_library() -> None:
    library = rt.add(built().include, built().lib, "cc")
    printed = subprocess.run(["nm", "-D", library], capture_output=True, text=True, check=True).stdout
    assert all(f" T {each['name']}\n" in printed for each in INTERFACE)


# The paper's test without libtorch: a layer from 128 to 64, on 32 rows.
STUBS = """
#include <stdio.h>
#include <tenfold_rt.h>

int main(void) {
    const int64_t in[] = {32, 128}, weights[] = {64, 128}, out[] = {64};
    int64_t x = rt_torch_tensor_zeros(in, 2), w = rt_torch_tensor_randn(weights, 2);
    int64_t b = rt_torch_tensor_zeros(out, 1);
    int64_t y = rt_torch_nn_linear(x, w, b), count = 0;
    const int64_t *shape = rt_torch_torchtensor_shape(y, &count);
    printf("%d [%d, %d] ", rt_torch_available(), (int)shape[0], (int)shape[1]);
    printf("%.1f\\n", rt_torch_torchtensor_sum(y));
    const int64_t handles[] = {x, w, b, y};
    for (int i = 0; i < 4; i++) rt_torch_torchtensor_free(handles[i]);
    return 0;
}
"""


def test_shapes_are_tracked_without_libtorch(tmp_path: Path) -> None:
    made, source, program = built(), tmp_path / "stubs.c", tmp_path / "stubs"
    source.write_text(STUBS, encoding="utf-8")
    subprocess.run(
        ["cc", str(source), *made.compile_flags, *made.rt_link_flags, "-o", str(program)], check=True
    )
    environment = {**os.environ, "TENFOLD_TORCH_LIBRARY": str(tmp_path / "missing.so")}
    done = subprocess.run([program], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == "0 [32, 64] nan\n"
