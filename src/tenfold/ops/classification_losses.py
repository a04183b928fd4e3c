"""Losses whose targets are classes: negative log likelihood and cross entropy.

The class dimension is 1, or the only one. A target outside the classes raises when the result is read.
"""

from __future__ import annotations

from tenfold import flat
from tenfold.base import dtypes
from tenfold.base.errors import ArgumentError, DTypeError, IndexOutOfRange, ShapeError
from tenfold.flat import Value
from tenfold.flat.remat import derived
from tenfold.ops import tile_kernels
from tenfold.ops.losses import MEAN, NONE, SUM, floats, reduced
from tenfold.ops.precision import widened
from tenfold.ops.samples import S, T
from tenfold.ops.softmax import _log_softmax
from tenfold.ops.table import op


def _class_dim(x: Value) -> int:
    return 1 if x.rank > 1 else 0


def hot(x: Value, target: Value) -> Value:
    """Whether an element of x stands at its target's class."""
    dim = _class_dim(x)
    return flat.eq(flat.unsqueeze(target, dim), flat.iota(x.shape, dim, target.dtype))


# FlatIR's own gradient, a scatter, is slower than this choice, which melts into what follows.
@flat.differentiated(
    lambda ct, result, x, t: (flat.where(hot(x, t), flat.unsqueeze(ct, _class_dim(x)), 0), None)
)
def at_target(x, target):
    dim = _class_dim(x)
    return flat.squeeze(flat.take_along(x, flat.unsqueeze(target, dim), dim), dim)


def _likelihood_rule(cotangents, results, x, target):
    """1 at the target less softmax(x), times what flows back. It is computed from x again: x is there, and
    its logarithms need never be.

    A second derivative reaches the other two results. The largest score counts as a constant there: it is
    only ever subtracted from x together with the logarithm, and their sum is the same whatever it is.
    """
    to_picked, _, to_log_total = cotangents
    _, largest, log_total = results
    gradient = None
    if to_picked is not None:
        (gradient,) = _likelihood_gradient(x, target, largest, log_total, to_picked)
    if to_log_total is not None:
        further = flat.exp(x - largest - log_total) * to_log_total
        gradient = further if gradient is None else gradient + further
    return gradient, None


def _plain_gradient(x, target, largest, log_total, flows):
    flows = flat.unsqueeze(flows, _class_dim(x))
    chances = flat.exp(x - largest - log_total)
    return (flat.where(hot(x, target), flows, 0) - chances * flows,)


def _gradient_by_tiles(x, target, largest, log_total, flows):
    if not tile_kernels.fits_likelihood(x, _class_dim(x)):
        return _plain_gradient(x, target, largest, log_total, flows)
    largest, log_total = (flat.reshape(each, target.shape) for each in (largest, log_total))
    return (tile_kernels.call_likelihood_gradient(x, target, largest, log_total, flows),)


_likelihood_gradient = flat.differentiated(
    derived(_plain_gradient), elsewhere={"triton": _gradient_by_tiles}
)(_plain_gradient)


def _by_tiles(x, target):
    dim = _class_dim(x)
    if not tile_kernels.fits_likelihood(x, dim):
        return _plain_log_likelihood(x, target)
    target = flat.clamp(target, 0, x.shape[dim] - 1)  # the kernel reads there before a check is heard
    picked, largest, log_total = tile_kernels.call_likelihood(x, target)
    return picked, flat.unsqueeze(largest, dim), flat.unsqueeze(log_total, dim)


@flat.differentiated(_likelihood_rule, elsewhere={"triton": _by_tiles})
def _log_likelihood(x, target):
    """log_softmax(x) at each target's class; the largest score, and the logarithm of the sum of exponentials
    above it."""
    return _plain_log_likelihood(x, target)


def _plain_log_likelihood(x, target):
    dim = _class_dim(x)
    largest = flat.reduce(x, "max", (dim,), keepdim=True)
    log_total = flat.log(flat.sum(flat.exp(x - largest), (dim,), keepdim=True))
    return at_target(x - largest, target) - flat.squeeze(log_total, dim), largest, log_total


