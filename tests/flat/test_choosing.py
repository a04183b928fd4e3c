"""Ops that choose, compare and convert element by element: compare, select, clamp, complex,
convert, bitcast and their like."""

from __future__ import annotations

import itertools

import ml_dtypes
import numpy as np
import pytest

from tenfold import flat
from tenfold.base import dtypes
from tenfold.base.dtypes import ALL
from tenfold.base.errors import ArgumentError, DTypeError, ShapeError
from tenfold.flat import elementwise as e
from tenfold.flat.ir import TensorType
from tests.flat.machine import Machine, check_inference, params, unchecked, verdict

COMPARISONS = {
    "EQ": np.equal,
    "NE": np.not_equal,
    "GE": np.greater_equal,
    "GT": np.greater,
    "LE": np.less_equal,
    "LT": np.less,
}
FLOATS = [0.0, -0.0, 1.5, -2.0, np.inf, -np.inf, np.nan]


def numbers(dtype: dtypes.DType) -> np.ndarray:
    """Some numbers that the dtype holds exactly, its limits among them."""
    if dtype.kind == "bool":
        return np.array([True, False])
    if dtype.kind == "int":
        limits = np.iinfo(dtype.numpy)
        return np.array([0, 1, 7, limits.max, limits.min], dtype.numpy)
    if dtype.kind == "complex":
        return np.array([0, 1.5 - 2j, -2 + 1.5j, 1.5 + 2j], dtype.numpy)
    return np.array(FLOATS if dtype is not dtypes.float8_e4m3fn else FLOATS[:4]).astype(dtype.numpy)


def test_comparisons_are_numpys():
    machine = Machine()
    for dtype in ALL:
        pairs = list(itertools.product(numbers(dtype), repeat=2))
        left = np.array([x for x, _ in pairs], dtype.numpy)
        right = np.array([y for _, y in pairs], dtype.numpy)
        x, y = machine.input(left), machine.input(right)
        for direction, compare in COMPARISONS.items():
            if dtype.is_complex and direction not in ("EQ", "NE"):
                with pytest.raises(DTypeError, match="complex numbers have no order") as raised:
                    e.Compare(x, y, direction, False)
                assert "abs" in raised.value.help
                continue
            with np.errstate(invalid="ignore"):
                machine.expect(direction, flat.compare(x, y, direction), compare(left, right))
    machine.run()


def test_a_total_order_has_places_for_nan_and_negative_zero():
    machine = Machine()
    values = np.array([np.nan, 1.0, 0.0, -0.0, -np.inf, -np.nan, np.inf])
    order = np.array([6, 4, 3, 2, 1, 0, 5])
    left, right = np.meshgrid(np.arange(7), np.arange(7))
    for dtype in (np.float32, np.float64, ml_dtypes.bfloat16):
        x, y = machine.input(values[left].astype(dtype)), machine.input(values[right].astype(dtype))
        for direction, compare in COMPARISONS.items():
            value = flat.compare(x, y, direction, total_order=True)
            machine.expect(direction, value, compare(order[left], order[right]))
    machine.run(interpreter=False)  # it orders as without


@pytest.mark.parametrize(
    "dtype", [each for each in ALL if each.kind != "float"], ids=lambda dtype: dtype.name
)
def test_a_total_order_is_one_of_floats(dtype):
    with pytest.raises(DTypeError, match="a total order is one of floats"):
        e.Compare(*params((dtype, (2,)), (dtype, (2,))), "EQ", True)


