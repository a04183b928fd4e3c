"""`fx` beside PyTorch's: the same graphs and code for the same programs, and rewrites that give the same."""

from __future__ import annotations

import copy
import operator
import pickle

import numpy as np
import pytest
import torch
import torch.fx.passes.shape_prop

import tenfold as tn
from tests.fx import programs

BOTH = pytest.mark.parametrize("t", [tn, torch], ids=["tenfold", "pytorch"])


def flattened(result):
    if isinstance(result, dict):
        return flattened(list(result.values()))
    if isinstance(result, (list, tuple)):
        return [part for each in result for part in flattened(each)]
    return [result.detach().numpy() if hasattr(result, "detach") else result]


@pytest.mark.parametrize("program", programs.ALL, ids=lambda each: each.__name__)
def test_graph_and_code_read_as_pytorchs(program):
    ours, theirs = tn.fx.symbolic_trace(program(tn)[0]), torch.fx.symbolic_trace(program(torch)[0])
    assert str(ours.graph) == str(theirs.graph)
    assert ours.code.strip() == theirs.code.strip()


@pytest.mark.parametrize("program", programs.ALL, ids=lambda each: each.__name__)
def test_a_traced_program_computes_what_it_did(program):
    model, inputs = program(tn)
    traced = tn.fx.symbolic_trace(model)
    traced.graph.lint()
    expected = flattened(model(*inputs))
    for run in (
        traced,
        tn.fx.Interpreter(traced).run,
        tn.fx.Transformer(traced).transform(),
        copy.deepcopy(traced),
    ):
        for mine, wanted in zip(flattened(run(*inputs)), expected, strict=True):
            np.testing.assert_allclose(mine, wanted, rtol=1e-5, atol=1e-6)


def test_a_traced_module_trains():
    model, inputs = programs.resnet(tn)
    traced = tn.fx.symbolic_trace(model)
    traced(*inputs).sum().backward()
    assert traced.fc.weight.grad is not None and traced.fc is model.fc
    assert list(dict(traced.named_parameters())) == list(dict(model.named_parameters()))


@BOTH
def test_nodes_are_rewritten_one_by_one(t):
    traced = t.fx.symbolic_trace(lambda x, y: t.add(x, y) * 2)
    for node in traced.graph.nodes:
        if node.op == "call_function" and node.target is t.add:
            with traced.graph.inserting_after(node):
                new = traced.graph.call_function(t.sub, node.args, node.kwargs)
            node.replace_all_uses_with(new)
            traced.graph.erase_node(node)
        elif node.target is operator.mul:
            node.update_arg(1, 3)
    traced.graph.lint()
    traced.recompile()
    assert traced(t.ones(2), t.ones(2) * 3).tolist() == [-6, -6]
    assert [node.name for node in traced.graph.nodes] == ["x", "y", "sub", "mul", "output"]
    x, _, sub, *_ = traced.graph.nodes
    assert x.users == {sub: None}


@BOTH
def test_a_graph_is_built_by_hand(t):
    graph = t.fx.Graph()
    x = graph.placeholder("x")
    w = graph.get_attr("w")
    unused = graph.call_method("neg", (x,))
    result = graph.call_module("layer", (graph.call_function(t.matmul, (x, w)),))
    graph.output((result, x))
    module = t.fx.GraphModule({"w": t.ones(2, 2), "layer": t.nn.ReLU()}, graph)
    assert module(t.ones(1, 2))[0].tolist() == [[2, 2]]
    assert graph.eliminate_dead_code() and unused not in list(graph.nodes)
    assert [node.op for node in graph.nodes] == [
        "placeholder", "get_attr", "call_function", "call_module", "output"
    ]  # fmt: skip


