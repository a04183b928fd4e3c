"""Functions on lists of tensors give what PyTorch's do."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import tenfold as tn
from tenfold.base.errors import ArgumentError
from tenfold.compat.names import FOREACH

WITH_ONE = ((1.5,), ("y",), ([2.0, 0.5],))
CALLS: dict[str, Any] = {
    **dict.fromkeys(("sub", "pow"), WITH_ONE),
    **dict.fromkeys(("add", "mul", "div"), (*WITH_ONE, ("n",))),
    **dict.fromkeys(("maximum", "minimum", "clamp_min", "clamp_max"), WITH_ONE),
    **dict.fromkeys(
        ("addcmul", "addcdiv"), (("y", "y"), ("y", "y", 2.0), ("y", "y", [2.0, 3.0]), ("y", "y", "v"))
    ),
    "lerp": (("y", 0.25), ("y", "y"), ("y", [0.1, 0.2])),
    "copy": (("y",),),
}


def given(xp: Any) -> dict[str, Any]:
    return {
        "x": [xp.tensor([0.5, 0.75]), xp.tensor([[0.25]])],
        "y": [xp.tensor([2.0, 0.5]), xp.tensor([[4.0]])],
        "v": xp.tensor([2.0, 3.0]),
        "n": xp.tensor(2.0),
    }


def called(xp: Any, name: str, arguments: tuple[Any, ...]) -> Any:
    lists = given(xp)
    chosen = [lists.get(each, each) if isinstance(each, str) else each for each in arguments]
    result = getattr(xp, name)(lists["x"], *chosen)
    if name.endswith("_"):
        assert result is lists["x"]
    return list(result)


def test_every_function_on_lists_is_pytorchs():
    cases = [
        (name, arguments)
        for name in FOREACH
        for arguments in CALLS.get(name.removeprefix("_foreach_").removesuffix("_"), [()])
    ]
    ours = [called(tn, *case) for case in cases]
    tn.eval(ours)
    for case, found in zip(cases, ours, strict=True):
        for a, b in zip(found, called(torch, *case), strict=True):
            torch.testing.assert_close(
                torch.tensor(a.numpy()), b, msg=lambda text, case=case: f"{case} {text}"
            )


def test_a_number_may_be_raised_to_a_list():
    assert [each.tolist() for each in tn._foreach_pow(2.0, [tn.tensor([2.0, 1.0]), tn.tensor([[4.0]])])] == [
        [4.0, 2.0],
        [[16.0]],
    ]


def test_lists_of_other_lengths_and_no_lists_are_refused():
    with pytest.raises(ArgumentError, match="a list of 1 does not fit 2 tensors"):
        tn._foreach_add(given(tn)["x"], [1.0])
    with pytest.raises(ArgumentError, match="takes a list of at least one Tensor"):
        tn._foreach_add(tn.ones(2), 1.0)
    with pytest.raises(ArgumentError, match="takes a list of at least one Tensor"):
        tn._foreach_exp([])


@pytest.mark.parametrize(
    ("name", "arguments"),
    [("mul", ("v",)), ("add_", ("v",)), ("sub", ("v",)), ("pow", ("v",)), ("addcmul", ("y", "y", "n"))],
)
def test_a_tensor_for_all_is_a_number_and_a_packed_one_a_vector(name, arguments):
    for xp in (tn, torch):
        with pytest.raises((ArgumentError, RuntimeError, TypeError)):
            called(xp, f"_foreach_{name}", arguments)
