"""Every layer beside PyTorch's: the same arguments, state, text, results and gradients."""

from __future__ import annotations

import inspect
import warnings
from typing import Any

import numpy as np
import pytest
import torch

import tenfold as tn
from tests.nn.layer_cases import CASES

pytestmark = pytest.mark.usefixtures("float64")

LEFT_OUT = {
    "Container": "an old name of Module",
}


class Draws:
    """The same inputs for both libraries, by the order in which a case asks for them."""

    def __init__(self, xp: Any, again: Draws | None = None):
        self.xp = xp
        self.rng = np.random.default_rng(3)
        self.inputs: list[Any] = []
        self.bounded: list[Any] = []  # of the inputs, those that must stay within limits
        self.drawn = [] if again is None else list(again.inputs)

    def names(self) -> dict[str, Any]:
        return {"r": self.normal, "u": self.uniform, "k": self.integers, "xp": self.xp}

    def leaf(self, array: np.ndarray) -> Any:
        self.inputs.append(self.drawn.pop(0) if self.drawn else self.xp.tensor(array, requires_grad=True))
        return self.inputs[-1] * 1.0  # so that layers may write into it

    def normal(self, *shape: int) -> Any:
        return self.leaf(self.rng.normal(size=shape))

    def uniform(self, *shape: int) -> Any:
        drawn = self.leaf(self.rng.uniform(0.1, 0.9, shape))
        self.bounded.append(self.inputs[-1])
        return drawn

    def integers(self, high: int, *shape: int) -> Any:
        return self.xp.tensor(self.rng.integers(0, high, shape))


