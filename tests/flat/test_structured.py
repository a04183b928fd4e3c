"""Ops that compute across elements: contractions, reductions, sorting, control flow, library calls."""

from __future__ import annotations

import numpy as np
import pytest

from tenfold import flat
from tenfold.base import dtypes
from tenfold.base.dtypes import ALL
from tenfold.base.errors import ArgumentError, DTypeError, IndexOutOfRange, ShapeError
from tenfold.engines import xla
from tenfold.flat import structured as s
from tenfold.flat.ir import Function, TensorType, Value
from tenfold.mlir import stablehlo
from tests.flat.machine import CPU, Machine, check_inference, params, verdict

F32, F64, I32, I64, C64 = dtypes.float32, dtypes.float64, dtypes.int32, dtypes.int64, dtypes.complex64


def test_contractions_are_numpys():
    machine, random = Machine(), np.random.default_rng(0)
    for dtype in (np.float32, np.float64, np.float16, np.int32, np.uint8, np.complex64):
        x, y = (random.integers(0, 4, shape).astype(dtype) for shape in ((2, 3, 4), (4, 2, 5)))
        for contract, batch, equation in [
            (((2,), (0,)), ((), ()), "abc,cde->abde"),
            (((2,), (0,)), ((0,), (1,)), "abc,cae->abe"),
            (((0,), (1,)), ((), ()), "abc,dae->bcde"),
            (((0, 2), (1, 0)), ((), ()), "abc,cae->be"),
            (((), ()), ((2,), (0,)), "abc,cde->cabde"),
        ]:
            value = flat.dot_general(machine.input(x), machine.input(y), contract, batch)
            check_inference(value.op, dtype=False)
            machine.expect(equation, value, np.einsum(equation, x, y))
    machine.run()


def test_contractions_may_be_summed_in_a_wider_dtype():
    machine = Machine()
    x = np.full((1, 4096), 1, np.float16)
    value = flat.dot_general(machine.input(x), machine.input(x), ((1,), (1,)), dtype=F32)
    machine.expect("sum", value, [[4096]])
    empty = machine.input(np.zeros((2, 0), np.float32))
    machine.expect("of nothing", flat.dot_general(empty, empty, ((1,), (1,))), np.zeros((2, 2)))
    machine.run(interpreter=False)  # it ends the process over two dtypes


def test_reductions_are_numpys():
    machine = Machine()
    folds = {"add": np.sum, "mul": np.prod, "max": np.max, "min": np.min}
    x = np.random.default_rng(1).integers(1, 3, (2, 3, 4))
    for dtype in ALL:
        if dtype.kind == "bool":
            continue
        array = x.astype(dtype.numpy)
        for kind, fold in folds.items():
            if dtype.is_complex and kind in ("max", "min"):
                continue
            wide = array.astype(np.float64) if dtype.kind == "float" else array
            value = flat.reduce(machine.input(array), kind, (0, 2))
            machine.expect(kind, value, fold(wide, (0, 2)).astype(dtype.numpy))
    check_inference(value.op)
    flags = x > 1
    machine.expect("and", flat.reduce(machine.input(flags), "and", 1), flags.all(1))
    machine.expect("or", flat.reduce(machine.input(flags), "or", 1), flags.any(1))
    machine.expect("and of bits", flat.reduce(machine.input(x), "and", 1), np.bitwise_and.reduce(x, 1))
    empty = machine.input(np.zeros((2, 0), np.float32))
    machine.expect("sum of nothing", flat.reduce(empty, "add", 1), [0, 0])
    machine.expect("largest of nothing", flat.reduce(empty, "max", 1), [-np.inf, -np.inf])
    machine.run()


