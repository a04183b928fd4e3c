"""A line search: how far to go along a direction, so that the loss falls enough and its slope flattens."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np


class Point(NamedTuple):
    """What is known where the loss was computed."""

    loss: float
    gradient: np.ndarray


class Trial(NamedTuple):
    """A length that was tried: the loss there, its slope along the direction, and the gradient."""

    length: float
    loss: float
    slope: float
    gradient: np.ndarray


SUFFICIENT, CURVATURE = 1e-4, 0.9  # the constants of the two conditions
LEAST_CHANGE = 1e-9


def strong_wolfe(
    evaluate: Callable[[float], Point],
    length: float,
    direction: np.ndarray,
    start: Point,
    slope: float,
    max_trials: int,
) -> tuple[Point, float]:
    """A length that meets the strong Wolfe conditions, or the best that was found in `max_trials`."""

    def tried(at: float) -> Trial:
        point = evaluate(at)
        return Trial(at, point.loss, float(point.gradient.dot(direction)), point.gradient)

    def too_high(trial: Trial) -> bool:
        return trial.loss > start.loss + SUFFICIENT * trial.length * slope

    def flat_enough(trial: Trial) -> bool:
        return abs(trial.slope) <= -CURVATURE * slope

    origin = Trial(0.0, start.loss, slope, start.gradient)
    before, trial = origin, tried(length)
    count = 0
    while count < max_trials:
        if too_high(trial) or (count > 1 and trial.loss >= before.loss):
            bracket = [before, trial]
            break
        if flat_enough(trial):
            return Point(trial.loss, trial.gradient), trial.length
        if trial.slope >= 0:
            bracket = [before, trial]
            break
        least = trial.length + 0.01 * (trial.length - before.length)
        further = _between(before, trial, (least, trial.length * 10))
        before, trial = trial, tried(further)
        count += 1
    else:
        bracket = [origin, trial]
    best = _zoom(bracket, tried, too_high, flat_enough, float(np.abs(direction).max()), max_trials - count)
    return Point(best.loss, best.gradient), best.length


def _zoom(
    bracket: list[Trial],
    tried: Callable[[float], Trial],
    too_high: Callable[[Trial], bool],
    flat_enough: Callable[[Trial], bool],
    size: float,
    max_trials: int,
) -> Trial:
    """Narrow the bracket around a point that meets both conditions; what is lowest when that is found, or
    when no more can be tried."""
    ends = list(bracket)
    low, high = _order(ends)
    stalled = False
    for _ in range(max_trials):
        lengths = [end.length for end in ends]
        width = max(lengths) - min(lengths)
        if width * size < LEAST_CHANGE:
            break
        length = _between(ends[0], ends[1])
        # Close to an end twice, or at an end, there is too little progress: go a tenth inside.
        if min(max(lengths) - length, length - min(lengths)) < 0.1 * width:
            if stalled or length >= max(lengths) or length <= min(lengths):
                near_end = abs(length - max(lengths)) < abs(length - min(lengths))
                length = max(lengths) - 0.1 * width if near_end else min(lengths) + 0.1 * width
                stalled = False
            else:
                stalled = True
        else:
            stalled = False
        trial = tried(length)
        if too_high(trial) or trial.loss >= ends[low].loss:
            ends[high] = trial
            low, high = _order(ends)
            continue
        done = flat_enough(trial)
        if not done and trial.slope * (ends[high].length - ends[low].length) >= 0:
            ends[high] = ends[low]
        ends[low] = trial
        if done:
            break
    return ends[low]


def _order(ends: list[Trial]) -> tuple[int, int]:
    return (0, 1) if ends[0].loss <= ends[1].loss else (1, 0)


def _between(a: Trial, b: Trial, bounds: tuple[float, float] | None = None) -> float:
    """The lowest point of the cubic through both, kept inside the bounds; without one, the middle."""
    least, most = bounds or (min(a.length, b.length), max(a.length, b.length))
    if a.length == b.length:
        return (least + most) / 2
    tilt = a.slope + b.slope - 3 * (a.loss - b.loss) / (a.length - b.length)
    square = tilt * tilt - a.slope * b.slope
    if square < 0:
        return (least + most) / 2
    if a.length > b.length:
        a, b = b, a
    root = square**0.5
    slopes = b.slope - a.slope + 2 * root
    if slopes == 0:
        return (least + most) / 2
    lowest = b.length - (b.length - a.length) * ((b.slope + root - tilt) / slopes)
    return min(max(lowest, least), most)
