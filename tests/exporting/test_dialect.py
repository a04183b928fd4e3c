"""The names of the torch dialect's ops on a module under construction."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from tenfold.exporting.dialect import Dialect, Ops


class Noting(Dialect):
    """A module that builds nothing."""

    def op(self, name: str, *args: Any, **kwargs: Any) -> Any:
        return name, args, kwargs


def test_names_with_dots_are_called_as_ops_with_their_operands():
    module = Noting()
    assert module.aten.add.int(2, 3) == ("aten.add.int", (2, 3), {})
    assert module.aten.add(2, other=3) == ("aten.add", (2,), {"other": 3})
    assert module.prim.ListConstruct(1) == ("prim.ListConstruct", (1,), {})


def test_a_module_has_the_names_that_the_dialect_has():
    module = Noting()
    assert isinstance(module.aten, Ops) and isinstance(module.vtensor.literal, Ops)
    for name in ("atem", "_aten", "__torch__", "ate"):
        with pytest.raises(AttributeError, match=f"no attribute {name}, and the torch dialect no ops"):
            getattr(module, name)


def test_questions_of_pythons_own_are_no_ops():
    aten = Noting().aten
    assert not hasattr(aten, "__len__") and not hasattr(aten.add, "__array__")
    assert aten.__and__.Tensor(1, 2) == ("aten.__and__.Tensor", (1, 2), {})  # which the dialect has
    assert copy.copy(aten.add)(1) == ("aten.add", (1,), {})


def test_names_are_completed_and_printed_with_what_they_take():
    aten = Noting().aten
    assert {"Tensor", "Scalar", "int"} <= set(dir(aten.add))
    assert "add" in dir(aten) and "add.Tensor" not in dir(aten)
    assert dir(aten) == sorted(set(dir(aten)))
    assert any(line.startswith("torch.aten.add.Tensor(") for line in repr(aten.add).splitlines())
    assert repr(aten.no_such_op) == "<ops of torch.aten.no_such_op>"


def test_what_builds_an_op_is_for_each_kind_of_module():
    with pytest.raises(NotImplementedError):
        Dialect().op("aten.add.int", 1, 2)
