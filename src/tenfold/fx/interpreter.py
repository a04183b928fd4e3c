"""Running a graph node by node, and rewriting one by running it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tenfold.fx.code import _last_uses
from tenfold.fx.graph import Graph
from tenfold.fx.graph_module import GraphModule
from tenfold.fx.node import Argument, Node, Target, map_aggregate, map_arg
from tenfold.fx.proxy import Proxy
from tenfold.fx.tracer import Tracer
from tenfold.nn.module import Module

__all__ = ["Interpreter", "Transformer"]


class Interpreter:
    """Runs a graph module node by node. Subclass it to observe or change what nodes do."""

    def __init__(self, module: Module, garbage_collect_values: bool = True, graph: Graph | None = None):
        self.module = module
        self.graph: Graph = graph if graph is not None else module.graph
        self.submodules = dict(module.named_modules())
        self.env: dict[Node, Any] = {}
        self.name = "Interpreter"
        self.garbage_collect_values = garbage_collect_values
        self.extra_traceback = True
        self.user_to_last_uses = _last_uses(self.graph) if garbage_collect_values else {}

    def run(
        self, *args: Any, initial_env: dict[Node, Any] | None = None, enable_io_processing: bool = True
    ) -> Any:
        """Run the graph on arguments, and return its output; nodes in `initial_env` are not run but take
        these values."""
        self.env = dict(initial_env or {})
        self.args_iter: Iterator[Any] = iter(args)
        for node in self.graph.nodes:
            if node in self.env:
                continue
            self.env[node] = self.run_node(node)
            for used in self.user_to_last_uses.get(node, []):
                del self.env[used]
            if node.op == "output":
                return self.env[node]
        return None

    def boxed_run(self, args_list: list[Any]) -> Any:
        args = tuple(args_list)
        args_list.clear()
        return self.run(*args)

    def run_node(self, n: Node) -> Any:
        args, kwargs = self.fetch_args_kwargs_from_env(n)
        return getattr(self, n.op)(n.target, args, kwargs)

    # One method for each kind of node

    def placeholder(self, target: Target, args: tuple[Argument, ...], kwargs: dict[str, Any]) -> Any:
        if isinstance(target, str) and target.startswith("*"):
            return list(self.args_iter)
        try:
            return next(self.args_iter)
        except StopIteration:
            if args:
                return args[0]
            problem = f"Expected positional argument for parameter {target}, but one was not passed in!"
            raise RuntimeError(problem) from None

    def get_attr(self, target: Target, args: tuple[Argument, ...], kwargs: dict[str, Any]) -> Any:
        return self.fetch_attr(str(target))

    def call_function(self, target: Any, args: tuple[Argument, ...], kwargs: dict[str, Any]) -> Any:
        return target(*args, **kwargs)

    def call_method(self, target: Target, args: tuple[Argument, ...], kwargs: dict[str, Any]) -> Any:
        self_obj, *rest = args
        return getattr(self_obj, str(target))(*rest, **kwargs)

    def call_module(self, target: Target, args: tuple[Argument, ...], kwargs: dict[str, Any]) -> Any:
        return self.fetch_attr(str(target))(*args, **kwargs)

    def output(self, target: Target, args: tuple[Argument, ...], kwargs: dict[str, Any]) -> Any:
        return args[0]

    # Values

    def fetch_attr(self, target: str) -> Any:
        found: Any = self.module
        for i, part in enumerate(target.split(".")):
            if not hasattr(found, part):
                place = ".".join(target.split(".")[: i + 1])
                raise RuntimeError(f"Node referenced nonexistent target {place}")
            found = getattr(found, part)
        return found

    def fetch_args_kwargs_from_env(self, n: Node) -> tuple[tuple[Any, ...], dict[str, Any]]:
        return self.map_nodes_to_values(n.args, n), self.map_nodes_to_values(n.kwargs, n)

    def map_nodes_to_values(self, args: Argument, n: Node) -> Argument:
        def load(node: Node) -> Any:
            if node not in self.env:
                raise RuntimeError(
                    f"Node {n} referenced nonexistent value {node}! Run Graph.lint() to diagnose"
                )
            return self.env[node]

        return _mutable(map_arg(args, load))


def _mutable(given: Any) -> Any:
    """Arguments whose lists and dictionaries are plain ones, as functions expect."""
    if isinstance(given, list):
        return [_mutable(each) for each in given]
    if isinstance(given, dict):
        return {key: _mutable(each) for key, each in given.items()}
    if isinstance(given, tuple) and not hasattr(given, "_fields"):
        return tuple([_mutable(each) for each in given]) if type(given) is tuple else given
    return given


class Transformer(Interpreter):
    """Makes a new graph module by running one on proxies. Override a method to rewrite nodes."""

    def __init__(self, module: GraphModule):
        super().__init__(module)
        self.new_graph = Graph()

        class TransformerTracer(Tracer):
            def __init__(self, graph: Graph):
                super().__init__()
                self.graph = graph
                self.root = module

            def is_leaf_module(self, m: Module, module_qualified_name: str) -> bool:
                return True

        self.tracer = TransformerTracer(self.new_graph)

    def placeholder(self, target: Target, args: tuple[Argument, ...], kwargs: dict[str, Any]) -> Proxy:
        default = args[0] if args else ...
        return Proxy(self.new_graph.placeholder(str(target), default_value=default), self.tracer)

    def get_attr(self, target: Target, args: tuple[Argument, ...], kwargs: dict[str, Any]) -> Proxy:
        return self.tracer.create_proxy("get_attr", target, args, kwargs)

    def call_module(self, target: Target, args: tuple[Argument, ...], kwargs: dict[str, Any]) -> Any:
        module = self.fetch_attr(str(target))
        return self.tracer.call_module(module, module.forward, args, kwargs)

    def call_function(self, target: Any, args: tuple[Argument, ...], kwargs: dict[str, Any]) -> Any:
        return self.tracer.create_proxy("call_function", target, args, kwargs)

    def call_method(self, target: Target, args: tuple[Argument, ...], kwargs: dict[str, Any]) -> Any:
        return self.tracer.create_proxy("call_method", target, args, kwargs)

    def transform(self) -> GraphModule:
        result = super().run()
        if result is not None:
            strip = lambda each: each.node if isinstance(each, Proxy) else each
            self.new_graph.output(map_aggregate(result, strip))
        return GraphModule(self.module, self.new_graph)
