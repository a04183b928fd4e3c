"""Where gradients pass by a write."""

from __future__ import annotations

import pytest

import tenfold as tn
from tenfold.trace.collect import collect
from tenfold.trace.detours import detours
from tenfold.trace.lower import lower


def leaf(*values: float) -> tn.Tensor:
    return tn.tensor(list(values), requires_grad=True)


def names(function):
    return [op.body.name for op in function.ops if op.name == "tenfold.composite"]


def test_what_is_computed_where_gradients_flow_makes_none():
    trace, (total,) = collect([(leaf(1.0) * 2).sum().current()])
    found = detours(trace, [total.origin], (), "test")
    assert not found.operands and not found.outputs


def test_gradients_of_a_value_written_without_them_go_to_what_it_was():
    y = leaf(1.0, 2.0) * 2
    before = y.current()
    with tn.no_grad():
        y.mul_(3)
    trace, values = collect([y.sum().current(), y.current()])
    found = detours(trace, [each.origin for each in values], (), "test")
    place = trace.nodes.index(before.node), before.index
    assert found.operands == {y.current(): place} and found.outputs == {1: place}
    assert names(lower(trace, whole=True, detours=found)) == ["beside", "beside"]


def test_gradients_of_a_leaf_that_is_written_go_to_the_leaf():
    w = leaf(1.0, 2.0)
    with tn.no_grad():
        w.mul_(3)
    trace, (total,) = collect([(w * w).sum().current()])
    found = detours(trace, [total.origin], (), "test")
    assert found.operands == {w.current(): (-1, 0)}


def test_what_is_no_part_of_the_program_is_refused():
    y = leaf(1.0) * 2
    y.data = tn.ones(1) * 5
    trace, (total,) = collect([y.sum().current()])
    with pytest.raises(tn.TraceError, match="test: gradients pass by a write"):
        detours(trace, [total.origin], (), "test")
