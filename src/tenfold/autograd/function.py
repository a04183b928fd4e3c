"""`tenfold.autograd.function`: `Function` under its other name, and the decorators of its `backward`."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from tenfold.autograd.custom import Context, Function
from tenfold.autograd.grad_mode import no_grad
from tenfold.tensor import Tensor

__all__ = ["Function", "FunctionCtx", "InplaceFunction", "once_differentiable"]

FunctionCtx = Context


def once_differentiable(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Run a Function's `backward` without following gradients: its results have no derivative."""

    @functools.wraps(fn)
    def call(ctx: Any, *gradients: Any) -> Any:
        with no_grad():
            results = fn(ctx, *gradients)
        several = isinstance(results, tuple)
        parts = [
            result.detach() if isinstance(result, Tensor) else result
            for result in (results if several else (results,))
        ]
        return tuple(parts) if several else parts[0]

    return call


class InplaceFunction(Function):
    """A Function whose constructor takes `inplace`, as in older programs; only `ctx.mark_dirty` has an
    effect."""
