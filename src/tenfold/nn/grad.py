"""`nn.grad`: the gradients of convolutions with respect to their input and their weight."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tenfold.base.errors import located
from tenfold.tensor import Tensor
from tenfold.tensor.dispatch import aten

__all__ = ["conv1d_input", "conv1d_weight", "conv2d_input", "conv2d_weight", "conv3d_input", "conv3d_weight"]


def _gradient(dims: int, place: int, name: str) -> Any:
    what = ("input", "weight")[place]

    def each(size: Any) -> tuple[int, ...]:
        return tuple(size) if isinstance(size, Sequence) else (size,) * dims

    def gradient(
        first: Any,
        second: Any,
        grad_output: Tensor,
        stride: int | Sequence[int] = 1,
        padding: int | Sequence[int] = 0,
        dilation: int | Sequence[int] = 1,
        groups: int = 1,
    ) -> Tensor:
        x, weight = (
            (grad_output.new_zeros(first), second) if place == 0 else (first, grad_output.new_zeros(second))
        )
        sizes = (each(stride), each(padding), each(dilation), False, (0,) * dims)
        return aten("convolution_backward")(
            grad_output, x, weight, [weight.shape[0]], *sizes, groups, [True] * 3
        )[place]

    gradient.__name__ = gradient.__qualname__ = name
    gradient.__doc__ = f"The gradient of `conv{dims}d` for its {what}, given that of its output."
    return located(gradient)


conv1d_input, conv1d_weight = _gradient(1, 0, "conv1d_input"), _gradient(1, 1, "conv1d_weight")
conv2d_input, conv2d_weight = _gradient(2, 0, "conv2d_input"), _gradient(2, 1, "conv2d_weight")
conv3d_input, conv3d_weight = _gradient(3, 0, "conv3d_input"), _gradient(3, 1, "conv3d_weight")
