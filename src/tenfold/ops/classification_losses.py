"""Losses whose targets are classes: negative log likelihood, cross entropy, and margins between classes.

The class dimension is 1, or the only one. A target outside the classes raises when the result is read.
"""

from __future__ import annotations

from tenfold import dtypes, flat
from tenfold.errors import ArgumentError, DTypeError, IndexOutOfRange, ShapeError
from tenfold.flat import Value
from tenfold.ops.losses import MEAN, NONE, SUM, floats, reduced
from tenfold.ops.precision import widened
from tenfold.ops.samples import S, T
from tenfold.ops.softmax import _log_softmax
from tenfold.ops.table import op


def _class_dim(x: Value) -> int:
    return 1 if x.rank > 1 else 0


def _hot(x: Value, target: Value) -> Value:
    """Whether an element of x stands at its target's class."""
    dim = _class_dim(x)
    return flat.eq(flat.unsqueeze(target, dim), flat.iota(x.shape, dim, target.dtype))


# Its own gradient, a scatter, is slower than this choice, which melts into what follows.
@flat.differentiated(lambda ct, result, x, t: (flat.where(_hot(x, t), flat.unsqueeze(ct, _class_dim(x)), 0), None))
def _at_target(x, target):
    dim = _class_dim(x)
    return flat.squeeze(flat.take_along(x, flat.unsqueeze(target, dim), dim), dim)


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


def _likelihood(name, x, target, weight, reduction, ignore_index):
    """The negative log likelihood and the total weight of what counts."""
    if x.rank == 1 and target.shape == (1,):
        target = flat.reshape(target, ())
    targets = _Targets(name, x, target, weight, ignore_index)
    total = flat.sum(targets.weight)
    if not x.numel:
        loss = flat.full(target.shape, 0, x.dtype)
    else:
        # What does not count is chosen away: 0 · inf would be NaN.
        loss = flat.where(targets.counts, -_at_target(x, targets.place) * targets.weight, 0)
    if reduction == NONE:
        return loss, total if x.rank == 1 else flat.full_like(total, 0)
    whole = flat.sum(loss)
    return whole / total if reduction == MEAN else whole, total


def _check_rank(name: str, x: Value, target: Value, ranks: tuple[int, ...]) -> None:
    if x.rank not in ranks:
        raise ShapeError(f"{name} takes {' or '.join(map(str, ranks))} dimensions, not {x.type}")


_CLASSES = lambda *shape: T(*shape, dtype="int64", low=0, high=4)
_W = lambda: T(4, low=0.5, high=2)


def _picks(*more, shapes=(((3, 4), (3,)),)):
    """Samples: each reduction, with and without weights and a class to ignore."""

    def samples():
        found = []
        for shape, places in shapes:
            found += [S(T(*shape, high=0), _CLASSES(*places), None, each, -100, *more) for each in range(3)]
            found += [S(T(*shape, high=0), _CLASSES(*places), _W(), each, 1, *more) for each in range(3)]
        return found

    return samples


_FLAT = ((3, 4), (3,)), ((4,), ()), ((0, 4), (0,))
_SPATIAL = ((2, 4, 3, 2), (2, 3, 2)), ((0, 4, 1, 1), (0, 1, 1))
_SCHEMA = "Tensor self, Tensor target, Tensor? weight=None, int reduction=Mean, SymInt ignore_index=-100"
_FORWARD = "Tensor self, Tensor target, Tensor? weight, int reduction, SymInt ignore_index"


@op(
    f"nll_loss({_SCHEMA}) -> Tensor", module="nn", method=False,
    samples=lambda: [
        *_picks(shapes=_FLAT)(), S(T(3, 4), T(3, dtype="uint8", high=3)), S(T(3, 4), T(3, dtype="int32")),
        S(T(3, 4), _CLASSES(2)), S(T(3, 4), _CLASSES(3), T(3)), S(T(2, 3, 4), _CLASSES(2, 4)),
    ],
)  # fmt: skip
def nll_loss(x, target, weight, reduction, ignore_index):
    """-self at each target's class, weighed by class; the mean is over weights."""
    return nll_loss_forward(x, target, weight, reduction, ignore_index)[0]


@op(
    f"nll_loss_forward({_FORWARD}) -> (Tensor output, Tensor total_weight)",
    function=False, method=False, samples=_picks(shapes=_FLAT),
)  # fmt: skip
@widened
def nll_loss_forward(x, target, weight, reduction, ignore_index):
    """The loss, and the weight it is divided by."""
    _check_rank("nll_loss", x, target, (1, 2))
    return _likelihood("nll_loss", x, target, weight, reduction, ignore_index)


