"""Models as modules for other compilers."""

from __future__ import annotations

import math

import numpy as np
import pytest

import tenfold as tn
from tenfold import nn
from tenfold.exporting import DIALECTS


def array(tensor: tn.Tensor) -> np.ndarray:
    return tensor.detach().numpy()


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("parameters", ["arguments", "literals"])
def test_a_model_in_every_dialect(model, x, dialect, parameters):
    exported = tn.export(model, (x,), dialect=dialect, parameters=parameters)
    word = {"torch": "torch.aten.linear", "stablehlo": "stablehlo.dot_general", "linalg": "linalg.matmul"}
    assert word.get(dialect, "tosa.") in exported.text()
    assert [str(each) for each in (*exported.inputs, *exported.outputs)] == ["f32[2,4]", "f32[2,3]"]
    takes = len(exported.inputs) + len(exported.parameters)
    assert f"%arg{takes - 1}" in exported.text() and f"%arg{takes}:" not in exported.text()
    names = [name for name in model.state_dict() if "num_batches" not in name]
    assert sorted(exported.parameters) == (sorted(names) if parameters == "arguments" else [])
    assert exported.bytecode().startswith(b"ML\xefR")


def test_large_literals_of_torch_mlirs_own_are_read():
    weight = tn.arange(600.0).view(1, 600)
    exported = tn.export(lambda x: tn.cat([weight.expand(1, -1), x]), tn.ones(1, 600), parameters="literals")
    lowered = exported.module.lowered("stablehlo")
    assert "arith.constant dense_resource" in lowered.text()
    assert tn.load_stablehlo(lowered.bytecode())(tn.ones(1, 600))[:, 7].tolist() == [7, 1]


def test_a_wider_result_written_in_place_is_exported_for_torch_mlir():
    def add(a, b):
        a += b
        return a

    exported = tn.export(add, (tn.ones(2), tn.ones(2, dtype=tn.float64)))
    run = tn.load_stablehlo(exported.module.lowered("stablehlo").bytecode())
    results = run(tn.ones(2), tn.ones(2, dtype=tn.float64))
    assert [(each.dtype, each.tolist()) for each in results] == [(tn.float32, [2.0, 2.0])] * 2


def test_arguments_keep_their_order_and_are_all_there():
    x, y = tn.ones(2), tn.zeros(3)
    exported = tn.export(lambda a, b, c, d: {"sum": d + a}, (x, y, y, x), dialect="torch")
    types = ["%arg0: !torch.vtensor<[2],f32>", "%arg1: !torch.vtensor<[3],f32>"]
    types += ["%arg2: !torch.vtensor<[3],f32>", "%arg3: !torch.vtensor<[2],f32>"]
    assert f"@main({', '.join(types)})" in exported.text()
    assert "torch.aten.add.Tensor %arg3, %arg0" in exported.text()


def test_what_a_model_writes_is_given_back():
    model, x = nn.BatchNorm1d(3), tn.rand(4, 3)
    exported = tn.export(model, x, dialect="stablehlo")
    assert sorted(exported.writes) == ["num_batches_tracked", "running_mean", "running_var"]
    assert len(exported.outputs) == 4
    np.testing.assert_array_equal(model.running_mean.numpy(), np.zeros(3))


def test_writes_inside_are_no_matter_and_scalars_are_results():
    def function(x):
        x = x.clone()
        x[0] = 5.0
        x.view(-1).mul_(2)
        return x.sum(), (x,)

    x = tn.ones(2, 2)
    run = tn.load_stablehlo(tn.export(function, (x,), dialect="stablehlo").portable())
    total, (values,) = function(x)
    found_total, found = run(x)
    assert found_total.shape == () and float(found_total) == float(total) == 24
    np.testing.assert_array_equal(found.numpy(), values.numpy())
    assert "scatter" in tn.export(function, (x,)).text()


def test_functions_without_inputs_and_empty_tensors():
    run = tn.load_stablehlo(tn.export(lambda: tn.arange(3) * 2, dialect="stablehlo").portable())
    assert run().tolist() == [0, 2, 4]
    run = tn.load_stablehlo(tn.export(lambda x: x + 1, tn.zeros(0, 3), dialect="stablehlo").portable())
    assert run(tn.zeros(0, 3)).shape == (0, 3)


def test_tensors_that_are_plain_attributes_and_variables_are_parameters():
    scale = tn.full((2,), 5.0)
    model = nn.Module()
    model.mask, model.shifts = tn.full((2,), 3.0), [tn.ones(2)]
    model.forward = lambda x: x * model.mask * scale + model.shifts[0]
    exported = tn.export(model, (tn.ones(2),), dialect="stablehlo")
    assert [array(each).tolist() for each in exported.parameters.values()] == [[3, 3], [5, 5], [1, 1]]


