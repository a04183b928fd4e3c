"""Losses that ask for a margin: between pairs and triplets, and between the classes of a sample."""

from __future__ import annotations

from tenfold import flat
from tenfold.base import dtypes
from tenfold.base.errors import ArgumentError, DTypeError, IndexOutOfRange, ShapeError
from tenfold.flat import Value
from tenfold.ops.classification_losses import CLASSES, at_target, hot
from tenfold.ops.distance import pairwise_distance
from tenfold.ops.extremes import clamp
from tenfold.ops.losses import MEAN, NONE, SUM, fitting, floats, gradients_of, reduced, share
from tenfold.ops.pointwise import subtraction
from tenfold.ops.precision import widened
from tenfold.ops.promote import common, floating
from tenfold.ops.samples import S, T
from tenfold.ops.table import op, written

# Margins: targets are 1 or -1

_SIGNS = lambda *shape: T(*shape, dtype="int64", low=-1, high=2)


@op(
    "hinge_embedding_loss(Tensor self, Tensor target, float margin=1.0, int reduction=Mean) -> Tensor",
    method=False,
    samples=lambda: [
        *[S(T(3, 4), _SIGNS(3, 4), 2.0, each) for each in (NONE, MEAN, SUM)],
        S(T(3, 4), _SIGNS(4)), S(T(0, 3), _SIGNS(0, 3)),
    ], autocast="float32",)  # fmt: skip
def hinge_embedding_loss(x, target, margin, reduction):
    """self where target is 1, max(0, margin - self) where it is -1."""
    if x.dtype.kind in ("bool", "complex"):
        raise DTypeError(f"hinge_embedding_loss is not defined for {x.dtype.name}")
    margin = int(margin) if x.dtype.kind == "int" else margin
    apart = flat.where(flat.ne(target, 1), clamp(margin - x, 0, None), 0)
    return _reduced_wide(apart + flat.where(flat.ne(target, -1), x, 0), reduction)


@widened
def _reduced_wide(loss, reduction):
    return reduced(loss, reduction)


@op(
    "margin_ranking_loss(Tensor input1, Tensor input2, Tensor target, float margin=0.0, "
    "int reduction=Mean) -> Tensor",
    samples=lambda: [
        *[S(T(3, 4), T(3, 4), _SIGNS(3, 4), 0.5, each) for each in (NONE, MEAN, SUM)],
        S(T(3, 4), T(4), _SIGNS(3, 4)), S(T(0, 3), T(0, 3), _SIGNS(0, 3)),
    ], autocast="float32",)  # fmt: skip
@widened
def margin_ranking_loss(x, y, target, margin, reduction):
    """max(0, -target · (input1 - input2) + margin)"""
    # Integers are subtracted as such, and wrap as such, before they meet the target.
    x, y = subtraction(("self", "other"), [x, y])
    difference, target = common(("self", "target"), [x - y, target])
    x = flat.mul(-target, difference)
    if x.dtype.is_complex:
        raise DTypeError(f"margin_ranking_loss is not defined for {x.dtype.name}")
    return reduced(clamp(flat.convert(x, floating(x.dtype)) + margin, 0, None), reduction)


@op(
    "cosine_embedding_loss(Tensor input1, Tensor input2, Tensor target, float margin=0.0, "
    "int reduction=Mean) -> Tensor",
    samples=lambda: [
        *[S(T(3, 4), T(3, 4), _SIGNS(3), 0.25, each) for each in (NONE, MEAN, SUM)],
        S(T(4), T(4), _SIGNS(), 0.0, NONE), S(T(3, 4), T(3, 4), _SIGNS()), S(T(4), T(4), _SIGNS(4)),
    ], autocast="float32",)  # fmt: skip
