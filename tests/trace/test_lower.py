"""Programs of the Trace as FlatIR functions."""

from __future__ import annotations

import tenfold as tn
from tenfold.trace.collect import Trace, collect
from tenfold.trace.lower import lower


def program(*tensors: tn.Tensor) -> Trace:
    return collect([each.current() for each in tensors])[0]


def data(*values: float) -> tn.Tensor:
    return tn.tensor(list(values))


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