def test_several_tensors_are_folded_and_sorted_together():
    machine = Machine()
    x, places = np.float32([[3, 1, 2], [5, 9, 7]]), np.tile(np.arange(3), (2, 1))

    def larger(a: Value, i: Value, b: Value, j: Value) -> tuple[Value, Value]:
        return flat.where(a < b, b, a), flat.where(a < b, j, i)

    a, i = machine.input(x), machine.input(places)
    folded = flat.reduce_with((a, i), (-np.inf, 0), (1,), larger)
    check_inference(folded[0].op)
    machine.expect("largest", folded[0], x.max(1))
    machine.expect("and where", folded[1], x.argmax(1))
    for dim in (0, 1):
        ordered = flat.sort((a, i, i), dim, lambda left, right, *_: left < right)
        check_inference(ordered[0].op)
        machine.expect("sorted", ordered[0], np.sort(x, dim))
        machine.expect("and from where", ordered[2], np.take_along_axis(places, np.argsort(x, dim), dim))
    machine.run()


def test_a_stable_sort_keeps_equals_in_order():
    machine = Machine()
    keys = np.random.default_rng(2).integers(0, 3, 64)
    _, order = flat.sort((machine.input(keys), flat.arange(64)), 0, lambda a, b, *_: a < b)
    machine.expect("order", order, np.argsort(keys, kind="stable"))
    machine.run()


def test_the_largest_come_first():
    machine = Machine()
    for dtype in (np.float32, np.int8, np.uint16):
        x = np.array([[3, 1, 4, 1, 5], [9, 2, 6, 5, 3]], dtype)
        for k in (0, 2, 5):
            values, places = flat.top_k(machine.input(x), k)
            order = np.argsort(-x.astype(int), 1, kind="stable")[:, :k]
            machine.expect("values", values, np.take_along_axis(x, order, 1))
            machine.expect("places", places, order)
    check_inference(values.op)
    machine.run(interpreter=False)  # it does not know top_k
    for dtype in ALL:
        (x,) = params((dtype, (3,)))
        if dtype.kind not in ("int", "float"):
            with pytest.raises(DTypeError, match=f"top_k is not defined for {dtype.name}"):
                flat.top_k(x, 1)


def test_loops_and_branches():
    machine = Machine()
    start = machine.input(np.int64(1)), machine.input(np.float32([1, 2]))
    loop = flat.while_loop(lambda n, x: n < 10, lambda n, x: (n * 2, x + flat.convert(n, F32)), start)
    check_inference(loop[0].op, own=False)
    machine.expect("counter", loop[0], 16)
    machine.expect("sum", loop[1], np.float32([16, 17]))
    never = flat.while_loop(lambda n, x: flat.constant(False, dtypes.bool_), lambda n, x: (n, x), start)
    machine.expect("not entered", never[0], 1)
    for index, expected in ((0, 2.0), (1, 8.0), (2, -4.0), (7, -4.0), (-1, -4.0)):
        branches = (lambda x: x / 2, lambda x: x * 2, lambda x: -x)
        (value,) = flat.case(machine.input(np.int32(index)), branches, [machine.input(np.float32(4))])
        machine.expect(f"branch {index}", value, expected)
    check_inference(value.op, own=False)
    for flag in (True, False):
        (value,) = flat.cond(
            machine.input(np.array(flag)), lambda: flat.constant(1, I64), lambda: flat.constant(2, I64), []
        )
        machine.expect(f"condition {flag}", value, 1 if flag else 2)
    machine.run()


@pytest.mark.parametrize(
    "dtype", [each for each in ALL if each.name.startswith("uint")], ids=lambda dtype: dtype.name
)
def test_random_bits_are_uniform_and_the_state_moves_on(dtype):
    (state,) = params((dtypes.uint64, (2,)))
    after, bits = flat.random_bits(state, (4096,), dtype)
    again, more = flat.random_bits(after, (4096,), dtype)
    check_inference(bits.op, own=False)
    run = xla.compile(stablehlo.emit(Function([state], [after, bits, again, more])), CPU)
    first, drawn, second, others = map(xla.fetch, run([xla.put(np.array([1, 2], np.uint64), CPU)]))
    assert drawn.dtype == dtype.numpy and len({(1, 2), tuple(first), tuple(second)}) == 3
    assert not np.array_equal(drawn, others)
    ones = np.unpackbits(drawn.view(np.uint8)).mean()
    assert abs(ones - 0.5) < 0.02


