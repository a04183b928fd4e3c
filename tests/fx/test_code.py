"""The Python code of a graph."""

from __future__ import annotations

import pytest

import tenfold as tn
from tenfold.fx.graph import Graph
from tenfold.fx.graph_module import GraphModule


@pytest.mark.parametrize("name", ["0", "class", 'a"b', "a\\"])
def test_an_attribute_whose_name_is_no_identifier_is_quoted(name):
    root = tn.nn.Module()
    setattr(root, name, tn.ones(2))
    graph = Graph()
    graph.output(graph.get_attr(name))
    assert GraphModule(root, graph)().tolist() == [1, 1]
