"""Rows that are the gradients of activation functions: what PyTorch's own gradients call.

Most are what FlatIR's gradient makes of the activation's lowering; those given the result work from that.
"""

from tenfold import flat
from tenfold.base import dtypes
from tenfold.base.errors import DTypeError, ShapeError
from tenfold.flat.grad import gradients
from tenfold.flat.ir import in_order
from tenfold.ops import activations, transcendental
from tenfold.ops.precision import widened
from tenfold.ops.promote import common, floating
from tenfold.ops.samples import S, T
from tenfold.ops.table import op


def cotangent_of(lowering, gradient, x, *arguments):
    """The cotangent of x, given that of lowering(x, *arguments)."""
    result = lowering(x, *arguments)
    (found,) = gradients(in_order([result]), [result], [flat.broadcast_to(gradient, result.shape)], [x])
    return flat.full_like(x, 0) if found is None else found


def _slope(lowering, x, *arguments):
    """The derivative of an elementwise function. A gradient is multiplied by it whole: by its factors one by
    one, a product may overflow that the next would make zero."""
    return cotangent_of(lowering, flat.full_like(lowering(x, *arguments), 1), x, *arguments)


def _floats(name, *values):
    for value in values:
        if value.dtype.kind != "float":
            raise DTypeError(f"{name} is not defined for {value.dtype.name}", help="it takes float tensors")


def _alike(name, first, *others):
    for other in others:
        if other.type is not first.type:
            raise ShapeError(f"{name} takes tensors of one type, not {first.type} and {other.type}")


_HIDDEN = {"function": False, "method": False}


def _pairs(*calls):
    """Samples: a gradient and a tensor with these further arguments."""
    return lambda: [
        S(T(*shape), T(*shape), *each) for each in calls or [()] for shape in ((3, 4), (), (0, 3), (2, 3, 4))
    ]


# From the result


@op(
    "sigmoid_backward(Tensor grad_output, Tensor output) -> Tensor",
    promote=common,
    samples=_pairs(),
    **_HIDDEN,
)
@widened
def sigmoid_backward(gradient, result):
    """grad · y (1 - y)"""
    _inexact("sigmoid_backward", result)
    return gradient * flat.conj(result * (1 - result))


@op("tanh_backward(Tensor grad_output, Tensor output) -> Tensor", promote=common, samples=_pairs(), **_HIDDEN)
@widened
def tanh_backward(gradient, result):
    """grad · (1 - y²)"""
    _inexact("tanh_backward", result)
    return gradient * flat.conj(1 - result * result)


def _inexact(name, x):
    if x.dtype.kind not in ("float", "complex"):
        raise DTypeError(f"{name} is not defined for {x.dtype.name}", help="it takes float, complex tensors")


def _along():
    return [
        S(T(*shape), T(*shape), dim) for shape, dim in (((3, 4), 1), ((2, 3, 4), 0), ((0, 3), -1), ((), 0))
    ]


def _of_dtype(samples):
    return [
        S(*each.args, dtype) for dtype in ("float32", "float64", "float16") for each in _typed(samples, dtype)
    ]


def _typed(samples, dtype):
    return [
        S(*[T(*a.shape, dtype=dtype) if isinstance(a, T) else a for a in sample.args]) for sample in samples
    ]


def _total(x, dim):
    return flat.sum(x, (flat.axis(dim, x.rank),), True) if x.rank else x


@op(
    "_softmax_backward_data(Tensor grad_output, Tensor output, int dim, ScalarType input_dtype) -> Tensor",
    method=False,
    samples=lambda: _of_dtype(_along()),
    needs="grad_output like output",
    out_names="grad_input",
)
def softmax_backward_data(gradient, result, dim, input_dtype):
    """y · (grad - sum(grad · y)) along a dimension."""
    return flat.convert(_softmax_gradient(gradient, result, dim), input_dtype)


@widened
def _softmax_gradient(gradient, result, dim):
    _floats("_softmax_backward_data", gradient, result)
    _alike("_softmax_backward_data", gradient, result)
    product = gradient * result
    return product - result * _total(product, dim)


@op(
    "_log_softmax_backward_data(Tensor grad_output, Tensor output, int dim, ScalarType input_dtype) "
    "-> Tensor",
    method=False,
    samples=lambda: _of_dtype(_along()),
    needs="grad_output like output",
)
def log_softmax_backward_data(gradient, result, dim, input_dtype):
    """grad - exp(y) · sum(grad) along a dimension."""
    return flat.convert(_log_softmax_gradient(gradient, result, dim), input_dtype)


@widened
def _log_softmax_gradient(gradient, result, dim):
    _floats("_log_softmax_backward_data", gradient, result)
    _alike("_log_softmax_backward_data", gradient, result)
    return gradient - flat.exp(result) * _total(gradient, dim)