def test_select_and_clamp_take_elements_of_every_dtype():
    machine = Machine()
    choice = np.array([True, False, True])
    for dtype in ALL:
        a, b = (np.resize(numbers(dtype), 3), np.resize(numbers(dtype)[::-1], 3))
        x, y = machine.input(a), machine.input(b)
        machine.expect("select", flat.where(machine.input(choice), x, y), np.where(choice, a, b))
        check_inference(e.Select(*params((dtypes.bool_, (3,)), (dtype, (3,)), (dtype, (3,)))))
        if dtype.kind in ("int", "float"):
            low, high = np.array(0, dtype.numpy), np.array(1, dtype.numpy)
            value = e.Clamp(flat.full((3,), 0, dtype), x, flat.full((3,), 1, dtype)).result
            machine.expect("clamp", value, np.minimum(np.maximum(a, low), high))
            check_inference(e.Clamp(*params(*[(dtype, (3,))] * 3)))
    machine.run()


def test_complex_numbers_are_made_of_two_floats():
    machine = Machine()
    for dtype in (np.float32, np.float64):
        re, im = np.array([1.5, -0.0, 3.0], dtype), np.array([0.25, 2.0, -1.0], dtype)
        value = flat.complex(machine.input(re), machine.input(im))
        machine.expect("complex", value, re + 1j * im)
        machine.expect("conjugate", flat.conj(value), re - 1j * im)
        check_inference(value.op)
    machine.run()
    for dtype in ALL:
        if dtype not in (dtypes.float32, dtypes.float64):
            with pytest.raises(DTypeError, match="complex needs float32 or float64 parts"):
                e.Complex(*params((dtype, (2,)), (dtype, (2,))))


def converted(array: np.ndarray, dtype: dtypes.DType) -> np.ndarray:
    """As PyTorch converts: towards zero, and into narrow integers by way of a wider one."""
    if dtype.kind == "bool":
        return array != 0
    array = array.real if array.dtype.kind == "c" and not dtype.is_complex else array
    if dtype.kind == "int" and array.dtype.kind not in "biu":
        array = np.trunc(array.astype(np.float64)).astype(np.int64)
    with np.errstate(all="ignore"):
        return array.astype(dtype.numpy)


@pytest.mark.parametrize("source", ALL, ids=lambda dtype: dtype.name)
def test_every_dtype_converts_to_every_other(source):
    machine = Machine()
    array = np.array([0, 1, 2, 5, 100], np.float64).astype(source.numpy)
    if source.is_signed and source.kind != "bool":
        array = np.concatenate([array, np.array([-1, -2, -7]).astype(source.numpy)])
    if source.kind in ("float", "complex"):
        array = np.concatenate([array, np.array([1.5, 2.75, -3.5, 0.25]).astype(source.numpy)])
    x = machine.input(array)
    for dtype in ALL:
        machine.expect(f"convert to {dtype.name}", flat.convert(x, dtype), converted(array, dtype))
    machine.run()


def test_floats_beyond_their_range_become_infinite():
    machine = Machine()
    array = np.array([1e300, -1e300, 7e4, np.inf, np.nan])
    x = machine.input(array)
    for dtype in (dtypes.float16, dtypes.bfloat16, dtypes.float32):
        machine.expect(dtype.name, flat.convert(x, dtype), array)
    machine.run()


def bits(dtype: dtypes.DType) -> bool:
    return dtype.kind in ("int", "float")


@pytest.mark.parametrize("source", [each for each in ALL if bits(each)], ids=lambda dtype: dtype.name)
def test_bits_are_read_as_those_of_another_dtype(source):
    machine = Machine()
    array = np.arange(1, 33, dtype=np.uint8).view(source.numpy)
    for dtype in filter(bits, ALL):
        ratio = dtype.itemsize // source.itemsize
        shaped = array.reshape(-1, ratio) if ratio > 1 else array
        found = array.view(dtype.numpy)
        wanted = found.reshape(len(array), -1) if dtype.itemsize < source.itemsize else found
        value = flat.bitcast(machine.input(shaped), dtype)
        machine.expect(f"as {dtype.name}", value, wanted)
        if dtype is not source:
            check_inference(value.op, own=False)
    machine.run()


