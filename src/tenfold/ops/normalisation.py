"""Layer, group and root-mean-square normalisation, and what `batch_normalisation.py` shares with them.

All of these are `standardised`, which differentiates as one by the formula that reads each element once, and
then a scale and a shift. Statistics of half types are float32.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from tenfold import flat
from tenfold.base import dtypes
from tenfold.base.dtypes import DType
from tenfold.base.errors import ArgumentError, DTypeError, ShapeError
from tenfold.flat import Value
from tenfold.flat.remat import derived
from tenfold.ops import tile_kernels
from tenfold.ops.samples import S, T
from tenfold.ops.table import op

HALF = (dtypes.float16, dtypes.bfloat16)


def _mean(x: Value, dims: Sequence[int]) -> Value:
    return flat.sum(x, dims, keepdim=True) / float(math.prod(x.shape[d] for d in dims))


def regressed(cotangent: Value, standard: Value, rstd: Value, dims: Sequence[int]) -> Value:
    """The cotangent of what was standardised: what moves the mean or the spread has no effect."""
    return rstd * (cotangent - _mean(cotangent, dims) - standard * _mean(cotangent * standard, dims))


def _standardised_rule(cotangents, results, x, dims, eps):
    standard, _, variance = results
    to_standard, to_mean, to_variance = cotangents
    rstd = flat.rsqrt(variance + eps)
    parts = []
    if to_standard is not None:
        parts.append(regressed(to_standard, standard, rstd, dims))
    count = float(math.prod(x.shape[d] for d in dims))
    if to_mean is not None:
        parts.append(flat.broadcast_to(to_mean / count, x.shape))
    if to_variance is not None:
        parts.append(standard * (to_variance * 2.0 / rstd / count))
    return (sum(parts[1:], parts[0]) if parts else None,)


@flat.differentiated(_standardised_rule)
def standardised(x: Value, dims: Sequence[int], eps: float) -> tuple[Value, Value, Value]:
    """x less its mean over `dims`, over √(variance + eps); the mean and the variance, dimensions kept."""
    mean = _mean(x, dims)
    centred = x - mean
    variance = _mean(centred * centred, dims)
    return centred * flat.rsqrt(variance + eps), mean, variance


def _layer_rule(cotangents, results, x, weight, bias, dims, eps):
    to_out, *others = cotangents
    _, standard, mean, variance = results
    if to_out is not None and not any(other is not None for other in others):
        return _layer_gradient(to_out, x, standard, mean, variance, weight, dims, eps)
    to_standard, to_mean, to_variance = others
    to_weight = to_bias = None
    if to_out is not None:
        outer = tuple(range(x.rank - len(dims)))
        to_weight, to_bias = _column_sums(to_out, standard, outer)
        part = to_out * weight
        to_standard = part if to_standard is None else to_standard + part
    rest = (standard, mean, variance)
    (to_x,) = _standardised_rule((to_standard, to_mean, to_variance), rest, x, dims, eps)
    return to_x, to_weight, to_bias


def _column_sums(gradient: Value, standard: Value, outer: Sequence[int]) -> tuple[Value, Value]:
    """The cotangents of weight and bias."""
    of = lambda each: flat.sum(each, outer) if outer else each
    return of(gradient * standard), of(gradient)


def _layer_by_tiles(x, weight, bias, dims, eps):
    width = math.prod(x.shape[d] for d in dims)
    if not tile_kernels.fits_norm(x, width):
        return _plain_layer(x, weight, bias, dims, eps)
    out, mean, variance = tile_kernels.call_norm(x, weight, bias, width, eps)
    shape = (*x.shape[: x.rank - len(dims)], *[1] * len(dims))
    mean, variance = flat.reshape(mean, shape), flat.reshape(variance, shape)
    return out, (x - mean) * flat.rsqrt(variance + eps), mean, variance


def _plain_layer(x, weight, bias, dims, eps):
    standard, mean, variance = standardised(x, dims, eps)
    return standard * weight + bias, standard, mean, variance


@flat.differentiated(_layer_rule, elsewhere={"triton": _layer_by_tiles})
def _layer(x, weight, bias, dims, eps):
    """standard · weight + bias; what is standardised, the mean and the variance, dimensions kept."""
    return _plain_layer(x, weight, bias, dims, eps)


def _plain_layer_gradient(to_out, x, standard, mean, variance, weight, dims, eps):
    outer = tuple(range(x.rank - len(dims)))
    to_x = regressed(to_out * weight, standard, flat.rsqrt(variance + eps), dims)
    return to_x, *_column_sums(to_out, standard, outer)


def _layer_gradient_by_tiles(to_out, x, standard, mean, variance, weight, dims, eps):
    width = math.prod(x.shape[d] for d in dims)
    if not tile_kernels.fits_norm(x, width):
        return _plain_layer_gradient(to_out, x, standard, mean, variance, weight, dims, eps)
    mean, variance = (flat.reshape(each, (each.numel,)) for each in (mean, variance))
    to_x, to_weight, to_bias = tile_kernels.call_norm_gradient(to_out, x, mean, variance, weight, width, eps)
    return to_x, flat.reshape(to_weight, weight.shape), flat.reshape(to_bias, weight.shape)


_layer_gradient = flat.differentiated(
    derived(_plain_layer_gradient), elsewhere={"triton": _layer_gradient_by_tiles}
)(_plain_layer_gradient)


def parameter_dtype(name: str, x: Value, *parameters: Value | None) -> DType:
    """The dtype of weights and statistics: the input's, or float32 beside an input of half precision."""
    if not x.dtype.is_floating_point or x.dtype.itemsize < 2:
        raise DTypeError(f"{name} is not defined for {x.dtype.name}", help="convert to a float dtype first")
    given = [parameter for parameter in parameters if parameter is not None]
    for each in given:
        mixed = x.dtype in HALF and each.dtype is dtypes.float32
        if not (each.dtype is x.dtype or mixed) or each.dtype is not given[0].dtype:
            raise DTypeError(
                f"{name}: parameters of dtype {each.dtype.name} for an input of dtype {x.dtype.name}",
                help="convert one with .to(dtype); float32 parameters fit inputs of half precision too",
            )
    return given[0].dtype if given else x.dtype


