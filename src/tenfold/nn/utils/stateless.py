"""Calls of a module with other tensors in place of its own: `func.functional_call` under its older name."""

from __future__ import annotations

from typing import Any

from tenfold import func
from tenfold.base.errors import located
from tenfold.tensor import Tensor

__all__ = ["functional_call"]


@located
def functional_call(
    module: Any,
    parameters_and_buffers: dict[str, Tensor],
    args: Any = None,
    kwargs: dict[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """Call a module with the tensors of a dictionary instead of its own: see `func.functional_call`."""
    return func.functional_call(
        module, parameters_and_buffers, args, kwargs, tie_weights=tie_weights, strict=strict
    )
