"""Transforms of single numbers: exponentials, powers, curves that lead into intervals, and straight lines."""

from __future__ import annotations

import math
from typing import Any

from tenfold.base import dtypes
from tenfold.distributions import constraints
from tenfold.distributions.distribution import Distribution
from tenfold.distributions.transforming import Transform, summed
from tenfold.tensor import Tensor
from tenfold.tensor.dispatch import aten

__all__ = [
    "AbsTransform", "AffineTransform", "CumulativeDistributionTransform", "ExpTransform", "PowerTransform",
    "SigmoidTransform", "SoftplusTransform", "TanhTransform",
]  # fmt: skip


class _Rising(Transform):
    """Of real numbers, rising everywhere."""

    domain = constraints.real
    bijective = True

    @property
    def sign(self) -> Any:
        return 1


class ExpTransform(_Rising):
    """exp(x)"""

    codomain = constraints.positive

    def _call(self, x: Tensor) -> Tensor:
        return x.exp()

    def _inverse(self, y: Tensor) -> Tensor:
        return y.log()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return x


class PowerTransform(Transform):
    """x ** exponent, of positive numbers"""

    domain = codomain = constraints.positive
    bijective = True

    def __init__(self, exponent: Any, cache_size: int = 0):
        super().__init__(cache_size)
        self.exponent = exponent

    def with_cache(self, cache_size: int = 1) -> Transform:
        return self if self._cache_size == cache_size else PowerTransform(self.exponent, cache_size)

    def _parameters(self) -> tuple[Any, ...]:
        return (self.exponent,)

    @property
    def sign(self) -> Any:
        if isinstance(self.exponent, Tensor):
            return self.exponent.sign()
        return (self.exponent > 0) - (self.exponent < 0)

    def _call(self, x: Tensor) -> Tensor:
        return x.pow(self.exponent)

    def _inverse(self, y: Tensor) -> Tensor:
        return y.pow(1 / self.exponent)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return (self.exponent * y / x).abs().log()

    def forward_shape(self, shape: Any) -> Any:
        return aten("broadcast_tensors")([aten("empty")(list(shape)), self._spread()])[0].shape

    inverse_shape = forward_shape

    def _spread(self) -> Tensor:
        return self.exponent if isinstance(self.exponent, Tensor) else aten("empty")([])


class SigmoidTransform(_Rising):
    """1 / (1 + exp(-x))"""

    codomain = constraints.unit_interval

    def _call(self, x: Tensor) -> Tensor:
        limits = dtypes.finfo(x.dtype)
        return x.sigmoid().clamp(limits.tiny, 1 - limits.eps)

    def _inverse(self, y: Tensor) -> Tensor:
        limits = dtypes.finfo(y.dtype)
        y = y.clamp(limits.tiny, 1 - limits.eps)
        return y.log() - (-y).log1p()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        softplus = aten("softplus")
        return -softplus(-x) - softplus(x)


class SoftplusTransform(_Rising):
    """log(1 + exp(x))"""

    codomain = constraints.positive

    def _call(self, x: Tensor) -> Tensor:
        return aten("softplus")(x)

    def _inverse(self, y: Tensor) -> Tensor:
        return (-y).expm1().neg().log() + y

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return -aten("softplus")(-x)


class TanhTransform(_Rising):
    """tanh(x)"""

    codomain = constraints.interval(-1.0, 1.0)

    def _call(self, x: Tensor) -> Tensor:
        return x.tanh()

    def _inverse(self, y: Tensor) -> Tensor:
        return y.atanh()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return 2.0 * (math.log(2.0) - x - aten("softplus")(-2.0 * x))


class AbsTransform(Transform):
    """|x|, which is not invertible"""

    domain = constraints.real
    codomain = constraints.positive

    def _call(self, x: Tensor) -> Tensor:
        return x.abs()

    def _inverse(self, y: Tensor) -> Tensor:
        return y


class AffineTransform(Transform):
    """loc + scale * x"""

    bijective = True

    def __init__(self, loc: Any, scale: Any, event_dim: int = 0, cache_size: int = 0):
        super().__init__(cache_size)
        self.loc = loc
        self.scale = scale
        self._event_dim = event_dim

    @property
    def event_dim(self) -> int:
        return self._event_dim

    @property
    def domain(self) -> Any:
        return (
            constraints.independent(constraints.real, self._event_dim)
            if self._event_dim
            else constraints.real
        )

    codomain = domain

    def with_cache(self, cache_size: int = 1) -> Transform:
        if self._cache_size == cache_size:
            return self
        return AffineTransform(self.loc, self.scale, self._event_dim, cache_size)

    def _parameters(self) -> tuple[Any, ...]:
        return self.loc, self.scale

    @property
    def sign(self) -> Any:
        if isinstance(self.scale, Tensor):
            return self.scale.sign()
        return (self.scale > 0) - (self.scale < 0)

    def _call(self, x: Tensor) -> Tensor:
        return self.loc + self.scale * x

    def _inverse(self, y: Tensor) -> Tensor:
        return (y - self.loc) / self.scale

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        if isinstance(self.scale, Tensor):
            stretched = self.scale.abs().log()
        else:
            stretched = aten("full_like")(x, math.log(abs(self.scale)))
        stretched = stretched.expand(list(aten("broadcast_tensors")([x, stretched])[0].shape))
        return summed(stretched, self._event_dim)

    def forward_shape(self, shape: Any) -> Any:
        given = [each for each in (self.loc, self.scale) if isinstance(each, Tensor)]
        return aten("broadcast_tensors")([aten("empty")(list(shape)), *given])[0].shape

    inverse_shape = forward_shape


class CumulativeDistributionTransform(Transform):
    """The cumulative distribution function of a distribution"""

    bijective = True
    codomain = constraints.unit_interval

    def __init__(self, distribution: Distribution, cache_size: int = 0):
        super().__init__(cache_size)
        self.distribution = distribution

    @property
    def domain(self) -> Any:
        return self.distribution.support

    @property
    def sign(self) -> Any:
        return 1

    def with_cache(self, cache_size: int = 1) -> Transform:
        if self._cache_size == cache_size:
            return self
        return CumulativeDistributionTransform(self.distribution, cache_size)

    def _parameters(self) -> tuple[Any, ...]:
        return (self.distribution,)

    def _call(self, x: Tensor) -> Tensor:
        return self.distribution.cdf(x)

    def _inverse(self, y: Tensor) -> Tensor:
        return self.distribution.icdf(y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return self.distribution.log_prob(x)
