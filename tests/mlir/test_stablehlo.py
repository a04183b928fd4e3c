"""From FlatIR to StableHLO: the text of a program, places, constants, attributes, donated arguments."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import tenfold as tn
from tenfold import flat
from tenfold.base import dtypes
from tenfold.base.devices import Device
from tenfold.base.dtypes import ALL
from tenfold.base.errors import EngineError, IndexOutOfRange, UnsupportedError
from tenfold.compiler import stablehlo_module
from tenfold.engines import xla
from tenfold.flat.indexed import GatherDimensions, ScatterDimensions
from tenfold.flat.ir import Function, TensorType, Value
from tenfold.flat.structured import DotDimensions
from tenfold.flat.windows import ConvDimensions
from tenfold.mlir import stablehlo

F32, I64 = dtypes.float32, dtypes.int64
CPU = Device("cpu")


def test_the_three_texts_of_a_small_program():
    inp = tn.full((2, 3), 0.5)
    out = inp.tanh()
    line = test_the_three_texts_of_a_small_program.__code__.co_firstlineno + 1
    assert out.show(stage="trace") == (
        "==== Trace IR ====\n"
        f"t0 = aten.full(size=(2, 3), fill_value=0.5)  # test_stablehlo.py:{line}\n"
        f"t1 = aten.tanh(t0)  # test_stablehlo.py:{line + 1}\n"
        "outputs:\n"
        "    t1: [shape=(2, 3), dtype=(float32), loc=(cpu)]"
    )
    assert out.show(stage="flat") == (
        "==== Flat IR ====\n"
        "t_inter1: [shape=(), dtype=(float32), loc=(cpu)] = "
        f"ConstantOp(value=0.5)  # test_stablehlo.py:{line}\n"
        "t0: [shape=(2, 3), dtype=(float32), loc=(cpu)] = "
        f"BroadcastInDimOp(t_inter1, broadcast_dimensions=())  # test_stablehlo.py:{line}\n"
        f"t1: [shape=(2, 3), dtype=(float32), loc=(cpu)] = TanhOp(t0)  # test_stablehlo.py:{line + 1}\n"
        "outputs:\n"
        "    t1: [shape=(2, 3), dtype=(float32), loc=(cpu)]"
    )
    assert out.show(stage="stablehlo") == (
        "==== StableHLO IR ====\n"
        "module {\n"
        "  func.func @main() -> tensor<2x3xf32> {\n"
        "    %cst = stablehlo.constant dense<5.000000e-01> : tensor<f32>\n"
        "    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<2x3xf32>\n"
        "    %1 = stablehlo.tanh %0 : tensor<2x3xf32>\n"
        "    return %1 : tensor<2x3xf32>\n"
        "  }\n"
        "}"
    )
    assert out.show() == "\n\n".join(out.show(stage=stage) for stage in ("trace", "flat", "stablehlo"))


def test_every_op_carries_the_users_line_and_column():
    def f(x):
        y = x.exp()
        return y + 1

    text = stablehlo_module(f, tn.ones(2)).text(locations=True)
    first = test_every_op_carries_the_users_line_and_column.__code__.co_firstlineno
    assert f'test_stablehlo.py":{first + 2}:13' in text
    assert f'test_stablehlo.py":{first + 3}:16' in text
    assert "loc(" not in stablehlo_module(f, tn.ones(2)).text()


def run(module: stablehlo.Module, *arrays: np.ndarray) -> list[np.ndarray]:
    return [xla.fetch(each) for each in xla.compile(module, CPU)([xla.put(each, CPU) for each in arrays])]


def all_bits(dtype: dtypes.DType) -> np.ndarray:
    """Numbers that text and conversions spoil: both zeros, NaNs, infinities, the smallest and the largest."""
    if dtype.kind == "bool":
        return np.array([[True, False], [True, True]])
    if dtype.kind == "int":
        limits = np.iinfo(dtype.numpy)
        return np.array([limits.min, limits.max, 0, 1, limits.max // 3], dtype.numpy)
    if dtype.kind == "complex":
        parts = np.array([0.0, -0.0, 1 / 3, np.inf, np.nan, -np.inf, 1e-45], dtype.to_real().numpy)
        return np.stack([parts, parts[::-1]], -1).view(dtype.numpy).reshape(-1)
    limits = ml_dtypes.finfo(dtype.numpy)
    numbers = [0.0, -0.0, 1 / 3, np.inf, -np.inf, np.nan, float(limits.max), float(limits.min)]
    return np.array([*numbers, float(limits.smallest_subnormal)]).astype(dtype.numpy)


def test_constants_keep_every_bit():
    arrays = [all_bits(dtype) for dtype in ALL]
    arrays += [each[:1].reshape(()) for each in arrays if each.ndim == 1]
    arrays += [np.full((3, 4), each.ravel()[1]) for each in arrays[: len(ALL)]]
    arrays += [np.zeros((2, 0, 3), dtype.numpy) for dtype in ALL]
    arrays += [np.arange(5000), np.arange(5000) % 3 == 0, np.linspace(0, 1, 5000, dtype=np.float32)]
    arrays += [np.arange(12.0).reshape(3, 4).T]
    constants = [flat.constant(each, dtypes.from_numpy(each.dtype)) for each in arrays]
    found = run(stablehlo.emit(Function([], constants)))
    for array, result in zip(arrays, found, strict=True):
        assert result.dtype == array.dtype and result.shape == array.shape
        assert result.tobytes() == np.ascontiguousarray(array).tobytes(), (array, result)


def test_long_constants_are_cut_in_the_text_unless_it_is_to_be_whole():
    module = stablehlo.emit(Function([], [flat.constant(np.arange(100), I64)]))
    assert "98, 99" not in module.text() and "tensor<100xi64>" in module.text()
    assert "dense_resource<__elided__>" in module.text()
    whole = module.text(whole=True)
    assert "0x" in whole or "98, 99" in whole
    other = stablehlo.emit(Function([], [flat.constant(np.arange(100) + 1, I64)]))
    assert other.text(whole=True) != whole


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (True, "true"),
        (False, "false"),
        (3, "3 : i64"),
        (-1, "-1 : i64"),
        ("name", '"name"'),
        ((), "array<i64>"),
        ((2, 0), "array<i64: 2, 0>"),
        ((True, False), "array<i1: true, false>"),
        (((0, 1), (-1, 2)), "dense<[[0, 1], [-1, 2]]> : tensor<2x2xi64>"),
        (
            DotDimensions((), (), (1,), (0,)),
            "#stablehlo.dot<lhs_batching_dimensions = [], rhs_batching_dimensions = [], "
            "lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>",
        ),
        (
            GatherDimensions((1,), (0,), (0,), 1),
            "#stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], "
            "index_vector_dim = 1>",
        ),
        (
            ScatterDimensions((1,), (), (1,), 0, (0,), (0,)),
            "#stablehlo.scatter<update_window_dims = [1], scatter_dims_to_operand_dims = [1], "
            "index_vector_dim = 0, input_batching_dims = [0], scatter_indices_batching_dims = [0]>",
        ),
        (
            ConvDimensions(0, 3, (1, 2), 2, 3, (0, 1), 0, 1, (2, 3)),
            "#stablehlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, f, 0, 1]>",
        ),
    ],
)
def test_attributes_are_written_by_their_types(value, text):
    assert stablehlo.attribute_text(value) == text
    b = stablehlo.bindings()
    with b.context:
        assert b.ir.Attribute.parse(text) is not None


def test_a_value_without_an_attribute_is_refused():
    with pytest.raises(EngineError, match="no StableHLO attribute for 1.5"):
        stablehlo.attribute_text(1.5)


def test_flags_and_numbers_that_are_equal_are_different_attributes():
    x, kernel = Value(TensorType(F32, (1, 1, 3))), Value(TensorType(F32, (1, 1, 2)))
    numbers = ConvDimensions(0, 1, (2,), 1, 0, (2,), 0, 1, (2,))
    convolved = flat.convolution(x, kernel, numbers)
    assert convolved.op.window_reversal == (0,)
    total = flat.reduce(convolved, "add", (0,))
    module = stablehlo.emit(Function([x, kernel], [total]))
    assert module.module.operation.verify()
    (result,) = run(module, np.float32([[[1, 2, 3]]]), np.float32([[[1, 10]]]))
    assert result.tolist() == [[21.0, 32.0]]
    dims, flags = stablehlo.emit(Function([x], [flat.reverse(x, (1, 0))])).text(), "dims = [1, 0]"
    assert flags in dims


def test_donated_arguments_are_marked_and_lend_their_memory():
    x, y = Value(TensorType(F32, (256,))), Value(TensorType(F32, (256,)))
    function = Function([x, y], [flat.add(x, y)])
    text = stablehlo.emit(function, donated=[(1, 0)]).text()
    assert "%arg0: tensor<256xf32>, %arg1: tensor<256xf32> {tf.aliasing_output = 0 : i32}" in text
    assert "aliasing_output" not in stablehlo.emit(function).text()
    kept = xla.put(np.ones(256, np.float32), CPU)
    # A result is in XLA's own memory, which can be given away.
    (given,) = xla.compile(stablehlo.emit(Function([x], [flat.add(x, x)])), CPU)([kept])
    place = xla.pointer(given)
    (result,) = xla.compile(stablehlo.emit(function, donated=[(1, 0)]), CPU)([kept, given])
    assert xla.fetch(result).tolist() == [3.0] * 256
    assert xla.pointer(result) == place
    assert given.is_deleted() and not kept.is_deleted()


def test_a_module_survives_bytecode():
    module = stablehlo_module(lambda x: (x @ x).tanh().sum(), tn.ones(3, 3))
    b = stablehlo.bindings()
    with b.context:
        again = b.ir.Module.parse(module.bytecode())
    assert again.operation.get_asm() == module.text()


def test_a_check_inside_a_loop_is_refused():
    n = Value(TensorType(I64, ()))

    def body(i):
        return flat.check(i, flat.lt(i, 5), IndexOutOfRange, "too far")

    (last,) = flat.while_loop(lambda i: flat.lt(i, 9), body, [n])
    with pytest.raises(EngineError, match="inside a loop or branch"):
        stablehlo.emit(Function([n], [last]))


def test_the_interpreter_says_what_it_cannot_hand_over():
    for dtype in (dtypes.complex64, dtypes.bfloat16, dtypes.float8_e5m2):
        x = Value(TensorType(dtype, (2,)))
        module = stablehlo.emit(Function([x], [flat.add(x, x)]))
        with pytest.raises(UnsupportedError, match=f"cannot hand a tensor<2x{dtype.mlir}> over"):
            stablehlo.interpret(module, [np.ones(2, dtype.numpy)])
