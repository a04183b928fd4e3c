"""Sparse tensors from indices and values, which are checked; and indices from one form to another."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tenfold.base import dtypes
from tenfold.base.errors import ArgumentError, IndexOutOfRange, ShapeError, UnsupportedError, located
from tenfold.sparse.indices import expanded
from tenfold.sparse.tensors import CompressedTensor, CooTensor, compressed, coo
from tenfold.tensor import Tensor, leaf
from tenfold.tensor.dispatch import aten
from tenfold.tensor.interchange import as_tensor


@located
def sparse_coo_tensor(
    indices: Any = None, values: Any = None, size: Sequence[int] | None = None, *, dtype: Any = None,
    device: Any = None, pin_memory: bool = False, requires_grad: bool = False, check_invariants: Any = None,
    is_coalesced: bool | None = None,
) -> CooTensor:  # fmt: skip
    """Make a tensor with `values` at `indices` and zeros elsewhere. Each column of `indices` is the position
    of one element. Values at the same position are summed. With `size` alone, nothing is stored."""
    if values is None:
        size = tuple(indices if size is None else size)
        held = aten("empty")((0,), dtype=dtype, device=device)
        return _leaf(coo(_whole(np.zeros((len(size), 0), np.int64), held), held, size, True), requires_grad)
    held = _values(values, dtype, device, requires_grad)
    where = _whole(indices, held)
    places = where.numpy()
    if places.ndim == 1 and held.ndim == 0:
        held, places, where = held.unsqueeze(0), places[:, None], where.unsqueeze(1)
    elif held.ndim == 0:
        held = held.unsqueeze(0)
    if places.ndim != 2 or places.shape[1] != held.shape[0]:
        raise ShapeError(
            f"indices of {list(places.shape)} do not give a place to each of {list(held.shape)} values"
        )
    if size is None:
        if not places.shape[1]:
            raise ArgumentError("nothing is stored, so the size must be given")
        size = (*(places.max(1) + 1).tolist(), *held.shape[1:])
    rank = places.shape[0]
    if len(size) != rank + held.ndim - 1 or tuple(size[rank:]) != tuple(held.shape[1:]):
        raise ShapeError(
            f"{rank} sparse dimensions and values of {list(held.shape)} do not make {list(size)}"
        )
    if (places < 0).any() or (places >= np.array(size[:rank]).reshape(-1, 1)).any():
        raise IndexOutOfRange(f"some indices lie outside of {list(size)}")
    return _leaf(coo(where, held, size, bool(is_coalesced)), requires_grad)


@located
def sparse_csr_tensor(
    crow_indices: Any, col_indices: Any, values: Any, size: Sequence[int] | None = None, *, dtype: Any = None,
    device: Any = None, pin_memory: bool = False, requires_grad: bool = False, check_invariants: Any = None,
) -> CompressedTensor:  # fmt: skip
    """Make a CSR matrix. The values of row i start at `crow_indices[i]`; `col_indices` are their columns."""
    return _compressed((crow_indices, col_indices), values, size, dtype, device, requires_grad, True)


@located
def sparse_csc_tensor(
    ccol_indices: Any, row_indices: Any, values: Any, size: Sequence[int] | None = None, *, dtype: Any = None,
    device: Any = None, pin_memory: bool = False, requires_grad: bool = False, check_invariants: Any = None,
) -> CompressedTensor:  # fmt: skip
    """Make a CSC matrix. The values of column i start at `ccol_indices[i]`; `row_indices` are their rows."""
    return _compressed((ccol_indices, row_indices), values, size, dtype, device, requires_grad, False)


@located
def sparse_compressed_tensor(
    compressed_indices: Any, plain_indices: Any, values: Any, size: Sequence[int] | None = None, *,
    dtype: Any = None, layout: Any = None, device: Any = None, pin_memory: bool = False,
    requires_grad: bool = False, check_invariants: Any = None,
) -> CompressedTensor:  # fmt: skip
    """Make a matrix of layout `sparse_csr` or `sparse_csc` from its three parts."""
    if layout not in ("sparse_csr", "sparse_csc"):
        raise UnsupportedError(f"layout={layout!r} is not supported", help="use sparse_csr or sparse_csc")
    given = (compressed_indices, plain_indices)
    return _compressed(given, values, size, dtype, device, requires_grad, layout == "sparse_csr")


def _compressed(
    given: tuple[Any, Any],
    values: Any,
    size: Any,
    dtype: Any,
    device: Any,
    requires_grad: bool,
    by_rows: bool,
) -> CompressedTensor:
    held = _values(values, dtype, device, requires_grad)
    starts, others = _whole(given[0], held), _whole(given[1], held)
    begin, lines = starts.numpy(), others.numpy()
    if begin.ndim != 1 or lines.ndim != 1 or held.ndim != 1:
        raise UnsupportedError("a compressed tensor is one matrix of numbers", help="use sparse_coo_tensor")
    if size is None:
        found = (len(begin) - 1, int(lines.max(initial=-1)) + 1)
        size = found if by_rows else found[::-1]
    count, width = size if by_rows else tuple(size)[::-1]
    fits = len(begin) == count + 1 and begin[0] == 0 and begin[-1] == len(lines) == held.shape[0]
    if not fits or (np.diff(begin) < 0).any() or (lines < 0).any() or (lines >= width).any():
        raise ShapeError(f"these indices and values do not make a matrix of {list(size)}")
    taken = np.stack([expanded(begin), lines])
    if np.unique(taken, axis=1).shape[1] < len(lines):
        raise ArgumentError(
            "an element of a compressed matrix is stored more than once",
            help="use sparse_coo_tensor, which sums the parts of an element",
        )
    return _leaf(compressed(starts, others, held, size, by_rows), requires_grad)


def _values(values: Any, dtype: Any, device: Any, requires_grad: bool) -> Tensor:
    held = as_tensor(values, dtype=dtype, device=device)
    return held.detach() if requires_grad else held


def _whole(indices: Any, held: Tensor) -> Tensor:
    """Indices as int64 tensors beside the values."""
    if isinstance(indices, np.ndarray):
        return leaf(np.array(indices, np.int64), held.device)
    return as_tensor(indices, device=held.device).detach().to(dtypes.int64)


def _leaf(made: Any, requires_grad: bool) -> Any:
    if requires_grad:
        made._held.requires_grad_()
    return made


def _convert_indices_from_coo_to_csr(input: Tensor, size: int, *, out_int32: bool = False) -> Tensor:
    """Where each of `size` rows begins, of the rows of elements in order."""
    counts = np.bincount(input.numpy(), minlength=size)
    starts = np.concatenate([[0], np.cumsum(counts)])
    return leaf(starts.astype(np.int32 if out_int32 else np.int64), input.device)


def _convert_indices_from_csr_to_coo(
    crow_indices: Tensor, col_indices: Tensor, *, out_int32: bool = False, transpose: bool = False
) -> Tensor:
    """The row and the column of each element, or with `transpose` the column and the row."""
    where = [expanded(crow_indices.numpy()), col_indices.numpy()]
    stacked = np.stack(where[::-1] if transpose else where)
    return leaf(stacked.astype(np.int32 if out_int32 else np.int64), col_indices.device)
