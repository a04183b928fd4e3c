"""Losses that compare an input with a target element by element, or vector by vector, and their reductions.

`classification_losses.py` has those whose targets are classes, `margin_losses.py` those that ask for a
margin, `ctc.py` the one over alignments.
"""

from __future__ import annotations

import math

from tenfold import flat
from tenfold.base import dtypes
from tenfold.base.errors import ArgumentError, DTypeError, ShapeError
from tenfold.flat import Value
from tenfold.ops.extremes import clamp
from tenfold.ops.pointwise import subtraction
from tenfold.ops.precision import widened
from tenfold.ops.promote import common, floating
from tenfold.ops.rounding import absolute
from tenfold.ops.samples import S, T
from tenfold.ops.special import xlogy
from tenfold.ops.table import op, written

# ATen's numbers for reductions; of others most losses take any for NONE, as PyTorch does.
NONE, MEAN, SUM = 0, 1, 2


def reduced(loss: Value, reduction: int) -> Value:
    """The losses, their mean, or their sum."""
    if reduction == SUM:
        return flat.sum(flat.convert(loss, dtypes.int64) if loss.dtype.kind in ("bool", "int") else loss)
    if reduction != MEAN:
        return loss
    if loss.dtype.kind not in ("float", "complex"):
        raise DTypeError(
            f"the mean of {loss.dtype.name} losses is not defined", help="convert to float first"
        )
    return flat.sum(loss) / flat.constant(loss.numel, loss.dtype)


def share(gradient: Value, loss: Value, reduction: int) -> Value:
    """The cotangent of each loss, given that of what `reduced` made of them."""
    return gradient / flat.full_like(gradient, loss.numel) if reduction == MEAN else gradient


def floats(name: str, *operands: Value | None) -> None:
    for x in operands:
        if x is not None and not x.dtype.is_floating_point:
            raise DTypeError(
                f"{name} is not defined for {x.dtype.name}", help="convert to a float dtype first"
            )


def fitting(name: str, x: Value, *others: Value) -> None:
    """Check that others do not stretch x."""
    for other in others:
        if flat.broadcast_shapes(x.shape, other.shape) != x.shape:
            raise ShapeError(f"{name}: {other.type} does not fit {x.type}")


def _of_floats(names, arguments):
    """Common promotion of tensors, which must all be of float dtypes."""
    floats("this loss", *[argument for argument in arguments if isinstance(argument, Value)])
    return common(names, arguments)


def _known(name: str, reduction: int) -> None:
    if reduction not in (NONE, MEAN, SUM):
        raise ArgumentError(f"{name}: the reduction is 0 (none), 1 (mean) or 2 (sum), not {reduction}")


def _pairs(*more, **numbers):
    """Samples: each reduction on a matrix; other shapes and dtypes."""
    return lambda: [
        *[S(T(3, 4), T(3, 4), *more, reduction=each, **numbers) for each in (NONE, MEAN, SUM)],
        S(T(3, 4), T(4), *more, reduction=NONE, **numbers), S(T(), T(), *more, **numbers),
        S(T(0, 3), T(0, 3), *more, **numbers), S(T(3, 4), T(3, 4, dtype="float64"), *more, **numbers),
        S(T(3, 4), T(3, 4, dtype="int64"), *more, **numbers),
        S(T(3, 4, dtype="float32"), T(3, 4, dtype="float32"), *more, **numbers),
    ]  # fmt: skip


def gradients_of(*more):
    """Samples for backward rows: a cotangent for each reduction. Integers make PyTorch divide by zero."""
    return lambda: [
        S(T(*([3, 4] if each == NONE else []), dtype=dtype), *[T(3, 4, dtype=dtype)] * 2, each, *more)
        for each in (NONE, MEAN, SUM)
        for dtype in ("float32", "float64")
    ]


# Distances of elements


@op(
    "mse_loss(Tensor self, Tensor target, int reduction=Mean) -> Tensor",
    module="nn", method=False, promote=common, samples=_pairs(),
    autocast="float32", saves="inputs")  # fmt: skip
@widened
def mse_loss(x, target, reduction):
    """(self - target)²"""
    floats("mse_loss", x)
    _known("mse_loss", reduction)
    difference = flat.sub(x, target)
    return reduced(difference * difference, reduction)


