"""A tensor that is given to be written holds what the operator wrote, wherever that put it."""

from __future__ import annotations

import pytest

from tenfold.base.errors import TenfoldError
from tests.capi.bridge import Bridge


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64"])
def test_the_result_is_the_tensor_that_was_given(tn: Bridge, dtype: str) -> None:
    x, one, out = tn.tensor([1.0, -2.0, 3.0]), tn.tensor([1.0]), tn.tensor([0, 0, 0], dtype)
    # Where out has another dtype, libtorch computes in a tensor of its own and gives that back.
    result = tn.call("_add_relu.out", x, one, 1, out)
    assert tn.tn_tensor_is_same(result, out) == 1
    assert tn.array(out).dtype == dtype and tn.array(out).tolist() == [2.0, 0.0, 4.0]


def test_a_tensor_that_cannot_hold_the_result_is_an_error(tn: Bridge) -> None:
    x, out = tn.tensor([1.0, -2.0, 3.0]), tn.tensor([0, 0, 0], "int64")
    with pytest.raises(TenfoldError, match="can't be cast to the desired output type Long"):
        tn.call("_add_relu.out", x, x, 1, out)
    assert tn.array(out).tolist() == [0, 0, 0]
