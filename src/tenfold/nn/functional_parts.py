"""Parts of which `torch.nn.functional` is made, by the names under which layers of other people import them:
the projections and masks of attention, a check, and the
rows of a table that are cut before they are read."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from tenfold.autograd.forward_ad import suspended
from tenfold.autograd.grad_mode import no_grad
from tenfold.base.dtypes import DType
from tenfold.base.errors import ShapeError, located
from tenfold.base.warning import warn
from tenfold.nn.functional_attention import additive
from tenfold.tensor import Tensor
from tenfold.tensor.dispatch import aten
from tenfold.trace.context import context


def _in_projection(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    w_q: Tensor,
    w_k: Tensor,
    w_v: Tensor,
    b_q: Tensor | None = None,
    b_k: Tensor | None = None,
    b_v: Tensor | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Queries, keys and values, each by its own weights."""
    linear = aten("linear")
    return linear(q, w_q, b_q), linear(k, w_k, b_k), linear(v, w_v, b_v)


def _in_projection_packed(
    q: Tensor, k: Tensor, v: Tensor, w: Tensor, b: Tensor | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    """Queries, keys and values by the thirds of one weight; in one product where the three are the same."""
    if q is k and k is v:
        one, two, three = aten("linear")(q, w, b).split(q.shape[-1], -1)
        return one, two, three
    biases = (None, None, None) if b is None else b.chunk(3)
    return _in_projection(q, k, v, *w.chunk(3), *biases)


@located
def _canonical_mask(
    mask: Tensor | None,
    mask_name: str,
    other_type: DType | None,
    other_name: str,
    target_type: DType,
    check_other: bool = True,
) -> Tensor | None:
    """A mask as numbers to add."""
    if mask is not None and check_other and other_type is not None and mask.dtype is not other_type:
        warn(f"{mask_name} and {other_name} have different dtypes, which is deprecated")
    return additive(mask_name, mask, target_type)


def _none_or_dtype(input: Tensor | None) -> DType | None:
    return None if input is None else input.dtype


@located
def _verify_batch_size(size: Sequence[Any]) -> None:
    """Refuse a batch that has one value for each channel, of which nothing can be normalised."""
    if math.prod([size[0], *size[2:]]) == 1:
        raise ShapeError(f"training needs more than one value for each channel, not {tuple(size)}")


def _no_grad_embedding_renorm_(weight: Tensor, input: Tensor, max_norm: float, norm_type: float) -> None:
    """Cut the rows of weight that input names to a norm of max_norm. No derivative sees it: the tangent of
    weight stays as it is, too."""
    before, named = weight.current(), input.reshape(-1)
    with no_grad(), suspended():
        weight.index_put_((named,), weight.index_select(0, named).renorm(norm_type, 0, max_norm))
    if context.level is not None:
        context.level.same(before, weight.current())