@op(
    "mse_loss_backward(Tensor grad_output, Tensor self, Tensor target, int reduction) -> Tensor",
    function=False, method=False, promote=common, samples=gradients_of(),
)  # fmt: skip
@widened
def mse_loss_backward(gradient, x, target, reduction):
    """grad_output · 2 · (self - target); for a mean, divided by the number of elements."""
    floats("mse_loss_backward", x)
    difference = flat.sub(x, target)
    return difference * 2 * share(gradient, difference, reduction)


@op(
    "l1_loss(Tensor self, Tensor target, int reduction=Mean) -> Tensor",
    module="nn", method=False, promote=subtraction, samples=_pairs(),
    autocast="float32",)  # fmt: skip
@widened
def l1_loss(x, target, reduction):
    """|self - target|"""
    difference = flat.sub(x, target)
    return reduced(absolute(difference), reduction)


@op(
    "smooth_l1_loss(Tensor self, Tensor target, int reduction=Mean, float beta=1.0) -> Tensor",
    module="nn", method=False, promote=common, special=(0,),
    samples=lambda: [*_pairs()(), *_pairs(beta=0.5)(), S(T(3, 4), T(3, 4), 1, 0.0), S(T(3), T(3), 1, -1.0)],
    autocast="float32", torch_dialect="smooth_l1", saves="inputs")  # fmt: skip
@widened
def smooth_l1_loss(x, target, reduction, beta):
    """d² / (2 beta) where d = |self - target| is below beta, else d - beta / 2."""
    floats("smooth_l1_loss", x)
    _known("smooth_l1_loss", reduction)
    if flat.known(beta) and not beta >= 0:
        raise ArgumentError(f"smooth_l1_loss: beta is not negative, but {beta} is")
    if flat.known(beta) and beta == 0:
        return l1_loss(x, target, reduction)
    distance = flat.abs(flat.sub(x, target))
    near = distance < beta
    loss = flat.where(near, _square(distance, near) * (0.5 / beta), distance - 0.5 * beta)
    return reduced(loss, reduction)


def _square(distance, near):
    """Of distances that are near. An infinite one's slope, times zero, would spoil the other branch's."""
    small = flat.where(near, distance, 0)
    return small * small


@op(
    "smooth_l1_loss_backward(Tensor grad_output, Tensor self, Tensor target, int reduction, float beta) -> "
    "Tensor",
    function=False, method=False, promote=common, samples=gradients_of(0.5), needs="whole_beta",
    late=written)  # fmt: skip
@widened
def smooth_l1_loss_backward(gradient, x, target, reduction, beta):
    """grad_output · d / beta where d = self - target is smaller than beta, else grad_output · sign(d); for a
    mean, divided by the number of elements."""
    floats("smooth_l1_loss_backward", x)
    difference = flat.sub(x, target)
    inside = flat.abs(difference) < beta
    slope = flat.where(inside, difference / beta if beta else difference, flat.sign(difference))
    return slope * share(gradient, difference, reduction)


@op(
    "huber_loss(Tensor self, Tensor target, int reduction=Mean, float delta=1.0) -> Tensor",
    module="nn", method=False,
    samples=lambda: [*_pairs()(), *_pairs(delta=0.5)(), S(T(3), T(3), 1, 0.0)],
    autocast="float32", torch_dialect="huber", saves="inputs")  # fmt: skip
def huber_loss(x, target, reduction, delta):
    """d² / 2 where d = |self - target| is below delta, else delta · (d - delta / 2)."""
    if flat.known(delta) and not delta > 0:
        raise ArgumentError(f"huber_loss: delta is positive, but {delta} is not")
    floats("huber_loss", x)
    return flat.convert(_huber(*common(("self", "target"), [x, target]), reduction, delta), x.dtype)


@widened
def _huber(x, target, reduction, delta):
    distance = flat.abs(flat.sub(x, target))
    near = distance <= delta
    loss = flat.where(near, _square(distance, near) * 0.5, (distance - 0.5 * delta) * delta)
    return reduced(loss, reduction)


@op(
    "huber_loss_backward(Tensor grad_output, Tensor self, Tensor target, int reduction, float delta) -> "
    "Tensor",
    function=False, method=False, promote=common, samples=gradients_of(0.5), out_names="grad_input",
)  # fmt: skip
@widened
def huber_loss_backward(gradient, x, target, reduction, delta):
    """grad_output · min(max(self - target, -delta), delta); for a mean, divided by the number of elements."""
    difference = flat.sub(x, target)
    return clamp(difference, -delta, delta) * share(gradient, difference, reduction)


