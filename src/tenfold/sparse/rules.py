"""What functions do to sparse tensors: functions of one tensor's values, and changes of layout. Arithmetic is
in `arithmetic.py`, movements are in `movements.py`, products in `products.py`."""

from __future__ import annotations

from typing import Any

import numpy as np

from tenfold.base.errors import (
    ArgumentError,
    DTypeError,
    IndexOutOfRange,
    NotLent,
    ShapeError,
    UnsupportedError,
)
from tenfold.ops.table import TABLE
from tenfold.sparse import indices as places
from tenfold.sparse.table import rule
from tenfold.sparse.tensors import CompressedTensor, CooTensor, SparseTensor, compress, coo
from tenfold.tensor import Tensor, leaf
from tenfold.tensor.dispatch import aten

# Linear functions of elements. Other functions that are 0 at 0 are found by `pointwise.py`.
LINEAR = [name for name, rows in TABLE.items() if any(row.linear for row in rows)]
METHODS = "to float double half bfloat16 int long short char byte cfloat cdouble cpu cuda type_as"


def _linear(name: str) -> None:
    function = aten(name)

    def apply(self: Any, *args: Any, **kwargs: Any) -> Any:
        return self.with_values(function(self._held, *args, **kwargs))

    rule(name, by_values=True)(apply)


def _converting(name: str) -> None:
    def apply(self: Any, *args: Any, **kwargs: Any) -> Any:
        given = [arg._held if isinstance(arg, SparseTensor) else arg for arg in args]
        return self.with_values(getattr(self._held, name)(*given, **kwargs)).on_one_device()

    rule(name, by_values=True)(apply)


for _name in LINEAR:
    _linear(_name)
for _name in METHODS.split():
    _converting(_name)


@rule("bool", by_values=True)
def to_bool(self: Any) -> Any:
    merged = self.merged() if isinstance(self, CooTensor) else self
    return merged.with_values(merged._held.bool())


@rule("type", by_values=True)
def type_of(self: Any, dtype: Any = None, **options: Any) -> Any:
    if dtype is not None:
        return self.with_values(self._held.type(dtype, **options))
    return str(self._held.type()).replace("torch.", "torch.sparse.", 1)


@rule("detach_", by_values=True)
def detach_in_place(self: Any) -> Any:
    self._held = self._held.detach()
    return self


# Between layouts


@rule("coalesce")
def coalesce(self: Any) -> CooTensor:
    return coordinates(self).merged()


@rule("indices")
def indices(self: Any) -> Tensor:
    return _merged_part("indices", self)._where


@rule("values", by_values=True)
def values(self: Any) -> Tensor:
    return (self if isinstance(self, CompressedTensor) else _merged_part("values", self))._held


def _merged_part(name: str, given: Any) -> CooTensor:
    if not coordinates(given)._coalesced:
        raise ArgumentError(
            f"an element may be stored in several parts, so there are no {name} of it yet",
            help=f"call coalesce() first, or _{name}() for the parts",
        )
    return given


def _compressed_part(name: str, field: str, by_rows: bool) -> None:
    def part(self: Any) -> Tensor:
        if not isinstance(self, CompressedTensor) or self._by_rows is not by_rows:
            wanted = "sparse_csr" if by_rows else "sparse_csc"
            raise ArgumentError(f"takes a tensor of layout {wanted}, not of {self.layout}")
        return getattr(self, field)

    rule(name, by_values=True)(part)


_compressed_part("crow_indices", "_starts", True)
_compressed_part("col_indices", "_others", True)
_compressed_part("ccol_indices", "_starts", False)
_compressed_part("row_indices", "_others", False)


@rule("sparse_dim")
def sparse_dim(self: Any) -> int:
    return self.sparse_rank if isinstance(self, SparseTensor) else 0


@rule("dense_dim")
def dense_dim(self: Any) -> int:
    return self.ndim - sparse_dim(self)


@rule("to_dense")
def to_dense(self: Any, dtype: Any = None, *, masked_grad: bool | None = None) -> Tensor:
    """All elements; those that are stored in several parts are summed."""
    held = self._held if dtype is None else self._held.to(dtype)
    zeros = held.new_zeros(tuple(self.shape))
    if not self.sparse_rank:
        return zeros + held.sum(0, dtype=held.dtype)
    return aten("index_put")(zeros, self.rows, held, True)


