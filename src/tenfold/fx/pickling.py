"""Pickles of graph modules: the source is stored, and traced again when it is read."""

from __future__ import annotations

import sys
from typing import Any

from tenfold.fx.graph_module import GraphModule, _CodeOnlyModule, _forward_from_src
from tenfold.fx.tracer import Tracer
from tenfold.nn.module import Module

__all__ = ["reduce_graph_module"]


class _KeepModules(Tracer):
    """Every module that the source calls is one node again."""

    def is_leaf_module(self, m: Module, module_qualified_name: str) -> bool:
        return True


def reduce_graph_module(body: dict[Any, Any], import_block: str) -> Module:
    """A graph module from its attributes and source, as pickles hold it."""
    source = body.pop("_code")
    held = _CodeOnlyModule(body)
    names: dict[str, Any] = {"torch": sys.modules["tenfold"]}
    exec(import_block, names)

    class Sourced(_CodeOnlyModule):
        forward = _forward_from_src(source, names)

    held.__class__ = Sourced
    graph = _KeepModules().trace(held)
    return GraphModule(held, graph, body.get("_graphmodule_cls_name", "GraphModule"))


def _reduced(self: GraphModule) -> tuple[Any, ...]:
    body = {key: member for key, member in vars(self).items() if key not in ("_graph", "_globals")}
    imports = [_importing(name, each) for name, each in vars(self)["_globals"].items() if name != "torch"]
    return reduce_graph_module, (body, "\n".join(imports))


def _importing(name: str, each: Any) -> str:
    if name in ("inf", "nan"):
        return f"from math import {name}"
    return f"from {each.__module__} import {each.__name__} as {name}"


GraphModule.__reduce__ = _reduced  # type: ignore[method-assign, assignment]