class _Targets:
    """Targets that are classes: where they count, and with what weight."""

    def __init__(self, name: str, x: Value, target: Value, weight: Value | None, ignore_index: int):
        if target.dtype not in (dtypes.int64, dtypes.uint8):
            raise DTypeError(
                f"{name}: classes are int64 or uint8, not {target.dtype.name}", help="convert with .long()"
            )
        floats(name, x)
        dim = _class_dim(x)
        classes = x.shape[dim]
        if target.shape != (*x.shape[:dim], *x.shape[dim + 1 :]):
            raise ShapeError(f"{name}: the target {target.type} does not fit the input {x.type}")
        if weight is not None and (weight.shape != (classes,) or weight.dtype is not x.dtype):
            raise ShapeError(f"{name}: the weight {weight.type} is not one for each of {classes} classes")
        target = flat.convert(target, dtypes.int64)
        self.counts = flat.ne(target, ignore_index)
        inside = (target >= 0) & (target < classes) | ~self.counts
        message = f"{name}: a target is not one of the {classes} classes"
        self.place = flat.check(
            flat.where(self.counts, target, 0), inside, IndexOutOfRange, message
        )  # fmt: skip
        one = flat.full(target.shape, 1, x.dtype)
        if weight is not None and classes:
            one = flat.take(weight, self.place, 0)
        self.weight = flat.where(self.counts, one, 0)


def _likelihood(name, x, target, weight, reduction, ignore_index, pick=at_target):
    """The negative log likelihood and the total weight of what counts. `pick` gives it at the targets."""
    if x.rank == 1 and target.shape == (1,):
        target = flat.reshape(target, ())
    targets = _Targets(name, x, target, weight, ignore_index)
    total = flat.sum(targets.weight)
    if not x.numel:
        loss = flat.full(target.shape, 0, x.dtype)
    else:
        # What does not count is chosen away: 0 · inf would be NaN.
        loss = flat.where(targets.counts, -pick(x, targets.place) * targets.weight, 0)
    if reduction == NONE:
        return loss, total if x.rank == 1 else flat.full_like(total, 0)
    whole = flat.sum(loss)
    return whole / total if reduction == MEAN else whole, total


def _check_rank(name: str, x: Value, target: Value, ranks: tuple[int, ...]) -> None:
    if x.rank not in ranks:
        raise ShapeError(f"{name} takes {' or '.join(map(str, ranks))} dimensions, not {x.type}")


CLASSES = lambda *shape: T(*shape, dtype="int64", low=0, high=4)
_W = lambda: T(4, low=0.5, high=2)


def _picks(*more, shapes=(((3, 4), (3,)),)):
    """Samples: each reduction, with and without weights and a class to ignore."""

    def samples():
        found = []
        for shape, places in shapes:
            # Of many half-precision losses PyTorch rounds partial sums: there the others are compared.
            dtype = "float32" if len(shape) > 3 else None
            x, weight = T(*shape, dtype=dtype, high=0), T(4, dtype=dtype, low=0.5, high=2)
            found += [S(x, CLASSES(*places), None, each, -100, *more) for each in range(3)]
            found += [S(x, CLASSES(*places), weight, each, 1, *more) for each in range(3)]
        return found

    return samples


_FLAT = ((3, 4), (3,)), ((4,), ()), ((0, 4), (0,))
_SPATIAL = ((2, 4, 3, 2), (2, 3, 2)), ((0, 4, 1, 1), (0, 1, 1))
_SCHEMA = "Tensor self, Tensor target, Tensor? weight=None, int reduction=Mean, SymInt ignore_index=-100"
_FORWARD = "Tensor self, Tensor target, Tensor? weight, int reduction, SymInt ignore_index"
_LOSS = "likelihood_by_gather(self, target, weight, reduction, ignore_index)[0]"


@op(
    f"nll_loss({_SCHEMA}) -> Tensor", module="nn", method=False,
    samples=lambda: [
        *_picks(shapes=_FLAT)(), S(T(3, 4), T(3, dtype="uint8", high=3)), S(T(3, 4), T(3, dtype="int32")),
        S(T(3, 4), CLASSES(2)), S(T(3, 4), CLASSES(3), T(3)), S(T(2, 3, 4), CLASSES(2, 4)),
    ],
    autocast="float32",
    positions="target", torch_dialect=_LOSS)  # fmt: skip
def nll_loss(x, target, weight, reduction, ignore_index):
    """-self at each target's class, weighed by class; the mean is over weights."""
    return nll_loss_forward(x, target, weight, reduction, ignore_index)[0]


@op(
    f"nll_loss_forward({_FORWARD}) -> (Tensor output, Tensor total_weight)",
    function=False, method=False, differentiable=(True, False), samples=_picks(shapes=_FLAT),
    positions="target", torch_dialect="likelihood_by_gather")  # fmt: skip
@widened
def nll_loss_forward(x, target, weight, reduction, ignore_index):
    """The loss, and the weight it is divided by."""
    _check_rank("nll_loss", x, target, (1, 2))
    return _likelihood("nll_loss", x, target, weight, reduction, ignore_index)


