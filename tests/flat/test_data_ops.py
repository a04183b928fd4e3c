"""Ops that make and move data: their types are StableHLO's, their values NumPy's, bad numbers are refused."""

from __future__ import annotations

import numpy as np
import pytest

from tenfold import flat
from tenfold.base import dtypes
from tenfold.base.dtypes import ALL
from tenfold.base.errors import ArgumentError, DTypeError, IndexOutOfRange, ShapeError
from tenfold.flat import data_ops as m
from tenfold.flat.ir import TensorType
from tests.flat.machine import Machine, check_inference, params, unchecked, verdict

F32, I64 = dtypes.float32, dtypes.int64


def counted(*shape: int, dtype: type = np.float32) -> np.ndarray:
    return np.arange(1, int(np.prod(shape)) + 1).reshape(shape).astype(dtype)


def test_constants_of_every_dtype():
    machine = Machine()
    for dtype in ALL:
        for array in (
            counted(2, 3, dtype=dtype.numpy),
            np.zeros((0, 2), dtype.numpy),
            np.array(1, dtype.numpy),
        ):
            value = flat.constant(array, dtype)
            check_inference(value.op)
            machine.expect("constant", value, array)
    machine.run()
    with pytest.raises(DTypeError, match="an array of float64 is not one of float32"):
        m.Constant(np.zeros(2), F32)


@pytest.mark.parametrize(
    ("number", "dtype", "expected"),
    [
        (300, dtypes.uint8, 44),
        (-1, dtypes.uint64, 2**64 - 1),
        (2**64 - 1, dtypes.uint64, 2**64 - 1),
        (2**63, dtypes.int32, 0),
        (True, dtypes.float32, 1.0),
        (2, dtypes.bool_, True),
        (1e300, dtypes.float32, np.inf),
        (2.5, dtypes.complex64, 2.5),
    ],
)
def test_numbers_take_the_dtype_of_a_constant(number, dtype, expected):
    array = m.array(number, dtype)
    assert (array.dtype, array.shape, array.item()) == (dtype.numpy, (), expected)


@pytest.mark.parametrize(
    ("number", "dtype"), [(1.5, I64), (1j, I64), (1j, F32), (2**64, I64), (-(2**70), dtypes.uint64)]
)
def test_numbers_that_do_not_fit_a_dtype_are_refused(number, dtype):
    with pytest.raises(DTypeError, match="does not fit"):
        flat.constant(number, dtype)


def test_iota_counts_in_every_dtype_but_bool():
    machine = Machine()
    for dtype in ALL:
        if dtype.kind == "bool":
            with pytest.raises(DTypeError, match="bool does not count"):
                m.Iota(dtype, (2, 3), 0)
            assert verdict(unchecked(m.Iota, dtype, (2, 3), 0, results=[TensorType(dtype, (2, 3))]))
            continue
        for dim in (0, 1):
            value = flat.iota((2, 3), dim, dtype)
            check_inference(value.op, own=False)  # its type is an attribute
            machine.expect("iota", value, np.indices((2, 3))[dim])
    machine.expect("empty", flat.arange(0), np.arange(0))
    machine.run()


def test_shapes_change_as_in_numpy():
    machine = Machine()
    a = counted(2, 3, 4)
    x = machine.input(a)
    scalar = machine.input(np.float32(7))
    empty = machine.input(np.zeros((0, 3), np.int64))
    for name, value, expected in [
        ("broadcast", m.BroadcastInDim(x, (5, 2, 3, 4), (1, 2, 3)).result, np.broadcast_to(a, (5, 2, 3, 4))),
        ("broadcast scalar", flat.broadcast_to(scalar, (2, 2)), np.full((2, 2), 7)),
        ("broadcast permuted", m.BroadcastInDim(x, (4, 2, 3), (1, 2, 0)).result, a.transpose(2, 0, 1)),
        ("broadcast empty", flat.broadcast_to(empty, (2, 0, 3)), np.zeros((2, 0, 3))),
        ("reshape", flat.reshape(x, (4, -1)), a.reshape(4, 6)),
        ("reshape empty", flat.reshape(empty, (3, 0, 2)), np.zeros((3, 0, 2))),
        ("reshape scalar", flat.reshape(scalar, (1, 1)), [[7]]),
        ("transpose", flat.transpose(x, (2, 0, 1)), a.transpose(2, 0, 1)),
        ("swap", flat.swap(x, 0, -1), a.swapaxes(0, -1)),
        ("move", flat.move(x, 0, 2), np.moveaxis(a, 0, 2)),
        ("reverse", flat.reverse(x, (0, 2)), a[::-1, :, ::-1]),
        ("slice", flat.slice(x, (0, 1, 0), (2, 3, 4), (1, 1, 3)), a[0:2, 1:3, 0:4:3]),
        ("slice of nothing", flat.slice(x, (1, 1, 2), (1, 3, 2)), a[1:1, 1:3, 2:2]),
        (
            "concatenate",
            m.Concatenate((x, x, flat.slice_dim(x, 1, 0, 1)), 1).result,
            np.concatenate([a, a, a[:, :1]], 1),
        ),
        ("concatenate empty", m.Concatenate((empty, empty), 1).result, np.zeros((0, 6))),
    ]:
        check_inference(value.op, own=not isinstance(value.op, (m.BroadcastInDim, m.Reshape)))
        machine.expect(name, value, expected)
    machine.run()


