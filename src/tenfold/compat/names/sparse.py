"""Tensor's methods about sparse tensors. They load `tenfold.sparse` when one is first called."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tenfold.base.errors import located

METHODS = (
    "ccol_indices", "coalesce", "col_indices", "crow_indices", "dense_dim", "indices", "row_indices", "smm",
    "sparse_dim", "sparse_mask", "to_sparse", "to_sparse_coo", "to_sparse_csc", "to_sparse_csr", "values",
)  # fmt: skip


def install(tensor: type) -> None:
    """Give Tensor these methods."""
    for name in METHODS:
        setattr(tensor, name, _method(name))


def _method(name: str) -> Callable[..., Any]:
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        from tenfold import sparse

        return sparse.method(name)(self, *args, **kwargs)

    call.__name__ = call.__qualname__ = name
    call.__doc__ = f"`{name}` of a sparse tensor, or of one that becomes sparse by it."
    return located(call)
