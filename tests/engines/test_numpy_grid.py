"""Every FlatIR op in every dtype on tier 0, against XLA and against StableHLO's reference interpreter."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pytest

from tenfold import flat
from tenfold.base import dtypes
from tenfold.base.dtypes import ALL, DType
from tenfold.engines import numpy as tier0
from tenfold.flat import collectives, data_ops as d, elementwise as e, sharding, structured as s, windows as w
from tenfold.flat.composite import Composite
from tenfold.flat.indexed import Gather, GatherDimensions, Scatter, ScatterDimensions
from tenfold.flat.ir import Function, Op, TensorType, Value
from tenfold.mlir import stablehlo
from tests.engines.test_numpy_kernels import classes, numbers
from tests.engines.tiers import Both, close

Samples = Callable[[Both, DType], Iterator[Op]]
ROWS = ScatterDimensions((1,), (0,), (0,), 1)
IMAGES = flat.ConvDimensions(0, 1, (2, 3), 1, 0, (2, 3), 0, 1, (2, 3))
# What is no computation on one device (tests/distributed, tests/engines/test_numpy_linear_algebra.py).
ELEMENTWISE = [
    op for op in vars(e).values() if isinstance(op, type) and issubclass(op, e.Elementwise) and op.name
]
DIVIDING = (e.Divide, e.Remainder)  # by zero the interpreter ends the process
APART = {
    Composite,
    s.CustomCall,
    s.Check,
    *classes(collectives.Collective),
    collectives.CollectivePermute,
    collectives.PartitionId,
    collectives.ManualComputation,
    sharding.ShardingConstraint,
    w.CuttingConvolution,
}
# What StableHLO's interpreter does not know.
UNKNOWN = {s.Cholesky, s.TriangularSolve, s.Fft, s.RngBitGenerator}


def ordered(dtype: DType) -> bool:
    return not dtype.is_complex


def scalar(dtype: DType) -> TensorType:
    return TensorType(dtype, ())


def _movement(both: Both, dtype: DType) -> Iterator[Op]:
    x, number = both.input(numbers(dtype, 3, 4)), both.input(numbers(dtype))
    at = both.input(np.array([[1], [2], [1]], np.int32))
    starts = tuple([both.input(np.array(each, np.int32)) for each in (1, 2)])
    rows = both.input(numbers(dtype, 3, 4, seed=2))
    yield d.BroadcastInDim(x, (2, 4, 3), (2, 1))
    yield d.Reshape(x, (2, 6))
    yield d.Transpose(x, (1, 0))
    yield d.Slice(x, (0, 1), (3, 4), (2, 2))
    yield d.DynamicSlice(x, starts, (2, 2))
    yield d.DynamicUpdateSlice(x, both.input(numbers(dtype, 2, 2, seed=1)), starts)
    yield d.Concatenate((x, x), 1)
    yield d.Pad(x, number, (1, -1), (-1, 2), (2, 0))
    yield d.Reverse(x, (0,))
    yield d.Constant(numbers(dtype, 2, 3), dtype)
    yield Gather(x, at, GatherDimensions((1,), (0,), (0,), 1), (1, 4), False)
    yield Scatter((x,), at, (rows,), ROWS, False, False, flat.monoid("set", dtype))
    if dtype.kind != "bool":
        yield d.Iota(dtype, (2, 5), 1)


def _elementwise(both: Both, dtype: DType) -> Iterator[Op]:
    x, y = both.input(numbers(dtype, 4, 5)), both.input(numbers(dtype, 4, 5, seed=1))
    filled = numbers(dtype, 4, 5, seed=1)
    divisor = both.input(np.where(filled == 0, np.ones((), dtype.numpy), filled))
    for op in ELEMENTWISE:
        if dtype in op.accepted and op not in (e.ShiftLeft, e.Polygamma, e.Zeta):
            second = divisor if op in DIVIDING else y
            yield op(x, second) if issubclass(op, e.Binary) else op(x)
    if dtype in e.ShiftLeft.accepted:
        yield e.ShiftLeft(x, e.Abs(y).result if dtype in e.Abs.accepted else y)
    if dtype in e.Zeta.accepted:
        above = flat.add(e.Abs(x).result, flat.full((4, 5), 1.5, dtype))
        yield e.Zeta(above, above)
        yield e.Polygamma(e.Abs(y).result, above)
    for direction in e.DIRECTIONS if ordered(dtype) else ("EQ", "NE"):
        yield e.Compare(x, y, direction, False)
    for target in ALL:
        yield e.Convert(x, target)
        if target.itemsize == dtype.itemsize and not {target.kind, dtype.kind} & {"bool", "complex"}:
            yield e.BitcastConvert(x, target)
    yield e.Select(e.Compare(x, y, "EQ", False).result, x, y)
    if ordered(dtype):
        yield e.Clamp(y, x, flat.maximum(x, y))
    if dtype.kind == "float":
        yield e.ReducePrecision(x, 5, 2)
    if dtype in (dtypes.float32, dtypes.float64):
        yield e.Complex(x, y)
    yield e.OptimizationBarrier((x, y))


def _folds(both: Both, dtype: DType) -> Iterator[Op]:
    x = both.input(numbers(dtype, 3, 4))
    images = both.input(np.random.default_rng(0).permutation(40).reshape(1, 2, 5, 4).astype(dtype.numpy))
    at, rows = both.input(np.array([[1], [2], [1]], np.int32)), both.input(numbers(dtype, 3, 4, seed=1))
    kinds = ["add", "mul", *(["max", "min"] if ordered(dtype) else [])]
    for kind in kinds + (["and", "or", "xor"] if dtype.kind in ("bool", "int") else []):
        body, start = flat.monoid(kind, dtype), both.input(numbers(dtype))
        yield s.Reduce((x,), (start,), (1,), body)
        none = flat.constant(flat.identity(kind, dtype), dtype)  # with others XLA is not the specification's
        yield w.ReduceWindow((x,), (none,), (2, 2), (1, 2), (1, 1), (1, 1), ((0, 1), (1, 0)), body)
        yield Scatter((x,), at, (rows,), ROWS, False, False, body)
    if ordered(dtype):
        ahead = flat.function(lambda a, b: e.Compare(a, b, "GE", False).result, [scalar(dtype)] * 2)
        source = both.input(numbers(dtype, 1, 2, 4, 3, seed=2))
        settings = ((1, 1, 2, 2), (1, 1, 1, 1), ((0, 0),) * 4, ahead, flat.monoid("add", dtype))
        yield w.SelectAndScatter(images, source, flat.constant(0, dtype), *settings)


def _orders(both: Both, dtype: DType) -> Iterator[Op]:
    x, places = both.input(numbers(dtype, 4, 7)), both.input(np.tile(np.arange(7), (4, 1)))
    if ordered(dtype):
        body = lambda a, b, i, j: e.Compare(a, b, "LT", False).result
        types = [scalar(dtype)] * 2 + [scalar(dtypes.int64)] * 2
        yield s.Sort((x, places), 1, True, flat.function(body, types))
        if dtype.kind != "bool":
            yield s.TopK(x, 3)


def _products(both: Both, dtype: DType) -> Iterator[Op]:
    x, y = both.input(numbers(dtype, 2, 3, 4)), both.input(numbers(dtype, 2, 4, 5, seed=1))
    if dtype.kind != "bool":
        yield s.DotGeneral(x, y, s.DotDimensions((0,), (0,), (2,), (1,)), dtype)
        images, kernel = (
            both.input(numbers(dtype, 2, 4, 5, 4)),
            both.input(numbers(dtype, 4, 2, 2, 3, seed=1)),
        )
        spread = ((1, 2), ((1, 0), (1, 1)), (1, 1), (2, 1), (False, False))
        groups = 1 if dtype.is_complex else 2
        kernel = kernel if groups == 2 else both.input(numbers(dtype, 4, 4, 2, 3, seed=1))
        yield w.Convolution(images, kernel, *spread, IMAGES, groups, 1)


def _factors(both: Both, dtype: DType) -> Iterator[Op]:
    if dtype in (dtypes.float32, dtypes.float64, dtypes.complex64, dtypes.complex128):
        root = np.tril(numbers(dtype, 4, 4)) + 5 * np.eye(4, dtype=dtype.numpy)
        factor = s.Cholesky(both.input(root @ root.conj().T), True).result
        lower = flat.ge(flat.iota((4, 4), 0), flat.iota((4, 4), 1))
        yield e.Select(lower, factor, flat.full((4, 4), 0, dtype))
        known = both.input(root), both.input(numbers(dtype, 4, 2))
        yield s.TriangularSolve(*known, True, True, False, "NO_TRANSPOSE")
        x = both.input(numbers(dtype, 2, 4, 6))
        yield s.Fft(x, "FFT" if dtype.is_complex else "RFFT", (4, 6))


def _control(both: Both, dtype: DType) -> Iterator[Op]:
    x, count = both.input(numbers(dtype, 3)), both.input(np.array(0, np.int32))
    turned = lambda value: d.Reverse(value, (0,)).result
    carried = flat.while_loop(lambda i, v: i < 3, lambda i, v: (i + 1, turned(v)), (count, x))
    assert carried[1].op is not None
    yield carried[1].op
    (chosen,) = flat.case(count, [turned, lambda value: value], [x])
    assert chosen.op is not None
    yield chosen.op
    if dtype.kind == "int" and dtype.name.startswith("uint"):
        yield s.RngBitGenerator(both.input(np.array([7, 5], np.uint64)), dtype, (5,))


SAMPLES: tuple[Samples, ...] = (_movement, _elementwise, _folds, _orders, _products, _factors, _control)


def sampled(dtype: DType) -> tuple[Both, list[Op]]:
    both = Both()
    return both, [op for samples in SAMPLES for op in samples(both, dtype)]


def test_every_op_is_in_the_grid():
    named = {each for each in classes(Op) if each.name and each.__module__.startswith("tenfold.")}
    found = {type(op) for dtype in ALL for op in sampled(dtype)[1]} | {s.Cholesky}
    assert named - found == APART


def beyond_xla(op: Op, dtype: DType) -> bool:
    """Whether XLA refuses an op, or does not follow the specification."""
    if dtype.is_complex:  # it compares and converts the real parts alone
        return isinstance(op, (e.Maximum, e.Minimum)) or op.results[0].dtype is dtypes.bool_
    return op.name.startswith("chlo.") and dtype.kind == "float" and dtype.itemsize == 1


@pytest.mark.parametrize("dtype", ALL, ids=lambda dtype: dtype.name)
def test_every_op_agrees_with_xla(dtype, compiled_as_by_users):
    both, ops = sampled(dtype)
    for op in ops:
        if not beyond_xla(op, dtype):
            both.add(op)
    wrong = [
        f"{op.name} to {theirs.dtype}: {theirs.tolist()} by XLA, {mine.tolist()} by tier 0"
        for op, theirs, mine in both.run()
        if not close(theirs, mine).all()
    ]
    assert not wrong, "\n".join(wrong)


def beyond_the_interpreter(op: Op, dtype: DType) -> bool:
    """Whether the interpreter does not know an op, or takes no account of imaginary parts."""
    if dtype.is_complex and isinstance(op, e.Convert) and op.dtype is dtypes.bool_:
        return True
    known = type(op) not in UNKNOWN and all(
        operand.op is None or type(operand.op) not in UNKNOWN for operand in op.operands
    )
    return not known or (op.name.startswith("chlo.") and dtype.kind == "float" and dtype.itemsize == 1)


def handed_over(value: Value) -> list[Value]:
    """A value as the interpreter can give it to Python."""
    if value.dtype.is_complex:
        return [e.Real(value).result, e.Imag(value).result]
    narrow = value.dtype.kind == "float" and (value.dtype.itemsize == 1 or value.dtype is dtypes.bfloat16)
    return [flat.convert(value, dtypes.float32) if narrow else value]


def interpreted(both: Both, values: list[Value], dtype: DType) -> list[np.ndarray]:
    parts = [handed_over(value) for value in values]
    module = stablehlo.emit(Function(both.params, [part for each in parts for part in each]))
    found = iter(stablehlo.interpret(module, both.arrays))
    results = []
    for value, each in zip(values, parts, strict=True):
        result = np.empty(value.type.shape, value.dtype.numpy)
        if len(each) > 1:
            result.real, result.imag = next(found), next(found)
        else:
            result[...] = next(found).astype(result.dtype)
        results.append(result)
    return results


@pytest.mark.parametrize("dtype", ALL, ids=lambda dtype: dtype.name)
def test_every_op_agrees_with_the_reference_interpreter(dtype):
    both, ops = sampled(dtype)
    wrong = []
    known = [op for op in ops if not beyond_the_interpreter(op, dtype)]
    scatters: list[list[Op]] = [
        [op] for op in known if isinstance(op, Scatter)
    ]  # one writes to what the next would read
    groups = [[op for op in known if not isinstance(op, Scatter)], *scatters]
    for group in groups:
        values = [result for op in group for result in op.results]
        ours = tier0.run(Function(both.params, values), both.arrays)
        for value, mine, theirs in zip(values, ours, interpreted(both, values, dtype), strict=True):
            if not close(theirs, mine).all():
                assert value.op is not None
                told = f"{theirs.tolist()} by the interpreter, {mine.tolist()} by tier 0"
                wrong.append(f"{value.op.name} to {mine.dtype}: {told}")
    assert not wrong, "\n".join(wrong)
