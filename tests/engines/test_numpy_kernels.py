"""Ops across elements on tier 0, in every dtype, against XLA; and how a plan treats memory."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from tenfold import flat
from tenfold.base import dtypes
from tenfold.base.dtypes import ALL, DType
from tenfold.base.errors import UnsupportedError
from tenfold.engines import numpy as tier0
from tenfold.engines.numpy.kernels import KERNELS
from tenfold.flat import data_ops as d, structured as s, windows as w
from tenfold.flat.composite import Composite
from tenfold.flat.indexed import Gather, GatherDimensions, Scatter, ScatterDimensions
from tenfold.flat.ir import Function, Op, TensorType, Value
from tests.engines.tiers import Both, close

NUMBERS = [each for each in ALL if each.itemsize > 1 or each.kind == "int"]
WIDE = [dtypes.float32, dtypes.float64, dtypes.complex64, dtypes.complex128]
F32 = dtypes.float32


def numbers(dtype: DType, *shape: int, seed: int = 0) -> np.ndarray:
    """Small numbers, whose sums are exact in most dtypes."""
    random = np.random.default_rng(seed)
    if dtype.kind == "bool":
        return np.asarray(random.integers(0, 2, shape)).astype(bool)
    found = random.integers(0 if dtype.name.startswith("uint") else -3, 4, shape)
    if dtype.is_complex:
        found = found + 1j * random.integers(-3, 4, shape)
    return np.asarray(found).astype(dtype.numpy)


def agree(both: Both) -> None:
    wrong = []
    for op, theirs, mine in both.run():
        if not close(theirs, mine).all():
            wrong.append(f"{op.name} {op.operands}: {theirs.tolist()} by XLA, {mine.tolist()} by tier 0")
    assert not wrong, "\n".join(wrong)


def op_of(value: Value) -> Op:
    assert value.op is not None
    return value.op


def classes(base: type[Op]) -> list[type[Op]]:
    return [each for sub in base.__subclasses__() for each in [sub, *classes(sub)]]


def test_every_op_of_flatir_has_a_kernel():
    named = {each for each in classes(Op) if each.name and each.__module__.startswith("tenfold.")}
    assert named - set(KERNELS) == {Composite, w.CuttingConvolution}  # the latter for GPUs alone


@pytest.mark.parametrize("kind", ["add", "mul", "max", "min", "and", "or", "xor"])
def test_reductions_agree_in_every_dtype(kind):
    both = Both()
    for dtype in ALL:
        bits = dtype.kind in ("bool", "int")
        if (kind in ("and", "or", "xor") and not bits) or (kind in ("max", "min") and dtype.is_complex):
            continue
        if dtype.kind == "float" and dtype.itemsize == 1 and kind in ("max", "min"):
            continue  # their lowest number is not what XLA starts from
        x = both.input(numbers(dtype, 3, 4, 5))
        both.add(op_of(flat.reduce(x, kind, (0, 2))))
        both.add(op_of(flat.reduce(both.input(numbers(dtype, 2, 0)), kind, (1,))))
    agree(both)


def test_nan_wins_a_reduction_and_infinities_stay():
    both = Both()
    x = both.input(np.array([[np.nan, 1, 2], [np.inf, 5, -np.inf], [-0.0, 0.0, -0.0]], np.float32))
    for kind in ("add", "mul", "max", "min"):
        both.add(op_of(flat.reduce(x, kind, (1,))))
    agree(both)


def test_a_reduction_by_any_body_agrees():
    """The largest and its place, of ties the first; and a body that is not commutative."""
    both = Both()
    values = np.array([[3, 7, 7, 1, 2], [0, -1, -1, 0, 0]], np.float32)
    x, places = both.input(values), both.input(np.tile(np.arange(5, dtype=np.int32), (2, 1)))

    def larger(best, at, value, place):
        take = (value > best) | (flat.eq(value, best) & (place < at))
        return flat.where(take, value, best), flat.where(take, place, at)

    both.values += flat.reduce_with([x, places], [-np.inf, 100], (1,), larger)
    agree(both)


@pytest.mark.parametrize("dtype", [F32, dtypes.bfloat16, dtypes.int32, dtypes.float64], ids=lambda d: d.name)
def test_windows_agree(dtype):
    both = Both()
    x = both.input(numbers(dtype, 2, 9, 7))
    for kind in ("add", "max", "min"):
        for window, strides, padding, dilation, base in [
            ((1, 3, 2), (1, 2, 1), ((0, 0), (1, 1), (0, 1)), (1, 1, 1), (1, 1, 1)),
            ((2, 2, 3), (1, 1, 2), ((1, 0), (0, 0), (2, 2)), (1, 2, 2), (1, 1, 1)),
            ((1, 9, 1), (1, 1, 1), ((0, 0), (8, 0), (0, 0)), (1, 1, 1), (1, 1, 1)),
            ((1, 2, 2), (1, 1, 1), ((0, 0), (-1, 0), (0, 0)), (1, 1, 1), (1, 2, 3)),
        ]:
            both.add(op_of(flat.reduce_window(x, kind, window, strides, padding, dilation, base)))
    agree(both)


@pytest.mark.parametrize("padding", [((0, 0), (0, 0)), ((1, 1), (0, 1))])
def test_select_and_scatter_agrees(padding):
    both = Both()
    x = both.input(np.random.default_rng(0).permutation(42).reshape(6, 7).astype(np.float32))
    counts = [(n + sum(p) - 3) // 2 + 1 for n, p in zip((6, 7), padding, strict=True)]
    scalar = TensorType(F32, ())
    select = flat.function(lambda a, b: flat.ge(a, b), [scalar, scalar])
    source = both.input(numbers(F32, *counts))
    zero = flat.constant(0, F32)
    body = flat.monoid("add", F32)
    both.add(w.SelectAndScatter(x, source, zero, (3, 3), (2, 2), padding, select, body))
    agree(both)


def test_convolutions_agree():
    both = Both()
    numbers_2d = flat.ConvDimensions(0, 1, (2, 3), 1, 0, (2, 3), 0, 1, (2, 3))
    for dtype in (F32, dtypes.bfloat16, dtypes.float64, dtypes.complex64):
        for groups, batches, strides, padding, spread, dilation, flips in [
            (1, 1, (1, 1), ((1, 1), (0, 2)), (1, 1), (1, 1), (False, False)),
            (2, 1, (2, 1), ((1, 0), (1, 1)), (1, 1), (1, 2), (False, False)),
            (4, 1, (1, 1), ((1, 1), (1, 1)), (1, 1), (1, 1), (False, False)),
            (1, 1, (1, 1), ((2, 2), (2, 3)), (2, 3), (1, 1), (True, False)),
            (1, 2, (1, 1), ((0, 0), (1, 1)), (1, 1), (2, 1), (False, True)),
        ]:
            if dtype.is_complex and groups * batches > 1:
                continue
            x = both.input(numbers(dtype, 4, 4, 6, 5))
            kernel = both.input(numbers(dtype, 8, 4 // groups, 3, 2, seed=1))
            settings = (strides, padding, spread, dilation, flips, numbers_2d, groups, batches)
            both.add(w.Convolution(x, kernel, *settings))
    last = flat.ConvDimensions(0, 2, (1,), 1, 2, (0,), 0, 2, (1,))
    x, kernel = both.input(numbers(F32, 2, 7, 6)), both.input(numbers(F32, 3, 1, 6, seed=2))
    both.add(w.Convolution(x, kernel, (1,), ((1, 1),), (1,), (1,), (False,), last, 6, 1))
    agree(both)


def test_products_agree_in_every_dtype():
    both = Both()
    for dtype in NUMBERS:
        x, y = both.input(numbers(dtype, 2, 3, 4)), both.input(numbers(dtype, 4, 2, 5, seed=1))
        both.add(op_of(flat.dot_general(x, y, ((2,), (0,)))))
        both.add(op_of(flat.dot_general(x, y, ((2,), (0,)), ((0,), (1,)))))
        both.add(op_of(flat.dot_general(x, x, ((0, 1, 2), (0, 1, 2)))))
        empty = both.input(numbers(dtype, 3, 0))
        both.add(op_of(flat.dot_general(empty, empty, ((1,), (1,)))))
    half = both.input(numbers(dtypes.bfloat16, 3, 4))
    both.add(op_of(flat.dot_general(half, half, ((1,), (1,)), dtype=F32)))
    agree(both)


@pytest.mark.parametrize("dtype", [F32, dtypes.bfloat16, dtypes.int8, dtypes.uint64], ids=lambda d: d.name)
def test_sorts_agree_also_with_nan(dtype):
    both = Both()
    values = numbers(dtype, 4, 11)
    if dtype.is_floating_point:
        values.reshape(-1)[::5] = np.nan
        values.reshape(-1)[1::7] = -0.0
        values[0, 3], values[0, 5] = np.inf, -np.inf
    x = both.input(values)
    places = both.input(np.tile(np.arange(11), (4, 1)))
    total = dtype.is_floating_point

    def ahead(direction):
        from tenfold.flat import elementwise as e

        return lambda a, b, i, j: e.Compare(a, b, direction, total).result

    for direction in ("LT", "GT"):
        both.values += flat.sort([x, places], 1, ahead(direction))
    by_two = lambda a, b, i, j: (flat.convert(a, F32) * 0 < flat.convert(b, F32) * 0) | (i > j)
    both.values += flat.sort([x, places], 1, by_two)
    both.values += s.TopK(x, 3).results
    agree(both)


def test_a_merge_sort_is_stable_for_any_comparator():
    random = np.random.default_rng(0)
    keys, places = random.integers(0, 5, (3, 100)), np.tile(np.arange(100), (3, 1))
    params = [Value(TensorType(dtypes.int64, (3, 100))) for _ in range(2)]
    by_half = lambda a, b, i, j: flat.div(a, 2) < flat.div(b, 2)
    function = Function(params, flat.sort(params, 1, by_half))
    _, order = tier0.run(function, [keys, places])
    expected = np.argsort(keys // 2, axis=1, kind="stable")
    assert np.array_equal(order, expected)


def test_places_outside_are_moved_inside_or_left_out():
    both = Both()
    x, at = both.input(numbers(F32, 5, 3)), both.input(np.array([[-3], [0], [4], [9]]))
    both.add(Gather(x, at, GatherDimensions((1,), (0,), (0,), 1), (1, 3), False))
    both.add(Gather(x, at, GatherDimensions((1, 2), (), (0,), 1), (2, 2), False))
    scattered = ScatterDimensions((1,), (0,), (0,), 1)
    updates = both.input(numbers(F32, 4, 3, seed=4))
    for kind in ("set", "add", "mul", "max", "min"):
        both.add(Scatter((x,), at, (updates,), scattered, False, False, flat.monoid(kind, F32)))
    start = [both.input(np.array(each, np.int32)) for each in (-2, 7)]
    both.add(d.DynamicSlice(x, tuple(start), (2, 2)))
    both.add(d.DynamicUpdateSlice(x, both.input(numbers(F32, 2, 2, seed=5)), tuple(start)))
    agree(both)


def test_scatters_fold_repeated_places_in_every_dtype():
    both = Both()
    at = both.input(np.array([[1], [3], [1], [1], [0]], np.int32))
    for dtype in NUMBERS:
        x, updates = both.input(numbers(dtype, 4, 2)), both.input(numbers(dtype, 5, 2, seed=1))
        numbers_of = ScatterDimensions((1,), (0,), (0,), 1)
        for kind in ("add", "mul") if dtype.is_complex else ("add", "mul", "max", "min"):
            both.add(Scatter((x,), at, (updates,), numbers_of, False, False, flat.monoid(kind, dtype)))
    agree(both)


def test_moved_data_agrees_in_every_dtype():
    both = Both()
    for dtype in ALL:
        x, scalar = both.input(numbers(dtype, 3, 4)), both.input(numbers(dtype))
        both.add(d.Pad(x, scalar, (1, -1), (-1, 2), (2, 0)))
        both.add(d.Pad(x, scalar, (-2, 3), (0, -4), (1, 2)))
        both.add(d.Reverse(x, (0,)))
        both.add(d.Slice(x, (0, 1), (3, 4), (2, 2)))
        both.add(d.BroadcastInDim(x, (2, 4, 3), (2, 1)))
        both.add(d.BroadcastInDim(scalar, (2, 2), ()))
        both.add(d.Concatenate((x, x), 1))
        both.add(d.Transpose(d.Reshape(x, (2, 6)).result, (1, 0)))
        if dtype.kind != "bool":
            both.add(d.Iota(dtype, (2, 5), 1))
    agree(both)


@pytest.mark.parametrize("state", [[7, 5], [2**63 + 9, 2**64 - 2], [7, 5, 9], [1, 2**64 - 1, 2**64 - 1]])
def test_random_bits_and_states_are_xlas(state):
    both = Both()
    given = both.input(np.array(state, np.uint64))
    for dtype in (dtypes.uint8, dtypes.uint16, dtypes.uint32, dtypes.uint64):
        for shape in ((), (7,), (2, 3), (0,)):
            both.add(s.RngBitGenerator(given, dtype, shape))
    for _, theirs, mine in both.run():
        assert np.array_equal(theirs, mine)


def test_fourier_transforms_agree():
    both = Both()
    for dtype in WIDE:
        x = both.input(numbers(dtype, 2, 4, 6))
        kinds = ("FFT", "IFFT", "IRFFT") if dtype.is_complex else ("RFFT",)
        for kind in kinds:
            for rank in (1, 2):
                lengths = [4, 10 if kind == "IRFFT" else 6][-rank:]
                both.add(op_of(flat.fft(x, kind, lengths)))
    agree(both)


def test_triangular_systems_and_cholesky_factors_agree():
    both = Both()
    for dtype in WIDE:
        root = numbers(dtype, 2, 4, 4) + 5 * np.eye(4, dtype=dtype.numpy)
        positive = root @ np.swapaxes(root.conj(), -1, -2)
        positive[1, 2, 2] = -1
        for lower in (True, False):
            factor = flat.cholesky(both.input(positive), lower)
            part = flat.iota((4, 4), 0), flat.iota((4, 4), 1)
            kept = flat.ge(*part) if lower else flat.ge(*part[::-1])
            both.add(
                op_of(flat.where(flat.broadcast_to(kept, (2, 4, 4)), factor, flat.full((2, 4, 4), 0, dtype)))
            )
        a, b = both.input(root), both.input(numbers(dtype, 2, 4, 4, seed=1))
        for left in (True, False):
            for transposed in s.TRANSPOSES:
                for lower, unit in ((True, False), (False, True)):
                    both.add(s.TriangularSolve(a, b, left, lower, unit, transposed))
    for op, theirs, mine in both.run():
        # One by one: a matrix that is not positive gives NaN.
        np.testing.assert_allclose(mine, theirs, rtol=2e-4, atol=1e-4, err_msg=op.name)


def test_loops_and_branches_agree():
    both = Both()
    count, x = both.input(np.array(0, np.int32)), both.input(numbers(F32, 3))
    both.values += flat.while_loop(lambda i, v: i < 5, lambda i, v: (i + 1, v * 2 + 1), (count, x))
    for index in (-1, 0, 1, 7):
        chosen = both.input(np.array(index, np.int32))
        both.values += flat.case(chosen, [lambda v: v + 1, lambda v: v * 3], [x])
    agree(both)


def test_intermediates_are_freed_at_their_last_use():
    x = Value(TensorType(F32, (1 << 18,)))
    value = x
    for _ in range(40):
        value = flat.mul(value, 1.5)
    function = Function([x], [value])
    tier0.run(function, [np.ones(1 << 18, np.float32)])
    tracemalloc.start()
    try:
        tier0.run(function, [np.ones(1 << 18, np.float32)])
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 5 << 20  # of 40 MiB


def test_a_loop_writes_its_own_array_in_place_and_never_its_arguments():
    zeros = np.zeros(1000, np.float32)
    x = Value(TensorType(F32, (1000,)))
    start = Value(TensorType(dtypes.int32, ()))

    def step(i, v):
        one = flat.reshape(flat.convert(i, F32), (1,))
        return i + 1, d.DynamicUpdateSlice(v, one, (i,)).result

    function = Function([start, x], flat.while_loop(lambda i, v: i < 1000, step, (start, x)))
    _, result = tier0.run(function, [np.array(0, np.int32), zeros])
    assert np.array_equal(result, np.arange(1000))
    assert not zeros.any()
    assert not np.shares_memory(result, zeros)


def test_arguments_are_not_written_when_results_are_views_of_them():
    array = np.arange(6, dtype=np.float32)
    x = Value(TensorType(F32, (6,)))
    zero = Value(TensorType(dtypes.int32, ()))
    whole = flat.reshape(x, (2, 3))
    changed = d.DynamicUpdateSlice(whole, flat.full((1, 3), 9, F32), (zero, zero)).result
    first, second = tier0.run(Function([x, zero], [whole, changed]), [array, np.array(0, np.int32)])
    assert np.array_equal(array, np.arange(6))
    assert np.array_equal(first, array.reshape(2, 3))
    assert second[0].tolist() == [9, 9, 9]


def test_a_plan_is_made_once():
    x = Value(TensorType(F32, (2,)))
    function = Function([x], [flat.tanh(x)])
    assert tier0.plan(function) is tier0.plan(function)


def test_an_unknown_library_call_is_refused_by_name():
    x = Value(TensorType(F32, (2,)))
    call = flat.custom_call("fly_to_the_moon", [x], [x.type])
    with pytest.raises(UnsupportedError, match="fly_to_the_moon"):
        tier0.run(Function([x], call), [np.zeros(2, np.float32)])


def test_a_large_result_takes_the_memory_of_an_intermediate_and_of_nothing_else():
    x = Value(TensorType(F32, (1 << 18,)))
    kept = flat.mul(x, 2.0)
    value = kept
    for _ in range(10):
        value = flat.add(flat.mul(value, 0.5), x)
    function = Function([x], [value, kept, flat.neg(flat.reshape(kept, (1 << 9, 1 << 9)))])
    array = np.ones(1 << 18, np.float32)
    tier0.run(function, [array])
    tracemalloc.start()
    try:
        last, first, turned = tier0.run(function, [array])
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert (array == 1).all() and (first == 2).all() and (turned == -2).all()
    assert (last == 2).all()
    assert peak < 4.5 * array.nbytes  # the three results, and one more
