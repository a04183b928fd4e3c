"""nn.utils: clipping, vectors of parameters, norms of weights, parametrizations, fusing, sequences, and calls
with other tensors; beside PyTorch's."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest
import torch

import tenfold as tn
from tenfold import nn
from tenfold.nn import utils
from tenfold.runtime.executables import counting_compiles

pytestmark = pytest.mark.usefixtures("float64")


def twins(call: str) -> tuple[Any, Any]:
    """The same layer, with the same weights, in both libraries."""
    theirs, ours = eval(call, vars(torch.nn)), eval(f"nn.{call}")
    load(ours, theirs)
    return ours, theirs


def load(ours: Any, theirs: Any) -> None:
    ours.load_state_dict({name: tn.tensor(each.numpy()) for name, each in theirs.state_dict().items()})


def close(ours: Any, theirs: Any) -> None:
    np.testing.assert_allclose(ours.detach().numpy(), theirs.detach().numpy(), 1e-7, 1e-9)


def with_gradients(xp: Any) -> list[Any]:
    parameters = [xp.nn.Parameter(xp.zeros(2, 3)), xp.nn.Parameter(xp.zeros(4)), xp.nn.Parameter(xp.zeros(1))]
    parameters[0].grad = xp.tensor([[3.0, -4.0, 1.0], [0.5, 0.0, 2.0]])
    parameters[1].grad = xp.tensor([1.0, -1.0, 5.0, 2.0])
    return parameters


# Clipping


@pytest.mark.parametrize("norm_type", [2.0, 1, float("inf"), 3.5])
@pytest.mark.parametrize("max_norm", [0.5, 1000.0])
def test_gradients_are_clipped_by_norm(norm_type, max_norm):
    ours, theirs = with_gradients(tn), with_gradients(torch)
    total = utils.clip_grad_norm_(ours, max_norm, norm_type)
    close(total, torch.nn.utils.clip_grad_norm_(theirs, max_norm, norm_type))
    for mine, golden in zip(ours[:2], theirs[:2], strict=True):
        close(mine.grad, golden.grad)
    assert ours[2].grad is None


@pytest.mark.usefixtures("on_xla")
def test_clipping_is_one_program():
    parameters = with_gradients(tn)
    utils.clip_grad_norm_(parameters, 1.0)
    with counting_compiles() as compiles:
        tn.eval(*[each.grad for each in parameters[:2]])
    assert compiles == 1


def test_other_clippings_are_pytorchs():
    ours, theirs = with_gradients(tn), with_gradients(torch)
    utils.clip_grad_value_(ours, 1.5)
    torch.nn.utils.clip_grad_value_(theirs, 1.5)
    close(ours[1].grad, theirs[1].grad)
    close(utils.get_total_norm([each.grad for each in ours[:2]]), torch.nn.utils.get_total_norm(
        [each.grad for each in theirs[:2]]))  # fmt: skip
    assert utils.clip_grad_norm_([], 1.0).item() == 0
    assert utils.clip_grad_norm_(ours[1], 1.0).item() == pytest.approx(theirs[1].grad.norm().item())


def test_a_norm_that_is_no_number_is_refused_on_request():
    parameter = with_gradients(tn)[1]
    parameter.grad = tn.tensor([1.0, float("nan"), 0.0, 0.0])
    with pytest.raises(tn.TenfoldError, match="the total norm of order 2.0 is nan"):
        utils.clip_grad_norm_(parameter, 1.0, error_if_nonfinite=True)
    utils.clip_grad_norm_(parameter, 1.0)


# Vectors


def test_parameters_become_a_vector_and_come_back():
    ours, theirs = twins("Linear(2, 3)")
    vector = utils.parameters_to_vector(ours.parameters())
    close(vector, torch.nn.utils.parameters_to_vector(theirs.parameters()))
    given = tn.arange(9.0)
    utils.vector_to_parameters(given, ours.parameters())
    assert ours.weight.tolist() == [[0, 1], [2, 3], [4, 5]] and ours.bias.tolist() == [6, 7, 8]
    assert ours.weight.requires_grad and ours.weight.is_leaf
    with tn.no_grad():
        ours.bias.zero_()
    assert given.tolist()[6:] == [0, 0, 0], "they share its memory"
    with pytest.raises(tn.ShapeError, match="a vector of 9 elements"):
        utils.vector_to_parameters(tn.ones(3), ours.parameters())


# Norms of weights


CALLS = [("Linear(3, 4)", (2, 3)), ("Conv2d(2, 3, 2)", (1, 2, 4, 4)), ("ConvTranspose1d(2, 3, 2)", (1, 2, 4))]


def compared(ours: Any, theirs: Any, shape: tuple[int, ...]) -> None:
    """The same output, state and gradients, in training and then in evaluation."""
    assert list(ours.state_dict()) == list(theirs.state_dict())
    x = np.random.default_rng(0).normal(size=shape)
    results = []
    for xp, module in ((tn, ours), (torch, theirs)):
        first = module.train()(xp.tensor(x))
        (first * first).sum().backward()
        results.append([first, module.eval()(xp.tensor(x)), *[each.grad for each in module.parameters()],
                        *module.state_dict().values()])  # fmt: skip
    tn.eval(results[0])
    for mine, golden in zip(*results, strict=True):
        close(mine, golden)


@pytest.mark.parametrize(("call", "shape"), CALLS)
def test_weight_norm_is_pytorchs(call, shape):
    for dim in (0, 1, None):
        ours, theirs = twins(call)
        assert utils.weight_norm(ours, dim=dim) is ours
        torch.nn.utils.weight_norm(theirs, dim=dim)
        compared(ours, theirs, shape)
        before = ours.weight.detach().numpy()
        utils.remove_weight_norm(ours)
        assert sorted(ours.state_dict()) == ["bias", "weight"] and isinstance(ours.weight, nn.Parameter)
        np.testing.assert_allclose(ours.weight.detach().numpy(), before, 1e-6)


@pytest.mark.parametrize(("call", "shape"), CALLS)
def test_weight_norm_by_parametrization_is_pytorchs(call, shape):
    ours, theirs = twins(call)
    utils.parametrizations.weight_norm(ours)
    torch.nn.utils.parametrizations.weight_norm(theirs)
    assert repr(ours) == repr(theirs)
    compared(ours, theirs, shape)


@pytest.mark.parametrize(("call", "shape"), CALLS)
@pytest.mark.parametrize("kind", ["hook", "parametrization"])
def test_spectral_norm_is_pytorchs(call, shape, kind):
    ours, theirs = twins(call)
    where = (
        (utils, torch.nn.utils)
        if kind == "hook"
        else (utils.parametrizations, torch.nn.utils.parametrizations)
    )
    where[0].spectral_norm(ours, n_power_iterations=2)
    where[1].spectral_norm(theirs, n_power_iterations=2)
    load(ours, theirs)  # the vectors that power iteration starts from
    compared(ours, theirs, shape)


def test_spectral_norm_makes_the_largest_singular_value_one():
    linear = utils.spectral_norm(nn.Linear(5, 4), n_power_iterations=50)
    linear(tn.ones(1, 5))
    assert np.linalg.svd(linear.weight.detach().numpy())[1][0] == pytest.approx(1, abs=1e-4)
    utils.remove_spectral_norm(linear)
    assert sorted(linear.state_dict()) == ["bias", "weight"]
    assert np.linalg.svd(linear.weight.detach().numpy())[1][0] == pytest.approx(1, abs=1e-4)


def test_spectral_norm_of_complex_weights_is_pytorchs():
    weight = [[1 + 2j, 0.5], [0.3j, 2 - 1j]]
    found = []
    for library in (tn, torch):
        linear = library.nn.Linear(2, 2, dtype=library.complex128)
        linear.weight = library.nn.Parameter(library.tensor(weight, dtype=library.complex128))
        library.nn.utils.parametrizations.spectral_norm(linear, n_power_iterations=100)
        found.append(np.linalg.svd(linear.weight.detach().numpy())[1])
    np.testing.assert_allclose(found[0], found[1], 1e-6)
    assert found[0][0] == pytest.approx(1, abs=1e-6)


# Parametrizations of one's own


class Symmetric(nn.Module):
    def forward(self, x):
        return x.triu() + x.triu(1).transpose(-1, -2)

    def right_inverse(self, x):
        return x.triu()


class Doubled(nn.Module):
    def forward(self, x):
        return x * 2


@pytest.mark.parametrize("shape", [(3, 3), (4, 3), (2, 4)], ids=str)
@pytest.mark.parametrize("by", ["matrix_exp", "cayley", "householder"])
def test_orthogonal_matrices_are_pytorchs(by, shape):
    draws = np.random.default_rng(0)
    base = np.linalg.qr(draws.normal(size=(max(shape),) * 2))[0]
    moved, weights = draws.normal(size=(2, *shape))
    found = []
    for library in (tn, torch):
        layer = library.nn.Linear(*shape[::-1], bias=False, dtype=library.float64)
        library.nn.utils.parametrizations.orthogonal(layer, orthogonal_map=by)
        kept = layer.parametrizations.weight
        kept[0].base = library.tensor(base)
        with library.no_grad():
            lower = library.tensor(moved).tril(-1) if shape[0] >= shape[1] else library.tensor(moved).triu(1)
            kept.original.add_(lower)
        (layer.weight * library.tensor(weights)).sum().backward()
        found.append([layer.weight.detach().numpy(), kept.original.grad.numpy(), list(layer.state_dict())])
    (matrix, gradient, keys), theirs = found
    np.testing.assert_allclose(matrix, theirs[0], rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(gradient, theirs[1], rtol=1e-4, atol=1e-5)
    assert keys == theirs[2]
    tall = matrix if shape[0] >= shape[1] else matrix.T
    np.testing.assert_allclose(tall.T @ tall, np.eye(min(shape)), atol=1e-5)


def test_an_orthogonal_matrix_can_be_assigned():
    turned = np.linalg.qr(np.random.default_rng(0).normal(size=(4, 3)))[0]
    for options in ({}, {"orthogonal_map": "cayley"}, {"use_trivialization": False}):
        layer = utils.parametrizations.orthogonal(nn.Linear(3, 4, dtype=tn.float64), **options)
        layer.weight = tn.tensor(turned)
        np.testing.assert_allclose(layer.weight.detach().numpy(), turned, atol=1e-5)
    layer = utils.parametrizations.orthogonal(nn.Linear(3, 3), use_trivialization=False)
    np.testing.assert_allclose((layer.weight.mT @ layer.weight).detach().numpy(), np.eye(3), atol=1e-5)
    with pytest.raises(NotImplementedError, match="nothing can be assigned"):
        layer.weight = tn.ones(3, 3)


def test_a_parametrized_tensor_is_computed_when_it_is_read():
    linear = nn.Linear(3, 3)
    utils.parametrize.register_parametrization(linear, "weight", Symmetric())
    assert utils.parametrize.is_parametrized(linear) and utils.parametrize.is_parametrized(linear, "weight")
    assert not utils.parametrize.is_parametrized(linear, "bias")
    assert type(linear).__name__ == "ParametrizedLinear" and isinstance(linear, nn.Linear)
    assert utils.parametrize.type_before_parametrizations(linear) is nn.Linear
    weight = linear.weight.detach().numpy()
    assert (weight == weight.T).all()
    assert list(linear.state_dict()) == ["bias", "parametrizations.weight.original"]
    linear.weight = tn.eye(3)
    assert linear.weight.tolist() == tn.eye(3).tolist()
    linear(tn.ones(1, 3)).sum().backward()
    assert linear.parametrizations.weight.original.grad is not None
    twin = copy.deepcopy(linear)
    again = pickle.loads(pickle.dumps(linear))
    assert twin.weight.tolist() == again.weight.tolist() == tn.eye(3).tolist()
    utils.parametrize.register_parametrization(linear, "bias", Doubled())
    utils.parametrize.remove_parametrizations(linear, "weight")
    assert isinstance(linear.weight, nn.Parameter) and linear.weight.tolist() == tn.eye(3).tolist()
    utils.parametrize.remove_parametrizations(linear, "bias", leave_parametrized=False)
    assert type(linear) is nn.Linear and sorted(linear.state_dict()) == ["bias", "weight"]


def test_parametrizations_follow_each_other_and_may_be_cached():
    linear = nn.Linear(2, 2)
    bias = linear.bias.detach().numpy().copy()
    for _ in range(2):
        utils.parametrize.register_parametrization(linear, "bias", Doubled())
    np.testing.assert_allclose(linear.bias.detach().numpy(), bias * 4, 1e-6)
    assert linear.bias is not linear.bias
    with utils.parametrize.cached():
        held = linear.bias
        with utils.parametrize.cached():
            assert linear.bias is held
        assert linear.bias is held
    assert linear.bias is not held and linear.bias is not linear.bias


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda m: utils.weight_norm(utils.weight_norm(m)), "has a weight norm already"),
        (lambda m: utils.weight_norm(m, "nope"), "no parameter 'nope'"),
        (lambda m: utils.remove_weight_norm(m), "has no weight norm"),
        (lambda m: utils.spectral_norm(utils.spectral_norm(m)), "has a spectral norm already"),
        (lambda m: utils.spectral_norm(m, n_power_iterations=0), "positive"),
        (lambda m: utils.remove_spectral_norm(m), "has no spectral norm"),
        (
            lambda m: utils.parametrize.register_parametrization(m, "nope", Doubled()),
            "no parameter or buffer",
        ),
        (lambda m: utils.parametrize.register_parametrization(m, "weight", nn.Flatten(0)), "unsafe=True"),
        (lambda m: utils.parametrize.remove_parametrizations(m, "weight"), "has no parametrization"),
        (lambda m: utils.fuse_linear_bn_eval(m, nn.BatchNorm1d(2)), "for evaluation only"),
        (lambda m: utils.stateless.functional_call(m, 3, tn.ones(1, 2)), "takes a dict of tensors"),
        (lambda m: utils.stateless.functional_call(m, {}, tn.ones(1, 2), strict=True), "are missing"),
        (lambda m: tn.func.functional_call(m, [{"a": tn.ones(1)}, {"a": tn.ones(1)}], ()), "given twice"),
    ],
)
def test_mistakes_are_refused(act, message):
    with pytest.raises(tn.TenfoldError, match=message) as caught:
        act(nn.Linear(2, 2))
    assert "test_utils.py" in str(caught.value)


# Fusing


@pytest.mark.parametrize(
    ("layer", "norm", "shape"),
    [
        ("Conv2d(2, 3, 2)", "BatchNorm2d(3)", (2, 2, 4, 4)),
        ("Conv1d(2, 3, 2, bias=False)", "BatchNorm1d(3, affine=False)", (2, 2, 4)),
        ("ConvTranspose1d(2, 3, 2)", "BatchNorm1d(3)", (2, 2, 4)),
        ("Linear(2, 3)", "BatchNorm1d(3)", (4, 2)),
        ("Linear(2, 3, bias=False)", "BatchNorm1d(3)", (4, 2)),
    ],
)
def test_a_fused_layer_computes_what_both_do(layer, norm, shape):
    first, second = eval(f"nn.{layer}"), eval(f"nn.{norm}")
    x = tn.randn(*shape)
    second(first(x) * 3 + 1)  # for running statistics
    first.eval(), second.eval()
    if "Linear" in layer:
        fused = utils.fuse_linear_bn_eval(first, second)
    else:
        fused = utils.fuse_conv_bn_eval(first, second, transpose="Transpose" in layer)
    close(fused(x), second(first(x)))
    assert isinstance(fused.bias, nn.Parameter) and type(fused) is type(first)


# Calls with other tensors


def test_a_module_is_called_with_other_tensors():
    module = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))
    before = dict(module.state_dict())
    given = {"0.weight": tn.eye(2).requires_grad_(), "0.bias": tn.zeros(2), "1.running_mean": tn.ones(2)}
    x = tn.tensor([[3.0, 5.0]])
    result = utils.stateless.functional_call(module.eval(), given, (x,))
    np.testing.assert_allclose(result.detach().numpy(), [[2, 4]], 1e-4)
    result.sum().backward()
    assert given["0.weight"].grad is not None and module[0].weight.grad is None
    assert all((each.numpy() == module.state_dict()[name].numpy()).all() for name, each in before.items())
    assert isinstance(module[0].weight, nn.Parameter)


def test_tensors_under_several_names_are_replaced_together():
    module = nn.ModuleDict({"one": nn.Linear(1, 1, bias=False), "two": nn.Linear(1, 1, bias=False)})
    module["two"].weight = module["one"].weight
    module.forward = lambda x: (module["one"](x), module["two"](x))
    for tie in (True, False):
        one, two = utils.stateless.functional_call(
            module, {"one.weight": tn.full((1, 1), 7.0)}, tn.ones(1, 1), tie_weights=tie
        )
        assert one.item() == 7 and (two.item() == 7) is tie
    with pytest.raises(tn.TenfoldError, match="one tensor, and get different ones"):
        utils.stateless.functional_call(
            module, {"one.weight": tn.ones(1, 1), "two.weight": tn.ones(1, 1)}, tn.ones(1, 1)
        )


@pytest.mark.parametrize("library", [tn, torch], ids=["tenfold", "torch"])
def test_what_a_module_assigns_stands_in_the_dictionary_afterwards(library):
    class Counting(library.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("calls", library.zeros(1))
            self.register_buffer("unset", None)

        def forward(self, x):
            self.calls = self.calls + 1
            return x + self.unset

    module = Counting()
    buffers = {"calls": library.tensor([5.0]), "unset": library.ones(1), "other": library.ones(1)}
    assert library.func.functional_call(module, buffers, library.ones(1)).tolist() == [2]
    assert buffers["calls"].tolist() == [6] and buffers["other"].tolist() == [1]
    assert module.calls.tolist() == [0] and module.unset is None


def test_the_modules_own_tensors_are_back_after_a_failure():
    module = nn.Linear(2, 2)
    weight = module.weight
    with pytest.raises(tn.ShapeError):
        utils.stateless.functional_call(module, {"weight": tn.ones(3, 3)}, tn.ones(1, 2))
    assert module.weight is weight


# Sequences


def sequences(xp: Any) -> list[Any]:
    return [xp.arange(float(count * 2)).reshape(count, 2) + count for count in (3, 5, 1)]


@pytest.mark.parametrize(
    "options", [{}, {"batch_first": True}, {"padding_value": -1.0, "padding_side": "left"}]
)
def test_sequences_are_padded_as_pytorchs(options):
    ours = utils.rnn.pad_sequence(sequences(tn), **options)
    close(ours, torch.nn.utils.rnn.pad_sequence(sequences(torch), **options))
    if "padding_side" not in options:
        back = utils.rnn.unpad_sequence(ours, tn.tensor([3, 5, 1]), "batch_first" in options)
        assert [each.tolist() for each in back] == [each.tolist() for each in sequences(tn)]


@pytest.mark.parametrize("batch_first", [False, True])
def test_sequences_are_packed_as_pytorchs(batch_first):
    packed = []
    for xp in (tn, torch):
        rnn = xp.nn.utils.rnn
        padded = rnn.pad_sequence(sequences(xp), batch_first)
        one = rnn.pack_padded_sequence(padded, xp.tensor([3, 5, 1]), batch_first, enforce_sorted=False)
        back, lengths = rnn.pad_packed_sequence(one, batch_first, padding_value=-2.0, total_length=6)
        packed.append([*one, back, lengths, *rnn.unpack_sequence(rnn.pack_sequence(sequences(xp), False))])
    for ours, theirs in zip(*packed, strict=True):
        assert ours.tolist() == theirs.tolist()


def test_packed_sequences_are_converted_as_pytorchs():
    def names(library):
        packed = library.nn.utils.rnn.pack_sequence([library.ones(2), library.ones(1)])
        made = [
            getattr(packed, name)()
            for name in ("double", "float", "half", "long", "int", "short", "char", "byte")
        ]
        same = packed.to(packed.data.dtype) is packed, packed.is_pinned()
        return [str(each.data.dtype).split(".")[1] for each in made], same

    assert names(tn) == names(torch)


def test_packing_refuses_what_pytorch_refuses():
    padded = tn.ones(4, 2, 3)
    for lengths, message in (
        ([1, 2], "decreasing order"),
        ([2, 0], "positive"),
        ([5, 1], "4 steps"),
        ([1], "2 has"),
    ):
        with pytest.raises(tn.TenfoldError, match=message):
            utils.rnn.pack_padded_sequence(padded, lengths)
    with pytest.raises(tn.TenfoldError, match="at least one"):
        utils.rnn.pad_sequence([])


def test_a_module_may_be_made_for_weights_that_are_yet_to_come():
    made = tn.nn.utils.skip_init(tn.nn.Linear, 3, 2, bias=False)
    made.load_state_dict({"weight": tn.ones(2, 3)})
    assert made(tn.ones(3)).tolist() == [3, 3]
    with pytest.raises(ValueError, match="takes no device"):
        tn.nn.utils.skip_init(tn.nn.ReLU)