def wide(x: Value) -> Value:
    return flat.convert(x, dtypes.float32) if x.dtype in HALF else x


def scaled(x: Value, weight: Value | None, bias: Value | None, shape: Sequence[int]) -> Value:
    """x · weight + bias, both reshaped so that they stretch along x."""
    if weight is not None:
        x = x * flat.reshape(wide(weight), shape)
    return x if bias is None else x + flat.reshape(wide(bias), shape)


def check_parameters(name: str, shape: tuple[int, ...], **parameters: Value | None) -> None:
    for which, parameter in parameters.items():
        if parameter is not None and parameter.shape != shape:
            raise ShapeError(f"{name}: the {which} {parameter.type} is not of shape {list(shape)}")


def _inner(name: str, x: Value, normalized_shape: tuple[int, ...]) -> tuple[int, ...]:
    """The last dimensions, which are normalised together."""
    count = len(normalized_shape)
    if not count:
        raise ShapeError(f"{name}: normalized_shape names no dimension")
    if x.shape[-count:] != normalized_shape:
        raise ShapeError(
            f"{name}: {x.type} does not end in the dimensions {list(normalized_shape)}",
            help=f"normalized_shape={list(x.shape[-1:])} is about the last dimension" if x.rank else None,
        )
    return tuple(range(x.rank - count, x.rank))


# Over the last dimensions


def _layers(*more):
    def samples():
        return [
            S(T(2, 3, 4), (4,), T(4), T(4), *more), S(T(2, 3, 4), (3, 4), T(3, 4), None, *more),
            S(T(5, dtype="float32"), (5,), None, None, *more), S(T(2, 3, 4), (4,), None, T(4), *more),
            S(T(3, 4, dtype="float16"), (4,), T(4, dtype="float32"), T(4, dtype="float32"), *more),
            S(T(3, 4), (4,), T(4, dtype="float64"), None, *more),
            S(T(0, 3), (3,), T(3), None, *more), S(T(3, 4), (3,), None, None, *more),
            S(T(3, 4), (), None, None, *more), S(T(3, 4), (4,), T(3), None, *more),
        ]  # fmt: skip

    return samples


@op(
    "layer_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight=None, Tensor? bias=None, "
    "float eps=1e-05, bool cudnn_enable=True) -> Tensor",
    samples=_layers(1e-3),
    autocast="cuda: float32",
    grad_fn="NativeLayerNormBackward0",
)
def layer_norm(x, normalized_shape, weight, bias, eps, cudnn_enable):
    """(input - mean) / √(variance + eps) · weight + bias, over the last dimensions."""
    return native_layer_norm(x, normalized_shape, weight, bias, eps)[0]


