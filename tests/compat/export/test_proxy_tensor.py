"""`make_fx`: a function as a graph of ATen calls, which computes what PyTorch's graph computes."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.fx.experimental.proxy_tensor import make_fx as theirs

import tenfold as tn
from tenfold.base.errors import UnsupportedError
from tenfold.compat.export.proxy_tensor import make_fx as ours

WAYS = [(tn, ours), (torch, theirs)]


def targets(module: Any) -> list[str]:
    return [str(node.target) for node in module.graph.nodes if node.op == "call_function"]


def test_the_graph_has_pytorchs_calls_names_and_results():
    found = []
    for library, make_fx in WAYS:
        module = make_fx(lambda x, y: (x.sin() + y).sum())(library.ones(3), library.ones(3))
        named = [node.name for node in module.graph.nodes]
        found.append((named, targets(module), module(library.zeros(3), library.ones(3)).item()))
    assert found[0] == found[1]
    assert found[0][1] == ["aten.sin.default", "aten.add.Tensor", "aten.sum.default"]


def test_a_modules_parameters_are_attributes_of_the_graph():
    for library, make_fx in WAYS:
        linear = library.nn.Linear(3, 2)
        module = make_fx(linear)(library.ones(1, 3))
        assert [name for name, _ in module.named_parameters()] == ["_param_constant0", "_param_constant1"]
        x = library.arange(3.0).reshape(1, 3)
        assert library.allclose(module(x), linear(x))
        module(x).sum().backward()
        assert linear.weight.grad.tolist() == [[0.0, 1.0, 2.0]] * 2


def counting(count: Any) -> Any:
    def step(x, y):
        x.add_(y)
        count.mul_(2).add_(1)
        return x * 2

    return step


def test_writes_to_arguments_and_to_tensors_from_outside_are_made():
    found = []
    for library, make_fx in WAYS:
        count = library.zeros(2)
        module = make_fx(counting(count))(library.ones(2), library.ones(2))
        count.zero_()
        x = library.ones(2)
        results = [module(x, library.ones(2)).tolist() for _ in range(2)]
        found.append((results, x.tolist()))
    assert found[0] == found[1]


def test_arguments_and_results_may_be_nested():
    found = []
    for library, make_fx in WAYS:
        module = make_fx(lambda pair, scale: {"a": pair["x"] * scale, "b": [pair["y"]]})(
            {"x": library.ones(2), "y": library.zeros(2)}, 3
        )
        given = {"x": library.ones(2) * 2, "y": library.zeros(2)}
        result = module(given, 3)
        found.append((result["a"].tolist(), result["b"][0].tolist()))
    assert found[0] == found[1]


def test_other_functions_take_the_place_of_calls():
    found = []
    for library, make_fx in WAYS:
        silu = (tn.ops if library is tn else torch.ops).aten.silu.default
        table = {silu: lambda x: x * x.sigmoid()}
        module = make_fx(library.nn.SiLU(), decomposition_table=table)(library.ones(2))
        found.append((targets(module), module(library.zeros(2)).tolist()))
    assert found[0] == found[1]
    assert found[0][0] == ["aten.sigmoid.default", "aten.mul.Tensor"]


def test_what_is_no_call_of_atens_and_open_sizes_are_refused():
    with pytest.raises(UnsupportedError, match="no op of ATen's"):
        ours(tn.func.grad(lambda x: (x * x).sum()))(tn.ones(2))
    with pytest.raises(UnsupportedError, match="dynamic_shapes"):
        ours(lambda x: x, tracing_mode="symbolic")
