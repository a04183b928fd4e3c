"""The program of the paper on lazy tensors, and its listings: the names of ops and SSA values are ours."""

from __future__ import annotations

import re

import pytest
import torch

import tenfold as tp
from tests.papers.conftest import lines


def program():
    inp = tp.full((2, 3), value=0.5)
    out = inp.tanh()
    return out


def test_the_program_is_evaluated():
    inp = tp.full((2, 3), value=0.5)
    out = inp.tanh()
    out.eval()
    assert abs(out[1, 2].item() - 0.46211716) < 1e-6


def test_arguments_may_be_named_as_in_the_listing():
    filled = tp.full(shape=(2, 3), value=0.5, dtype=tp.float32)
    assert filled.shape == (2, 3) and filled[0, 0].item() == 0.5 and tp.ones(shape=(2,)).tolist() == [1, 1]
    with pytest.raises(tp.ArgumentError, match="same"):
        tp.ones(size=(2,), shape=(2,))


def test_the_trace_has_a_line_for_each_call_and_the_type_of_its_output():
    title, fill, tanh, outputs, output = lines(tp.show(program, stage="trace"))
    assert title == "==== Trace IR ====" and outputs == "outputs:"
    assert re.match(r"t0 = aten.full\(size=\(2, 3\), fill_value=0.5\)", fill)
    assert tanh.startswith("t1 = aten.tanh(t0)")
    assert output.strip() == "t1: [shape=(2, 3), dtype=(float32), loc=(cpu)]"


def test_the_trace_says_the_dtype_where_it_was_given():
    text = tp.show(lambda: tp.full((2, 3), value=0.5, dtype=tp.float32), stage="trace")
    assert "t0 = aten.full(size=(2, 3), fill_value=0.5, dtype=float32)" in text


@pytest.mark.parametrize(
    "use", [torch.from_dlpack, lambda out: out.numpy(), repr, str, lambda out: out.eval()]
)
def test_a_tensor_is_evaluated_when_it_is_used(use):
    out = program()
    assert out.current().buffer is None
    use(out)
    assert out.current().buffer is not None


def test_flat_ir_has_the_constant_and_its_broadcast():
    title, constant, broadcast, tanh, outputs, output = lines(tp.show(program, stage="flat"))
    assert outputs == "outputs:" and output.strip() == "t1: [shape=(2, 3), dtype=(float32), loc=(cpu)]"
    assert title == "==== Flat IR ===="
    assert constant.startswith("t_inter1: [shape=(), dtype=(float32), loc=(cpu)] = ConstantOp(value=0.5")
    assert broadcast.startswith("t0: [shape=(2, 3), dtype=(float32), loc=(cpu)] = BroadcastInDimOp(t_inter1")
    assert tanh.startswith("t1: [shape=(2, 3), dtype=(float32), loc=(cpu)] = TanhOp(t0)")


def test_stablehlo_is_the_papers():
    expected = """
module {
  func.func @main() -> tensor<2x3xf32> {
    %0 = stablehlo.constant dense<5.000000e-01> : tensor<f32>
    %1 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f32>) -> tensor<2x3xf32>
    %2 = stablehlo.tanh %1 : tensor<2x3xf32>
    return %2 : tensor<2x3xf32>
  }
}
"""
    names: dict[str, str] = {}
    title, *text = lines(tp.show(program, stage="stablehlo"))
    assert title == "==== StableHLO IR ===="
    numbered = [
        re.sub(r"%\w+", lambda name: names.setdefault(name[0], f"%{len(names)}"), each) for each in text
    ]
    assert numbered == lines(expected)


def test_stablehlo_can_show_the_lines_that_its_ops_are_from():
    line = program.__code__.co_firstlineno
    text = tp.show(program, stage="stablehlo", source_lines=True)
    assert f"stablehlo.tanh %0 : tensor<2x3xf32>  // test_pipeline.py:{line + 2}" in text
    assert f"tensor<f32>  // test_pipeline.py:{line + 1}" in text and "loc(" not in text
    assert "// test_pipeline.py" in tp.show(program, stage="torch", source_lines=True)


def test_methods_are_defined_out_of_line():
    @tp.TENSOR_METHOD_REGISTRY("cube")
    def cube(self) -> tp.Tensor:
        return self * self * self

    try:
        assert tp.full((2,), value=2.0).cube().tolist() == [8, 8]
        assert "cube" in tp.TENSOR_METHOD_REGISTRY
    finally:
        tp.TENSOR_METHOD_REGISTRY.remove("cube")
    assert not hasattr(tp.Tensor, "cube")


def test_a_method_that_tensors_have_is_replaced_only_where_that_is_said():
    with pytest.raises(tp.ArgumentError, match="already"):
        tp.TENSOR_METHOD_REGISTRY("tanh")
    tp.TENSOR_METHOD_REGISTRY("tanh", replace=True)(lambda self: self + 1)
    try:
        assert tp.zeros(1).tanh().tolist() == [1]
    finally:
        tp.TENSOR_METHOD_REGISTRY.remove("tanh")
    assert tp.zeros(1).tanh().tolist() == [0]
