"""Convolutions by oneDNN give what PyTorch's give, their gradients included."""

from __future__ import annotations

import platform
import sys

import numpy as np
import pytest
import torch

import tenfold as tn
from tenfold import flat
from tenfold.base import dtypes
from tenfold.base.devices import Device
from tenfold.base.errors import EngineError, UnsupportedError
from tenfold.engines import xla
from tenfold.engines.onednn import convolutions, library
from tenfold.flat.ir import Function, TensorType, Value
from tenfold.flat.structured import CustomCall
from tenfold.mlir import stablehlo

pytestmark = [
    pytest.mark.usefixtures("on_xla"),
    pytest.mark.skipif(
        (sys.platform, platform.machine()) != ("linux", "x86_64"),
        reason="the extra onednn is for Linux on x86-64",
    ),
]
# Stride, padding, dilation and taps.
WINDOWS = [(1, 0, 1, 3), (1, 2, 1, 3), (2, 1, 1, 3), (3, 0, 1, 2), (2, 3, 2, 4), (1, 0, 1, 1), (2, 0, 1, 1)]


@pytest.fixture
def calls(monkeypatch):
    """The kinds of calls that are made, of convolutions of any size."""
    assert library.is_ready()
    monkeypatch.setattr(convolutions, "WORTHWHILE", 0)
    monkeypatch.setenv("TENFOLD_CACHE_DIR", "")
    kinds = []
    made = convolutions._made

    def note(op, kind, *others):
        kinds.append(kind)
        return made(op, kind, *others)

    monkeypatch.setattr(convolutions, "_made", note)
    return kinds


def gradients(lib, rank, batch):
    """Of convolutions with each window, the results and the gradients of both operands."""
    chance = np.random.default_rng(0)
    results = []
    for stride, padding, dilation, taps in WINDOWS:
        space = [9 + i for i in range(rank)]
        x = lib.tensor(chance.normal(size=(batch, 3, *space)).astype(np.float32), requires_grad=True)
        kernel = lib.tensor(chance.normal(size=(5, 3, *[taps] * rank)).astype(np.float32), requires_grad=True)
        convolve = getattr(lib.nn.functional, f"conv{rank}d")
        y = convolve(x, kernel, stride=stride, padding=padding, dilation=dilation)
        seed = lib.tensor(chance.normal(size=tuple(y.shape)).astype(np.float32))
        results += [y.detach(), *lib.autograd.grad(y, (x, kernel), seed)]
    return results


@pytest.mark.parametrize(("rank", "batch"), [(1, 5), (2, 1), (2, 5), (3, 2)])
def test_convolutions_and_their_gradients_are_pytorchs(calls, rank, batch):
    compiled = tn.compile(lambda: gradients(tn, rank, batch))
    for ours, theirs in zip(compiled(), gradients(torch, rank, batch), strict=True):
        expected = theirs.numpy()
        np.testing.assert_allclose(ours.numpy(), expected, atol=1e-5 * np.abs(expected).max(), rtol=0)
    kinds = {convolutions.FORWARD, convolutions.INPUT_GRADIENT, convolutions.KERNEL_GRADIENT}
    assert kinds == set(calls)


def test_transposed_convolutions_are_pytorchs(calls):
    x, kernel = [
        np.random.default_rng(1).normal(size=s).astype(np.float32) for s in ((2, 4, 7, 6), (4, 3, 3, 2))
    ]
    ours, theirs = [
        lib.nn.functional.conv_transpose2d(
            lib.tensor(x), lib.tensor(kernel), stride=2, padding=1, output_padding=1
        )
        for lib in (tn, torch)
    ]
    np.testing.assert_allclose(ours.numpy(), theirs.numpy(), 1e-4, 1e-5)
    assert calls == [convolutions.INPUT_GRADIENT]


def test_small_and_wide_convolutions_are_left_to_xla(calls, monkeypatch):
    monkeypatch.setattr(convolutions, "WORTHWHILE", 10_000)
    tn.nn.functional.conv2d(tn.ones(1, 2, 4, 4), tn.ones(2, 2, 3, 3)).sum().item()
    tn.nn.functional.conv2d(tn.ones(8, 4, 16, 16).double(), tn.ones(4, 4, 3, 3).double()).sum().item()
    assert calls == []


def test_sizes_that_change_find_one_program(calls):
    kernel = np.random.default_rng(2).normal(size=(6, 4, 3, 3)).astype(np.float32)
    compiled = tn.compile(
        lambda x, w: tn.nn.functional.conv2d(x, w, padding=1).relu().sum((2, 3)), dynamic=True
    )
    for batch, height in ((5, 9), (6, 11), (7, 12)):
        x = np.random.default_rng(batch).normal(size=(batch, 4, height, height + 1)).astype(np.float32)
        theirs = torch.conv2d(torch.tensor(x), torch.tensor(kernel), padding=1).relu().sum((2, 3))
        np.testing.assert_allclose(compiled(tn.tensor(x), tn.tensor(kernel)).numpy(), theirs.numpy(), 1e-4)
    assert len(calls) == 1


def test_a_call_whose_arrays_are_of_other_shapes_is_an_error(calls):
    value = Value(TensorType(dtypes.float32, (2, 3, 8)))
    kernel = Value(TensorType(dtypes.float32, (4, 3, 3)))
    numbers = flat.ConvDimensions(0, 1, (2,), 1, 0, (2,), 0, 1, (2,))
    call = convolutions._call(flat.convolution(value, kernel, numbers).op, {})
    config = tuple(
        (name, "array<i64: 9, 3, 8>" if name == "image" else text) for name, text in call.backend_config
    )
    wrong = CustomCall(call.inputs, library.TARGET, call.result_types, config, (), call.by_columns)
    executable = xla.compile(stablehlo.emit(Function([value, kernel], wrong.results)), Device("cpu"))
    arrays = [xla.put(np.ones(each.shape, np.float32), Device("cpu")) for each in (value, kernel)]
    with pytest.raises(EngineError, match="not those of its arrays"):
        executable(arrays)[0].block_until_ready()


def test_a_loaded_module_cannot_call_it():
    text = f"""
    func.func public @main(%x: tensor<4xf32>) -> tensor<4xf32> {{
      %0 = stablehlo.custom_call @{library.TARGET}(%x, %x) {{api_version = 4 : i32}}
        : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      return %0 : tensor<4xf32>
    }}"""
    with pytest.raises(UnsupportedError, match="not part of it"):
        tn.load_stablehlo(text.encode())