@op(
    f"nll_loss2d({_SCHEMA}) -> Tensor",
    function=False,
    method=False,
    samples=_picks(shapes=_SPATIAL),
    autocast="float32",
    positions="target",
    torch_dialect=_LOSS,
)
def nll_loss2d(x, target, weight, reduction, ignore_index):
    """`nll_loss` at each place of an image."""
    return nll_loss2d_forward(x, target, weight, reduction, ignore_index)[0]


@op(
    f"nll_loss2d_forward({_FORWARD}) -> (Tensor output, Tensor total_weight)",
    function=False, method=False, differentiable=(True, False), samples=_picks(shapes=_SPATIAL),
    positions="target", torch_dialect="likelihood_by_gather")  # fmt: skip
@widened
def nll_loss2d_forward(x, target, weight, reduction, ignore_index):
    """The loss, and the weight it is divided by."""
    _check_rank("nll_loss2d", x, target, (4,))
    return _likelihood("nll_loss2d", x, target, weight, reduction, ignore_index)


@op(
    f"nll_loss_nd({_SCHEMA}) -> Tensor", function=False, method=False,
    samples=_picks(shapes=(*_FLAT, ((2, 4, 3), (2, 3)), ((2, 4, 3, 2, 1), (2, 3, 2, 1)))),
    autocast="float32", grad_fn="NllLossBackward0",
    positions="target", torch_dialect=_LOSS)  # fmt: skip
@widened
def nll_loss_nd(x, target, weight, reduction, ignore_index):
    """`nll_loss` at each place of however many dimensions."""
    if not x.rank:
        raise ShapeError("nll_loss takes at least one dimension, that of the classes")
    return _likelihood("nll_loss", x, target, weight, reduction, ignore_index)[0]


def _unpicked(gradient, x, target, weight, reduction, ignore_index, total_weight):
    if x.rank == 1 and target.rank == 1:
        # Of several targets for one element of a batch PyTorch reads the first.
        target = flat.reshape(flat.slice_dim(target, 0, 0, 1), ())
    targets = _Targets("nll_loss", x, target, weight, ignore_index)
    if total_weight.numel != 1:
        raise ShapeError(f"nll_loss_backward: total_weight is one number, not {total_weight.type}")
    shape = target.shape if reduction == NONE else ()
    if gradient.shape == (1,) and shape == ():
        gradient = flat.reshape(gradient, ())
    if gradient.shape != shape:
        raise ShapeError(f"nll_loss_backward: grad_output {gradient.type} is not of the loss's shape")
    total_weight = flat.reshape(total_weight, ())
    each = -gradient * targets.weight
    if reduction == MEAN:
        each = each / total_weight
    each = flat.broadcast_to(flat.where(targets.counts, each, 0), target.shape)
    return flat.where(hot(x, targets.place), flat.unsqueeze(each, _class_dim(x)), 0)


def _unpicks(*shapes):
    # Both dtypes by name: PyTorch rounds half types inside.
    return lambda: [
        S(T(*(places if each == NONE else ()), dtype=d), T(*shape, dtype=d), CLASSES(*places), w, each, 1,
          T(dtype=d, low=1, high=5))
        for d in ("float32", "float64") for shape, places in shapes for each in (NONE, MEAN, SUM)
        for w in (None, T(4, dtype=d))
    ]  # fmt: skip


_BACKWARD = (
    "Tensor grad_output, Tensor self, Tensor target, Tensor? weight, int reduction, SymInt ignore_index, "
    "Tensor total_weight"
)


@op(
    f"nll_loss_backward({_BACKWARD}) -> Tensor",
    function=False, method=False, samples=_unpicks(((3, 4), (3,)), ((4,), ())),
    positions="target", needs="classes_of_targets")  # fmt: skip
@widened
def nll_loss_backward(gradient, x, target, weight, reduction, ignore_index, total_weight):
    """-grad_output · weight[target] at each target's class, 0 elsewhere and for targets of ignore_index; for
    a mean, divided by total_weight."""
    _check_rank("nll_loss", x, target, (1, 2))
    return _unpicked(gradient, x, target, weight, reduction, ignore_index, total_weight)


@op(
    f"nll_loss2d_backward({_BACKWARD}) -> Tensor",
    function=False, method=False, samples=_unpicks(((1, 4, 1, 1), (1, 1, 1))),
    positions="target", needs="classes_of_targets")  # fmt: skip
@widened
def nll_loss2d_backward(gradient, x, target, weight, reduction, ignore_index, total_weight):
    """`nll_loss_backward` at each place of an image."""
    _check_rank("nll_loss2d", x, target, (4,))
    return _unpicked(gradient, x, target, weight, reduction, ignore_index, total_weight)


