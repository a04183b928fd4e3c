"""The torch dialect from the Trace: what is printed for each kind of argument, what is refused, and that it
works where PyTorch is not installed."""

from __future__ import annotations

import subprocess
import sys
import threading

import numpy as np
import pytest

import tenfold as tn
from tenfold import nn
from tenfold.base.package import install_command
from tenfold.mlir import module_context, torch_dialect
from tenfold.trace.collect import collect


def emitted(*tensors: tn.Tensor, **options) -> str:
    program, _ = collect([each.current() for each in tensors])
    return torch_dialect.emit(program, **options).text()


def shown(function, *args) -> list[str]:
    return tn.show(function, *args, stage="torch").splitlines()


def test_a_program_is_shown_under_its_title():
    assert shown(lambda x: x.tanh(), tn.ones(2, 3)) == [
        "==== Torch IR ====",
        "module {",
        "  func.func @main(%arg0: !torch.vtensor<[2,3],f32>) -> !torch.vtensor<[2,3],f32> {",
        "    %0 = torch.aten.tanh %arg0 : !torch.vtensor<[2,3],f32> -> !torch.vtensor<[2,3],f32>",
        "    return %0 : !torch.vtensor<[2,3],f32>",
        "  }",
        "}",
    ]
    assert tn.ones(2).show(stage="torch").startswith(torch_dialect.TITLE)


def test_integers_have_signs_and_bools_one_bit():
    dtypes = [tn.int64, tn.int32, tn.uint8, tn.bool, tn.float16, tn.bfloat16, tn.complex64, tn.float8_e5m2]
    text = "\n".join(shown(lambda *each: each, *[tn.zeros(1, dtype=dtype) for dtype in dtypes]))
    for element in ("si64", "si32", "ui8", "i1", "f16", "bf16", "complex<f32>", "f8E5M2"):
        assert f": !torch.vtensor<[1],{element}>" in text


@pytest.mark.parametrize(
    ("function", "line"),
    [
        (lambda x: x.add(x, alpha=2), "torch.constant.int 2"),
        (lambda x: x * -0.0, "torch.constant.float -0.000000e+00"),
        (lambda x: x + float("inf"), "torch.constant.float 0x7FF0000000000000"),
        (lambda x: x.sum(0, keepdim=True), "torch.constant.bool true"),
        (lambda x: x + True, "torch.constant.int 1"),
        (lambda x: nn.functional.gelu(x, approximate="tanh"), 'torch.constant.str "tanh"'),
        (lambda x: x.to(tn.bfloat16), "torch.constant.int 15"),
        (lambda x: tn.ones(2, device="cpu"), 'torch.constant.device "cpu"'),
        (lambda x: x.clone(memory_format="contiguous_format"), "torch.constant.int 0"),
        (lambda x: x.sum(), "torch.constant.none"),
        (lambda x: x.permute(1, 0), "torch.prim.ListConstruct %int1, %int0 : (!torch.int, !torch.int)"),
        (lambda x: tn.cat([x, x]), "%arg0, %arg0 : (!torch.vtensor<[2,3],f32>, !torch.vtensor<[2,3],f32>)"),
        (lambda x: x[:, tn.tensor([0, 1])], "-> !torch.list<optional<vtensor>>"),
        (lambda x: x.split(1)[1], "torch.prim.ListUnpack"),
        (lambda x: tn.bernoulli(x), "torch.aten.bernoulli %arg0, %none"),
        (lambda x: tn.special.i0e(x), 'torch.operator "torch.aten.special_i0e"(%arg0)'),
    ],
)
def test_arguments_become_constants_lists_and_tensors(function, line):
    assert any(line in each for each in shown(function, tn.ones(2, 3)))


def test_a_default_dtype_of_ours_is_told():
    assert not any("torch.constant.int 7" in each for each in shown(lambda: tn.ones(2)))
    tn.set_default_dtype(tn.float64)
    try:
        assert any("torch.constant.int 7" in each for each in shown(lambda: tn.ones(2)))
    finally:
        tn.set_default_dtype(tn.float32)


