"""Devices through libtenfold where there is no CUDA: what works, and that the rest says why it does not."""

from __future__ import annotations

import ctypes
import os
import subprocess
from pathlib import Path

import numpy as np
import pytest
import torch

from tenfold.base.errors import MissingEngine, TenfoldError
from tenfold.capi.binding import Device
from tests.capi.bridge import Bridge, built, numbers

CPU, CUDA = Device(0, -1), Device(1, 0)
without_cuda = pytest.mark.skipif(torch.cuda.is_available(), reason="this is about a machine without CUDA")


def test_there_is_one_cpu(tn: Bridge) -> None:
    assert tn.tn_device_count(0) == 1
    assert tn.tn_device_count(1) == torch.cuda.device_count()
    with pytest.raises(TenfoldError, match="TN_CPU and TN_CUDA"):
        tn.tn_device_count(14)
    x = tn.tensor([1.0, 2.0])
    same = tn.keep(tn.tn_to_device(x, CPU, False))
    assert tn.tn_tensor_is_same(x, same) == 1
    tn.tn_synchronize(CPU)


def test_libtorch_says_what_it_was_built_with(tn: Bridge) -> None:
    assert tn.tn_has_backend(b"mkl") == torch.backends.mkl.is_available()
    assert tn.tn_has_backend(b"mkldnn") == torch.backends.mkldnn.is_available()
    assert tn.tn_has_backend(b"openmp") == torch.backends.openmp.is_available()
    assert tn.tn_has_backend(b"cuda") == torch.cuda.is_available()
    with pytest.raises(TenfoldError, match="'abacus' is no backend: cuda, cudnn"):
        tn.tn_has_backend(b"abacus")
    with pytest.raises(TenfoldError, match="cuda and cudnn"):
        tn.tn_backend_version(b"mkl")


@without_cuda
@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("tn_stream_new", (CUDA,)),
        ("tn_synchronize", (CUDA,)),
        ("tn_memory_allocated", (CUDA,)),
        ("tn_memory_peak", (CUDA,)),
        ("tn_memory_reserved", (CUDA,)),
        ("tn_memory_statistic", (CUDA, b"allocated_bytes.all.peak")),
        ("tn_backend_version", (b"cuda",)),
        ("tn_backend_version", (b"cudnn",)),
        ("tn_memory_reset_peak", (CUDA,)),
        ("tn_empty_cache", ()),
        ("tn_memory_snapshot", ()),
        ("tn_memory_record_history", (b"all", None, b"all", 1)),
    ],
)
def test_without_cuda_the_error_says_so(tn: Bridge, name: str, arguments: tuple) -> None:
    with pytest.raises(MissingEngine, match="without CUDA|no CUDA device"):
        getattr(tn, name)(*arguments)


@without_cuda
def test_without_cuda_no_tensor_goes_there(tn: Bridge) -> None:
    x = tn.tensor([1.0])
    with pytest.raises(MissingEngine, match="without CUDA|no CUDA device"):
        tn.tn_to_device(x, CUDA, False)
    with pytest.raises(MissingEngine, match="without CUDA|no CUDA device"):
        tn.tn_pin_memory(x)
    assert not tn.typed("tn_zeros_with", *numbers([2]), None, None, ctypes.byref(CUDA), None)
    assert tn.tn_error_message() == b"tn_zeros_with: this libtorch was built without CUDA"


def test_streams_that_are_none_are_errors(tn: Bridge) -> None:
    for name in ("tn_stream_begin", "tn_stream_synchronize", "tn_stream_query"):
        with pytest.raises(TenfoldError, match="stream is NULL"):
            getattr(tn, name)(None)
    with pytest.raises(TenfoldError, match="the device is cpu"):
        tn.tn_memory_allocated(CPU)


def test_a_seed_gives_pytorchs_numbers(tn: Bridge) -> None:
    tn.tn_manual_seed(42)
    found = tn.array(tn.call("randn", [5]))
    torch.manual_seed(42)
    np.testing.assert_array_equal(found, torch.randn(5).numpy())


def test_threads_are_counted_and_set(tn: Bridge) -> None:
    before = tn.tn_threads()
    tn.tn_set_threads(1)
    assert tn.tn_threads() == 1
    tn.tn_set_threads(before)
    assert tn.tn_interop_threads() >= 1
    for wrong in (0, -3, 60_000, 1 << 40):  # for OpenMP, what the system refuses is the end of the process
        with pytest.raises(TenfoldError, match="threads"):
            tn.tn_set_threads(wrong)
        with pytest.raises(TenfoldError, match="threads"):
            tn.tn_set_interop_threads(wrong)


# Stands in for libtorch's library for CUDA, which defines these two.
RECORDER = """
#include <cstdio>
#include <optional>
#include <string>
#include <vector>

namespace torch::cuda {
static std::string recorded = "nothing";

void _record_memory_history(std::optional<std::string> enabled, std::optional<std::string> context,
                            const std::string &stacks, size_t max_entries, bool, bool, bool,
                            const std::vector<std::string> &) {
    recorded = enabled.value_or("none") + " " + context.value_or("none") + " " + stacks + " " +
               std::to_string(max_entries);
}

std::string _memory_snapshot_pickled() { return recorded; }
}  // namespace torch::cuda
"""
RECORDED = """
#include <stdio.h>
#include <tenfold.h>

static void print_snapshot(void) {
    tn_tensor *bytes = tn_memory_snapshot();
    if (bytes == NULL) {
        printf("%s\\n", tn_error_message());
        return;
    }
    printf("%.*s\\n", (int)tn_tensor_numel(bytes), (const char *)tn_tensor_data(bytes));
    tn_free(bytes);
}

int main(void) {
    print_snapshot();
    tn_memory_record_history("state", NULL, "all", 7);
    print_snapshot();
    if (tn_memory_record_history("some", NULL, "all", 7) != TN_ERROR_ARGUMENT) return 1;
    if (tn_memory_record_history(NULL, "all", NULL, 7) != TN_ERROR_ARGUMENT) return 2;
    if (tn_memory_record_history(NULL, "all", "python", 0) != TN_ERROR_ARGUMENT) return 3;
    return tn_live_tensors() != 0;
}
"""


def test_the_memory_of_cuda_is_recorded_by_its_own_library(tmp_path: Path) -> None:
    (tmp_path / "recorder.cpp").write_text(RECORDER, encoding="utf-8")
    (tmp_path / "program.c").write_text(RECORDED, encoding="utf-8")
    recorder, program, flags = tmp_path / "recorder.so", tmp_path / "program", built()
    subprocess.run(
        ["c++", "-std=c++20", "-shared", "-fPIC", tmp_path / "recorder.cpp", "-o", recorder], check=True
    )
    command = ["cc", tmp_path / "program.c", *flags.compile_flags, *flags.link_flags, "-o", program]
    subprocess.run(command, check=True)
    environment = {**os.environ, "LD_PRELOAD": str(recorder)}
    done = subprocess.run([program], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["nothing", "state none all 7"]
