"""A node of a graph: one call, with the nodes that it uses and those that use it."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tenfold.functional import _assert
from tenfold.fx.immutable_collections import immutable_dict, immutable_list
from tenfold.fx.names import qualified_name

if TYPE_CHECKING:
    from tenfold.fx.graph import Graph

__all__ = ["Argument", "Node", "Target", "has_side_effect", "map_aggregate", "map_arg"]

Argument = Any
Target = Callable[..., Any] | str
OPS = ("placeholder", "call_method", "call_module", "call_function", "get_attr", "output", "root")

_side_effectful: set[Any] = {operator.setitem, print, _assert}


def has_side_effect(fn: Any) -> Any:
    """Mark a function whose calls stay in a graph even if their results are not used."""
    _side_effectful.add(fn)
    return fn


class Node:
    """One step of a graph. `op` is its kind: "placeholder" is an argument of the graph, "get_attr" an
    attribute of its module, "call_function", "call_module" and "call_method" are calls, and "output" is the
    result of the graph. `target` is the function or the name."""

    def __init__(
        self,
        graph: Graph,
        name: str,
        op: str,
        target: Target,
        args: tuple[Argument, ...],
        kwargs: dict[str, Argument],
        return_type: Any = None,
    ):
        if op not in OPS:
            raise AssertionError(f"{op!r} is none of {', '.join(OPS)}")
        if op == "call_function":
            if not callable(target):
                raise ValueError(f"Node [graph = {graph}, name = {name!r}] target {target!r} is not callable")
        elif not isinstance(target, str):
            raise ValueError(f"Node [graph = {graph}, name = {name!r}] target {target!r} is not a str")
        self.graph, self.name, self.op, self.target = graph, name, op, target
        self._input_nodes: dict[Node, None] = {}
        self.users: dict[Node, None] = {}
        self.type = return_type
        self.meta: dict[str, Any] = {}
        self._prev = self._next = self
        self._erased = False
        self._args: tuple[Argument, ...] = ()
        self._kwargs: dict[str, Argument] = {}
        self._use(args, kwargs)

    # Arguments

    @property
    def args(self) -> tuple[Argument, ...]:
        return self._args

    @args.setter
    def args(self, given: tuple[Argument, ...]) -> None:
        self._use(given, self._kwargs)

    @property
    def kwargs(self) -> dict[str, Argument]:
        return self._kwargs

    @kwargs.setter
    def kwargs(self, given: dict[str, Argument]) -> None:
        self._use(self._args, given)

    def _use(self, args: Any, kwargs: Any) -> None:
        """Take other arguments, and tell the nodes among them."""
        for input_node in self._input_nodes:
            input_node.users.pop(self, None)
        self._input_nodes = {}

        def note(node: Node) -> Node:
            self._input_nodes[node] = None
            node.users[self] = None
            return node

        self._args = map_arg(tuple(args), note)
        self._kwargs = map_arg(dict(kwargs), note)

    @property
    def all_input_nodes(self) -> list[Node]:
        """The nodes that this one uses, each once, in order."""
        return list(self._input_nodes)

    def update_arg(self, idx: int, arg: Argument) -> None:
        args = list(self.args)
        args[idx] = arg
        self.args = tuple(args)

    def insert_arg(self, idx: int, arg: Argument) -> None:
        args = list(self.args)
        args.insert(idx, arg)
        self.args = tuple(args)

    def update_kwarg(self, key: str, arg: Argument) -> None:
        self.kwargs = {**self.kwargs, key: arg}

    def replace_input_with(self, old_input: Node, new_input: Node) -> None:
        """Replace one of this node's inputs by another node."""
        swap = lambda node: new_input if node is old_input else node
        self._use(map_arg(self.args, swap), map_arg(self.kwargs, swap))

    def replace_all_uses_with(
        self,
        replace_with: Node,
        delete_user_cb: Callable[[Node], bool] = lambda user: True,
        *,
        propagate_meta: bool = False,
    ) -> list[Node]:
        """Replace this node by another in all its users; return the users that changed."""
        if propagate_meta:
            replace_with.meta.update(self.meta)
        changed = [user for user in list(self.users) if delete_user_cb(user)]
        for user in changed:
            user.replace_input_with(self, replace_with)
        return changed

    # Places in the graph

    @property
    def next(self) -> Node:
        return self._next

    @property
    def prev(self) -> Node:
        return self._prev

    def prepend(self, x: Node) -> None:
        """Insert a node directly before this one."""
        if self.graph is not x.graph:
            raise AssertionError("Attempting to move a Node into a different Graph")
        if self is x:
            return
        x._remove_from_list()
        before = self._prev
        before._next, x._prev = x, before
        x._next, self._prev = self, x

    def append(self, x: Node) -> None:
        """Insert a node directly after this one."""
        self._next.prepend(x)

    def _remove_from_list(self) -> None:
        self._prev._next, self._next._prev = self._next, self._prev

    def __lt__(self, other: Node) -> bool:
        """Whether it stands before another node of the same graph."""
        places = {node: i for i, node in enumerate(self.graph.nodes)}
        return places[self] < places[other]

    def __gt__(self, other: Node) -> bool:
        return other < self

    # What it says of itself

    @property
    def stack_trace(self) -> str | None:
        return self.meta.get("stack_trace")

    @stack_trace.setter
    def stack_trace(self, trace: str | None) -> None:
        self.meta["stack_trace"] = trace

    def is_impure(self, impure_random: bool = True) -> bool:
        """Whether the node stays in the graph even if its result is not used."""
        if self.op in ("placeholder", "output"):
            return True
        if self.op == "call_function":
            return self.target in _side_effectful or _writes(self.target)
        if self.op == "call_method":
            return _inplace(str(self.target))
        if self.op == "call_module" and self.graph.owning_module is not None:
            module = self.graph.owning_module.get_submodule(str(self.target))
            return bool(getattr(module, "_is_impure", False))
        return False

    def format_node(
        self,
        placeholder_names: list[str] | None = None,
        maybe_return_typename: list[str] | None = None,
        **_: Any,
    ) -> str | None:
        """A line of the graph's text."""
        head = f"%{self.name} : {_typed(self)}[num_users={len(self.users)}] = {self.op}"
        if self.op == "placeholder":
            if placeholder_names is not None:
                placeholder_names.append(str(self.target))
            default = f"(default={self.args[0]})" if self.args else ""
            return f"{head}[target={self.target}]{default}"
        if self.op == "get_attr":
            return f"{head}[target={self.target}]"
        if self.op == "output":
            return f"return {self.args[0]}"
        given = f"(args = {_shown(self.args)}, kwargs = {_shown(self.kwargs)})"
        return f"{head}[target={pretty_target(self.target)}]{given}"

    def __repr__(self) -> str:
        return self.name