@rule("to_sparse", "to_sparse_coo", by_values=True)
def to_sparse(self: Any, sparse_dim: int | None = None, *, layout: Any = None, **options: Any) -> Any:
    """A tensor by the coordinates of its elements that are not 0, or by another layout."""
    if layout is not None and layout not in ("sparse_coo", "sparse_csr", "sparse_csc"):
        raise UnsupportedError(f"layout={layout!r} is not supported", help="use sparse_coo or sparse_csr")
    found = self if isinstance(self, SparseTensor) else _stored(self, sparse_dim)
    if layout in ("sparse_csr", "sparse_csc"):
        return compress(coordinates(found), layout == "sparse_csr")
    return coordinates(found)


def _stored(dense: Tensor, sparse_dim: int | None) -> CooTensor:
    rank = dense.ndim if sparse_dim is None else sparse_dim
    if not 0 <= rank <= dense.ndim:
        raise ArgumentError(f"{rank} sparse dimensions of a tensor that has {dense.ndim}")
    kept = dense.detach().numpy() != 0
    kept = kept.any(axis=tuple(range(rank, dense.ndim))) if rank < dense.ndim else kept
    where = places.stacked(np.nonzero(kept)) if rank else np.zeros((0, int(kept)), np.int64)
    found = leaf(where, dense.device)
    return coo(found, dense[tuple(found.unbind(0))] if rank else dense.unsqueeze(0), dense.shape, True)


@rule("to_sparse_csr", by_values=True)
def to_sparse_csr(self: Any, dense_dim: int | None = None) -> CompressedTensor:
    return to_sparse(coordinates(self) if isinstance(self, SparseTensor) else self, layout="sparse_csr")


@rule("to_sparse_csc", by_values=True)
def to_sparse_csc(self: Any, dense_dim: int | None = None) -> CompressedTensor:
    return to_sparse(coordinates(self) if isinstance(self, SparseTensor) else self, layout="sparse_csc")


@rule("sparse_mask")
def sparse_mask(self: Tensor, mask: Any) -> CooTensor:
    """The elements of a tensor that a sparse one stores."""
    dense = self.to_dense() if isinstance(self, SparseTensor) else self
    if tuple(dense.shape) != tuple(mask.shape):
        raise ShapeError(f"a mask of {list(mask.shape)} for a tensor of {list(dense.shape)}")
    return mask.with_values(dense[mask.rows])


@rule("zeros_like", "empty_like")
def zeros_like(
    self: Any, *, dtype: Any = None, layout: Any = None, device: Any = None, **options: Any
) -> Tensor:
    held = self._held.new_zeros((0, *self._held.shape[1:]), dtype=dtype, device=device)
    empty = coo(leaf(np.zeros((self.sparse_rank, 0), np.int64), held.device), held, self.shape, True)
    if layout == "strided":
        return to_dense(empty)
    found: Tensor = empty if layout is None else to_sparse(empty, layout=layout)
    return found


@rule("zero")
def zero(self: Any) -> Tensor:
    return zeros_like(self)


@rule("copy_", by_values=True)
def copy_in_place(self: Any, src: Any, non_blocking: bool = False) -> Any:
    if isinstance(self, SparseTensor) and type(self) is type(src):
        return self.take(src.with_values(src._held.to(self.dtype).clone()))
    if isinstance(self, SparseTensor):
        raise ArgumentError("a tensor of another layout is copied into a sparse one", help="use to_sparse()")
    return self.copy_(src.to_dense())


@rule("__dlpack__")
def to_dlpack(self: Any, *args: Any, **kwargs: Any) -> Any:
    raise NotLent("a sparse tensor is no array", help="call to_dense() first")


@rule("numpy", "__array__", "tolist")
def to_array(self: Any, *args: Any, **kwargs: Any) -> Any:
    raise DTypeError("a sparse tensor is no array", help="call to_dense() first")


@rule("item")
def item(self: Any) -> Any:
    return to_dense(self).item()


@rule("register_hook", by_values=True)
def register_hook(self: Any, hook: Any) -> Any:
    def of_values(gradient: Tensor) -> Any:
        return self.gradient_of_values(hook(self.gradient_of(gradient)))

    return self._held.register_hook(of_values)


@rule("retain_grad", by_values=True)
def retain_grad(self: Any) -> None:
    self._held.retain_grad()


def coordinates(given: Any) -> CooTensor:
    if not isinstance(given, SparseTensor):
        raise ArgumentError(f"takes a sparse tensor, not one of layout {getattr(given, 'layout', None)}")
    return given.coordinates()


def axis_of(dim: int, rank: int) -> int:
    if not -rank <= dim < rank:
        raise IndexOutOfRange(f"dimension {dim} is out of range for a tensor of {rank} dimensions")
    return dim % rank if rank else 0