def test_what_a_function_makes_itself_is_no_parameter():
    layer, x = nn.LSTM(3, 4), tn.ones(5, 2, 3)
    for dialect in ("torch", "stablehlo"):
        exported = tn.export(layer, (x,), dialect=dialect)
        assert sorted(exported.parameters) == ["bias_hh_l0", "bias_ih_l0", "weight_hh_l0", "weight_ih_l0"]
        assert len(exported.outputs) == 3 and exported.writes == ()
    numbers = np.array([1.0, 2.0, 3.0], np.float32)
    exported = tn.export(lambda x: x + tn.tensor(numbers), tn.ones(3), dialect="stablehlo")
    assert exported.parameters == {}
    assert tn.load_stablehlo(exported.portable())(tn.ones(3)).tolist() == [2, 3, 4]


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU, nn.RNN])
def test_recurrent_layers_are_unrolled_for_the_torch_dialect(kind):
    tn.manual_seed(0)
    layer = kind(3, 4, num_layers=2, bidirectional=True, batch_first=True)
    x = tn.rand(2, 5, 3)
    exported = tn.export(layer, (x,), parameters="literals")
    assert "torch.operator" not in exported.text() and "torch.aten.tanh" in exported.text()
    found = tn.load_stablehlo(exported.module.lowered("stablehlo").bytecode())(x)
    output, states = layer(x)
    for one, two in zip(found, (output, *(states if isinstance(states, tuple) else (states,))), strict=True):
        np.testing.assert_allclose(array(one), array(two), rtol=1e-5, atol=1e-6)


def test_recurrent_layers_that_drop_something_stay_whole():
    layer = nn.LSTM(3, 4, num_layers=2, dropout=0.5)
    assert 'torch.operator "torch.aten.lstm.input"' in tn.export(layer, tn.ones(5, 2, 3)).text()
    assert "torch.operator" not in tn.export(layer.eval(), tn.ones(5, 2, 3)).text()


def test_zeros_of_both_signs_are_not_one_number():
    divide = lambda x: 1 / (x * tn.tensor([0.0, -0.0]))
    run = tn.load_stablehlo(tn.export(divide, tn.ones(2), dialect="stablehlo").portable())
    assert run(tn.ones(2)).tolist() == divide(tn.ones(2)).tolist() == [math.inf, -math.inf]
    for zero in (0.0, -0.0):
        filled = lambda x, zero=zero: 1 / (x * tn.tensor([zero, zero]))
        run = tn.load_stablehlo(tn.export(filled, tn.ones(2), dialect="stablehlo").portable())
        assert run(tn.ones(2)).tolist() == [math.copysign(math.inf, zero)] * 2


class Chained(nn.Module):
    """A module with an attribute named as a compiled function's own."""

    def __init__(self):
        super().__init__()
        self.function = tn.relu

    def forward(self, x):
        return self.function(x) + 1


def test_a_modules_own_attribute_does_not_replace_it():
    assert "torch.aten.add.Scalar" in tn.export(Chained(), tn.ones(2)).text()
    assert "add" in tn.show(Chained(), tn.ones(2), stage="trace")


def test_a_compiled_model_is_exported_as_the_model_itself():
    layer, x = nn.Linear(2, 3), tn.ones(1, 2)
    compiled = tn.compile(layer)
    assert (
        list(tn.export(compiled, x).parameters) == list(tn.export(layer, x).parameters) == ["weight", "bias"]
    )
    assert str(tn.export(compiled, x, dynamic={"input": {0: "n"}}).inputs[0]) == "f32[n,2]"


def test_checks_of_indices_are_left_out():
    take = lambda x, i: x.index_select(0, i)
    exported = tn.export(take, (tn.arange(3.0), tn.tensor([2, 0])), dialect="stablehlo")
    assert len(exported.outputs) == 1
    assert tn.load_stablehlo(exported.portable())(tn.arange(3.0), tn.tensor([2, 0])).tolist() == [2, 0]


MISTAKES = [
    (lambda m, x: tn.export(m, (x,), dialect="onnx"), "no dialect 'onnx'", "torch, stablehlo"),
    (lambda m, x: tn.export(m, (x,), dialect="tosha"), "no dialect 'tosha'", "did you mean tosa?"),
    (lambda m, x: tn.export(m, (x,), parameters="none"), "no parameters 'none'", "arguments, literals"),
    (lambda m, x: tn.export(3), "takes a model or a function, not int", ""),
    (lambda m, x: tn.export(m, (x,)).portable(), "only StableHLO has", "dialect='stablehlo'"),
    (lambda m, x: tn.export(m, (x,)).save("model"), "which form", ".mlirbc for bytecode"),
    (lambda m, x: tn.export(m, (x,)).save("no/folder.mlir"), "cannot be written", "a folder that is there"),
    (lambda m, x: tn.export(m, (x.numpy(),)), "an array of NumPy's", "from_numpy"),
    (lambda m, x: tn.export(m, (x,), [1]), "kwargs holds arguments by name, and is no list", ""),
    (lambda m, x: tn.export(m, (x,)).build(processor="z80"), "Unknown CPU for target architecture", ""),
    (lambda m, x: tn.load_stablehlo(3), "takes a path or the bytes of a file, not int", ""),
    (lambda m, x: tn.load_vmfb(3), "takes a path or the bytes of a file, not int", ""),
    (lambda m, x: tn.load_stablehlo("nowhere.mlir"), "cannot be read", "the path of a StableHLO file"),
    (lambda m, x: tn.load_stablehlo(b"nothing"), "no StableHLO module", "export("),
    (lambda m, x: tn.load_stablehlo(b"module {}"), "no function @main", ""),
]


@pytest.mark.parametrize(("call", "message", "help"), MISTAKES)
def test_mistakes_are_explained(model, x, call, message, help):
    with pytest.raises(tn.TenfoldError) as raised:
        call(model, x)
    assert message in raised.value.message and help in str(raised.value)
