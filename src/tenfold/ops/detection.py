"""torchvision's own ops, namespace `torchvision`: pooling of regions, deformable convolution, and nms.

A region's bilinear samples are separable: a bin is a weighted sum of rows and columns, so pooling is two
products with weights that depend on the region. No gradient flows to regions, as in torchvision.
"""

from __future__ import annotations

import math

import numpy as np

from tenfold import flat
from tenfold.base import dtypes
from tenfold.base.errors import ArgumentError, DTypeError, ShapeError, UnsupportedError
from tenfold.flat.grad import gradients
from tenfold.flat.ir import in_order
from tenfold.ops.einsum import einsum
from tenfold.ops.grids import element
from tenfold.ops.placing import pick
from tenfold.ops.plain import plain
from tenfold.ops.table import op


@op("torchvision::nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor", host=True)
def nms(dets, scores, iou_threshold):
    """The boxes that stay, by falling score, when those that overlap a better one too much are left out."""
    if dets.ndim != 2 or dets.shape[1] != 4 or scores.shape != dets.shape[:1]:
        raise ShapeError(f"boxes are [n, 4] and scores [n], not {list(dets.shape)} and {list(scores.shape)}")
    x1, y1, x2, y2 = dets.T
    areas = (x2 - x1) * (y2 - y1)
    order = np.argsort(-scores, kind="stable")
    gone = np.zeros(len(order), bool)
    kept = []
    for place, i in enumerate(order):
        if gone[place]:
            continue
        kept.append(i)
        others = order[place + 1 :]
        width = np.maximum(np.minimum(x2[i], x2[others]) - np.maximum(x1[i], x1[others]), 0)
        height = np.maximum(np.minimum(y2[i], y2[others]) - np.maximum(y1[i], y1[others]), 0)
        common = width * height
        with np.errstate(divide="ignore", invalid="ignore"):
            overlap = common / (areas[i] + areas[others] - common)
        gone[place + 1 :] |= overlap.astype(np.float64) > iou_threshold  # which has 64 bits
    return np.array(kept, np.int64)


def _parts(x, rois, sizes):
    """The regions as columns: the image of each, then their corners. No gradient flows to them."""
    if x.rank != 4 or rois.rank != 2 or rois.shape[1] != 5:
        raise ShapeError(f"takes images [n, c, h, w] and regions [k, 5], not {x.type} and {rois.type}")
    if x.dtype is not rois.dtype or not x.dtype.is_floating_point:
        raise DTypeError(f"{x.type} and {rois.type} must be of one float dtype")
    if min(sizes) < 1:
        raise ArgumentError(f"regions are pooled to 1 by 1 at least, not to {sizes[0]} by {sizes[1]}")
    fixed = flat.stop_gradient(rois)
    return [flat.reshape(flat.slice_dim(fixed, 1, i, i + 1), (-1,)) for i in range(5)]


def _weights(start, extent, bins, size, ratio):
    """How much each of `size` rows counts in each bin, [regions, bins, size], and the samples of a bin."""
    step = extent / bins
    taken = flat.full_like(step, float(ratio)) if ratio > 0 else flat.ceil(step)
    number = lambda count: flat.convert(flat.arange(count), start.dtype)
    column = lambda value: flat.reshape(value, (-1, 1, 1))
    top = column(start) + flat.reshape(number(bins), (1, -1, 1)) * column(step)
    spacing = column(flat.where(taken > 0, step / flat.maximum(taken, 1), 1))
    if ratio > 0:
        sample = flat.reshape(number(ratio), (1, 1, -1))
    else:
        # n samples of a bin lie over (n - 1) / n apart, so that at most size + 2 are between -1 and size,
        # however large the bin is. One more on each side makes up for rounding.
        first = flat.maximum(flat.floor((-1 - top) / spacing - 0.5), 0)
        sample = first + flat.reshape(number(size + 4), (1, 1, -1))
    at = top + (sample + 0.5) * spacing
    counted = (sample < column(taken)) & (at >= -1) & (at <= size)
    near = flat.unsqueeze(flat.clamp(at, 0, size - 1), 3) - flat.reshape(number(size), (1, 1, 1, -1))
    hat = flat.maximum(1 - flat.abs(near), 0)
    return flat.sum(flat.where(flat.unsqueeze(counted, 3), hat, 0), (2,)), taken


