"""Containers of modules and parameters, beside PyTorch's."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import pytest
import torch

import tenfold as tn
from tenfold import nn


def chain(xp: Any) -> Any:
    return xp.nn.Sequential(xp.nn.Linear(2, 3), xp.nn.ReLU(), xp.nn.Linear(3, 1))


def named(xp: Any) -> Any:
    return xp.nn.Sequential(OrderedDict(one=xp.nn.Linear(2, 3), two=xp.nn.ReLU()))


def listed(xp: Any) -> Any:
    return xp.nn.ModuleList([xp.nn.Linear(2, 2) for _ in range(3)] + [xp.nn.ReLU()])


STEPS: list[Callable[[Any], Any]] = [
    chain,
    named,
    listed,
    lambda xp: chain(xp)[1:],
    lambda xp: named(xp)[:1],
    lambda xp: chain(xp)[-1],
    lambda xp: chain(xp) + named(xp),
    lambda xp: chain(xp) * 2,
    lambda xp: 2 * named(xp),
    lambda xp: chain(xp).append(xp.nn.Tanh()),
    lambda xp: chain(xp).extend([xp.nn.Tanh(), xp.nn.ReLU()]),
    lambda xp: chain(xp).insert(1, xp.nn.Tanh()),
    lambda xp: changed(chain(xp), lambda m: m.__delitem__(1)),
    lambda xp: changed(chain(xp), lambda m: m.__delitem__(slice(0, 2))),
    lambda xp: changed(chain(xp), lambda m: m.__setitem__(1, xp.nn.Tanh())),
    lambda xp: changed(chain(xp), lambda m: m.pop(0)),
    lambda xp: changed(chain(xp), lambda m: m.__iadd__(named(xp))),
    lambda xp: changed(chain(xp), lambda m: m.__imul__(2)),
    lambda xp: xp.nn.Sequential(),
    lambda xp: xp.nn.ModuleList(),
    lambda xp: listed(xp)[1:],
    lambda xp: listed(xp) + [xp.nn.Tanh()],
    lambda xp: listed(xp).append(xp.nn.ReLU()),
    lambda xp: changed(listed(xp), lambda m: m.insert(0, xp.nn.Tanh())),
    lambda xp: changed(listed(xp), lambda m: m.__setitem__(-1, xp.nn.Tanh())),
    lambda xp: changed(listed(xp), lambda m: m.__delitem__(1)),
    lambda xp: changed(listed(xp), lambda m: m.pop(1)),
    lambda xp: xp.nn.ModuleDict({"a": xp.nn.ReLU(), "b": chain(xp)}),
    lambda xp: xp.nn.ModuleDict([("a", xp.nn.ReLU())]),
    lambda xp: changed(xp.nn.ModuleDict({"a": xp.nn.ReLU()}), lambda m: m.update({"c": xp.nn.Tanh()})),
    lambda xp: changed(xp.nn.ModuleDict({"a": xp.nn.ReLU(), "b": xp.nn.Tanh()}), lambda m: m.pop("a")),
    lambda xp: changed(xp.nn.ModuleDict({"a": xp.nn.ReLU()}), lambda m: m.clear()),
    lambda xp: xp.nn.ParameterList([xp.ones(2, 3), xp.zeros(1)]),
    lambda xp: xp.nn.ParameterList([xp.ones(2), 3, "text"]),
    lambda xp: xp.nn.ParameterList([xp.ones(2), xp.ones(3)])[1:],
    lambda xp: xp.nn.ParameterList([xp.ones(2)]).append(xp.ones(3)).extend([xp.ones(4)]),
    lambda xp: xp.nn.ParameterDict({"a": xp.ones(2, 3), "b": xp.nn.Parameter(xp.ones(1)), "c": 3}),
    lambda xp: xp.nn.ParameterDict({"a": xp.ones(1)}) | xp.nn.ParameterDict({"b": xp.ones(2)}),
]


def changed(container: Any, change: Callable[[Any], Any]) -> Any:
    change(container)
    return container


@pytest.mark.parametrize("step", range(len(STEPS)))
def test_containers_become_what_pytorchs_do(step):
    ours, theirs = STEPS[step](tn), STEPS[step](torch)
    assert repr(ours) == repr(theirs).replace("torch.", "tenfold.")
    assert list(ours.state_dict()) == list(theirs.state_dict())


def test_a_sequential_calls_its_modules_in_order():
    model = chain(tn)
    x = tn.ones(4, 2)
    step = model[2](model[1](model[0](x)))
    assert (model(x) == step).all().item()


def test_containers_behave_as_python_has_it():
    modules = listed(tn)
    assert len(modules) == 4 and modules[3] in list(modules)
    assert [type(each).__name__ for each in modules][-1] == "ReLU"
    table = nn.ModuleDict({"a": nn.ReLU(), "b": nn.Tanh()})
    assert list(table) == ["a", "b"] == list(table.keys())
    assert "a" in table and len(table) == 2 and len(list(table.values())) == len(list(table.items()))
    assert "0" not in dir(modules)


def test_parameter_containers_make_parameters():
    several = nn.ParameterList([tn.ones(2), nn.Parameter(tn.ones(1), requires_grad=False)])
    assert all(isinstance(each, nn.Parameter) for each in several)
    assert several[0].requires_grad and not several[1].requires_grad
    several[0] = tn.zeros(3)
    assert isinstance(several[0], nn.Parameter) and len(several) == 2 and several[-1] is several[1]
    table = nn.ParameterDict({"a": tn.ones(1)})
    table["b"] = tn.ones(2)
    assert table.setdefault("a", None) is table["a"] and table.get("z", 7) == 7
    assert list(reversed(table)) == ["b", "a"] and table.popitem()[0] == "b"
    assert list(table.copy()) == ["a"] and list(table.fromkeys(["x"], 1).items()) == [("x", 1)]
    table |= {"c": tn.ones(1)}
    assert list(table.keys()) == ["a", "c"] and len(list(table.parameters())) == 2
    table.clear()
    assert len(table) == 0 and "a" not in table


@pytest.mark.parametrize(
    ("act", "error", "message"),
    [
        (lambda: chain(tn)[3], IndexError, "index 3 is out of range for 3 modules"),
        (lambda: listed(tn)[-5], IndexError, "out of range"),
        (lambda: nn.Sequential(3), TypeError, "not a Module"),
        (lambda: chain(tn) + 3, TypeError, "a Sequential is added"),
        (lambda: chain(tn) * 0, TypeError, "positive number of times"),
        (lambda: chain(tn).insert(9, nn.ReLU()), IndexError, "out of range"),
        (lambda: nn.ModuleList(nn.ReLU()), TypeError, "takes several modules"),
        (lambda: nn.ModuleDict(3), TypeError, "takes a mapping or pairs"),
        (lambda: nn.ModuleDict([1]), TypeError, "takes pairs"),
        (lambda: nn.ModuleDict({"forward": nn.ReLU()}), KeyError, "already exists"),
        (lambda: nn.ParameterList(3), TypeError, "takes several values"),
        (lambda: nn.ParameterList([tn.ones(1)])[1], IndexError, "out of range"),
        (lambda: nn.ParameterList([])(1), RuntimeError, "not called"),
        (lambda: nn.ParameterDict({})["a"], KeyError, "no parameter 'a'"),
        (lambda: nn.ParameterDict({"forward": tn.ones(1)}), KeyError, "taken"),
        (lambda: nn.ParameterDict({3: tn.ones(1)}), TypeError, "a key is a string"),
        (lambda: nn.ParameterDict({}).popitem(), KeyError, "nothing is left"),
        (lambda: nn.ParameterDict({})(1), RuntimeError, "not called"),
    ],
)
def test_mistakes_are_refused(act, error, message):
    with pytest.raises(tn.TenfoldError, match=message) as caught:
        act()
    assert isinstance(caught.value, error)
    assert "test_containers.py" in str(caught.value)


def test_a_compiled_function_notices_the_order_of_a_module_dict():
    class Chain(nn.Module):
        def __init__(self):
            super().__init__()
            self.steps = nn.ModuleDict({"tanh": nn.Tanh(), "floor": nn.Threshold(0.5, 2.0)})

        def forward(self, x):
            for each in self.steps.values():
                x = each(x)
            return x

    chain, x = Chain(), tn.tensor([3.0, 0.1])
    compiled = tn.compile(chain)
    assert compiled(x).tolist() == chain(x).tolist()
    chain.steps["tanh"] = chain.steps.pop("tanh")
    assert compiled(x).tolist() == chain(x).tolist() == nn.Tanh()(tn.tensor([3.0, 2.0])).tolist()


def test_parameters_of_a_mapping_are_ordered_by_their_names():
    def names(library, given):
        parameters = {name: library.nn.Parameter(library.ones(1)) for name in "cab"}
        held = library.nn.ParameterDict({"z": library.nn.Parameter(library.ones(1))})
        held.update(given(parameters))
        return list(held), list(library.nn.ParameterDict(given(parameters)))

    for given in (dict, OrderedDict, lambda parameters: list(parameters.items())):
        assert names(tn, given) == names(torch, given)
