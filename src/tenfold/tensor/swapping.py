"""`swap_tensors`: exchanges two tensors, so that every reference to one of them refers to the other."""

from __future__ import annotations

import weakref

from tenfold.base.errors import ArgumentError, TraceError, located
from tenfold.tensor.tensor import Tensor
from tenfold.trace.context import context

_FIELDS = ("__class__", "__dict__", "_alias", "_leaf", "_shelf", "_value", "_writes")


@located
def swap_tensors(t1: Tensor, t2: Tensor) -> None:
    """Exchange everything that two tensors are: class, attributes, values, memory and gradients."""
    for tensor in (t1, t2):
        if not isinstance(tensor, Tensor):
            raise ArgumentError(f"takes tensors, not {type(tensor).__name__}")
    if context.recorder is not None:
        raise TraceError(
            "a compiled function cannot swap tensors", help="swap them before the function is called"
        )
    for field in _FIELDS:
        first, second = getattr(t1, field), getattr(t2, field)
        setattr(t1, field, second)
        setattr(t2, field, first)
    for tensor in (t1, t2):
        if tensor._leaf is not None:
            tensor._leaf.leaf = weakref.ref(tensor)
        if tensor._alias is not None and tensor._alias.base.owner is not None and not tensor._alias.is_view:
            tensor._alias.base.owner = weakref.ref(tensor)