@op(
    "native_layer_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight, Tensor? bias, float eps) -> "
    "(Tensor, Tensor, Tensor)",
    differentiable=(True, False, False),
    samples=_layers(1e-5),
    autocast="cuda: float32",
)
def native_layer_norm(x, normalized_shape, weight, bias, eps):
    """The layer norm, the mean, and 1 / √(variance + eps)."""
    dims = _inner("layer_norm", x, normalized_shape)
    check_parameters("layer_norm", normalized_shape, weight=weight, bias=bias)
    dtype = parameter_dtype("layer_norm", x, weight, bias)
    if weight is None or bias is None:
        standard, mean, variance = standardised(wide(x), dims, eps)
        result = scaled(standard, weight, bias, normalized_shape)
    else:
        result, _, mean, variance = _layer(wide(x), wide(weight), wide(bias), dims, eps)
    result = flat.convert(result, x.dtype)
    if not math.prod(normalized_shape):
        mean = flat.full_like(mean, 0)
    return result, flat.convert(mean, dtype), flat.convert(flat.rsqrt(variance + eps), dtype)


@op(
    "native_layer_norm_backward(Tensor grad_out, Tensor input, SymInt[] normalized_shape, Tensor mean, "
    "Tensor rstd, Tensor? weight, Tensor? bias, bool[3] output_mask) -> (Tensor, Tensor, Tensor)",
    function=False,
    samples=lambda: [
        # PyTorch sums half types in half precision: there the others alone are compared.
        S(*[T(*shape, dtype=dtype) for shape in ((6, 4), (6, 4))], (4,), T(6, 1, dtype=dtype),
          T(6, 1, dtype=dtype, low=0.5, high=2), T(4, dtype=dtype), T(4, dtype=dtype), (True, True, True))
        for dtype in ("float32", "float64")
    ], needs="layers_backward")  # fmt: skip
def native_layer_norm_backward(gradient, x, normalized_shape, mean, rstd, weight, bias, output_mask):
    """The cotangents of input, weight and bias: all three, whichever output_mask asks for."""
    dims = _inner("layer_norm", x, normalized_shape)
    check_parameters("layer_norm", normalized_shape, weight=weight, bias=bias)
    dtype = parameter_dtype("layer_norm", x, weight, bias)
    outer = tuple(range(x.rank - len(dims)))
    gradient, rstd = wide(gradient), wide(rstd)
    standard = (wide(x) - wide(mean)) * rstd
    to_input = regressed(scaled(gradient, weight, None, normalized_shape), standard, rstd, dims)
    sums = _column_sums(gradient, standard, outer)
    return flat.convert(to_input, x.dtype), *[flat.convert(total, dtype) for total in sums]


def _roots(*more):
    return lambda: [
        S(T(2, 3, 4), (4,), None, *more), S(T(2, 3, 4), (3, 4), T(3, 4), *more), S(T(5), (5,), T(5), 0.5),
        S(T(3, 4), (4,), T(4, dtype="float32"), *more), S(T(0, 3), (3,), T(3), *more),
        S(T(3, 4, low=-1e-5, high=1e-5), (4,), None, *more),
    ]  # fmt: skip


@op(
    "rms_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight=None, float? eps=None) -> Tensor",
    samples=_roots(),
    autocast="cuda: float32",
)
def rms_norm(x, normalized_shape, weight, eps):
    """input / √(mean(input²) + eps) · weight, over the last dimensions; eps is by default the dtype's own."""
    return _fused_rms_norm(x, normalized_shape, weight, eps)[0]


@op(
    "_fused_rms_norm(Tensor input, int[] normalized_shape, Tensor? weight, float? eps) -> (Tensor, Tensor)",
    samples=_roots(None),
)
def _fused_rms_norm(x, normalized_shape, weight, eps):
    """The root-mean-square norm, and 1 / √(mean(input²) + eps)."""
    if x.dtype.kind not in ("float", "complex") or x.dtype.itemsize < 2:
        raise DTypeError(f"rms_norm is not defined for {x.dtype.name}")
    dims = _inner("rms_norm", x, normalized_shape)
    check_parameters("rms_norm", normalized_shape, weight=weight)
    upcast = wide(x)
    eps = dtypes.finfo(upcast.dtype).eps if eps is None else eps
    rrms = flat.rsqrt(_mean(upcast * upcast, dims) + eps)
    result = upcast * rrms
    if weight is not None:
        dtype = dtypes.promote_types(result.dtype, weight.dtype)
        result = flat.convert(result, dtype) * flat.convert(weight, dtype)
    return flat.convert(result, x.dtype), rrms


# Over groups of channels

