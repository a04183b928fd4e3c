"""The convolutions of a program, given to oneDNN.

StableHLO has one convolution. The gradients of one are others of its kind, which oneDNN knows by their own
names: where the result has fewer places than the kernel, it is a kernel's gradient; where the input is spread
by strides, an input's. Arrays are asked for channels last, and XLA lays out what is around them alike.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from tenfold.base import dtypes
from tenfold.engines.onednn import library
from tenfold.flat.data_builders import reverse
from tenfold.flat.ir import Function, Value, replay
from tenfold.flat.structured import CustomCall
from tenfold.flat.windows import Convolution

FORWARD, INPUT_GRADIENT, KERNEL_GRADIENT = range(3)
WORTHWHILE = 20_000_000  # operations, below which XLA's own is as fast


class Roles(NamedTuple):
    """Which dimensions of an array are its batch and its channels, or a kernel's channels out and in; and
    which are its space."""

    first: int
    second: int
    space: tuple[int, ...]

    def extents(self, value: Value) -> list[int]:
        return [value.shape[d] for d in (self.first, self.second, *self.space)]

    @property
    def swapped(self) -> Roles:
        return Roles(self.second, self.first, self.space)

    @property
    def channels_last(self) -> tuple[int, ...]:
        """The dimensions of an image from the nearest in memory to the farthest."""
        return (self.second, *reversed(self.space), self.first)

    @property
    def as_kernel(self) -> tuple[int, ...]:
        """The same of a kernel."""
        return (self.first, self.second, *reversed(self.space))


def by_onednn(function: Function) -> Function:
    """The same program, its large convolutions computed by oneDNN."""
    if (
        not any(isinstance(op, Convolution) and _is_large(op) for op in function.ops)
        or not library.is_ready()
    ):
        return function
    values: dict[Value, Value] = {}
    for op in function.ops:
        call = _call(op, values) if isinstance(op, Convolution) and _is_large(op) else None
        if call is not None:
            call.__dict__["source"] = op.source
            values[op.results[0]] = call.results[0]
        elif any(operand in values for operand in op.operands):
            replay((op,), values, whole=True)
    return Function(
        function.params, [values.get(result, result) for result in function.results], function.name
    )


def _is_large(op: Convolution) -> bool:
    numbers, kernel = op.dimension_numbers, op.kernel
    taps = math.prod(kernel.shape) // kernel.shape[numbers.kernel_output_feature_dimension]
    single = op.feature_group_count == op.batch_group_count == 1 and not any(op.window_reversal)
    dense = op.x.dtype is dtypes.float32 and 3 <= op.x.rank <= 5
    return single and dense and 2 * op.result.type.numel * taps >= WORTHWHILE


def _call(op: Convolution, values: dict[Value, Value]) -> CustomCall | None:
    """The call that computes a convolution; None where oneDNN has no form for it."""
    n = op.dimension_numbers
    x, kernel = values.get(op.x, op.x), values.get(op.kernel, op.kernel)
    input, output = Roles(*n[:3]), Roles(*n[6:])
    inward, outward, taps = n[3:6]
    before = [low for low, _ in op.padding]
    counts = [kernel.shape[d] for d in taps]
    if any(spread > 1 for spread in op.lhs_dilation):
        if any(stride > 1 for stride in op.window_strides):
            return None
        before = [(k - 1) * d - low for k, d, low in zip(counts, op.rhs_dilation, before)]
        shape = Shape(
            output.extents(op.result), Roles(inward, outward, taps).extents(kernel), input.extents(x),
            op.lhs_dilation, op.rhs_dilation, before,
        )  # fmt: skip
        layouts = input.channels_last, Roles(inward, outward, taps).as_kernel, output.channels_last
        return _made(op, INPUT_GRADIENT, x, reverse(kernel, taps), shape, layouts)
    if math.prod(counts) > math.prod([op.result.shape[d] for d in output.space]):
        images, results = input.swapped, Roles(inward, outward, taps)
        shape = Shape(
            images.extents(x), output.swapped.extents(op.result), results.extents(kernel),
            op.rhs_dilation, op.window_strides, before,
        )  # fmt: skip
        layouts = images.channels_last, results.channels_last, output.swapped.as_kernel
        return _made(op, KERNEL_GRADIENT, x, kernel, shape, layouts)
    kernels = Roles(outward, inward, taps)
    shape = Shape(
        input.extents(x), kernels.extents(kernel), output.extents(op.result),
        op.window_strides, op.rhs_dilation, before,
    )  # fmt: skip
    return _made(
        op, FORWARD, x, kernel, shape, (input.channels_last, kernels.as_kernel, output.channels_last)
    )


class Shape(NamedTuple):
    """The extents of a convolution as oneDNN counts them, whatever is computed from what, and its window."""

    image: Sequence[int]  # batch, channels, space
    kernel: Sequence[int]  # channels out, channels in, space
    result: Sequence[int]
    strides: Sequence[int]
    dilation: Sequence[int]
    before: Sequence[int]  # how far the window reaches beyond the image's start

    @property
    def after(self) -> list[int]:
        """The same at its end, negative where strides leave some of the image over."""
        return [
            (places - 1) * s + (taps - 1) * d + 1 - extent - low
            for extent, taps, places, s, d, low in zip(
                self.image[2:], self.kernel[2:], self.result[2:], self.strides, self.dilation, self.before
            )
        ]


def _made(
    op: Convolution, kind: int, x: Value, y: Value, shape: Shape, layouts: tuple[tuple[int, ...], ...]
) -> CustomCall | None:
    if min(shape.before) < 0 or any(after <= -s for after, s in zip(shape.after, shape.strides)):
        return None
    options = shape._asdict() | {"after": shape.after, "dilation": [d - 1 for d in shape.dilation]}
    config = [("kind", f"{kind} : i64")]
    config += [(name, f"array<i64: {', '.join(map(str, option))}>") for name, option in options.items()]
    return CustomCall((x, y), library.TARGET, (op.result.type,), tuple(config), (), layouts)
