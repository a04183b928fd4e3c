"""Every language tries the overloads of a name in the order of Python's resolver."""

from __future__ import annotations

import pytest

from tenfold.capi import bindings_ops, bindings_r
from tenfold.capi.describe import Description, describe
from tenfold.capi.locate import find_libtorch
from tenfold.ops.fitting import STANDS_FOR
from tenfold.ops.order import in_torch_order
from tenfold.ops.schema import parse


@pytest.fixture(scope="module")
def description() -> Description:
    return describe(find_libtorch())


def test_the_description_says_which_numbers_stand_for_an_argument(description):
    told = description.as_json()["stands_for"]
    assert told == STANDS_FOR
    kinds = {a.type.kind for f in description.functions if f.op for a in parse(f.op).arguments}
    assert kinds & {"bool", "int", "float", "complex", "Scalar"} <= set(told)


def test_lua_and_node_try_overloads_in_pytorchs_order(description):
    for operator in bindings_ops.operators(description):
        # Overloads that may leave a None unsaid come last: random(x, 5) draws below 5, not from 5 to None.
        last = [each.leaves_none_unsaid for each in operator.overloads]
        assert last == sorted(last), operator.name
        for unsaid in (False, True):
            schemas = [each.schema for each in operator.overloads if each.leaves_none_unsaid == unsaid]
            assert schemas == in_torch_order(schemas, False), operator.name


def test_r_tries_overloads_in_pytorchs_order(description):
    for operator in bindings_r.operators(description.functions):
        schemas = [each.schema for each in operator.forms]
        assert schemas == in_torch_order(schemas, False), operator.name
        assert operator.name != "add" or [each.overload for each in schemas] == ["Tensor", "Scalar"]