# Likelihoods


def _bce_rule(cotangent, result, x, target):
    chance = flat.maximum((1 - x) * x, 1e-12)
    return cotangent * (x - target) / chance, cotangent * (_log(1 - x) - _log(x))


def _log(x: Value) -> Value:
    return flat.maximum(flat.log(x), -100.0)


@flat.differentiated(_bce_rule)
def _bce(x, target):
    log_other = flat.maximum(flat.log1p(-x), -100.0)
    return (target - 1) * log_other - target * _log(x)


def _probabilities(*more):
    def pair(*shape):
        return T(*shape, low=0.05, high=0.95), T(*shape, low=0, high=1)

    weight = lambda: T(3, 4, low=0.5, high=2)
    return [
        *[S(*more, *pair(3, 4), weight() if each else None, each) for each in (NONE, MEAN, SUM)],
        S(*more, *pair(3, 4), None, NONE), S(*more, *pair(2, 3, 4)),
        S(*more, *pair(3, 4), T(4, low=0.5), NONE),
        S(*more, T(3, 4, low=0.1, high=0.9), T(3, 4, dtype="float64", low=0.1, high=0.9)),
    ]  # fmt: skip


@op(
    "binary_cross_entropy(Tensor self, Tensor target, Tensor? weight=None, int reduction=Mean) -> Tensor",
    module="nn", method=False,
    samples=lambda: [*_probabilities(), S(T(0, 3), T(0, 3)), S(T(low=0.1, high=0.9), T(low=0.1, high=0.9))],
    autocast="cpu: float32", saves="inputs")  # fmt: skip
@widened
def binary_cross_entropy(x, target, weight, reduction):
    """-target · log(self) - (1 - target) · log(1 - self), logarithms no lower than -100."""
    floats("binary_cross_entropy", x)
    _same_dtype("binary_cross_entropy", x, target)
    for which, each in (("input", x), ("target", target)):
        inside = (each >= 0) & (each <= 1)
        message = f"binary_cross_entropy: an element of {which} is not between 0 and 1"
        x = flat.check(x, inside, ArgumentError, message)
    loss = _bce(*flat.broadcast(x, target))
    return reduced(loss if weight is None else loss * weight, reduction)


def _same_dtype(name: str, x: Value, *others: Value | None) -> None:
    for other in others:
        if other is not None and other.dtype is not x.dtype:
            raise DTypeError(
                f"{name}: {other.type} beside {x.type}: their dtypes differ",
                help="convert one with .to(dtype)",
            )


@op(
    "binary_cross_entropy_backward(Tensor grad_output, Tensor self, Tensor target, Tensor? weight=None, "
    "int reduction=Mean) -> Tensor",
    function=False,
    method=False,
    samples=lambda: [*_probabilities(T())[1:3], *[S(T(3, 4), *s.args) for s in _probabilities()[:1]]],
)
@widened
def binary_cross_entropy_backward(gradient, x, target, weight, reduction):
    """grad_output · weight · (self - target) / max(self · (1 - self), 1e-12); for a mean, divided by the
    number of elements."""
    _same_dtype("binary_cross_entropy_backward", x, target)
    fitting("binary_cross_entropy_backward", x, gradient, target)
    slope = (x - target) / flat.maximum((1 - x) * x, 1e-12)
    slope = slope if weight is None else slope * weight
    return slope * share(gradient, slope, reduction)


@flat.differentiated(lambda cotangent, result, x: (-cotangent * flat.logistic(-x),))
def _negative_log_sigmoid(x):
    return flat.maximum(-x, 0) + flat.log1p(flat.exp(-flat.abs(x)))


