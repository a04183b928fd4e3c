"""Arithmetic with sparse tensors, sums of their elements, and softmax."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tenfold.base import dtypes
from tenfold.base.errors import ArgumentError, DTypeError, ShapeError, UnsupportedError
from tenfold.sparse import indices as places
from tenfold.sparse.rules import axis_of, coordinates
from tenfold.sparse.table import rule
from tenfold.sparse.tensors import CompressedTensor, CooTensor, SparseTensor, compress, coo
from tenfold.tensor import Tensor, leaf
from tenfold.tensor.dispatch import aten


@rule("add")
def add(self: Any, other: Any, *, alpha: Any = 1) -> Any:
    """Of two sparse tensors the elements of both; a dense tensor with a sparse one added to it."""
    if not isinstance(other, SparseTensor):
        raise ArgumentError(
            "cannot add a dense tensor or a number to a sparse tensor",
            help="write dense + sparse, or call to_dense()",
        )
    if tuple(self.shape) != tuple(other.shape):
        raise ShapeError(f"cannot add tensors of {list(self.shape)} and {list(other.shape)}")
    other = coordinates(other)
    held = other._held
    if alpha != 1 or isinstance(alpha, bool):
        held = held.to(dtypes.promote_types(self.dtype, held.dtype)) * alpha
    if not isinstance(self, SparseTensor):
        if self.dtype is held.dtype and other.sparse_rank:
            return aten("index_put")(self, other.rows, held, True)
        return self + other.with_values(held).to_dense()
    ours, theirs = self._where.numpy(), other._where.numpy()
    if self.sparse_rank == other.sparse_rank and np.array_equal(ours, theirs):
        return coo(self._where, self._held + held, self.shape, self._coalesced and other._coalesced)
    if self.sparse_rank != other.sparse_rank:
        raise ShapeError(
            f"cannot add tensors of {self.sparse_rank} and {other.sparse_rank} sparse dimensions"
        )
    where = leaf(np.concatenate([ours, theirs], 1), self.device)
    both = coo(where, aten("cat")([self._held, held]), self.shape)
    return both.merged() if self._coalesced and other._coalesced else both


@rule("add_", by_values=True)
def add_in_place(self: Any, other: Any, *, alpha: Any = 1) -> Any:
    if isinstance(self, SparseTensor):
        layout = self._by_rows if isinstance(self, CompressedTensor) else None
        result = add(coordinates(self), other, alpha=alpha)
        return self.take(result if layout is None else compress(result, layout))
    other = coordinates(other)
    held = other._held
    if alpha != 1:
        held = held.to(dtypes.promote_types(self.dtype, held.dtype)) * alpha
    if tuple(self.shape) != tuple(other.shape):
        raise ShapeError(f"cannot add {list(other.shape)} to {list(self.shape)} in place")
    if not dtypes.can_cast(held.dtype, self.dtype):
        raise DTypeError(f"cannot add values of {held.dtype.name} to a tensor of {self.dtype.name} in place")
    held = held.to(self.dtype)
    return self.index_put_(other.rows, held, True) if other.sparse_rank else self.add_(held.sum(0))


@rule("sub", "subtract")
def sub(self: Any, other: Any, *, alpha: Any = 1) -> Any:
    return add(self, other, alpha=-alpha)


@rule("sub_", "subtract_", by_values=True)
def sub_in_place(self: Any, other: Any, *, alpha: Any = 1) -> Any:
    return add_in_place(self, other, alpha=-alpha)


@rule("mul", "multiply", "__rmul__")
def mul(self: Any, other: Any) -> Any:
    """Products of elements: those that a sparse factor does not store are 0."""
    if not isinstance(self, SparseTensor):
        self, other = other, self
    if not isinstance(other, Tensor) or other.ndim == 0:
        factor = other.to_dense() if isinstance(other, SparseTensor) else other
        return self.with_values(self._held * factor)
    if not isinstance(other, SparseTensor):
        return self.with_values(self._held * other.expand(tuple(self.shape))[self.rows])
    if tuple(self.shape) != tuple(other.shape) or self.sparse_rank != other.sparse_rank:
        raise ShapeError(f"cannot multiply sparse tensors of {list(self.shape)} and {list(other.shape)}")
    dtype = dtypes.promote_types(self.dtype, other.dtype)
    one, two = (each.with_values(each._held.to(dtype)).merged() for each in (self, other))
    sizes = self.shape[: self.sparse_rank]
    first, second = places.common(one._where.numpy(), two._where.numpy(), sizes)
    places_of = [leaf(each, self.device) for each in (first, second)]
    product = one._held[places_of[0]] * two._held[places_of[1]]
    return coo(
        leaf(np.ascontiguousarray(one._where.numpy()[:, first]), self.device), product, self.shape, True
    )


@rule("div", "divide", "true_divide")
def div(self: Any, other: Any, *, rounding_mode: str | None = None) -> Any:
    if not isinstance(self, SparseTensor) or (isinstance(other, Tensor) and other.ndim):
        raise ArgumentError("can only divide a sparse tensor by one number", help="call to_dense() on it")
    if rounding_mode is not None:
        self = self.merged()
    divisor = other.to_dense() if isinstance(other, SparseTensor) else other
    return self.with_values(aten("div")(self._held, divisor, rounding_mode=rounding_mode))


@rule("pow")
def power(self: Any, exponent: Any) -> Any:
    if not isinstance(self, SparseTensor) or isinstance(exponent, Tensor) or not exponent > 0:
        raise ArgumentError("can only raise a sparse tensor to a power above 0", help="use to_dense()")
    merged = self.merged()
    return merged.with_values(merged._held**exponent)


# Sums


@rule("sum")
def sum_of(self: Any, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """The sum of all elements, as a dense tensor; along dimensions, as a sparse one while any is left."""
    held = self._held if dtype is None else self._held.to(dtype)
    if dim is None or (isinstance(dim, (tuple, list)) and not dim):
        return held.sum()
    if dtype is None and held.dtype.kind in ("bool", "int"):
        held = held.to(dtypes.int64)
    axes = {axis_of(each, self.ndim) for each in ([dim] if isinstance(dim, int) else dim)}
    rank = self.sparse_rank
    dense = [axis - rank + 1 for axis in axes if axis >= rank]
    held = held.sum(dense) if dense else held
    kept = [axis for axis in range(rank) if axis not in axes]
    shape = [size for axis, size in enumerate(self.shape) if axis not in axes]
    if kept:
        result: Tensor = coo(self._where[kept], held, shape, len(kept) == rank and self._coalesced).merged()
    else:
        result = held.sum(0)
    if keepdim:
        for axis in sorted(axes):
            result = result.unsqueeze(axis)
    return result


@rule("norm")
def norm(self: Any, p: Any = 2, dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Any:
    axes = [dim] if isinstance(dim, int) else list(dim or ())
    if axes and sorted(axis_of(axis, self.ndim) for axis in axes) != list(range(self.ndim)):
        raise UnsupportedError("can only compute the norm of all elements of a sparse tensor")
    held = self.merged()._held
    found = aten("norm")(held if dtype is None else held.to(dtype), 2 if p in ("fro", None) else p)
    return found.reshape((1,) * self.ndim) if keepdim else found


@rule("linalg_vector_norm", "vector_norm")
def vector_norm(self: Any, ord: Any = 2, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    return norm(self, ord, dim, keepdim, dtype)


@rule("any")
def any_of(self: Any) -> Tensor:
    return self.merged()._held.any()


def softmax(self: CooTensor, dim: int, dtype: Any, logarithm: bool) -> CooTensor:
    """The softmax over the elements that are stored; those that are not count as minus infinity."""
    merged = self.merged()
    held = merged._held if dtype is None else merged._held.to(dtype)
    axis = axis_of(dim, self.ndim)
    if axis >= self.sparse_rank:
        name = "log_softmax" if logarithm else "softmax"
        return merged.with_values(aten(name)(held, axis - self.sparse_rank + 1))
    where = np.delete(merged._where.numpy(), axis, 0)
    numbers = places.keys(where, [size for i, size in enumerate(self.shape[: self.sparse_rank]) if i != axis])
    groups, group = np.unique(numbers, return_inverse=True)
    group_of, count = leaf(group.reshape(-1), self.device), len(groups)
    block = tuple(held.shape[1:])
    spread = group_of.reshape((-1, *[1] * len(block))).expand((len(numbers), *block))
    lowest = aten("full")((count, *block), -math.inf, dtype=held.dtype, device=held.device)
    largest = aten("scatter_reduce")(lowest, 0, spread, held.detach(), "amax")
    shifted = held - largest[group_of]
    sums = aten("index_add")(held.new_zeros((count, *block)), 0, group_of, shifted.exp())
    return merged.with_values(shifted - sums.log()[group_of] if logarithm else shifted.exp() / sums[group_of])
