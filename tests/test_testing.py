"""`tenfold.testing` accepts and refuses what PyTorch's does."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import tenfold as tn

F32, F64, F16, I64 = "float32", "float64", "float16", "int64"


def both(case):
    """The same comparison with our tensors and with PyTorch's: whether each raised an AssertionError."""
    verdicts = []
    for lib in (tn, torch):
        actual, expected, options = case(lib)
        try:
            lib.testing.assert_close(actual, expected, **options)
            verdicts.append(None)
        except AssertionError as error:
            verdicts.append(str(error))
    return verdicts


CASES = {
    "equal": lambda t: (t.ones(3), t.ones(3), {}),
    "within": lambda t: (t.ones(3), t.ones(3) + 1e-6, {}),
    "beyond": lambda t: (t.ones(3), t.ones(3) + 1e-3, {}),
    "beyond, allowed": lambda t: (t.ones(3), t.ones(3) + 1e-3, {"rtol": 0, "atol": 1e-2}),
    "shape": lambda t: (t.ones(3), t.ones(1), {}),
    "dtype": lambda t: (t.ones(3), t.ones(3, dtype=t.float64), {}),
    "dtype, allowed": lambda t: (t.ones(3), t.ones(3, dtype=t.float64), {"check_dtype": False}),
    "nan": lambda t: (t.tensor([float("nan")]), t.tensor([float("nan")]), {}),
    "nan, allowed": lambda t: (t.tensor([float("nan")]), t.tensor([float("nan")]), {"equal_nan": True}),
    "infinities": lambda t: (t.tensor([float("inf")]), t.tensor([float("inf")]), {}),
    "other infinity": lambda t: (t.tensor([float("inf")]), t.tensor([-float("inf")]), {}),
    "ints": lambda t: (t.tensor([1, 2]), t.tensor([1, 3]), {}),
    "bools": lambda t: (t.tensor([True]), t.tensor([True]), {}),
    "half": lambda t: (t.ones(2, dtype=t.float16), t.ones(2, dtype=t.float16) * 1.0009, {}),
    "bfloat16": lambda t: (t.ones(2, dtype=t.bfloat16), t.full((2,), 1.01, dtype=t.bfloat16), {}),
    "complex": lambda t: (t.tensor([1 + 1j]), t.tensor([1 + 1.1j]), {}),
    "numbers": lambda t: (1.0, 1.0 + 1e-9, {}),
    "numbers beyond": lambda t: (1.0, 1.0 + 1e-6, {}),
    "int and float": lambda t: (1, 1.0, {"check_dtype": False}),
    "lists": lambda t: ([t.ones(1), 2], [t.ones(1), 2], {}),
    "lists beyond": lambda t: ([t.ones(1), 2], [t.ones(1), 3], {}),
    "lengths": lambda t: ([t.ones(1)], [t.ones(1), t.ones(1)], {}),
    "dicts": lambda t: ({"a": t.ones(1)}, {"a": t.ones(1)}, {}),
    "keys": lambda t: ({"a": t.ones(1)}, {"b": t.ones(1)}, {}),
    "stride": lambda t: (t.ones(2, 3), t.ones(3, 2).t(), {"check_stride": True}),
    "stride, allowed": lambda t: (t.ones(2, 3), t.ones(3, 2).t(), {}),
    "arrays": lambda t: (np.ones(2), np.ones(2), {}),
    "empty": lambda t: (t.ones(0), t.ones(0), {}),
    "large ints": lambda t: (t.tensor([2**62]), t.tensor([2**62 + 1]), {}),
}


@pytest.mark.parametrize("name", CASES)
def test_what_is_close_is_what_pytorch_finds_close(name):
    ours, theirs = both(CASES[name])
    assert (ours is None) == (theirs is None), (ours, theirs)


def test_the_message_says_where_and_how_much():
    with pytest.raises(AssertionError) as caught:
        tn.testing.assert_close({"w": [tn.ones(2, 2)]}, {"w": [tn.tensor([[1.0, 1.0], [1.0, 1.5]])]})
    text = str(caught.value)
    assert "at ['w'][0]: 1 of 4 elements (25.0%)" in text
    assert "greatest absolute difference: 0.5 at (1, 1) (up to 1e-05 allowed)" in text


def test_a_message_of_ones_own():
    with pytest.raises(AssertionError, match="^no$"):
        tn.testing.assert_close(1, 2, msg="no")
    with pytest.raises(AssertionError, match="^so: not close"):
        tn.testing.assert_close(1, 2, msg=lambda text: f"so: {text}")


def test_one_tolerance_alone_is_refused():
    with pytest.raises(tn.ArgumentError, match="together"):
        tn.testing.assert_close(1, 1, rtol=1)


def test_assert_allclose_takes_another_dtype():
    tn.testing.assert_allclose(tn.ones(2), [1.0, 1.0])
    with pytest.raises(AssertionError):
        tn.testing.assert_allclose(tn.ones(2), [1.0, 2.0])


@pytest.mark.parametrize("name", ["float32", "bfloat16", "float64", "int64", "uint8", "bool", "complex64"])
def test_make_tensor_draws_in_pytorchs_range(name):
    made = tn.testing.make_tensor(40, 50, dtype=getattr(tn, name))
    theirs = torch.testing.make_tensor(40, 50, dtype=getattr(torch, name), device="cpu")
    assert made.dtype is getattr(tn, name) and tuple(made.shape) == (40, 50)
    if name == "bool":
        assert set(made.flatten().tolist()) == {True, False}
        return
    wide = tn.view_as_real(made) if name == "complex64" else made.double()
    golden = torch.view_as_real(theirs) if name == "complex64" else theirs.double()
    assert abs(wide.min().item() - golden.min().item()) < 0.2
    assert abs(wide.max().item() - golden.max().item()) < 0.2


def test_make_tensor_follows_its_options():
    made = tn.testing.make_tensor((3, 4), dtype=tn.float32, low=1, high=2, noncontiguous=True)
    assert not made.is_contiguous() and 1 <= made.min().item() < made.max().item() < 2
    assert tn.testing.make_tensor(2, dtype=tn.float32, requires_grad=True).requires_grad
    whole = tn.testing.make_tensor(200, dtype=tn.int32, low=0, high=2, exclude_zero=True)
    assert set(whole.tolist()) == {1}
    with pytest.raises(tn.ArgumentError, match="cannot draw"):
        tn.testing.make_tensor(2, dtype=tn.float32, low=3, high=2)
