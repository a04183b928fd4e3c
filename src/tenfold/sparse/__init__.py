"""`tenfold.sparse`: tensors that store only some elements, by coordinates (COO), rows (CSR) or columns (CSC).

```python
matrix = tenfold.sparse_coo_tensor([[0, 1], [2, 0]], [3.0, 4.0], (2, 3))
product = matrix @ tenfold.ones(3, 2)
```
"""

from __future__ import annotations

import contextlib
from typing import Any

from tenfold.base.errors import UnsupportedError, located, unknown_name
from tenfold.sparse import arithmetic, movements, products
from tenfold.sparse.creation import (
    _convert_indices_from_coo_to_csr,
    _convert_indices_from_csr_to_coo,
    sparse_compressed_tensor,
    sparse_coo_tensor,
    sparse_csc_tensor,
    sparse_csr_tensor,
)
from tenfold.sparse.rules import coordinates, to_sparse
from tenfold.sparse.table import RULES
from tenfold.sparse.tensors import SparseTensor
from tenfold.sparse.typed import TYPES
from tenfold.tensor import Tensor
from tenfold.tensor.dispatch import aten

__all__ = [
    "SparseTensor", "_convert_indices_from_coo_to_csr", "_convert_indices_from_csr_to_coo", "addmm",
    "check_sparse_tensor_invariants", "log_softmax", "mm", "movements", "sampled_addmm", "softmax",
    "sparse_compressed_tensor", "sparse_coo_tensor", "sparse_csc_tensor", "sparse_csr_tensor", "spdiags",
    "sum",
]  # fmt: skip


def method(name: str) -> Any:
    """The implementation of a sparse method of Tensor for dense tensors."""
    return RULES[name]


# The functions of `torch.sparse`


@located
def mm(mat1: Tensor, mat2: Tensor, reduce: str = "sum") -> Tensor:
    """The product of two matrices, at least one of which is sparse."""
    if reduce != "sum":
        raise UnsupportedError(f"reduce={reduce!r} is not supported", help="only sums are computed")
    return aten("mm")(mat1, mat2)


@located
def addmm(mat: Tensor, mat1: Tensor, mat2: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    """beta · mat + alpha · (mat1 @ mat2), where mat1 is sparse."""
    return aten("addmm")(mat, mat1, mat2, beta=beta, alpha=alpha)


@located
def sum(input: Tensor, dim: Any = None, dtype: Any = None) -> Tensor:
    """The sum of a sparse tensor, of all elements or along dimensions; a sparse result keeps the dtype."""
    if dim is None:
        return aten("sum")(input, dtype=dtype)
    total = aten("sum")(input, dim, dtype=dtype)
    return total if dtype is not None or total.layout == "strided" else total.to(input.dtype)


@located
def softmax(input: Tensor, dim: int, *, dtype: Any = None) -> Tensor:
    """The softmax over the stored elements along a dimension."""
    return arithmetic.softmax(coordinates(input), dim, dtype, False)


@located
def log_softmax(input: Tensor, dim: int, *, dtype: Any = None) -> Tensor:
    """The logarithm of `softmax`."""
    return arithmetic.softmax(coordinates(input), dim, dtype, True)


@located
def sampled_addmm(
    input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: float = 1.0, alpha: float = 1.0
) -> Tensor:
    """beta · input + alpha · (mat1 @ mat2), at the elements that `input` stores."""
    found = products.sampled(coordinates(input), mat1, mat2, beta, alpha)
    return found if input.layout == "sparse_coo" else input.with_values(found._held)


@located
def spdiags(diagonals: Tensor, offsets: Tensor, shape: tuple[int, int], layout: Any = None) -> Tensor:
    """Make a sparse matrix from diagonals."""
    made = products.from_diagonals(diagonals, offsets, shape)
    return made if layout in (None, "sparse_coo") else to_sparse(made, layout=layout)


class check_sparse_tensor_invariants(contextlib.ContextDecorator):
    """A `with` block or a decorator without effect: indices are always checked."""

    def __init__(self, enable: bool = True):
        self.enabled = enable

    def __enter__(self) -> None:
        return None

    def __exit__(self, *error: Any) -> None:
        return None

    @staticmethod
    def is_enabled() -> bool:
        return True

    @staticmethod
    def enable() -> None:
        """Does nothing: they are checked."""

    @staticmethod
    def disable() -> None:
        """Does nothing: they are checked."""


def __getattr__(name: str) -> Any:
    if name in TYPES:
        return TYPES[name]
    raise unknown_name("tenfold.sparse", name, globals())
