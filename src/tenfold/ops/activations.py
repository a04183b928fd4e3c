"""Rows for the activation functions of neural networks. Softmax and its like are in `softmax.py`."""

import functools
import math

from tenfold import flat
from tenfold.base import dtypes
from tenfold.base.errors import ArgumentError, DTypeError, ShapeError
from tenfold.flat.remat import Tiles, recomputed
from tenfold.ops import tile_kernels
from tenfold.ops.extremes import between
from tenfold.ops.numbers import number_in
from tenfold.ops.precision import widened
from tenfold.ops.random import bits, unit
from tenfold.ops.samples import S, T
from tenfold.ops.table import op, written


def _refuse(name, x, *kinds):
    if x.dtype.kind in kinds:
        raise DTypeError(f"{name} is not defined for {x.dtype.name}", help="convert to a float dtype first")


def _floats(name, x):
    _refuse(name, x, "bool", "int", "complex")


def _numbers(*calls):
    """Samples: a matrix with these further arguments, and other shapes without."""
    return lambda: [S(T(3, 4), *call) for call in calls] + [S(T(3, 4)), S(T()), S(T(0, 3))]


@op("relu(Tensor self) -> Tensor", inplace=True, forms="function_")
@flat.differentiated(lambda cotangent, result, x: (flat.where(flat.le(result, 0), 0, cotangent),))
def relu(x):
    """max(self, 0)"""
    _refuse("relu", x, "bool", "complex")
    return flat.where(flat.lt(x, 0), 0, x)  # a zero keeps its sign


@op("relu6(Tensor self) -> Tensor", module="nn", method=False, forms="aten_", grad_fn="HardtanhBackward0")
def relu6(x):
    """min(max(self, 0), 6)"""
    _refuse("relu6", x, "bool", "complex")
    return hardtanh(x, 0, 6)


@op(
    "hardtanh(Tensor self, Scalar min_val=-1, Scalar max_val=1) -> Tensor",
    module="nn",
    method=False,
    samples=_numbers((-2, 2), (0, 6), (-1.0, 0.0)),
    forms="aten_",
)
def hardtanh(x, low, high):
    """min(max(self, min_val), max_val)"""
    _refuse("hardtanh", x, "bool", "complex")
    if x.dtype.kind == "int" and not x.dtype.is_signed and flat.known(low) and low < 0:
        raise DTypeError(f"hardtanh of {x.dtype.name} cannot reach down to {low}")
    return _between(x, number_in(low, x.dtype), number_in(high, x.dtype))


def _of_between(cotangent, result, x, low, high):
    return (flat.where(flat.gt(x, low) & flat.lt(x, high), cotangent, 0),)


@flat.differentiated(_of_between)
def _between(x, low, high):
    return between(x, low, high)


@op(
    "threshold(Tensor self, Scalar threshold, Scalar value) -> Tensor",
    method=False,
    samples=lambda: [S(T(3, 4), 1, 20), S(T(3, 4), -0.5, 0.25), S(T(), 0, 1), S(T(0, 3), 0, 1)],
    forms="function_",
    saves="inputs",
    casts_out=True,
)
def threshold(x, threshold, value):
    """self where it is above the threshold, else `value`"""
    _refuse("threshold", x, "bool", "complex")
    # PyTorch compares half types in float32.
    narrow = x.dtype.is_floating_point and x.dtype.itemsize < 4
    threshold = number_in(threshold, dtypes.float32 if narrow else x.dtype)
    return flat.where(flat.le(x, threshold), number_in(value, x.dtype), x)


@op(
    "leaky_relu(Tensor self, Scalar negative_slope=0.01) -> Tensor",
    module="nn",
    method=False,
    samples=_numbers((0.25,), (0,), (-0.5,)),
    forms="aten_",
    saves="inputs",
)
@widened
def leaky_relu(x, slope):
    """self, scaled by the slope where negative"""
    _floats("leaky_relu", x)
    return flat.where(flat.gt(x, 0), x, x * number_in(slope, x.dtype))


@op(
    "rrelu(Tensor self, Scalar lower=0.125, Scalar upper=0.3333333333333333, bool training=False, "
    "Generator? generator=None) -> Tensor",
    random=True,
    method=False,
    samples=lambda: [S(T(3, 4, low=-4, high=4)), S(T(5, 6, low=-4, high=4), 0.25, 0.5, True), S(T(0, 3))],
    forms="function_",
    late=written,
)
@widened
def rrelu(state, x, lower, upper, training):
    """leaky_relu whose slope is drawn between the bounds while training, and is their mean otherwise"""
    _floats("rrelu", x)
    if lower > upper:
        raise ArgumentError(f"rrelu needs a lower bound below the upper, not {lower} and {upper}")
    if not training:
        return leaky_relu(x, (lower + upper) / 2), state
    state, random = bits(state, x.shape)
    slope = lower + (upper - lower) * unit(random, x.dtype)
    return flat.where(flat.gt(x, 0), x, x * slope), state