def _by_image(rows, image, count):
    """Weights of rows as those of the rows of all images: 0 for those of other images."""
    numbers = flat.reshape(flat.convert(flat.arange(count), image.dtype), (1, -1))
    own = flat.convert(flat.eq(flat.unsqueeze(image, 1), numbers), rows.dtype)
    return flat.reshape(own, (-1, 1, count, 1)) * flat.unsqueeze(rows, 2)


_ROIS = "Tensor input, Tensor rois, float spatial_scale, SymInt pooled_height, SymInt pooled_width"


@op(f"torchvision::roi_align({_ROIS}, int sampling_ratio, bool aligned) -> Tensor")
def roi_align(x, rois, scale, height, width, ratio, aligned):
    """The mean of bilinear samples in each bin of each region."""
    image, x1, y1, x2, y2 = _parts(x, rois, (height, width))
    shift = 0.5 if aligned else 0.0
    tops, lefts = y1 * scale - shift, x1 * scale - shift
    heights, widths = y2 * scale - shift - tops, x2 * scale - shift - lefts
    if not aligned:
        heights, widths = flat.maximum(heights, 1), flat.maximum(widths, 1)
    rows, down = _weights(tops, heights, height, x.shape[2], ratio)
    columns, across = _weights(lefts, widths, width, x.shape[3], ratio)
    rows = _by_image(rows, image, x.shape[0])
    pooled = einsum("kinh,nchw,kjw->kcij", (rows, x, columns), None)
    return pooled / flat.reshape(flat.maximum(down * across, 1), (-1, 1, 1, 1))


@op(f"torchvision::ps_roi_align({_ROIS}, int sampling_ratio) -> (Tensor, Tensor)")
def ps_roi_align(x, rois, scale, height, width, ratio):
    """As roi_align, with channels of their own for each bin; and which channel each element comes from."""
    image, x1, y1, x2, y2 = _parts(x, rois, (height, width))
    parted, mapping = _parted(x, height, width)
    tops, lefts = y1 * scale - 0.5, x1 * scale - 0.5
    rows, down = _weights(tops, y2 * scale - 0.5 - tops, height, x.shape[2], ratio)
    columns, across = _weights(lefts, x2 * scale - 0.5 - lefts, width, x.shape[3], ratio)
    rows = _by_image(rows, image, x.shape[0])
    pooled = einsum("kinh,ncijhw,kjw->kcij", (rows, parted, columns), None)
    means = pooled / flat.reshape(down * across, (-1, 1, 1, 1))
    return means, flat.broadcast_to(mapping, pooled.shape)


@op(f"torchvision::ps_roi_pool({_ROIS}) -> (Tensor, Tensor)")
def ps_roi_pool(x, rois, scale, height, width):
    """The mean of the elements in each bin of each region, with channels of their own for each bin."""
    image, *corners = _parts(x, rois, (height, width))
    x1, y1, x2, y2 = [_rounded(corner * scale) for corner in corners]
    parted, mapping = _parted(x, height, width)
    bins = lambda start, end, count, size: flat.concatenate(
        [
            flat.unsqueeze(_inside(start, flat.maximum(end - start, 1) / count, i, size, size - 1), 1)
            for i in range(count)
        ],
        1,
    )
    rows = flat.convert(bins(y1, y2, height, x.shape[2]), x.dtype)
    columns = flat.convert(bins(x1, x2, width, x.shape[3]), x.dtype)
    areas = flat.unsqueeze(flat.sum(rows, (2,)), 2) * flat.unsqueeze(flat.sum(columns, (2,)), 1)
    sums = einsum("kinh,ncijhw,kjw->kcij", (_by_image(rows, image, x.shape[0]), parted, columns), None)
    return sums / flat.unsqueeze(flat.maximum(areas, 1), 1), flat.broadcast_to(mapping, sums.shape)


