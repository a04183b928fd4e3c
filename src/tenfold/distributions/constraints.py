"""`tenfold.distributions.constraints`: the sets that parameters and samples lie in. `check` tests each event
of a tensor; an event is a number, or the last `event_dim` dimensions together."""

from __future__ import annotations

from typing import Any

from tenfold.base import dtypes
from tenfold.base.errors import unknown_name
from tenfold.tensor import Tensor
from tenfold.tensor.dispatch import aten

__all__ = [
    "Constraint", "MixtureSameFamilyConstraint", "boolean", "cat", "corr_cholesky", "dependent",
    "dependent_property", "greater_than", "greater_than_eq", "half_open_interval", "independent",
    "integer_interval", "interval", "is_dependent",
    "less_than", "lower_cholesky", "lower_triangular", "multinomial", "nonnegative", "nonnegative_integer",
    "one_hot", "positive", "positive_definite", "positive_integer", "positive_semidefinite", "real",
    "real_vector", "simplex", "square", "stack", "symmetric", "unit_interval",
]  # fmt: skip


class Constraint:
    """A set of values. A subclass defines `check`, whether the set is discrete, and the number of dimensions
    of an event."""

    is_discrete = False
    event_dim = 0

    def check(self, value: Tensor) -> Tensor:
        """Whether each event lies in the set."""
        raise NotImplementedError(f"{type(self).__name__} has no check")

    def __repr__(self) -> str:
        return type(self).__name__.removeprefix("_") + "()"


class _Dependent(Constraint):
    """A set that only an instance of a distribution knows, and with it, unless they are given here, whether
    it is discrete and how many dimensions an event has."""

    def __init__(self, *, is_discrete: Any = None, event_dim: Any = None):
        self._is_discrete, self._event_dim = is_discrete, event_dim

    @property
    def is_discrete(self) -> Any:  # type: ignore[override]
        return self._known("is_discrete", self._is_discrete)

    @property
    def event_dim(self) -> Any:  # type: ignore[override]
        return self._known("event_dim", self._event_dim)

    def _known(self, name: str, value: Any) -> Any:
        if value is None:
            raise NotImplementedError(f".{name} cannot be determined statically, of the class")
        return value

    def __call__(self, *, is_discrete: Any = None, event_dim: Any = None) -> _Dependent:
        return _Dependent(
            is_discrete=self._is_discrete if is_discrete is None else is_discrete,
            event_dim=self._event_dim if event_dim is None else event_dim,
        )

    def check(self, value: Tensor) -> Tensor:
        raise ValueError("whether a value lies in this set depends on the distribution: ask its `support`")


class dependent_property(property, _Dependent):
    """A constraint that depends on an instance of a distribution; the class only knows that it depends."""

    def __init__(self, fn: Any = None, *, is_discrete: Any = None, event_dim: Any = None):
        property.__init__(self, fn)
        _Dependent.__init__(self, is_discrete=is_discrete, event_dim=event_dim)

    def __call__(self, fn: Any) -> dependent_property:  # type: ignore[override]
        return dependent_property(fn, is_discrete=self._is_discrete, event_dim=self._event_dim)


def is_dependent(constraint: Any) -> bool:
    """Whether a constraint depends on the distribution's parameters."""
    return isinstance(constraint, _Dependent)


class _Cat(Constraint):
    """Stretches of a dimension, of `lengths`, each in a set of its own."""

    def __init__(self, cseq: Any, dim: int = 0, lengths: Any = None):
        self.cseq, self.dim = list(cseq), dim
        self.lengths = [1] * len(self.cseq) if lengths is None else list(lengths)
        self.is_discrete, self.event_dim = _common(self.cseq)

    def check(self, value: Tensor) -> Tensor:
        parts = value.split(self.lengths, self.dim)
        return aten("cat")([c.check(part) for c, part in zip(self.cseq, parts, strict=True)], self.dim)

    def __repr__(self) -> str:
        return f"cat({self.cseq}, dim={self.dim})"


