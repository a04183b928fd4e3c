"""Folds a batch normalisation into the layer before it, for evaluation."""

from __future__ import annotations

import copy
from typing import Any

from tenfold.autograd.grad_mode import no_grad
from tenfold.base.errors import ArgumentError, located
from tenfold.nn.parameter import Parameter
from tenfold.tensor import Tensor


def _scale(var: Tensor, eps: float, weight: Tensor | None) -> Tensor:
    scale = (var + eps).rsqrt()
    return scale if weight is None else scale * weight


def _shift(bias: Tensor | None, mean: Tensor, scale: Tensor, beta: Tensor | None) -> Tensor:
    moved = (-mean if bias is None else bias - mean) * scale
    return moved if beta is None else moved + beta


def fuse_conv_bn_weights(
    conv_w: Parameter,
    conv_b: Parameter | None,
    bn_rm: Tensor,
    bn_rv: Tensor,
    bn_eps: float,
    bn_w: Tensor | None,
    bn_b: Tensor | None,
    transpose: bool = False,
) -> tuple[Parameter, Parameter]:
    """The weight and bias of a convolution with a batch norm folded in."""
    with no_grad():
        scale = _scale(bn_rv, bn_eps, bn_w)
        trailing = [1] * (conv_w.ndim - 2)
        weight = conv_w * scale.reshape([1, -1, *trailing] if transpose else [-1, 1, *trailing])
        bias = _shift(conv_b, bn_rm, scale, bn_b)
    return (
        Parameter(weight.to(conv_w.dtype), conv_w.requires_grad),
        Parameter(bias.to(conv_w.dtype), conv_w.requires_grad if conv_b is None else conv_b.requires_grad),
    )


def fuse_linear_bn_weights(
    linear_w: Parameter,
    linear_b: Parameter | None,
    bn_rm: Tensor,
    bn_rv: Tensor,
    bn_eps: float,
    bn_w: Tensor,
    bn_b: Tensor,
) -> tuple[Parameter, Parameter]:
    """The weight and bias of a linear layer with a batch norm folded in."""
    with no_grad():
        scale = _scale(bn_rv, bn_eps, bn_w)
        weight, bias = linear_w * scale.unsqueeze(-1), _shift(linear_b, bn_rm, scale, bn_b)
    trained = linear_w.requires_grad if linear_b is None else linear_b.requires_grad
    return (
        Parameter(weight.to(linear_w.dtype), linear_w.requires_grad),
        Parameter(bias.to(linear_w.dtype), trained),
    )


@located
def fuse_conv_bn_eval(conv: Any, bn: Any, transpose: bool = False) -> Any:
    """A copy of a convolution in evaluation mode, with the batch norm after it folded in."""
    _check(conv, bn)
    fused = copy.deepcopy(conv)
    fused.weight, fused.bias = fuse_conv_bn_weights(
        fused.weight, fused.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias, transpose
    )
    return fused


@located
def fuse_linear_bn_eval(linear: Any, bn: Any) -> Any:
    """A copy of a linear layer in evaluation mode, with the batch norm after it folded in."""
    _check(linear, bn)
    if linear.out_features != bn.num_features and bn.num_features != 1:
        raise ArgumentError(f"{linear.out_features} features cannot be normalised as {bn.num_features}")
    fused = copy.deepcopy(linear)
    fused.weight, fused.bias = fuse_linear_bn_weights(
        fused.weight, fused.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias
    )
    return fused


def _check(layer: Any, bn: Any) -> None:
    if layer.training or bn.training:
        raise ArgumentError("layers are fused for evaluation only", help="call .eval() on both first")
    if bn.running_mean is None or bn.running_var is None:
        raise ArgumentError("a batch normalisation without running statistics cannot be fused")