def _parted(x, height, width):
    """Images with the channels of each bin apart, and the number of each channel."""
    if x.shape[1] % (height * width):
        raise ShapeError(f"{x.shape[1]} channels are not divided among {height} by {width} bins")
    channels = x.shape[1] // (height * width)
    mapping = flat.reshape(flat.arange(x.shape[1], dtypes.int32), (1, channels, height, width))
    return flat.reshape(x, (x.shape[0], channels, height, width, *x.shape[2:])), mapping


@op(f"torchvision::roi_pool({_ROIS}) -> (Tensor, Tensor)")
def roi_pool(x, rois, scale, height, width):
    """The largest element in each bin of each region, and its place; 0 and -1 where a bin is empty."""
    image, *corners = _parts(x, rois, (height, width))
    x1, y1, x2, y2 = [_rounded(corner * scale) for corner in corners]
    count, size = rois.shape[0], x.shape[2] * x.shape[3]
    if not count or not x.numel:
        return flat.full((count, x.shape[1], height, width), 0, x.dtype), flat.full(
            (count, x.shape[1], height, width), -1, dtypes.int32
        )
    own = flat.take(x, flat.convert(image, dtypes.int64), 0)
    values, places = [], []
    own = flat.reshape(own, (count, x.shape[1], size))
    for i in range(height):
        row = _inside(y1, flat.maximum(y2 - y1 + 1, 1) / height, i, x.shape[2])
        for j in range(width):
            column = _inside(x1, flat.maximum(x2 - x1 + 1, 1) / width, j, x.shape[3])
            within = flat.reshape(flat.unsqueeze(row, 2) & flat.unsqueeze(column, 1), (count, 1, size))
            place, found = _largest(own, within)
            values.append(found)
            places.append(place)
    join = lambda parts: flat.reshape(
        flat.concatenate([flat.unsqueeze(part, 2) for part in parts], 2), (count, x.shape[1], height, width)
    )
    return join(values), join(places)


def _rounded(x):
    """Halves away from 0, as C's round."""
    return flat.floor(flat.abs(x) + 0.5) * flat.sign(x)


def _inside(start, step, number, size, end=None):
    """Which of `size` rows are in a bin of each region, and before the `end`."""
    end = size if end is None else end
    first = flat.clamp(flat.floor(step * number) + start, 0, end)
    last = flat.clamp(flat.ceil(step * (number + 1)) + start, 0, end)
    at = flat.reshape(flat.convert(flat.arange(size), start.dtype), (1, -1))
    return (at >= flat.unsqueeze(first, 1)) & (at < flat.unsqueeze(last, 1))


def _largest(x, within):
    """The place of the first largest element within a mask, and the element, through which gradients flow."""
    masked = flat.where(within, flat.stop_gradient(x), flat.lowest(x.dtype))
    top = flat.unsqueeze(flat.reduce(masked, "max", (2,)), 2)
    number = flat.broadcast_to(flat.reshape(flat.arange(x.shape[2], dtypes.int32), (1, 1, -1)), x.shape)
    place = flat.reduce(flat.where(flat.eq(masked, top) & within, number, x.shape[2]), "min", (2,))
    empty = flat.eq(place, x.shape[2])
    found = flat.squeeze(pick(x, flat.unsqueeze(flat.where(empty, 0, place), 2), 1), 2)
    return flat.where(empty, -1, place), flat.where(empty, 0, found)


