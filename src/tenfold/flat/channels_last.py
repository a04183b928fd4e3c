"""Rewrites convolutions into the layout for which XLA's CPU compiler has a fast kernel: batch, space,
channels; for kernels space, input channels, output channels. XLA transposes other layouts itself at the
top of a program, but not inside branches, where they would take ten times as long."""

from __future__ import annotations

from tenfold.flat.data_builders import transpose
from tenfold.flat.ir import Function, Value, replay
from tenfold.flat.windows import ConvDimensions, Convolution


def channels_last(function: Function) -> Function:
    """The same program, its convolutions in that order."""
    if not any(isinstance(op, Convolution) for op in function.ops):
        return function
    values: dict[Value, Value] = {}
    for op in function.ops:
        if isinstance(op, Convolution):
            values[op.result] = _reordered(op, values)
        elif any(operand in values for operand in op.operands):
            replay((op,), values, whole=True)
    return Function(
        function.params, [values.get(result, result) for result in function.results], function.name
    )


def _reordered(op: Convolution, values: dict[Value, Value]) -> Value:
    numbers, rank = op.dimension_numbers, op.x.rank
    space = tuple(range(1, rank - 1))
    last = ConvDimensions(
        0, rank - 1, space, rank - 2, rank - 1, tuple(range(rank - 2)), 0, rank - 1, space
    )  # fmt: skip
    x = transpose(
        values.get(op.x, op.x),
        (numbers.input_batch_dimension, *numbers.input_spatial_dimensions, numbers.input_feature_dimension),
    )
    kernel = transpose(
        values.get(op.kernel, op.kernel),
        (
            *numbers.kernel_spatial_dimensions,
            numbers.kernel_input_feature_dimension,
            numbers.kernel_output_feature_dimension,
        ),
    )
    state = op.__dict__
    settings = [state[field] for field in op.fields if field not in ("x", "kernel")]
    settings[op.fields.index("dimension_numbers") - 2] = last
    moved = Convolution(x, kernel, *settings)
    moved.__dict__["source"] = op.source
    order = (
        numbers.output_batch_dimension, *numbers.output_spatial_dimensions, numbers.output_feature_dimension
    )  # fmt: skip
    return transpose(moved.result, [order.index(axis) for axis in range(rank)])
