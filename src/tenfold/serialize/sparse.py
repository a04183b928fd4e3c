"""Sparse tensors in files: PyTorch saves the tensors that one is made of, its layout and its size."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tenfold import sparse
from tenfold.base.errors import FormatError, TenfoldError
from tenfold.base.size import Size
from tenfold.tensor import Tensor

REBUILD = "_rebuild_sparse_tensor"
_PREFIX = "torch."
_COUNT = {"sparse_coo": 2, "sparse_csr": 3, "sparse_csc": 3}


def described(tensor: Any) -> tuple[str, tuple[Any, ...]]:
    """The layout by PyTorch's name, and the arguments that `_rebuild_sparse_tensor` takes beside it."""
    coalesced = (tensor.is_coalesced(),) if tensor.layout == "sparse_coo" else ()
    return _PREFIX + tensor.layout, (*held_by(tensor), Size(tensor.shape), *coalesced)


def held_by(tensor: Any) -> list[Tensor]:
    """The plain tensors that a sparse one is made of."""
    return [part for _, part in tensor.parts()]


@dataclass(frozen=True, eq=False)
class PlacedSparse:
    """A sparse tensor of a file, whose parts are still to be read."""

    layout: str
    parts: tuple[Any, ...]
    size: Size
    coalesced: bool

    def finished(self, finish: Callable[[Any], Tensor]) -> Tensor:
        """The tensor. What the file says is checked as the arguments of any program are."""
        *indices, values = [finish(part) for part in self.parts]
        try:
            if self.layout == "sparse_coo":
                made = sparse.sparse_coo_tensor(indices[0], values, self.size)
                return made.coalesce() if self.coalesced else made
            starts, others = indices
            return sparse.sparse_compressed_tensor(starts, others, values, self.size, layout=self.layout)
        except TenfoldError as error:
            raise FormatError(f"a sparse tensor of the file is damaged: {error.message}") from None


def layout(name: Any) -> str:
    """A layout by the name that a file has for it."""
    known = name.removeprefix(_PREFIX) if type(name) is str else ""
    if known not in _COUNT:
        raise FormatError(
            f"the file has a tensor of layout {str(name)[:60]}",
            help=f"layouts that are read are {', '.join(_COUNT)}",
        )
    return known


def placed(layout: Any, arguments: Any, kind: type) -> PlacedSparse:
    """What `_rebuild_sparse_tensor` was called with; its parts must be of this kind."""
    count = _COUNT.get(layout) if type(layout) is str else None
    if count is None or type(arguments) is not tuple or not count < len(arguments) <= count + 2:
        raise FormatError("a sparse tensor of the file is not made of a layout and its parts")
    parts, size, rest = arguments[:count], arguments[count], arguments[count + 1 :]
    if not isinstance(size, Size) or not all(isinstance(part, kind) for part in parts):
        raise FormatError("a sparse tensor of the file is not made of tensors and a size")
    return PlacedSparse(layout, parts, size, bool(rest and rest[0] is True))
