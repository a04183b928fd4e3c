"""Quantization with integers and scales kept apart: PyTorch's namespace `quantized_decomposed`."""

from tenfold import flat
from tenfold.base import dtypes
from tenfold.base.errors import ArgumentError, DTypeError, ShapeError
from tenfold.ops.table import op

TYPES = (dtypes.uint8, dtypes.int8, dtypes.uint16, dtypes.int16, dtypes.int32)
FLOATS = (dtypes.float8_e5m2, dtypes.float8_e4m3fn)


def _target(low, high, dtype):
    """The dtype that is quantized to, or from: one that has room for the bounds."""
    if dtype not in TYPES and dtype not in FLOATS:
        names = ", ".join(each.name for each in (*TYPES, *FLOATS))
        raise DTypeError(f"{dtype.name} is no quantized dtype", help=f"there are {names}")
    if dtype in TYPES and isinstance(low, int):
        info = dtypes.iinfo(dtype)
        if low < info.min or high > info.max:
            raise ArgumentError(f"{low} to {high} is more than {dtype.name} holds")


def _real(x):
    """What is quantized, as float32."""
    if x.dtype not in (dtypes.float32, dtypes.float16, dtypes.bfloat16):
        raise DTypeError(f"quantize takes float32, float16 and bfloat16 tensors, not {x.dtype.name}")
    return flat.convert(x, dtypes.float32)


def _one(value):
    """A number, or the only element of a tensor."""
    if isinstance(value, flat.Value):
        if value.numel != 1:
            raise ShapeError(f"one scale and one zero point are needed, not {value.type}")
        return flat.reshape(value, ())
    return value


def _stored(steps, low, high, dtype):
    return flat.convert(flat.minimum(flat.maximum(steps, _bound(low, steps)), _bound(high, steps)), dtype)


def _bound(bound, steps):
    if isinstance(bound, flat.Value):
        return flat.convert(flat.reshape(bound, ()), steps.dtype)
    return float(bound)


_ARGUMENTS = "int quant_min, int quant_max, ScalarType dtype"
_BY_TENSORS = "Tensor quant_min, Tensor quant_max, ScalarType dtype"


@op(
    "quantized_decomposed::quantize_per_tensor(Tensor input, float scale, int zero_point, "
    f"{_ARGUMENTS}) -> Tensor",
    "quantized_decomposed::quantize_per_tensor.tensor(Tensor input, Tensor scale, Tensor zero_point, "
    f"{_ARGUMENTS}) -> Tensor",
    "quantized_decomposed::quantize_per_tensor.tensor2(Tensor input, Tensor scale, Tensor zero_point, "
    f"{_BY_TENSORS}) -> Tensor",
)
def quantize_per_tensor(x, scale, zero_point, low, high, dtype):
    """clamp(round(x / scale) + zero_point, quant_min, quant_max)"""
    _target(low, high, dtype)
    x, scale, zero_point = _real(x), _one(scale), _one(zero_point)
    if isinstance(scale, flat.Value):
        inverse = flat.convert(1.0 / flat.convert(scale, dtypes.float64), dtypes.float32)
        zero_point = flat.convert(zero_point, dtypes.float32)
    else:
        inverse, zero_point = 1.0 / scale, float(zero_point)
    return _stored(flat.round_half_even(x * inverse) + zero_point, low, high, dtype)


_MADE = "*, ScalarType? out_dtype=None"


@op(
    "quantized_decomposed::dequantize_per_tensor(Tensor input, float scale, int zero_point, "
    f"{_ARGUMENTS}, {_MADE}) -> Tensor",
    "quantized_decomposed::dequantize_per_tensor.tensor(Tensor input, Tensor scale, Tensor zero_point, "
    f"{_ARGUMENTS}, {_MADE}) -> Tensor",
    "quantized_decomposed::dequantize_per_tensor.tensor2(Tensor input, Tensor scale, Tensor zero_point, "
    f"{_BY_TENSORS}, {_MADE}) -> Tensor",
)
def dequantize_per_tensor(x, scale, zero_point, low, high, dtype, made):
    """(x - zero_point) · scale"""
    _target(low, high, dtype)
    _require_stored(x, dtype)
    scale, zero_point = _one(scale), _one(zero_point)
    real = made or dtypes.float32
    if isinstance(scale, flat.Value):
        scale, zero_point = flat.convert(scale, real), flat.convert(zero_point, real)
    else:
        scale, zero_point = float(scale), float(zero_point)
    return (flat.convert(x, real) - zero_point) * scale


def _require_stored(x, dtype):
    if x.dtype is not dtype:
        raise DTypeError(f"a {dtype.name} tensor is to be dequantized, but it is {x.dtype.name}")