# From the argument


@op(
    "threshold_backward(Tensor grad_output, Tensor self, Scalar threshold) -> Tensor",
    promote=common,
    samples=_pairs((0,), (0.5,)),
    **_HIDDEN,
)
def threshold_backward(gradient, x, threshold):
    """grad where x is above the threshold, else 0"""
    if x.dtype.kind not in ("int", "float"):
        raise DTypeError(f"threshold_backward is not defined for {x.dtype.name}")
    threshold = int(threshold) if x.dtype.kind == "int" else threshold
    return flat.where(flat.le(x, threshold), 0, gradient)


@op(
    "gelu_backward(Tensor grad_output, Tensor self, *, str approximate='none') -> Tensor",
    samples=lambda: [*_pairs()(), S(T(3, 4), T(3, 4), approximate="tanh")],
    **_HIDDEN,
    needs="shapes_of_gelu",
)
@widened
def gelu_backward(gradient, x, approximate):
    """grad_output · (Phi(self) + self · phi(self)), of the normal distribution and its density; or by the
    slope of the form by tanh"""
    _alike("gelu_backward", gradient, x)
    return gradient * _slope(activations.gelu, x, approximate)


@op("silu_backward(Tensor grad_output, Tensor self) -> Tensor", promote=common, samples=_pairs(), **_HIDDEN)
@widened
def silu_backward(gradient, x):
    """grad · s (1 + x (1 - s)), s being sigmoid(x); complex numbers are not conjugated"""
    _inexact("silu_backward", x)
    s = flat.logistic(x)
    return gradient * (s * (1 + x * (1 - s)))


@op("mish_backward(Tensor grad_output, Tensor self) -> Tensor", samples=_pairs(), **_HIDDEN)
@widened
def mish_backward(gradient, x):
    """grad_output · (t + self · (1 - t²) · sigmoid(self)), t being tanh(log(1 + exp(self)))"""
    _alike("mish_backward", gradient, x)
    return gradient * _slope(activations.mish, x)


@op(
    "hardswish_backward(Tensor grad_output, Tensor self) -> Tensor",
    promote=common,
    samples=_pairs(),
    **_HIDDEN,
)
@widened
def hardswish_backward(gradient, x):
    """grad · (x / 3 + 1 / 2) where x is between -3 and 3, 0 below, and grad above"""
    _floats("hardswish_backward", x)
    between = gradient * (x / 3.0 + 0.5)
    return flat.where(flat.le(x, -3), 0, flat.where(flat.lt(x, 3), between, gradient))


@op(
    "hardsigmoid_backward(Tensor grad_output, Tensor self) -> Tensor",
    promote=common,
    samples=_pairs(),
    **_HIDDEN,
)
@widened
def hardsigmoid_backward(gradient, x):
    """grad / 6 where x is between -3 and 3, else 0"""
    _floats("hardsigmoid_backward", x)
    return flat.where(flat.gt(x, -3) & flat.lt(x, 3), gradient / 6.0, 0)


@op(
    "hardtanh_backward(Tensor grad_output, Tensor self, Scalar min_val, Scalar max_val) -> Tensor",
    promote=common,
    samples=_pairs((-1, 1), (0.0, 1.5)),
    **_HIDDEN,
)
def hardtanh_backward(gradient, x, low, high):
    """grad where x is between the bounds, else 0"""
    _floats("hardtanh_backward", x)
    return flat.where(flat.le(x, low) | flat.ge(x, high), 0, gradient)


@op(
    "hardshrink_backward(Tensor grad_out, Tensor self, Scalar lambd) -> Tensor",
    "softshrink_backward(Tensor grad_output, Tensor self, Scalar lambd) -> Tensor",
    promote=common,
    samples=_pairs((0.5,), (1,)),
    **_HIDDEN,
    torch_dialect="own name",
)
def shrink_backward(gradient, x, lambd):
    """grad where |x| is above lambd, else 0"""
    _floats("shrink_backward", x)
    return flat.where(flat.ge(x, -lambd) & flat.le(x, lambd), 0, gradient)


@op(
    "softplus_backward(Tensor grad_output, Tensor self, Scalar beta, Scalar threshold) -> Tensor",
    promote=common,
    samples=_pairs((1, 20), (2.0, 1)),
    **_HIDDEN,
)
@widened
def softplus_backward(gradient, x, beta, threshold):
    """grad · sigmoid(beta x), and grad where beta x is above the threshold"""
    _floats("softplus_backward", x)
    scaled = x * beta
    return flat.where(flat.gt(scaled, threshold), gradient, gradient * flat.logistic(scaled))


