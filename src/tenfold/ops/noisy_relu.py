"""`rrelu` with its slopes given back, and its gradient by them."""

from tenfold import flat
from tenfold.base.errors import ArgumentError, DTypeError, ShapeError
from tenfold.ops.activations import leaky_relu
from tenfold.ops.precision import widened
from tenfold.ops.random import bits, unit
from tenfold.ops.samples import S, T
from tenfold.ops.table import op, written


@op(
    "rrelu_with_noise_functional(Tensor self, Tensor noise, Scalar lower=0.125, "
    "Scalar upper=0.3333333333333333, bool training=False, Generator? generator=None) "
    "-> (Tensor, Tensor noise_out)",
    random=True,
    function=False,
    method=False,
    samples=lambda: [
        S(T(3, 4, low=1, high=4), T(3, 4, low=1, high=4)),
        S(T(3, 4, low=-4, high=4), T(3, 4), 0.25, 0.5, True),
    ],
    needs="noise_of_self",
    late=written,
)
def rrelu_with_noise(state, x, noise, lower, upper, training):
    """leaky_relu with slopes drawn between the bounds while training, and these; else with their mean"""
    if x.dtype.kind != "float" or x.dtype.itemsize < 2:
        raise DTypeError(f"rrelu_with_noise is not defined for {x.dtype.name}", help="it takes float tensors")
    if noise.shape != x.shape:
        raise ShapeError(f"rrelu_with_noise: slopes {noise.type} are not of the shape of {x.type}")
    if lower > upper:
        raise ArgumentError(f"rrelu needs a lower bound below the upper, not {lower} and {upper}")
    if not training:
        return leaky_relu(x, (lower + upper) / 2), noise, state
    state, random = bits(state, x.shape)
    slope = flat.where(flat.le(x, 0), lower + (upper - lower) * unit(random, x.dtype), 1.0)
    return x * slope, slope, state


@op(
    "rrelu_with_noise_backward(Tensor grad_output, Tensor self, Tensor noise, Scalar lower, Scalar upper, "
    "bool training, bool self_is_result) -> Tensor",
    function=False,
    method=False,
    samples=lambda: [
        S(T(3, 4), T(3, 4), T(3, 4), 0.25, 0.5, True, False),
        S(T(3, 4), T(3, 4), T(3, 4), 0.25, 0.5, False, False),
        S(T(3, 4), T(3, 4), T(3, 4), 0.5, 0.5, True, True),
    ],
)
@widened
def rrelu_with_noise_backward(gradient, x, noise, lower, upper, training, is_result):
    """grad · slope: the one drawn while training, else the mean of the bounds where x is negative"""
    if training:
        return flat.logical_and(gradient, noise) if gradient.dtype.kind == "bool" else gradient * noise
    if gradient.dtype.kind != "float" or gradient.dtype.itemsize < 2:
        raise DTypeError(f"rrelu_with_noise_backward is not defined for {gradient.dtype.name}")
    slope = (lower + upper) / 2
    if is_result and slope < 0:
        raise ArgumentError("the result of a negative slope does not tell the sign of what it came from")
    return flat.where(flat.gt(x, 0), gradient, gradient * slope)
