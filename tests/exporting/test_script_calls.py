"""Calls of TorchScript: arguments by place and by name, gradients, and writes to arguments."""

from __future__ import annotations

import numpy as np
import pytest

import tenfold as tn
from tenfold import jit
from tenfold.exporting import script_calls


def test_functions_give_gradients_by_tensors_within_containers():
    unit = jit.CompilationUnit(
        "def f(parts: Dict[str, Tensor], y: Tensor):\n  return parts['a'] * y, [parts['b'], y.long()], y\n"
    )
    a, b, y = (tn.tensor([number], requires_grad=True) for number in (2.0, 3.0, 5.0))
    product, (same_b, whole), same_y = unit.f({"a": a, "b": b}, y)
    assert not whole.requires_grad
    (product + 10 * same_b + 100 * same_y).backward()
    assert [each.grad.item() for each in (a, b, y)] == [5, 10, 102]
    with pytest.raises(tn.UnsupportedError, match="gradients of gradients"):
        tn.autograd.grad(unit.f({"a": a, "b": b}, y)[0], a, create_graph=True)


def test_what_a_function_writes_to_its_arguments_is_seen():
    unit = jit.CompilationUnit("def f(x: Tensor, y: Tensor):\n  x.add_(y)\n  return x\n")
    x = tn.zeros(2)
    view = x[1:]
    assert unit.f(x, tn.ones(2)).tolist() == x.tolist() == [1, 1] and view.tolist() == [1]


CODE = """def forward(self,
    x: Tensor,
    by: int=2,
    more: float=-1.5,
    names: List[str]=["a) -", "b"],
    last: Optional[Tensor]=None) -> Tensor:
  return x

def other(self, y: Tensor) -> Tensor:
  return y
"""


@pytest.mark.parametrize("args, kwargs, placed", [
    ((), {"x": 1}, [1]),
    ((1,), {"by": 3}, [1, 3]),
    ((1,), {"more": 3.0}, [1, 2, 3.0]),
    ((1, 7), {"last": 5}, [1, 7, -1.5, ["a) -", "b"], 5]),
    ((), {"names": ["c"], "x": 0}, [0, 2, -1.5, ["c"]]),
])  # fmt: skip
def test_arguments_by_name_go_to_their_places_with_defaults_between(args, kwargs, placed):
    given = dict(kwargs)
    assert script_calls._placed("forward", args, given, CODE) == placed
    assert given == kwargs


@pytest.mark.parametrize("args, kwargs, message", [
    ((), {"by": 3}, "needs 'x'"),
    ((1,), {"x": 3}, "'x' is given twice"),
    ((1, 2, 3), {"by": 3}, "'by' is given twice"),
    ((1,), {"bye": 3}, "takes no 'bye'"),
    ((1,), {"y": 3}, "takes no 'y'"),
])  # fmt: skip
def test_arguments_that_do_not_fit_are_refused(args, kwargs, message):
    with pytest.raises(tn.ArgumentError, match=message) as told:
        script_calls._placed("forward", args, kwargs, CODE)
    assert told.value.op == "forward"
    if "bye" in kwargs:
        assert "by" in told.value.help


def test_the_arguments_of_each_method_are_its_own():
    assert script_calls._placed("other", (), {"y": 4}, CODE) == [4]


def test_results_have_tensors_in_the_place_of_arrays():
    joined, other = np.ones(2), np.zeros(3)
    known = tn.ones(2)
    found = script_calls._with_tensors({"a": [joined, 3], "b": (other, None)}, {id(joined): known})
    assert found["a"][0] is known and found["a"][1] == 3
    assert found["b"][0].tolist() == [0, 0, 0] and found["b"][1] is None