_GROUPS = lambda: [
    S(T(2, 6, 5), 3, T(6), T(6)), S(T(2, 6, 2, 2), 2), S(T(2, 6), 6, None, T(6), 1e-3), S(T(0, 6), 2),
    S(T(2, 6, 3), 1, T(6), None), S(T(2, 6, 3), 4), S(T(2, 6, 3), 3, T(3)), S(T(2, 3), 0),
    S(T(2, 4, 3, dtype="float16"), 2, T(4, dtype="float32"), T(4, dtype="float32")),
]  # fmt: skip


@op(
    "group_norm(Tensor input, int num_groups, Tensor? weight=None, Tensor? bias=None, float eps=1e-05, "
    "bool cudnn_enabled=True) -> Tensor",
    samples=_GROUPS,
    autocast="cuda: float32",
    grad_fn="NativeGroupNormBackward0",
)
def group_norm(x, num_groups, weight, bias, eps, cudnn_enabled):
    """(input - mean) / √(variance + eps) · weight + bias, over groups of channels (dimension 1)."""
    if x.rank < 2:
        raise ShapeError(f"group_norm takes a batch and channels, not {x.type}")
    batch, channels, *places = x.shape
    return native_group_norm(x, weight, bias, batch, channels, math.prod(places), num_groups, eps)[0]


@op(
    "native_group_norm(Tensor input, Tensor? weight, Tensor? bias, SymInt N, SymInt C, SymInt HxW, "
    "int group, float eps) -> (Tensor, Tensor, Tensor)",
    samples=lambda: [
        S(T(2, 30), T(6), T(6), 2, 6, 5, 3, 1e-5), S(T(2, 4), None, T(4), 2, 4, 1, 1, 1e-3),
        S(T(2, 12, dtype="float16"), T(4, dtype="float32"), None, 2, 4, 3, 2, 1e-5),
    ], needs="groups")  # fmt: skip
def native_group_norm(x, weight, bias, batch, channels, places, groups, eps):
    """The group norm, and for each group its mean and 1 / √(variance + eps)."""
    _check_groups(channels, groups)
    check_parameters("group_norm", (channels,), weight=weight, bias=bias)
    dtype = parameter_dtype("group_norm", x, weight, bias)
    grouped = flat.reshape(wide(x), (batch, groups, channels // groups * places))
    standard, mean, variance = standardised(grouped, (2,), eps)
    result = scaled(flat.reshape(standard, (batch, channels, places)), weight, bias, (channels, 1))
    rstd = flat.rsqrt(variance + eps)
    statistics = [flat.convert(flat.reshape(each, (batch, groups)), dtype) for each in (mean, rstd)]
    return flat.reshape(flat.convert(result, x.dtype), x.shape), *statistics


def _check_groups(channels: int, groups: int) -> None:
    if groups <= 0 or channels % groups:
        raise ArgumentError(f"group_norm: {channels} channels cannot be divided into {groups} groups")


@op(
    "native_group_norm_backward(Tensor grad_out, Tensor input, Tensor mean, Tensor rstd, Tensor? weight, "
    "SymInt N, SymInt C, SymInt HxW, int group, bool[3] output_mask) -> (Tensor, Tensor, Tensor)",
    function=False,
    samples=lambda: [
        S(T(2, 30), T(2, 30), T(2, 3), T(2, 3, low=0.5, high=2), T(6), 2, 6, 5, 3, (True, True, True)),
        S(T(8, 4), T(8, 4), T(2, 1), T(2, 1, low=0.5, high=2), T(4), 2, 4, 4, 1, (True, True, True)),
    ],
    needs="groups_backward",
)
def native_group_norm_backward(gradient, x, mean, rstd, weight, batch, channels, places, groups, output_mask):
    """The cotangents of input, weight and bias: all three, whichever output_mask asks for."""
    _check_groups(channels, groups)
    dtype = parameter_dtype("group_norm", x, weight)
    by_channel, by_group = (batch, channels, places), (batch, groups, channels // groups * places)
    gradient = flat.reshape(wide(gradient), by_channel)
    mean, rstd = (flat.reshape(wide(each), (batch, groups, 1)) for each in (mean, rstd))
    standard = (flat.reshape(wide(x), by_group) - mean) * rstd
    weighted = flat.reshape(scaled(gradient, weight, None, (channels, 1)), by_group)
    to_input = flat.reshape(regressed(weighted, standard, rstd, (2,)), x.shape)
    sums = _column_sums(gradient, flat.reshape(standard, by_channel), (0, 2))
    return flat.convert(to_input, x.dtype), *[flat.convert(total, dtype) for total in sums]
