"""What nodes call: ops and programs, of which unused parameters are dropped in one place."""

from __future__ import annotations

import tenfold as tn
from tenfold import flat
from tenfold.base.dtypes import float32
from tenfold.flat.ir import TensorType
from tenfold.ops.callee import OpCall, Program
from tenfold.ops.table import find

VECTOR = TensorType(float32, (3,))


def test_a_node_of_the_table_calls_an_op_and_a_gradient_a_program():
    x = tn.ones(3).requires_grad_()
    y = (x * x).sum()
    y.backward()
    assert isinstance(y.current().node.callee, OpCall)
    assert not isinstance(x.grad.current().node.callee, OpCall)
    assert x.grad.current().node.callee.name == "gradient"


def test_equal_calls_of_an_op_are_one_object():
    x, y = tn.ones(3), tn.zeros(3)
    first, second = ((x + y).current().node.callee, (y + x).current().node.callee)
    assert first is second and first.qualified == "add.Tensor" and first.row is find("add.Tensor")


def test_a_trimmed_program_takes_only_what_its_results_depend_on():
    params = [flat.Value(VECTOR) for _ in range(4)]
    program = Program.trimmed("sums", params, [params[3] + params[1]])
    assert program.takes == (1, 3) and len(program.fragment.params) == 2
    assert program.name == "sums" and program.reached == (0b11,)


def test_gradients_flow_to_all_inputs_of_a_result_that_is_always_the_same():
    x = flat.Value(VECTOR)
    constant = flat.full((3,), 1, float32)
    assert Program(flat.Function([x], [constant], "one")).reached == (1,)
    stopped = Program(flat.Function([x], [flat.stop_gradient(x)], "stopped"))
    assert stopped.reached == (0,)


def test_gradients_flow_to_inputs_without_elements():
    x, empty = flat.Value(VECTOR), flat.Value(TensorType(float32, (0,)))
    assert Program(flat.Function([x, empty], [x * 2], "joined")).reached == (0b11,)