@op(
    "binary_cross_entropy_with_logits(Tensor self, Tensor target, Tensor? weight=None, "
    "Tensor? pos_weight=None, int reduction=Mean) -> Tensor",
    method=False, promote=_of_floats,
    samples=lambda: [
        *[S(T(3, 4), T(3, 4, low=0, high=1), reduction=each) for each in (NONE, MEAN, SUM)],
        S(T(3, 4), T(3, 4, low=0, high=1), T(3, 4, low=0.5), T(4, low=0.5)),
        S(*[T(3, 4, dtype="float64", low=0, high=1)] * 2, None, T(4, dtype="float64", low=0.5), NONE),
        S(T(3, 4, low=-200, high=200), T(3, 4, low=0, high=1), reduction=NONE),
        S(T(3, 4), T(4)), S(T(0, 3), T(0, 3)), S(T(), T(low=0, high=1)),
    ],
    autocast="float32",)  # fmt: skip
@widened
def binary_cross_entropy_with_logits(x, target, weight, pos_weight, reduction):
    """The binary cross entropy of sigmoid(self), which does not overflow."""
    floats("binary_cross_entropy_with_logits", x)
    fitting("binary_cross_entropy_with_logits", target, x)
    losses = _negative_log_sigmoid(x)
    if pos_weight is not None:
        losses = losses * ((pos_weight - 1) * target + 1)
    loss = (1 - target) * x + losses
    return reduced(loss if weight is None else loss * weight, reduction)


@op(
    "kl_div(Tensor self, Tensor target, int reduction=Mean, *, bool log_target=False) -> Tensor",
    method=False, promote=_of_floats,
    samples=lambda: [
        *[S(T(3, 4, high=-1), T(3, 4, low=1), each) for each in (NONE, MEAN, SUM)],
        *[S(T(3, 4), T(3, 4), each, log_target=True) for each in (NONE, MEAN)],
        S(T(3, 4), T(3, 4, low=0, high=0), NONE), S(T(3, 4), T(4, low=0.1)), S(T(0, 3), T(0, 3)),
    ],
    autocast="float32",)  # fmt: skip
@widened
def kl_div(x, target, reduction, log_target):
    """target · (log(target) - self), which is 0 where target is 0; or exp(target) · (target - self)."""
    floats("kl_div", x)
    if log_target:
        return reduced(flat.exp(target) * (target - x), reduction)
    return reduced(xlogy(target, target) - target * x, reduction)


@op(
    "poisson_nll_loss(Tensor input, Tensor target, bool log_input, bool full, float eps, int reduction) -> "
    "Tensor",
    samples=lambda: [
        S(T(3, 4, high=0), T(3, 4, low=0), True, False, 1e-8, NONE),
        S(T(3, 4, high=0), T(3, 4, low=0), True, True, 1e-8, NONE),
        *[S(T(3, 4, low=0.5), T(3, 4, low=0), False, True, 1e-8, each) for each in (MEAN, SUM)],
        S(T(3, 4), T(3, 4, dtype="int64", low=0), True, True, 1e-8, MEAN),
    ],
    autocast="float32",
)
def poisson_nll_loss(x, target, log_input, full, eps, reduction):
    """exp(input) - target · input, or input - target · log(input + eps); full: with Stirling's formula."""
    common(("self", "target"), [x, target])  # refuses dtypes that do not go together
    if x.dtype is dtypes.bool_ and (target.dtype is dtypes.bool_ or not log_input):
        raise DTypeError("poisson_nll_loss is not defined for bool", help="convert to a float dtype first")
    x = flat.convert(x, floating(x.dtype))
    return _poisson(*common(("self", "target"), [x, target]), log_input, full, eps, reduction)


@widened
def _poisson(x, target, log_input, full, eps, reduction):
    loss = flat.exp(x) - target * x if log_input else x - target * flat.log(x + eps)
    if full:
        large = target > 1
        safe = flat.where(large, target, 2)
        stirling = safe * flat.log(safe) - safe + flat.log(safe * math.tau) * 0.5
        loss = loss + flat.where(large, stirling, 0)
    return reduced(loss, reduction)


# What a loss takes for granted


@op(
    "_functional_assert_async.msg(Tensor self, str assert_msg, Tensor dep_token) -> Tensor",
    method=False,
    samples=lambda: [S(T(low=1), "fails", T(3, 4)), S(T(1, low=1), "fails", T())],
)
def _functional_assert_async(holds, message, x):
    """dep_token; but reading it raises if self is zero."""
    if holds.numel != 1:
        raise ShapeError(f"the condition must be one value, not {holds.type}")
    return flat.check(x, flat.reshape(flat.ne(holds, 0), ()), ArgumentError, message)
