"""`tenfold.masked`: reductions and normalisations of the elements where a mask is True.

The other elements are replaced by a neutral value, such as zero in a sum, which is also the result of a slice
without any element. A mask has the input's shape or broadcasts to it; without one, all elements count."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from tenfold import linalg
from tenfold.base import dtypes
from tenfold.base.dtypes import DType
from tenfold.base.errors import ArgumentError, DTypeError, IndexOutOfRange, ShapeError, located, unknown_name
from tenfold.tensor import Tensor
from tenfold.tensor.dispatch import aten

__all__ = [
    "amax", "amin", "argmax", "argmin", "cumprod", "cumsum", "log_softmax", "logaddexp", "logsumexp", "mean",
    "median", "norm", "normalize", "prod", "softmax", "softmin", "std", "sum", "var",
]  # fmt: skip

Dims = int | Sequence[int] | None


def _kept(input: Tensor, mask: Tensor | None, neutral: float) -> Tensor:
    """The input, with `neutral` where the mask is False."""
    return input if mask is None else input.masked_fill(_over(input, mask).logical_not(), neutral)


def _over(input: Tensor, mask: Tensor) -> Tensor:
    """A mask in the input's shape."""
    if mask.ndim > input.ndim:
        raise IndexOutOfRange(
            f"a mask of {mask.ndim} dimensions does not broadcast to an input of {input.ndim}"
        )
    return mask.to(dtypes.bool_).broadcast_to(input.shape)


def _lowest(input: Tensor) -> float:
    return -math.inf if input.dtype.kind != "int" else dtypes.iinfo(input.dtype).min


def _highest(input: Tensor) -> float:
    return math.inf if input.dtype.kind != "int" else dtypes.iinfo(input.dtype).max


def _dims(dim: Dims, input: Tensor) -> tuple[int, ...]:
    """The dimensions meant, in order: all of them for None and ()."""
    if dim is None or (not isinstance(dim, int) and not dim):
        return tuple(range(input.ndim))
    extent = max(input.ndim, 1)
    given = (dim,) if isinstance(dim, int) else tuple(dim)
    for each in given:
        if not -extent <= each < extent:
            raise IndexOutOfRange(f"dimension {each} is out of range for a tensor of {input.ndim} dimensions")
    found = {each % extent for each in given}
    if len(found) < len(given):
        raise ShapeError(f"a dimension appears twice in dim={dim}")
    return tuple(sorted(found))


def _summed(input: Tensor) -> DType:
    """What integers are added or multiplied in."""
    return dtypes.int64 if input.dtype.kind in ("bool", "int") else input.dtype


