"""A sparse tensor whose indices do not lie in it is an error wherever it is given; the rest goes on."""

from __future__ import annotations

import ctypes

import pytest

from tenfold.errors import TenfoldError
from tests.capi.bridge import Bridge, Handle


def refused(tn: Bridge, broken: Handle) -> None:
    """By name, typed, and where elements are read; it can still be freed."""
    with pytest.raises(TenfoldError, match="indices were not written, or lie outside of it"):
        tn.call("to_dense", broken)
    assert tn.typed("tn_sum", broken) is None
    assert "lie outside of it" in tn.tn_error_message().decode()
    assert tn.lib.raw("tn_tensor_get")(broken, (ctypes.c_int64 * 2)(), 2, (ctypes.c_int64 * 4)()) != 0


@pytest.mark.parametrize(
    ("part", "index"),
    [("crow_indices", 1 << 40), ("crow_indices", -1), ("col_indices", 7), ("col_indices", -1)],
)
def test_indices_that_were_written_by_themselves_are_looked_through(
    tn: Bridge, part: str, index: int
) -> None:
    sparse = tn.call("to_sparse_csr", tn.tensor([[0.0, 1.0], [2.0, 0.0]]))
    assert tn.array(tn.call("to_dense", sparse)).tolist() == [[0.0, 1.0], [2.0, 0.0]]
    tn.call("fill_.Scalar", tn.call(part, sparse), index)
    refused(tn, sparse)


def test_so_are_those_of_coordinates(tn: Bridge) -> None:
    sparse = tn.call("to_sparse", tn.tensor([[0.0, 1.0], [2.0, 0.0]]))
    assert tn.array(tn.call("to_dense", sparse)).tolist() == [[0.0, 1.0], [2.0, 0.0]]
    tn.call("fill_.Scalar", tn.call("_indices", sparse), 5)
    refused(tn, sparse)


def test_the_product_of_a_sparse_matrix_is_written_where_it_fits(tn: Bridge) -> None:
    sparse, vector = tn.call("to_sparse_csr", tn.tensor([[0.0, 1.0], [2.0, 0.0]])), tn.tensor([3.0, 4.0])
    assert tn.array(tn.call("mv.out", sparse, vector, tn.tensor([0.0, 0.0]))).tolist() == [4.0, 6.0]
    with pytest.raises(TenfoldError, match="each row of a sparse self"):
        tn.call("mv.out", sparse, vector, tn.tensor([0.0]))
