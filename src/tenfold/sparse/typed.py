"""`tenfold.sparse.FloatTensor` and its like: PyTorch's older types of sparse tensors, one for each dtype."""

from __future__ import annotations

from typing import Any

from tenfold.base.dtypes import DType
from tenfold.sparse.creation import sparse_coo_tensor
from tenfold.sparse.tensors import CooTensor
from tenfold.tensor import Tensor, conversions


class SparseType(type):
    """The type of those types: it answers `isinstance`, and makes sparse tensors of coordinates."""

    dtype: DType

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, CooTensor) and instance.dtype is cls.dtype

    def __call__(cls, *args: Any) -> CooTensor:
        """`FloatTensor(indices, values, size)`, or `FloatTensor(2, 3)` for one that stores nothing."""
        if args and isinstance(args[0], Tensor):
            return sparse_coo_tensor(*args, dtype=cls.dtype)
        sizes = args[0] if args and not isinstance(args[0], int) else args
        return sparse_coo_tensor(tuple(sizes), dtype=cls.dtype)

    def __repr__(cls) -> str:
        return f"<class 'tenfold.sparse.{cls.__name__}'>"


TYPES = {
    name: SparseType(name, (), {"dtype": dtype, "__doc__": f"Sparse tensors of {dtype.name}."})
    for name, dtype in conversions.TYPES.items()
}
