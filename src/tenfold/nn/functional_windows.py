"""Convolutions and pools of `tenfold.nn.functional`: functions that slide a window over images."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

from tenfold.base.errors import ArgumentError, ShapeError, located
from tenfold.nn.sizes import each_dimension
from tenfold.tensor import Tensor
from tenfold.tensor.dispatch import aten

__all__ = [
    "adaptive_avg_pool1d",
    "adaptive_avg_pool2d",
    "adaptive_avg_pool3d",
    "adaptive_max_pool1d",
    "adaptive_max_pool1d_with_indices",
    "adaptive_max_pool2d",
    "adaptive_max_pool2d_with_indices",
    "adaptive_max_pool3d",
    "adaptive_max_pool3d_with_indices",
    "avg_pool1d",
    "conv1d",
    "conv2d",
    "conv3d",
    "conv_tbc",
    "conv_transpose1d",
    "conv_transpose2d",
    "conv_transpose3d",
    "fractional_max_pool2d",
    "fractional_max_pool2d_with_indices",
    "fractional_max_pool3d",
    "fractional_max_pool3d_with_indices",
    "lp_pool1d",
    "lp_pool2d",
    "lp_pool3d",
    "max_pool1d",
    "max_pool1d_with_indices",
    "max_pool2d",
    "max_pool2d_with_indices",
    "max_pool3d",
    "max_pool3d_with_indices",
    "max_unpool1d",
    "max_unpool2d",
    "max_unpool3d",
]

Size = int | Sequence[int]
Both = tuple[Tensor, Tensor]

adaptive_avg_pool1d = aten("adaptive_avg_pool1d")
avg_pool1d = aten("avg_pool1d")
conv1d = aten("conv1d")
conv2d = aten("conv2d")
conv3d = aten("conv3d")
conv_tbc = aten("conv_tbc")
conv_transpose1d = aten("conv_transpose1d")
conv_transpose2d = aten("conv_transpose2d")
conv_transpose3d = aten("conv_transpose3d")


def _chosen(
    both: Callable[..., Both], one: Callable[..., Tensor], dims: int, place: int
) -> Callable[..., Any]:
    """A function of pools that gives places as well if return_indices, its argument at `place`, is true."""

    @functools.wraps(one)
    def call(*args: Any, **kwargs: Any) -> Any:
        wanted = kwargs.get("return_indices", args[place] if len(args) > place else False)
        return both(*args, **kwargs) if wanted else one(*args, **kwargs)

    call.__name__ = call.__qualname__ = both.__name__.removesuffix("_with_indices")
    del call.__wrapped__  # so that its signature is PyTorch's
    for each in (both, call):
        each.__doc__ = _of_dimensions(each.__doc__ or "", dims)
    return call


def _of_dimensions(docstring: str, dims: int) -> str:
    """A docstring about images, for as many dimensions as the function has."""
    extents = {1: ("L",), 2: ("H", "W"), 3: ("D", "H", "W")}[dims]
    for text in ("{}", "{}out"):
        images = ", ".join(text.format(each) for each in ("H", "W"))
        docstring = docstring.replace(images, ", ".join(text.format(each) for each in extents))
    for size in (4, 5, 8):
        docstring = docstring.replace(f"3, {size}, {size}", f"3{f', {size}' * dims}")
    return docstring.replace("pool2d", f"pool{dims}d")


# Max-pools


def _max_pool(dims: int) -> tuple[Callable[..., Both], Callable[..., Tensor]]:
    def both(
        input: Tensor,
        kernel_size: Size,
        stride: Size | None = None,
        padding: Size = 0,
        dilation: Size = 1,
        ceil_mode: bool = False,
        return_indices: bool = False,
    ) -> Both:
        """The maximum of each window, and its position in the flattened input

        Input (N, C, H, W) or (C, H, W), output (N, C, Hout, Wout) or (C, Hout, Wout).

            pooled, where = F.max_pool2d_with_indices(tn.ones(2, 3, 8, 8), 2)  # [2, 3, 4, 4], [2, 3, 4, 4]
        """
        steps = () if stride is None else stride
        return aten(f"max_pool{dims}d_with_indices")(input, kernel_size, steps, padding, dilation, ceil_mode)

    def one(
        input: Tensor,
        kernel_size: Size,
        stride: Size | None = None,
        padding: Size = 0,
        dilation: Size = 1,
        ceil_mode: bool = False,
        return_indices: bool = False,
    ) -> Tensor:
        """The maximum of each window; with return_indices also its position

        Input (N, C, H, W) or (C, H, W), output (N, C, Hout, Wout) or (C, Hout, Wout).

            F.max_pool2d(tn.ones(2, 3, 8, 8), 2).shape  # [2, 3, 4, 4]
        """
        steps = () if stride is None else stride
        return aten(f"max_pool{dims}d")(input, kernel_size, steps, padding, dilation, ceil_mode)

    both.__name__ = both.__qualname__ = f"max_pool{dims}d_with_indices"
    return both, one


max_pool1d_with_indices, _one = _max_pool(1)
max_pool1d = _chosen(max_pool1d_with_indices, _one, 1, 6)
max_pool2d_with_indices, _one = _max_pool(2)
max_pool2d = _chosen(max_pool2d_with_indices, _one, 2, 6)
max_pool3d_with_indices, _one = _max_pool(3)
max_pool3d = _chosen(max_pool3d_with_indices, _one, 3, 6)


def _sizes(input: Tensor, output_size: Any, dims: int) -> tuple[int, ...]:
    """One extent for each dimension, where None keeps the input's."""
    given = each_dimension(output_size, dims)
    if input.ndim < dims:
        raise ShapeError(f"takes {dims} spatial dimensions, not {input.ndim} in all")
    return tuple([input.shape[i - dims] if size is None else size for i, size in enumerate(given)])


