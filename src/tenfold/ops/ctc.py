"""Connectionist temporal classification: how likely a sequence is under all its alignments in time.

A target of S labels is stretched to 2 S + 1 states, a blank around each label. `alpha` holds for each time
and state the log likelihood of all ways to have come there, `beta` of all ways to go on. Both are one scan.
"""

from __future__ import annotations

from collections.abc import Sequence

from tenfold import flat
from tenfold.base import dtypes
from tenfold.base.errors import ArgumentError, DTypeError, IndexOutOfRange, ShapeError
from tenfold.flat import Value
from tenfold.ops.losses import MEAN, NONE, SUM, floats
from tenfold.ops.samples import S, T
from tenfold.ops.table import op

Lengths = Value | Sequence[int]


class _Problem:
    """The arguments as values of one layout: log probabilities (T, N, C), targets (N, S), lengths (N,)."""

    def __init__(self, logs: Value, targets: Value, inputs: Lengths, lengths: Lengths, blank: int):
        floats("ctc_loss", logs)
        if logs.rank not in (2, 3) or targets.dtype.kind != "int":
            raise ShapeError(
                "ctc_loss takes log probabilities (time, batch, classes) and integer targets, not "
                f"{logs.type} and {targets.type}"
            )
        if logs.rank == 2:
            logs = flat.unsqueeze(logs, 1)
        self.logs = logs
        self.times, self.batch, classes = logs.shape
        if not 0 <= blank < classes:
            raise ArgumentError(f"ctc_loss: the blank {blank} is not one of the {classes} classes")
        self.blank = blank
        self.inputs = self._lengths("input_lengths", inputs, self.times)
        longest = targets.shape[-1] if targets.rank else 0
        if not isinstance(lengths, Value) and lengths:
            if max(lengths) > longest or (targets.rank == 1 and self.batch > 1 and sum(lengths) > longest):
                raise ArgumentError(f"ctc_loss: targets {targets.type} do not hold {list(lengths)} labels")
            longest = max(lengths)
        self.lengths = self._lengths("target_lengths", lengths, longest)
        labels = self._padded(targets, longest)
        counts = flat.iota(labels.shape, 1) < flat.unsqueeze(self.lengths, 1)
        inside = (labels >= 0) & (labels < classes) | ~counts
        message = f"ctc_loss: a target is not one of the {classes} classes"
        self.labels = flat.check(labels, inside, IndexOutOfRange, message)
        self.states = 2 * longest + 1

    def _lengths(self, name: str, given: Lengths, most: int) -> Value:
        message = f"ctc_loss: one of the {name} is not between 0 and {most}"
        if isinstance(given, Value):
            if given.dtype.kind != "int":
                raise DTypeError(f"ctc_loss: {name} are integers, not {given.dtype.name}")
            given = flat.reshape(flat.convert(given, dtypes.int64), (-1,))
            found = flat.check(given, (given >= 0) & (given <= most), ArgumentError, message)
        elif any(not 0 <= each <= most for each in given):
            raise ArgumentError(message)
        else:
            found = flat.constant(list(given), dtypes.int64)
        if found.shape != (self.batch,):
            raise ShapeError(f"ctc_loss: {found.numel} {name} for a batch of {self.batch}")
        return found

    def _padded(self, targets: Value, longest: int) -> Value:
        """The targets as (N, S), from rows or from one after another."""
        targets = flat.convert(targets, dtypes.int64)
        if targets.rank == 2:
            if targets.shape[0] != self.batch:
                raise ShapeError(f"ctc_loss: targets {targets.type} for a batch of {self.batch}")
            return flat.slice_dim(targets, 1, 0, longest)
        # Where each begins: how long those before it are together.
        before = flat.iota((self.batch, self.batch), 1) < flat.iota((self.batch, self.batch), 0)
        starts = flat.sum(flat.where(before, flat.unsqueeze(self.lengths, 0), 0), (1,))
        places = flat.unsqueeze(starts, 1) + flat.iota((self.batch, longest), 1)
        if not longest:
            return flat.full((self.batch, 0), 0, dtypes.int64)
        return flat.take(targets, flat.minimum(places, targets.shape[0] - 1), 0)

    @property
    def state_labels(self) -> Value:
        """The class of each state, (N, 2 S + 1): blank, label, blank, …"""
        labels = flat.unsqueeze(self.labels, 2)
        pairs = flat.concatenate([flat.full_like(labels, self.blank), labels], 2)
        row = flat.reshape(pairs, (self.batch, self.states - 1))
        return flat.concatenate([row, flat.full((self.batch, 1), self.blank, dtypes.int64)], 1)