def test_tensors_that_may_be_written_to_on_request():
    text = emitted(tn.tensor([1.0, 2.0]).exp(), value_tensors=False)
    assert "(%arg0: !torch.tensor<[2],f32>) -> !torch.tensor<[2],f32>" in text
    assert "vtensor" not in text


def test_literals_are_exact_and_large_ones_are_resources():
    small, large = tn.tensor([0.1, -0.0, float("nan")]), tn.arange(1000).eval()
    flags = tn.tensor([True, False])
    program, _ = collect([each.current() for each in (small * 2, large * 2, ~flags)])
    literals = {leaf: np.asarray(tn.Tensor(leaf).numpy()) for leaf in program.leaves}
    text = torch_dialect.emit(program, literals=literals).text(whole=True)
    assert "dense<[1.000000e-01, -0.000000e+00, 0x7FC00000]> : tensor<3xf32>" in text
    assert "dense_resource<main_p1> : tensor<1000xsi64>" in text
    assert "dense<[true, false]> : tensor<2xi1>" in text
    assert torch_dialect.read(text).text(whole=True) == text
    assert "@main()" in text


def test_every_op_knows_the_users_line():
    program, _ = collect([tn.ones(2).tanh().current()])
    text = torch_dialect.emit(program).text(locations=True)
    assert "test_torch_dialect.py" in text


def test_draws_that_came_before_are_left_out():
    tn.rand(3)
    text = emitted(tn.rand(4) + 1)
    assert text.count("torch.aten.rand ") == 1
    assert "@main() ->" in text


def test_modules_go_down_by_torch_mlirs_own_pipelines():
    program, _ = collect([(tn.ones(2, 3) @ tn.ones(3, 4)).current()])
    module = torch_dialect.emit(program)
    assert "stablehlo.dot_general" in module.lowered("stablehlo").text()
    assert "linalg.matmul" in module.lowered("linalg").text()
    assert "tosa.matmul" in module.lowered("tosa").text()
    assert module.lowered("linalg").bytecode().startswith(b"ML\xefR")


LOWERED = {
    "strides": (lambda x: x.as_strided((2, 2), (3, 3), 1), (4, 5, 6)),
    "strides of rows": (lambda x: x.as_strided((2, 5), (5, 1), 1), (4, 5)),
    "writes by strides": (lambda x: x.as_strided_scatter(tn.ones(2, 2), (2, 2), (3, 3), 1), (4, 5)),
    "writes on a diagonal": (lambda x: x.diagonal_scatter(tn.ones(3), 1), (4, 4)),
    "new memory of strides": (lambda x: x.new_empty_strided((4, 5), (1, 4)).copy_(x), (4, 5)),
    "patches": (lambda x: nn.functional.unfold(x, (2, 3)), (2, 5, 3, 4)),
    "a loss of classes": (lambda x: nn.functional.nll_loss(x, tn.zeros(2, dtype=tn.int64)), (2, 3)),
    "cross entropy": (lambda x: nn.functional.cross_entropy(x, tn.zeros(2, dtype=tn.int64)), (2, 3)),
    "a mean pool of one image": (lambda x: nn.functional.avg_pool2d(x, (6, 8), 2), (4, 20, 20)),
    "a mean pool of one row": (lambda x: nn.functional.adaptive_avg_pool1d(x, 7), (5, 10)),
    "an uneven pool": (lambda x: nn.functional.adaptive_max_pool2d(x, (7, 13)), (1, 2, 10, 9)),
    "a pool of one volume": (lambda x: nn.functional.max_pool3d(x, 2), (2, 4, 4, 4)),
    "a norm in use": (lambda x: tn.native_batch_norm(x, None, None, x[0], x[1], False, 0.1, 1e-5), (2, 5)),
    "linear resampling": (lambda x: nn.functional.interpolate(x, (3, 5), mode="bilinear"), (1, 1, 4, 5)),
    "a weighed logarithm": (lambda x: tn.xlogy(x, x), (3, 5)),
    "shifted bytes": (lambda x: x.to(tn.int8) >> 1, (3, 4)),
    "products of bytes": (lambda x: x.to(tn.int8) @ x.to(tn.int8), (4, 4)),
    "unsafe writes": (
        lambda x: tn._unsafe_index_put(x, [tn.tensor([1, -1])], tn.ones(2), accumulate=False),
        (8,),
    ),
}