# Cross entropy


def _entropies():
    shapes = ((3, 4), (3,)), ((2, 4, 3), (2, 3)), ((4,), ())
    found = [
        *_picks(shapes=shapes)(), *_picks(0.25, shapes=shapes)(),
        S(T(0, 4), CLASSES(0)), S(T(3, 4), CLASSES(3), None, 1, -100, 2.0),
        S(T(3, 4), T(3, 4, dtype="int64")),
        S(T(3, 4), T(3, 4, low=0), None, 1, 1), S(T(3, 4), T(3, 4), T(3)), S(T(3, 4), CLASSES(2)),
    ]  # fmt: skip
    for shape, _ in shapes:
        for each in (NONE, MEAN, SUM):
            found += [
                S(T(*shape, high=0), T(*shape, low=0.1, high=1), None, each),
                S(T(*shape, high=0), T(*shape, low=0.1, high=1), _W(), each, -100, 0.25),
            ]
    return found


@op(
    "cross_entropy_loss(Tensor self, Tensor target, Tensor? weight=None, int reduction=Mean, "
    "SymInt ignore_index=-100, float label_smoothing=0.0) -> Tensor",
    function=False,
    method=False,
    special=(0,),
    samples=_entropies,
    autocast="float32",
    grad_fn="NllLossBackward0",
    positions="target",
    torch_dialect="entropy_by_gather",
)
@widened
def cross_entropy_loss(x, target, weight, reduction, ignore_index, label_smoothing):
    """-Σ target · log_softmax(self) over classes; targets are classes, or a probability for each class."""
    if flat.known(label_smoothing) and not label_smoothing <= 1:
        raise ArgumentError(
            f"cross_entropy: label_smoothing is between 0 and 1, but {label_smoothing} is not"
        )
    floats("cross_entropy", x)
    if not x.rank:
        raise ShapeError("cross_entropy takes at least one dimension, that of the classes")
    dim = _class_dim(x)
    classes = x.shape[dim]
    if weight is not None and weight.shape != (classes,):
        raise ShapeError(f"cross_entropy: the weight {weight.type} is not one for each of {classes} classes")
    plain = flat.known(label_smoothing) and label_smoothing <= 0 and target.shape != x.shape
    if plain and x.dtype in (dtypes.float32, dtypes.float64):
        pick = lambda x, place: _log_likelihood(x, place)[0]
        return _likelihood("nll_loss", x, target, weight, reduction, ignore_index, pick)[0]
    logs = _log_softmax(x, dim, False)
    by_class = None if weight is None else flat.reshape(weight, (classes, *[1] * (x.rank - dim - 1)))
    if target.shape == x.shape:
        return _from_probabilities(logs, target, by_class, dim, reduction, ignore_index, label_smoothing)
    exact = nll_loss_nd(logs, target, weight, reduction, ignore_index)
    if flat.known(label_smoothing) and label_smoothing <= 0:
        return exact
    if target.dtype is not dtypes.int64:
        raise DTypeError(f"cross_entropy: classes to be smoothed are int64, not {target.dtype.name}")
    targets = _Targets("cross_entropy", x, target, weight, ignore_index)
    smooth = -flat.sum(logs if by_class is None else logs * by_class, (dim,))
    smooth = flat.where(targets.counts, smooth, 0)
    if reduction == MEAN:
        smooth = flat.sum(smooth) / flat.sum(targets.weight)
    else:
        smooth = reduced(smooth, reduction)
    if not flat.known(label_smoothing):
        label_smoothing = flat.maximum(label_smoothing, 0.0)
    return exact * (1 - label_smoothing) + smooth * (label_smoothing / max(classes, 1))


def _from_probabilities(logs, target, by_class, dim, reduction, ignore_index, label_smoothing):
    if not target.dtype.is_floating_point:
        raise DTypeError(
            f"cross_entropy: probabilities of classes are floating-point numbers, not {target.dtype.name}",
            help="a target of classes has no dimension for them",
        )
    if ignore_index >= 0:
        raise ArgumentError("cross_entropy: ignore_index is for targets that are classes")
    target = flat.convert(target, logs.dtype)
    if not flat.known(label_smoothing):
        label_smoothing = flat.maximum(label_smoothing, 0.0)
    if not flat.known(label_smoothing) or label_smoothing > 0:
        target = target * (1 - label_smoothing) + label_smoothing / logs.shape[dim]
    products = logs * target if by_class is None else logs * target * by_class
    loss = -flat.sum(products, (dim,))
    return reduced(loss, reduction)
