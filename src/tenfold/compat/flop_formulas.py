"""How many floating-point operations a product takes, from its shapes: PyTorch's formulas, by ATen's names.

A product of matrices counts two for each pair of numbers that is multiplied. Additions of a bias, padding
and a causal mask make no difference."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from math import prod
from typing import Any

from tenfold.base.errors import ArgumentError
from tenfold.compat.overloads import namespace
from tenfold.compat.overloads.packets import Packet
from tenfold.tensor import Tensor
from tenfold.utils._pytree import tree_map

Shape = Sequence[int]

aten: Any = namespace("aten")
flop_registry: dict[Any, Callable[..., int]] = {}  # by packet, such as `ops.aten.mm`


def get_shape(i: Any) -> Any:
    """The shape of a tensor; anything else as it is."""
    return i.shape if isinstance(i, Tensor) else i


def shape_wrapper(f: Callable[..., int]) -> Callable[..., int]:
    """A formula of tensors from one of shapes; `out_val` is the op's result."""

    @functools.wraps(f)
    def count(*args: Any, out_val: Any = None, **kwargs: Any) -> int:
        args, kwargs, out_shape = tree_map(get_shape, (args, kwargs, out_val))
        return f(*args, out_shape=out_shape, **kwargs)

    return count


def register_flop_formula(
    targets: Any, get_raw: bool = False
) -> Callable[[Callable[..., int]], Callable[..., int]]:
    """Count an op of yours: `formula(*shapes, out_shape=shape)` says what a call of it takes.

    With `get_raw` the formula is given tensors and their result, as `out_val`, instead of shapes.
    """

    def register(formula: Callable[..., int]) -> Callable[..., int]:
        counting = formula if get_raw else shape_wrapper(formula)
        for target in targets if isinstance(targets, (list, tuple)) else (targets,):
            if not isinstance(target, Packet):
                raise ArgumentError(
                    f"{target!r} is no op whose calls can be counted", help="give a packet, as ops.mylib.foo"
                )
            if target in flop_registry:
                raise ArgumentError(f"{target} has a formula already", help="use custom_mapping= instead")
            flop_registry[target] = counting
        return counting

    return register


@register_flop_formula(aten.mm)
def mm_flop(a_shape: Shape, b_shape: Shape, *args: Any, out_shape: Any = None, **kwargs: Any) -> int:
    (m, k), (_, n) = a_shape, b_shape
    return m * n * 2 * k


@register_flop_formula(aten.addmm)
def addmm_flop(
    self_shape: Shape, a_shape: Shape, b_shape: Shape, out_shape: Any = None, **kwargs: Any
) -> int:
    return mm_flop(a_shape, b_shape)


@register_flop_formula(aten.bmm)
def bmm_flop(a_shape: Shape, b_shape: Shape, out_shape: Any = None, **kwargs: Any) -> int:
    (b, m, k), (_, _, n) = a_shape, b_shape
    return b * m * n * 2 * k


@register_flop_formula(aten.baddbmm)
def baddbmm_flop(
    self_shape: Shape, a_shape: Shape, b_shape: Shape, out_shape: Any = None, **kwargs: Any
) -> int:
    return bmm_flop(a_shape, b_shape)


@register_flop_formula(aten._scaled_mm)
def _scaled_mm_flop(a_shape: Shape, b_shape: Shape, *args: Any, out_shape: Any = None, **kwargs: Any) -> int:
    return mm_flop(a_shape, b_shape)


def conv_flop_count(x_shape: Shape, w_shape: Shape, out_shape: Shape, transposed: bool = False) -> int:
    """What a convolution takes: its kernel is applied at each place of the output, or of the input if it is
    transposed."""
    places = (x_shape if transposed else out_shape)[2:]
    return prod(places) * prod(w_shape) * x_shape[0] * 2


@register_flop_formula([aten.convolution, aten._convolution])
def conv_flop(
    x_shape: Shape,
    w_shape: Shape,
    _bias: Any,
    _stride: Any,
    _padding: Any,
    _dilation: Any,
    transposed: bool,
    *args: Any,
    out_shape: Any = None,
    **kwargs: Any,
) -> int:
    return conv_flop_count(x_shape, w_shape, out_shape, transposed=transposed)


@register_flop_formula(aten.convolution_backward)
def conv_backward_flop(
    grad_out_shape: Shape,
    x_shape: Shape,
    w_shape: Shape,
    _bias: Any,
    _stride: Any,
    _padding: Any,
    _dilation: Any,
    transposed: bool,
    _output_padding: Any,
    _groups: int,
    output_mask: Sequence[bool],
    out_shape: Sequence[Any],
    **kwargs: Any,
) -> int:
    """The gradient of the input is a convolution the other way; that of the kernel is one of the input with
    the gradient, whose channels count as if there were no groups."""

    def exchanged(shape: Shape) -> list[int]:
        return [shape[1], shape[0], *shape[2:]]

    count = 0
    if output_mask[0]:
        count += conv_flop_count(grad_out_shape, w_shape, out_shape[0], not transposed)
    if output_mask[1]:
        first, second = (grad_out_shape, x_shape) if transposed else (x_shape, grad_out_shape)
        count += conv_flop_count(exchanged(first), exchanged(second), exchanged(out_shape[1]))
    return count


def sdpa_flop_count(query_shape: Shape, key_shape: Shape, value_shape: Shape) -> int:
    """What attention takes: the scores, and the values weighted by them. Heads of query may share keys."""
    (*batch, length, width), keys = query_shape, key_shape[-2]
    many = prod(batch)
    scores = bmm_flop((many, length, width), (many, width, keys))
    return scores + bmm_flop((many, length, keys), (many, keys, value_shape[-1]))


@register_flop_formula(aten._scaled_dot_product_flash_attention_for_cpu)
def sdpa_flop(
    query_shape: Shape, key_shape: Shape, value_shape: Shape, *args: Any, out_shape: Any = None, **kwargs: Any
) -> int:
    return sdpa_flop_count(query_shape, key_shape, value_shape)


def sdpa_backward_flop_count(
    grad_out_shape: Shape, query_shape: Shape, key_shape: Shape, value_shape: Shape
) -> int:
    """What the gradient of attention takes, which computes the scores again: five products."""
    (*batch, length, width), keys, valued = query_shape, key_shape[-2], value_shape[-1]
    many = prod(batch)
    by_width = bmm_flop((many, length, width), (many, width, keys))
    by_value = bmm_flop((many, length, valued), (many, valued, keys))
    return 3 * by_width + 2 * by_value


@register_flop_formula(aten._scaled_dot_product_flash_attention_for_cpu_backward)
def sdpa_backward_flop(
    grad_out_shape: Shape,
    query_shape: Shape,
    key_shape: Shape,
    value_shape: Shape,
    *args: Any,
    out_shape: Any = None,
    **kwargs: Any,
) -> int:
    return sdpa_backward_flop_count(grad_out_shape, query_shape, key_shape, value_shape)
