"""Programs: saved ones, wrong arguments, and what calls leave behind."""

from __future__ import annotations

import gc
import tracemalloc

import numpy as np
import pytest

import tenfold as tn
from tenfold import flat
from tenfold.base import dtypes
from tenfold.base.devices import Device
from tenfold.base.errors import EngineError
from tenfold.engines import xla
from tenfold.engines.xla import compiling
from tenfold.flat.ir import Function, TensorType, Value
from tenfold.mlir import stablehlo
from tenfold.runtime import compile

CPU = Device("cpu")


def test_a_compiled_program_survives_being_saved():
    x = Value(TensorType(dtypes.float32, (3,)))
    module = stablehlo.emit(Function([x], [flat.mul(x, x), flat.exp(x)]))
    executable = xla.compile(module, CPU)
    again = xla.deserialize(xla.serialize(executable), module, CPU)
    array = np.float32([1, 2, 3])
    for first, second in zip(executable([xla.put(array, CPU)]), again([xla.put(array, CPU)]), strict=True):
        assert xla.fetch(first).tobytes() == xla.fetch(second).tobytes()
    assert "multiply" in executable.hlo()
    for damaged in (b"", b"not a program", xla.serialize(executable)[:100]):
        with pytest.raises(EngineError, match="XLA: "):
            xla.deserialize(damaged, module, CPU)


def test_a_program_given_the_wrong_buffers_raises_an_error_of_ours():
    x = Value(TensorType(dtypes.float32, (3,)))
    executable = xla.compile(stablehlo.emit(Function([x], [flat.exp(x)])), CPU)
    for buffers in ([], [xla.put(np.ones(2, np.float32), CPU)]):
        with pytest.raises(EngineError, match="XLA: "):
            executable(buffers)


@pytest.mark.usefixtures("collects_quickly")
def test_calls_leave_nothing_behind(monkeypatch):
    for module in (compiling, compile):
        monkeypatch.setattr(module, "TURNS", 7)
    value = Value(TensorType(dtypes.float32, (3,)))
    executable = xla.compile(stablehlo.emit(Function([value], [value + value])), CPU)
    buffer = xla.put(np.ones(3, np.float32), CPU)
    double = tn.compile(lambda x: x * 2)
    x = tn.ones(3).eval()
    for call in (lambda: executable([buffer])[0].block_until_ready(), lambda: double(x)):
        call()
        gc.collect()
        tracemalloc.start()
        try:
            before = tracemalloc.take_snapshot()
            for _ in range(500):
                call()
            changes = tracemalloc.take_snapshot().compare_to(before, "filename")
            own = [change for change in changes if change.traceback[0].filename != tracemalloc.__file__]
            assert sum(change.count_diff for change in own) < 50
        finally:
            tracemalloc.stop()
