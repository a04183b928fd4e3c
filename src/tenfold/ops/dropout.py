"""Dropout rows: random masks over a tensor while training, the tensor itself otherwise."""

from __future__ import annotations

import math

from tenfold import flat
from tenfold.base import dtypes
from tenfold.base.errors import DTypeError, ShapeError
from tenfold.ops.random import bits, chance, probable
from tenfold.ops.samples import S, T
from tenfold.ops.table import op

_DRAWS = {"random": True, "special": (0, 1)}
_ELEMENTS = _DRAWS | {
    "samples": lambda: (
        [S(T(3, 4), 0.5, each) for each in (True, False)] + [S(T(2, 3), p, True) for p in (0.0, 1.0)]
    )
}
_FEATURES = _DRAWS | {"samples": lambda: [S(T(2, 3, 4), 0.5, True), S(T(2, 3), 0.5, False)]}
# Where the negative part of a SELU saturates: what dropped units become in alpha dropout.
_SATURATION = 1.7580993408473766


def _kept(state, x, p, shape):
    """The next state, and for each element (or feature) whether it stays."""
    probable(p)
    state, random = bits(state, shape)
    return state, flat.convert(chance(random, 1 - p), x.dtype)


def _feature_shape(x):
    if x.rank < 2:
        raise ShapeError(f"feature dropout needs a batch and a feature dimension, not {x.type}")
    return (*x.shape[:2], *[1] * (x.rank - 2))


def _drops(p):
    return not flat.known(p) or p > 0


def _scaled(state, x, p, shape):
    state, kept = _kept(state, x, p, shape)
    if flat.known(p) and p == 1:
        return x * kept, state
    _check_scalable(x)
    return x * (kept * (1 / (1 - p))), state


def _check_scalable(x):
    if x.dtype.kind not in ("float", "complex") or x.dtype.itemsize < 2:
        raise DTypeError(f"dropout scales floating-point numbers, not {x.dtype.name}")


def _alpha(state, x, p, shape):
    state, kept = _kept(state, x, p, shape)
    if flat.known(p) and p == 1:
        return x * kept, state
    _check_scalable(x)
    spread = (_SATURATION**2 * p + 1) * (1 - p)
    scale = 1 / (math.sqrt(spread) if flat.known(p) else flat.sqrt(spread))
    dropped = (kept - 1) * (_SATURATION * scale) + _SATURATION * scale * p
    return x * (kept * scale) + dropped, state


@op(
    "dropout(Tensor input, float p, bool train) -> Tensor",
    **_ELEMENTS,
    forms="function_",
    grad_fn="MulBackward0",
)
def dropout(state, x, p, train):
    """Elements zeroed with probability p, the others divided by 1 - p."""
    probable(p)
    return _scaled(state, x, p, x.shape) if train and _drops(p) and x.numel else (x, state)


@op(
    "native_dropout(Tensor input, float p, bool? train) -> (Tensor, Tensor)",
    **_ELEMENTS,
)
def native_dropout(state, x, p, train):
    """The result of dropout, and the mask of what stayed."""
    if train is False or not x.numel:
        return x, flat.full(x.shape, True, dtypes.bool_), state
    _check_scalable(x)
    state, kept = _kept(state, x, p, x.shape)
    scaled = x * (kept * (1 / (1 - p)) if not flat.known(p) or p < 1 else kept)
    return scaled, flat.convert(kept, dtypes.bool_), state


@op(
    "feature_dropout(Tensor input, float p, bool train) -> Tensor",
    **_FEATURES,
    forms="function_",
)
def feature_dropout(state, x, p, train):
    """Whole channels zeroed with probability p, the others divided by 1 - p."""
    probable(p)
    return _scaled(state, x, p, _feature_shape(x)) if train and _drops(p) and x.numel else (x, state)


@op("alpha_dropout(Tensor input, float p, bool train) -> Tensor", **_ELEMENTS, forms="function_")
def alpha_dropout(state, x, p, train):
    """Dropout to a SELU's negative saturation, keeping mean and variance."""
    probable(p)
    return _alpha(state, x, p, x.shape) if train and _drops(p) and x.numel else (x, state)


@op(
    "feature_alpha_dropout(Tensor input, float p, bool train) -> Tensor",
    **_FEATURES,
    forms="function_",
)
def feature_alpha_dropout(state, x, p, train):
    """Alpha dropout of whole channels."""
    probable(p)
    return _alpha(state, x, p, _feature_shape(x)) if train and _drops(p) and x.numel else (x, state)