@op(
    "leaky_relu_backward(Tensor grad_output, Tensor self, Scalar negative_slope, bool self_is_result) "
    "-> Tensor",
    promote=common,
    samples=_pairs((0.25, False), (0.5, True)),
    **_HIDDEN,
)
@widened
def leaky_relu_backward(gradient, x, slope, self_is_result):
    """grad where x is positive, else scaled by the slope"""
    _floats("leaky_relu_backward", x)
    return flat.where(flat.gt(x, 0), gradient, gradient * slope)


@op(
    "elu_backward(Tensor grad_output, Scalar alpha, Scalar scale, Scalar input_scale, bool is_result, "
    "Tensor self_or_result) -> Tensor",
    promote=common,
    samples=lambda: [
        S(T(*shape), 1.5, 2, 0.5, given, T(*shape))
        for shape in ((3, 4), (), (0, 3))
        for given in (False, True)
    ],
    **_HIDDEN,
)
@widened
def elu_backward(gradient, alpha, scale, input_scale, is_result, x):
    """The gradient of `elu`, by its argument or by its result."""
    _floats("elu_backward", x)
    below = x + alpha * scale if is_result else flat.exp(x * input_scale) * (alpha * scale)
    return gradient * flat.where(flat.le(x, 0), below * input_scale, scale)


@op(
    "log_sigmoid_backward(Tensor grad_output, Tensor self, Tensor buffer) -> Tensor",
    samples=lambda: [S(T(*shape), T(*shape), T(*shape)) for shape in ((3, 4), (), (0, 3))],
    differs="PyTorch reads exp(-|x|) from the buffer, which the samples do not put there",
    **_HIDDEN,
)
@widened
def log_sigmoid_backward(gradient, x, buffer):
    """grad · sigmoid(-x)"""
    _floats("log_sigmoid_backward", x)
    _alike("log_sigmoid_backward", x, gradient, buffer)
    return gradient * flat.logistic(-x)


@op(
    "logit_backward(Tensor grad_output, Tensor self, float? eps=None) -> Tensor",
    promote=common,
    samples=lambda: (
        [S(T(3, 4), T(3, 4, low=0.1, high=0.9), eps) for eps in (None, 0.2)] + [S(T(0, 3), T(0, 3))]
    ),
    **_HIDDEN,
)
@widened
def logit_backward(gradient, x, eps):
    """grad_output / (self · (1 - self)) where self is in [eps, 1 - eps], else 0; without eps NaN outside
    [0, 1]"""
    return gradient * _slope(transcendental.logit, x, eps)


@op(
    "glu_backward(Tensor grad_output, Tensor self, int dim) -> Tensor",
    samples=lambda: [S(T(3, 2), T(3, 4), -1), S(T(1, 3), T(2, 3), 0)],
    **_HIDDEN,
)
@widened
def glu_backward(gradient, x, dim):
    """With self's halves a and b along dim: grad_output · sigmoid(b), and after it
    grad_output · a · sigmoid(b) · (1 - sigmoid(b))"""
    if not x.rank:
        raise ShapeError("glu_backward: a zero-dimensional tensor has no halves")
    slope = _slope(activations.glu, x, dim)
    return flat.concatenate([gradient, gradient], flat.axis(dim, x.rank)) * slope


@op(
    "_prelu_kernel_backward(Tensor grad_output, Tensor self, Tensor weight) -> (Tensor, Tensor)",
    samples=lambda: [S(T(3, 4), T(3, 4), T(1, 4)), S(T(2, 3, 4), T(2, 3, 4), T(1, 3, 1))],
    **_HIDDEN,
)
def prelu_kernel_backward(gradient, x, weight):
    """grad where x is positive, else scaled by the weight; and grad · x where it is not, for the weight."""
    above = flat.gt(x, 0)
    return flat.where(above, gradient, gradient * weight), flat.where(above, 0, gradient * x)


@op(
    "native_dropout_backward(Tensor grad_output, Tensor mask, float scale) -> Tensor",
    samples=lambda: [S(T(*shape), T(*shape, dtype="bool"), 2.0) for shape in ((3, 4), (), (0, 3))],
    **_HIDDEN,
)
def native_dropout_backward(gradient, mask, scale):
    """grad · mask · scale"""
    narrow = gradient.dtype.is_floating_point and gradient.dtype.itemsize < 2
    if narrow or gradient.dtype in (dtypes.uint16, dtypes.uint32, dtypes.uint64):
        raise DTypeError(f"native_dropout_backward is not defined for {gradient.dtype.name}")
    gradient = flat.convert(gradient, floating(gradient.dtype))
    return _dropped(gradient, mask, scale)


@widened
def _dropped(gradient, mask, scale):
    return gradient * flat.convert(mask, gradient.dtype) * scale
