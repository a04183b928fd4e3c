"""Recordings of one program at several sizes, merged: what differs is open, and more than that is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import tenfold as tn
from tenfold.base.errors import UnsupportedError
from tenfold.exporting.merging import OpenCall, OpenControlNode, OpenProgram, merged_programs
from tenfold.flat.sizes import Open
from tenfold.func.control_flow import cond, while_loop
from tenfold.runtime.calls import record_call
from tenfold.trace.collect import Trace

SIZES = (5, 7, 12)


def programs(function: Callable[..., Any], *sizes: int) -> list[Trace]:
    """The function, recorded on a vector of each size."""
    return [record_call(function, (tn.ones(size),), {}, tn.Tensor).recording.trace for size in sizes or SIZES]


def merged(function: Callable[..., Any], *sizes: int) -> Trace:
    return merged_programs(programs(function, *sizes), lambda k: f"n = {(sizes or SIZES)[k]}")


def test_sizes_that_differ_are_open_in_types_and_arguments():
    program = merged(lambda x: (x.reshape(1, -1) * 2)[:, : x.shape[0] - 1])
    (leaf,) = program.leaves
    assert leaf.type.shape == (Open(SIZES),)
    assert [node.callee.qualified for node in program.nodes][:2] == ["reshape", "mul.Scalar"]
    assert all(isinstance(node.callee, OpenCall) for node in program.nodes)
    place, index = program.outputs[0]
    assert program.nodes[place].callee.result_types[index].shape == (1, Open([4, 6, 11]))
    assert [node.inputs[0].node for node in program.nodes[1:]] == program.nodes[:-1]


def test_what_is_alike_stays_closed():
    program = merged(lambda x: x.sum() + 3)
    assert program.nodes[-1].callee.result_types[0].shape == ()
    assert 3 in program.nodes[-1].callee.arguments


def test_several_results_of_one_op_stay_apart():
    program = merged(lambda x: (lambda values, places: (places, values))(*x.sort()))
    assert program.outputs == [(0, 1), (0, 0)]
    assert [type.shape for type in program.nodes[0].callee.result_types] == [(Open(SIZES),)] * 2


def test_choices_and_loops_are_merged_inside():
    def chosen(x):
        return cond(x.sum() > 0, lambda x: x * 2, lambda x: x - 1, (x,))

    node = merged(chosen).nodes[-1]
    assert isinstance(node, OpenControlNode) and isinstance(node.callee, OpenProgram)
    assert [part.trace.leaves[0].type.shape for part in node.parts] == [(Open(SIZES),)] * 2
    looped = merged(lambda x: while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, x * 2), (0, x))[1])
    assert looped.nodes[-1].callee.result_types[-1].shape == (Open(SIZES),)


def refused(function: Callable[..., Any], *sizes: int) -> UnsupportedError:
    with pytest.raises(UnsupportedError) as told:
        merged(function, *sizes)
    return told.value


def test_another_op_is_refused_with_both_and_its_place():
    error = refused(lambda x: x.sin() if x.shape[0] < 10 else x.cos())
    assert error.message.endswith("it calls sin at n = 5 and cos at n = 12")
    assert (
        error.op == "sin"
        and error.source.line
        == test_another_op_is_refused_with_both_and_its_place.__code__.co_firstlineno + 1
    )


def test_the_same_op_on_another_tensor_is_refused():
    def function(x):
        both = x.sort()
        return both[0] + 0 * both[1], both[0 if x.shape[0] < 6 else 1].abs().float()

    assert "abs on other tensors at n = 7 than at n = 5" in refused(function).message
    other = tn.ones(()).eval()
    on_leaves = lambda x: x.sum() * 2 if x.shape[0] < 10 else other * 2 + x.sum()
    assert "it calls sum" in refused(on_leaves).message


def test_more_or_fewer_ops_are_refused_with_the_first_of_the_others():
    def function(x):
        for _ in range(x.shape[0]):
            x = x.sin()
        return x

    for sizes in ((5, 7), (7, 5)):
        error = refused(function, *sizes)
        assert error.message.endswith(
            f"it calls {sizes[0]} ops at n = {sizes[0]} and {sizes[1]} at n = {sizes[1]}"
        )
        assert error.op == "sin" and "a loop over a dimension" in error.help
    other_result = lambda x: (lambda a: (a, a.exp()))(x.sin())[0 if x.shape[0] < 6 else 1]
    assert "ops at n = 5" in refused(other_result).message


def test_numbers_of_other_kinds_are_refused():
    error = refused(lambda x: x * (2 if x.shape[0] < 10 else 2.5))
    assert "an argument is 2 at n = 5 and 2.5 at n = 12" in error.message and error.op == "mul"
    error = refused(lambda x: x.sum(None if x.shape[0] > 6 else 0, keepdim=x.shape[0] > 6))
    assert "an argument is (0,) at n = 5 and None at n = 7" in error.message
    error = refused(lambda x: x.sum(0 if x.shape[0] > 6 else None, keepdim=True))
    assert "an argument is None at n = 5 and (0,) at n = 7" in error.message
