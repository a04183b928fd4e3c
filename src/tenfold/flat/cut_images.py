"""Convolutions that cut off the end of their images themselves, for GPUs.

The last rows of an image may lie in no window, as where strides do not divide its extent. The gradient of the
kernel is a convolution of the image without them. XLA on GPUs cuts an image that a convolution pads by a
negative number while it reads it, and copies one that is cut before.
"""

from __future__ import annotations

from tenfold.flat.data_ops import Pad
from tenfold.flat.ir import Function, Value, replay
from tenfold.flat.windows import Convolution, CuttingConvolution, Pairs


def cut_within(function: Function) -> Function:
    """The same program, whose convolutions take images whole that were cut for them."""
    values: dict[Value, Value] = {}
    for op in function.ops:
        padding = _cutting(op) if type(op) is Convolution else None
        if padding is not None:
            assert isinstance(op, Convolution) and isinstance(op.x.op, Pad)
            whole, kernel = (values.get(each, each) for each in (op.x.op.x, op.kernel))
            cut = CuttingConvolution(
                whole, kernel, op.window_strides, padding, op.lhs_dilation, op.rhs_dilation,
                op.window_reversal, op.dimension_numbers, op.feature_group_count, op.batch_group_count,
            )  # fmt: skip
            cut.__dict__["source"] = op.source
            values[op.result] = cut.result
        elif any(operand in values for operand in op.operands):
            replay((op,), values, whole=True)
    results = [values.get(result, result) for result in function.results]
    return Function(function.params, results, function.name) if values else function


def _cutting(op: Convolution) -> Pairs | None:
    """The padding of the convolution of the whole image; None if the image is not one that was cut at its
    ends alone, or is padded there."""
    cut, spatial = op.x.op, op.dimension_numbers.input_spatial_dimensions
    if not isinstance(cut, Pad) or any(cut.edge_padding_low) or any(cut.interior_padding):
        return None
    if any(high for dim, high in enumerate(cut.edge_padding_high) if dim not in spatial):
        return None
    ends = [cut.edge_padding_high[dim] for dim in spatial]
    simple = [
        not end or (end < 0 and high == 0 and spread == 1)
        for end, (_, high), spread in zip(ends, op.padding, op.lhs_dilation, strict=True)
    ]
    if not all(simple):
        return None
    return tuple([(low, high + end) for end, (low, high) in zip(ends, op.padding, strict=True)])