def test_bits_that_cannot_be_read_otherwise_are_refused():
    for source, dtype in itertools.product(ALL, ALL):
        if source.kind == dtype.kind or (bits(source) and bits(dtype)):
            continue
        (x,) = params((source, (2, 16)))
        with pytest.raises(DTypeError, match=f"the bits of {source.name} cannot be read as {dtype.name}"):
            e.BitcastConvert(x, dtype)
        shape = (2, 16) if source.itemsize == dtype.itemsize else (2, 16, 2)
        assert verdict(unchecked(e.BitcastConvert, x, dtype, results=[TensorType(dtype, shape)]))
    with pytest.raises(ShapeError, match=r"cannot view i16\[3\] as int32: the last dimension must be 2"):
        e.BitcastConvert(*params((dtypes.int16, (3,))), dtypes.int32)


def test_reduced_precision_rounds_the_mantissa():
    machine = Machine()
    array = np.array([1.0, 1 + 2**-10, 1 + 2**-11, 3.14159265, 70000.0, 1e-8], np.float32)
    value = e.ReducePrecision(machine.input(array), 5, 10).result
    check_inference(value.op)
    with np.errstate(over="ignore"):
        machine.expect("as float16", value, np.where(array < 1e-7, 0, array.astype(np.float16)))
    machine.expect(
        "as bfloat16", e.ReducePrecision(machine.input(array), 8, 7).result, array.astype(ml_dtypes.bfloat16)
    )
    machine.run()
    (x,) = params((dtypes.float32, (2,)))
    for exponent, mantissa in ((0, 10), (5, -1)):
        with pytest.raises(ArgumentError, match="there are no floats of"):
            e.ReducePrecision(x, exponent, mantissa)
    with pytest.raises(DTypeError, match="reduce_precision is not defined for int32"):
        e.ReducePrecision(*params((dtypes.int32, (2,))), 5, 10)


def test_a_barrier_changes_nothing():
    machine = Machine()
    arrays = [np.array([1.5, 2.5], np.float32), np.array(3), np.zeros((0, 2), bool)]
    values = flat.barrier(*(machine.input(each) for each in arrays))
    check_inference(values[0].op)
    for value, array in zip(values, arrays, strict=True):
        machine.expect("barrier", value, array)
    machine.run()


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda x, y, z: e.Add(x, y), ShapeError, r"operands differ in shape: f32\[2,3\] and f32\[3\]"),
        (lambda x, y, z: e.Add(x, z), DTypeError, r"operands differ in dtype: f32\[2,3\] and i64\[2,3\]"),
        (lambda x, y, z: e.Compare(x, z, "EQ", False), DTypeError, "operands differ in dtype"),
        (lambda x, y, z: e.Compare(x, y, "EQ", False), ShapeError, "operands differ in shape"),
        (lambda x, y, z: e.Compare(x, x, "equal", False), ArgumentError, "'equal' is not one of EQ, NE, GE"),
        (lambda x, y, z: e.Select(x, x, x), DTypeError, "the condition must be bool, not float32"),
        (lambda x, y, z: e.Select(flat.eq(x, x), x, z), DTypeError, "operands differ in dtype"),
        (lambda x, y, z: e.Select(flat.eq(y, y), x, x), ShapeError, "operands differ in shape"),
        (lambda x, y, z: e.Clamp(y, x, y), ShapeError, "operands differ in shape"),
        (lambda x, y, z: e.Clamp(z, x, z), DTypeError, "operands differ in dtype"),
        (lambda x, y, z: e.Clamp(*[flat.complex(x, x)] * 3), DTypeError, "clamp is not defined for complex"),
        (lambda x, y, z: e.Complex(x, y), ShapeError, "operands differ in shape"),
    ],
)
def test_operands_that_do_not_go_together_are_refused(make, error, message):
    with pytest.raises(error, match=message):
        make(*params((dtypes.float32, (2, 3)), (dtypes.float32, (3,)), (dtypes.int64, (2, 3))))
