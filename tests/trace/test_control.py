"""Choices and loops as nodes: what they call, when two of them call the same, and their FlatIR."""

from __future__ import annotations

import tenfold as tn
from tenfold.flat.structured import Case, While
from tenfold.ops.callee import Program
from tenfold.trace.control import COND, WHILE, ControlNode
from tenfold.trace.lower import lower


def choice(predicate, x):
    return tn.cond(predicate, lambda x: x.sin(), lambda x: x - 1, (x,))


def halved(x):
    return tn.while_loop(lambda x: x.sum() > 1, lambda x: (x / 2,), (x,))[0]


def node_of(tensor) -> ControlNode:
    node = tensor.current().node
    assert isinstance(node, ControlNode)
    return node


def test_a_choice_is_a_node_that_calls_a_program():
    node = node_of(choice(tn.tensor(True).eval(), tn.ones(2).eval()))
    assert isinstance(node.callee, Program) and node.callee.name == COND
    on_false, on_true = ([inner.callee.name for inner in part.trace.nodes] for part in node.parts)
    assert (on_false, on_true) == (["sub"], ["sin"])


def test_a_loop_keeps_its_condition_and_its_body():
    node = node_of(halved(tn.ones(4).eval()))
    assert node.callee.name == WHILE
    condition, body = ([inner.callee.name for inner in part.trace.nodes] for part in node.parts)
    assert (condition, body) == (["sum", "gt"], ["div"])


def test_choices_between_the_same_parts_call_one_program():
    predicate, x = tn.tensor(True).eval(), tn.ones(2).eval()
    assert node_of(choice(predicate, x)).callee is node_of(choice(predicate, x)).callee
    assert node_of(choice(predicate, x)).callee is not node_of(choice(predicate, tn.ones(3).eval())).callee


def test_their_fragments_are_one_structured_op():
    chosen = node_of(choice(tn.tensor(True).eval(), tn.ones(2).eval())).callee.fragment
    looped = node_of(halved(tn.ones(4).eval())).callee.fragment
    assert sum(isinstance(op, Case) for op in chosen.ops) == 1
    assert sum(isinstance(op, While) for op in looped.ops) == 1


def test_a_number_that_a_loop_starts_with_is_no_input():
    def counted(x):
        return tn.while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, x * 2), (0, x))

    node = node_of(counted(tn.ones(2).eval())[1])
    assert node.starts == {0: 0} and len(node.inputs) == 1
    assert counted(tn.ones(2))[1].tolist() == [8.0, 8.0]


def test_a_part_that_gives_back_what_it_was_given_computes_nothing():
    x = tn.arange(3.0).eval()
    same = tn.cond(tn.tensor(False).eval(), lambda x: x * 2, lambda x: x.clone(), (x,))
    on_false, _ = node_of(same).parts
    assert not lower(on_false.trace).ops
    assert same.tolist() == [0.0, 1.0, 2.0]
