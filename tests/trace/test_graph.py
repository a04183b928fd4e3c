"""Programs collected from the Trace: order, sharing, keys, and their FlatIR."""

from __future__ import annotations

import itertools

import pytest

import tenfold as tn
from tenfold.base.errors import DeviceError, ShapeError
from tenfold.trace import graph
from tenfold.trace.collect import Trace, collect
from tenfold.trace.lower import lower


def program(*tensors: tn.Tensor) -> Trace:
    return collect([each.current() for each in tensors])[0]


def names(found: Trace) -> list[str]:
    return [node.callee.row.qualified for node in found.nodes]


def data(*values: float) -> tn.Tensor:
    return tn.tensor(list(values))


def test_nodes_come_after_their_inputs_and_once():
    x = data(1.0, 2.0)
    shared = x.exp()
    total = (shared + shared.sin()) * shared
    assert names(program(total)) == ["exp", "sin", "add.Tensor", "mul.Tensor"]
    assert names(program(total, shared, total)) == names(program(total))


def test_inputs_are_collected_in_the_order_of_their_first_use():
    x, y, z = data(1.0), data(2.0), data(3.0)
    found = program((y + x) * (z - y))
    assert found.leaves == [y.current(), x.current(), z.current()]


def test_outputs_name_a_result_of_a_node_or_an_input():
    x = data(3.0, 1.0)
    largest, place = x.max(0)
    found = program(place, x, largest)
    assert found.outputs == [(0, 1), (-1, 0), (0, 0)]
    assert [value.type for value in lower(found).results] == [
        place.current().type,
        x.current().type,
        largest.current().type,
    ]


def test_what_was_computed_is_an_input_of_what_comes_after():
    x = data(1.0, 2.0)
    middle = x.exp()
    late = middle.sin()
    assert names(program(late)) == ["exp", "sin"]
    middle.eval()
    assert names(program(late)) == ["sin"]
    assert program(late).leaves == [middle.current()]


def test_values_needed_on_the_way_can_be_given_back():
    x = data(1.0)
    inner = x.exp()
    outer = inner.sin()
    seen: dict = {}

    def also(uses):
        seen.update(uses)
        return [inner.current()]

    found, given = collect([outer.current()], also)
    assert seen == {inner.current(): 1}
    assert given == [outer.current(), inner.current()] and found.outputs == [(1, 0), (0, 0)]


STRUCTURES = {
    "x + y": lambda x, y: x + y,
    "y + x": lambda x, y: y + x,
    "x + x": lambda x, y: x + x,
    "x - y": lambda x, y: x - y,
    "x * 2": lambda x, y: x * 2,
    "x * 2.0": lambda x, y: x * 2.0,
    "x * 3": lambda x, y: x * 3,
    "(x + y) * x": lambda x, y: (x + y) * x,
    "(x + y) * y": lambda x, y: (x + y) * y,
    "x.sum()": lambda x, y: x.sum(),
    "x.sum(0)": lambda x, y: x.sum(0),
    "values": lambda x, y: x.max(0)[0],
    "places": lambda x, y: x.max(0)[1],
    "both": lambda x, y: tuple(x.max(0)),
    "both, turned": lambda x, y: tuple(x.max(0))[::-1],
    "x, then x + x": lambda x, y: (x, x + x),
    "x + x, then x": lambda x, y: (x + x, x),
    "exp, sin": lambda x, y: (x.exp(), x.sin()),
    "exp twice": lambda x, y: x.exp().exp(),
    "x * 0.0": lambda x, y: x * 0.0,
    "x * -0.0": lambda x, y: x * -0.0,
    "x * True": lambda x, y: x * True,
}


def key(name: str, *values: tn.Tensor) -> tuple:
    results = STRUCTURES[name](*values)
    return program(*(results if isinstance(results, tuple) else (results,))).key


def test_programs_of_one_structure_share_a_key_whatever_their_data():
    for name in STRUCTURES:
        first = key(name, data(1.0, 2.0), data(3.0, 4.0))
        assert key(name, data(5.0, 6.0), tn.zeros(2).eval()) == first, name


def test_programs_of_other_structure_have_other_keys():
    x, y = data(1.0, 2.0), data(3.0, 4.0)
    keys = {name: key(name, x, y) for name in STRUCTURES}
    keys["x + y of float64"] = key("x + y", x.to(tn.float64).eval(), y.to(tn.float64).eval())
    keys["x + y of another shape"] = key("x + y", data(1.0), data(2.0))
    keys["x + y of int64"] = key("x + y", tn.tensor([1, 2]), tn.tensor([3, 4]))
    # Addition's two orders read two inputs, first one, then the other: they are the same program.
    del keys["y + x"]
    for (a, one), (b, other) in itertools.combinations(keys.items(), 2):
        assert one != other, (a, b)


def test_a_program_lowers_to_a_function_of_its_inputs():
    x, y = tn.tensor([[1.0, 2.0]]), tn.tensor([[3.0], [4.0]])
    found = program((x @ y).tanh(), y)
    function = lower(found)
    assert [param.type for param in function.params] == [leaf.type for leaf in found.leaves]
    assert [param.name for param in function.params] == ["p0", "p1"]
    assert function.results[1] is function.params[1]
    assert [op.name for op in function.ops] == ["stablehlo.dot_general", "stablehlo.tanh"]
    assert [op.source.line for op in function.ops] == [found.nodes[0].source.line] * 2
    assert function.results[0].name == "t1"


def test_a_program_is_lowered_anew_each_time():
    found = program(data(1.0).exp())
    first, second = lower(found), lower(found)
    assert first.ops[0] is not second.ops[0] and first.params[0] is not second.params[0]


def test_an_op_that_returns_its_input_gives_the_parameter_itself():
    x = tn.tensor([[1.0, 2.0]])
    function = lower(program(x.view(1, 2)))
    assert function.results[0] is function.params[0] and function.ops == ()


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
