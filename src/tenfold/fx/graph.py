"""A graph: calls in the order in which they run. It can be built, changed, checked, printed and turned into
Python code."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Callable, Iterator
from typing import Any

from tenfold.fx.code import PythonCode, python_code
from tenfold.fx.names import Namespace, snake_case
from tenfold.fx.node import Argument, Node, Target, map_arg, pretty_target

__all__ = ["Graph", "PythonCode"]


class NodeList:
    """The nodes of a graph in order. The graph may change during an iteration."""

    def __init__(self, graph: Graph, direction: str = "_next"):
        self.graph, self.direction = graph, direction

    def __len__(self) -> int:
        return self.graph._count

    def __iter__(self) -> Iterator[Node]:
        current = getattr(self.graph._root, self.direction)
        while current is not self.graph._root:
            following = getattr(current, self.direction)
            if not current._erased:
                yield current
                following = getattr(current, self.direction) if not current._erased else following
            current = following

    def __reversed__(self) -> NodeList:
        return NodeList(self.graph, "_next" if self.direction == "_prev" else "_prev")


class Graph:
    """The calls of a function or of a module's forward.

    >>> graph = tenfold.fx.Graph()
    >>> x = graph.placeholder("x")
    >>> doubled = graph.call_function(tenfold.add, (x, x))
    >>> node = graph.output(doubled)
    >>> print(graph)
    graph():
        %x : [num_users=1] = placeholder[target=x]
        %add : [num_users=1] = call_function[target=torch.add](args = (%x, %x), kwargs = {})
        return add
    """

    def __init__(self, owning_module: Any = None, tracer_cls: Any = None, tracer_extras: Any = None):
        self._root = Node(self, "", "root", "", (), {})
        self._insert: Callable[[Node], None] = self._root.prepend
        self._count = 0
        self._graph_namespace = Namespace()
        self._owning_module = owning_module
        self._tracer_cls = tracer_cls
        self._tracer_extras = tracer_extras
        self._codegen: Any = None
        self.meta: dict[str, Any] = {}

    @property
    def owning_module(self) -> Any:
        return self._owning_module

    @owning_module.setter
    def owning_module(self, module: Any) -> None:
        self._owning_module = module

    @property
    def nodes(self) -> NodeList:
        return NodeList(self)

    def find_nodes(self, *, op: str, target: Target | None = None, sort: bool = True) -> list[Node]:
        """The nodes with an `op`, in order, and with a target if one is given."""
        return [node for node in self.nodes if node.op == op and (target is None or node.target == target)]

    def output_node(self) -> Node:
        return next(node for node in reversed(self.nodes) if node.op == "output")

    # Building

    def create_node(
        self,
        op: str,
        target: Target,
        args: tuple[Argument, ...] | None = None,
        kwargs: dict[str, Argument] | None = None,
        name: str | None = None,
        type_expr: Any = None,
    ) -> Node:
        """Create a node at the insertion point."""
        candidate = name if name is not None else self._target_to_str(target)
        made = self._graph_namespace.create_name(candidate, None)
        node = Node(self, made, op, target, args or (), kwargs or {}, type_expr)
        self._graph_namespace.associate_name_with_obj(made, node)
        self._insert(node)
        self._count += 1
        return node

    def placeholder(self, name: str, type_expr: Any = None, default_value: Any = ...) -> Node:
        """Add an argument of the graph, which may have a default."""
        args = () if default_value is ... else (default_value,)
        return self.create_node("placeholder", name, args, type_expr=type_expr)

    def get_attr(self, qualified_name: str, type_expr: Any = None) -> Node:
        """Add an attribute of the graph's module or of one of its descendants, such as "layer.weight"."""
        return self.create_node("get_attr", qualified_name, type_expr=type_expr)

    def call_module(
        self, module_name: str, args: Any = None, kwargs: Any = None, type_expr: Any = None
    ) -> Node:
        return self.create_node("call_module", module_name, args, kwargs, type_expr=type_expr)

    def call_method(
        self, method_name: str, args: Any = None, kwargs: Any = None, type_expr: Any = None
    ) -> Node:
        """Add a call of a method of the first argument."""
        return self.create_node("call_method", method_name, args, kwargs, type_expr=type_expr)

    def call_function(
        self, the_function: Callable[..., Any], args: Any = None, kwargs: Any = None, type_expr: Any = None,
        name: str | None = None,
    ) -> Node:  # fmt: skip
        return self.create_node("call_function", the_function, args, kwargs, name, type_expr)

    def output(self, result: Argument, type_expr: Any = None) -> Node:
        return self.create_node("output", "output", (result,), type_expr=type_expr)

    def node_copy(self, node: Node, arg_transform: Callable[[Node], Argument] = lambda node: node) -> Node:
        """Copy a node of another graph; `arg_transform` maps the nodes among its arguments to nodes of this
        graph."""
        args, kwargs = map_arg(node.args, arg_transform), map_arg(node.kwargs, arg_transform)
        made = self.create_node(node.op, node.target, args, kwargs, node.name, node.type)
        made.meta = copy.copy(node.meta)
        return made

    def graph_copy(self, g: Graph, val_map: dict[Node, Node], return_output_node: bool = False) -> Any:
        """Copy the nodes of another graph to the insertion point; return the copied output."""
        for node in g.nodes:
            if node in val_map:
                continue
            if node.op == "output":
                result = map_arg(node.args[0], val_map.__getitem__)
                return (result, node) if return_output_node else result
            val_map[node] = self.node_copy(node, val_map.__getitem__)
        return None

    # Changing

    def erase_node(self, to_erase: Node) -> None:
        """Remove a node that has no users."""
        if to_erase.users:
            raise RuntimeError(
                f"Tried to erase Node {to_erase} but it still had {len(to_erase.users)} users in the graph: "
                f"{to_erase.users}!"
            )
        if to_erase._erased:
            return
        to_erase._use((), {})
        to_erase._remove_from_list()
        to_erase._erased = True
        self._count -= 1

    def inserting_before(self, n: Node | None = None) -> contextlib.AbstractContextManager[None]:
        """A `with` block in which nodes are inserted before a node, by default at the beginning."""
        return self._inserting(self._root.append if n is None else n.prepend)

    def inserting_after(self, n: Node | None = None) -> contextlib.AbstractContextManager[None]:
        """A `with` block in which nodes are inserted after a node, by default at the end."""
        place = [self._root.prev if n is None else n]

        def insert(node: Node) -> None:
            place[0].append(node)
            place[0] = node

        return self._inserting(insert)

    @contextlib.contextmanager
    def _inserting(self, insert: Callable[[Node], None]) -> Iterator[None]:
        before, self._insert = self._insert, insert
        try:
            yield
        finally:
            self._insert = before

    def eliminate_dead_code(self, is_impure_node: Callable[[Node], bool] | None = None) -> bool:
        """Remove calls whose results are not used; return whether there were any."""
        self.lint()
        before = len(self.nodes)
        impure = is_impure_node or (lambda node: node.is_impure())
        for node in reversed(self.nodes):
            if not node.users and not impure(node):
                self.erase_node(node)
        return len(self.nodes) < before

    def lint(self) -> None:
        """Check that names are unique, that nodes use only earlier nodes, and that targets exist."""
        seen: set[Node] = set()
        names: set[str] = set()
        for node in self.nodes:
            if node.graph is not self:
                raise RuntimeError(f"Node {node!r} does not belong to this Graph!")
            for input_node in node.all_input_nodes:
                if input_node.graph is not self or input_node not in seen:
                    raise RuntimeError(
                        f"Argument {input_node!r} of Node {node!r} was used before it has been defined! "
                        f"Please check that Nodes in the graph are topologically ordered\n{self}"
                    )
            if node.name in names:
                raise RuntimeError(f"Node redefined name {node.name}!")
            seen.add(node)
            names.add(node.name)
            if self.owning_module is not None and node.op in ("get_attr", "call_module"):
                self._check_target(node)

    def _check_target(self, node: Node) -> None:
        holder = self.owning_module
        for part in str(node.target).split("."):
            if not hasattr(holder, part):
                raise RuntimeError(
                    f"Node {node} target {node.target} references nonexistent attribute {part} of {holder}"
                )
            holder = getattr(holder, part)

    # Text and code

    def python_code(self, root_module: str, *, verbose: bool = False, **options: Any) -> PythonCode:
        """The graph as the source of a function, and the objects that the source names."""
        return python_code(self, root_module)

    def process_inputs(self, *args: Any) -> Any:
        return args

    def process_outputs(self, out: Any) -> Any:
        return out

    def _target_to_str(self, target: Target | None) -> str:
        name = (
            target if isinstance(target, str) else getattr(target, "__name__", None) or type(target).__name__
        )
        if name.startswith("__") and name.endswith("__") and len(name) > 4:
            name = name[2:-2]
        return snake_case(name)

    def print_tabular(self) -> None:
        """Print a table of the nodes."""
        rows = [("opcode", "name", "target", "args", "kwargs")]
        rows += [(n.op, n.name, pretty_target(n.target), str(n.args), str(n.kwargs)) for n in self.nodes]
        widths = [max(len(row[i]) for row in rows) for i in range(5)]
        for i, row in enumerate(rows):
            print("  ".join([each.ljust(width) for each, width in zip(row, widths, strict=True)]).rstrip())
            if not i:
                print("  ".join(["-" * width for width in widths]))

    def __str__(self) -> str:
        names: list[str] = []
        lines = [node.format_node(names) for node in self.nodes]
        return "graph():" + "".join([f"\n    {line}" for line in lines if line])

    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> Graph:
        made = Graph(tracer_cls=self._tracer_cls)
        mapped: dict[Node, Node] = {}
        found = made.graph_copy(self, mapped, return_output_node=True)
        if found is not None:
            result, node = found
            output = made.output(result, node.type)
            output.meta = copy.copy(node.meta)
        if memo is not None:
            memo[id(self)] = made
        return made