@widened
def cosine_embedding_loss(x, y, target, margin, reduction):
    """1 - cos(input1, input2) where target is 1, max(0, cos - margin) where it is -1."""
    if target.rank > 1 or x.rank != target.rank + 1 or y.rank != target.rank + 1:
        raise ShapeError(
            f"cosine_embedding_loss takes two matrices and a target for each row, or two vectors and one "
            f"target, not {x.type}, {y.type} and {target.type}"
        )
    x, y = common(("self", "other"), [x, y])
    if x.dtype.is_complex:
        raise DTypeError(f"cosine_embedding_loss is not defined for {x.dtype.name}")

    def along(a, b):
        # Integers are multiplied as such, and wrap as such, before they are summed.
        product = a * b if a.dtype is not dtypes.bool_ else a & b
        exact = flat.convert(product, dtypes.int64) if a.dtype.kind in ("bool", "int") else product
        return flat.convert(flat.sum(exact, (-1,)), floating(a.dtype))

    cosine = along(x, y) / flat.sqrt((along(x, x) + 1e-12) * (along(y, y) + 1e-12))
    near = flat.where(flat.eq(target, 1), 1 - cosine, 0)
    return reduced(near + flat.where(flat.eq(target, -1), clamp(cosine - margin, 0, None), 0), reduction)


@op(
    "soft_margin_loss(Tensor self, Tensor target, int reduction=Mean) -> Tensor",
    module="nn", method=False,
    samples=lambda: [
        *[S(T(3, 4), _SIGNS(3, 4), each) for each in (NONE, MEAN, SUM)], S(T(3, 4), T(4)),
        S(T(0, 3, dtype="float32"), T(0, 3, dtype="float32")),
    ], autocast="float32",)  # fmt: skip
def soft_margin_loss(x, target, reduction):
    """log(1 + exp(-target · self))"""
    if x.dtype.kind not in ("float", "complex"):
        raise DTypeError(f"soft_margin_loss is not defined for {x.dtype.name}")
    if target.dtype.is_complex and not x.dtype.is_complex:
        raise DTypeError(f"soft_margin_loss: a target of {target.dtype.name} for an input of {x.dtype.name}")
    fitting("soft_margin_loss", x, target)
    wide = dtypes.float32 if x.dtype in (dtypes.float16, dtypes.bfloat16) else x.dtype
    exponent = -flat.convert(target, wide) * flat.convert(x, wide)
    loss = reduced(flat.log1p(flat.exp(exponent)), NONE if reduction == NONE else MEAN + (reduction == SUM))
    return flat.convert(loss, x.dtype)


@op(
    "soft_margin_loss_backward(Tensor grad_output, Tensor self, Tensor target, int reduction) -> Tensor",
    function=False, method=False, samples=gradients_of(),
)  # fmt: skip
@widened
def soft_margin_loss_backward(gradient, x, target, reduction):
    """-grad_output · target · e / (1 + e), e being exp(-target · self); for a mean, divided by the number of
    elements."""
    power = flat.exp(-target * x)
    return -target * power / (power + 1) * share(gradient, power, reduction)


def _distances(names, arguments):
    """The promotion of three tensors that are subtracted from each other."""
    subtraction(names[1:3], list(arguments[1:3]))
    return subtraction(names, arguments)


@op(
    "triplet_margin_loss(Tensor anchor, Tensor positive, Tensor negative, float margin=1.0, float p=2, "
    "float eps=1e-06, bool swap=False, int reduction=Mean) -> Tensor",
    promote=_distances,
    samples=lambda: [
        *[S(T(3, 4), T(3, 4), T(3, 4), 20.0, reduction=each) for each in (NONE, MEAN, SUM)],
        S(T(3, 4), T(3, 4), T(3, 4), 1.0, 1.0, 1e-6, True), S(T(4), T(4), T(4)), S(T(3, 4), T(4), T(4)),
    ], autocast="float32",)  # fmt: skip
@widened
def triplet_margin_loss(anchor, positive, negative, margin, p, eps, swap, reduction):
    """max(0, margin + ‖anchor - positive‖ - ‖anchor - negative‖)"""
    if not anchor.rank == positive.rank == negative.rank:
        raise ShapeError(
            f"triplet_margin_loss: anchor, positive and negative have {anchor.rank}, {positive.rank} and "
            f"{negative.rank} dimensions: they must be as many"
        )
    apart = lambda a, b: pairwise_distance(a, b, p, eps, False)
    near, far = apart(anchor, positive), apart(anchor, negative)
    if swap:
        far = flat.minimum(far, apart(positive, negative))
    return reduced(clamp(margin + near - far, 0, None), reduction)


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
        S(*[m(each, places, d) for m in more], T(*shape, dtype=d), CLASSES(*places), p, margin, w, each)
        for d in dtypes for shape, places in (((3, 4), (3,)), ((4,), ()))
        for each, p, margin, w in (
            (0, 1, 1, None), (1, 2, 1.5, T(4, dtype=d, low=0.5)), (2, 1, 2.0, T(4, dtype=d)),
        )
    ]  # fmt: skip