def made(call: str, xp: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return eval(call, dict(inspect.getmembers(xp.nn)) | {"xp": xp})


def flat(result: Any) -> list[Any]:
    if isinstance(result, (tuple, list)):
        return [tensor for each in result for tensor in flat(each)]
    return [] if result is None else [result]


def run(layer: Any, inputs: str, xp: Any) -> dict[str, Any]:
    """All that comes of calling a layer in training, going backward, and calling it in evaluation."""
    draws = Draws(xp)
    arguments = eval(f"({inputs},)", draws.names())
    outputs = flat(layer(*arguments))
    seen = {f"output {i}": each for i, each in enumerate(outputs)}
    real = [each for each in outputs if each.requires_grad]
    total = sum((each * (i + 1) * each.detach().cos()).sum() for i, each in enumerate(real))
    if real:
        total.backward()
    gradients = {f"input {i}": each.grad for i, each in enumerate(draws.inputs)}
    gradients |= {name: each.grad for name, each in layer.named_parameters()}
    seen |= {f"gradient of {name}": each for name, each in gradients.items() if each is not None}
    layer.eval()
    evaluated = flat(layer(*eval(f"({inputs},)", Draws(xp, draws).names())))
    seen |= {f"evaluated {i}": each for i, each in enumerate(evaluated)}
    return seen | {f"buffer {name}": each for name, each in layer.named_buffers()}


@pytest.mark.parametrize("family", CASES)
def test_layers_compute_what_pytorchs_do(family):
    torch.manual_seed(0)
    found, golden = {}, {}
    for call, inputs in CASES[family]:
        theirs, ours = made(call, torch), made(call, tn)
        state = {name: tn.tensor(each.numpy()) for name, each in theirs.state_dict().items()}
        assert list(ours.state_dict()) == list(state), call
        ours.load_state_dict(state)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            golden |= {(call, name): each for name, each in run(theirs, inputs, torch).items()}
            found |= {(call, name): each for name, each in run(ours, inputs, tn).items()}
    assert list(found) == list(golden)
    tn.eval(list(found.values()))
    for key, ours in found.items():
        theirs = golden[key].detach()
        assert ours.dtype.name == str(theirs.dtype).removeprefix("torch."), key
        np.testing.assert_allclose(ours.detach().numpy(), theirs.numpy(), 1e-6, 1e-8, err_msg=str(key))


def trained(layers: list[Any], cases: list[tuple[str, str]], xp: Any) -> dict[str, Any]:
    """What becomes of layers' parameters, buffers and inputs in twenty steps of training, all at once."""
    drawn = []
    for _, inputs in cases:
        drawn.append(Draws(xp))
        eval(f"({inputs},)", drawn[-1].names())
    bounded = {id(each) for draws in drawn for each in draws.bounded}
    leaves = [each for draws in drawn for each in draws.inputs if id(each) not in bounded]
    own = [each for layer in layers for each in layer.parameters()]
    optimizer = xp.optim.SGD([*own, *leaves], lr=1e-3, momentum=0.9)

    def step(*_: Any) -> Any:
        optimizer.zero_grad()
        total = 0.0
        for layer, draws, (_, inputs) in zip(layers, drawn, cases, strict=True):
            outputs = flat(layer(*eval(f"({inputs},)", Draws(xp, draws).names())))
            total = total + sum(each.sin().sum() for each in outputs if each.requires_grad)
        total.backward()
        optimizer.step()
        return total

    recordable = xp is tn and not any("Packed" in inputs or "pack" in inputs for _, inputs in cases)
    run = tn.compile(step) if recordable else step
    losses = [run() for _ in range(20)]
    seen = {f"loss {i}": each for i, each in enumerate(losses)}
    seen |= {f"input {i}": each for i, each in enumerate(leaves)}
    for layer, (call, _) in zip(layers, cases, strict=True):
        seen |= {f"{call} {name}": each for name, each in layer.state_dict().items()}
    return seen


@pytest.mark.parametrize("family", CASES)
def test_twenty_steps_of_training_are_pytorchs(family):
    torch.manual_seed(0)
    cases = CASES[family]
    theirs, ours = ([made(call, xp) for call, _ in cases] for xp in (torch, tn))
    for mine, reference in zip(ours, theirs, strict=True):
        mine.load_state_dict({name: tn.tensor(each.numpy()) for name, each in reference.state_dict().items()})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        golden, found = trained(theirs, cases, torch), trained(ours, cases, tn)
    assert list(found) == list(golden)
    for key, reference in golden.items():
        np.testing.assert_allclose(
            found[key].detach().numpy(), reference.detach().numpy(), 1e-6, 1e-8, err_msg=key
        )


@pytest.mark.parametrize("family", CASES)
def test_layers_print_as_pytorchs_do(family):
    for call, _ in CASES[family]:
        assert repr(made(call, tn)) == repr(made(call, torch))


def layers(library: Any) -> dict[str, type]:
    return {
        name: each
        for name, each in inspect.getmembers(library)
        if isinstance(each, type) and issubclass(each, library.Module)
    }


def test_every_layer_of_pytorchs_is_there():
    assert sorted(layers(torch.nn).keys() - layers(tn.nn).keys()) == sorted(LEFT_OUT)


def test_every_layer_is_compared_with_pytorchs():
    compared = {call.partition("(")[0] for cases in CASES.values() for call, _ in cases}
    elsewhere = {"Module", "Sequential", "ModuleList", "ModuleDict", "ParameterList", "ParameterDict"}
    elsewhere |= {"RNNBase", "RNNCellBase"}  # what the layers of their families are made of
    elsewhere |= {"DataParallel"}  # which has no layer of its own: see below
    elsewhere |= {"CrossMapLRN2d"}  # PyTorch's gradient is not that of its result: test_layer_use.py
    lazy = {name for name in layers(tn.nn) if name.startswith("Lazy")}
    assert sorted(layers(tn.nn).keys() - compared - elsewhere - lazy) == []


def test_data_parallel_is_the_module_under_another_name():
    tn.manual_seed(0)
    inner = tn.nn.Linear(3, 2)
    outer, theirs = tn.nn.DataParallel(inner), torch.nn.DataParallel(torch.nn.Linear(3, 2))
    assert list(outer.state_dict()) == list(theirs.state_dict())
    x = tn.ones(4, 3)
    assert outer(x).tolist() == inner(x).tolist()
    with pytest.raises(tn.UnsupportedError, match="not spread over 2 devices"):
        tn.nn.DataParallel(inner, device_ids=[0, 1])


def test_signatures_are_pytorchs():
    compared = 0
    for name in layers(tn.nn):
        for method in ("__init__", "forward"):
            theirs, mine = (inspect.signature(getattr(layers(xp.nn)[name], method)) for xp in (torch, tn))
            if any(each.kind is each.VAR_POSITIONAL for each in theirs.parameters.values()):
                continue  # PyTorch writes these as (*args, **kwargs)
            described = lambda s: [
                (p.name, p.default if not callable(p.default) else p.default.__name__, p.kind)
                for p in s.parameters.values()
            ]
            assert described(mine) == described(theirs), (name, method)
            compared += 1
    assert compared > 250


def test_every_layer_says_what_it_computes():
    assert [name for name, each in layers(tn.nn).items() if not vars(each).get("__doc__")] == []


def test_one_number_in_a_list_is_for_all_dimensions():
    assert tn.nn.Conv2d(1, 1, [3], stride=[2]).stride == (2, 2)
