"""Python functions as sources of TorchScript: their choices, loops and names, and what it cannot express."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

import tenfold as tn
import tenfold.nn.functional as F
from tests.exporting.torchscript import by_pytorch

SCALE = 2.5


def scaled(x, n: int):
    return x * n - SCALE


@tn.jit.script
def looped(x: tn.Tensor, n: int, places: list[int], more: int | None = None) -> tn.Tensor:
    """A function with choices, loops, a helper and constants from outside."""
    for i in range(n):
        if bool(x.sum() > 0):
            x = scaled(x, i + 1)
        else:
            x = F.relu(x, inplace=False) + math.sqrt(2.0) + math.pi
    total = 0
    for each in places:
        total += each
    if more is not None:
        total += more
    return tn.softmax(tn.cat([x, tn.zeros([2], dtype=tn.float32)]), 0) + total


def test_a_scripted_function_keeps_its_choices_and_loops(tmp_path):
    looped.save(tmp_path / "looped.pt")
    theirs = torch.jit.load(tmp_path / "looped.pt")
    ours = tn.jit.load(tmp_path / "looped.pt")
    assert "for" in looped.code and "if" in looped.code
    for start in (-1.0, 2.0):
        for n in (0, 3):
            expected = looped(tn.full((2,), start), n, [1, 2], 3).numpy()
            np.testing.assert_allclose(theirs(torch.full((2,), start), n, [1, 2], 3).numpy(), expected)
            np.testing.assert_allclose(ours(tn.full((2,), start), n, [1, 2], 3).numpy(), expected)


def test_a_scripted_function_is_still_recorded_and_differentiated():
    x = tn.ones(2, requires_grad=True)
    tn.compile(lambda v: looped(v, 0, [1]).sum())(x).backward()
    assert x.grad.shape == (2,)


def keeps_a_tensor(x):
    return x + OUTSIDE


OUTSIDE = tn.ones(2)


def test_what_torchscript_cannot_express_is_refused_with_its_line():
    with pytest.raises(
        tn.UnsupportedError, match=r"keeps_a_tensor, line \d+: TorchScript cannot keep OUTSIDE"
    ):
        _ = tn.jit.script(keeps_a_tensor).code
    with pytest.raises(tn.UnsupportedError, match="has no source of its own"):
        _ = tn.jit.script(lambda x: x * 2).code
    with pytest.raises(tn.UnsupportedError, match="TorchScript cannot express"):
        _ = tn.jit.script(calls_what_is_not_there).code


def calls_what_is_not_there(x):
    return x.no_such_method()


def chosen_by_a_tensor(x):
    if bool(x.sum() > 0):
        act = tn.relu
    else:
        act = tn.tanh
    return act(x)


def rebound_in_a_loop(x, n: int):
    act = tn.relu
    for _ in range(n):
        x = act(x)
        act = tn.tanh
    return x


def unbound_in_a_branch(x):
    act = tn.relu
    while bool(x.sum() > 0):
        act = x * 2
        x = x - act
    return act(x)


@pytest.mark.parametrize("function", [chosen_by_a_tensor, rebound_in_a_loop, unbound_in_a_branch])
def test_a_function_that_is_chosen_when_the_program_runs_is_refused(function):
    with pytest.raises(
        tn.UnsupportedError,
        match=rf"{function.__name__}, line \d+: act names a function or layer chosen in an if",
    ):
        _ = tn.jit.script(function).code


EPS = 0.5


k = 7


@tn.jit.script
def names_of_its_own(x: tn.Tensor, xs: list[int], *, eps: float = EPS) -> tn.Tensor:
    act = tn.abs
    if SCALE > 1:
        act = tn.neg
    act = act(x)
    doubled = [k * 2 for k in xs]
    return act + doubled[0] + eps


def test_local_names_hide_those_outside_and_functions_are_followed_in_straight_code():
    assert "14" not in names_of_its_own.code
    theirs = by_pytorch(names_of_its_own)
    assert theirs(torch.ones(1), [3]).item() == names_of_its_own(tn.ones(1), [3]).item() == 5.5