def _weighted():
    return [
        S(T(2, 3, 4), T(3)),
        S(T(3, 4), T(1)),
        S(T(4), T(1)),
        S(T(2, 3), T()),
        S(T(), T()),
        S(T(0, 3), T(3)),
    ]


@op("prelu(Tensor self, Tensor weight) -> Tensor", samples=_weighted, autocast="lower", torch_dialect="leaky")
@widened
def prelu(x, weight):
    """self, scaled where negative by a weight: one for all, or one for each channel (dimension 1)"""
    _floats("prelu", x)
    if x.dtype is not weight.dtype:
        raise DTypeError(f"prelu needs a weight of the input's dtype, not {weight.dtype.name}")
    if weight.rank > 1:
        raise ShapeError(f"prelu needs a weight of at most one dimension, not {weight.type}")
    if weight.numel != 1 and not x.rank:
        raise ShapeError("prelu of a 0-dimensional tensor takes one weight")
    if weight.numel != 1:
        channels = x.shape[1] if x.rank > 1 else 1
        if channels != weight.numel:
            raise ShapeError(f"prelu: {weight.numel} weights for {channels} channels of {x.type}")
        weight = flat.reshape(weight, (1, -1, *[1] * (x.rank - 2)))
    else:
        weight = flat.reshape(weight, [1] * x.rank)
    return flat.where(flat.gt(x, 0), x, x * weight)


@op(
    "_prelu_kernel(Tensor self, Tensor weight) -> Tensor", method=False, samples=lambda: [S(T(3, 4), T(1, 4))]
)
@widened
def _prelu_kernel(x, weight):
    """self where it is positive, else weight * self, the weight broadcast"""
    _floats("prelu", x)
    return flat.where(flat.gt(x, 0), x, x * weight)


@op(
    "elu(Tensor self, Scalar alpha=1, Scalar scale=1, Scalar input_scale=1) -> Tensor",
    module="nn",
    method=False,
    samples=_numbers((0.5,), (2, 3), (1.5, 0.5, 2)),
    forms="aten_",
    saves="inputs",
)
@widened
def elu(x, alpha, scale, input_scale):
    """scale * (self if positive, else alpha * (exp(input_scale * self) - 1))"""
    _floats("elu", x)
    alpha, scale, input_scale = (number_in(each, x.dtype) for each in (alpha, scale, input_scale))
    return _exponential_below(x, alpha * scale, scale, input_scale)


def _of_exponential_below(cotangent, result, x, below, above, within):
    # The exponential sees no positive numbers: it could overflow.
    curve = flat.exp(flat.where(flat.gt(x, 0), 0, x) * within)
    return (flat.where(flat.gt(x, 0), cotangent * above, cotangent * (within * below) * curve),)


@flat.differentiated(_of_exponential_below)
def _exponential_below(x, below, above, within):
    """At zero the function is that of positive numbers, so that an infinite factor gives 0, and its gradient
    that of negative ones, as PyTorch's."""
    return flat.where(flat.lt(x, 0), flat.expm1(flat.where(flat.lt(x, 0), x, 0) * within) * below, x * above)


@op("selu(Tensor self) -> Tensor", method=False, forms="function_", saves="inputs")
def selu(x):
    """elu with the constants that keep mean 0 and variance 1"""
    return elu(x, 1.6732632423543772848170429916717, 1.0507009873554804934193349852946, 1)


@op(
    "celu(Tensor self, Scalar alpha=1.0) -> Tensor",
    method=False,
    samples=_numbers((0.5,), (-2,)),
    forms="function_",
    saves="inputs",
)
def celu(x, alpha):
    """max(self, 0) + min(0, alpha * (exp(self / alpha) - 1))"""
    if flat.known(alpha) and alpha == 0:
        raise ArgumentError("celu needs an alpha that is not zero")
    return elu(x, alpha, 1, 1 / alpha)


_GELU = Tiles(
    lambda x, approximate: approximate == "tanh" and tile_kernels.fits_pointwise(x),
    functools.partial(tile_kernels.call_pointwise, "gelu"),
    functools.partial(tile_kernels.call_pointwise_gradient, "gelu"),
)


@op(
    "gelu(Tensor self, *, str approximate='none') -> Tensor",
    module="nn",
    method=False,
    samples=lambda: (
        [S(T(3, 4, low=-9, high=9), approximate=each) for each in ("none", "tanh")] + [S(T()), S(T(0, 3))]
    ),
)
@functools.partial(recomputed, tiles=_GELU)
@widened
def gelu(x, approximate):
    """self * Phi(self), where Phi is the normal distribution function, exactly or approximated by tanh"""
    _floats("gelu", x)
    if approximate == "tanh":
        return x * 0.5 * (1 + flat.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * (x * x * x))))
    if approximate != "none":
        raise ArgumentError(f"gelu knows no approximation {approximate!r}", help="use 'none' or 'tanh'")
    return x * 0.5 * (1 + flat.erf(x * math.sqrt(0.5)))