def _typed(node: Node) -> str:
    return f"{getattr(node.type, '__name__', node.type)} " if node.type is not None else ""


def _inplace(name: str) -> bool:
    return name.endswith("_") and not name.endswith("__")


def _writes(target: Any) -> bool:
    name = getattr(target, "__name__", "")
    return isinstance(name, str) and _inplace(name.partition(".")[0])  # of an overload, its op


def pretty_target(target: Any) -> str:
    if isinstance(target, str):
        return target
    name = qualified_name(target)
    return name if "." in name else f"builtins.{name}"


def _shown(given: Any) -> str:
    """Arguments as a graph's text has them, with a % before each node."""
    if isinstance(given, Node):
        return f"%{given.name}"
    if isinstance(given, tuple):
        return f"({', '.join(map(_shown, given))}{',' if len(given) == 1 else ''})"
    if isinstance(given, list):
        return f"[{', '.join(map(_shown, given))}]"
    if isinstance(given, dict):
        return "{" + ", ".join([f"{key}: {_shown(each)}" for key, each in given.items()]) + "}"
    return str(given)


def map_arg(a: Argument, fn: Callable[[Node], Any]) -> Argument:
    """The arguments with a function applied to each node among them."""
    return map_aggregate(a, lambda each: fn(each) if isinstance(each, Node) else each)


def map_aggregate(a: Argument, fn: Callable[[Any], Any]) -> Argument:
    """The arguments with a function applied to each leaf of their tuples, lists, dictionaries and slices."""
    if isinstance(a, tuple):
        parts = [map_aggregate(each, fn) for each in a]
        return type(a)(*parts) if hasattr(a, "_fields") else tuple(parts)
    if isinstance(a, list):
        return immutable_list([map_aggregate(each, fn) for each in a])
    if isinstance(a, dict):
        return immutable_dict({key: map_aggregate(each, fn) for key, each in a.items()})
    if isinstance(a, slice):
        return slice(*[map_aggregate(each, fn) for each in (a.start, a.stop, a.step)])
    return fn(a)
