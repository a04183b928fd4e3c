"""`tenfold.fx`: programs as graphs of Python calls, which can be looked at, rewritten and run.

`symbolic_trace` runs a module or a function once on proxies and gives a `GraphModule`: a graph, and a forward
whose source is generated from it."""

from __future__ import annotations

from typing import Any

from tenfold.base.absent import AbsentModule
from tenfold.fx import passes, pickling, subgraph_rewriter
from tenfold.fx.graph import Graph, PythonCode
from tenfold.fx.graph_module import GraphModule
from tenfold.fx.interpreter import Interpreter, Transformer
from tenfold.fx.node import Node, has_side_effect, map_arg
from tenfold.fx.passes import shape_prop
from tenfold.fx.proxy import Proxy
from tenfold.fx.subgraph_rewriter import replace_pattern
from tenfold.fx.tracer import PH, Tracer, symbolic_trace, wrap

__all__ = [
    "PH", "Graph", "GraphModule", "Interpreter", "Node", "Proxy", "PythonCode", "Tracer", "Transformer",
    "has_side_effect", "map_arg", "passes", "pickling", "replace_pattern", "shape_prop", "subgraph_rewriter",
    "symbolic_trace", "wrap",
]  # fmt: skip

_absent = AbsentModule.of("torch.fx.experimental")


def __getattr__(name: str) -> Any:
    return getattr(_absent, name)
