"""Batch and instance normalisation: rows over the batch, or each instance, of every channel (dimension 1).

The rows are pure. Those that know running statistics either only read them or, the `functional` one, give the
new ones back; functions that update them in place are in `nn/functional_normalisation.py`.
"""

from __future__ import annotations

import math

from tenfold import flat
from tenfold.base.errors import ArgumentError, ShapeError
from tenfold.flat import Value
from tenfold.ops.normalisation import (
    check_parameters,
    parameter_dtype,
    regressed,
    scaled,
    standardised,
    wide,
)
from tenfold.ops.samples import S, T
from tenfold.ops.table import op


def _layout(name: str, x: Value) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The dimensions normalised together, and the shape in which a value for each channel stretches."""
    if x.rank < 2:
        raise ShapeError(f"{name} takes a batch and channels, not {x.type}")
    return (0, *range(2, x.rank)), (x.shape[1], *[1] * (x.rank - 2))


def _checked(name: str, x: Value, weight, bias, running_mean, running_var):
    dims, shape = _layout(name, x)
    named = {"weight": weight, "bias": bias, "running_mean": running_mean, "running_var": running_var}
    check_parameters(name, shape[:1], **named)
    return dims, shape, parameter_dtype(name, x, *named.values())


# Half types are compared beside float32 parameters: beside their own PyTorch rounds inside the formula.
_DTYPES = (("float32", "float32"), ("float64", "float64"), ("float16", "float32"))


def _batches(stats, *more):
    """Samples: an input, its weight and bias, with or without running statistics, and what else follows."""
    found = []
    for x, dtype in _DTYPES:
        parameter, spread = T(3, dtype=dtype), T(3, dtype=dtype, low=0.5, high=2)
        running = {"given": (parameter, spread), "none": (None, None), "absent": ()}[stats]
        found += [
            S(T(4, 3, 2, dtype=x), parameter, parameter, *running, *more),
            S(T(2, 3, 2, 2, dtype=x), parameter, None, *running, *more),
            S(T(4, 3, dtype=x), None, parameter, *running, *more),
        ]
    return found


_TRAINED_OR_NOT = lambda *more: (
    lambda: [
        *_batches("none", True, 0.1, 1e-5, *more),
        *_batches("given", False, 0.1, 1e-3, *more),
        S(T(3), None, None, None, None, True, 0.1, 1e-5, *more),
    ]
)


@op(
    "batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var, "
    "bool training, float momentum, float eps, bool cudnn_enabled) -> Tensor",
    module="nn",
    samples=lambda: [
        *_TRAINED_OR_NOT(False)(),
        S(T(0, dtype="float32"), *[None] * 4, True, 0.1, 1e-5, False),
    ],
    grad_fn="NativeBatchNormBackward0",
)
def batch_norm(x, weight, bias, running_mean, running_var, training, momentum, eps, cudnn_enabled):
    """(input - mean) / √(variance + eps) · weight + bias, for each channel: statistics of the batch while
    training, else the running ones."""
    if x.shape == (0,):
        return x  # without channels, nothing is to be done
    return _normalised(x, weight, bias, running_mean, running_var, training, eps)[0]


def _normalised(x, weight, bias, running_mean, running_var, training, eps):
    """The result; and while training the mean and the variance of each channel, else None."""
    dims, shape, _ = _checked("batch_norm", x, weight, bias, running_mean, running_var)
    if training:
        standard, mean, variance = standardised(wide(x), dims, eps)
        result = scaled(standard, weight, bias, shape)
        statistics: list = [flat.reshape(each, shape[:1]) for each in (mean, variance)]
    else:
        if running_mean is None or running_var is None:
            raise ArgumentError("batch_norm needs running_mean and running_var where it is not training")
        mean, variance = (flat.reshape(wide(each), shape) for each in (running_mean, running_var))
        result = scaled((wide(x) - mean) * flat.rsqrt(variance + eps), weight, bias, shape)
        statistics = [None, None]
    return flat.convert(result, x.dtype), *statistics


@op(
    "native_batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, "
    "Tensor? running_var, bool training, float momentum, float eps) -> (Tensor, Tensor, Tensor)",
    module="nn",
    function=False,
    differentiable=(True, False, False),
    samples=_TRAINED_OR_NOT(),
    needs="statistics",
    torch_dialect="batch_norm_with_statistics",
    out_names="out save_mean save_invstd",
)
def native_batch_norm(x, weight, bias, running_mean, running_var, training, momentum, eps):
    """The batch norm; and while training each channel's mean and 1 / √(variance + eps)."""
    dtype = _checked("batch_norm", x, weight, bias, running_mean, running_var)[2]
    if not x.numel:
        raise ShapeError(f"native_batch_norm takes at least one element, not {x.type}")
    result, mean, variance = _normalised(x, weight, bias, running_mean, running_var, training, eps)
    if not training:
        return result, flat.full((0,), 0, dtype), flat.full((0,), 0, dtype)
    return result, flat.convert(mean, dtype), flat.convert(flat.rsqrt(variance + eps), dtype)


@op(
    "_native_batch_norm_legit.no_stats(Tensor input, Tensor? weight, Tensor? bias, bool training, "
    "float momentum, float eps) -> (Tensor, Tensor, Tensor)",
    differentiable=(True, False, False),
    samples=lambda: _batches("absent", True, 0.1, 1e-5),
    needs="no_statistics",
    out_names="out save_mean save_invstd",
)
def _native_batch_norm_legit_no_stats(x, weight, bias, training, momentum, eps):
    """`native_batch_norm` by the statistics of the batch, with none that run: only while training."""
    return native_batch_norm(x, weight, bias, None, None, training, momentum, eps)