@op(f"nll_loss2d({_SCHEMA}) -> Tensor", function=False, method=False, samples=_picks(shapes=_SPATIAL))
def nll_loss2d(x, target, weight, reduction, ignore_index):
    """`nll_loss` at each place of an image."""
    return nll_loss2d_forward(x, target, weight, reduction, ignore_index)[0]


@op(
    f"nll_loss2d_forward({_FORWARD}) -> (Tensor output, Tensor total_weight)",
    function=False, method=False, samples=_picks(shapes=_SPATIAL),
)  # fmt: skip
@widened
def nll_loss2d_forward(x, target, weight, reduction, ignore_index):
    """The loss, and the weight it is divided by."""
    _check_rank("nll_loss2d", x, target, (4,))
    return _likelihood("nll_loss2d", x, target, weight, reduction, ignore_index)


@op(
    f"nll_loss_nd({_SCHEMA}) -> Tensor", function=False, method=False,
    samples=_picks(shapes=(*_FLAT, ((2, 4, 3), (2, 3)), ((2, 4, 3, 2), (2, 3, 2)), ((2, 4, 1, 3, 2), (2, 1, 3, 2)))),
)  # fmt: skip
@widened
def nll_loss_nd(x, target, weight, reduction, ignore_index):
    """`nll_loss` at each place of however many dimensions."""
    if not x.rank:
        raise ShapeError("nll_loss takes at least one dimension, that of the classes")
    return _likelihood("nll_loss", x, target, weight, reduction, ignore_index)[0]


def _unpicked(gradient, x, target, weight, reduction, ignore_index, total_weight):
    if x.rank == 1 and target.shape == (1,):
        target = flat.reshape(target, ())
    targets = _Targets("nll_loss", x, target, weight, ignore_index)
    each = -gradient * targets.weight
    if reduction == MEAN:
        each = each / total_weight
    each = flat.broadcast_to(flat.where(targets.counts, each, 0), target.shape)
    return flat.where(_hot(x, targets.place), flat.unsqueeze(each, _class_dim(x)), 0)


