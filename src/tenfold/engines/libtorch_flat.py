"""FlatIR on libtorch, for nodes that ATen has no op for: an optimizer's step, derivatives of derivatives,
functions of batches.

One row for each FlatIR op that such nodes are made of; another is an error that names it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tenfold import flat
from tenfold.base.errors import UnsupportedError
from tenfold.engines.libtorch_calls import Calls, Held
from tenfold.flat import data_ops as movement, elementwise, structured
from tenfold.flat.ir import Function, Op

Rule = Callable[[Calls, Any, Sequence[Held]], Held]

# Ops whose operands are ATen's arguments as they stand.
_SAME = {
    elementwise.Abs: "abs",
    elementwise.Ceil: "ceil",
    elementwise.Cosine: "cos",
    elementwise.Exponential: "exp",
    elementwise.ExponentialMinusOne: "expm1",
    elementwise.Floor: "floor",
    elementwise.IsFinite: "isfinite",
    elementwise.Log: "log",
    elementwise.LogPlusOne: "log1p",
    elementwise.Logistic: "sigmoid",
    elementwise.Negate: "neg",
    elementwise.Not: "bitwise_not",
    elementwise.RoundNearestEven: "round",
    elementwise.Rsqrt: "rsqrt",
    elementwise.Sign: "sgn",
    elementwise.Sine: "sin",
    elementwise.Sqrt: "sqrt",
    elementwise.Tan: "tan",
    elementwise.Tanh: "tanh",
    elementwise.Real: "real",
    elementwise.Acos: "acos",
    elementwise.Acosh: "acosh",
    elementwise.Asin: "asin",
    elementwise.Asinh: "asinh",
    elementwise.Atan: "atan",
    elementwise.Atanh: "atanh",
    elementwise.BesselI1e: "special_i1e",
    elementwise.Conj: "conj_physical",
    elementwise.Cosh: "cosh",
    elementwise.Digamma: "digamma",
    elementwise.Sinh: "sinh",
    elementwise.Erf: "erf",
    elementwise.Erfc: "erfc",
    elementwise.ErfInv: "erfinv",
    elementwise.Lgamma: "lgamma",
    elementwise.Add: "add.Tensor",
    elementwise.And: "bitwise_and.Tensor",
    elementwise.Atan2: "atan2",
    elementwise.Maximum: "maximum",
    elementwise.Minimum: "minimum",
    elementwise.Multiply: "mul.Tensor",
    elementwise.Or: "bitwise_or.Tensor",
    elementwise.NextAfter: "nextafter",
    elementwise.Power: "pow.Tensor_Tensor",
    elementwise.Remainder: "fmod.Tensor",
    elementwise.Subtract: "sub.Tensor",
    elementwise.Xor: "bitwise_xor.Tensor",
    elementwise.Zeta: "special_zeta",
    elementwise.Complex: "complex",
    elementwise.Select: "where.self",
}


def _divide(run: Calls, op: Any, operands: Sequence[Held]) -> Held:
    if op.x.dtype.kind == "int":
        return run.apply("aten::div.Tensor_mode", *operands, "trunc")
    return run.apply("aten::div.Tensor", *operands)


def _imaginary(run: Calls, op: Any, operands: Sequence[Held]) -> Held:
    return run.apply("aten::imag" if op.x.dtype.is_complex else "aten::zeros_like", *operands)


def _clamp(run: Calls, op: Any, operands: Sequence[Held]) -> Held:
    low, x, high = operands
    return run.apply("aten::minimum", run.apply("aten::maximum", x, low), high)


def _iota(run: Calls, op: Any, operands: Sequence[Held]) -> Held:
    shape = [1] * len(op.shape)
    shape[op.iota_dimension] = op.shape[op.iota_dimension]
    places = np.arange(op.shape[op.iota_dimension]).reshape(shape)
    return run.apply("aten::expand", run.copied(places, op.dtype), tuple(op.shape))


def _pad(run: Calls, op: Any, operands: Sequence[Held]) -> Held:
    """The padding everywhere, and over it what of x lies inside."""
    x, padding = operands
    whole = run.apply("aten::clone", run.apply("aten::expand", padding, tuple(op.result.shape)))
    place = whole
    for dim, (low, step) in enumerate(zip(op.edge_padding_low, op.interior_padding, strict=True)):
        step, extent = step + 1, op.result.shape[dim]
        first = max(0, -(low // step))  # of x, that is not cut off
        last = min(op.x.shape[dim], -(-(extent - low) // step))  # the one after it
        if first >= last:
            return whole
        x = run.apply("aten::slice.Tensor", x, dim, first, last)
        place = run.apply("aten::slice.Tensor", place, dim, low + first * step, extent, step)
        place = run.apply("aten::slice.Tensor", place, dim, 0, last - first)
    run.apply("aten::copy_", place, x)
    return whole


def _broadcast(run: Calls, op: Any, operands: Sequence[Held]) -> Held:
    """Dimensions in their places, others of size 1 between them, then all of them stretched."""
    order = sorted(range(len(op.broadcast_dimensions)), key=lambda i: op.broadcast_dimensions[i])
    shape = [1] * len(op.shape)
    for i in order:
        shape[op.broadcast_dimensions[i]] = op.x.shape[i]
    placed = run.apply("aten::permute", operands[0], tuple(order))
    return run.apply("aten::expand", run.apply("aten::reshape", placed, tuple(shape)), tuple(op.shape))


def _slice(run: Calls, op: Any, operands: Sequence[Held]) -> Held:
    sliced = operands[0]
    for dim, (start, limit, stride) in enumerate(
        zip(op.start_indices, op.limit_indices, op.strides, strict=True)
    ):
        if (start, limit, stride) != (0, op.x.shape[dim], 1):
            sliced = run.apply("aten::slice.Tensor", sliced, dim, start, limit, stride)
    return sliced


def _dot(run: Calls, op: Any, operands: Sequence[Held]) -> Held:
    """Each operand as a batch of matrices, multiplied, and the product in its shape."""
    batch_x, batch_y, summed_x, summed_y = op.dot_dimension_numbers
    free_x = tuple(i for i in range(op.x.rank) if i not in batch_x and i not in summed_x)
    free_y = tuple(i for i in range(op.y.rank) if i not in batch_y and i not in summed_y)
    batch = math.prod(op.x.shape[i] for i in batch_x)
    rows, columns = math.prod(op.x.shape[i] for i in free_x), math.prod(op.y.shape[i] for i in free_y)
    inner = math.prod(op.x.shape[i] for i in summed_x)
    x = run.apply("aten::permute", operands[0], (*batch_x, *free_x, *summed_x))
    y = run.apply("aten::permute", operands[1], (*batch_y, *summed_y, *free_y))
    x = run.apply("aten::to.dtype", run.apply("aten::reshape", x, (batch, rows, inner)), op.dtype)
    y = run.apply("aten::to.dtype", run.apply("aten::reshape", y, (batch, inner, columns)), op.dtype)
    return run.apply("aten::reshape", run.apply("aten::bmm", x, y), tuple(op.result.shape))


def _product(run: Calls, x: Held, dimensions: tuple[int, ...]) -> Held:
    for dimension in sorted(dimensions, reverse=True):
        x = run.apply("aten::prod.dim_int", x, dimension)
    return x


def _folding(name: str) -> Callable[[Calls, Held, tuple[int, ...]], Held]:
    return lambda run, x, dimensions: run.apply(f"aten::{name}", x, dimensions)


# What folds with one op, from any start: how ATen folds over dimensions, and how it joins two.
_FOLDS = {
    elementwise.Add: (_folding("sum.dim_IntList"), "aten::add.Tensor"),
    elementwise.Multiply: (_product, "aten::mul.Tensor"),
    elementwise.Maximum: (_folding("amax"), "aten::maximum"),
    elementwise.Minimum: (_folding("amin"), "aten::minimum"),
    elementwise.And: (_folding("all.dims"), "aten::logical_and"),
    elementwise.Or: (_folding("any.dims"), "aten::logical_or"),
}


def _reduce(run: Calls, op: Any, operands: Sequence[Held]) -> Held:
    body, x = op.body.ops, op.inputs[0]
    fold = _FOLDS.get(type(body[0])) if len(op.inputs) == len(body) == 1 else None
    bits = type(body[0]) in (elementwise.And, elementwise.Or) and x.dtype.kind != "bool"
    if fold is None or set(body[0].operands) != set(op.body.params) or not x.numel or bits:
        raise _unsupported(f"such {op.name}")
    if not op.dimensions:
        return run.apply(fold[1], *operands)
    folded = fold[0](run, operands[0], tuple(op.dimensions))
    return run.apply(fold[1], run.apply("aten::to.dtype", folded, x.dtype), operands[1])


def _unsupported(what: str) -> UnsupportedError:
    return UnsupportedError(
        f"the libtorch engine has no {what} outside of ATen's own ops", help="tn.set_engine('xla') runs it"
    )


def _same(name: str) -> Rule:
    return lambda run, op, operands: run.apply(f"aten::{name}", *operands)


RULES: dict[type, Rule] = {
    **{op: _same(name) for op, name in _SAME.items()},
    elementwise.Divide: _divide,
    elementwise.Imag: _imaginary,
    elementwise.Clamp: _clamp,
    elementwise.Compare: lambda run, op, x: run.apply(f"aten::{op.direction.lower()}.Tensor", *x),
    elementwise.Convert: lambda run, op, x: run.apply("aten::to.dtype", *x, op.dtype),
    movement.Constant: lambda run, op, x: run.copied(np.broadcast_to(op.value, op.result.shape), op.dtype),
    movement.Iota: _iota,
    movement.BroadcastInDim: _broadcast,
    movement.Reshape: lambda run, op, x: run.apply("aten::reshape", *x, tuple(op.shape)),
    movement.Transpose: lambda run, op, x: run.apply("aten::permute", *x, tuple(op.permutation)),
    movement.Slice: _slice,
    movement.Pad: _pad,
    movement.Reverse: lambda run, op, x: run.apply("aten::flip", *x, tuple(op.dimensions)),
    movement.Concatenate: lambda run, op, x: run.apply("aten::cat", list(x), op.dimension),
    structured.DotGeneral: _dot,
    structured.Reduce: _reduce,
    structured.Check: lambda run, op, x: _checked(run, op, x),
}


def _checked(run: Calls, op: Any, operands: Sequence[Held]) -> Held:
    values = dict(zip(op.operands, operands, strict=True))
    if not run.fetch(values[op.holds]).item():
        raise op.error(op.message)
    return values[op.x]


def evaluate_fragment(run: Calls, fragment: Function, inputs: Sequence[Held]) -> list[Held]:
    """A fragment's results on these inputs."""
    params = [flat.Value(param.type) for param in fragment.params]
    whole = Function(params, fragment.inline(params, None, device=run.device.type), fragment.name)
    values: dict[flat.Value, Held] = dict(zip(params, inputs, strict=True))
    for op in whole.ops:
        values[op.results[0]] = _evaluate(run, op, [values[operand] for operand in op.operands])
    return [run.own(run.lib.tn_tensor_share(values[result])) for result in whole.results]


def _evaluate(run: Calls, op: Op, operands: Sequence[Held]) -> Held:
    rule = RULES.get(type(op))
    if rule is None:
        raise _unsupported(op.name)
    return rule(run, op, operands)