@BOTH
def test_patterns_are_replaced(t):
    class Model(t.nn.Module):
        def forward(self, x, w1, w2):
            m1, m2 = t.cat([w1, w2]).sum(), t.cat([w1, w2]).sum()
            return x + t.max(m1) + t.max(m2)

    traced = t.fx.symbolic_trace(Model())
    matches = t.fx.replace_pattern(
        traced, lambda w1, w2: t.cat([w1, w2]).sum(), lambda w1, w2: t.stack([w1, w2]).sum() * 2
    )
    assert len(matches) == 2
    assert [node.name for node in traced.graph.nodes].count("stack") == 1
    assert "cat" not in traced.code
    assert traced(t.zeros(1), t.ones(3), t.ones(3)).tolist() == [24]


@BOTH
def test_a_tracer_chooses_leaves_and_a_transformer_rewrites(t):
    class Square(t.nn.Module):
        def forward(self, x):
            return x * x

    class Model(t.nn.Module):
        def __init__(self):
            super().__init__()
            self.square = Square()

        def forward(self, x):
            return t.sigmoid(self.square(x))

    class Leaves(t.fx.Tracer):
        def is_leaf_module(self, m, module_qualified_name):
            return isinstance(m, Square)

    class NegSigmoid(t.fx.Transformer):
        def call_function(self, target, args, kwargs):
            return super().call_function(t.neg if target is t.sigmoid else target, args, kwargs)

    model = Model()
    graph = Leaves().trace(model)
    assert [node.op for node in graph.nodes] == ["placeholder", "call_module", "call_function", "output"]
    changed = NegSigmoid(t.fx.symbolic_trace(model)).transform()
    assert changed(t.tensor([2.0])).tolist() == [-4]


@BOTH
def test_branches_on_values_and_loops_are_refused(t):
    def branches(x):
        return x if x.sum() > 0 else -x

    def loops(x):
        return [each + 1 for each in x]

    for each in (branches, loops):
        with pytest.raises(t.fx.proxy.TraceError):
            t.fx.symbolic_trace(each)
    with pytest.raises(RuntimeError, match="'len' is not supported"):
        t.fx.symbolic_trace(lambda x: len(x))


@BOTH
def test_unpacking_concrete_arguments_and_defaults(t):
    def compute(x, flag, extra=None):
        a, b = x.split(1)
        return a + b if flag else a - b

    traced = t.fx.symbolic_trace(compute, concrete_args={"flag": False})
    assert traced(t.tensor([3.0, 1.0]), False).tolist() == [2]


@BOTH
@pytest.mark.parametrize(("given", "other"), [(True, False), (None, 1), (2.5, 2), ("sum", "mean")])
def test_a_graph_asserts_the_concrete_arguments_it_was_traced_for(t, given, other):
    def compute(x, how, n=1):
        return x * 2 if how == given else x + n

    traced = t.fx.symbolic_trace(compute, concrete_args={"how": given})
    if t is tn or given is not None:  # PyTorch takes the assertion of None for dead code
        traced.graph.eliminate_dead_code()
        traced.recompile()
    assert traced(t.tensor([3.0]), given).tolist() == [6]
    with pytest.raises(AssertionError, match=f"how has been specialized to have value {given}"):
        traced(t.tensor([3.0]), other)


def test_the_graph_of_a_concrete_argument_is_pytorchs_and_is_pickled():
    def compute(x, flag=None):
        return x * 2 if flag else x + 1

    traced, theirs = (t.fx.symbolic_trace(compute, concrete_args={"flag": True}) for t in (tn, torch))
    assert traced.code.strip() == theirs.code.strip()
    with pytest.raises(AssertionError, match="flag has been specialized"):
        pickle.loads(pickle.dumps(traced))(tn.ones(2), False)
    traced = tn.fx.symbolic_trace(compute, concrete_args={"flag": None})
    with pytest.raises(AssertionError, match="flag has been specialized"):
        pickle.loads(pickle.dumps(traced))(tn.ones(2), False)


