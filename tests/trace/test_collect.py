"""Programs collected from the Trace: order, sharing, keys."""

from __future__ import annotations

import itertools

import tenfold as tn
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
