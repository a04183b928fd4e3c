"""`torch.export` beside PyTorch's: programs, what they take and write, sizes that may change, files."""

import io
import json

import numpy as np
import pytest
import torch

import tenfold as tn
from tenfold import compat  # noqa: F401
from tenfold.compat import export as ours

PACKAGES = [(tn, ours), (torch, torch.export)]


def model_of(package):
    class Model(package.nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = package.nn.Linear(4, 3)
            self.norm = package.nn.BatchNorm1d(3)
            self.register_buffer("calls", package.zeros(()))
            self.register_buffer("shift", package.full((3,), 0.5), persistent=False)
            self.table = package.tensor([1.0, 2.0, 3.0])

        def forward(self, x, pair=None, *, scale=2.0):
            self.calls.add_(1)
            hidden = self.norm(self.linear(x) + self.shift).relu() * self.table
            if pair is not None:
                hidden = hidden + pair["a"] - pair["b"][0]
            flat = hidden.reshape(x.shape[0] * 3)
            return {"flat": flat * scale, "rest": (hidden.mean(0), 3)}

    model = Model()
    random = np.random.RandomState(0)
    with package.no_grad():
        for parameter in model.parameters():
            parameter.copy_(package.tensor(random.randn(*parameter.shape).astype("float32")))
    return model


def numbers(*shape):
    return np.random.RandomState(len(shape)).randn(*shape).astype("float32")


@pytest.mark.parametrize("training", [True, False])
def test_a_program_computes_writes_and_differentiates_as_pytorchs(training):
    def run(package, export):
        model = model_of(package).train(training)
        pair = {"a": package.tensor(numbers(5, 3)), "b": [package.ones(3)]}
        program = export.export(model, (package.tensor(numbers(5, 4)), pair), {"scale": 3.0})
        module = program.module()
        results = [module(package.tensor(numbers(5, 4)) + i, pair, scale=3.0) for i in range(2)]
        results[1]["flat"].sum().backward()
        state = {name: each.detach().tolist() for name, each in program.state_dict.items()}
        gradients = {name: each.grad.tolist() for name, each in module.named_parameters()}
        values = [(each["flat"].tolist(), each["rest"][0].tolist(), each["rest"][1]) for each in results]
        return values, state, gradients

    for mine, theirs in zip(run(*PACKAGES[0]), run(*PACKAGES[1])):
        keys = sorted(theirs) if isinstance(theirs, dict) else range(len(theirs))
        for key in keys:
            for left, right in zip(
                *[each if isinstance(each, tuple) else (each,) for each in (mine[key], theirs[key])]
            ):
                np.testing.assert_allclose(left, right, rtol=2e-5, atol=1e-5)


def test_the_signature_names_what_pytorchs_names():
    def run(package, export):
        program = export.export(model_of(package), (package.ones(5, 4),)).run_decompositions()
        signature = program.graph_signature
        return (
            sorted(signature.parameters), sorted(signature.buffers), signature.user_inputs,
            sorted(signature.inputs_to_parameters.items()), sorted(signature.buffers_to_mutate.values()),
            [name for name, _ in program.named_parameters()], sorted(program.state_dict),
            len(signature.lifted_tensor_constants),
        )  # fmt: skip

    mine, theirs = run(*PACKAGES[0]), run(*PACKAGES[1])
    assert mine == theirs


def test_the_graph_is_made_of_aten_calls_and_prints_as_code():
    program = ours.export(model_of(tn).eval(), (tn.ones(5, 4),))
    assert "linear = torch.ops.aten.linear.default(" in program.graph_module.code
    assert "p_linear_weight: PARAMETER target='linear.weight'" in str(program)
    targets = {str(node.target) for node in program.graph.nodes if node.op == "call_function"}
    assert "aten.relu.default" in targets and all(each.startswith("aten.") for each in targets)


def test_a_graph_may_be_changed_and_run():
    program = ours.export(model_of(tn).eval(), (tn.ones(5, 4),))
    module = program.module()
    (relu,) = module.graph.find_nodes(op="call_function", target=tn.ops.aten.relu.default)
    relu.target = tn.ops.aten.tanh.default
    module.recompile()
    x = tn.tensor(numbers(5, 4))
    model = model_of(tn).eval()
    expected = (model.norm(model.linear(x) + model.shift).tanh() * model.table).mean(0)
    np.testing.assert_allclose(module(x)["rest"][0].tolist(), expected.tolist(), rtol=1e-5)


def test_dimensions_with_names_take_every_size_and_others_are_refused():
    for package, export in PACKAGES:
        batch = export.Dim("batch", min=2, max=100)
        program = export.export(
            model_of(package).eval(), (package.ones(5, 4),), dynamic_shapes={"x": {0: batch}}
        )
        module, model = program.module(), model_of(package).eval()
        for size in (2, 7, 100):
            x = package.tensor(numbers(size, 4))
            np.testing.assert_allclose(
                module(x)["flat"].detach().numpy(), model(x)["flat"].detach().numpy(), rtol=1e-5, atol=1e-6
            )
        for wrong in (numbers(101, 4), numbers(5, 5)):
            with pytest.raises((AssertionError, RuntimeError)):
                module(package.tensor(wrong))
        with pytest.raises(ValueError, match="program was exported for|exported input tree"):
            module(package.ones(5, 4), package.ones(3))


class _Sum(tn.nn.Module):
    def forward(self, xs, y):
        return xs[0] + y, xs[1].reshape(-1)


class _TorchSum(torch.nn.Module):
    forward = _Sum.forward


@pytest.mark.parametrize("hint", ["AUTO", "DYNAMIC"])
def test_dimensions_without_names_are_equal_where_the_program_demands_it(hint):
    for (package, export), module in zip(PACKAGES, (_Sum(), _TorchSum())):
        dim = getattr(export.Dim, hint)
        xs, y = [package.ones(6, 2), package.ones(4, 3)], package.ones(6, 2)
        program = export.export(module, (xs, y), dynamic_shapes=([{0: dim}, {0: dim}], {0: dim}))
        first, second = program.module()([package.ones(9, 2), package.ones(7, 3)], package.ones(9, 2))
        assert first.shape == (9, 2) and second.shape == (21,)


def test_auto_dimensions_that_the_program_fixes_stay_fixed_and_dynamic_ones_are_an_error():
    for package, export in PACKAGES:
        model = model_of(package).eval()
        program = export.export(model, (package.ones(5, 4),), dynamic_shapes={"x": {1: export.Dim.AUTO}})
        assert program.module()(package.ones(5, 4))["flat"].shape == (15,)
        with pytest.raises(Exception, match="4"):
            export.export(model, (package.ones(5, 4),), dynamic_shapes={"x": {1: export.Dim.DYNAMIC}})


def test_what_a_program_writes_to_an_argument_is_in_it():
    def run(package, export):
        class Cache(package.nn.Module):
            def forward(self, cache, x):
                cache[1:3].copy_(x)
                return cache.sum()

        program = export.export(Cache(), (package.zeros(4), package.ones(2)))
        cache = package.full((4,), 5.0)
        total = program.module()(cache, package.tensor([7.0, 8.0]))
        return total.item(), cache.tolist()

    assert run(*PACKAGES[0]) == run(*PACKAGES[1]) == (25, [5, 7, 8, 5])


def test_random_draws_and_several_results_run_again():
    class Model(tn.nn.Module):
        def forward(self, x):
            top, where = x.topk(2)
            pieces = x.split(2)
            return tn.nn.functional.dropout(top, 0.5), where, pieces[1], tn.arange(3, dtype=tn.float64)

    module = ours.export(Model(), (tn.ones(5),)).module()
    x = tn.tensor([1.0, 5.0, 2.0, 4.0, 3.0])
    tn.manual_seed(0)
    drawn, where, piece, steps = module(x)
    tn.manual_seed(0)
    assert drawn.tolist() == tn.nn.functional.dropout(tn.tensor([5.0, 4.0]), 0.5).tolist()
    assert where.tolist() == [1, 3] and piece.tolist() == [2, 4]
    assert steps.dtype is tn.float64 and steps.tolist() == [0, 1, 2]


def test_a_table_of_decompositions_replaces_calls():
    program = ours.export(model_of(tn).eval(), (tn.ones(5, 4),))
    table = {tn.ops.aten.linear.default: lambda x, w, b: tn.addmm(b, x, w.t())}
    decomposed = program.run_decompositions(table)
    targets = {str(node.target) for node in decomposed.graph.nodes if node.op == "call_function"}
    assert "aten.addmm.default" in targets and "aten.linear.default" not in targets
    x = tn.tensor(numbers(5, 4))
    mine, theirs = decomposed.module()(x)["flat"], program.module()(x)["flat"]
    np.testing.assert_allclose(mine.detach().numpy(), theirs.detach().numpy(), rtol=1e-5)


def test_a_program_is_saved_and_loaded_with_its_sizes(tmp_path):
    batch = ours.Dim("batch", min=2, max=64)
    program = ours.export(model_of(tn), (tn.ones(5, 4),), dynamic_shapes={"x": {0: batch}})
    path, extra = tmp_path / "model.pt2", {"note": ""}
    ours.save(program, path, extra_files={"note": "hello"})
    again = ours.load(path, extra_files=extra)
    assert extra == {"note": "hello"} and str(again) == str(program)
    x = tn.tensor(numbers(9, 4))
    mine, theirs = again.module()(x), program.module()(x)
    assert mine["flat"].tolist() == theirs["flat"].tolist() and mine["rest"][1] == 3
    mine["flat"].sum().backward()
    assert again.state_dict["linear.weight"].grad is not None
    with pytest.raises(ValueError, match="batch must be from 2 to 64"):
        again.module()(tn.ones(65, 4))
    buffer = io.BytesIO()
    tn.save({"a": tn.ones(2)}, buffer)
    buffer.seek(0)
    with pytest.raises(ValueError, match="no exported program"):
        ours.load(buffer)


CODE = "__import__('os')._exit(7)"
HOSTILE = {
    "an argument's name": lambda about: about["nodes"].insert(0, ["placeholder", "y", f"y={CODE}", [], {}]),
    "a node's name": lambda about: about["nodes"][1].__setitem__(1, f"x={CODE}"),
    "a keyword": lambda about: about["nodes"][1][4].update({f"alpha={CODE}, b": 1}),
    "a default": lambda about: about["nodes"][0].__setitem__(3, [1]),
    "a keyword of Python's": lambda about: about["nodes"][0].__setitem__(2, "class"),
    "an attribute": lambda about: about["nodes"].insert(1, ["get_attr", "g", f'"); {CODE} #', [], {}]),
    "a method": lambda about: about["nodes"].insert(
        1, ["call_method", "g", "__class__", [{"node": "x"}], {}]
    ),
    "no op": lambda about: about["nodes"][1].__setitem__(2, "aten::__class__.__subclasses__"),
    "the same name twice": lambda about: about["nodes"].insert(1, about["nodes"][0]),
    "a name that no module has": lambda about: about["inputs"][0].__setitem__(2, f'"); {CODE} #'),
    "too few tensors": lambda about: about["types"].pop(),
    "a structure of more tensors": lambda about: about["structures"].__setitem__(
        1, {"list": [None, ["*"] * 9]}
    ),
    "a container for a value": lambda about: about["structures"].__setitem__(1, {"value": ["*"]}),
    "nothing": lambda about: about.clear(),
}


@pytest.fixture(scope="module")
def held() -> dict:
    """What the file of a program holds."""
    buffer = io.BytesIO()
    ours.save(ours.export(tn.nn.Linear(4, 2), (tn.ones(5, 4),)), buffer)
    buffer.seek(0)
    return tn.load(buffer)


@pytest.mark.parametrize("name", HOSTILE)
def test_a_file_whose_graph_is_no_program_is_refused_and_runs_no_code(name, held):
    about = json.loads(held["program"])
    HOSTILE[name](about)
    buffer = io.BytesIO()
    tn.save({**held, "program": json.dumps(about)}, buffer)
    buffer.seek(0)
    with pytest.raises(tn.FormatError):
        ours.load(buffer)


@pytest.mark.parametrize("name", ["forward", "__class__.weight", "a..b", ""])
def test_a_tensor_in_a_file_does_not_take_the_place_of_what_every_module_has(name, held):
    buffer = io.BytesIO()
    tn.save({**held, "constants": {name: tn.ones(2)}}, buffer)
    buffer.seek(0)
    with pytest.raises(tn.FormatError, match="a tensor with the name"):
        ours.load(buffer)


def test_what_cannot_be_exported_is_refused_with_a_way_out():
    class Chooses(tn.nn.Module):
        def forward(self, x):
            return x + 1 if x.sum() > 0 else x - 1

    class Loops(tn.nn.Module):
        def forward(self, x):
            return tn.while_loop(lambda x: x.sum() < 10, lambda x: (x * 2,), (x,))

    class Differentiates(tn.nn.Module):
        def forward(self, x):
            return tn.func.grad(lambda x: x.sin().sum())(x)

    with pytest.raises(RuntimeError, match="value of a traced tensor"):
        ours.export(Chooses(), (tn.ones(2),))
    with pytest.raises(tn.UnsupportedError, match="no op of ATen's"):
        ours.export(Loops(), (tn.ones(2),))
    with pytest.raises(tn.UnsupportedError, match="no op of ATen's"):
        ours.export(Differentiates(), (tn.ones(2),))
    with pytest.raises(ValueError, match="Expected `mod` to be an instance"):
        ours.export(lambda x: x, (tn.ones(2),))
    with pytest.raises(RuntimeError, match="Unable to call ExportedProgram"):
        ours.export(_Sum(), ([tn.ones(2), tn.ones(2)], tn.ones(2)))(tn.ones(2))
    with pytest.raises(tn.UnsupportedError, match="computed from 'batch'"):
        2 * ours.Dim("batch")
