"""The base of all distributions: shapes, validation of arguments, sampling and expansion. Each distribution
defines its own `entropy`, `log_prob` and so on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tenfold.autograd.flow import grad
from tenfold.autograd.grad_mode import enable_grad, no_grad
from tenfold.base import dtypes
from tenfold.base.errors import ArgumentError, UnsupportedError
from tenfold.base.size import Size
from tenfold.distributions import constraints
from tenfold.distributions.constraints import Constraint, is_dependent
from tenfold.functional import broadcast_shapes
from tenfold.tensor import Tensor
from tenfold.tensor.dispatch import aten
from tenfold.tensor.interchange import tensor
from tenfold.trace.context import context

Shape = Sequence[int]


class Distribution:
    """A distribution over events of `event_shape`, one for each element of `batch_shape`.

    With `validate_args`, parameters and values are checked against their constraints, which evaluates them.
    Inside a compiled function nothing is checked, since there are no values yet.
    """

    has_rsample = False
    has_enumerate_support = False
    _validate_args = __debug__

    def __init__(
        self, batch_shape: Shape = (), event_shape: Shape = (), validate_args: bool | None = None
    ) -> None:
        self._batch_shape = Size(batch_shape)
        self._event_shape = Size(event_shape)
        if validate_args is not None:
            self._validate_args = validate_args
        if self._validate_args:
            given = {
                name: (getattr(self, name), arg_constraint)
                for name, arg_constraint in self.arg_constraints.items()
                if name in vars(self) and not is_dependent(arg_constraint)
            }
            self._validate_within(**given)

    def _validate_within(self, **given: tuple[Tensor, Constraint]) -> None:
        """Refuse parameters that are not within their constraints."""
        for name, value, each in _outside(given):
            raise ArgumentError(
                f"{type(self).__name__}: {name} of shape {tuple(value.shape)} is not all within {each}",
                help="mend the parameter, or pass validate_args=False",
            )

    def _get_checked_instance(self, cls: type, _instance: Any = None) -> Any:
        """An object for `expand` to fill: of this class, which must be `cls` or inherit its constructor."""
        if _instance is None and type(self).__init__ is not cls.__init__:  # type: ignore[misc]
            raise NotImplementedError(
                f"{type(self).__name__} has a constructor of its own, so it must define expand too"
            )
        return self.__new__(type(self)) if _instance is None else _instance

    @staticmethod
    def set_default_validate_args(value: bool) -> None:
        """Set whether distributions validate their arguments by default."""
        if value not in (True, False):
            raise ArgumentError(f"validate_args is True or False, not {value!r}")
        Distribution._validate_args = value

    @property
    def batch_shape(self) -> Size:
        return self._batch_shape

    @property
    def event_shape(self) -> Size:
        return self._event_shape

    @property
    def arg_constraints(self) -> Mapping[str, Constraint]:
        raise self._lacks("arg_constraints")

    @property
    def support(self) -> Any:
        raise self._lacks("support")

    @property
    def mean(self) -> Tensor:
        raise self._lacks("mean")

    @property
    def mode(self) -> Tensor:
        raise self._lacks("mode")

    @property
    def variance(self) -> Tensor:
        raise self._lacks("variance")

    @property
    def stddev(self) -> Tensor:
        return self.variance.sqrt()

    def sample(self, sample_shape: Shape = ()) -> Tensor:
        """Draw samples, through which no gradient flows."""
        with no_grad():
            return self.rsample(sample_shape)

    def rsample(self, sample_shape: Shape = ()) -> Tensor:
        """Draw reparameterized samples, through which gradients flow to the parameters."""
        raise self._lacks("rsample")

    def sample_n(self, n: int) -> Tensor:
        return self.sample((n,))

    def log_prob(self, value: Tensor) -> Tensor:
        raise self._lacks("log_prob")

    def cdf(self, value: Tensor) -> Tensor:
        raise self._lacks("cdf")

    def icdf(self, value: Tensor) -> Tensor:
        raise self._lacks("icdf")

    def enumerate_support(self, expand: bool = True) -> Tensor:
        raise self._lacks("enumerate_support")

    def entropy(self) -> Tensor:
        raise self._lacks("entropy")

    def perplexity(self) -> Tensor:
        return self.entropy().exp()

    def expand(self, batch_shape: Shape, _instance: Any = None) -> Any:
        """Expand the distribution to a larger batch, with views of its parameters."""
        made = object.__new__(type(self)) if _instance is None else _instance
        for name, arg_constraint in self.arg_constraints.items():
            if name in vars(self):
                value = getattr(self, name)
                event = value.shape[value.ndim - arg_constraint.event_dim :]
                setattr(made, name, value.expand([*batch_shape, *event]))
        made._validate_args = self._validate_args
        made._batch_shape, made._event_shape = Size(batch_shape), self._event_shape
        return made

    def _lacks(self, name: str) -> UnsupportedError:
        return UnsupportedError(f"{type(self).__name__} has no {name}")

    def _extended_shape(self, sample_shape: Shape = ()) -> Size:
        return Size((*sample_shape, *self._batch_shape, *self._event_shape))

    def _validate_sample(self, value: Tensor) -> None:
        """Whether log_prob and the like are defined for the value: its shape, and that it is supported."""
        if not isinstance(value, Tensor):
            raise ArgumentError(f"{type(self).__name__}: a value is a tensor, not a {type(value).__name__}")
        events = value.ndim - len(self._event_shape)
        if events < 0 or tuple(value.shape[events:]) != tuple(self._event_shape):
            raise ArgumentError(
                f"{type(self).__name__}: a value of shape {tuple(value.shape)} does not end in the event's "
                f"{tuple(self._event_shape)}"
            )
        broadcast_shapes(value.shape, self._extended_shape())
        for _, _, each in _outside({"value": (value, self.support)}):
            raise ArgumentError(
                f"{type(self).__name__}: the value is not all within its support, {each}",
                help="mend the value, or make the distribution with validate_args=False",
            )

    def _checked(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return value

    def __repr__(self) -> str:
        given = [name for name in self.arg_constraints if name in vars(self)]
        shown = [(name, getattr(self, name)) for name in given]
        texts = [f"{name}: {each if each.numel() == 1 else each.size()}" for name, each in shown]
        return f"{type(self).__name__}({', '.join(texts)})"


class ExponentialFamily(Distribution):
    """Distributions whose density is an exponential of sufficient statistics times natural parameters.

    If a subclass defines `_natural_params` and `_log_normalizer`, its entropy and the divergence between two
    of its instances are derived from the gradient of the log normalizer.
    """

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        raise self._lacks("natural parameters")

    def _log_normalizer(self, *natural_params: Tensor) -> Tensor:
        raise self._lacks("log normalizer")

    @property
    def _mean_carrier_measure(self) -> float:
        raise self._lacks("mean carrier measure")

    def _normalized(self) -> tuple[list[Tensor], Tensor, tuple[Any, ...]]:
        """The natural parameters, the log normalizer at them, and its gradient."""
        with enable_grad():
            natural = [parameter.detach().requires_grad_() for parameter in self._natural_params]
            normalizer = self._log_normalizer(*natural)
            return natural, normalizer, grad(normalizer.sum(), natural, create_graph=True)

    def entropy(self) -> Tensor:
        natural, normalizer, means = self._normalized()
        entropy = normalizer - self._mean_carrier_measure
        for parameter, mean in zip(natural, means, strict=True):
            entropy = entropy - (parameter * mean).reshape(*self.batch_shape, -1).sum(-1)
        return entropy


def _outside(given: Mapping[str, tuple[Tensor, Constraint]]) -> list[tuple[str, Tensor, Constraint]]:
    """Those of the tensors that are not wholly within their constraints; they are computed together."""
    if not given or context.recorder is not None:
        return []
    inside = [each.check(value.detach()).all() for value, each in given.values()]
    verdicts = aten("stack")(inside).tolist()
    return [(name, *each) for (name, each), fine in zip(given.items(), verdicts, strict=True) if not fine]


def broadcast_all(*values: Any) -> tuple[Tensor, ...]:
    """Numbers and tensors as tensors of one shape; numbers are of the first tensor's dtype."""
    like = next((value for value in values if isinstance(value, Tensor)), None)
    if not all(isinstance(value, (Tensor, int, float)) for value in values):
        raise ArgumentError("parameters are tensors or numbers", help="use tn.tensor for lists")
    dtype = like.dtype if like is not None else dtypes.get_default_dtype()
    device = like.device if like is not None else None
    made = [
        value if isinstance(value, Tensor) else tensor(value, dtype=dtype, device=device) for value in values
    ]
    return tuple(aten("broadcast_tensors")(made))


def uniforms(like: Tensor, shape: Shape) -> Tensor:
    """Numbers between 0 and 1, neither of which they are, of the dtype and on the device of a tensor."""
    tiny = dtypes.finfo(like.dtype).tiny
    return aten("rand")(list(shape), dtype=like.dtype, device=like.device).clamp(min=tiny)


def normals(like: Tensor, shape: Shape) -> Tensor:
    return aten("randn")(list(shape), dtype=like.dtype, device=like.device)


def within(probs: Tensor) -> Tensor:
    """Probabilities away from 0 and 1, so that their logarithms are finite."""
    eps = dtypes.finfo(probs.dtype).eps
    return probs.clamp(eps, 1 - eps)


__all__ = [
    "Distribution",
    "ExponentialFamily",
    "broadcast_all",
    "constraints",
    "normals",
    "uniforms",
    "within",
]
