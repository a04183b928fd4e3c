"""Anomaly detection: finds the op that first produced NaN in a gradient, by computing every gradient on its
own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tenfold.base.errors import GradientError
from tenfold.base.source import capture
from tenfold.tensor import Tensor
from tenfold.trace.context import context
from tenfold.trace.gradient import gradient
from tenfold.trace.graph import Value


class _Search:
    """Whether it is on, and looks for NaN."""

    enabled = False
    check_nan = True


search = _Search()


class set_detect_anomaly:
    """Switch the search for NaN in gradients on or off, or use it as a `with` block. While it is on,
    `backward` evaluates immediately, and an error names the op that produced NaN and its line."""

    def __init__(self, mode: bool, check_nan: bool = True):
        self._before = search.enabled, search.check_nan
        search.enabled, search.check_nan = bool(mode), bool(check_nan)

    def __enter__(self) -> None: ...

    def __exit__(self, *error: object) -> None:
        search.enabled, search.check_nan = self._before


def detect_anomaly(check_nan: bool = True) -> set_detect_anomaly:
    """`set_detect_anomaly(True)`."""
    return set_detect_anomaly(True, check_nan)


def looking() -> bool:
    """Whether to search gradients for NaN. While a function is recorded there are no values to search."""
    return search.enabled and search.check_nan and context.recorder is None


def look(starts: Sequence[tuple[Value, Tensor]], order: Sequence[Any]) -> None:
    """Compute the gradient of every intermediate value, and raise an error at the first op that introduced
    NaN."""
    values: dict[Any, Value] = {}
    for node in order:
        for operand in node.inputs:
            if operand.origin is not None:
                values.setdefault(_place(operand), operand)
    begun = {_place(value): _has_nan(cotangent) for value, cotangent in starts}
    cotangents = [start.current() for _, start in starts]
    gradients = gradient([value for value, _ in starts], cotangents, list(values.values()), capture())
    reached = {
        place: _has_nan(Tensor(gradient))
        for place, gradient in zip(values, gradients, strict=True)
        if gradient is not None
    }
    dirty = {**begun, **reached}
    for node in reversed(order):
        count = len(node.callee.result_types)
        if any(dirty.get((node, i), False) for i in range(count)):
            continue
        if any(dirty.get(_place(operand), False) for operand in node.inputs if operand.origin is not None):
            name = node.callee.name
            raise GradientError(f"the gradient of {name} has NaN in it").located(name, node.source)


def refuse_nan(gradients: Sequence[Tensor]) -> None:
    """Raise an error if gradients that a hook or a Function computed contain NaN."""
    if any(_has_nan(gradient) for gradient in gradients):
        raise GradientError("a gradient has NaN in it")


def _place(value: Value) -> Any:
    origin = value.origin
    assert origin is not None
    return origin.of if origin.node is None else (origin.node, origin.index)


def _has_nan(tensor: Tensor) -> bool:
    return bool(np.isnan(tensor.detach()._host()).any())
