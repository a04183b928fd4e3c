"""`replace_pattern`: replaces every part of a graph that matches a pattern by another graph."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from tenfold.fx.graph import Graph
from tenfold.fx.graph_module import GraphModule, _copy_attr
from tenfold.fx.node import Node, map_arg
from tenfold.fx.tracer import symbolic_trace
from tenfold.nn.module import Module

__all__ = ["Match", "ReplacedPatterns", "replace_pattern", "replace_pattern_with_filters"]


class Match(NamedTuple):
    """The last node of a place that matched, and what each of the pattern's nodes is there."""

    anchor: Node
    nodes_map: dict[Node, Node]


@dataclass
class ReplacedPatterns:
    """A match, with the nodes that took its place."""

    anchor: Node
    nodes_map: dict[Node, Node]
    replacements: list[Node]


def _graph_of(given: Any) -> tuple[Graph, Module | None]:
    if isinstance(given, GraphModule):
        return given.graph, given
    if isinstance(given, Graph):
        return given, None
    traced = symbolic_trace(given)
    return traced.graph, traced


class _Matcher:
    """Matches one place of a graph against a pattern, from its last node back."""

    def __init__(self, pattern: Graph, ours: Module, theirs: Module | None, ignore_literals: bool = False):
        self.pattern, self.ours, self.theirs = pattern, ours, theirs
        self.ignore_literals = ignore_literals
        result = pattern.output_node().args[0]
        self.results: list[Node] = []
        map_arg(result, self.results.append)

    def match(self, anchor: Node) -> dict[Node, Node] | None:
        """What the pattern's nodes are, if its first result is this node."""
        found: dict[Node, Node] = {}
        if not self.results or not self._same(self.results[0], anchor, found):
            return None
        for result in self.results:
            extended = found if result in found else self._extended(result, anchor, found)
            if extended is None:
                return None
            found = extended
        return found if self._contained(found) and self._in_order(anchor, found) else None

    def _extended(self, result: Node, anchor: Node, found: dict[Node, Node]) -> dict[Node, Node] | None:
        """What was found, with a further result of the pattern: a node that nothing else stands for."""
        for node in anchor.graph.nodes:
            trial = dict(found)
            if node not in found.values() and self._same(result, node, trial):
                return trial
        return None

    def _in_order(self, anchor: Node, found: dict[Node, Node]) -> bool:
        """Whether all results are there before any of them is used elsewhere."""
        if len(self.results) == 1:
            return True
        places = {node: i for i, node in enumerate(anchor.graph.nodes)}
        results = {found[result] for result in self.results}
        last, inside = max([places[node] for node in results]), set(found.values())
        return all(places[user] > last for node in results for user in node.users if user not in inside)

    def _same(self, wanted: Node, node: Any, found: dict[Node, Node]) -> bool:
        if wanted in found:
            return found[wanted] is node
        if wanted.op == "placeholder":
            if not isinstance(node, Node):
                return False
            found[wanted] = node
            return True
        if not isinstance(node, Node) or node.op != wanted.op or not self._same_target(wanted, node):
            return False
        found[wanted] = node
        return self._same_args(wanted.args, node.args, found) and self._same_args(
            dict(wanted.kwargs), dict(node.kwargs), found
        )

    def _same_target(self, wanted: Node, node: Node) -> bool:
        if wanted.op == "call_module" and self.theirs is not None:
            mine = self.ours.get_submodule(str(node.target))
            return type(mine) is type(self.theirs.get_submodule(str(wanted.target)))
        if wanted.op == "get_attr":
            return str(wanted.target).rpartition(".")[2] == str(node.target).rpartition(".")[2]
        return wanted.target == node.target

    def _same_args(self, wanted: Any, given: Any, found: dict[Node, Node]) -> bool:
        if isinstance(wanted, Node):
            return self._same(wanted, given, found)
        if isinstance(wanted, (list, tuple)):
            if not isinstance(given, (list, tuple)) or len(wanted) != len(given):
                return False
            return all(self._same_args(a, b, found) for a, b in zip(wanted, given, strict=True))
        if isinstance(wanted, dict):
            if not isinstance(given, dict) or wanted.keys() != given.keys():
                return False
            return all(self._same_args(each, given[key], found) for key, each in wanted.items())
        if self.ignore_literals:
            return True
        return not isinstance(given, Node) and type(wanted) is type(given) and wanted == given

    def _contained(self, found: dict[Node, Node]) -> bool:
        """Whether only the pattern's results are used elsewhere."""
        inside = set(found.values())
        for wanted, node in found.items():
            if wanted.op in ("placeholder", "get_attr") or wanted in self.results:
                continue
            if any(user not in inside for user in node.users):
                return False
        return True