@op(
    "multi_margin_loss(Tensor self, Tensor target, Scalar p=1, Scalar margin=1, Tensor? weight=None, "
    "int reduction=Mean) -> Tensor",
    module="nn",
    method=False,
    samples=lambda: [*_margins(), S(T(3, 4), CLASSES(3), 3), S(T(4), CLASSES(1))],
    autocast="float32",
    positions="target",
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
    chosen = flat.unsqueeze(at_target(rows, target), 1) if rows.numel else flat.full((0, 1), 0, x.dtype)
    gap = margin - chosen + rows
    open_ = (gap > 0) & ~hot(rows, target)
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
    positions="target",
    late=written,
)
@widened
def multi_margin_loss_backward(gradient, x, target, p, margin, weight, reduction):
    """grad_output · p · gap^(p - 1) · weight[target] / classes at each other class whose gap, margin -
    self[target] + self[i], is positive, and minus their sum at the target; for a mean, over the batch."""
    _, slope, target = _gaps(x, target, p, margin, weight)
    slope = flat.where(hot(slope, target), -flat.sum(slope, (1,), keepdim=True), slope)
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
        S(T(4), _LABELS(4)), S(T(3, 4), _LABELS(3)),
    ], autocast="float32", positions="target")  # fmt: skip
def multilabel_margin_loss(x, target, reduction):
    """Σ max(0, 1 - self[j] + self[i]) / classes, over target classes j and other classes i."""
    return multilabel_margin_loss_forward(x, target, reduction)[0]


@op(
    "multilabel_margin_loss_forward(Tensor self, Tensor target, int reduction) -> "
    "(Tensor output, Tensor is_target)",
    function=False, method=False, differentiable=(True, False),
    samples=lambda: [S(T(3, 4), _LABELS(3, 4), each) for each in range(3)] + [S(T(4), _LABELS(4), 1)],
    positions="target",
)  # fmt: skip
@widened
def multilabel_margin_loss_forward(x, target, reduction):
    """The loss, and 1 for each class that is a target."""
    gap, _, is_target = _label_gaps(x, target, None)
    losses = flat.sum(gap, (1, 2))
    return _reduced_rows(losses, reduction, x.shape[:-1]), flat.reshape(is_target, target.shape)


def _label_gaps(x, target, is_target):
    """For each sample, place of a label and class: the gap if it counts, if it is open, what is a target."""
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
    if is_target is None:
        is_target = flat.reduce(labels, "or", (1,))
    else:
        is_target = flat.ne(flat.reshape(is_target, rows.shape), 0)
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
    samples=lambda: [
        S(T(), T(3, 4), _LABELS(3, 4), 1, T(3, 4, low=0, high=1)),
        S(T(3), T(3, 4), _LABELS(3, 4), 0, T(3, 4, low=0, high=0)),
        S(T(), T(4), _LABELS(4), 2, T(4, low=0, high=0)),
    ],
)
@widened
def multilabel_margin_loss_backward(gradient, x, target, reduction, is_target):
    """For each target class j and other class i with 1 - self[j] + self[i] > 0, grad_output / classes at i
    and minus as much at j; for a mean, over the batch."""
    if is_target.dtype is not x.dtype:
        raise DTypeError(
            f"multilabel_margin_loss_backward: is_target is {x.dtype.name}, not {is_target.dtype.name}"
        )
    _, (open_, labels), _ = _label_gaps(x, target, is_target)
    opened = flat.convert(open_, x.dtype)
    # An open gap pulls its label up and pushes its class down.
    pulled = flat.where(labels, flat.sum(opened, (2,), keepdim=True), 0)
    slope = flat.sum(opened - pulled, (1,)) / float(opened.shape[2])
    gradient = flat.reshape(gradient, (-1, 1))
    gradient = gradient / float(max(slope.shape[0], 1)) if reduction == MEAN else gradient
    return flat.reshape(slope * gradient, x.shape)
