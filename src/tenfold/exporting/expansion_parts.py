"""What several expansions do: widen half types and reduce a loss."""

from __future__ import annotations

from tenfold.base.dtypes import bfloat16, float16
from tenfold.tensor import Tensor


def widened(x: Tensor) -> Tensor:
    """x in the dtype in which it is computed: half types in float32, as the rows do."""
    return x.float() if x.dtype in (float16, bfloat16) else x


def reduced(loss: Tensor, reduction: int) -> Tensor:
    """A loss of each element as it is (0), its mean (1) or its sum (2)."""
    return loss if reduction == 0 else loss.mean() if reduction == 1 else loss.sum()
