"""Settings that XLA lacks, or refuses."""

from __future__ import annotations

import pytest

from tenfold import flat
from tenfold.base import dtypes
from tenfold.base.devices import Device
from tenfold.base.errors import EngineError
from tenfold.engines import xla
from tenfold.flat.ir import Function, TensorType, Value
from tenfold.mlir import stablehlo

CPU = Device("cpu")


def test_an_option_that_xla_lacks_is_left_out_with_a_warning(monkeypatch):
    lacking = ("xla_such_as_no_version_has", True)
    monkeypatch.setitem(xla.OPTIONS, "cpu", [lacking])
    x = Value(TensorType(dtypes.float32, (2,)))
    with pytest.warns(UserWarning, match="XLA has no option xla_such_as_no_version_has"):
        xla.compile(stablehlo.emit(Function([x], [flat.exp(x)])), CPU)
    assert xla.OPTIONS["cpu"] == []


def test_other_errors_that_name_an_option_are_raised(monkeypatch):
    wrong = ("xla_backend_optimization_level", "high")
    monkeypatch.setitem(xla.OPTIONS, "cpu", [wrong])
    x = Value(TensorType(dtypes.float32, (2,)))
    with pytest.raises(EngineError, match="xla_backend_optimization_level"):
        xla.compile(stablehlo.emit(Function([x], [flat.exp(x)])), CPU)
    assert xla.OPTIONS["cpu"] == [wrong]
