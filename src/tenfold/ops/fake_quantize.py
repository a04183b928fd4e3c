"""Rows that round as quantization would, and stay floating-point: for training what is quantized later."""

from tenfold import flat
from tenfold.base import dtypes
from tenfold.base.errors import ArgumentError, DTypeError, ShapeError
from tenfold.ops.precision import widened
from tenfold.ops.samples import S, T
from tenfold.ops.table import op, written


def _check(x, low, high):
    if x.dtype.kind != "float" or x.dtype.itemsize < 2:
        raise DTypeError(f"fake_quantize is not defined for {x.dtype.name}", help="it takes float tensors")
    if low > high:
        raise ArgumentError(f"fake_quantize: quant_min {low} is above quant_max {high}")


def _of_rounded(cotangents, results, x, scale, zero_point, low, high):
    """Where rounding did not leave the range, it counts as if it changed nothing."""
    return flat.where(results[1], cotangents[0], 0), *[
        None for each in (scale, zero_point) if isinstance(each, flat.Value)
    ]


@flat.differentiated(_of_rounded)
def _rounded(x, scale, zero_point, low, high):
    """x at the nearest step of the scale, and whether that is in the range."""
    steps = flat.round_half_even(x * (1.0 / scale)) + zero_point
    inside = flat.ge(steps, low) & flat.le(steps, high)
    return (flat.clamp(steps, float(low), float(high)) - zero_point) * scale, inside


@widened
def _whole(x, scale, zero_point, low, high):
    if isinstance(scale, flat.Value):
        scale, zero_point = flat.convert(scale, x.dtype), flat.convert(zero_point, x.dtype)
    else:
        scale, zero_point = float(scale), float(zero_point)
    return _rounded(x, scale, zero_point, low, high)


_TENSOR = lambda: [
    S(T(*shape), 0.5, 2, low, high) for shape in ((3, 4), (), (0, 3)) for low, high in ((-8, 7), (0, 255))
]


@op(
    "fake_quantize_per_tensor_affine_cachemask(Tensor self, float scale, int zero_point, int quant_min, "
    "int quant_max) -> (Tensor output, Tensor mask)",
    function=False,
    method=False,
    samples=_TENSOR,
    late=written,
)
def fake_quantize_with_mask(x, scale, zero_point, low, high):
    """(clamp(round(self / scale) + zero_point) - zero_point) · scale, and where nothing was clamped."""
    _check(x, low, high)
    if not low <= zero_point <= high:
        raise ArgumentError(f"fake_quantize: zero_point {zero_point} is not between {low} and {high}")
    return _whole(x, scale, zero_point, low, high)


@op(
    "fake_quantize_per_tensor_affine(Tensor self, float scale, int zero_point, int quant_min, int quant_max) "
    "-> Tensor",
    method=False,
    samples=_TENSOR,
    late=written,
)
def fake_quantize_per_tensor_affine(x, scale, zero_point, low, high):
    """(clamp(round(self / scale) + zero_point) - zero_point) · scale"""
    return fake_quantize_with_mask(x, scale, zero_point, low, high)[0]


@op(
    "fake_quantize_per_tensor_affine.tensor_qparams(Tensor self, Tensor scale, Tensor zero_point, "
    "int quant_min, int quant_max) -> Tensor",
    method=False,
    samples=lambda: [
        S(T(3, 4), T(1, dtype="float32", low=0.5, high=1), T(1, dtype="int32", low=0, high=3), -8, 7),
    ],
)
def fake_quantize_by_tensors(x, scale, zero_point, low, high):
    """(clamp(round(self / scale) + zero_point) - zero_point) · scale, by a scale and zero point in tensors"""
    return fake_quantize_whole(x, scale, zero_point, low, high)[0]


def fake_quantize_whole(x, scale, zero_point, low, high):
    """With a scale and a zero point that are tensors: what comes out, and where nothing was clamped."""
    _check(x, low, high)
    if scale.dtype.is_complex or zero_point.dtype.is_complex:
        raise DTypeError(f"fake_quantize: a scale is real, not {scale.type}, nor {zero_point.type}")
    if scale.numel != 1 or zero_point.numel != 1:
        raise ShapeError(
            f"fake_quantize: one scale and one zero point, not {scale.type} and {zero_point.type}"
        )
    return _whole(x, flat.reshape(scale, ()), flat.reshape(zero_point, ()), low, high)


def _channels():
    numbers = T(4, dtype="float32", low=0.5, high=1), T(4, dtype="int32", low=0, high=3)
    return [S(T(3, 4), *numbers, 1, -8, 7), S(T(4, 2, 3), *numbers, 0, 0, 255)]


@op(
    "fake_quantize_per_channel_affine_cachemask(Tensor self, Tensor scale, Tensor zero_point, int axis, "
    "int quant_min, int quant_max) -> (Tensor output, Tensor mask)",
    function=False,
    method=False,
    samples=_channels,
)
def fake_quantize_channels_with_mask(x, scale, zero_point, axis, low, high):
    """`fake_quantize_per_tensor_affine` with a scale and a zero point for each index along an axis."""
    _check(x, low, high)
    if scale.dtype is not dtypes.float32:
        raise DTypeError(f"fake_quantize: scales are float32, not {scale.dtype.name}")
    if zero_point.dtype not in (dtypes.int32, dtypes.float32, dtypes.float16):
        raise DTypeError(
            f"fake_quantize: zero points are int32, float32 or float16, not {zero_point.dtype.name}"
        )
    axis = flat.axis(axis, x.rank)
    for each in (scale, zero_point):
        if each.shape != (x.shape[axis],):
            raise ShapeError(
                f"fake_quantize: {each.type} is not one number for each place along dimension {axis}"
            )
    shape = [extent if dim == axis else 1 for dim, extent in enumerate(x.shape)]
    spread = [flat.broadcast_to(flat.reshape(each, shape), x.shape) for each in (scale, zero_point)]
    return _whole(x, *spread, low, high)


@op(
    "fake_quantize_per_channel_affine(Tensor self, Tensor scale, Tensor zero_point, int axis, int quant_min, "
    "int quant_max) -> Tensor",
    method=False,
    samples=_channels,
)
def fake_quantize_per_channel_affine(x, scale, zero_point, axis, low, high):
    """`fake_quantize_per_tensor_affine` with a scale and a zero point for each index along an axis."""
    return fake_quantize_channels_with_mask(x, scale, zero_point, axis, low, high)[0]


@op(
    "fake_quantize_per_tensor_affine_cachemask_backward(Tensor grad, Tensor mask) -> Tensor",
    "fake_quantize_per_channel_affine_cachemask_backward(Tensor grad, Tensor mask) -> Tensor",
    function=False,
    method=False,
    samples=lambda: [S(T(3, 4), T(3, 4, dtype="bool")), S(T(), T(dtype="bool"))],
    torch_dialect="own name",
)
def fake_quantize_backward(gradient, mask):
    """grad where nothing was clamped, else 0"""
    narrow = gradient.dtype.is_floating_point and gradient.dtype.itemsize < 2
    if narrow or gradient.dtype in (dtypes.uint16, dtypes.uint32, dtypes.uint64):
        raise DTypeError(f"fake_quantize: a gradient is not {gradient.dtype.name}")
    if mask.dtype is not dtypes.bool_ or mask.shape != gradient.shape:
        raise ShapeError(f"the mask is bool and of the gradient's shape, not {mask.type} for {gradient.type}")
    return gradient * flat.convert(mask, gradient.dtype)