def _shifted(x: Value, by: int) -> Value:
    """Each state's value `by` states before it; before the first is what cannot be."""
    low, high = [0, by], [0, -by]
    return flat.pad(x, low, high, flat.lowest(x.dtype))


def _log_sum(*values: Value) -> Value:
    """log Σ exp, also where all are -inf."""
    largest = values[0]
    for value in values[1:]:
        largest = flat.maximum(largest, value)
    safe = flat.where(flat.eq(largest, float("-inf")), 0, largest)
    total = flat.exp(values[0] - safe)
    for value in values[1:]:
        total = total + flat.exp(value - safe)
    return flat.log(total) + safe


def _scan(emitted: Value, labels: Value, lengths: Value) -> Value:
    """The recursion over emitted (T, N, L): from the states before, one time earlier; all times are kept."""
    times, batch, states = emitted.shape
    state = flat.iota(labels.shape, 1)
    # A blank may be passed over, but not between two equal labels.
    skips = state > 1
    if states > 1:
        skips = skips & flat.ne(labels, flat.pad(labels, (0, 2), (0, -2)))
    possible = flat.lt(state, 2) & flat.le(state, flat.unsqueeze(lengths * 2, 1))
    first = flat.reshape(flat.slice_dim(emitted, 0, 0, 1), labels.shape)
    first = flat.where(possible, first, float("-inf"))
    kept = flat.pad(flat.unsqueeze(first, 0), (0, 0, 0), (times - 1, 0, 0), flat.lowest(first.dtype))

    def step(time: Value, last: Value, kept: Value, emitted: Value, skips: Value) -> tuple[Value, ...]:
        here = flat.reshape(flat.dynamic_slice(emitted, (time, 0, 0), (1, batch, states)), (batch, states))
        over = _shifted(last, 2) if states > 1 else flat.full_like(last, float("-inf"))
        over = flat.where(skips, over, float("-inf"))
        now = here + _log_sum(last, _shifted(last, 1), over)
        kept = flat.dynamic_update_slice(kept, flat.unsqueeze(now, 0), (time, 0, 0))
        return time + 1, now, kept, emitted, skips

    start = flat.constant(1, dtypes.int64)
    return flat.while_loop(
        lambda time, *_: time < times, step, (start, first, kept, emitted, skips)
    )[2]  # fmt: skip


def _alpha(problem: _Problem) -> tuple[Value, Value]:
    """log likelihoods of having come to each state, (T, N, L), and what each state emits at each time."""
    labels = problem.state_labels
    shape = (problem.times, *labels.shape)
    emitted = flat.take_along(problem.logs, flat.broadcast_to(flat.unsqueeze(labels, 0), shape), 2)
    return _scan(emitted, labels, problem.lengths), emitted


def _likelihood(problem: _Problem, alpha: Value) -> Value:
    """-log likelihood of each target: by the last label or the blank after it, at the last time."""
    time, state = flat.iota(alpha.shape, 0), flat.iota(alpha.shape, 2)
    spread = lambda x: flat.reshape(x, (1, problem.batch, 1))
    last = flat.eq(time, spread(flat.maximum(problem.inputs - 1, 0)))
    at = lambda which: flat.reduce(
        flat.where(last & flat.eq(state, spread(which)), alpha, float("-inf")), "max", (0, 2)
    )
    ended = problem.lengths * 2
    found = -_log_sum(at(ended), at(ended - 1))
    # Of no time at all there is one alignment, with no label.
    empty = flat.where(flat.eq(problem.lengths, 0), flat.full_like(found, 0), float("inf"))
    return flat.where(flat.eq(problem.inputs, 0), empty, found)


