"""`tenfold.autograd.forward_ad`: derivatives in the direction of a tangent, by tensors that carry one.

Within `dual_level()`, `make_dual` ties a tangent to a tensor, and `unpack_dual` gives that of anything
computed from it: the gradient of the gradient, which is linear in its cotangent. So what is computed from a
dual tensor requires gradients, and under `no_grad` nothing carries a tangent on. `tenfold.func.jvp` does the
same for a function, by FlatIR's own forward mode.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import NamedTuple

from tenfold.autograd.flow import grad, survey
from tenfold.errors import ArgumentError, DTypeError, GradientError, ShapeError, located
from tenfold.functional import aten
from tenfold.grad_mode import enable_grad
from tenfold.source import capture
from tenfold.tensor import Tensor
from tenfold.trace import graph

__all__ = [
    "UnpackedDualTensor",
    "dual_level",
    "enter_dual_level",
    "exit_dual_level",
    "make_dual",
    "unpack_dual",
]


class UnpackedDualTensor(NamedTuple):
    """A tensor, and how it moves; None where it does not."""

    primal: Tensor
    tangent: Tensor | None


_levels: list[list[tuple[Tensor, Tensor]]] = []  # of each, the dual tensors made so far and their tangents


@located
def enter_dual_level() -> int:
    """Begin a level, in which tensors carry tangents; there is one at a time."""
    if _levels:
        raise GradientError(
            "a level of dual tensors begins inside another", help="nest tenfold.func.jvp for higher orders"
        )
    _levels.append([])
    return 0


@located
def exit_dual_level(*, level: int | None = None) -> None:
    """End the level: its tensors carry no tangents from here on."""
    _open(level)
    _levels.pop()


@contextlib.contextmanager
def dual_level() -> Iterator[int]:
    """A level of dual tensors, for a `with` block.

    with forward_ad.dual_level():
        x = forward_ad.make_dual(tenfold.tensor(2.0), tenfold.tensor(1.0))
        forward_ad.unpack_dual(x**3).tangent  # 12
    """
    level = enter_dual_level()
    try:
        yield level
    finally:
        exit_dual_level(level=level)


@located
def make_dual(tensor: Tensor, tangent: Tensor, *, level: int | None = None) -> Tensor:
    """The tensor, carrying `tangent` along in all that is computed from it."""
    duals = _open(level)
    if tensor.dtype.kind not in ("float", "complex"):
        raise DTypeError(f"tensors of floats and complex numbers carry tangents, not {tensor.dtype.name}")
    if tensor.current().type is not tangent.current().type:
        raise ShapeError(
            f"the tangent of {tensor.current().type} cannot be {tangent.current().type}",
            help="a tangent has its tensor's shape and dtype",
        )
    with enable_grad():
        followed = tensor.requires_grad
        dual = aten("clone")(tensor) if followed else Tensor(graph.fresh(tensor.current(), capture()))
        dual.requires_grad_()
    duals.append((dual, tangent))
    return dual


@located
def unpack_dual(tensor: Tensor, *, level: int | None = None) -> UnpackedDualTensor:
    """The tensor without its tangent, and the tangent."""
    duals = _open(level)
    for dual, tangent in duals:
        if dual is tensor:
            return UnpackedDualTensor(_released(tensor, duals), tangent)
    if not tensor.requires_grad or not duals:
        return UnpackedDualTensor(tensor, None)
    with enable_grad():
        cotangent = aten("zeros_like")(tensor.detach()).requires_grad_()
        own = [dual for dual, _ in duals]
        found = grad(tensor, own, cotangent, retain_graph=True, create_graph=True, allow_unused=True)
        moving = [(g, t) for g, (_, t) in zip(found, duals, strict=True) if g is not None and g.requires_grad]
        if not moving:
            return UnpackedDualTensor(_released(tensor, duals), None)
        gradients, tangents = zip(*moving, strict=True)
        further = _released(tensor, duals) is tensor or any(each.requires_grad for each in tangents)
        (moved,) = grad(gradients, cotangent, tangents, create_graph=further, allow_unused=True)
    return UnpackedDualTensor(_released(tensor, duals), moved)


def _open(level: int | None) -> list[tuple[Tensor, Tensor]]:
    if not _levels:
        raise GradientError("there is no level of dual tensors", help="use `with forward_ad.dual_level():`")
    if level not in (None, 0):
        raise ArgumentError(f"there is no level {level} of dual tensors", help="leave level= out")
    return _levels[-1]


def _released(tensor: Tensor, duals: list[tuple[Tensor, Tensor]]) -> Tensor:
    """A tensor without what only dual tensors require of it: with gradients where others ask for them."""
    own = {id(dual._leaf) for dual, _ in duals if dual._leaf is not None}
    leaves = survey([tensor.current()])[1]
    beyond = any(each.origin is not None and id(each.origin.of) not in own for each in leaves)
    return tensor if beyond else tensor.detach()
