"""Functions of `tenfold.nn.functional` that extend a matrix product: by scales, by groups, by a loss."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tenfold.base.dtypes import DType, bfloat16
from tenfold.base.errors import ShapeError, located
from tenfold.nn.functional_losses import cross_entropy
from tenfold.tensor import Tensor
from tenfold.tensor.dispatch import aten

__all__ = ["grouped_mm", "linear_cross_entropy", "scaled_mm"]


@located
def linear_cross_entropy(
    input: Tensor,
    linear_weight: Tensor,
    target: Tensor,
    *,
    linear_bias: Tensor | None = None,
    weight: Tensor | None = None,
    reduction: str = "mean",
    ignore_index: int | None = None,
    label_smoothing: float = 0.0,
    options: Any = None,
) -> Tensor:
    """cross_entropy(linear(input, linear_weight, linear_bias), target)

    Input (*, features), weight (classes, features), target (*). A weight of (classes, d₁, …, features) scores
    each sample at every index of d₁, …. Programs are not chunked, so `options` have no effect.

        F.linear_cross_entropy(tn.ones(2, 3), tn.zeros(4, 3), tn.tensor([0, 3]))  # 1.3863
    """
    if linear_weight.ndim < 2 or (linear_weight.ndim > 2 and input.ndim != 2):
        raise ShapeError(
            f"linear_weight {tuple(linear_weight.shape)} does not fit an input of {tuple(input.shape)}",
            help="it is (classes, features), or (classes, d1, ..., features) for an input (N, features)",
        )
    bias = linear_bias if linear_bias is None else linear_bias.flatten()
    scores = aten("linear")(input, linear_weight.flatten(0, -2), bias)
    scores = scores.unflatten(-1, linear_weight.shape[:-1])
    ignored = -100 if ignore_index is None else ignore_index
    return cross_entropy(
        scores, target, weight, ignore_index=ignored, reduction=reduction, label_smoothing=label_smoothing
    )


@located
def grouped_mm(
    mat_a: Tensor,
    mat_b: Tensor,
    *,
    offs: Tensor | None = None,
    bias: Tensor | None = None,
    out_dtype: DType | None = None,
) -> Tensor:
    """The matrix products of groups; if an operand is a single matrix, `offs` says where its groups end

    x, w = tn.ones(4, 8, dtype=tn.bfloat16), tn.ones(2, 8, 16, dtype=tn.bfloat16)
    F.grouped_mm(x, w, offs=tn.tensor([1, 4], dtype=tn.int32)).shape  # [4, 16]
    """
    return aten("_grouped_mm")(mat_a, mat_b, offs, bias, out_dtype)


def _several(value: Any) -> list[Any]:
    return list(value) if isinstance(value, (list, tuple)) else [value]


@located
def scaled_mm(
    mat_a: Tensor,
    mat_b: Tensor,
    scale_a: Tensor | list[Tensor],
    scale_recipe_a: Any,
    scale_b: Tensor | list[Tensor],
    scale_recipe_b: Any,
    swizzle_a: Any = None,
    swizzle_b: Any = None,
    bias: Tensor | None = None,
    output_dtype: DType | None = bfloat16,
    contraction_dim: Sequence[int] = (),
    use_fast_accum: bool = False,
) -> Tensor:
    """The product of two float8 matrices, each times its scale

    A scale is one number (recipe 0), or one for each row of the first and column of the second (recipe 1).

        a, scale = tn.ones(2, 16).to(tn.float8_e4m3fn), tn.tensor(0.5)
        F.scaled_mm(a, a.T, scale, 0, scale, 0, output_dtype=tn.float32).shape  # [2, 2]
    """
    recipes = [
        [int(getattr(each, "value", each)) for each in _several(given)]
        for given in (scale_recipe_a, scale_recipe_b)
    ]
    swizzles = [[0 if each is None else int(getattr(each, "value", each)) for each in _several(given)]
                for given in (swizzle_a, swizzle_b)]  # fmt: skip
    return aten("_scaled_mm_v2")(
        mat_a, mat_b, _several(scale_a), recipes[0], swizzles[0], _several(scale_b), recipes[1], swizzles[1],
        bias, output_dtype, list(contraction_dim), use_fast_accum,
    )  # fmt: skip