def _gradient(problem: _Problem, gradient: Value, loss: Value, alpha: Value, emitted: Value, zero: bool):
    """The cotangent of the log probabilities, as PyTorch has it: it takes them for those of a softmax."""
    _, batch, states = emitted.shape
    # The way on from a state is the way to it in reversed time and states, both from the target's own end.
    spread = lambda x, shape: flat.broadcast_to(flat.reshape(x, (1, batch, 1)), shape)
    time, state = flat.iota(emitted.shape, 0), flat.iota(emitted.shape, 2)
    back_time = spread(problem.inputs, emitted.shape) - 1 - time
    back_state = spread(problem.lengths * 2, emitted.shape) - state
    labels = flat.broadcast_to(flat.unsqueeze(problem.state_labels, 0), emitted.shape)
    reversed_labels = _at(labels, flat.full_like(back_time, 0), back_state, 0)
    reversed_labels = flat.reshape(flat.slice_dim(reversed_labels, 0, 0, 1), (batch, states))
    reverse = lambda x: _at(x, back_time, back_state)
    beta = reverse(_scan(reverse(emitted), reversed_labels, problem.lengths))
    # Σ over a class's states of the likelihood of all alignments through each.
    through = alpha + beta - emitted + flat.reshape(loss, (1, batch, 1))
    weight = flat.exp(flat.where(flat.eq(emitted, float("-inf")), float("-inf"), through))
    classes = problem.logs.shape[2]
    hot = flat.eq(
        flat.unsqueeze(problem.state_labels, 2), flat.iota((batch, states, classes), 2)
    )  # fmt: skip
    occupied = flat.dot_general(weight, flat.convert(hot, weight.dtype), ((2,), (1,)), ((1,), (0,)))
    occupied = flat.transpose(occupied, (1, 0, 2))
    each = (flat.exp(problem.logs) - occupied) * flat.reshape(gradient, (1, batch, 1))
    counts = flat.lt(flat.iota(each.shape, 0), spread(problem.inputs, each.shape))
    if zero:
        counts = counts & ~spread(flat.eq(loss, float("inf")), each.shape)
    return flat.where(counts, each, 0)


def _at(x: Value, time: Value, state: Value, otherwise: float = float("-inf")) -> Value:
    """x (T, N, L) read at other times and states; `otherwise` outside."""
    times, batch, states = x.shape
    inside = (time >= 0) & (state >= 0) & (time < times) & (state < states)
    flat_place = flat.clamp(time, 0, times - 1) * states + flat.clamp(state, 0, states - 1)
    by_batch = lambda v: flat.reshape(flat.transpose(v, (1, 0, 2)), (batch, times * states))
    found = flat.take_along(by_batch(x), by_batch(flat_place), 1)
    found = flat.transpose(flat.reshape(found, (batch, times, states)), (1, 0, 2))
    return flat.where(inside, found, otherwise)


def _rule(cotangents, results, logs, targets, inputs, lengths, blank, zero_infinity):
    given = [each for each in (targets, inputs, lengths) if isinstance(each, Value)]
    if cotangents[0] is None:
        return (None, *[None] * len(given))
    problem = _Problem(logs, targets, inputs, lengths, blank)
    emitted = _alpha(problem)[1]
    alpha = flat.transpose(results[1], (1, 0, 2))
    found = _gradient(problem, cotangents[0], results[0], alpha, emitted, zero_infinity)
    return (flat.reshape(found, logs.shape), *[None] * len(given))


@flat.differentiated(_rule)
def _losses(logs, targets, inputs, lengths, blank, zero_infinity):
    """For each of the batch its loss, and alpha as (N, T, L)."""
    problem = _Problem(logs, targets, inputs, lengths, blank)
    alpha, _ = _alpha(problem)
    loss = _likelihood(problem, alpha)
    return loss, flat.transpose(alpha, (1, 0, 2))


# As int32: of int64 the tests also try classes that are none, by which PyTorch reads what is not its own.
_LABELS = lambda *shape: T(*shape, dtype="int32", low=1, high=5)
_LOGS = lambda *shape, dtype="float32": T(*shape, dtype=dtype, low=-3, high=-0.5)
_FULL = lambda: [
    S(_LOGS(6, 2, 5), _LABELS(2, 3), (6, 6), (3, 3)),
    S(_LOGS(6, 2, 5, dtype="float64"), _LABELS(2, 3), (6, 6), (3, 3)),
    S(_LOGS(6, 3, 5), _LABELS(6), (6, 6, 6), (2, 2, 2), 0), S(_LOGS(4, 1, 5), _LABELS(1, 2), (4,), (2,), 4),
]  # fmt: skip