class _Stack(Constraint):
    """Slices along a dimension, each in a set of its own."""

    def __init__(self, cseq: Any, dim: int = 0):
        self.cseq, self.dim = list(cseq), dim
        self.is_discrete, event_dim = _common(self.cseq)
        self.event_dim = event_dim + 1 if self.dim + event_dim < 0 else event_dim

    def check(self, value: Tensor) -> Tensor:
        parts = value.unbind(self.dim)
        return aten("stack")([c.check(part) for c, part in zip(self.cseq, parts, strict=True)], self.dim)

    def __repr__(self) -> str:
        return f"stack({self.cseq}, dim={self.dim})"


def _common(parts: list[Constraint]) -> tuple[bool, int]:
    return any(part.is_discrete for part in parts), max(part.event_dim for part in parts)


class _Multinomial(Constraint):
    """Counts that are at most `upper_bound` in all."""

    is_discrete, event_dim = True, 1

    def __init__(self, upper_bound: Any):
        self.upper_bound = upper_bound

    def check(self, value: Tensor) -> Tensor:
        return (value >= 0).all(-1) & (value.sum(-1) <= self.upper_bound)

    def __repr__(self) -> str:
        return f"Multinomial(upper_bound={self.upper_bound})"


class _IndependentConstraint(Constraint):
    """Events of more dimensions, each element of which lies in the set of another constraint."""

    def __init__(self, base_constraint: Constraint, reinterpreted_batch_ndims: int):
        self.base_constraint = base_constraint
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims

    @property
    def is_discrete(self) -> bool:  # type: ignore[override]
        return self.base_constraint.is_discrete

    @property
    def event_dim(self) -> int:  # type: ignore[override]
        return self.base_constraint.event_dim + self.reinterpreted_batch_ndims

    def check(self, value: Tensor) -> Tensor:
        inside, joined = self.base_constraint.check(value), self.reinterpreted_batch_ndims
        if inside.ndim < joined:
            raise ValueError(f"an event has {self.event_dim} dimensions, the value {value.ndim}")
        return inside.flatten(inside.ndim - joined).all(-1) if joined else inside

    def __repr__(self) -> str:
        return f"IndependentConstraint({self.base_constraint!r}, {self.reinterpreted_batch_ndims})"


class MixtureSameFamilyConstraint(Constraint):
    """The set of a mixture's draws: any of its components' sets."""

    def __init__(self, base_constraint: Constraint):
        self.base_constraint = base_constraint

    @property
    def is_discrete(self) -> bool:  # type: ignore[override]
        return self.base_constraint.is_discrete

    @property
    def event_dim(self) -> int:  # type: ignore[override]
        return self.base_constraint.event_dim

    def check(self, value: Tensor) -> Tensor:
        return self.base_constraint.check(value.unsqueeze(-1 - self.event_dim)).all(-1)


def _whole(x: Tensor) -> Tensor:
    return x % 1 == 0


class _Bounded(Constraint):
    """A set of numbers above a bound, below one, or both."""

    lower_bound: Any = None
    upper_bound: Any = None

    def __repr__(self) -> str:
        bounds = [(name, getattr(self, name)) for name in ("lower_bound", "upper_bound")]
        told = ", ".join([f"{name}={bound}" for name, bound in bounds if bound is not None])
        return f"{type(self).__name__.removeprefix('_')}({told})"


class _Above(_Bounded):
    def __init__(self, lower_bound: Any):
        self.lower_bound = lower_bound


class _Between(_Bounded):
    def __init__(self, lower_bound: Any, upper_bound: Any):
        self.lower_bound, self.upper_bound = lower_bound, upper_bound


class _GreaterThan(_Above):
    """Values above `lower_bound`."""

    def check(self, value: Tensor) -> Tensor:
        return self.lower_bound < value


class _GreaterThanEq(_Above):
    """Values of at least `lower_bound`."""

    def check(self, value: Tensor) -> Tensor:
        return self.lower_bound <= value


class _IntegerGreaterThan(_Above):
    is_discrete = True

    def check(self, value: Tensor) -> Tensor:
        return _whole(value) & (value >= self.lower_bound)


class _LessThan(_Bounded):
    """Values below `upper_bound`."""

    def __init__(self, upper_bound: Any):
        self.upper_bound = upper_bound

    def check(self, value: Tensor) -> Tensor:
        return value < self.upper_bound