def test_fourier_transforms_are_numpys():
    machine, random = Machine(), np.random.default_rng(3)
    for real, close in ((np.float32, 1e-5), (np.float64, 1e-12)):
        x = random.normal(size=(2, 3, 4, 5)).astype(real)
        z = (x + 1j * x[::-1]).astype(np.result_type(real, np.complex64))
        for count in (1, 2, 3):
            dims, lengths = tuple(range(4 - count, 4)), x.shape[4 - count :]
            half = np.fft.rfftn(x, axes=dims).astype(z.dtype)
            for kind, array, expected in [
                ("FFT", z, np.fft.fftn(z, axes=dims)),
                ("IFFT", z, np.fft.ifftn(z, axes=dims)),
                ("RFFT", x, np.fft.rfftn(x, axes=dims)),
                ("IRFFT", half, x),
            ]:
                value = flat.fft(machine.input(array), kind, lengths)
                check_inference(value.op)
                machine.expect(f"{kind} of {count} dimensions", value, expected, close * 60)
    machine.run(interpreter=False)  # it does not know fft


def test_triangular_matrices():
    machine, random = Machine(), np.random.default_rng(4)
    for dtype, close in ((np.float32, 1e-4), (np.float64, 1e-11), (np.complex128, 1e-11)):
        root = random.normal(size=(2, 3, 3)) + 3 * np.eye(3)
        root = (root + 1j * random.normal(size=root.shape) if dtype is np.complex128 else root).astype(dtype)
        whole = root @ root.conj().swapaxes(-1, -2)
        lower = np.linalg.cholesky(whole)
        value = flat.cholesky(machine.input(whole))
        check_inference(value.op)
        machine.expect("cholesky", flat.mul(value, mask(machine, dtype)), lower, close)
        b = random.normal(size=(2, 3, 2)).astype(dtype)
        for transpose_a, a in [
            ("NO_TRANSPOSE", lower),
            ("TRANSPOSE", lower.swapaxes(-1, -2)),
            ("ADJOINT", lower.conj().swapaxes(-1, -2)),
        ]:
            solved = flat.triangular_solve(machine.input(lower), machine.input(b), transpose_a=transpose_a)
            machine.expect(transpose_a, solved, np.linalg.solve(a, b), close)
        check_inference(solved.op)
        c = b.swapaxes(-1, -2)
        right = flat.triangular_solve(machine.input(lower), machine.input(c), left=False)
        machine.expect("on the right", right, c @ np.linalg.inv(lower), close)
        unit = flat.triangular_solve(machine.input(lower), machine.input(b), unit=True)
        strict = lower * np.tri(3, k=-1) + np.eye(3)
        machine.expect("unit diagonal", unit, np.linalg.solve(strict, b), close)
    machine.run(interpreter=False)  # it knows neither


def mask(machine: Machine, dtype: type) -> Value:
    """What XLA leaves above the diagonal is not said."""
    return machine.input(np.broadcast_to(np.tri(3), (2, 3, 3)).astype(dtype))


def test_a_call_of_a_named_function():
    x, y = params((F32, (2, 3)), (F32, (2, 3)))
    one = flat.custom_call("somewhere", [x, y], [x.type], [("scale", "2 : i32")], [(0, 1)])
    several = flat.custom_call("elsewhere", [x], [x.type, TensorType(I64, ())], aliases=[(0, 0)])
    text = stablehlo.emit(Function([x, y], [*one, *several])).text()
    assert verdict(one[0].op) == verdict(several[0].op) == ""
    assert "stablehlo.custom_call @somewhere" in text and "backend_config = {scale = 2 : i32}" in text
    assert "operand_index = 1" in text and "output_tuple_indices = [0]" in text


