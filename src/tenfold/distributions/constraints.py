"""`tenfold.distributions.constraints`: the sets that parameters and draws lie in. `check` says of each event
of a tensor whether it does; an event is a number, or the last `event_dim` dimensions together."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tenfold.base import dtypes
from tenfold.base.errors import unknown_name
from tenfold.tensor import Tensor
from tenfold.tensor.dispatch import aten

__all__ = [
    "Constraint", "boolean", "cat", "corr_cholesky", "dependent", "dependent_property", "greater_than",
    "greater_than_eq", "half_open_interval", "independent", "integer_interval", "interval", "is_dependent",
    "less_than", "lower_cholesky", "lower_triangular", "multinomial", "nonnegative", "nonnegative_integer",
    "one_hot", "positive", "positive_definite", "positive_integer", "positive_semidefinite", "real",
    "real_vector", "simplex", "square", "stack", "symmetric", "unit_interval",
]  # fmt: skip

Test = Callable[[Tensor], Tensor]


class Constraint:
    """A set, by its name and a test of membership."""

    def __init__(self, name: str, test: Test, is_discrete: bool = False, event_dim: int = 0):
        self.name = name
        self.test = test
        self.is_discrete = is_discrete
        self.event_dim = event_dim

    def check(self, value: Tensor) -> Tensor:
        """Whether each event lies in the set."""
        return self.test(value)

    def __repr__(self) -> str:
        return self.name


class Dependent(Constraint):
    """A set that only an instance of a distribution knows."""

    def __init__(self, *, is_discrete: bool = False, event_dim: int = 0):
        super().__init__("Dependent()", self._refuse, is_discrete, event_dim)

    def __call__(self, *, is_discrete: bool | None = None, event_dim: int | None = None) -> Dependent:
        return Dependent(
            is_discrete=self.is_discrete if is_discrete is None else is_discrete,
            event_dim=self.event_dim if event_dim is None else event_dim,
        )

    def _refuse(self, value: Tensor) -> Tensor:
        raise ValueError("whether a value lies in this set depends on the distribution: ask its `support`")


class dependent_property(property, Dependent):
    """A distribution's set as a property of its instances; of the class it is only known to depend."""

    def __init__(self, fn: Any = None, *, is_discrete: bool = False, event_dim: int = 0):
        property.__init__(self, fn)
        Dependent.__init__(self, is_discrete=is_discrete, event_dim=event_dim)

    def __call__(self, fn: Any) -> dependent_property:  # type: ignore[override]
        return dependent_property(fn, is_discrete=self.is_discrete, event_dim=self.event_dim)


def is_dependent(constraint: Any) -> bool:
    return isinstance(constraint, Dependent)


class cat(Constraint):
    """Stretches of a dimension, of `lengths`, each in a set of its own."""

    def __init__(self, cseq: Any, dim: int = 0, lengths: Any = None):
        self.cseq, self.dim = list(cseq), dim
        self.lengths = [1] * len(self.cseq) if lengths is None else list(lengths)
        name = f"cat({self.cseq}, dim={dim})"
        discrete, event_dim = _common(self.cseq)
        super().__init__(name, self._each, discrete, event_dim)

    def _each(self, value: Tensor) -> Tensor:
        parts = value.split(self.lengths, self.dim)
        return aten("cat")([c.check(part) for c, part in zip(self.cseq, parts, strict=True)], self.dim)


class stack(Constraint):
    """Slices along a dimension, each in a set of its own."""

    def __init__(self, cseq: Any, dim: int = 0):
        self.cseq, self.dim = list(cseq), dim
        discrete, event_dim = _common(self.cseq)
        deeper = event_dim + 1 if self.dim + event_dim < 0 else event_dim
        super().__init__(f"stack({self.cseq}, dim={dim})", self._each, discrete, deeper)

    def _each(self, value: Tensor) -> Tensor:
        parts = value.unbind(self.dim)
        return aten("stack")([c.check(part) for c, part in zip(self.cseq, parts, strict=True)], self.dim)


def _common(parts: list[Constraint]) -> tuple[bool, int]:
    return any(each.is_discrete for each in parts), max(each.event_dim for each in parts)


class multinomial(Constraint):
    """Counts that are at most `upper_bound` in all."""

    def __init__(self, upper_bound: Any):
        self.upper_bound = upper_bound
        super().__init__(f"Multinomial(upper_bound={upper_bound})", self._counts, True, 1)

    def _counts(self, value: Tensor) -> Tensor:
        return (value >= 0).all(-1) & (value.sum(-1) <= self.upper_bound)