def padded(a: np.ndarray, value: float, low: list[int], high: list[int], interior: list[int]) -> np.ndarray:
    """By the specification: each element goes to `low + place * (interior + 1)`, if that is inside."""
    shape = [
        lo + hi + n + max(n - 1, 0) * i for lo, hi, n, i in zip(low, high, a.shape, interior, strict=True)
    ]
    result = np.full(shape, value, a.dtype)
    for place in np.ndindex(a.shape):
        to = tuple(lo + p * (i + 1) for lo, p, i in zip(low, place, interior, strict=True))
        if all(0 <= t < n for t, n in zip(to, shape, strict=True)):
            result[to] = a[place]
    return result


@pytest.mark.parametrize("dtype", [np.float32, np.int8, bool, np.complex64])
def test_padding_adds_cuts_and_spreads(dtype):
    machine = Machine()
    a = counted(3, 4, dtype=dtype)
    x, filler = machine.input(a), machine.input(np.array(9, dtype))
    random = np.random.default_rng(0)
    for _ in range(12):
        low, high, interior = (random.integers(*bounds, 2).tolist() for bounds in ((-2, 4), (-1, 4), (0, 3)))
        value = flat.pad(x, low, high, filler, interior)
        check_inference(value.op)
        machine.expect(f"pad {low} {high} {interior}", value, padded(a, 9, low, high, interior))
    machine.run()


@pytest.mark.parametrize("dtype", [each for each in ALL if each.kind == "int"], ids=lambda dtype: dtype.name)
def test_places_known_only_at_run_time_may_be_of_every_integer_dtype(dtype):
    machine = Machine()
    a, update = counted(4, 5), counted(2, 2) * -1
    x, u = machine.input(a), machine.input(update)
    for row, column in ((0, 0), (1, 3), (100, 4)):
        starts = (machine.input(np.array(row), dtype), machine.input(np.array(column), dtype))
        i, j = min(row, 2), min(column, 3)  # what overhangs is moved inside
        taken, put = flat.dynamic_slice(x, starts, (2, 2)), flat.dynamic_update_slice(x, u, starts)
        expected = a.copy()
        expected[i : i + 2, j : j + 2] = update
        machine.expect("slice", taken, a[i : i + 2, j : j + 2])
        machine.expect("update", put, expected)
    check_inference(taken.op)
    check_inference(put.op)
    machine.run()


