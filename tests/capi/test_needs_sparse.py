"""A sparse tensor whose indices do not lie in it is an error wherever it is given; the rest goes on."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys

import pytest

from tenfold.base.errors import TenfoldError
from tests.capi.bridge import Bridge, Handle, handles


def refused(tn: Bridge, broken: Handle) -> None:
    """By name, typed, and where elements are read; it can still be asked about, and freed."""
    assert (tn.tn_tensor_dim(broken), tn.tn_tensor_numel(broken), tn.tn_requires_grad(broken)) == (2, 4, 0)
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


def test_so_are_those_in_a_list_that_may_have_none(tn: Bridge) -> None:
    sparse = tn.call("to_sparse", tn.tensor([1, 1], "int64"))
    listed = tn.tn_value_optional_tensor_list(*handles([sparse]))
    tn.call("fill_.Scalar", tn.call("_indices", sparse), 5)
    stack = tn.tn_stack_new()
    try:
        tn.tn_stack_push_tensor(stack, tn.tensor([1.0, 2.0]))
        tn.tn_stack_push(stack, listed)
        with pytest.raises(TenfoldError, match="lie outside of it"):
            tn.tn_call(b"aten::index.Tensor", stack)
    finally:
        tn.tn_stack_free(stack)
        tn.tn_value_free(listed)


EMPTY = """
from tests.capi.bridge import Bridge
from tests.capi.test_needs_sparse import refused

tn, float32, csr, csc = Bridge(), 6, 2, 4
unwritten = [tn.call("empty.memory_format", [2, 2], float32, layout) for layout in (csr, csc)]
for each in unwritten:
    refused(tn, each)
none = tn.call("to_sparse_csr", tn.tensor([[0.0, 0.0], [0.0, 0.0]]))
assert tn.array(tn.call("to_dense", none)).tolist() == [[0.0, 0.0], [0.0, 0.0]]
tn.close()
"""


def test_empty_ones_are_refused_whatever_memory_they_were_made_in() -> None:
    # So that memory from the system is full of bytes that are no zeros.
    environment = {**os.environ, "MALLOC_PERTURB_": "85"}
    done = subprocess.run([sys.executable, "-c", EMPTY], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_the_product_of_a_sparse_matrix_is_written_where_it_fits(tn: Bridge) -> None:
    sparse, vector = tn.call("to_sparse_csr", tn.tensor([[0.0, 1.0], [2.0, 0.0]])), tn.tensor([3.0, 4.0])
    assert tn.array(tn.call("mv.out", sparse, vector, tn.tensor([0.0, 0.0]))).tolist() == [4.0, 6.0]
    with pytest.raises(TenfoldError, match="each row of a sparse self"):
        tn.call("mv.out", sparse, vector, tn.tensor([0.0]))
