"""Functions along a dimension: `scan`, which carries a state from slice to slice, `associative_scan`, which
combines slices in a logarithmic number of steps, and `map`. PyTorch has them in `torch._higher_order_ops`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tenfold.base.errors import ArgumentError, ShapeError, located
from tenfold.func.batching import vmap
from tenfold.func.control_flow import while_loop
from tenfold.func.recorded import is_tensor
from tenfold.tensor import Tensor
from tenfold.tensor.dispatch import aten
from tenfold.trace import tree

__all__ = ["associative_scan", "map", "scan"]


def _flattened(values: Any) -> tuple[list[Tensor], Any]:
    leaves: list[Tensor] = []
    return leaves, tree.flatten(values, is_tensor, leaves)


def _unflattened(leaves: Any, structure: Any) -> Any:
    return tree.unflatten(structure, iter(leaves))


def _leaves(xs: Any, dim: int) -> tuple[list[Tensor], Any, int]:
    """The tensors of a tree with the dimension that is scanned in front, and its extent."""
    leaves, spec = _flattened(xs)
    if not leaves:
        raise ArgumentError("xs is a tree of at least one Tensor")
    if any(not -leaf.ndim <= dim < leaf.ndim for leaf in leaves):
        raise ShapeError(f"dim={dim} is no dimension of every tensor that is scanned")
    moved = [leaf.movedim(dim, 0) for leaf in leaves]
    count = moved[0].shape[0]
    if any(tensor.shape[0] != count for tensor in moved) or not count:
        raise ShapeError("the tensors that are scanned have one extent along dim, of at least 1")
    return moved, spec, count


@located
def scan(
    combine_fn: Callable[[Any, Any], tuple[Any, Any]],
    init: Any,
    xs: Any,
    *,
    dim: int = 0,
    reverse: bool = False,
) -> tuple[Any, Any]:
    """`carry, y = combine_fn(carry, x)` for each slice x of xs along dim; returns the last carry and all y.

    >>> add = lambda total, x: (total + x, total + x)
    >>> total, running = tenfold.func.scan(add, tenfold.tensor(0.0), tenfold.arange(4.0))
    >>> running
    tensor([0., 1., 3., 6.])
    """
    moved, spec, count = _leaves(xs, dim)
    if reverse:
        moved = [tensor.flip(0) for tensor in moved]
    carry, first = combine_fn(init, _unflattened([tensor[0] for tensor in moved], spec))
    carried, carry_spec = _flattened(carry)
    flat_first, made_spec = _flattened(first)
    held = len(carried)

    def step(i: Tensor, *state: Tensor) -> tuple[Any, ...]:
        at = i.reshape(1)
        slices = [tensor.index_select(0, at).squeeze(0) for tensor in moved]
        before = _unflattened(list(state[:held]), carry_spec)
        after, combined = combine_fn(before, _unflattened(slices, spec))
        results = _flattened(combined)[0]
        written = [
            kept.index_copy(0, at, result.unsqueeze(0))
            for kept, result in zip(state[held:], results, strict=True)
        ]
        return (i + 1, *_flattened(after)[0], *written)

    kept = [
        aten("cat")([output.unsqueeze(0), output.new_zeros((count - 1, *output.shape))])
        for output in flat_first
    ]
    if count > 1:
        _, *state = while_loop(lambda i, *state: i < count, step, (1, *carried, *kept))
        carried, kept = list(state[:held]), list(state[held:])
    if reverse:
        kept = [output.flip(0) for output in kept]
    stacked = [output.movedim(0, dim) if output.ndim > abs(dim) else output for output in kept]
    return _unflattened(carried, carry_spec), _unflattened(stacked, made_spec)


@located
def associative_scan(
    combine_fn: Callable[[Any, Any], Any],
    xs: Any,
    dim: int,
    reverse: bool = False,
    combine_mode: str = "pointwise",
) -> Any:
    """The cumulative combinations of the slices along dim, by an associative function.

    >>> tenfold.func.associative_scan(lambda a, b: a * b, tenfold.arange(1.0, 5.0), 0)
    tensor([ 1.,  2.,  6., 24.])
    """
    if combine_mode not in ("pointwise", "generic"):
        raise ArgumentError(f"combine_mode is 'pointwise' or 'generic', not {combine_mode!r}")
    moved, spec, count = _leaves(xs, dim)
    if reverse:
        moved = [tensor.flip(0) for tensor in moved]
    together = vmap(lambda a, b: _flattened(combine_fn(_unflattened(a, spec), _unflattened(b, spec)))[0])
    shift = 1
    while shift < count:  # each slice combined with the `shift` slices before it, twice as many at each step
        joined = together([tensor[:-shift] for tensor in moved], [tensor[shift:] for tensor in moved])
        moved = [aten("cat")([tensor[:shift], new]) for tensor, new in zip(moved, joined, strict=True)]
        shift *= 2
    if reverse:
        moved = [tensor.flip(0) for tensor in moved]
    return _unflattened([tensor.movedim(0, dim) for tensor in moved], spec)


@located
def map(f: Callable[..., Any], xs: Any, *args: Any) -> Any:
    """Apply `f(x, *args)` to each slice x along the first dimension, and stack the results.

    >>> tenfold.func.map(lambda x, k: x.cumsum(0) * k, tenfold.ones(2, 3), 2)
    """
    return scan(lambda carry, x: (carry, f(x, *args)), [], xs)[1]