def _adaptive_max_pool(dims: int) -> tuple[Callable[..., Both], Callable[..., Tensor]]:
    def both(input: Tensor, output_size: Any, return_indices: bool = False) -> Both:
        """The maximum of each of output_size windows that cover the input, and its position

        Input (N, C, H, W) or (C, H, W), output (N, C, Hout, Wout) or (C, Hout, Wout).

            x = tn.ones(2, 3, 8, 8)
            pooled, where = F.adaptive_max_pool2d_with_indices(x, 4)  # [2, 3, 4, 4], [2, 3, 4, 4]
        """
        return aten(f"adaptive_max_pool{dims}d")(input, _sizes(input, output_size, dims))

    both.__name__ = both.__qualname__ = f"adaptive_max_pool{dims}d_with_indices"
    both = located(both)

    def one(input: Tensor, output_size: Any, return_indices: bool = False) -> Tensor:
        """The maximum of each of output_size windows that cover the input

        Input (N, C, H, W) or (C, H, W), output (N, C, Hout, Wout) or (C, Hout, Wout).

            F.adaptive_max_pool2d(tn.ones(2, 3, 8, 8), 4).shape  # [2, 3, 4, 4]
        """
        return both(input, output_size)[0]

    return both, one


adaptive_max_pool1d_with_indices, _one = _adaptive_max_pool(1)
adaptive_max_pool1d = _chosen(adaptive_max_pool1d_with_indices, _one, 1, 2)
adaptive_max_pool2d_with_indices, _one = _adaptive_max_pool(2)
adaptive_max_pool2d = _chosen(adaptive_max_pool2d_with_indices, _one, 2, 2)
adaptive_max_pool3d_with_indices, _one = _adaptive_max_pool(3)
adaptive_max_pool3d = _chosen(adaptive_max_pool3d_with_indices, _one, 3, 2)


