"""Devices through libtenfold where there is CUDA: streams that copy while others compute, memory as the
driver counts it. Without CUDA the example says what is missing."""

from __future__ import annotations

import ctypes
import re
import subprocess
from pathlib import Path

import numpy as np
import pytest
import torch

from tenfold.base.errors import OutOfMemory
from tenfold.capi.binding import Device
from tests.capi.bridge import Bridge, built
from tests.capi.test_examples import EXAMPLES, compiled, output

CPU, CUDA = Device(0, -1), Device(1, 0)
MIB = 1 << 20
with_cuda = pytest.mark.skipif(not torch.cuda.is_available(), reason="this is about a machine with CUDA")


def used_as_the_driver_counts() -> int:
    command = ["nvidia-smi", "--id=0", "--query-gpu=memory.used", "--format=csv,noheader,nounits"]
    return int(subprocess.run(command, capture_output=True, text=True, check=True).stdout) * MIB


def zeros_on_the_device(tn: Bridge, count: int) -> int | None:
    """So many bytes of zeros."""
    zeros = tn.lib.library["tn_zeros_with"]
    zeros.restype = ctypes.c_void_p
    shape, byte = (ctypes.c_int64 * 1)(count), ctypes.c_int32(0)
    return zeros(shape, ctypes.c_int64(1), ctypes.byref(byte), None, ctypes.byref(CUDA), None)


@pytest.mark.skipif(torch.cuda.is_available(), reason="this is about a machine without CUDA")
def test_the_example_of_streams_says_what_is_missing(tmp_path: Path) -> None:
    printed = output(compiled(EXAMPLES / "08_streams.c", tmp_path, built()))
    assert re.match(
        r"tn_stream_new: this (libtorch was built without CUDA|machine has no CUDA device)", printed
    )


@with_cuda
def test_copies_on_one_stream_overlap_with_products_on_another(tmp_path: Path) -> None:
    printed = output(compiled(EXAMPLES / "08_streams.c", tmp_path, built()))
    print(printed)
    apart, together = (float(each) for each in re.findall(r"([\d.]+) ms", printed))
    assert together < 0.8 * apart, printed
    assert "sum: 6.71089e+07, done: 1" in printed
    assert "bytes of the device in use: 0\n" in printed and "live tensors: 0" in printed


@with_cuda
def test_memory_is_counted_as_the_driver_counts_it(tn: Bridge) -> None:
    tn.tn_free(zeros_on_the_device(tn, 1))  # what CUDA needs for itself is there now
    tn.tn_synchronize(CUDA)
    tn.tn_empty_cache()
    driver, reserved = used_as_the_driver_counts(), tn.tn_memory_reserved(CUDA)
    allocated = tn.tn_memory_allocated(CUDA)
    held = []
    for mib in (64, 512, 1024):
        held.append(zeros_on_the_device(tn, mib * MIB))
        tn.tn_synchronize(CUDA)
        allocated += mib * MIB
        assert tn.tn_memory_allocated(CUDA) == allocated
        grown, told = tn.tn_memory_reserved(CUDA) - reserved, used_as_the_driver_counts() - driver
        print(f"+{mib} MiB: reserved {grown / MIB:.0f} MiB, as the driver counts {told / MIB:.0f} MiB")
        assert abs(told - grown) <= 4 * MIB
    assert tn.tn_memory_peak(CUDA) >= allocated
    for each in held:
        tn.tn_free(each)
    tn.tn_empty_cache()
    assert tn.tn_memory_reserved(CUDA) == reserved
    assert abs(used_as_the_driver_counts() - driver) <= 4 * MIB


@with_cuda
def test_a_device_that_is_full_is_an_error_and_the_library_goes_on(tn: Bridge) -> None:
    assert zeros_on_the_device(tn, 1 << 45) is None
    with pytest.raises(OutOfMemory, match="CUDA out of memory"):
        raise tn.lib.error()
    made = zeros_on_the_device(tn, 3)
    assert made is not None
    back = tn.keep(tn.tn_to_device(made, CPU, False))
    tn.tn_free(made)
    assert tn.array(back).tolist() == [0, 0, 0]


@with_cuda
def test_operators_on_the_device_equal_those_on_the_host(tn: Bridge) -> None:
    x, y = tn.tensor(np.linspace(-1, 1, 12).reshape(3, 4)), tn.tensor(np.linspace(0, 2, 8).reshape(4, 2))
    there = [tn.keep(tn.tn_to_device(each, CUDA, False)) for each in (x, y)]
    product = tn.call("mm", *there)
    back = tn.keep(tn.tn_to_device(tn.call("tanh", product), CPU, False))
    np.testing.assert_allclose(
        tn.array(back), tn.array(tn.call("tanh", tn.call("mm", x, y))), rtol=1e-5, atol=1e-6
    )