@pytest.mark.parametrize("name", LOWERED)
def test_torch_mlir_lowers(name):
    function, shape = LOWERED[name]
    assert "func.func @main" in tn.export(function, (tn.ones(shape),), dialect="linalg").text()


def test_bytecode_is_read_back():
    program, _ = collect([tn.ones(2, 3).tanh().current()])
    module = torch_dialect.emit(program)
    assert torch_dialect.read(module.bytecode()).text() == module.text()


# What is refused


def test_a_gradient_is_refused_with_the_line_that_took_it():
    x = tn.ones(3, requires_grad=True)
    (x * 2).sum().backward()
    with pytest.raises(tn.UnsupportedError, match="the torch dialect has no gradients") as raised:
        x.grad.show(stage="torch")
    assert "(x * 2).sum().backward()" in str(raised.value)


def test_a_program_in_the_place_of_an_op_is_refused():
    doubled = tn.compile(lambda x: x * 2)(tn.ones(3, requires_grad=True)) + 1
    with pytest.raises(tn.UnsupportedError, match="'compiled' is a program of its own"):
        doubled.show(stage="torch")
    assert "torch.aten.mul" in tn.show(tn.compile(lambda x: x * 2), tn.ones(3), stage="torch")


def test_a_complex_number_is_a_literal_or_refused():
    text = "\n".join(shown(lambda x: (x + 1j) * 2, tn.ones(2)))
    assert "torch.aten.add.Tensor %arg0, %0" in text and ": tensor<complex<f32>>) :" in text
    with pytest.raises(tn.UnsupportedError, match="no constant for 1j"):
        shown(lambda x: tn.full((2,), 1j), tn.ones(2))


