"""`distributions.utils`: helpers that programs use to write distributions of their own."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from tenfold.autograd.grad_mode import enable_grad
from tenfold.base.dtypes import DType
from tenfold.distributions.distribution import broadcast_all, within as clamp_probs
from tenfold.tensor import Tensor
from tenfold.tensor.dispatch import aten

__all__ = [
    "broadcast_all", "clamp_probs", "euler_constant", "lazy_property", "logits_to_probs", "probs_to_logits",
    "tril_matrix_to_vec", "vec_to_tril_matrix",
]  # fmt: skip

euler_constant = 0.57721566490153286060


def _standard_normal(shape: Sequence[int], dtype: DType, device: Any) -> Tensor:
    """Draws from the standard normal distribution."""
    return aten("randn")(shape, dtype=dtype, device=device)


def _sum_rightmost(value: Tensor, dim: int) -> Tensor:
    """The sum over the last `dim` dimensions."""
    return value.sum(tuple(range(-dim, 0))) if dim else value


def logits_to_probs(logits: Tensor, is_binary: bool = False) -> Tensor:
    """Convert log-odds, or unnormalized log-probabilities along the last dimension, to probabilities."""
    return aten("sigmoid")(logits) if is_binary else aten("softmax")(logits, -1)


def probs_to_logits(probs: Tensor, is_binary: bool = False) -> Tensor:
    """Convert probabilities to log-odds or to logarithms; probabilities are clamped away from 0 and 1
    first."""
    clamped = clamp_probs(probs)
    logarithm = aten("log")(clamped)
    return logarithm - aten("log1p")(-clamped) if is_binary else logarithm


class lazy_property:
    """A property that is computed when it is first read, with gradients, and then stored in the object."""

    def __init__(self, wrapped: Callable[[Any], Any]):
        self.wrapped = wrapped
        functools.update_wrapper(self, wrapped)  # type: ignore[arg-type]

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        if instance is None:
            return property(self.wrapped)
        with enable_grad():
            value = self.wrapped(instance)
        setattr(instance, self.wrapped.__name__, value)
        return value


def vec_to_tril_matrix(vec: Tensor, diag: int = 0) -> Tensor:
    """Lower triangular matrices whose elements, row by row, are the last dimension of `vec`."""
    count = vec.shape[-1]
    n = int((-(1 + 2 * diag) + ((1 + 2 * diag) ** 2 + 8 * count + 4 * abs(diag) * (diag + 1)) ** 0.5) / 2)
    rows, columns = aten("tril_indices")(n, n, diag).unbind(0)
    flat = vec.new_zeros((*vec.shape[:-1], n * n))
    places = (rows * n + columns).expand(vec.shape)
    return aten("scatter")(flat, -1, places, vec).reshape((*vec.shape[:-1], n, n))


def tril_matrix_to_vec(mat: Tensor, diag: int = 0) -> Tensor:
    """The elements of lower triangles, row by row."""
    n = mat.shape[-1]
    rows, columns = aten("tril_indices")(n, n, diag).unbind(0)
    return mat.reshape((*mat.shape[:-2], n * n))[..., rows * n + columns]
