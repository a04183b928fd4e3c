"""Transforms of vectors and matrices: to simplexes and triangular factors, to other shapes, and of parts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from tenfold.base import dtypes
from tenfold.base.errors import ArgumentError
from tenfold.base.size import Size
from tenfold.distributions import constraints
from tenfold.distributions.transforming import Transform, summed
from tenfold.tensor import Tensor
from tenfold.tensor.dispatch import aten

__all__ = [
    "CatTransform", "CorrCholeskyTransform", "LowerCholeskyTransform", "PositiveDefiniteTransform",
    "ReshapeTransform", "SoftmaxTransform", "StackTransform", "StickBreakingTransform",
]  # fmt: skip


class SoftmaxTransform(Transform):
    """exp(x) / sum(exp(x)), which is not invertible: vectors that differ by a constant give the same
    result."""

    domain = constraints.real_vector
    codomain = constraints.simplex

    def _call(self, x: Tensor) -> Tensor:
        return aten("softmax")(x, -1)

    def _inverse(self, y: Tensor) -> Tensor:
        return y.log()


class StickBreakingTransform(Transform):
    """Maps a vector to the simplex by breaking a stick: each element takes a share of what is left."""

    domain = constraints.real_vector
    codomain = constraints.simplex
    bijective = True

    def _left(self, x: Tensor) -> Tensor:
        """How many pieces are to come, from each on."""
        count = x.shape[-1]
        return aten("arange")(count, 0, -1, dtype=x.dtype, device=x.device)

    def _call(self, x: Tensor) -> Tensor:
        broken = _away((x - self._left(x).log()).sigmoid())
        rest = (1 - broken).cumprod(-1)
        pad = aten("constant_pad_nd")
        return pad(broken, [0, 1], 1) * pad(rest, [1, 0], 1)

    def _inverse(self, y: Tensor) -> Tensor:
        before = y[..., :-1]
        rest = (1 - before.cumsum(-1)).clamp(min=dtypes.finfo(y.dtype).tiny)
        return before.log() - rest.log() + self._left(before).log()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        x = x - self._left(x).log()
        return (-x + aten("log_sigmoid")(x) + y[..., :-1].log()).sum(-1)

    def forward_shape(self, shape: Sequence[int]) -> Sequence[int]:
        return Size((*shape[:-1], shape[-1] + 1))

    def inverse_shape(self, shape: Sequence[int]) -> Sequence[int]:
        return Size((*shape[:-1], shape[-1] - 1))


def _away(y: Tensor) -> Tensor:
    """Shares that are not all."""
    limits = dtypes.finfo(y.dtype)
    return y.clamp(limits.tiny, 1 - limits.eps)


class LowerCholeskyTransform(Transform):
    """The lower triangle of a matrix, with its diagonal exponentiated."""

    domain = constraints.independent(constraints.real, 2)
    codomain = constraints.lower_cholesky

    def _call(self, x: Tensor) -> Tensor:
        return x.tril(-1) + x.diagonal(dim1=-2, dim2=-1).exp().diag_embed()

    def _inverse(self, y: Tensor) -> Tensor:
        return y.tril(-1) + y.diagonal(dim1=-2, dim2=-1).log().diag_embed()


class PositiveDefiniteTransform(Transform):
    """L Lᵀ, where L is the result of LowerCholeskyTransform."""

    domain = constraints.independent(constraints.real, 2)
    codomain = constraints.positive_definite

    def _call(self, x: Tensor) -> Tensor:
        factor = LowerCholeskyTransform()(x)
        return factor @ factor.mT

    def _inverse(self, y: Tensor) -> Tensor:
        return LowerCholeskyTransform().inv(aten("linalg_cholesky")(y))


class CorrCholeskyTransform(Transform):
    """Maps a vector to the Cholesky factor of a correlation matrix: the tanh of its elements, scaled so that
    each row has length 1."""

    domain = constraints.real_vector
    codomain = constraints.corr_cholesky
    bijective = True

    def _call(self, x: Tensor) -> Tensor:
        eps = dtypes.finfo(x.dtype).eps
        r = _to_lower(x.tanh().clamp(-1 + eps, 1 - eps), -1)
        left = (1 - r**2).sqrt().cumprod(-1)
        r = r + aten("eye")(r.shape[-1], dtype=r.dtype, device=r.device)
        return r * aten("constant_pad_nd")(left[..., :-1], [1, 0], 1)

    def _inverse(self, y: Tensor) -> Tensor:
        left = 1 - (y * y).cumsum(-1)
        left = aten("constant_pad_nd")(left[..., :-1], [1, 0], 1)
        tangents = _from_lower(y, -1) / _from_lower(left, -1).sqrt()
        return (tangents.log1p() - (-tangents).log1p()) / 2

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        left = 1 - (y * y).cumsum(-1)
        stick = 0.5 * _from_lower(left, -2).log().sum(-1)
        tanh = -2 * (x + aten("softplus")(-2 * x) - math.log(2.0)).sum(-1)
        return stick + tanh

    def forward_shape(self, shape: Sequence[int]) -> Sequence[int]:
        side = round((0.25 + 2 * shape[-1]) ** 0.5 + 0.5)
        if side * (side - 1) // 2 != shape[-1]:
            raise ArgumentError(f"CorrCholeskyTransform: {shape[-1]} numbers do not fill a triangle")
        return Size((*shape[:-1], side, side))

    def inverse_shape(self, shape: Sequence[int]) -> Sequence[int]:
        return Size((*shape[:-2], shape[-1] * (shape[-1] - 1) // 2))


def _to_lower(x: Tensor, offset: int) -> Tensor:
    """A vector as the triangle of a matrix below the diagonal, row by row."""
    side = round((0.25 + 2 * x.shape[-1]) ** 0.5 + 0.5)
    if side * (side - 1) // 2 != x.shape[-1]:
        raise ArgumentError(f"CorrCholeskyTransform: {x.shape[-1]} numbers do not fill a triangle")
    rows, columns = aten("tril_indices")(side, side, offset, device=x.device)
    whole = aten("zeros")([*x.shape[:-1], side * side], dtype=x.dtype, device=x.device)
    return whole.index_copy(-1, rows * side + columns, x).reshape([*x.shape[:-1], side, side])


def _from_lower(y: Tensor, offset: int) -> Tensor:
    """The triangle of a matrix up to a diagonal, row by row."""
    side = y.shape[-1]
    rows, columns = aten("tril_indices")(side, side, offset, device=y.device)
    return y.flatten(-2).index_select(-1, rows * side + columns)


class ReshapeTransform(Transform):
    """Reshapes events."""

    bijective = True

    def __init__(self, in_shape: Sequence[int], out_shape: Sequence[int], cache_size: int = 0):
        self.in_shape, self.out_shape = Size(in_shape), Size(out_shape)
        if math.prod(self.in_shape) != math.prod(self.out_shape):
            raise ArgumentError(f"ReshapeTransform: {in_shape} and {out_shape} differ in their elements")
        super().__init__(cache_size)

    @property
    def domain(self) -> Any:
        return constraints.independent(constraints.real, len(self.in_shape))

    @property
    def codomain(self) -> Any:
        return constraints.independent(constraints.real, len(self.out_shape))

    def with_cache(self, cache_size: int = 1) -> Transform:
        if self._cache_size == cache_size:
            return self
        return ReshapeTransform(self.in_shape, self.out_shape, cache_size)

    def _parameters(self) -> tuple[Any, ...]:
        return self.in_shape, self.out_shape

    def _call(self, x: Tensor) -> Tensor:
        return x.reshape([*x.shape[: x.ndim - len(self.in_shape)], *self.out_shape])

    def _inverse(self, y: Tensor) -> Tensor:
        return y.reshape([*y.shape[: y.ndim - len(self.out_shape)], *self.in_shape])

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        batch = x.shape[: x.ndim - len(self.in_shape)]
        return aten("zeros")(list(batch), dtype=x.dtype, device=x.device)

    def forward_shape(self, shape: Sequence[int]) -> Sequence[int]:
        return Size((*_cut(shape, self.in_shape), *self.out_shape))

    def inverse_shape(self, shape: Sequence[int]) -> Sequence[int]:
        return Size((*_cut(shape, self.out_shape), *self.in_shape))


def _cut(shape: Sequence[int], event: Sequence[int]) -> Sequence[int]:
    batch = len(shape) - len(event)
    if batch < 0 or tuple(shape[batch:]) != tuple(event):
        raise ArgumentError(f"ReshapeTransform: {tuple(shape)} does not end in {tuple(event)}")
    return shape[:batch]


class _Parted(Transform):
    """Transforms of parts along a dimension."""

    def __init__(self, tseq: Sequence[Transform], dim: int = 0, cache_size: int = 0):
        super().__init__(cache_size)
        self.transforms = [each.with_cache(cache_size) for each in tseq] if cache_size else list(tseq)
        self.dim = dim

    @property
    def bijective(self) -> bool:  # type: ignore[override]
        return all(transform.bijective for transform in self.transforms)

    def _apart(self, x: Tensor) -> Sequence[Tensor]:
        raise NotImplementedError

    def _together(self, parts: list[Tensor]) -> Tensor:
        raise NotImplementedError

    def _call(self, x: Tensor) -> Tensor:
        return self._together([f(part) for f, part in zip(self.transforms, self._apart(x), strict=True)])

    def _inverse(self, y: Tensor) -> Tensor:
        return self._together([f.inv(part) for f, part in zip(self.transforms, self._apart(y), strict=True)])

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        parts = zip(self.transforms, self._apart(x), self._apart(y), strict=True)
        return self._together([f.log_abs_det_jacobian(a, b) for f, a, b in parts])


class StackTransform(_Parted):
    """A transform for each slice along a dimension."""

    @property
    def domain(self) -> Any:
        return constraints.stack([transform.domain for transform in self.transforms], self.dim)

    @property
    def codomain(self) -> Any:
        return constraints.stack([transform.codomain for transform in self.transforms], self.dim)

    def with_cache(self, cache_size: int = 1) -> Transform:
        return (
            self if self._cache_size == cache_size else StackTransform(self.transforms, self.dim, cache_size)
        )

    def _apart(self, x: Tensor) -> Sequence[Tensor]:
        return x.unbind(self.dim)

    def _together(self, parts: list[Tensor]) -> Tensor:
        return aten("stack")(parts, self.dim)


class CatTransform(_Parted):
    """A transform for each of several stretches, of `lengths`, along a dimension."""

    def __init__(
        self,
        tseq: Sequence[Transform],
        dim: int = 0,
        lengths: Sequence[int] | None = None,
        cache_size: int = 0,
    ):
        super().__init__(tseq, dim, cache_size)
        self.lengths = [1] * len(self.transforms) if lengths is None else list(lengths)
        if len(self.lengths) != len(self.transforms):
            raise ArgumentError(
                f"CatTransform: {len(self.lengths)} lengths for {len(self.transforms)} transforms"
            )

    @property
    def event_dim(self) -> int:
        return max(transform.event_dim for transform in self.transforms)

    @property
    def length(self) -> int:
        return sum(self.lengths)

    @property
    def domain(self) -> Any:
        return constraints.cat([transform.domain for transform in self.transforms], self.dim, self.lengths)

    @property
    def codomain(self) -> Any:
        return constraints.cat([transform.codomain for transform in self.transforms], self.dim, self.lengths)

    def with_cache(self, cache_size: int = 1) -> Transform:
        if self._cache_size == cache_size:
            return self
        return CatTransform(self.transforms, self.dim, self.lengths, cache_size)

    def _apart(self, x: Tensor) -> Sequence[Tensor]:
        return x.split(self.lengths, self.dim)

    def _together(self, parts: list[Tensor]) -> Tensor:
        return aten("cat")(parts, self.dim)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        found = []
        for f, before, after in zip(self.transforms, self._apart(x), self._apart(y), strict=True):
            found.append(summed(f.log_abs_det_jacobian(before, after), self.event_dim - f.event_dim))
        dim = self.dim - x.ndim if self.dim >= 0 else self.dim
        if dim + self.event_dim < 0:
            return aten("cat")(found, dim + self.event_dim)
        total = found[0]
        for each in found[1:]:
            total = total + each
        return total