@op(
    "_native_batch_norm_legit_no_training(Tensor input, Tensor? weight, Tensor? bias, Tensor running_mean, "
    "Tensor running_var, float momentum, float eps) -> (Tensor, Tensor, Tensor)",
    differentiable=(True, False, False),
    samples=lambda: _batches("given", 0.1, 1e-5),
    needs="statistics_in_use",
    torch_dialect="batch_norm_with_statistics(input, weight, bias, running_mean, running_var, False, "
    "momentum, eps)",
)
def _native_batch_norm_legit_no_training(x, weight, bias, running_mean, running_var, momentum, eps):
    """(input - running_mean) / √(running_var + eps) · weight + bias, for each channel; two empty tensors."""
    return native_batch_norm(x, weight, bias, running_mean, running_var, False, momentum, eps)


@op(
    "_native_batch_norm_legit_functional(Tensor input, Tensor? weight, Tensor? bias, Tensor running_mean, "
    "Tensor running_var, bool training, float momentum, float eps) -> "
    "(Tensor, Tensor, Tensor, Tensor running_mean_out, Tensor running_var_out)",
    function=False,
    differentiable=(True, False, False, False, False),
    samples=lambda: [
        *_batches("given", True, 0.1, 1e-5),
        *_batches("given", False, 0.5, 1e-3),
        S(T(1, 3, dtype="float32"), None, None, *[T(3, dtype="float32", low=0.5)] * 2, True, 1.0, 1e-3),
    ],
    needs="statistics",
    torch_dialect="batch_norm_by_parts",
)
def _native_batch_norm_legit_functional(x, weight, bias, running_mean, running_var, training, momentum, eps):
    """`native_batch_norm`, and the running statistics moved by `momentum` towards those of the batch."""
    results = native_batch_norm(x, weight, bias, running_mean, running_var, training, momentum, eps)
    if not training:
        return *results, running_mean, running_var
    _, mean, variance = _normalised(x, None, None, None, None, True, eps)
    count = x.numel // x.shape[1]
    unbiased = variance * float(count) / float(count - 1)
    moved = [
        flat.convert(wide(old) * (1 - momentum) + flat.convert(new, wide(old).dtype) * momentum, old.dtype)
        for old, new in ((running_mean, mean), (running_var, unbiased))
    ]
    return *results, *moved


@op(
    "native_batch_norm_backward(Tensor grad_out, Tensor input, Tensor? weight, Tensor? running_mean, "
    "Tensor? running_var, Tensor? save_mean, Tensor? save_invstd, bool train, float eps, "
    "bool[3] output_mask) -> (Tensor, Tensor, Tensor)",
    function=False,
    samples=lambda: [
        # PyTorch sums half types in half precision: there the others alone are compared.
        S(T(4, 3, dtype=dtype), T(4, 3, dtype=dtype), *parameters, 1e-5, (True, True, True))
        for dtype in ("float32", "float64")
        for p in [(T(3, dtype=dtype), T(3, dtype=dtype, low=0.5, high=2))]
        for parameters in [(p[0], None, None, *p, True), (p[0], *p, None, None, False), (None, *p, *p, True)]
    ],
    needs="statistics_of_gradient",
)
def native_batch_norm_backward(
    gradient, x, weight, running_mean, running_var, save_mean, save_invstd, train, eps, output_mask
):
    """The cotangents of input, weight and bias: all three, whichever output_mask asks for."""
    mean, spread = (save_mean, save_invstd) if train else (running_mean, running_var)
    if mean is None or spread is None:
        which = "save_mean and save_invstd" if train else "running_mean and running_var"
        raise ArgumentError(f"native_batch_norm_backward needs {which} where train={train}")
    dims, shape, dtype = _checked("batch_norm", x, weight, None, mean, spread)
    mean, spread = (flat.reshape(wide(each), shape) for each in (mean, spread))
    rstd = spread if train else flat.rsqrt(spread + eps)
    gradient = wide(gradient)
    standard = (wide(x) - mean) * rstd
    weighted = scaled(gradient, weight, None, shape)
    to_input = regressed(weighted, standard, rstd, dims) if train else weighted * rstd
    sums = [flat.convert(flat.sum(each, dims), dtype) for each in (gradient * standard, gradient)]
    return flat.convert(to_input, x.dtype), *sums


@op(
    "instance_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var, "
    "bool use_input_stats, float momentum, float eps, bool cudnn_enabled) -> Tensor",
    module="nn",
    samples=lambda: [each for each in _TRAINED_OR_NOT(False)() if len(each.args[0].shape) != 2],
    saves="other",
)
def instance_norm(x, weight, bias, running_mean, running_var, use_input_stats, momentum, eps, cudnn_enabled):
    """(input - mean) / √(variance + eps) · weight + bias, for each channel of each instance."""
    _, shape, dtype = _checked("instance_norm", x, weight, bias, None, None)
    if not use_input_stats:
        if running_mean is None or running_var is None:
            raise ArgumentError(
                "instance_norm needs running_mean and running_var where use_input_stats is False"
            )
        check_parameters("instance_norm", shape[:1], running_mean=running_mean, running_var=running_var)
        running_mean, running_var = (flat.convert(each, dtype) for each in (running_mean, running_var))
        return batch_norm(x, weight, bias, running_mean, running_var, False, momentum, eps, cudnn_enabled)
    if not x.numel:
        return x
    batch, channels = x.shape[:2]
    rows = flat.reshape(wide(x), (batch, channels, math.prod(x.shape[2:])))
    standard = flat.reshape(standardised(rows, (2,), eps)[0], x.shape)
    return flat.convert(scaled(standard, weight, bias, shape), x.dtype)