class independent(Constraint):
    """Events of more dimensions, each element of which lies in the set of another constraint."""

    def __init__(self, base_constraint: Constraint, reinterpreted_batch_ndims: int):
        self.base_constraint = base_constraint
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims
        name = f"IndependentConstraint({base_constraint!r}, {reinterpreted_batch_ndims})"
        event_dim = base_constraint.event_dim + reinterpreted_batch_ndims
        super().__init__(name, self._all, base_constraint.is_discrete, event_dim)

    def _all(self, value: Tensor) -> Tensor:
        inside = self.base_constraint.check(value)
        if inside.ndim < self.reinterpreted_batch_ndims:
            raise ValueError(f"an event has {self.event_dim} dimensions, the value {value.ndim}")
        return (
            inside.flatten(inside.ndim - self.reinterpreted_batch_ndims).all(-1)
            if (self.reinterpreted_batch_ndims)
            else inside
        )


def _whole(x: Tensor) -> Tensor:
    return x % 1 == 0


def greater_than(lower_bound: Any) -> Constraint:
    return Constraint(f"GreaterThan(lower_bound={lower_bound})", lambda x: lower_bound < x)


def greater_than_eq(lower_bound: Any) -> Constraint:
    return Constraint(f"GreaterThanEq(lower_bound={lower_bound})", lambda x: lower_bound <= x)


def less_than(upper_bound: Any) -> Constraint:
    return Constraint(f"LessThan(upper_bound={upper_bound})", lambda x: x < upper_bound)


def interval(lower_bound: Any, upper_bound: Any) -> Constraint:
    name = f"Interval(lower_bound={lower_bound}, upper_bound={upper_bound})"
    return Constraint(name, lambda x: (lower_bound <= x) & (x <= upper_bound))


def half_open_interval(lower_bound: Any, upper_bound: Any) -> Constraint:
    name = f"HalfOpenInterval(lower_bound={lower_bound}, upper_bound={upper_bound})"
    return Constraint(name, lambda x: (lower_bound <= x) & (x < upper_bound))


def integer_interval(lower_bound: Any, upper_bound: Any) -> Constraint:
    name = f"IntegerInterval(lower_bound={lower_bound}, upper_bound={upper_bound})"
    return Constraint(name, lambda x: _whole(x) & (lower_bound <= x) & (x <= upper_bound), True)


def _simplex(x: Tensor) -> Tensor:
    return (x >= 0).all(-1) & ((x.sum(-1) - 1).abs() < 1e-6)


def _one_hot(x: Tensor) -> Tensor:
    return ((x == 0) | (x == 1)).all(-1) & (x.sum(-1) == 1)


def _lower_triangular(x: Tensor) -> Tensor:
    return (x.tril() == x).flatten(-2).all(-1)


def _lower_cholesky(x: Tensor) -> Tensor:
    return _lower_triangular(x) & (x.diagonal(dim1=-2, dim2=-1) > 0).all(-1)


def _symmetric(x: Tensor) -> Tensor:
    return ((x - x.mT).abs() <= 1e-6 + 1e-5 * x.abs()).flatten(-2).all(-1)


def _positive_definite(x: Tensor) -> Tensor:
    return _symmetric(x) & (aten("linalg_cholesky_ex")(x).info == 0)


def _positive_semidefinite(x: Tensor) -> Tensor:
    return _symmetric(x) & (aten("linalg_eigvalsh")(x) >= 0).all(-1)


def _corr_cholesky(x: Tensor) -> Tensor:
    tolerance = 10 * x.shape[-1] * dtypes.finfo(x.dtype).eps
    return _lower_cholesky(x) & ((x.square().sum(-1).sqrt() - 1).abs() < tolerance).all(-1)


def _square(x: Tensor) -> Tensor:
    return aten("full")(x.shape[:-2], x.shape[-2] == x.shape[-1], device=x.device)


dependent = Dependent()
boolean = Constraint("Boolean()", lambda x: (x == 0) | (x == 1), True)
nonnegative_integer = Constraint("IntegerGreaterThan(lower_bound=0)", lambda x: _whole(x) & (x >= 0), True)
positive_integer = Constraint("IntegerGreaterThan(lower_bound=1)", lambda x: _whole(x) & (x >= 1), True)
real = Constraint("Real()", lambda x: x == x)
real_vector = independent(real, 1)
positive = greater_than(0.0)
nonnegative = greater_than_eq(0.0)
unit_interval = interval(0.0, 1.0)
simplex = Constraint("Simplex()", _simplex, event_dim=1)
one_hot = Constraint("OneHot()", _one_hot, True, event_dim=1)
lower_triangular = Constraint("LowerTriangular()", _lower_triangular, event_dim=2)
lower_cholesky = Constraint("LowerCholesky()", _lower_cholesky, event_dim=2)
square = Constraint("Square()", _square, event_dim=2)
symmetric = Constraint("Symmetric()", _symmetric, event_dim=2)
positive_definite = Constraint("PositiveDefinite()", _positive_definite, event_dim=2)
positive_semidefinite = Constraint("PositiveSemidefinite()", _positive_semidefinite, event_dim=2)
corr_cholesky = Constraint("CorrCholesky()", _corr_cholesky, event_dim=2)


def __getattr__(name: str) -> Any:
    raise unknown_name("tenfold.distributions.constraints", name, globals())