@located
def sum(
    input: Tensor,
    dim: Dims = None,
    *,
    keepdim: bool = False,
    dtype: DType | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The sum over dim; 0 if no element is selected."""
    return _kept(input, mask, 0).sum(_dims(dim, input), keepdim, dtype=dtype or _summed(input))


@located
def prod(
    input: Tensor,
    dim: Dims = None,
    *,
    keepdim: bool = False,
    dtype: DType | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The product over dim; 1 if no element is selected. An empty list names no dimension."""
    result = _kept(input, mask, 1).to(dtype or _summed(input))
    for each in () if dim == [] else reversed(_dims(dim, input)):
        result = result.prod(each, keepdim)
    return result


@located
def cumsum(input: Tensor, dim: int, *, dtype: DType | None = None, mask: Tensor | None = None) -> Tensor:
    """The cumulative sum along dim."""
    return _kept(input, mask, 0).cumsum(*_dims(dim, input), dtype=dtype or input.dtype)


@located
def cumprod(input: Tensor, dim: int, *, dtype: DType | None = None, mask: Tensor | None = None) -> Tensor:
    """The cumulative product along dim."""
    return _kept(input, mask, 1).cumprod(*_dims(dim, input), dtype=dtype or input.dtype)


@located
def amax(
    input: Tensor,
    dim: Dims = None,
    *,
    keepdim: bool = False,
    dtype: DType | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The largest element over dim."""
    kept = _kept(input, mask, _lowest(input))
    return kept.amax(_dims(dim, input), keepdim).to(dtype or input.dtype)


@located
def amin(
    input: Tensor,
    dim: Dims = None,
    *,
    keepdim: bool = False,
    dtype: DType | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The smallest element over dim."""
    kept = _kept(input, mask, _highest(input))
    return kept.amin(_dims(dim, input), keepdim).to(dtype or input.dtype)


@located
def argmax(
    input: Tensor,
    dim: int | None = None,
    *,
    keepdim: bool = False,
    dtype: DType | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The index of the largest element along dim, by default in the input's dtype."""
    return _kept(input, mask, _lowest(input)).argmax(dim, keepdim).to(dtype or input.dtype)


@located
def argmin(
    input: Tensor,
    dim: int | None = None,
    *,
    keepdim: bool = False,
    dtype: DType | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The index of the smallest element along dim, by default in the input's dtype."""
    return _kept(input, mask, _highest(input)).argmin(dim, keepdim).to(dtype or input.dtype)


@located
def mean(
    input: Tensor,
    dim: Dims = None,
    *,
    keepdim: bool = False,
    dtype: DType | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The mean over dim; NaN if no element is selected."""
    wanted = dtype or input.dtype
    if wanted.kind in ("bool", "int"):
        raise DTypeError(f"a mean is no {wanted.name}", help="say dtype=tenfold.float32")
    total = sum(input, dim, keepdim=keepdim, dtype=wanted, mask=mask)
    return total / _count(input, dim, keepdim, mask)


def _count(input: Tensor, dim: Dims, keepdim: bool, mask: Tensor | None) -> Tensor:
    counted = aten("ones_like")(input, dtype=dtypes.bool_) if mask is None else _over(input, mask)
    return counted.sum(_dims(dim, input), keepdim)


@located
def median(
    input: Tensor,
    dim: int = -1,
    *,
    keepdim: bool = False,
    dtype: DType | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The lower median along dim; NaN if no element is selected, which is an error for integers."""
    if input.dtype.is_floating_point:
        return _kept(input, mask, math.nan).nanmedian(*_dims(dim, input), keepdim).values
    result = median(input.to(dtypes.float32), dim, keepdim=keepdim, mask=mask)
    if bool(result.isnan().any()):
        raise ArgumentError(
            f"a slice has no element, and {input.dtype.name} has no NaN to say so",
            help="convert the input to a floating-point dtype",
        )
    return result.to(dtype or input.dtype)


@located
def logsumexp(
    input: Tensor,
    dim: Dims = None,
    *,
    keepdim: bool = False,
    dtype: DType | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """log of the sum of exp over dim."""
    kept = _kept(input, mask, _lowest(input))
    return kept.logsumexp(_dims(dim, input), keepdim).to(dtype or input.dtype)


@located
def logaddexp(
    input: Tensor,
    other: Tensor,
    *,
    dtype: DType | None = None,
    input_mask: Tensor | None = None,
    other_mask: Tensor | None = None,
) -> Tensor:
    """log(exp(input) + exp(other)), where what a mask leaves out adds nothing."""
    kept = _kept(input, input_mask, _lowest(input))
    return kept.logaddexp(_kept(other, other_mask, _lowest(other))).to(dtype or input.dtype)


@located
def norm(
    input: Tensor,
    ord: float | None = 2.0,
    dim: Dims = None,
    *,
    keepdim: bool = False,
    dtype: DType | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The vector norm of order `ord` over dim."""
    order = 2.0 if ord is None else ord
    kept = _kept(input, mask, math.inf if order == -math.inf else 0)
    return linalg.vector_norm(kept, order, _dims(dim, input), keepdim, dtype=dtype or input.dtype)


@located
def var(
    input: Tensor,
    dim: Dims = None,
    unbiased: bool | None = None,
    *,
    correction: float | None = None,
    keepdim: bool = False,
    dtype: DType | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The variance over dim: squared distances from the mean, divided by the number of elements minus
    `correction`."""
    if unbiased is not None and correction is not None:
        raise ArgumentError("unbiased and correction say the same", help="give one of them")
    less = correction if correction is not None else 1 if unbiased is None or unbiased else 0
    wanted = dtype or (dtypes.float32 if input.dtype.kind in ("bool", "int") else input.dtype)
    inside = dtypes.float32 if wanted.kind in ("bool", "int") else wanted
    total = sum(input, dim, keepdim=True, dtype=wanted, mask=mask)
    away = input - total / _count(input, dim, True, mask)
    squares = sum(away * away.conj(), dim, keepdim=keepdim, dtype=inside, mask=mask)
    count = _count(input, dim, keepdim, mask)
    if less:
        count = (count.to(inside.to_real() if inside.is_complex else inside) - less).clamp(min=0)
    return (squares / count).to(wanted)


@located
def std(
    input: Tensor,
    dim: Dims = None,
    unbiased: bool | None = None,
    *,
    correction: float | None = None,
    keepdim: bool = False,
    dtype: DType | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The square root of `var`."""
    return var(input, dim, unbiased, correction=correction, keepdim=keepdim, dtype=dtype, mask=mask).sqrt()


@located
def softmax(input: Tensor, dim: int, *, dtype: DType | None = None, mask: Tensor | None = None) -> Tensor:
    """exp(x) / sum(exp(x)) along dim; 0 where the mask is False."""
    return _kept(input, mask, _lowest(input)).softmax(*_dims(dim, input), dtype=dtype or input.dtype)


@located
def log_softmax(input: Tensor, dim: int, *, dtype: DType | None = None, mask: Tensor | None = None) -> Tensor:
    """The logarithm of `softmax`."""
    return _kept(input, mask, _lowest(input)).log_softmax(*_dims(dim, input), dtype=dtype or input.dtype)


@located
def softmin(input: Tensor, dim: int, *, dtype: DType | None = None, mask: Tensor | None = None) -> Tensor:
    """`softmax` of -x."""
    return softmax(-_kept(input, mask, _highest(input)), dim, dtype=dtype)


@located
def normalize(
    input: Tensor,
    ord: float,
    dim: int,
    *,
    eps: float = 1e-12,
    dtype: DType | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The input divided by its norm along dim, or by eps if that is larger; 0 where the mask is False."""
    length = norm(input, ord, dim, keepdim=True, dtype=dtype, mask=mask)
    return _kept(input, mask, 0) / length.maximum(length.new_full((), eps))


def __getattr__(name: str) -> Any:
    raise unknown_name("tenfold.masked", name, globals())