def _unpicks(*shapes):
    # Both dtypes by name: PyTorch rounds half types inside.
    return lambda: [
        S(T(*(places if each == NONE else ()), dtype=d), T(*shape, dtype=d), _CLASSES(*places), w, each, 1,
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
)  # fmt: skip
@widened
def nll_loss_backward(gradient, x, target, weight, reduction, ignore_index, total_weight):
    _check_rank("nll_loss", x, target, (1, 2))
    return _unpicked(gradient, x, target, weight, reduction, ignore_index, total_weight)


@op(
    f"nll_loss2d_backward({_BACKWARD}) -> Tensor",
    function=False, method=False, samples=_unpicks(((2, 4, 3, 2), (2, 3, 2))),
)  # fmt: skip
@widened
def nll_loss2d_backward(gradient, x, target, weight, reduction, ignore_index, total_weight):
    _check_rank("nll_loss2d", x, target, (4,))
    return _unpicked(gradient, x, target, weight, reduction, ignore_index, total_weight)


# Cross entropy


def _entropies():
    shapes = ((3, 4), (3,)), ((2, 4, 3), (2, 3)), ((4,), ())
    found = [
        *_picks(shapes=shapes)(), *_picks(0.25, shapes=shapes)(),
        S(T(0, 4), _CLASSES(0)), S(T(3, 4), _CLASSES(3), None, 1, -100, 2.0), S(T(3, 4), T(3, 4, dtype="int64")),
        S(T(3, 4), T(3, 4, low=0), None, 1, 1), S(T(3, 4), T(3, 4), T(3)), S(T(3, 4), _CLASSES(2)),
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
    samples=_entropies,
)
@widened
def cross_entropy_loss(x, target, weight, reduction, ignore_index, label_smoothing):
    """-Σ target · log_softmax(self) over classes; targets are classes, or a probability for each class."""
    if not label_smoothing <= 1:
        raise ArgumentError(f"cross_entropy: label_smoothing is between 0 and 1, but {label_smoothing} is not")
    floats("cross_entropy", x)
    if not x.rank:
        raise ShapeError("cross_entropy takes at least one dimension, that of the classes")
    dim = _class_dim(x)
    classes = x.shape[dim]
    if weight is not None and weight.shape != (classes,):
        raise ShapeError(f"cross_entropy: the weight {weight.type} is not one for each of {classes} classes")
    logs = _log_softmax(x, dim, False)
    by_class = None if weight is None else flat.reshape(weight, (classes, *[1] * (x.rank - dim - 1)))
    if target.shape == x.shape:
        return _from_probabilities(logs, target, by_class, dim, reduction, ignore_index, label_smoothing)
    exact = nll_loss_nd(logs, target, weight, reduction, ignore_index)
    if label_smoothing <= 0:
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
    if label_smoothing > 0:
        target = target * (1 - label_smoothing) + label_smoothing / logs.shape[dim]
    products = logs * target if by_class is None else logs * target * by_class
    loss = -flat.sum(products, (dim,))
    return reduced(loss, reduction)


# Margins between classes


def _rows(name: str, x: Value) -> Value:
    """x as a matrix: a row for each sample."""
    if x.rank > 2 or (x.rank and not x.shape[-1]):
        raise ShapeError(f"{name} takes a vector or a matrix of classes, not {x.type}")
    floats(name, x)
    return flat.reshape(x, (x.shape[0] if x.rank == 2 else 1, x.shape[-1] if x.rank else 1))


def _reduced_rows(losses: Value, reduction: int, shape: tuple[int, ...]) -> Value:
    if reduction == NONE:
        return flat.reshape(losses, shape)
    whole = flat.sum(losses)
    return whole / float(max(losses.numel, 1)) if reduction == MEAN else whole


def _long(name: str, target: Value) -> None:
    if target.dtype is not dtypes.int64:
        raise DTypeError(f"{name}: classes are int64, not {target.dtype.name}", help="convert with .long()")


def _margins(*more, dtypes=(None,)):
    """Samples; more come first. PyTorch has no half types here."""
    return [
        S(*[m(each, places, d) for m in more], T(*shape, dtype=d), _CLASSES(*places), p, margin, w, each)
        for d in dtypes for shape, places in (((3, 4), (3,)), ((4,), ()))
        for each, p, margin, w in ((0, 1, 1, None), (1, 2, 1.5, T(4, dtype=d, low=0.5)), (2, 1, 2.0, T(4, dtype=d)))
    ]  # fmt: skip


@op(
    "multi_margin_loss(Tensor self, Tensor target, Scalar p=1, Scalar margin=1, Tensor? weight=None, "
    "int reduction=Mean) -> Tensor",
    module="nn",
    method=False,
    samples=lambda: [*_margins(), S(T(3, 4), _CLASSES(3), 3), S(T(0, 4), _CLASSES(0)), S(T(4), _CLASSES(1))],
)
@widened
def multi_margin_loss(x, target, p, margin, weight, reduction):
    """Σ max(0, margin - self[target] + self[i])^p / classes, over all other classes i."""
    losses = flat.sum(_gaps(x, target, p, margin, weight)[0], (1,))
    return _reduced_rows(losses, reduction, target.shape)


def _gaps(x, target, p, margin, weight):
    """For each class what it adds to the loss, and the slope of that."""
    _long("multi_margin_loss", target)
    if p not in (1, 2):
        raise ArgumentError(f"multi_margin_loss: p is 1 or 2, not {p}")
    rows = _rows("multi_margin_loss", x)
    classes = rows.shape[1]
    if target.numel != rows.shape[0] or target.rank > 1:
        raise ShapeError(f"multi_margin_loss: the target {target.type} does not fit the input {x.type}")
    target = flat.reshape(target, (rows.shape[0],))
    inside = (target >= 0) & (target < classes)
    message = f"multi_margin_loss: a target is not one of the {classes} classes"
    target = flat.check(target, inside, IndexOutOfRange, message)
    at_target = flat.unsqueeze(_at_target(rows, target), 1) if rows.numel else flat.full((0, 1), 0, x.dtype)
    gap = margin - at_target + rows
    open_ = (gap > 0) & ~_hot(rows, target)
    scale = flat.full((rows.shape[0], 1), 1 / classes, x.dtype)
    if weight is not None:
        if weight.numel != classes:
            raise ShapeError(f"multi_margin_loss: the weight {weight.type} is not one for each class")
        scale = scale * flat.unsqueeze(flat.take(flat.reshape(weight, (classes,)), target, 0), 1)
    each = flat.where(open_, gap if p == 1 else gap * gap, 0) * scale
    slope = flat.where(open_, scale if p == 1 else gap * 2 * scale, 0)
    return each, slope, target


@op(
    "multi_margin_loss_backward(Tensor grad_output, Tensor self, Tensor target, Scalar p, Scalar margin, "
    "Tensor? weight=None, int reduction=Mean) -> Tensor",
    function=False,
    method=False,
    samples=lambda: _margins(
        lambda each, places, d: T(*(places if each == NONE else ()), dtype=d), dtypes=("float32", "float64")
    ),
)
@widened
def multi_margin_loss_backward(gradient, x, target, p, margin, weight, reduction):
    _, slope, target = _gaps(x, target, p, margin, weight)
    slope = flat.where(_hot(slope, target), -flat.sum(slope, (1,), keepdim=True), slope)
    gradient = flat.reshape(gradient, (-1, 1))
    gradient = gradient / float(max(slope.shape[0], 1)) if reduction == MEAN else gradient
    return flat.reshape(slope * gradient, x.shape)


# Several classes a sample: those named before the first -1

_LABELS = lambda *shape, low=-1: T(*shape, dtype="int64", low=low, high=4)


@op(
    "multilabel_margin_loss(Tensor self, Tensor target, int reduction=Mean) -> Tensor",
    module="nn", method=False,
    samples=lambda: [
        *[S(T(3, 4), _LABELS(3, 4), each) for each in range(3)], S(T(3, 4), _LABELS(3, 4, low=0)),
        S(T(4), _LABELS(4)), S(T(0, 4), _LABELS(0, 4)), S(T(3, 4), _LABELS(3)),
    ],
)  # fmt: skip
def multilabel_margin_loss(x, target, reduction):
    """Σ max(0, 1 - self[j] + self[i]) / classes, over target classes j and other classes i."""
    return multilabel_margin_loss_forward(x, target, reduction)[0]


@op(
    "multilabel_margin_loss_forward(Tensor self, Tensor target, int reduction) -> "
    "(Tensor output, Tensor is_target)",
    function=False, method=False,
    samples=lambda: [S(T(3, 4), _LABELS(3, 4), each) for each in range(3)] + [S(T(4), _LABELS(4), 1)],
)  # fmt: skip
@widened
def multilabel_margin_loss_forward(x, target, reduction):
    """The loss, and 1 for each class that is a target."""
    gap, _, is_target = _label_gaps(x, target)
    losses = flat.sum(gap, (1, 2))
    return _reduced_rows(losses, reduction, x.shape[:-1]), flat.reshape(is_target, target.shape)


def _label_gaps(x, target):
    """For each sample, label place and class the gap that counts, whether it is open, and what is a target."""
    _long("multilabel_margin_loss", target)
    if target.shape != x.shape:
        raise ShapeError(f"multilabel_margin_loss: the target {target.type} does not fit the input {x.type}")
    rows = _rows("multilabel_margin_loss", x)
    target = flat.reshape(target, rows.shape)
    classes = rows.shape[1]
    inside = (target >= -1) & (target < classes)
    message = f"multilabel_margin_loss: a target is neither -1 nor one of the {classes} classes"
    target = flat.check(target, inside, IndexOutOfRange, message)
    # A label counts while no -1 stands at or before it.
    ended = flat.convert(target < 0, dtypes.int32)
    ended = flat.reduce_window(ended, "max", (1, classes), padding=((0, 0), (classes - 1, 0)))
    counts = flat.eq(ended, 0)
    places = flat.where(counts, target, 0)
    at = flat.unsqueeze(places, 2)
    labels = flat.eq(at, flat.iota((*rows.shape, classes), 2)) & flat.unsqueeze(counts, 2)
    is_target = flat.reduce(labels, "or", (1,))
    values = flat.take_along(rows, places, 1) if rows.numel else rows
    gap = 1 - flat.unsqueeze(values, 2) + flat.unsqueeze(rows, 1)
    open_ = (gap > 0) & flat.unsqueeze(counts, 2) & ~flat.unsqueeze(is_target, 1)
    gap = flat.where(open_, gap, 0) / float(classes)
    return gap, (open_, labels), flat.convert(is_target, x.dtype)


@op(
    "multilabel_margin_loss_backward(Tensor grad_output, Tensor self, Tensor target, int reduction, "
    "Tensor is_target) -> Tensor",
    function=False,
    method=False,
    differs="PyTorch trusts is_target, whatever it holds; here it follows from target, as in the forward row",
    samples=lambda: [S(T(), T(3, 4), _LABELS(3, 4), 1, T(3, 4)), S(T(3), T(3, 4), _LABELS(3, 4), 0, T(3, 4))],
)
@widened
def multilabel_margin_loss_backward(gradient, x, target, reduction, is_target):
    _, (open_, labels), _ = _label_gaps(x, target)
    opened = flat.convert(open_, x.dtype)
    # An open gap pulls its label up and pushes its class down.
    pulled = flat.where(labels, flat.sum(opened, (2,), keepdim=True), 0)
    slope = flat.sum(opened - pulled, (1,)) / float(opened.shape[2])
    gradient = flat.reshape(gradient, (-1, 1))
    gradient = gradient / float(max(slope.shape[0], 1)) if reduction == MEAN else gradient
    return flat.reshape(slope * gradient, x.shape)
