"""Rows that add a product to a tensor: beta · self + alpha · product."""

from __future__ import annotations

from typing import Any

from tenfold import flat
from tenfold.base import dtypes
from tenfold.flat import Value
from tenfold.ops.contraction import accumulator, bmm, check_ranks, contract, mm, mv, outer, same_dtype
from tenfold.ops.numbers import number_in
from tenfold.ops.pointwise import check_number
from tenfold.ops.promote import common
from tenfold.ops.samples import S, T
from tenfold.ops.table import op

# PyTorch rounds a batch's sum after each matrix: compared in float32, on numbers that do not cancel.
_FLOATS = lambda *shape: T(*shape, dtype="float32", low=0.5, high=2)
_SCALES = "*, Scalar beta=1, Scalar alpha=1"


def _added(base: Value, product: Value, beta: Any, alpha: Any) -> Value:
    """Half-precision products come in float32 and are rounded here, once. With beta = 0 NaNs of `base` go."""
    if base.dtype.kind == "int":
        beta, alpha = number_in(beta, base.dtype), number_in(alpha, base.dtype)
    if product.dtype.is_floating_point:
        beta, alpha = number_in(beta, product.dtype), number_in(alpha, product.dtype)
    if not flat.known(alpha) or alpha != 1:
        product = product * alpha
    flat.broadcast_to(base, product.shape)
    if flat.known(beta) and beta == 0:
        return flat.convert(product, base.dtype)
    wide = flat.convert(base, product.dtype)
    scaled = wide if flat.known(beta) and beta == 1 else wide * beta
    return flat.convert(scaled + product, base.dtype)


@op(
    f"addmm(Tensor self, Tensor mat1, Tensor mat2, {_SCALES}) -> Tensor",
    inplace=True,
    special=(0,),
    samples=lambda: [
        S(T(3, 5), T(3, 4), T(4, 5)), S(T(5), T(3, 4), T(4, 5), beta=2, alpha=3), S(T(), T(3, 0), T(0, 5)),
        S(T(3, 5), T(3, 4), T(4, 5), beta=0),
    ], autocast="lower", flops="addmm",)  # fmt: skip
def addmm(base, x, y, beta, alpha):
    """beta · self + alpha · mat1 @ mat2."""
    same_dtype(base, x, y)
    return _added(base, mm(x, y, accumulator(x)), beta, alpha)


@op(
    f"addmv(Tensor self, Tensor mat, Tensor vec, {_SCALES}) -> Tensor",
    inplace=True,
    special=(0,),
    samples=lambda: [S(T(3), T(3, 4), T(4)), S(T(), T(3, 4), T(4), beta=2, alpha=3), S(T(3), T(3, 0), T(0))],
    autocast="cuda: lower",
    forms="function_",
    torch_dialect="add(beta * self, mv(mat, vec), alpha=alpha)",
)
def addmv(base, x, y, beta, alpha):
    """beta · self + alpha · mat @ vec."""
    same_dtype(base, x, y)
    return _added(base, mv(x, y, accumulator(x)), beta, alpha)


@op(
    f"baddbmm(Tensor self, Tensor batch1, Tensor batch2, {_SCALES}) -> Tensor",
    inplace=True,
    special=(0,),
    samples=lambda: [S(T(2, 3, 5), T(2, 3, 4), T(2, 4, 5)), S(T(5), T(2, 3, 4), T(2, 4, 5), beta=2, alpha=3)],
    autocast="lower",
    flops="baddbmm",
)
def baddbmm(base, x, y, beta, alpha):
    """beta · self + alpha · batch1 @ batch2, for each of the batch."""
    same_dtype(base, x, y)
    return _added(base, bmm(x, y, accumulator(x)), beta, alpha)


@op(
    f"addbmm(Tensor self, Tensor batch1, Tensor batch2, {_SCALES}) -> Tensor",
    inplace=True,
    special=(0,),
    samples=lambda: [
        S(_FLOATS(3, 5), _FLOATS(2, 3, 4), _FLOATS(2, 4, 5), beta=2, alpha=3),
        S(T(5), T(1, 3, 4), T(1, 4, 5)),
    ],
    autocast="lower",
    flops="bmm",
)
def addbmm(base, x, y, beta, alpha):
    """beta · self + alpha · the sum over the batch of batch1 @ batch2."""
    same_dtype(base, x, y)
    check_ranks("addbmm", (x, 3), (y, 3))
    return _added(base, contract(x, y, (0, 1, 2), (0, 2, 3), (1, 3), accumulator(x)), beta, alpha)


@op(
    f"addr(Tensor self, Tensor vec1, Tensor vec2, {_SCALES}) -> Tensor",
    inplace=True,
    special=(0,),
    promote=common,
    samples=lambda: [
        S(T(3, 4), T(3), T(4)),
        S(T(4), T(3), T(4), beta=2, alpha=3),
        S(T(3, 4), T(3), T(4), beta=0),
    ],
    autocast="cuda: lower",
)
def addr(base, x, y, beta, alpha):
    """beta · self + alpha · vec1[i] · vec2[j]."""
    check_number("beta", beta, base.dtype)
    check_number("alpha", alpha, base.dtype)
    product = outer(x, y)
    if base.dtype is not dtypes.bool_:
        return _added(base, product, beta, alpha)
    product = product if alpha else flat.full_like(product, False)
    return flat.logical_or(base, product) if beta else product