@BOTH
@pytest.mark.parametrize(("ignore", "expected"), [(True, [7.0]), (False, [9.0])])
def test_literals_of_a_pattern_are_compared_unless_they_are_ignored(t, ignore, expected):
    traced = t.fx.symbolic_trace(lambda x: x * 2 + 3)
    t.fx.subgraph_rewriter.replace_pattern_with_filters(
        traced, lambda x: x * 5, lambda x: x + 1, ignore_literals=ignore
    )
    assert traced(t.tensor([3.0])).tolist() == expected


@BOTH
def test_shapes_are_noted_at_each_node(t):
    traced = t.fx.symbolic_trace(t.nn.Sequential(t.nn.Linear(4, 3), t.nn.ReLU()))
    t.fx.passes.shape_prop.ShapeProp(traced).propagate(t.ones(2, 4))
    shapes = [tuple(node.meta["tensor_meta"].shape) for node in traced.graph.nodes]
    assert shapes == [(2, 4), (2, 3), (2, 3), (2, 3)]


def test_a_traced_module_is_pickled_and_copied():
    model, inputs = programs.attention(tn)
    traced = tn.fx.symbolic_trace(model)
    loaded = pickle.loads(pickle.dumps(traced))
    assert loaded.code == traced.code
    for mine, wanted in zip(flattened(loaded(*inputs)), flattened(traced(*inputs)), strict=True):
        np.testing.assert_array_equal(mine, wanted)


def test_a_traced_module_can_be_compiled():
    model, inputs = programs.attention(tn)
    traced = tn.fx.symbolic_trace(model)
    compiled = tn.compile(lambda x: traced(x)["y"])
    np.testing.assert_allclose(compiled(*inputs).detach(), model(*inputs)["y"].detach(), rtol=1e-5)


WRAPPED = """
import {package} as torch
import {package}.fx

def scaled(x, by):
    return x * len(x) * by

torch.fx.wrap("scaled")
torch.fx.wrap("len")

def compute(x):
    return scaled(x, 2) + len(x)
"""


@BOTH
def test_wrapped_functions_are_one_node(t):
    space = {"__name__": "wrapped"}
    exec(compile(WRAPPED.format(package=t.__name__), "wrapped", "exec"), space)
    traced = t.fx.symbolic_trace(space["compute"])
    assert [node.name for node in traced.graph.nodes] == ["x", "scaled", "len_1", "add", "output"]
    assert traced(t.ones(2)).tolist() == [6, 6]
    assert space["compute"](t.ones(2)).tolist() == [6, 6]


@BOTH
def test_operands_of_einsum_in_a_list_stand_one_by_one_in_a_graph(t):
    graph = t.fx.symbolic_trace(lambda a, b: t.einsum("ij,jk->ik", [a, b])).graph
    (node,) = [node for node in graph.nodes if node.op == "call_function"]
    assert [str(argument) for argument in node.args] == ["ij,jk->ik", "a", "b"]


def all_of_them(x, *rest, **named):
    return x + rest[1] * named["scale"]


def test_star_arguments_are_proxies_of_their_own():
    found = []
    for library in (tn, torch):
        module = library.fx.symbolic_trace(all_of_them)
        result = module(library.ones(1), 2, library.ones(1) * 5, scale=3)
        found.append(([str(node.target) for node in module.graph.nodes][:3], result.tolist()))
    assert found[0] == found[1]


def test_patterns_of_several_results_are_replaced():
    def replaced(library, function):
        module = library.fx.symbolic_trace(function)
        matches = library.fx.replace_pattern(
            module,
            lambda a: (library.sigmoid(a), library.relu(a)),
            lambda a: (library.exp(a), library.abs(a)),
        )
        return len(matches), module(library.tensor([-2.0, 1.0])).tolist()

    for make in (
        lambda library: lambda x: library.sigmoid(x) + library.relu(x) * 2,
        lambda library: lambda x: library.relu(library.sigmoid(x)) + 1,
        lambda library: lambda x: library.relu(x * 2) + library.sigmoid(x),
    ):
        (count, values), (expected_count, expected) = [replaced(each, make(each)) for each in (tn, torch)]
        assert count == expected_count and values == pytest.approx(expected, rel=1e-6)
