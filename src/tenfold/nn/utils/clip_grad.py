"""Gradient clipping, by the norm of all gradients together or element by element."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tenfold.autograd.grad_mode import no_grad
from tenfold.base.errors import TenfoldError, located
from tenfold.base.warning import warn
from tenfold.nn.parameter import filled
from tenfold.tensor import Tensor
from tenfold.tensor.dispatch import aten


@located
def get_total_norm(
    tensors: Any, norm_type: float = 2.0, error_if_nonfinite: bool = False, foreach: bool | None = None
) -> Tensor:
    """The norm of all tensors, as if they were one vector.

    With error_if_nonfinite, it is computed immediately, and must be finite.
    """
    held = [tensors] if isinstance(tensors, Tensor) else list(tensors)
    order = float(norm_type)
    if not held:
        return filled((), 0)
    with no_grad():
        device = held[0].device
        norms = [aten("linalg_vector_norm")(each, order).to(device) for each in held]
        total = aten("linalg_vector_norm")(aten("stack")(norms), order)
        if error_if_nonfinite and not bool(total.isfinite()):
            raise TenfoldError(
                f"the total norm of order {order} is {total.item()}, so gradients cannot be scaled by it",
                help="find what makes gradients infinite, or pass error_if_nonfinite=False",
            )
    return total


def clip_grads_with_norm_(
    parameters: Any, max_norm: float, total_norm: Tensor, foreach: bool | None = None
) -> None:
    """Scale gradients of norm total_norm down to max_norm, in place, if they exceed it."""
    with no_grad():
        for gradient in _gradients(parameters):
            scale = (float(max_norm) / (total_norm.to(gradient.device) + 1e-6)).clamp(max=1.0)
            gradient.mul_(scale.to(gradient.dtype))


def clip_grad_norm_(
    parameters: Any,
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """Scale the gradients of parameters so that their total norm is at most max_norm; return the norm before
    the scaling.

    Nothing is computed yet: the norm and the scaling become part of the program that reads the gradients.
    """
    held = [parameters] if isinstance(parameters, Tensor) else list(parameters)
    total = get_total_norm(_gradients(held), norm_type, error_if_nonfinite)
    clip_grads_with_norm_(held, max_norm, total)
    return total


def clip_grad_norm(
    parameters: Any,
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """The old name of clip_grad_norm_."""
    warn("clip_grad_norm is deprecated: use clip_grad_norm_", FutureWarning)
    return clip_grad_norm_(parameters, max_norm, norm_type, error_if_nonfinite)


def clip_grad_value_(parameters: Any, clip_value: float, foreach: bool | None = None) -> None:
    """Clamp every element of the gradients of parameters to ±clip_value, in place."""
    bound = float(clip_value)
    with no_grad():
        for gradient in _gradients(parameters):
            gradient.clamp_(-bound, bound)


def _gradients(parameters: Tensor | Iterable[Tensor]) -> list[Tensor]:
    held = [parameters] if isinstance(parameters, Tensor) else parameters
    return [each.grad for each in held if each.grad is not None]