def _along(value, x, axis):
    """One number for each place along an axis, spread over x."""
    axis = flat.axis(axis, x.rank)
    if value.shape != (x.shape[axis],):
        raise ShapeError(f"{value.type} is not one number for each place along dimension {axis} of {x.type}")
    return flat.reshape(value, [extent if dim == axis else 1 for dim, extent in enumerate(x.shape)])


@op(
    "quantized_decomposed::quantize_per_channel(Tensor input, Tensor scales, Tensor zero_points, int axis, "
    f"{_ARGUMENTS}) -> Tensor"
)
def quantize_per_channel(x, scales, zero_points, axis, low, high, dtype):
    """`quantize_per_tensor` with a scale and a zero point for each index along an axis."""
    _target(low, high, dtype)
    return _steps(
        _real(x), _along(scales, x, axis), _along(zero_points, x, axis), low, high, dtype, first=True
    )


def _steps(x, scales, zero_points, low, high, dtype, first):
    """Rounded before the zero points are added, or after."""
    wide = scales.dtype if scales.dtype is dtypes.float64 else x.dtype
    x, scales, zero_points = [flat.convert(each, wide) for each in (x, scales, zero_points)]
    steps = x * (1.0 / scales)
    steps = flat.round_half_even(steps) + zero_points if first else flat.round_half_even(steps + zero_points)
    return _stored(steps, low, high, dtype)


def _restored(x, scales, zero_points, made):
    whole = flat.convert(x, dtypes.int64)
    if zero_points is not None and zero_points.dtype.kind == "int":
        whole = whole - flat.convert(zero_points, dtypes.int64)
    steps = flat.convert(whole, scales.dtype)
    if zero_points is not None and zero_points.dtype.kind != "int":
        steps = steps - flat.convert(zero_points, scales.dtype)
    return flat.convert(steps * scales, made)


@op(
    "quantized_decomposed::dequantize_per_channel(Tensor input, Tensor scales, Tensor? zero_points, "
    f"int axis, {_ARGUMENTS}, {_MADE}) -> Tensor"
)
def dequantize_per_channel(x, scales, zero_points, axis, low, high, dtype, made):
    """(x - zero_points) · scales, along an axis."""
    _target(low, high, dtype)
    _require_stored(x, dtype)
    zero_points = None if zero_points is None else _along(zero_points, x, axis)
    return _restored(x, _along(scales, x, axis), zero_points, made or dtypes.float32)


