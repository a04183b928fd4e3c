"""Transforms from the real numbers to a constrained set: `transform_to` gives any that covers the set,
`biject_to` one that is invertible. Other packages add theirs by `register`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tenfold.base.errors import ArgumentError, UnsupportedError
from tenfold.distributions import constraints, transforms
from tenfold.distributions.constraints import Constraint
from tenfold.tensor import Tensor

__all__ = ["ConstraintRegistry", "biject_to", "transform_to"]

Factory = Callable[[Any], Any]


class ConstraintRegistry:
    """Maps classes of constraints to functions that make a transform for a constraint."""

    def __init__(self) -> None:
        self._registry: dict[type, Factory] = {}

    def register(self, constraint: Any, factory: Factory | None = None) -> Any:
        """Register a function for a class of constraints. Without a function, return a decorator."""
        if factory is None:
            return lambda function: self.register(constraint, function)
        kind = constraint if isinstance(constraint, type) else type(constraint)
        if not issubclass(kind, Constraint):
            raise ArgumentError(f"register: {constraint!r} is no constraint, nor a class of them")
        self._registry[kind] = factory
        return factory

    def __call__(self, constraint: Constraint) -> Any:
        """The transform of a constraint."""
        factory = self._registry.get(type(constraint))
        if factory is None:
            raise UnsupportedError(
                f"no transform is registered for {type(constraint).__name__}",
                help="register one with transform_to.register or biject_to.register",
            )
        return factory(constraint)


biject_to, transform_to = ConstraintRegistry(), ConstraintRegistry()


def _both(*kinds: Any) -> Callable[[Factory], Factory]:
    def register(factory: Factory) -> Factory:
        for kind in kinds:
            biject_to.register(kind, factory)
            transform_to.register(kind, factory)
        return factory

    return register


@_both(constraints.real)
def _(constraint: Any) -> Any:
    return transforms.identity_transform


@biject_to.register(constraints.independent)
def _(constraint: Any) -> Any:
    inner = biject_to(constraint.base_constraint)
    return transforms.IndependentTransform(inner, constraint.reinterpreted_batch_ndims)


@transform_to.register(constraints.independent)
def _(constraint: Any) -> Any:
    inner = transform_to(constraint.base_constraint)
    return transforms.IndependentTransform(inner, constraint.reinterpreted_batch_ndims)


@_both(constraints.positive, constraints.nonnegative)
def _(constraint: Any) -> Any:
    bound = constraint.lower_bound
    exponential = transforms.ExpTransform()
    if not isinstance(bound, Tensor) and bound == 0:
        return exponential
    return transforms.ComposeTransform([exponential, transforms.AffineTransform(bound, 1)])


@_both(constraints.less_than)
def _(constraint: Any) -> Any:
    onto = transforms.AffineTransform(constraint.upper_bound, -1)
    return transforms.ComposeTransform([transforms.ExpTransform(), onto])


@_both(constraints.interval, constraints.half_open_interval)
def _(constraint: Any) -> Any:
    low, high = constraint.lower_bound, constraint.upper_bound
    sigmoid = transforms.SigmoidTransform()
    numbers = not isinstance(low, Tensor) and not isinstance(high, Tensor)
    if numbers and low == 0 and high == 1:
        return sigmoid
    return transforms.ComposeTransform([sigmoid, transforms.AffineTransform(low, high - low)])


@biject_to.register(constraints.simplex)
def _(constraint: Any) -> Any:
    return transforms.StickBreakingTransform()


@transform_to.register(constraints.simplex)
def _(constraint: Any) -> Any:
    return transforms.SoftmaxTransform()


@transform_to.register(constraints.lower_cholesky)
def _(constraint: Any) -> Any:
    return transforms.LowerCholeskyTransform()


@transform_to.register(constraints.positive_definite)
@transform_to.register(constraints.positive_semidefinite)
def _(constraint: Any) -> Any:
    return transforms.PositiveDefiniteTransform()


@_both(constraints.corr_cholesky)
def _(constraint: Any) -> Any:
    return transforms.CorrCholeskyTransform()


@biject_to.register(constraints.cat)
def _(constraint: Any) -> Any:
    return transforms.CatTransform(
        [biject_to(each) for each in constraint.cseq], constraint.dim, constraint.lengths
    )


@transform_to.register(constraints.cat)
def _(constraint: Any) -> Any:
    return transforms.CatTransform(
        [transform_to(each) for each in constraint.cseq], constraint.dim, constraint.lengths
    )


@biject_to.register(constraints.stack)
def _(constraint: Any) -> Any:
    return transforms.StackTransform([biject_to(each) for each in constraint.cseq], constraint.dim)


@transform_to.register(constraints.stack)
def _(constraint: Any) -> Any:
    return transforms.StackTransform([transform_to(each) for each in constraint.cseq], constraint.dim)
