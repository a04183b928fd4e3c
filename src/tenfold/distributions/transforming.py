"""Transforms: invertible functions with the logarithms of their Jacobian determinants, and their
compositions. They turn one distribution into another. Each knows its domain and its codomain."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from tenfold.base.errors import ArgumentError, UnsupportedError
from tenfold.distributions import constraints
from tenfold.tensor import Tensor
from tenfold.tensor.dispatch import aten

__all__ = ["ComposeTransform", "IndependentTransform", "Transform", "identity_transform", "summed"]


def summed(value: Tensor, dims: int) -> Tensor:
    """The sum over the last dimensions, so many."""
    return value.sum(list(range(-dims, 0))) if dims > 0 else value


class Transform:
    """y = f(x), its inverse, and log |dy/dx|. If `bijective` is true, `inv` is the inverse."""

    bijective = False
    domain: Any
    codomain: Any

    def __init__(self, cache_size: int = 0):
        if cache_size not in (0, 1):
            raise ArgumentError(f"cache_size is 0 or 1, not {cache_size}")
        self._cache_size = cache_size
        self._last: tuple[Tensor, Tensor] | None = None
        self._back: Transform | None = None

    @property
    def event_dim(self) -> int:
        if self.domain.event_dim != self.codomain.event_dim:
            raise ArgumentError(
                f"{type(self).__name__}: events have {self.domain.event_dim} dimensions before it and "
                f"{self.codomain.event_dim} after; ask its domain or codomain"
            )
        return self.domain.event_dim

    @property
    def inv(self) -> Transform:
        """The inverse transform."""
        if self._back is None:
            self._back = _InverseTransform(self)
        return self._back

    @property
    def sign(self) -> Any:
        """The sign of the derivative: 1 if the transform increases, -1 if it decreases."""
        raise UnsupportedError(f"{type(self).__name__} has no sign")

    def with_cache(self, cache_size: int = 1) -> Transform:
        if self._cache_size == cache_size:
            return self
        if type(self).__init__ is Transform.__init__:
            return type(self)(cache_size=cache_size)
        raise UnsupportedError(f"{type(self)} has no with_cache")

    def __call__(self, x: Tensor) -> Tensor:
        if not self._cache_size:
            return self._call(x)
        if self._last is not None and x is self._last[0]:
            return self._last[1]
        y = self._call(x)
        self._last = x, y
        return y

    def _inv_call(self, y: Tensor) -> Tensor:
        if not self._cache_size:
            return self._inverse(y)
        if self._last is not None and y is self._last[1]:
            return self._last[0]
        x = self._inverse(y)
        self._last = x, y
        return x

    def _call(self, x: Tensor) -> Tensor:
        raise NotImplementedError(f"{type(self).__name__} has no _call")

    def _inverse(self, y: Tensor) -> Tensor:
        raise NotImplementedError(f"{type(self).__name__} has no inverse")

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """log |dy/dx|, one number for each event."""
        raise NotImplementedError(f"{type(self).__name__} has no log_abs_det_jacobian")

    def forward_shape(self, shape: Sequence[int]) -> Sequence[int]:
        return shape

    def inverse_shape(self, shape: Sequence[int]) -> Sequence[int]:
        return shape

    def _parameters(self) -> tuple[Any, ...]:
        return ()

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other) or not isinstance(other, Transform):
            return False
        if type(self)._parameters is Transform._parameters and type(self).__init__ is not Transform.__init__:
            return self is other
        pairs = list(zip(self._parameters(), other._parameters(), strict=True))
        return all(_same(mine, theirs) for mine, theirs in pairs)

    __hash__ = object.__hash__

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


def _same(mine: Any, theirs: Any) -> bool:
    if isinstance(mine, Tensor) or isinstance(theirs, Tensor):
        return mine is theirs or bool((mine == theirs).all())
    return mine == theirs


class _InverseTransform(Transform):
    """A transform, backwards."""

    def __init__(self, transform: Transform):
        super().__init__(transform._cache_size)
        self._back = self._inv = transform

    @property
    def domain(self) -> Any:
        return self._inv.codomain

    @property
    def codomain(self) -> Any:
        return self._inv.domain

    @property
    def bijective(self) -> bool:  # type: ignore[override]
        return self._inv.bijective

    @property
    def sign(self) -> Any:
        return self._inv.sign

    def with_cache(self, cache_size: int = 1) -> Transform:
        return self._inv.with_cache(cache_size).inv

    def _parameters(self) -> tuple[Any, ...]:
        return (self._inv,)

    def __call__(self, x: Tensor) -> Tensor:
        return self._inv._inv_call(x)

    def _inv_call(self, y: Tensor) -> Tensor:
        return self._inv(y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return -self._inv.log_abs_det_jacobian(y, x)

    def forward_shape(self, shape: Sequence[int]) -> Sequence[int]:
        return self._inv.inverse_shape(shape)

    def inverse_shape(self, shape: Sequence[int]) -> Sequence[int]:
        return self._inv.forward_shape(shape)

    def __repr__(self) -> str:
        return f"_InverseTransform({self._inv!r})"


class ComposeTransform(Transform):
    """Several transforms, one after the other."""

    def __init__(self, parts: Sequence[Transform], cache_size: int = 0):
        super().__init__(cache_size)
        self.parts = [part.with_cache(cache_size) for part in parts] if cache_size else list(parts)

    def _parameters(self) -> tuple[Any, ...]:
        return tuple(self.parts)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ComposeTransform) and self.parts == other.parts

    __hash__ = object.__hash__

    @property
    def domain(self) -> Any:
        if not self.parts:
            return constraints.real
        first, dims = self.parts[0].domain, self.parts[-1].codomain.event_dim
        for part in reversed(self.parts):
            dims = max(dims + part.domain.event_dim - part.codomain.event_dim, part.domain.event_dim)
        return constraints.independent(first, dims - first.event_dim) if dims > first.event_dim else first

    @property
    def codomain(self) -> Any:
        if not self.parts:
            return constraints.real
        last, dims = self.parts[-1].codomain, self.parts[0].domain.event_dim
        for part in self.parts:
            dims = max(dims + part.codomain.event_dim - part.domain.event_dim, part.codomain.event_dim)
        return constraints.independent(last, dims - last.event_dim) if dims > last.event_dim else last

    @property
    def bijective(self) -> bool:  # type: ignore[override]
        return all(part.bijective for part in self.parts)

    @property
    def sign(self) -> Any:
        return functools.reduce(lambda found, each: found * each.sign, self.parts, 1)

    @property
    def inv(self) -> Transform:
        if self._back is None:
            self._back = ComposeTransform([part.inv for part in reversed(self.parts)])
            self._back._back = self
        return self._back

    def with_cache(self, cache_size: int = 1) -> Transform:
        return self if self._cache_size == cache_size else ComposeTransform(self.parts, cache_size)

    def __call__(self, x: Tensor) -> Tensor:
        for part in self.parts:
            x = part(x)
        return x

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        if not self.parts:
            return aten("zeros_like")(x)
        places = [x]
        for part in self.parts[:-1]:
            places.append(part(places[-1]))
        places.append(y)
        dims, total = self.domain.event_dim, None
        for part, before, after in zip(self.parts, places, places[1:]):
            term = summed(part.log_abs_det_jacobian(before, after), dims - part.domain.event_dim)
            total = term if total is None else total + term
            dims += part.codomain.event_dim - part.domain.event_dim
        assert total is not None
        return total

    def forward_shape(self, shape: Sequence[int]) -> Sequence[int]:
        for part in self.parts:
            shape = part.forward_shape(shape)
        return shape

    def inverse_shape(self, shape: Sequence[int]) -> Sequence[int]:
        for part in reversed(self.parts):
            shape = part.inverse_shape(shape)
        return shape

    def __repr__(self) -> str:
        return "ComposeTransform(\n    " + ",\n    ".join(repr(part) for part in self.parts) + "\n)"


identity_transform = ComposeTransform([])


class IndependentTransform(Transform):
    """Reinterprets batch dimensions of a transform as dimensions of its events."""

    def __init__(self, base_transform: Transform, reinterpreted_batch_ndims: int, cache_size: int = 0):
        super().__init__(cache_size)
        self.base_transform = base_transform.with_cache(cache_size) if cache_size else base_transform
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims

    def with_cache(self, cache_size: int = 1) -> Transform:
        if self._cache_size == cache_size:
            return self
        return IndependentTransform(self.base_transform, self.reinterpreted_batch_ndims, cache_size)

    def _parameters(self) -> tuple[Any, ...]:
        return self.base_transform, self.reinterpreted_batch_ndims

    @property
    def domain(self) -> Any:
        return constraints.independent(self.base_transform.domain, self.reinterpreted_batch_ndims)

    @property
    def codomain(self) -> Any:
        return constraints.independent(self.base_transform.codomain, self.reinterpreted_batch_ndims)

    @property
    def bijective(self) -> bool:  # type: ignore[override]
        return self.base_transform.bijective

    @property
    def sign(self) -> Any:
        return self.base_transform.sign

    def _call(self, x: Tensor) -> Tensor:
        return self.base_transform(x)

    def _inverse(self, y: Tensor) -> Tensor:
        return self.base_transform.inv(y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return summed(self.base_transform.log_abs_det_jacobian(x, y), self.reinterpreted_batch_ndims)

    def forward_shape(self, shape: Sequence[int]) -> Sequence[int]:
        return self.base_transform.forward_shape(shape)

    def inverse_shape(self, shape: Sequence[int]) -> Sequence[int]:
        return self.base_transform.inverse_shape(shape)

    def __repr__(self) -> str:
        return f"IndependentTransform({self.base_transform!r}, {self.reinterpreted_batch_ndims})"