class _IntegerLessThan(_LessThan):
    is_discrete = True

    def check(self, value: Tensor) -> Tensor:
        return _whole(value) & (value <= self.upper_bound)


class _Interval(_Between):
    """Values from `lower_bound` to `upper_bound`."""

    def check(self, value: Tensor) -> Tensor:
        return (self.lower_bound <= value) & (value <= self.upper_bound)


class _HalfOpenInterval(_Between):
    """Values from `lower_bound` up to, and without, `upper_bound`."""

    def check(self, value: Tensor) -> Tensor:
        return (self.lower_bound <= value) & (value < self.upper_bound)


class _IntegerInterval(_Between):
    """Whole numbers from `lower_bound` to `upper_bound`."""

    is_discrete = True

    def check(self, value: Tensor) -> Tensor:
        return _whole(value) & (self.lower_bound <= value) & (value <= self.upper_bound)


class _Real(Constraint):
    def check(self, value: Tensor) -> Tensor:
        return value == value


class _Boolean(Constraint):
    is_discrete = True

    def check(self, value: Tensor) -> Tensor:
        return (value == 0) | (value == 1)


class _Simplex(Constraint):
    event_dim = 1

    def check(self, value: Tensor) -> Tensor:
        return (value >= 0).all(-1) & ((value.sum(-1) - 1).abs() < 1e-6)


class _OneHot(Constraint):
    is_discrete, event_dim = True, 1

    def check(self, value: Tensor) -> Tensor:
        return ((value == 0) | (value == 1)).all(-1) & (value.sum(-1) == 1)


class _LowerTriangular(Constraint):
    event_dim = 2

    def check(self, value: Tensor) -> Tensor:
        return (value.tril() == value).flatten(-2).all(-1)


class _LowerCholesky(_LowerTriangular):
    def check(self, value: Tensor) -> Tensor:
        return super().check(value) & (value.diagonal(dim1=-2, dim2=-1) > 0).all(-1)


class _CorrCholesky(_LowerCholesky):
    def check(self, value: Tensor) -> Tensor:
        tolerance = 10 * value.shape[-1] * dtypes.finfo(value.dtype).eps
        lengths = value.square().sum(-1).sqrt()
        return super().check(value) & ((lengths - 1).abs() < tolerance).all(-1)


class _Square(Constraint):
    event_dim = 2

    def check(self, value: Tensor) -> Tensor:
        return aten("full")(value.shape[:-2], value.shape[-2] == value.shape[-1], device=value.device)


class _Symmetric(_Square):
    def check(self, value: Tensor) -> Tensor:
        return ((value - value.mT).abs() <= 1e-6 + 1e-5 * value.abs()).flatten(-2).all(-1)


class _PositiveSemidefinite(_Symmetric):
    def check(self, value: Tensor) -> Tensor:
        return super().check(value) & (aten("linalg_eigvalsh")(value) >= 0).all(-1)


class _PositiveDefinite(_Symmetric):
    def check(self, value: Tensor) -> Tensor:
        return super().check(value) & (aten("linalg_cholesky_ex")(value).info == 0)


cat, stack, multinomial, independent = _Cat, _Stack, _Multinomial, _IndependentConstraint
greater_than, greater_than_eq, less_than = _GreaterThan, _GreaterThanEq, _LessThan
interval, half_open_interval, integer_interval = _Interval, _HalfOpenInterval, _IntegerInterval
dependent = _Dependent()
boolean, real, simplex, one_hot = _Boolean(), _Real(), _Simplex(), _OneHot()
nonnegative_integer, positive_integer = _IntegerGreaterThan(0), _IntegerGreaterThan(1)
real_vector = independent(real, 1)
positive, nonnegative, unit_interval = greater_than(0.0), greater_than_eq(0.0), interval(0.0, 1.0)
lower_triangular, lower_cholesky, corr_cholesky = _LowerTriangular(), _LowerCholesky(), _CorrCholesky()
square, symmetric = _Square(), _Symmetric()
positive_definite, positive_semidefinite = _PositiveDefinite(), _PositiveSemidefinite()


def __getattr__(name: str) -> Any:
    raise unknown_name("tenfold.distributions.constraints", name, globals())