def _wholes():
    found = [S(*s.args[:4], 0, each) for s in _FULL() for each in (NONE, MEAN, SUM)]
    uneven = [
        S(_LOGS(6, 2, 5), _LABELS(2, 3), (5, 3), (3, 1), 0, NONE),
        S(_LOGS(6, 5), _LABELS(3), (6,), (3,), 0, NONE),
        S(_LOGS(6, 2, 5), _LABELS(4), (6, 4), (3, 1), 0, MEAN),
        S(_LOGS(6, 2, 5), _LABELS(2, 3), (6, 4), (2, 0)),
        S(_LOGS(3, 2, 5), _LABELS(2, 4), (3, 3), (4, 2), 0, NONE, True),
        S(_LOGS(3, 2, 5), _LABELS(2, 4), (3, 3), (4, 2)),
        S(_LOGS(3, 2, 5), _LABELS(2, 4), (4, 3), (4, 2)), S(_LOGS(3, 2, 5), _LABELS(2, 4), (3, 3), (4, 2), 5),
    ]  # fmt: skip
    return found + uneven


def _as_tensors():
    number = lambda each: T(2, dtype="int64", low=each, high=each + 1)
    return [S(_LOGS(6, 2, 5), _LABELS(2, 3), number(6), number(3), 0, each) for each in (NONE, MEAN, SUM)] + [
        S(_LOGS(6, 2, 5), _LABELS(4), number(5), number(2))
    ]


@op(
    "ctc_loss.IntList(Tensor log_probs, Tensor targets, int[] input_lengths, int[] target_lengths, "
    "int blank=0, int reduction=Mean, bool zero_infinity=False) -> Tensor",
    samples=_wholes,
    autocast="cpu: float32",
    needs="labels_of_targets",
)
@op(
    "ctc_loss.Tensor(Tensor log_probs, Tensor targets, Tensor input_lengths, Tensor target_lengths, "
    "int blank=0, int reduction=Mean, bool zero_infinity=False) -> Tensor",
    samples=_as_tensors,
    autocast="cpu: float32",
    needs="labels_of_targets",
)
def ctc_loss(logs, targets, inputs, lengths, blank, reduction, zero_infinity):
    """-log of the likelihood of each target under all alignments; the mean first divides each loss by the
    length of its target."""
    loss = _losses(logs, targets, inputs, lengths, blank, zero_infinity)[0]
    if zero_infinity:
        loss = flat.where(flat.eq(loss, float("inf")), 0, loss)
    if reduction == MEAN:
        if not isinstance(lengths, Value):
            lengths = flat.constant(list(lengths), dtypes.int64)
        labels = flat.maximum(flat.reshape(lengths, loss.shape), 1)
        return flat.sum(loss / flat.convert(labels, loss.dtype)) / float(max(loss.numel, 1))
    if reduction == SUM:
        return flat.sum(loss)
    return flat.reshape(loss, ()) if logs.rank == 2 else loss


@op(
    "_ctc_loss(Tensor log_probs, Tensor targets, int[] input_lengths, int[] target_lengths, int blank=0, "
    "bool zero_infinity=False) -> (Tensor, Tensor)",
    samples=_FULL,
    needs="labels_of_targets",
)
def _ctc_loss(logs, targets, inputs, lengths, blank, zero_infinity):
    """Each target's -log likelihood; and for each time and state the log likelihood of having come there."""
    return _losses(logs, targets, inputs, lengths, blank, zero_infinity)


@op(
    "_ctc_loss_backward(Tensor grad, Tensor log_probs, Tensor targets, int[] input_lengths, "
    "int[] target_lengths, Tensor neg_log_likelihood, Tensor log_alpha, int blank, "
    "bool zero_infinity=False) -> Tensor",
    function=False,
    samples=lambda: [
        S(T(2, dtype="float32"), _LOGS(4, 2, 5), _LABELS(2, 2), (4, 4), (2, 2),
          T(2, dtype="float32", low=3, high=5), T(2, 4, 5, dtype="float32", low=-9, high=-3), 0),
    ], needs="labels_backward")  # fmt: skip
def _ctc_loss_backward(gradient, logs, targets, inputs, lengths, loss, log_alpha, blank, zero_infinity):
    """The cotangent of log_probs: grad · (exp(log_probs) - p), p being the likelihood, given the target, of
    each class at each time; 0 from input_lengths on, and with zero_infinity where the loss is infinite."""
    problem = _Problem(logs, targets, inputs, lengths, blank)
    emitted = _alpha(problem)[1]
    found = _gradient(
        problem, gradient, loss, flat.transpose(log_alpha, (1, 0, 2)), emitted, zero_infinity
    )  # fmt: skip
    return flat.reshape(found, logs.shape)