def test_a_check_adds_its_verdict_to_the_results():
    x, low, high = params((F32, (3,)), (F32, ()), (F32, ()))
    first = flat.check(x, flat.ge(x, low), ShapeError, "too low")
    second = flat.check(first, flat.le(x, high), DTypeError, "too high")
    module = stablehlo.emit(Function([x, low, high], [second]))
    assert [each.message for each in module.checks] == ["too low", "too high"]
    run = xla.compile(module, CPU)
    array = np.float32([1, 2, 3])
    for bounds, expected in (((0, 9), 0), ((2, 9), 1), ((0, 2), 2), ((2, 2), 1)):
        buffers = [xla.put(each, CPU) for each in (array, *map(np.array, np.float32(bounds)))]
        value, code = map(xla.fetch, run(buffers))
        assert np.array_equal(value, array) and code == expected


X, Y, N, INDEX, FLAG = params((F32, (2, 3)), (F32, (3, 4)), (I64, ()), (I32, ()), (dtypes.bool_, ()))
Z, SQUARE, STATE = params((C64, (2, 3)), (F32, (3, 3)), (dtypes.uint64, (2,)))
ZERO = flat.constant(0.0, F32)
ADD = flat.monoid("add", F32)
LESS = flat.function(flat.lt, [TensorType(F32, ())] * 2)


def dot(contract, batch=((), ()), x=X, y=Y):
    return flat.dot_general(x, y, contract, batch)


