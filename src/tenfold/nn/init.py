"""`tenfold.nn.init`: initial values of parameters. Each function fills a tensor in place, without gradients,
and returns it."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tenfold.base.errors import ArgumentError, ShapeError, located, unknown_name
from tenfold.base.warning import warn
from tenfold.nn import draws
from tenfold.tensor import Tensor, overriding
from tenfold.tensor.generators import Generator

_GAINS = {
    "linear": 1.0,
    "sigmoid": 1.0,
    "tanh": 5.0 / 3,
    "relu": math.sqrt(2.0),
    "selu": 3.0 / 4,
} | dict.fromkeys([f"conv{transpose}{n}d" for transpose in ("", "_transpose") for n in (1, 2, 3)], 1.0)


@located
def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """The factor that scales weights for the nonlinearity that follows; `param` is leaky_relu's slope."""
    if nonlinearity == "leaky_relu":
        slope = 0.01 if param is None else param
        if isinstance(slope, bool) or not isinstance(slope, (int, float)):
            raise ArgumentError(f"the negative slope is a number, not {slope!r}")
        return math.sqrt(2.0 / (1 + slope**2))
    if nonlinearity not in _GAINS:
        raise ArgumentError(
            f"no gain is known for {nonlinearity!r}", help=f"one of {', '.join(_GAINS)}, leaky_relu"
        )
    return _GAINS[nonlinearity]


# Fillings


