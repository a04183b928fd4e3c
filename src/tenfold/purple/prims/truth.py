"""What counts as true, and when two tensors are alike."""

from __future__ import annotations

from typing import Any

import numpy as np

from tenfold.purple import messages
from tenfold.purple.errors import PurpleError
from tenfold.purple.values import NIL
from tenfold.tensor import Tensor


def is_true(value: Any) -> bool:
    """All but #f and nil. A tensor of one element is true unless it is 0; one of several is an error."""
    if not isinstance(value, Tensor):
        return value is not False and value is not NIL
    count = value.numel()
    if count != 1:
        raise PurpleError(messages.no_truth(count), "tensor", help=messages.NO_TRUTH_HELP)
    return bool(value.item())


def is_same_tensor(left: Tensor, right: Tensor) -> bool:
    """Whether dtype, shape and numbers are the same: as in `eq?`, nan is one value, and 0.0 is not -0.0."""
    if left.dtype != right.dtype or list(left.shape) != list(right.shape):
        return False
    one, two = left.detach().numpy(), right.detach().numpy()
    if not left.dtype.is_floating_point:
        return one.tobytes() == two.tobytes()
    one, two = one.astype(np.float64), two.astype(np.float64)
    same = (one == two) & (np.signbit(one) == np.signbit(two))
    return bool((same | (np.isnan(one) & np.isnan(two))).all())