@pytest.mark.parametrize(
    ("function", "op"),
    [
        (lambda x: 0.5 * x, "mul.Scalar %arg0, %float5.000000e-01"),
        (lambda x: 0.5 + x, "add.Scalar %arg0, %float5.000000e-01"),
        (lambda x: 0.5 - x, "rsub.Scalar %arg0, %float5.000000e-01"),
        (lambda x: 0.5 / x, "mul.Scalar %0, %float5.000000e-01"),
        (lambda x: tn.div(0.5, x), "div.Tensor %0, %arg0"),
        (lambda x: 1.5 // x, "floor_divide %0, %arg0"),
        (lambda x: tn.add(0.5, x, alpha=2), "add.Tensor %0, %arg0"),
    ],
)
def test_a_number_may_stand_on_the_left(function, op):
    text = "\n".join(shown(function, tn.ones(2)))
    assert f"torch.aten.{op}" in text
    if "%0, %arg0" in op:
        assert "torch.vtensor.literal(dense<" in text and "> : tensor<f32>)" in text


def test_what_torch_mlir_refuses_is_placed():
    with pytest.raises(
        tn.UnsupportedError, match="torch-mlir refuses this op: 'torch.aten.count_nonzero"
    ) as raised:
        shown(lambda x: tn.count_nonzero(x, 0), tn.tensor(1.0))
    assert "tn.count_nonzero(x, 0)" in str(raised.value)


def test_what_torch_mlir_cannot_lower_is_named():
    program, _ = collect([tn.special.i0e(tn.ones(2)).current()])
    with pytest.raises(tn.UnsupportedError, match="it has no lowering of aten.special_i0e"):
        torch_dialect.emit(program).lowered("linalg")
    with pytest.raises(tn.ArgumentError, match="torch-mlir does not lower to 'tosha'") as raised:
        torch_dialect.emit(program).lowered("tosha")
    assert "did you mean tosa?" in str(raised.value)


def test_damaged_modules_are_refused():
    for damaged in (b"ML\xefRgarbage", "func.func @main(", "module { torch.aten.nothing }"):
        with pytest.raises(tn.FormatError, match="torch-mlir cannot read this module"):
            torch_dialect.read(damaged)


# The block


def test_a_block_is_recorded_as_a_module():
    with module_context() as module:
        x = tn.ones(10)
        linear = nn.Linear(10, 10)
        y = linear(x)
    text = str(module)
    assert "func.func @main() -> !torch.vtensor<[10],f32>" in text
    assert text.count("torch.vtensor.literal") == 2
    assert "torch.aten.ones" in text and "torch.aten.linear" in text and "torch.aten.uniform" not in text
    assert y.shape == (10,)
    np.testing.assert_allclose(y.detach().numpy(), linear(x).detach().numpy())


def test_a_block_gives_what_is_left_of_it():
    before = tn.tensor([1.0, 2.0])
    with module_context(value_tensors=False) as module:
        used = before + 1
        first, second = used * 2, used.view(2, 1)
    text = str(module)
    assert "@main() -> (!torch.tensor<[2],f32>, !torch.tensor<[2,1],f32>)" in text
    assert first.shape == second.flatten().shape


def test_a_block_that_computes_nothing_or_asks_for_a_value_is_refused():
    with pytest.raises(tn.TraceError, match="leaves no tensor"), module_context():
        pass
    with pytest.raises(tn.TraceError, match="module_context records"), module_context():
        tn.ones(2).sum().item()
    with pytest.raises(tn.TraceError, match="leaves no tensor"), module_context() as module:
        str(module)
    assert float(tn.ones(2).sum()) == 2


def test_a_block_and_another_threads_compilation_wait_for_each_other():
    recorded, entered = [], threading.Event()

    def compile_meanwhile():
        entered.wait()
        y = tn.ones(2)
        recorded.append(tn.compile(lambda v: (v + y * 2).sum())(tn.ones(2)).item())

    other = threading.Thread(target=compile_meanwhile)
    other.start()
    with module_context() as module:
        before = tn.ones(3) + 1
        entered.set()
        other.join(0.2)
        assert not recorded
        after = before * 2
    other.join()
    assert recorded == [6] and "torch.aten.mul" in str(module) and "sum" not in str(module)
    assert after.shape == (3,)


def test_a_block_that_fails_lets_others_record():
    with pytest.raises(ZeroDivisionError), module_context():
        raise ZeroDivisionError
    with module_context() as module:
        with pytest.raises(ZeroDivisionError), module_context():
            raise ZeroDivisionError
        kept = tn.ones(2) * 2
    assert "torch.aten.mul" in str(module) and kept.shape == (2,)
    found = []
    other = threading.Thread(target=lambda: found.append(tn.compile(lambda x: x + 1)(tn.ones(1)).item()))
    other.start()
    other.join(30)
    assert found == [2]


# Without PyTorch

WITHOUT = """
import sys
sys.modules["torch"] = None
sys.modules["jax"] = None
from tenfold.mlir import module_context
import tenfold
from tenfold import nn, ones
with module_context() as module:
    x = ones(10); lin = nn.Linear(10, 10); y = lin(x)
print(module)
model = nn.Sequential(nn.Conv2d(1, 2, 3), nn.ReLU(), nn.Flatten(), nn.Linear(72, 3))
print(tenfold.export(model, (ones(1, 1, 8, 8),), dialect="linalg"))
"""


def test_it_works_where_pytorch_cannot_be_imported():
    done = subprocess.run([sys.executable, "-c", WITHOUT], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "torch.aten.linear" in done.stdout and "linalg.conv_2d" in done.stdout


def test_torch_mlir_missing_says_what_to_install():
    code = """
import sys
sys.modules["torch_mlir"] = None
import tenfold as tn
tn.ones(2).show(stage="torch")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "MissingEngine" in done.stderr and install_command("torch-dialect") in done.stderr