def uniform_(tensor: Tensor, a: float = 0.0, b: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Fill with draws from the uniform distribution on [a, b)."""
    return draws.uniform_(tensor, a, b, generator)


def normal_(
    tensor: Tensor, mean: float = 0.0, std: float = 1.0, generator: Generator | None = None
) -> Tensor:
    """Fill with draws from a normal distribution."""
    return draws.normal_(tensor, mean, std, generator)


@draws.unless_meta
def trunc_normal_(
    tensor: Tensor,
    mean: float = 0.0,
    std: float = 1.0,
    a: float = -2.0,
    b: float = 2.0,
    generator: Generator | None = None,
) -> Tensor:
    """Fill with draws from a normal distribution truncated to [a, b]."""
    if mean < a - 2 * std or mean > b + 2 * std:
        warn("trunc_normal_: the mean is more than two deviations outside of [a, b]")
    low, high = (a - mean) / std, (b - mean) / std
    mirrored = low + high > 0  # so that the longer tail, where erfc is exact, is the lower one
    if mirrored:
        low, high = -high, -low
    # Beyond 38 deviations float64 sees no probability at all.
    points = np.linspace(max(low, -38.0), min(max(high, -37.0), 38.0), 2**14 + 1)
    below = np.array([math.erfc(-point / math.sqrt(2)) for point in points.tolist()])
    places = (
        draws.uniform(tensor, tensor.numel(), generator).astype(np.float64) * (below[-1] - below[0])
        + below[0]
    )
    drawn = np.interp(places, below, points)
    drawn = (-drawn if mirrored else drawn) * std + mean
    return draws.write(tensor, np.clip(drawn, a, b))


@draws.unless_meta
def constant_(tensor: Tensor, val: float) -> Tensor:
    """Fill with `val`."""
    return draws.write(tensor, np.full(tuple(tensor.shape), val, tensor.dtype.numpy))


def ones_(tensor: Tensor) -> Tensor:
    """Fill with 1."""
    return constant_(tensor, 1.0)


def zeros_(tensor: Tensor) -> Tensor:
    """Fill with 0."""
    return constant_(tensor, 0.0)


@located
def eye_(tensor: Tensor) -> Tensor:
    """Fill a matrix with ones on its diagonal and zeros elsewhere."""
    if tensor.ndim != 2:
        raise ShapeError(f"takes a matrix, not {tensor.ndim} dimensions")
    return draws.write(tensor, np.eye(*tensor.shape))


@located
def dirac_(tensor: Tensor, groups: int = 1) -> Tensor:
    """Fill with the weights of a convolution that passes its channels through unchanged, in each group."""
    if tensor.ndim not in (3, 4, 5):
        raise ShapeError(f"takes 3, 4 or 5 dimensions, not {tensor.ndim}")
    sizes = tuple(tensor.shape)
    if sizes[0] % groups:
        raise ShapeError(f"{sizes[0]} channels do not divide into {groups} groups")
    per_group = sizes[0] // groups
    channels = np.arange(min(per_group, sizes[1]))
    centre = [np.array(extent // 2) for extent in sizes[2:]]
    weights = np.zeros(sizes)
    for group in range(groups):
        weights[(group * per_group + channels, channels, *centre)] = 1
    return draws.write(tensor, weights)


# By the number of inputs and outputs


def _fans(tensor: Tensor) -> tuple[int, int]:
    """How many inputs go into each output, and how many outputs come from each input."""
    if tensor.ndim < 2:
        raise ShapeError(f"fan in and fan out need two dimensions or more, not {tensor.ndim}")
    field = math.prod(tensor.shape[2:])
    return tensor.shape[1] * field, tensor.shape[0] * field


_calculate_fan_in_and_fan_out = _fans  # the name that others know it by


@located
def xavier_uniform_(tensor: Tensor, gain: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Fill uniformly from ±gain·sqrt(6 / (fan_in + fan_out)), after Glorot and Bengio."""
    bound = gain * math.sqrt(6.0 / sum(_fans(tensor)))
    return draws.uniform_(tensor, -bound, bound, generator)


@located
def xavier_normal_(tensor: Tensor, gain: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Fill with normal draws of deviation gain·sqrt(2 / (fan_in + fan_out)), after Glorot and Bengio."""
    return draws.normal_(tensor, 0.0, gain * math.sqrt(2.0 / sum(_fans(tensor))), generator)


@located
def kaiming_uniform_(
    tensor: Tensor,
    a: float = 0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Generator | None = None,
) -> Tensor:
    """Fill uniformly from ±gain·sqrt(3 / fan), after He; `a` is the slope of a leaky_relu that follows."""
    if _nothing_to_fill(tensor):
        return tensor
    bound = math.sqrt(3.0) * calculate_gain(nonlinearity, a) / math.sqrt(_fan(tensor, mode))
    return draws.uniform_(tensor, -bound, bound, generator)


@located
def kaiming_normal_(
    tensor: Tensor,
    a: float = 0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Generator | None = None,
) -> Tensor:
    """Fill with normal draws of deviation gain / sqrt(fan), after He; `a` is as in `kaiming_uniform_`."""
    if _nothing_to_fill(tensor):
        return tensor
    std = calculate_gain(nonlinearity, a) / math.sqrt(_fan(tensor, mode))
    return draws.normal_(tensor, 0.0, std, generator)


def _nothing_to_fill(tensor: Tensor) -> bool:
    if 0 not in tensor.shape:
        return False
    warn("initializing a tensor without elements does nothing")
    return True


def _fan(tensor: Tensor, mode: str) -> int:
    if mode.lower() not in ("fan_in", "fan_out"):
        raise ArgumentError(f"no mode {mode!r}", help="fan_in or fan_out")
    return _fans(tensor)[mode.lower() == "fan_out"]


_calculate_correct_fan = _fan  # the name that others know it by


# By matrices


@draws.unless_meta
@located
def orthogonal_(tensor: Tensor, gain: float = 1, generator: Generator | None = None) -> Tensor:
    """Fill with orthogonal rows, or columns if fewer; dimensions after the first count as columns."""
    if tensor.ndim < 2:
        raise ShapeError(f"takes two dimensions or more, not {tensor.ndim}")
    if not tensor.numel():
        return tensor
    rows = tensor.shape[0]
    columns = tensor.numel() // rows
    drawn = draws.normal(tensor, rows * columns, generator).reshape(rows, columns)
    q, r = np.linalg.qr(drawn.T if rows < columns else drawn)
    q = q * np.sign(np.diag(r))  # makes it even among all orthogonal matrices
    return draws.write(tensor, gain * (q.T if rows < columns else q))


@draws.unless_meta
@located
def sparse_(tensor: Tensor, sparsity: float, std: float = 0.01, generator: Generator | None = None) -> Tensor:
    """Fill a matrix with normal draws, and set the share `sparsity` of each column to zero."""
    if tensor.ndim != 2:
        raise ShapeError(f"takes a matrix, not {tensor.ndim} dimensions")
    rows, columns = tensor.shape
    drawn = draws.normal(tensor, rows * columns, generator).reshape(rows, columns) * std
    order = draws.bits(tensor, rows * columns, generator).reshape(rows, columns).argsort(axis=0)
    np.put_along_axis(drawn, order[: math.ceil(sparsity * rows)], 0, axis=0)
    return draws.write(tensor, drawn)


# The names that these had before they ended in an underscore


def _old(function: Callable[..., Tensor]) -> Any:
    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Tensor:
        name = function.__name__
        warn(f"nn.init.{name[:-1]} is deprecated: use nn.init.{name}", FutureWarning)
        return function(*args, **kwargs)

    call.__name__ = function.__name__[:-1]
    return call


uniform, normal, constant = _old(uniform_), _old(normal_), _old(constant_)
eye, dirac, orthogonal, sparse = _old(eye_), _old(dirac_), _old(orthogonal_), _old(sparse_)
xavier_uniform, xavier_normal = _old(xavier_uniform_), _old(xavier_normal_)
kaiming_uniform, kaiming_normal = _old(kaiming_uniform_), _old(kaiming_normal_)
overriding.publish(globals(), "tenfold.nn.init")


_no_grad_uniform_, _no_grad_normal_ = uniform_, normal_  # as libraries call them


def __getattr__(name: str) -> Any:
    raise unknown_name("tenfold.nn.init", name, globals())