def replace_pattern(gm: GraphModule, pattern: Any, replacement: Any) -> list[Match]:
    """Replace each match of `pattern` in a graph module; pattern and replacement may be functions or graph
    modules.

    >>> traced = tenfold.fx.symbolic_trace(lambda x: tenfold.relu(x) + 1)
    >>> matches = tenfold.fx.replace_pattern(traced, lambda x: tenfold.relu(x), lambda x: tenfold.tanh(x))
    >>> [node.name for node in traced.graph.nodes]
    ['x', 'tanh', 'add', 'output']
    """
    return [
        Match(replace_pattern_with_filter.anchor, replace_pattern_with_filter.nodes_map)
        for replace_pattern_with_filter in replace_pattern_with_filters(gm, pattern, replacement)
    ]


def replace_pattern_with_filters(
    gm: GraphModule,
    pattern: Any,
    replacement: Any = None,
    match_filters: list[Callable[..., bool]] | None = None,
    ignore_literals: bool = False,
    **options: Any,
) -> list[ReplacedPatterns]:
    """Like `replace_pattern`, for the matches that all filters accept. With `ignore_literals`, a number in
    the pattern matches any number."""
    wanted, theirs = _graph_of(pattern)
    put, other = _graph_of(replacement)
    matcher = _Matcher(wanted, gm, theirs, ignore_literals)
    taken: set[Node] = set()
    replaced: list[ReplacedPatterns] = []
    for anchor in list(gm.graph.nodes):
        if anchor._erased or anchor in taken:
            continue
        found = matcher.match(anchor)
        if found is None:
            continue
        inside = {node for each, node in found.items() if each.op != "placeholder"}
        accepted = all(each(Match(anchor, found), gm.graph, wanted) for each in match_filters or [])
        if inside & taken or not accepted:
            continue
        taken |= inside
        new = _put_in(gm, wanted, put, found, anchor, matcher.results)
        replaced.append(ReplacedPatterns(anchor, found, new))
    _add_missing(gm, other)
    gm.recompile()
    return replaced


def _put_in(
    gm: GraphModule, wanted: Graph, put: Graph, found: dict[Node, Node], anchor: Node, results: list[Node]
) -> list[Node]:
    """Copy the replacement to where the match is, let users use it, and erase the match."""
    theirs = [node for node in wanted.nodes if node.op == "placeholder"]
    ours = [node for node in put.nodes if node.op == "placeholder"]
    if len(theirs) != len(ours):
        raise RuntimeError(f"the pattern has {len(theirs)} placeholders, its replacement {len(ours)}")
    values = {mine: found[each] for mine, each in zip(ours, theirs, strict=True) if each in found}
    before = set(gm.graph.nodes)
    last = max([found[each] for each in results], key=list(gm.graph.nodes).index)
    with gm.graph.inserting_after(last):
        result = gm.graph.graph_copy(put, values)
    copied: list[Node] = []
    map_arg(result, copied.append)
    for each, new in zip(results, copied, strict=True):
        found[each].replace_all_uses_with(new, delete_user_cb=lambda user: user in before)
    for node in reversed(wanted.nodes):
        held = found.get(node)
        if node.op not in ("placeholder", "output") and held is not None and not held.users:
            gm.graph.erase_node(held)
    return [node for node in gm.graph.nodes if node not in before]


def _add_missing(gm: GraphModule, other: Module | None) -> None:
    """Take over the modules and tensors that only the replacement has."""
    for node in gm.graph.nodes:
        if node.op in ("call_module", "get_attr") and other is not None:
            try:
                gm.get_submodule(str(node.target)) if node.op == "call_module" else _found(
                    gm, str(node.target)
                )
            except AttributeError:
                _copy_attr(other, gm, str(node.target))


def _found(module: Any, target: str) -> Any:
    for part in target.split("."):
        module = getattr(module, part)
    return module