def _fractional_max_pool(dims: int) -> tuple[Callable[..., Both], Callable[..., Tensor]]:
    name = f"fractional_max_pool{dims}d"

    def both(
        input: Tensor,
        kernel_size: Size,
        output_size: Size | None = None,
        output_ratio: Any = None,
        return_indices: bool = False,
        _random_samples: Tensor | None = None,
    ) -> Both:
        """The maximum of each of output_size windows, placed at random, and its position

        Input (N, C, H, W) or (C, H, W), output (N, C, Hout, Wout) or (C, Hout, Wout).

            x = tn.ones(2, 3, 8, 8)
            pooled, where = F.fractional_max_pool2d_with_indices(x, 2, 5)  # [2, 3, 5, 5], [2, 3, 5, 5]
        """
        if output_size is None:
            if output_ratio is None:
                raise ArgumentError("needs an output_size or an output_ratio")
            ratios = each_dimension(output_ratio, dims)
            output_size = [int(input.shape[i - dims] * ratio) for i, ratio in enumerate(ratios)]
        if _random_samples is None:
            batch = 1 if input.ndim == dims + 1 else input.shape[0]
            shape = (batch, input.shape[-dims - 1], dims)
            _random_samples = aten("rand")(shape, dtype=input.dtype, device=input.device)
        return aten(name)(input, kernel_size, output_size, _random_samples)

    both.__name__ = both.__qualname__ = f"{name}_with_indices"
    both = located(both)

    def one(*args: Any, **kwargs: Any) -> Tensor:
        """The maximum of each of output_size windows, placed at random

        Input (N, C, H, W) or (C, H, W), output (N, C, Hout, Wout) or (C, Hout, Wout).

            F.fractional_max_pool2d(tn.ones(2, 3, 8, 8), 2, 5).shape  # [2, 3, 5, 5]
        """
        return both(*args, **kwargs)[0]

    return both, one


fractional_max_pool2d_with_indices, _one = _fractional_max_pool(2)
fractional_max_pool2d = _chosen(fractional_max_pool2d_with_indices, _one, 2, 4)
fractional_max_pool3d_with_indices, _one = _fractional_max_pool(3)
fractional_max_pool3d = _chosen(fractional_max_pool3d_with_indices, _one, 3, 4)


# Unpooling


def _unpool_size(input: Tensor, dims: int, kernel: Size, stride: Any, padding: Any, size: Any) -> Any:
    """The extents of an unpooled image: those asked for, if some pool could have come from them."""
    kernel = each_dimension(kernel, dims)
    stride, padding = each_dimension(stride or kernel, dims), each_dimension(padding, dims)
    expected = [(input.shape[i - dims] - 1) * stride[i] + kernel[i] - 2 * padding[i] for i in range(dims)]
    if size is None:
        return expected, stride, padding
    size = list(size)[2:] if len(size) == dims + 2 else list(size)
    if len(size) != dims:
        raise ArgumentError(f"output_size {size} has not one number for each of {dims} dimensions")
    for given, usual, step in zip(size, expected, stride, strict=True):
        if not usual - step < given < usual + step:
            raise ArgumentError(
                f"output_size {given} cannot be pooled to this input",
                help=f"it lies between {usual - step} and {usual + step}",
            )
    return size, stride, padding


@located
def max_unpool1d(
    input: Tensor,
    indices: Tensor,
    kernel_size: Size,
    stride: Size | None = None,
    padding: Size = 0,
    output_size: Sequence[int] | None = None,
) -> Tensor:
    """Puts maxima back where `max_pool1d` found them, with zeros elsewhere

    Input and indices (N, C, L), output (N, C, Lout).

        pooled, where = F.max_pool1d_with_indices(tn.ones(2, 3, 8), 2)
        F.max_unpool1d(pooled, where, 2).shape  # [2, 3, 8]
    """
    size, _, _ = _unpool_size(input, 1, kernel_size, stride, padding, output_size)
    wide = aten("max_unpool2d")(input.unsqueeze(-1), indices.unsqueeze(-1), [*size, 1])
    return wide.squeeze(-1)


@located
def max_unpool2d(
    input: Tensor,
    indices: Tensor,
    kernel_size: Size,
    stride: Size | None = None,
    padding: Size = 0,
    output_size: Sequence[int] | None = None,
) -> Tensor:
    """Puts maxima back where `max_pool2d` found them, with zeros elsewhere

    Input and indices (N, C, H, W), output (N, C, Hout, Wout).

        pooled, where = F.max_pool2d_with_indices(tn.ones(2, 3, 8, 8), 2)
        F.max_unpool2d(pooled, where, 2).shape  # [2, 3, 8, 8]
    """
    size, _, _ = _unpool_size(input, 2, kernel_size, stride, padding, output_size)
    return aten("max_unpool2d")(input, indices, size)


