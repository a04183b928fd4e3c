"""Sparse tensors with their dimensions moved, and parts of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tenfold.base.errors import ArgumentError, BadIndex, IndexOutOfRange, ShapeError, UnsupportedError
from tenfold.sparse import indices as places
from tenfold.sparse.rules import axis_of, coordinates
from tenfold.sparse.table import rule
from tenfold.sparse.tensors import CompressedTensor, CooTensor, coo
from tenfold.tensor import Tensor, leaf
from tenfold.tensor.dispatch import aten


@rule("permute")
def permute(self: Any, *dims: Any) -> CooTensor:
    given = dims[0] if len(dims) == 1 and isinstance(dims[0], (tuple, list)) else dims
    order = [axis_of(each, self.ndim) for each in given]
    rank = self.sparse_rank
    if sorted(order) != list(range(self.ndim)):
        raise ArgumentError(f"{list(given)} does not name each of {self.ndim} dimensions once")
    if any((axis < rank) != (place < rank) for place, axis in enumerate(order)):
        raise UnsupportedError("sparse and dense dimensions change places", help="call to_dense() first")
    held = (
        self._held.permute(0, *[axis - rank + 1 for axis in order[rank:]]) if rank < self.ndim else self._held
    )
    shape = [self.shape[axis] for axis in order]
    same = self._coalesced and order[:rank] == list(range(rank))
    return coo(self._where[order[:rank]], held, shape, same)


@rule("transpose", "swapaxes", "swapdims", by_values=True)
def transpose(self: Any, dim0: int, dim1: int) -> Any:
    order = list(range(self.ndim))
    one, two = axis_of(dim0, self.ndim), axis_of(dim1, self.ndim)
    order[one], order[two] = order[two], order[one]
    if isinstance(self, CompressedTensor):  # the same parts, read the other way
        return self.turned() if one != two else self
    return permute(self, order)


@rule("t", "T", "mT", "numpy_T", by_values=True)
def transposed(self: Any) -> Any:
    if self.ndim > 2:
        raise ShapeError(f"t() is of a matrix, not of {self.ndim} dimensions")
    return transpose(self, 0, self.ndim - 1) if self.ndim else self


@rule("unsqueeze")
def unsqueeze(self: Any, dim: int) -> CooTensor:
    axis = axis_of(dim, self.ndim + 1)
    shape = [*self.shape[:axis], 1, *self.shape[axis:]]
    if axis > self.sparse_rank:
        return coo(self._where, self._held.unsqueeze(axis - self.sparse_rank + 1), shape, self._coalesced)
    rows = list(self.rows)
    rows.insert(axis, aten("zeros_like")(rows[0]))
    return coo(aten("stack")(rows), self._held, shape, self._coalesced)


@rule("squeeze")
def squeeze(self: Any, dim: int | None = None) -> CooTensor:
    rank = self.sparse_rank
    gone = [
        axis for axis in range(self.ndim) if self.shape[axis] == 1 and dim in (None, axis, axis - self.ndim)
    ]
    held = self._held
    for axis in sorted([axis for axis in gone if axis >= rank], reverse=True):
        held = held.squeeze(axis - rank + 1)
    kept = [axis for axis in range(rank) if axis not in gone]
    return coo(
        self._where[kept], held, [size for i, size in enumerate(self.shape) if i not in gone], self._coalesced
    )


@rule("select")
def select(self: Any, dim: int, index: int) -> Tensor:
    """The elements at one place along a dimension; a dense tensor if no sparse dimension is left."""
    axis = axis_of(dim, self.ndim)
    size = self.shape[axis]
    if not -size <= index < size:
        raise IndexOutOfRange(f"index {index} is out of range for a dimension of {size}")
    shape = [each for i, each in enumerate(self.shape) if i != axis]
    if axis >= self.sparse_rank:
        return coo(self._where, self._held.select(axis - self.sparse_rank + 1, index), shape, self._coalesced)
    found = leaf(np.nonzero(self._where.numpy()[axis] == index % size)[0], self.device)
    held = self._held[found]
    if self.sparse_rank == 1:
        return held.sum(0, dtype=held.dtype)
    kept = [i for i in range(self.sparse_rank) if i != axis]
    return coo(self._where[kept][:, found], held, shape, self._coalesced)


@rule("index_select")
def index_select(self: Any, dim: int, index: Tensor) -> CooTensor:
    axis = axis_of(dim, self.ndim)
    shape = list(self.shape)
    wanted = _wanted(index, shape[axis])
    shape[axis] = len(wanted)
    if axis >= self.sparse_rank:
        chosen = self._held.index_select(axis - self.sparse_rank + 1, leaf(wanted, self.device))
        return coo(self._where, chosen, shape, self._coalesced)
    merged = self.merged()
    where = merged._where.numpy()
    order = np.argsort(where[axis], kind="stable")
    paired = np.stack([np.arange(len(wanted)), wanted])
    number, found = places.pairs(paired, where[:, order][[axis]], self.shape[axis])
    rows = where[:, order[found]].copy()
    rows[axis] = number
    return coo(leaf(rows, self.device), merged._held[leaf(order[found], self.device)], shape).merged()


def _wanted(index: Tensor, size: int) -> np.ndarray:
    """Indices into a dimension of a size, with the negative ones counted from its end."""
    if index.ndim != 1 or index.layout != "strided" or index.dtype.kind != "int":
        raise BadIndex(f"an index is a dense tensor of integers with one dimension, not {index._value.type}")
    given: np.ndarray = index.numpy().astype(np.int64)
    outside = given[(given < -size) | (given >= size)]
    if len(outside):
        raise IndexOutOfRange(f"index {outside[0]} is out of range for a dimension of {size}")
    return np.where(given < 0, given + size, given)


@rule("__getitem__")
def getitem(self: Any, index: Any) -> Tensor:
    """Numbers and whole slices, as PyTorch takes them for sparse tensors; and a tensor of indices."""
    given = list(index) if isinstance(index, tuple) else [index]
    if Ellipsis in [each for each in given if not isinstance(each, Tensor)]:
        at = given.index(Ellipsis)
        given[at : at + 1] = [slice(None)] * (self.ndim - len(given) + 1)
    result, axis = self, 0
    for each in given:
        if isinstance(each, slice) and each == slice(None):
            axis += 1
        elif isinstance(each, (int, np.integer)) and not isinstance(each, bool):
            result = result.select(axis, int(each))
        elif isinstance(each, Tensor) and each.ndim == 1 and not each.dtype.is_floating_point:
            mask = each.dtype.kind == "bool"
            if mask and each.shape[0] != result.shape[axis]:
                size = result.shape[axis]
                raise IndexOutOfRange(f"a mask of {each.shape[0]} does not fit a dimension of {size}")
            result = result.index_select(axis, each.nonzero().reshape(-1) if mask else each)
            axis += 1
        else:
            raise UnsupportedError(f"a sparse tensor is not indexed by {each!r}", help="use index_select")
    return result


@rule("cat", "concat", "concatenate")
def cat(tensors: Sequence[Any], dim: int = 0) -> CooTensor:
    parts = [coordinates(tensor) for tensor in tensors]
    axis, rank = axis_of(dim, parts[0].ndim), parts[0].sparse_rank
    shape = list(parts[0].shape)
    for part in parts:
        others = [size for i, size in enumerate(part.shape) if i != axis]
        if part.ndim != len(shape) or others != shape[:axis] + shape[axis + 1 :]:
            raise ShapeError(
                f"cannot join tensors of {shape} and {list(part.shape)} along dimension {axis}: "
                "the other dimensions must agree"
            )
        if part.sparse_rank != rank:
            raise ShapeError(f"cannot join tensors of {rank} and {part.sparse_rank} sparse dimensions")
    shape[axis] = sum(part.shape[axis] for part in parts)
    if axis >= rank:
        raise UnsupportedError("can only join sparse tensors along a sparse dimension", help="use to_dense()")
    rows, begin = [], 0
    for part in parts:
        moved = part._where.numpy().copy()
        moved[axis] += begin
        begin += part.shape[axis]
        rows.append(moved)
    joined = leaf(np.concatenate(rows, 1), parts[0].device)
    whole = axis == 0 and all(part._coalesced for part in parts)
    return coo(joined, aten("cat")([part._held for part in parts]), shape, whole)


@rule("stack")
def stack(tensors: Sequence[Any], dim: int = 0) -> CooTensor:
    return cat([unsqueeze(coordinates(tensor), dim) for tensor in tensors], dim)


@rule("hstack")
def hstack(tensors: Sequence[Any]) -> CooTensor:
    return cat(tensors, 0 if tensors[0].ndim == 1 else 1)


@rule("vstack", "row_stack")
def vstack(tensors: Sequence[Any]) -> CooTensor:
    return cat([unsqueeze(coordinates(each), 0) if each.ndim == 1 else each for each in tensors], 0)
