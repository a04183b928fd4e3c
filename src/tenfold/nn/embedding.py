"""Embeddings: tables of vectors, looked up one by one or in bags."""

from __future__ import annotations

from typing import Any

from tenfold.base.errors import ArgumentError, ShapeError
from tenfold.base.source import capture
from tenfold.nn import draws, functional as F, init
from tenfold.nn.module import Module, in_layer
from tenfold.nn.parameter import Parameter, new_parameter
from tenfold.tensor import Tensor


class _Table(Module):
    """A table of vectors, normally distributed at the start; the row of padding_idx is zero."""

    num_embeddings: int
    embedding_dim: int
    padding_idx: int | None
    weight: Parameter

    def _make_weight(self, given: Tensor | None, freeze: bool, device: Any, dtype: Any) -> None:
        count, width = self.num_embeddings, self.embedding_dim
        if self.padding_idx is not None:
            if not -count <= self.padding_idx < count:
                raise ArgumentError(f"padding_idx {self.padding_idx} is none of the {count} rows")
            self.padding_idx %= count
        if given is None:
            self.weight = new_parameter((count, width), 0, dtype, device, not freeze)
            self.reset_parameters()
        elif tuple(given.shape) != (count, width):
            raise ShapeError(f"the weight is {given.current().type}, not of shape {(count, width)}")
        else:
            self.weight = Parameter(given, not freeze)

    def reset_parameters(self) -> None:
        init.normal_(self.weight)
        if self.padding_idx is not None and not self.weight.is_meta:
            rows = self.weight.numpy(force=True).copy()
            rows[self.padding_idx] = 0
            draws.write(self.weight, rows)


class Embedding(_Table):
    """Looks up the vectors at the given indices

    Input (*) of ints, output (*, embedding_dim). The row of padding_idx starts at zero and gets no gradient.
    With max_norm, rows that are looked up are scaled down to this norm if they exceed it.

        table = nn.Embedding(10, 3)
        table(tn.tensor([[1, 2], [4, 9]])).shape  # [2, 2, 3]
    """

    @in_layer
    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
        _weight: Tensor | None = None,
        _freeze: bool = False,
        device: Any = None,
        dtype: Any = None,
    ):
        super().__init__()
        self.num_embeddings = num_embeddings
        self.embedding_dim = embedding_dim
        self.padding_idx = padding_idx
        self.max_norm = max_norm
        self.norm_type = norm_type
        self.scale_grad_by_freq = scale_grad_by_freq
        self._make_weight(_weight, _freeze, device, dtype)
        self.sparse = sparse

    def forward(self, input: Tensor) -> Tensor:
        return F.embedding(
            input, self.weight, self.padding_idx, self.max_norm, self.norm_type, self.scale_grad_by_freq,
            self.sparse,
        )  # fmt: skip

    def extra_repr(self) -> str:
        parts = [f"{self.num_embeddings}, {self.embedding_dim}"]
        if self.padding_idx is not None:
            parts.append(f"padding_idx={self.padding_idx}")
        if self.max_norm is not None:
            parts.append(f"max_norm={self.max_norm}")
        if self.norm_type != 2:
            parts.append(f"norm_type={self.norm_type}")
        if self.scale_grad_by_freq:
            parts.append(f"scale_grad_by_freq={self.scale_grad_by_freq}")
        if self.sparse:
            parts.append("sparse=True")
        return ", ".join(parts)

    @classmethod
    def from_pretrained(
        cls,
        embeddings: Tensor,
        freeze: bool = True,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
    ) -> Embedding:
        """A table of the given vectors, which are trained only if freeze is False."""
        return cls(
            *_table_sizes(embeddings), padding_idx, max_norm, norm_type, scale_grad_by_freq, sparse,
            _weight=embeddings, _freeze=freeze,
        )  # fmt: skip


class EmbeddingBag(_Table):
    """The sum, mean or maximum of each bag of vectors, without an intermediate tensor of the vectors

    Input (B, N): B bags of N; or (N) with `offsets` (B), where each bag begins. Output (B, embedding_dim).
    per_sample_weights, for mode "sum", scale the vectors.

        bags = nn.EmbeddingBag(10, 3, mode="sum")
        bags(tn.tensor([1, 2, 4, 5]), tn.tensor([0, 3])).shape  # [2, 3]
    """

    @in_layer
    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        mode: str = "mean",
        sparse: bool = False,
        _weight: Tensor | None = None,
        include_last_offset: bool = False,
        padding_idx: int | None = None,
        device: Any = None,
        dtype: Any = None,
    ):
        super().__init__()
        self.num_embeddings = num_embeddings
        self.embedding_dim = embedding_dim
        self.max_norm = max_norm
        self.norm_type = norm_type
        self.scale_grad_by_freq = scale_grad_by_freq
        self.padding_idx = padding_idx
        self._make_weight(_weight, False, device, dtype)
        self.mode = mode
        self.sparse = sparse
        self.include_last_offset = include_last_offset

    def forward(
        self, input: Tensor, offsets: Tensor | None = None, per_sample_weights: Tensor | None = None
    ) -> Tensor:
        return F.embedding_bag(
            input, self.weight, offsets, self.max_norm, self.norm_type, self.scale_grad_by_freq, self.mode,
            self.sparse, per_sample_weights, self.include_last_offset, self.padding_idx,
        )  # fmt: skip

    def extra_repr(self) -> str:
        parts = [f"{self.num_embeddings}, {self.embedding_dim}"]
        if self.max_norm is not None:
            parts.append(f"max_norm={self.max_norm}")
        if self.norm_type != 2:
            parts.append(f"norm_type={self.norm_type}")
        if self.scale_grad_by_freq:
            parts.append(f"scale_grad_by_freq={self.scale_grad_by_freq}")
        parts.append(f"mode={self.mode!r}")
        if self.padding_idx is not None:
            parts.append(f"padding_idx={self.padding_idx}")
        return ", ".join(parts)

    @classmethod
    def from_pretrained(
        cls,
        embeddings: Tensor,
        freeze: bool = True,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        mode: str = "mean",
        sparse: bool = False,
        include_last_offset: bool = False,
        padding_idx: int | None = None,
    ) -> EmbeddingBag:
        """A table of the given vectors, which are trained only if freeze is False."""
        made = cls(
            *_table_sizes(embeddings), max_norm, norm_type, scale_grad_by_freq, mode, sparse, embeddings,
            include_last_offset, padding_idx,
        )  # fmt: skip
        made.weight.requires_grad_(not freeze)
        return made


def _table_sizes(embeddings: Tensor) -> tuple[int, int]:
    if embeddings.ndim != 2:
        raise ShapeError(f"a table of vectors has two dimensions, not {embeddings.ndim}").located(
            "from_pretrained", capture()
        )
    rows, width = embeddings.shape
    return rows, width