@located
def max_unpool3d(
    input: Tensor,
    indices: Tensor,
    kernel_size: Size,
    stride: Size | None = None,
    padding: Size = 0,
    output_size: Sequence[int] | None = None,
) -> Tensor:
    """Puts maxima back where `max_pool3d` found them, with zeros elsewhere

    Input and indices (N, C, D, H, W), output (N, C, Dout, Hout, Wout).

        pooled, where = F.max_pool3d_with_indices(tn.ones(2, 3, 8, 8, 8), 2)
        F.max_unpool3d(pooled, where, 2).shape  # [2, 3, 8, 8, 8]
    """
    size, stride, padding = _unpool_size(input, 3, kernel_size, stride, padding, output_size)
    return aten("max_unpool3d")(input, indices, size, stride, padding)


# Means and norms of windows


@located
def adaptive_avg_pool2d(input: Tensor, output_size: Any) -> Tensor:
    """The mean of each of output_size windows that cover the input; None keeps an extent

    Input (N, C, H, W) or (C, H, W), output (N, C, *output_size).

        F.adaptive_avg_pool2d(tn.ones(2, 3, 8, 8), 4).shape  # [2, 3, 4, 4]
    """
    return aten("adaptive_avg_pool2d")(input, _sizes(input, output_size, 2))


@located
def adaptive_avg_pool3d(input: Tensor, output_size: Any) -> Tensor:
    """The mean of each of output_size windows that cover the input; None keeps an extent

    Input (N, C, D, H, W) or (C, D, H, W), output (N, C, *output_size).

        F.adaptive_avg_pool3d(tn.ones(2, 3, 8, 8, 8), 4).shape  # [2, 3, 4, 4, 4]
    """
    return aten("adaptive_avg_pool3d")(input, _sizes(input, output_size, 3))


def _lp_pool(
    input: Tensor, norm: float, kernel: Size, stride: Size | None, ceil_mode: bool, dims: int
) -> Tensor:
    steps = () if stride is None else stride
    if math.isinf(norm):
        sign = 1 if norm > 0 else -1
        return sign * aten(f"max_pool{dims}d")(sign * input.abs(), kernel, steps, 0, 1, ceil_mode)
    mean = aten(f"avg_pool{dims}d")(input.pow(norm), kernel, steps, 0, ceil_mode)
    count = math.prod(each_dimension(kernel, dims))
    return (mean.sign() * mean.abs().relu()).mul(count).pow(1.0 / norm)


def lp_pool1d(
    input: Tensor,
    norm_type: float,
    kernel_size: int,
    stride: Size | None = None,
    ceil_mode: bool = False,
) -> Tensor:
    """(Σ xᵖ)^(1/p) of each window, where p is norm_type

    Input (N, C, L) or (C, L), output (N, C, Lout).

        F.lp_pool1d(tn.ones(2, 3, 8), 2, 2).shape  # [2, 3, 4]
    """
    return _lp_pool(input, norm_type, kernel_size, stride, ceil_mode, 1)


def lp_pool2d(
    input: Tensor,
    norm_type: float,
    kernel_size: Size,
    stride: Size | None = None,
    ceil_mode: bool = False,
) -> Tensor:
    """(Σ xᵖ)^(1/p) of each window, where p is norm_type

    Input (N, C, H, W) or (C, H, W), output (N, C, Hout, Wout).

        F.lp_pool2d(tn.ones(2, 3, 8, 8), 2, 2).shape  # [2, 3, 4, 4]
    """
    return _lp_pool(input, norm_type, kernel_size, stride, ceil_mode, 2)


def lp_pool3d(
    input: Tensor,
    norm_type: float,
    kernel_size: Size,
    stride: Size | None = None,
    ceil_mode: bool = False,
) -> Tensor:
    """(Σ xᵖ)^(1/p) of each window, where p is norm_type

    Input (N, C, D, H, W) or (C, D, H, W), output (N, C, Dout, Hout, Wout).

        F.lp_pool3d(tn.ones(2, 3, 8, 8, 8), 2, 2).shape  # [2, 3, 4, 4, 4]
    """
    return _lp_pool(input, norm_type, kernel_size, stride, ceil_mode, 3)