def _grouped(x, scales, group_size):
    """x, a matrix, as rows of one group each."""
    if x.rank != 2:
        raise ShapeError(f"groups are of a matrix, not of {x.type}")
    if group_size > x.shape[-1] and scales.shape[-1:] == (1,):
        group_size = x.shape[-1]
    if group_size <= 1 or x.shape[-1] % group_size:
        raise ArgumentError(f"rows of {x.shape[-1]} cannot be in groups of {group_size}")
    return flat.reshape(x, (x.numel // group_size, group_size))


def _of_group(value):
    return flat.reshape(value, (value.numel, 1))


@op(
    "quantized_decomposed::quantize_per_channel_group(Tensor input, Tensor scales, Tensor zero_points, "
    f"{_ARGUMENTS}, int group_size) -> Tensor"
)
def quantize_per_channel_group(x, scales, zero_points, low, high, dtype, group_size):
    """With a scale and a zero point for each group of neighbours in a row."""
    groups = _grouped(x, scales, group_size)
    holds = flat.eq(groups, groups)
    groups = flat.check(groups, holds, ArgumentError, "quantize_per_channel_group: NaN cannot be quantized")
    stored = _steps(groups, _of_group(scales), _of_group(zero_points), low, high, dtype, first=False)
    return flat.reshape(stored, x.shape)


@op(
    "quantized_decomposed::dequantize_per_channel_group(Tensor input, Tensor scales, Tensor? zero_points, "
    f"{_ARGUMENTS}, int group_size, ScalarType output_dtype) -> Tensor"
)
def dequantize_per_channel_group(x, scales, zero_points, low, high, dtype, group_size, made):
    """(x - zero_points) · scales, by groups of neighbours in a row."""
    groups = _grouped(x, scales, group_size)
    zero_points = None if zero_points is None else _of_group(zero_points)
    return flat.reshape(_restored(groups, _of_group(scales), zero_points, made), x.shape)


@op(
    "quantized_decomposed::quantize_per_token(Tensor input, Tensor scales, Tensor zero_points, "
    f"{_ARGUMENTS}) -> Tensor"
)
def quantize_per_token(x, scales, zero_points, low, high, dtype):
    """With a scale and a zero point for each row."""
    _target(low, high, dtype)
    _of_rows(x, scales, zero_points)
    return _steps(x, scales, zero_points, low, high, dtype, first=False)


@op(
    "quantized_decomposed::dequantize_per_token(Tensor input, Tensor scales, Tensor zero_points, "
    f"{_ARGUMENTS}, ScalarType output_dtype) -> Tensor"
)
def dequantize_per_token(x, scales, zero_points, low, high, dtype, made):
    """(x - zero_points) · scales, by rows."""
    _of_rows(x, scales, zero_points)
    return _restored(x, scales, zero_points, made)


def _of_rows(x, *values):
    for value in values:
        if value.shape != (*x.shape[:-1], 1):
            raise ShapeError(f"{value.type} is not one number for each row of {x.type}")


_RANGE = "int quant_min, int quant_max, float eps, ScalarType dtype"


def _widest(x, low, high, dtype):
    """The smallest and the largest element of x, and zero, which both sides are to hold."""
    _target(low, high, dtype)
    if low >= high:
        raise ArgumentError(f"{low} to {high} is no range to quantize to")
    x = _real(x)
    dims = range(x.rank)
    return flat.minimum(flat.reduce(x, "min", dims), 0.0), flat.maximum(flat.reduce(x, "max", dims), 0.0)


def _chosen(scale, zero_point):
    """A scale and a zero point as PyTorch gives them."""
    return flat.reshape(flat.convert(scale, dtypes.float64), (1,)), flat.reshape(
        flat.convert(zero_point, dtypes.int64), (1,)
    )


@op(f"quantized_decomposed::choose_qparams.tensor(Tensor input, {_RANGE}) -> (Tensor, Tensor)")
def choose_qparams(x, low, high, eps, dtype):
    """The scale and the zero point by which all elements, and zero, just fit between two integers."""
    least, most = _widest(x, low, high, dtype)
    scale = flat.maximum((most - least) / float(high - low), eps)
    zero_point = low - flat.round_half_even(least / scale)
    return _chosen(scale, flat.minimum(flat.maximum(zero_point, float(low)), float(high)))


@op(f"quantized_decomposed::choose_qparams_symmetric.tensor(Tensor input, {_RANGE}) -> (Tensor, Tensor)")
def choose_qparams_symmetric(x, low, high, eps, dtype):
    """The scale by which all elements just fit, with zero in the middle."""
    least, most = _widest(x, low, high, dtype)
    scale = flat.maximum(flat.maximum(-least, most) / ((high - low) / 2), eps)
    return _chosen(scale, flat.full_like(scale, 128 if dtype is dtypes.uint8 else 0))


@op(
    "quantized_decomposed::choose_qparams_per_token_asymmetric(Tensor input, ScalarType dtype) "
    "-> (Tensor, Tensor)",
    "quantized_decomposed::_choose_qparams_per_token_asymmetric_impl(Tensor input, ScalarType dtype) "
    "-> (Tensor, Tensor)",
)
def choose_qparams_per_token_asymmetric(x, dtype):
    """For each row the scale and the zero point by which it, and zero, just fit into int8."""
    low, high = -128.0, 127.0
    row = [x.rank - 1]
    least, most = (flat.unsqueeze(flat.reduce(x, kind, row), x.rank - 1) for kind in ("min", "max"))
    least, most = flat.minimum(least, 0.0), flat.maximum(most, 0.0)
    scales = flat.maximum((most - least) / (high - low), float(dtypes.finfo(dtypes.float32).eps))
    down, up = least / scales, most / scales
    zeros = flat.where((low + down) + (high + up) > 0, low - down, high - up)
    zeros = flat.round_half_even(flat.minimum(flat.maximum(zeros, low), high))
    return flat.convert(scales, dtypes.float64), flat.convert(zeros, dtypes.int64)


@op("quantized_decomposed::choose_qparams_per_token(Tensor input, ScalarType dtype) -> (Tensor, Tensor)")
def choose_qparams_per_token(x, dtype):
    """For each row the scale by which it just fits into int8, and a zero point of zero."""
    if dtype is not dtypes.int8:
        raise DTypeError(f"rows are quantized to int8, not to {dtype.name}")
    largest = flat.unsqueeze(flat.reduce(flat.abs(x), "max", [x.rank - 1]), x.rank - 1)
    if x.dtype is dtypes.float16:
        largest = flat.convert(largest, dtypes.float32)
    scales = flat.maximum(largest, 1e-5) / 127.0
    return scales, flat.full_like(scales, 0)


@op("quantized_decomposed::convert_element_type.no_fuse(Tensor input, ScalarType dtype) -> Tensor")
def convert_element_type(x, dtype):
    """input in another dtype."""
    return flat.convert(x, dtype)