@op(
    "torchvision::deform_conv2d(Tensor input, Tensor weight, Tensor offset, Tensor mask, Tensor bias, "
    "SymInt stride_h, SymInt stride_w, SymInt pad_h, SymInt pad_w, SymInt dilation_h, SymInt dilation_w, "
    "SymInt groups, SymInt offset_groups, bool use_mask) -> Tensor"
)
def deform_conv2d(
    x, weight, offset, mask, bias, stride_h, stride_w, pad_h, pad_w, dil_h, dil_w, groups, parts, use_mask
):
    """A convolution whose kernel takes each element at a place moved by an offset, weighted by a mask."""
    batch, channels = x.shape[:2]
    out, _, tall, wide = weight.shape
    taps = tall * wide
    height = (x.shape[2] + 2 * pad_h - (dil_h * (tall - 1) + 1)) // stride_h + 1
    width = (x.shape[3] + 2 * pad_w - (dil_w * (wide - 1) + 1)) // stride_w + 1
    if offset.shape != (batch, parts * 2 * taps, height, width):
        wanted = [batch, parts * 2 * taps, height, width]
        raise ShapeError(f"offsets are {wanted}, not {list(offset.shape)}")
    moved = flat.reshape(offset, (batch * parts, taps, 2, height, width))
    begin = _starts(height, stride_h, pad_h, tall, dil_h, x.dtype)
    rows = flat.reshape(begin, (1, tall, 1, height, 1)) + flat.full((1, 1, wide, 1, width), 0.0, x.dtype)
    begin = _starts(width, stride_w, pad_w, wide, dil_w, x.dtype)
    columns = flat.reshape(begin, (1, 1, wide, 1, width)) + flat.full((1, tall, 1, height, 1), 0.0, x.dtype)
    places = [
        flat.reshape(each, (1, taps, height, width)) + flat.squeeze(flat.slice_dim(moved, 2, i, i + 1), 2)
        for i, each in enumerate((rows, columns))
    ]
    image = flat.reshape(x, (batch * parts, channels // parts, *x.shape[2:]))
    # As many dimensions as an image has.
    taken = _bilinear(image, [flat.reshape(place, (batch * parts, taps * height, width)) for place in places])
    taken = flat.reshape(taken, (batch * parts, channels // parts, taps, height, width))
    if use_mask:
        taken = taken * flat.reshape(mask, (batch * parts, 1, taps, height, width))
    taken = flat.reshape(taken, (batch, groups, channels // groups, taps, height * width))
    kernel = flat.reshape(weight, (groups, out // groups, channels // groups, taps))
    summed = flat.reshape(einsum("bgctp,goct->bgop", (taken, kernel), None), (batch, out, height, width))
    return summed + flat.reshape(bias, (1, -1, 1, 1))


def _starts(count, stride, pad, taps, dilation, dtype):
    """Where each tap of the kernel lies for each element of the result, [taps, count]."""
    first = flat.reshape(flat.arange(count) * stride - pad, (1, -1))
    return flat.convert(first + flat.reshape(flat.arange(taps) * dilation, (-1, 1)), dtype)


def _bilinear(x, places):
    """Elements between elements of x; what lies outside of it is 0."""
    low = [flat.floor(place) for place in places]
    total = None
    for corner in ((0, 0), (0, 1), (1, 0), (1, 1)):
        shares = [
            where - start if side else start + 1 - where
            for side, where, start in zip(corner, places, low, strict=True)
        ]
        at = [start + side for side, start in zip(corner, low, strict=True)]
        part = element(x, at, math.prod(shares[1:], start=shares[0]))
        total = part if total is None else total + part
    return total


# The gradients, which torchvision has ops for


def _pulled(result, cotangent, inputs):
    found = gradients(in_order([result]), [result], [cotangent], inputs)
    return [flat.full_like(of, 0) if each is None else each for of, each in zip(inputs, found, strict=True)]


_SIZES = (
    "float spatial_scale, SymInt pooled_height, SymInt pooled_width{}, SymInt batch_size, SymInt channels, "
    "SymInt height, SymInt width"
)


def _images(cotangent, batch, channels, height, width):
    """Images of zeros: what is linear in them has a gradient that does not depend on them."""
    return flat.full((batch, channels, height, width), 0, cotangent.dtype)


@op(
    f"torchvision::_roi_align_backward(Tensor grad, Tensor rois, {_SIZES.format('')}, int sampling_ratio, "
    "bool aligned) -> Tensor"
)
def roi_align_backward(ct, rois, scale, pooled_h, pooled_w, batch, channels, height, width, ratio, aligned):
    """The cotangent of the images of `roi_align`."""
    x = _images(ct, batch, channels, height, width)
    return _pulled(roi_align(x, rois, scale, pooled_h, pooled_w, ratio, aligned), ct, [x])[0]


@op(
    f"torchvision::_roi_pool_backward(Tensor grad, Tensor rois, Tensor argmax, {_SIZES.format('')}) -> Tensor"
)
def roi_pool_backward(ct, rois, argmax, scale, pooled_h, pooled_w, batch, channels, height, width):
    """The cotangent of the images of `roi_pool`: each bin's added at the place of its maximum."""
    image = flat.convert(flat.squeeze(flat.slice_dim(rois, 1, 0, 1), 1), dtypes.int64)
    x = _images(ct, batch, channels, height, width)
    own = flat.reshape(flat.take(x, image, 0), (rois.shape[0], channels, height * width))
    places = flat.reshape(argmax, (*argmax.shape[:2], -1))
    found = flat.reshape(pick(own, flat.maximum(places, 0), 1), argmax.shape)
    return _pulled(flat.where(argmax >= 0, found, 0), ct, [x])[0]


@op(
    "torchvision::_ps_roi_align_backward(Tensor grad, Tensor rois, Tensor channel_mapping, "
    f"{_SIZES.format(', int sampling_ratio')}) -> Tensor"
)
def ps_roi_align_backward(
    ct, rois, mapping, scale, pooled_h, pooled_w, ratio, batch, channels, height, width
):
    """The cotangent of the images of `ps_roi_align`."""
    x = _images(ct, batch, channels, height, width)
    return _pulled(ps_roi_align(x, rois, scale, pooled_h, pooled_w, ratio)[0], ct, [x])[0]


@op(
    "torchvision::_ps_roi_pool_backward(Tensor grad, Tensor rois, Tensor channel_mapping, "
    f"{_SIZES.format('')}) -> Tensor"
)
def ps_roi_pool_backward(ct, rois, mapping, scale, pooled_h, pooled_w, batch, channels, height, width):
    """The cotangent of the images of `ps_roi_pool`."""
    x = _images(ct, batch, channels, height, width)
    return _pulled(ps_roi_pool(x, rois, scale, pooled_h, pooled_w)[0], ct, [x])[0]


@op(
    "torchvision::_deform_conv2d_backward(Tensor grad, Tensor input, Tensor weight, Tensor offset, "
    "Tensor mask, Tensor bias, SymInt stride_h, SymInt stride_w, SymInt pad_h, SymInt pad_w, "
    "SymInt dilation_h, SymInt dilation_w, SymInt groups, SymInt offset_groups, bool use_mask) "
    "-> (Tensor, Tensor, Tensor, Tensor, Tensor)"
)
def deform_conv2d_backward(ct, x, weight, offset, mask, bias, *options):
    """The cotangents of input, weight, offset, mask and bias of `deform_conv2d`."""
    result = deform_conv2d(x, weight, offset, mask, bias, *options)
    return tuple(_pulled(result, ct, [x, weight, offset, mask, bias]))


plain("torchvision::_cuda_version() -> int")(lambda: -1)  # nothing here is compiled for CUDA


@plain(
    "torchvision::qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
    f"torchvision::qroi_align({_ROIS}, int sampling_ratio, bool aligned) -> Tensor",
)
def _of_quantized(*arguments):
    raise UnsupportedError("nothing is computed with quantized tensors", help="dequantize them first")
