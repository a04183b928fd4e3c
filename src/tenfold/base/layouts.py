"""PyTorch's names for how tensors lie in memory. Ours lie in one way: dense, row by row.

Each is a text, and arguments take it as such: `layout="strided"` means `layout=tenfold.strided`."""

from __future__ import annotations

from tenfold.base import package


class layout(str):
    """A word for how elements are kept, `tenfold.strided` for example."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"{package.shown}.{self!s}"


class memory_format(str):
    """A word for the order of dimensions in memory, `tenfold.contiguous_format` for example."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"{package.shown}.{self!s}"


strided = layout("strided")
sparse_coo, sparse_csr, sparse_csc = layout("sparse_coo"), layout("sparse_csr"), layout("sparse_csc")
sparse_bsr, sparse_bsc, jagged = layout("sparse_bsr"), layout("sparse_bsc"), layout("jagged")
contiguous_format, preserve_format = memory_format("contiguous_format"), memory_format("preserve_format")
legacy_contiguous_format = contiguous_format  # PyTorch's older name
channels_last, channels_last_3d = memory_format("channels_last"), memory_format("channels_last_3d")
