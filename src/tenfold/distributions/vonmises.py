"""The distribution of angles around a mean, like a normal one on a circle."""

from __future__ import annotations

import math
from typing import Any

from tenfold.autograd.grad_mode import no_grad
from tenfold.distributions import constraints
from tenfold.distributions.distribution import Distribution, Shape, broadcast_all, uniforms
from tenfold.tensor import Tensor
from tenfold.tensor.dispatch import aten

__all__ = ["VonMises"]
ATTEMPTS = 32  # at two in three, none is left out once in 10¹⁵ draws


class VonMises(Distribution):
    """The von Mises distribution of angles, of density exp(κ·cos(x - loc)) / (2π·I₀(κ))

    tn.distributions.VonMises(0.0, 1.0).log_prob(tn.tensor(0.0))  # -1.0738
    """

    loc: Tensor
    concentration: Tensor
    arg_constraints = {"loc": constraints.real, "concentration": constraints.positive}
    support = constraints.real

    def __init__(self, loc: Any, concentration: Any, validate_args: bool | None = None):
        self.loc, self.concentration = broadcast_all(loc, concentration)
        super().__init__(self.loc.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.loc

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        """Of the circle: 1 - I₁(κ) / I₀(κ)."""
        return 1 - aten("special_i1e")(self.concentration) / aten("special_i0e")(self.concentration)

    def log_prob(self, value: Tensor) -> Tensor:
        turned = self.concentration * (self._checked(value) - self.loc).cos()
        # The scaled function does not overflow: log I₀ = log(I₀ exp(-κ)) + κ.
        norm = aten("special_i0e")(self.concentration).log() + self.concentration
        return turned - math.log(2 * math.pi) - norm

    def sample(self, sample_shape: Shape = ()) -> Tensor:
        """By Best and Fisher's rejection from a wrapped Cauchy distribution, in double precision."""
        with no_grad():
            shape = self._extended_shape(sample_shape)
            k = self.concentration.double()
            tau = 1 + (1 + 4 * k**2).sqrt()
            rho = (tau - (2 * tau).sqrt()) / (2 * k)
            radius = aten("where")(k < 1e-5, 1 / k + k, (1 + rho**2) / (2 * rho))
            first, second, third = uniforms(k, (3, ATTEMPTS, *shape)).unbind(0)
            z = (math.pi * first).cos()
            f = (1 + radius * z) / (radius + z)
            c = k * (radius - f)
            accepted = (c * (2 - c) - second > 0) | ((c / second).log() + 1 - c >= 0)
            found = accepted.to(k.dtype).argmax(0, keepdim=True)
            angle = ((third - 0.5).sign() * f.clamp(-1, 1).acos()).gather(0, found).squeeze(0)
            turned = (angle + math.pi + self.loc) % (2 * math.pi) - math.pi
            return turned.to(self.loc.dtype)
