"""Modules of the torch dialect built as a block goes on: what is emitted when, and what are its results."""

from __future__ import annotations

import pytest

import tenfold as tn
from tenfold.mlir import module_context


def test_a_tensor_prints_as_the_op_that_makes_it():
    with module_context() as module:
        x = tn.ones(3)
        y = x.tanh()
        assert "torch.aten.tanh %1" in repr(y) and "-> !torch.vtensor<[3],f32>" in repr(y)
        value = module.value(x)
        assert value.type == "!torch.vtensor<[3],f32>" and value.op == "torch.aten.ones"
        assert value.uses == ["torch.aten.tanh"]
    assert "torch.aten.tanh" in str(module)


def test_results_are_said_once_and_in_main():
    with module_context() as module:
        x = tn.ones(2)
        with pytest.raises(tn.TraceError, match="another function or a region"):
            module.if_(True, lambda: module.returns(x.tanh()), lambda: None)
        module.returns(x)
        with pytest.raises(tn.TraceError, match="said already"):
            module.returns(1)
    assert "@main() -> !torch.vtensor<[2],f32>" in str(module)
