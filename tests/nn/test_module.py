"""Module: registration, traversal, state, conversion, printing; each beside PyTorch's where that says what is
right."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest
import torch

import tenfold as tn
from tenfold import nn


def net(xp: Any) -> Any:
    """The same module in either library: children, a shared one, a buffer, an empty slot."""

    class Net(xp.nn.Module):
        def __init__(self):
            super().__init__()
            self.first = xp.nn.Linear(2, 3)
            self.again = self.first
            self.block = xp.nn.Sequential(xp.nn.ReLU(), xp.nn.BatchNorm1d(3))
            self.scale = xp.nn.Parameter(xp.ones(3))
            self.register_parameter("missing", None)
            self.register_buffer("steps", xp.zeros(1))
            self.register_buffer("scratch", xp.zeros(2), persistent=False)
            self.nothing = None

        def forward(self, x):
            return self.block(self.first(x)) * self.scale

    return Net()


class Plain(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(2, 2)

    def forward(self, x):
        return self.linear(x)


# Registration


def test_assigned_parameters_modules_and_buffers_are_registered():
    module = nn.Module()
    module.weight = nn.Parameter(tn.ones(2))
    module.child = nn.ReLU()
    module.state = nn.Buffer(tn.zeros(2))
    module.hidden = nn.Buffer(tn.zeros(2), persistent=False)
    module.plain = tn.ones(1)
    assert list(module._parameters) == ["weight"]
    assert list(module._modules) == ["child"]
    assert list(module._buffers) == ["state", "hidden"]
    assert list(module.state_dict()) == ["weight", "state"]
    assert "plain" in vars(module)


def test_an_attribute_moves_between_kinds_when_it_is_reassigned():
    module = nn.Module()
    module.thing = 3
    module.thing = nn.Parameter(tn.ones(2))
    assert "thing" not in vars(module) and list(module._parameters) == ["thing"]
    module.thing = None
    assert module.thing is None and list(module._parameters) == ["thing"]
    del module.thing
    module.thing = nn.ReLU()
    module.thing = nn.Parameter(tn.ones(2))
    assert not module._modules and list(module._parameters) == ["thing"]
    module.register_buffer("state", tn.zeros(1), persistent=False)
    module.state = tn.ones(1)
    assert module._buffers["state"].item() == 1
    del module.state
    assert not module._non_persistent_buffers_set


def before_init(value: Any) -> Any:
    class Early(nn.Module):
        def __init__(self):
            self.thing = value

    return Early


@pytest.mark.parametrize(
    ("act", "error", "message"),
    [
        (lambda m: setattr(m.linear, "weight", tn.ones(2)), TypeError, "as parameter 'weight'"),
        (lambda m: setattr(m, "linear", 3), TypeError, "an? int as child module 'linear'"),
        (lambda m: m.register_buffer("state", 3), TypeError, "a int as buffer 'state'"),
        (lambda m: m.register_parameter("p", tn.ones(2)), TypeError, "nn.Parameter\\(tensor\\)"),
        (lambda m: m.register_parameter("p", 3), TypeError, "a Parameter is needed"),
        (lambda m: m.register_parameter("linear", nn.Parameter(tn.ones(1))), KeyError, "already exists"),
        (lambda m: m.register_parameter("a.b", None), KeyError, 'no "."'),
        (lambda m: m.register_parameter("", None), KeyError, "not empty"),
        (lambda m: m.register_parameter(3, None), TypeError, "is a string"),
        (lambda m: m.register_buffer("forward", None), KeyError, "already exists"),
        (lambda m: m.register_buffer("a.b", None), KeyError, 'no "."'),
        (lambda m: m.add_module("child", 3), TypeError, "a int is not a Module"),
        (lambda m: m.add_module("forward", nn.ReLU()), KeyError, "already exists"),
        (lambda m: m.add_module("a.b", nn.ReLU()), KeyError, 'no "."'),
        (lambda m: m.linea, AttributeError, "did you mean linear"),
        (lambda m: delattr(m, "nope"), AttributeError, "nope"),
        (lambda m: m.get_submodule("linear.nope"), AttributeError, "Linear has no module 'nope'"),
        (lambda m: m.get_parameter("linear.weigth"), AttributeError, "did you mean weight"),
        (lambda m: m.get_buffer("linear.weight"), AttributeError, "no buffer 'weight'"),
        (lambda m: m.set_submodule("", nn.ReLU()), TypeError, "empty path"),
        (lambda m: m.set_submodule("nope", nn.ReLU(), strict=True), AttributeError, "to replace"),
        (lambda m: m.train("yes"), TypeError, "True or False"),
        (lambda m: m.to(tn.int32), TypeError, "float and complex dtypes only"),
        (lambda m: m.load_state_dict([1]), TypeError, "is a dict"),
        (lambda m: nn.Module()(1), NotImplementedError, "define forward"),
        (lambda m: before_init(nn.Parameter(tn.ones(1)))(), AttributeError, "super\\(\\).__init__"),
        (lambda m: before_init(nn.ReLU())(), AttributeError, "a module is assigned before"),
        (lambda m: before_init(nn.Buffer(tn.ones(1)))(), AttributeError, "a buffer is assigned before"),
    ],
)
def test_what_pytorch_refuses_is_refused_with_the_reason(act, error, message):
    with pytest.raises(tn.TenfoldError, match=message) as caught:
        act(Plain())
    assert isinstance(caught.value, error)
    assert "test_module.py" in str(caught.value)


def test_a_parameter_computed_from_others_is_refused():
    computed = nn.Parameter(tn.ones(2))
    computed._value = (nn.Parameter(tn.ones(2)) * 2).current()
    computed._leaf = None
    with pytest.raises(tn.TenfoldError, match="cannot be trained itself"):
        nn.Module().register_parameter("p", computed)


# Traversal


def names(pairs: Any) -> list[str]:
    return [name for name, _ in pairs]


def test_traversal_is_pytorchs():
    ours, theirs = net(tn), net(torch)
    for method in ("named_parameters", "named_buffers", "named_modules", "named_children"):
        assert names(getattr(ours, method)()) == names(getattr(theirs, method)()), method
    for options in ({"prefix": "net"}, {"recurse": False}, {"remove_duplicate": False}):
        for method in ("named_parameters", "named_buffers"):
            assert names(getattr(ours, method)(**options)) == names(getattr(theirs, method)(**options))
    assert names(ours.named_modules(remove_duplicate=False)) == names(
        theirs.named_modules(remove_duplicate=False)
    )
    assert names(ours.named_modules(prefix="net")) == names(theirs.named_modules(prefix="net"))
    assert len(list(ours.parameters())) == len(list(theirs.parameters())) == 5
    assert len(list(ours.parameters(recurse=False))) == 1
    assert len(list(ours.buffers())) == len(list(theirs.buffers()))
    assert len(list(ours.modules())) == len(list(theirs.modules()))
    assert len(list(ours.children())) == len(list(theirs.children()))


def test_members_are_found_by_dotted_names():
    module = net(tn)
    assert module.get_submodule("") is module
    assert module.get_submodule("block.1") is module.block[1]
    assert module.get_parameter("first.weight") is module.first.weight
    assert module.get_buffer("block.1.running_mean") is module.block[1].running_mean
    module.set_submodule("block.0", nn.GELU())
    assert isinstance(module.block[0], nn.GELU)
    assert {"first", "scale", "steps", "forward", "training"} <= set(dir(module))


def test_apply_reaches_children_first():
    seen = []
    module = net(tn)
    assert module.apply(lambda each: seen.append(type(each).__name__)) is module
    assert seen == ["Linear", "ReLU", "BatchNorm1d", "Sequential", "Net"]


def test_train_and_eval_reach_every_module():
    module = net(tn)
    assert module.eval() is module
    assert not any(each.training for each in module.modules())
    module.block.train()
    assert module.block[1].training and not module.training


# Text


def test_text_is_pytorchs():
    assert repr(net(tn)) == repr(net(torch))
    assert repr(nn.Module()) == "Module()"
    several = lambda xp: type("Odd", (xp.nn.Module,), {"extra_repr": lambda self: "a=1\nb=2"})()
    assert repr(several(tn)) == repr(several(torch))


# State


def test_state_dict_has_pytorchs_names_and_shares_memory():
    module = net(tn)
    state = module.state_dict()
    assert list(state) == list(net(torch).state_dict())
    assert dict(state._metadata) == dict(net(torch).state_dict()._metadata)
    assert list(module.state_dict(prefix="net.")) == [f"net.{name}" for name in state]
    assert not state["scale"].requires_grad
    with tn.no_grad():
        module.scale += 1
    assert state["scale"].tolist() == [2, 2, 2]
    state["scale"].zero_()
    assert module.scale.tolist() == [0, 0, 0]
    assert module.state_dict(keep_vars=True)["scale"] is module.scale


def test_state_is_loaded_by_name():
    source, module = net(tn), net(tn)
    weight = module.first.weight
    found = module.load_state_dict(source.state_dict())
    assert str(found) == "<All keys matched successfully>"
    assert module.first.weight is weight and weight.requires_grad
    assert (weight.detach().numpy() == source.first.weight.detach().numpy()).all()
    with tn.no_grad():
        source.first.weight.zero_()
    assert weight.detach().abs().sum().item() > 0, "loading copies"


def test_loading_converts_dtypes_and_scalars():
    module = nn.BatchNorm1d(2)
    state = {
        name: each.double() if each.ndim else each.reshape(1) for name, each in module.state_dict().items()
    }
    state["weight"] = tn.tensor([3.0, 4.0], dtype=tn.float64)
    module.load_state_dict(state)
    assert module.weight.dtype is tn.float32 and module.weight.tolist() == [3, 4]


def test_assign_takes_the_tensors_themselves():
    module = nn.Linear(2, 1).requires_grad_(False)
    given = nn.Parameter(tn.ones(1, 2, dtype=tn.float64))
    module.load_state_dict({"weight": given, "bias": tn.zeros(1)}, assign=True)
    assert module.weight is given
    assert isinstance(module.bias, nn.Parameter) and not module.bias.requires_grad


def reports(xp: Any) -> list[str]:
    texts = []
    for change in (
        lambda state: state.pop("first.bias"),
        lambda state: state.update(extra=xp.ones(1)),
        lambda state: state.update({"block.7.weight": xp.ones(1)}),
        lambda state: state.update(scale=xp.ones(4)),
        lambda state: (state.pop("steps"), state.update(more=xp.ones(1), scale=xp.ones(1, 3))),
        lambda state: state.update(scale=3),
    ):
        module = net(xp)
        state = dict(module.state_dict())
        change(state)
        with pytest.raises(RuntimeError) as caught:
            module.load_state_dict(state)
        texts.append(str(caught.value))
    return texts


def test_the_report_of_a_state_that_does_not_fit_is_pytorchs():
    for ours, theirs in zip(reports(tn), reports(torch), strict=True):
        first = theirs.replace("torch.Size", "tenfold.Size").replace(".Tensor", "").split("expected")[0]
        assert ours.replace(".\n", ". \n").startswith(first), (ours, theirs)


def test_without_strict_what_differs_is_returned():
    state = dict(net(tn).state_dict()) | {"extra": tn.ones(1)}
    del state["scale"]
    missing, unexpected = net(tn).load_state_dict(state, strict=False)
    assert (missing, unexpected) == (["scale"], ["extra"])
    with pytest.raises(RuntimeError, match="size mismatch"):
        net(tn).load_state_dict({"scale": tn.ones(4)}, strict=False)


def test_extra_state_and_state_hooks_are_called_as_pytorchs():
    def log(xp: Any) -> list[Any]:
        seen: list[Any] = []

        class Counter(xp.nn.Module):
            def get_extra_state(self):
                return {"count": 3}

            def set_extra_state(self, state):
                seen.append(("extra", state))

        module = xp.nn.Sequential(Counter(), xp.nn.Linear(1, 1))
        module.register_state_dict_pre_hook(lambda m, prefix, keep: seen.append(("pre", prefix, keep)))
        module[1].register_state_dict_post_hook(lambda m, s, prefix, meta: seen.append((list(s), prefix)))
        module[1].register_load_state_dict_pre_hook(
            lambda m, state, prefix, meta, strict, missing, unexpected, errors: seen.append((prefix, strict))
        )
        module.register_load_state_dict_post_hook(lambda m, keys: seen.append(keys.missing_keys))
        state = module.state_dict()
        module.load_state_dict(state)
        del state["0._extra_state"]
        seen.append(module.load_state_dict(state, strict=False).missing_keys)
        return seen

    assert log(tn) == log(torch)


def test_old_batch_norm_states_load():
    module = nn.BatchNorm1d(2)
    state = module.state_dict()
    del state["num_batches_tracked"]
    state._metadata[""]["version"] = 1
    module.load_state_dict(state)
    assert module.num_batches_tracked.item() == 0


# Conversion


def test_conversion_keeps_the_objects_and_their_gradients():
    module = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))
    parameters = list(module.parameters())
    module(tn.ones(3, 2)).sum().backward()
    assert module.double() is module
    assert all(new is old for new, old in zip(module.parameters(), parameters, strict=True))
    assert {each.dtype for each in parameters} == {tn.float64}
    assert {each.grad.dtype for each in parameters} == {tn.float64}
    assert all(each.is_leaf and each.requires_grad for each in parameters)
    assert module[1].running_mean.dtype is tn.float64
    assert module[1].num_batches_tracked.dtype is tn.int64
    assert module(tn.ones(3, 2, dtype=tn.float64)).dtype is tn.float64


def test_every_conversion_gives_its_dtype():
    module = nn.Linear(1, 1)
    for convert, dtype in (
        (module.half, tn.float16), (module.bfloat16, tn.bfloat16), (module.double, tn.float64),
        (module.float, tn.float32), (lambda: module.to(tn.float64), tn.float64),
        (lambda: module.to("cpu", tn.float32), tn.float32),
        (lambda: module.to(tn.ones(1).half()), tn.float16),
        (lambda: module.to(dtype=tn.float32), tn.float32), (lambda: module.type(tn.float64), tn.float64),
        (lambda: module.cpu().to("cpu", non_blocking=True), tn.float64),
    ):  # fmt: skip
        convert()
        assert module.weight.dtype is dtype
    assert module.to_empty(device="cpu").weight.shape == (1, 1)
    with pytest.raises(tn.ArgumentError, match="takes"):
        module.to(place="cpu")


def test_a_shared_parameter_is_converted_once():
    module = nn.Module()
    module.one = nn.Linear(2, 2)
    module.two = nn.Linear(2, 2)
    module.two.weight = module.one.weight
    module.double()
    assert module.two.weight is module.one.weight and module.one.weight.dtype is tn.float64


def test_gradients_are_switched_and_cleared():
    module = nn.Linear(2, 2)
    module(tn.ones(1, 2)).sum().backward()
    gradient = module.weight.grad
    module.zero_grad(set_to_none=False)
    assert module.weight.grad is gradient and gradient.tolist() == [[0, 0], [0, 0]]
    module.zero_grad()
    assert module.weight.grad is None
    module.requires_grad_(False)
    assert not any(each.requires_grad for each in module.parameters())


# Copies


def test_copies_are_independent():
    module = net(tn)
    module.scale.sum().backward()
    twin = copy.deepcopy(module)
    assert module.scale.grad is not None and twin.scale.grad is None
    assert twin.again is twin.first and twin.first is not module.first
    assert list(twin.state_dict()) == list(module.state_dict())
    with tn.no_grad():
        twin.scale.zero_()
    assert module.scale.tolist() == [1, 1, 1]
    assert twin.scale.requires_grad and twin.scale.is_leaf


def test_modules_pickle():
    module = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2)).eval()
    module.compile()
    twin = pickle.loads(pickle.dumps(module))
    assert not twin[1].training
    for name, each in module.state_dict().items():
        assert (twin.state_dict()[name].numpy() == each.numpy()).all()


# Programs


def test_a_new_modules_tensors_hold_their_data():
    module = nn.Sequential(
        nn.Linear(2, 3), nn.BatchNorm1d(3), nn.Embedding(4, 2, padding_idx=1), nn.LSTM(2, 2)
    )
    values = [each.current() for each in (*module.parameters(), *module.buffers())]
    assert all(value.buffer is not None for value in values)


def test_compile_runs_the_module_as_a_program():
    module = nn.Linear(2, 3)
    x = tn.ones(4, 2)
    expected = module(x).detach().numpy()
    module.compile()
    np.testing.assert_allclose(module(x).detach().numpy(), expected, 1e-6)


def test_a_compiled_function_follows_the_training_flag():
    module = nn.Dropout(1.0)
    step = tn.compile(lambda x: module(x) + 1)
    assert step(tn.ones(2)).tolist() == [1, 1]
    module.eval()
    assert step(tn.ones(2)).tolist() == [2, 2]


def test_running_statistics_are_state_of_a_compiled_function():
    ours, theirs = nn.BatchNorm1d(2), torch.nn.BatchNorm1d(2)
    step = tn.compile(lambda x: ours(x))
    for i in range(3):
        x = np.arange(8, dtype=np.float32).reshape(4, 2) * (i + 1)
        step(tn.tensor(x))
        theirs(torch.tensor(x))
    np.testing.assert_allclose(ours.running_var.numpy(), theirs.running_var.numpy(), 1e-5)
    assert ours.num_batches_tracked.item() == 3


def test_what_is_computed_from_a_buffer_is_a_plain_tensor():
    module = tn.nn.Module()
    module.register_buffer("kept", tn.nn.Buffer(tn.ones(2)), persistent=False)
    assert type(tn.empty_like(module.kept)) is type(module.kept + 1) is tn.Tensor
    module.kept = tn.empty_like(module.kept)
    assert "kept" in dict(module.named_buffers()) and "kept" not in module.state_dict()


@pytest.mark.parametrize("library", [tn, torch])
def test_a_buffer_or_a_module_takes_the_place_of_no_other_attribute(library):
    module = library.nn.Module()
    module.word, module.number = "word", 5
    with pytest.raises(KeyError):
        module.number = library.nn.Buffer(library.ones(1))
    with pytest.raises(AttributeError):
        module.set_submodule("word", library.nn.Linear(1, 1))
    assert module.word == "word" and module.number == 5