X, Y, PLACE = params((F32, (2, 3)), (F32, (4, 3)), (I64, ()))


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: m.Iota(I64, (2,), 1), IndexOutOfRange, "dimension 1 is out of range for 1 dimensions"),
        (lambda: m.Iota(I64, (), 0), IndexOutOfRange, "dimension 0 is out of range for 0 dimensions"),
        (lambda: m.Iota(I64, (-2,), 0), ShapeError, r"no negative extents: \[-2\]"),
        (lambda: flat.full((2, -1), 0, F32), ShapeError, r"no negative extents: \[2, -1\]"),
        (lambda: m.BroadcastInDim(X, (2, 3), (0,)), ShapeError, "do not place"),
        (lambda: m.BroadcastInDim(X, (2, 3), (0, 0)), ShapeError, "do not place"),
        (lambda: m.BroadcastInDim(X, (2, 3), (0, 2)), ShapeError, "do not place"),
        (
            lambda: m.BroadcastInDim(X, (4, 3), (0, 1)),
            ShapeError,
            r"cannot broadcast f32\[2,3\] to \[4, 3\]: 2 and 4",
        ),
        (lambda: flat.broadcast_to(X, (3,)), ShapeError, "it has more dimensions"),
        (lambda: m.Reshape(X, (4, 2)), ShapeError, "6 elements and 8"),
        (lambda: m.Reshape(X, (-2, -3)), ShapeError, "no negative extents"),
        (lambda: flat.reshape(X, (-1, -1)), ShapeError, "only one dimension can be inferred"),
        (lambda: flat.reshape(X, (-1, 4)), ShapeError, "6 elements do not divide by 4"),
        (lambda: flat.reshape(X, (-1, 0)), ShapeError, "do not divide by 0"),
        (lambda: m.Transpose(X, (0, 0)), ShapeError, "is not a permutation of the 2 dimensions"),
        (lambda: m.Transpose(X, (0,)), ShapeError, "is not a permutation"),
        (lambda: m.Slice(X, (0,), (1,), (1,)), ShapeError, "slice: 1 numbers for the 2 dimensions"),
        (lambda: m.Slice(X, (0, 0), (2, 4), (1, 1)), IndexOutOfRange, "slice 0:4:1 does not fit dimension 1"),
        (lambda: m.Slice(X, (0, -1), (2, 3), (1, 1)), IndexOutOfRange, "slice -1:3:1 does not fit"),
        (lambda: m.Slice(X, (0, 2), (2, 1), (1, 1)), IndexOutOfRange, "slice 2:1:1 does not fit"),
        (lambda: m.Slice(X, (0, 0), (2, 3), (1, 0)), IndexOutOfRange, "slice 0:3:0 does not fit"),
        (
            lambda: m.DynamicSlice(X, (PLACE,), (1, 1)),
            ShapeError,
            "dynamic_slice: 1 numbers for the 2 dimensions",
        ),
        (lambda: m.DynamicSlice(X, (PLACE, PLACE), (1,)), ShapeError, "dynamic_slice: 1 numbers"),
        (lambda: m.DynamicSlice(X, (PLACE, PLACE), (1, 4)), ShapeError, r"sizes \[1, 4\] exceed f32\[2,3\]"),
        (lambda: m.DynamicSlice(X, (PLACE, PLACE), (1, -1)), ShapeError, "no negative extents"),
        (
            lambda: m.DynamicSlice(X, (X, PLACE), (1, 1)),
            DTypeError,
            r"integers of one dtype, not f32\[2,3\], i64\[\]",
        ),
        (
            lambda: m.DynamicSlice(X, (PLACE, flat.constant(0, dtypes.int32)), (1, 1)),
            DTypeError,
            "integers of one dtype",
        ),
        (
            lambda: m.DynamicUpdateSlice(X, PLACE, (PLACE, PLACE)),
            ShapeError,
            "0 numbers for the 2 dimensions",
        ),
        (
            lambda: m.DynamicUpdateSlice(X, Y, (PLACE, PLACE)),
            ShapeError,
            r"f32\[4,3\] is larger than f32\[2,3\]",
        ),
        (lambda: m.DynamicUpdateSlice(X, X, (PLACE,)), ShapeError, "1 numbers for the 2 dimensions"),
        (lambda: m.DynamicUpdateSlice(X, X, (X, X)), DTypeError, "integers of one dtype"),
        (
            lambda: m.DynamicUpdateSlice(X, flat.convert(X, I64), (PLACE, PLACE)),
            DTypeError,
            "their dtypes differ",
        ),
        (lambda: m.Concatenate((), 0), ArgumentError, "an empty list of tensors"),
        (lambda: m.Concatenate((PLACE, PLACE), 0), IndexOutOfRange, "dimension 0 is out of range for i64"),
        (lambda: m.Concatenate((X, Y), 2), IndexOutOfRange, "dimension 2 is out of range"),
        (lambda: m.Concatenate((X, Y), 1), ShapeError, r"cannot join f32\[2,3\] and f32\[4,3\] \(tensor 1\)"),
        (lambda: m.Concatenate((X, flat.convert(X, I64)), 0), DTypeError, "their dtypes differ"),
        (lambda: flat.pad(X, (0,), (0, 0)), ShapeError, "pad: 1 numbers for the 2 dimensions"),
        (lambda: flat.pad(X, (0, 0), (0, 0), 0, (0, -1)), ShapeError, "interior padding .* is negative"),
        (lambda: flat.pad(X, (-2, 0), (-1, 0)), ShapeError, r"would make dimension 0 of f32\[2,3\] negative"),
        (lambda: flat.pad(X, (0, 0), (0, 0), PLACE), DTypeError, r"i64\[\] cannot fill f32\[2,3\]"),
        (lambda: flat.pad(X, (0, 0), (0, 0), X), DTypeError, "cannot fill"),
        (lambda: m.Reverse(X, (2,)), ShapeError, "are not distinct dimensions"),
        (lambda: m.Reverse(X, (1, 1)), ShapeError, "are not distinct dimensions"),
    ],
)
def test_numbers_that_do_not_fit_are_refused(make, error, message):
    with pytest.raises(error, match=message):
        make()


def test_equal_numbers_share_an_array_that_nobody_writes():
    array = m.array
    two = array(2.0, dtypes.float32)
    assert array(2.0, dtypes.float32) is two and not two.flags.writeable
    assert array(2, dtypes.float32) is not two and array(2.0, dtypes.float64) is not two
    zeros = [np.signbit(array(zero, dtypes.float32)) for zero in (0.0, -0.0)]
    assert zeros == [False, True]
