"""Products with sparse matrices. Each stored element is multiplied by the rows it meets and added to a row of
the result, so gradients flow to the values and to the dense factor."""

from __future__ import annotations

from typing import Any

import numpy as np

from tenfold.base.errors import DTypeError, ShapeError
from tenfold.sparse import indices as places
from tenfold.sparse.table import rule
from tenfold.sparse.tensors import CooTensor, SparseTensor, coo
from tenfold.tensor import Tensor, leaf
from tenfold.tensor.dispatch import aten


@rule("mm")
def mm(self: Any, mat2: Any) -> Tensor:
    """The product of two matrices; of two sparse ones it is sparse."""
    _check(self, mat2, 2)
    if isinstance(self, CooTensor) and isinstance(mat2, CooTensor):
        return _sparse_product(self, mat2)
    if isinstance(self, CooTensor):
        rows, columns = self.rows
        terms = self._held.unsqueeze(1) * mat2[columns]
        return aten("index_add")(terms.new_zeros((self.shape[0], mat2.shape[1])), 0, rows, terms)
    rows, columns = mat2.rows
    terms = self[:, rows] * mat2._held
    return aten("index_add")(terms.new_zeros((self.shape[0], mat2.shape[1])), 1, columns, terms)


def _sparse_product(one: CooTensor, two: CooTensor) -> CooTensor:
    one, two = one.merged(), two.merged()
    left, right = one._where.numpy(), two._where.numpy()
    first, second = places.pairs(left, right, one.shape[1])
    where = leaf(places.stacked([left[0][first], right[1][second]]), one.device)
    terms = one._held[leaf(first, one.device)] * two._held[leaf(second, one.device)]
    return coo(where, terms, (one.shape[0], two.shape[1])).merged()


@rule("mv")
def mv(self: Any, vec: Any) -> Tensor:
    return mm(self, _dense(vec).unsqueeze(1)).squeeze(1)


@rule("bmm")
def bmm(self: Any, mat2: Any) -> Tensor:
    """Products of as many matrices as there are in each factor; one is sparse."""
    _check(self, mat2, 3)
    if not isinstance(self, CooTensor):
        return bmm(mat2.transpose(1, 2), self.transpose(1, 2)).transpose(1, 2)
    dense = _dense(mat2)
    batch, height, inner = self.shape
    of, rows, columns = self.rows
    terms = self._held.unsqueeze(1) * dense.reshape(batch * inner, dense.shape[2])[of * inner + columns]
    sums = aten("index_add")(terms.new_zeros((batch * height, dense.shape[2])), 0, of * height + rows, terms)
    return sums.reshape(batch, height, dense.shape[2])


@rule("matmul", "__rmatmul__")
def matmul(self: Any, other: Any) -> Tensor:
    """A product by the ranks of its factors; a sparse matrix multiplies each of several dense ones."""
    if self.ndim == 2 and other.ndim == 1:
        return mv(self, other)
    if self.ndim == 1 and other.ndim == 2:
        return mm(_dense(self).unsqueeze(0), other).squeeze(0)
    if self.ndim == 2 and other.ndim == 2:
        return mm(self, other)
    if self.ndim == 2 and isinstance(self, CooTensor) and other.ndim > 2:
        columns = other.movedim(-2, 0)
        return (
            mm(self, columns.reshape(columns.shape[0], -1)).reshape((-1, *columns.shape[1:])).movedim(0, -2)
        )
    if other.ndim == 2 and isinstance(other, CooTensor):
        return mm(self.reshape(-1, self.shape[-1]), other).reshape((*self.shape[:-1], other.shape[1]))
    return bmm(self, other)


@rule("addmm")
def addmm(self: Any, mat1: Any, mat2: Any, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """beta · self + alpha · (mat1 @ mat2)."""
    product = mm(mat1, mat2)
    return (self if beta == 1 else self * beta) + (product if alpha == 1 else product * alpha)


@rule("linear")
def linear(input: Any, weight: Any, bias: Any = None) -> Tensor:
    product = matmul(input, weight.t())
    return product if bias is None else product + bias


@rule("smm")
def smm(self: Any, mat2: Any) -> Tensor:
    return mm(self, mat2).to_sparse()


def sampled(mask: CooTensor, one: Tensor, two: Tensor, beta: float, alpha: float) -> CooTensor:
    """The elements of a dense product that a sparse matrix stores, added to it."""
    rows, columns = mask.rows
    products = (one[rows] * two.t()[columns]).sum(-1)
    return mask.with_values(mask._held * beta + products * alpha)


def from_diagonals(diagonals: Tensor, offsets: Tensor, shape: tuple[int, int]) -> CooTensor:
    """A matrix whose diagonals, by their offsets from the main one, are the rows of `diagonals`."""
    rows = diagonals if diagonals.ndim == 2 else diagonals.unsqueeze(0)
    number, column = np.indices(tuple(rows.shape))
    row = column - offsets.numpy().reshape(-1, 1)
    kept = (row >= 0) & (row < shape[0]) & (column < shape[1])
    where = leaf(places.stacked([row[kept], column[kept]]), rows.device)
    return coo(where, rows[leaf(number[kept], rows.device), where[1]], shape)


def _dense(given: Any) -> Tensor:
    return given.to_dense() if isinstance(given, SparseTensor) else given


def _check(one: Any, two: Any, rank: int) -> None:
    if one.ndim != rank or two.ndim != rank or one.shape[-1] != two.shape[-2]:
        raise ShapeError(f"cannot multiply {list(one.shape)} by {list(two.shape)}")
    if one.dtype is not two.dtype:
        raise DTypeError(f"cannot multiply {one.dtype.name} by {two.dtype.name}", help="convert one of them")