@op("silu(Tensor self) -> Tensor", module="nn", method=False, forms="aten_")
@recomputed
@widened
def silu(x):
    """self * sigmoid(self)"""
    _refuse("silu", x, "bool", "int")
    return x * flat.logistic(x)


@op("mish(Tensor self) -> Tensor", module="nn", method=False, forms="aten_")
@recomputed
@widened
def mish(x):
    """self * tanh(log(1 + exp(self)))"""
    _floats("mish", x)
    return x * flat.tanh(_log1p_exp(x))


@flat.differentiated(lambda cotangent, result, x: (cotangent * flat.logistic(x),))
def _log1p_exp(x):
    """log(1 + exp(x)) without overflow."""
    return flat.maximum(x, 0) + flat.log1p(flat.exp(flat.neg(flat.abs(x))))


@op("hardswish(Tensor self) -> Tensor", module="nn", method=False, forms="aten_", saves="inputs")
@widened
def hardswish(x):
    """self * relu6(self + 3) / 6"""
    _floats("hardswish", x)
    return x * hardtanh(x + 3, 0, 6) / 6


@op("hardsigmoid(Tensor self) -> Tensor", module="nn", method=False, forms="aten_", saves="inputs")
@widened
def hardsigmoid(x):
    """relu6(self + 3) / 6"""
    _floats("hardsigmoid", x)
    return hardtanh(x + 3, 0, 6) / 6


@op(
    "softplus(Tensor self, Scalar beta=1, Scalar threshold=20) -> Tensor",
    module="nn",
    method=False,
    samples=_numbers((2,), (0.5, 1), (-1.5, 20)),
    autocast="cuda: float32",
    saves="inputs",
)
@widened
def softplus(x, beta, threshold):
    """log(1 + exp(beta * self)) / beta, and self itself above the threshold"""
    _floats("softplus", x)
    beta, threshold = number_in(beta, x.dtype), number_in(threshold, x.dtype)
    scaled = x * beta
    return flat.where(flat.gt(scaled, threshold), x, _log1p_exp(scaled) / beta)


@op(
    "softshrink(Tensor self, Scalar lambd=0.5) -> Tensor",
    module="nn",
    method=False,
    samples=_numbers((0.25,), (2,), (0,)),
    torch_dialect="shrunk",
    saves="inputs",
)
def softshrink(x, lambd):
    """self moved towards zero by lambd, and zero where it is nearer than that"""
    _floats("softshrink", x)
    if flat.known(lambd) and not 0 <= lambd <= dtypes.finfo(x.dtype).max:
        raise ArgumentError(
            f"softshrink needs a lambd that is not negative and fits {x.dtype.name}, not {lambd}"
        )
    return _shrunk(x, lambd)


@widened
def _shrunk(x, lambd):
    return flat.where(flat.gt(x, lambd), x - lambd, flat.where(flat.lt(x, -lambd), x + lambd, x * 0))


@op("hardshrink(Tensor self, Scalar lambd=0.5) -> Tensor", samples=_numbers((0.25,), (2,)), saves="inputs")
def hardshrink(x, lambd):
    """self, and zero where |self| <= lambd"""
    _floats("hardshrink", x)
    lambd = number_in(lambd, x.dtype)
    return flat.where(flat.ge(x, -lambd) & flat.le(x, lambd), 0, x)


@op("log_sigmoid(Tensor self) -> Tensor", module="nn", method=False, saves="other")
@widened
@flat.differentiated(lambda cotangent, result, x: (cotangent * flat.logistic(flat.neg(x)),))
def log_sigmoid(x):
    """log(1 / (1 + exp(-self)))"""
    _floats("log_sigmoid", x)
    return flat.minimum(x, 0) - flat.log1p(flat.exp(flat.neg(flat.abs(x))))


@op(
    "log_sigmoid_forward(Tensor self) -> (Tensor output, Tensor buffer)",
    module="nn",
    differentiable=(True, False),
    function=False,
    method=False,
)
@widened
def log_sigmoid_forward(x):
    """log_sigmoid, and exp(-|self|), which its gradient needs"""
    return log_sigmoid(x), flat.exp(flat.neg(flat.abs(x)))


@op("glu(Tensor self, int dim=-1) -> Tensor", module="nn", method=False, samples=lambda: [
    S(T(3, 4)), S(T(4, 3), 0), S(T(2, 6, 3), 1), S(T(2, 6, 3), -2), S(T(0, 4)),
], saves="inputs")  # fmt: skip
@widened
def glu(x, dim):
    """The first half along a dimension times the sigmoid of the second"""
    _floats("glu", x)
    if not x.rank:
        raise ShapeError("glu does not take 0-dimensional tensors")
    dim = flat.axis(dim, x.rank)
    extent = x.shape[dim]
    if extent % 2:
        raise ShapeError(f"glu halves dimension {dim}, whose extent {extent} is odd")
    half = extent // 2
    return flat.slice_dim(x, dim, 0, half) * flat.logistic(flat.slice_dim(x, dim, half, extent))