def same(*types: TensorType) -> Function:
    return flat.function(lambda *values: values, types)


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: dot(((0,), (0,))), ShapeError, "contracted dimensions 2 and 3 differ"),
        (lambda: dot(((), ()), ((1,), (1,))), ShapeError, "batch dimensions 3 and 4 differ"),
        (lambda: dot(((1,), ())), ShapeError, "1 contracted dimensions of one and 0 of the other"),
        (lambda: dot(((2,), (0,))), IndexOutOfRange, r"\[2\] are not distinct dimensions of f32\[2,3\]"),
        (lambda: dot(((1, 1), (0, 0))), IndexOutOfRange, "are not distinct dimensions"),
        (lambda: dot(((1,), (0,)), ((1,), (1,))), IndexOutOfRange, "are not distinct dimensions"),
        (lambda: dot(((1,), (0,)), y=flat.convert(Y, F64)), DTypeError, "their dtypes differ"),
        (lambda: s.Reduce((X,), (ZERO,), (2,), ADD), IndexOutOfRange, "dimension 2 is out of range"),
        (lambda: s.Reduce((X,), (ZERO,), (0, 0), ADD), ShapeError, "a dimension appears twice"),
        (lambda: s.Reduce((X, X), (ZERO,), (0,), ADD), ArgumentError, "1 initial values for 2 tensors"),
        (lambda: s.Reduce((), (), (), ADD), ArgumentError, "0 initial values for 0 tensors"),
        (lambda: s.Reduce((X,), (N,), (0,), ADD), DTypeError, r"i64\[\] cannot be the initial value for f32"),
        (lambda: s.Reduce((X,), (ZERO,), (0,), LESS), ArgumentError, "reduce: its body must turn"),
        (lambda: s.Sort((), 0, True, LESS), ArgumentError, "nothing to sort"),
        (lambda: s.Sort((X, Y), 0, True, LESS), ShapeError, "sorted together differ in shape"),
        (lambda: s.Sort((X,), 2, True, LESS), IndexOutOfRange, "dimension 2 is out of range"),
        (lambda: s.Sort((X,), 0, True, ADD), ArgumentError, "its comparator must turn"),
        (lambda: flat.top_k(X, 4), IndexOutOfRange, r"k=4 is out of range for f32\[2,3\]"),
        (lambda: flat.top_k(X, -1), IndexOutOfRange, "k=-1 is out of range"),
        (lambda: flat.top_k(N, 0), IndexOutOfRange, "out of range"),
        (lambda: s.While((N,), same(N.type), same(N.type)), ArgumentError, "while: the condition must turn"),
        (
            lambda: flat.while_loop(lambda n: n < 1, lambda n: n < 1, [N]),
            ArgumentError,
            "while: the body must turn",
        ),
        (lambda: s.While((N,), LESS, same(N.type)), ArgumentError, "while: the condition must turn"),
        (lambda: s.Case(INDEX, (), ()), ArgumentError, "there are no branches"),
        (lambda: s.Case(N, (), (same(),)), DTypeError, r"the index must be i32\[\], not i64\[\]"),
        (
            lambda: s.Case(INDEX, (X,), (same(X.type), same(N.type))),
            ShapeError,
            "the branches give different types",
        ),
        (
            lambda: s.Case(INDEX, (X,), (same(N.type), same(N.type))),
            ArgumentError,
            "case: branch 0 must turn",
        ),
        (lambda: flat.random_bits(STATE, (2,), I32), DTypeError, "unsigned integers, not int32"),
        (
            lambda: flat.random_bits(X, (2,), dtypes.uint8),
            DTypeError,
            r"u64\[2\] or u64\[3\], not f32\[2,3\]",
        ),
        (lambda: flat.random_bits(STATE, (-2,), dtypes.uint8), ShapeError, "no negative extents"),
        (lambda: flat.fft(Z, "DFT", (3,)), ArgumentError, "'DFT' is not one of FFT, IFFT, RFFT, IRFFT"),
        (
            lambda: flat.fft(X, "FFT", (3,)),
            DTypeError,
            "fft takes complex64 and complex128 tensors, not float32",
        ),
        (lambda: flat.fft(Z, "RFFT", (3,)), DTypeError, "rfft takes float32 and float64 tensors"),
        (lambda: flat.fft(Z, "FFT", ()), ShapeError, "0 transformed dimensions do not fit"),
        (lambda: flat.fft(Z, "FFT", (2, 2, 3)), ShapeError, "3 transformed dimensions do not fit"),
        (lambda: flat.fft(Z, "FFT", (4,)), ShapeError, r"fft of length \[4\] does not fit c64\[2,3\]"),
        (lambda: flat.fft(Z, "IRFFT", (3,)), ShapeError, "irfft of length"),
        (lambda: flat.cholesky(X), ShapeError, "square matrices"),
        (lambda: flat.cholesky(flat.convert(SQUARE, I64)), DTypeError, "cholesky is not defined for int64"),
        (lambda: flat.triangular_solve(X, X), ShapeError, "square matrices"),
        (lambda: flat.triangular_solve(SQUARE, X), ShapeError, "does not fit"),
        (lambda: flat.triangular_solve(SQUARE, flat.convert(Y, F64)), DTypeError, "differ in dtype"),
        (lambda: flat.triangular_solve(SQUARE, ZERO), ShapeError, "does not fit"),
        (
            lambda: flat.triangular_solve(SQUARE, Y, transpose_a="T"),
            ArgumentError,
            "'T' is not one of NO_TRANSPOSE",
        ),
        (lambda: flat.custom_call("", [X], [X.type]), ArgumentError, "needs a target name"),
        (lambda: flat.custom_call("f", [X], [X.type], aliases=[(1, 0)]), IndexOutOfRange, "no result 1"),
        (
            lambda: flat.custom_call("f", [X], [Y.type], aliases=[(0, 0)]),
            ShapeError,
            "cannot share the memory",
        ),
        (lambda: s.Check(X, X, ShapeError, ""), DTypeError, "the condition must be one bool"),
    ],
)
def test_operands_that_do_not_fit_are_refused(make, error, message):
    with pytest.raises(error, match=message):
        make()
