"""Recording a node: errors that name the line and the operands, and devices that must agree."""

from __future__ import annotations

import pytest

import tenfold as tn
from tenfold.base.errors import DeviceError, ShapeError
from tenfold.trace import graph


def test_an_error_tells_the_op_the_line_and_where_each_operand_was_made():
    x = tn.ones(2, 3)
    b = tn.zeros(4)
    with pytest.raises(ShapeError) as raised:
        x + b
    text = str(raised.value)
    assert text.startswith("add: cannot broadcast f32[2,3] with f32[4]: 3 and 4 differ in the last dimension")
    first = test_an_error_tells_the_op_the_line_and_where_each_operand_was_made.__code__.co_firstlineno
    assert f"test_graph.py:{first + 4}" in text and "x + b" in text and "^" in text
    assert f"f32[2,3] made at test_graph.py:{first + 1}" in text and "x = tn.ones(2, 3)" in text
    assert f"made at test_graph.py:{first + 2}" in text


def test_lists_of_operands_are_numbered_in_errors():
    with pytest.raises(ShapeError) as raised:
        tn.cat([tn.ones(2, 3), tn.ones(3, 2)])
    assert [operand.name_hint for operand in raised.value.operands] == ["tensors[0]", "tensors[1]"]


def on(device: str, *shape: int) -> graph.Value:
    return graph.Value(tn.ones(*shape).current().type, tn.device(device), buffer=object())


def test_operands_must_be_on_one_device_but_for_numbers_of_the_cpu():
    row = tn.ops.table.find("add.Tensor")
    cuda, cpu = on("cuda:0", 2), on("cpu", 2)
    (result,) = graph.call_op(
        row, [cuda, graph.Value(tn.ones(()).current().type, tn.device("cpu"), buffer=object()), 1], None
    )
    assert result.device is tn.device("cuda:0")
    with pytest.raises(DeviceError, match="operands are on cuda:0 and cpu") as raised:
        graph.call_op(row, [cuda, cpu, 1], None)
    assert raised.value.help == "move one with .to('cuda:0')"
