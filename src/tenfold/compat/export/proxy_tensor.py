"""`torch.fx.experimental.proxy_tensor`: `make_fx` records a function as a graph of ATen calls."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tenfold.base.errors import ArgumentError, UnsupportedError, located
from tenfold.base.source import capture
from tenfold.compat.export.graphs import built
from tenfold.compat.overloads import namespace
from tenfold.exporting.recordings import Recordings
from tenfold.fx.graph import Graph
from tenfold.fx.graph_module import GraphModule
from tenfold.fx.interpreter import Interpreter
from tenfold.fx.node import Node
from tenfold.nn.module import Module
from tenfold.runtime.calls import record_call
from tenfold.tensor import Tensor
from tenfold.tensor.parameter import Parameter
from tenfold.trace import tree
from tenfold.trace.record import Recording

__all__ = ["get_proxy_mode", "make_fx"]

Table = Mapping[Any, Callable[..., Any]]


def get_proxy_mode() -> None:
    """None: a function is recorded by the Trace, and no mode handles its calls."""
    return None


@located
def make_fx(
    f: Callable[..., Any],
    decomposition_table: Table | None = None,
    tracing_mode: str = "real",
    _allow_non_fake_inputs: bool = False,
    **options: Any,
) -> Callable[..., GraphModule]:
    """A function that gives, for arguments like those it is called with, `f` as a module of a graph of ATen
    calls. The module takes the same arguments; those that are no tensors are as they were.

    Tensors that `f` reads besides its arguments are attributes of the module, and what it writes in place is
    written at the end of the graph. `decomposition_table` has functions for overloads, to be recorded in the
    place of their calls. Sizes are those of the arguments: `torch.export.export` has `dynamic_shapes`.
    """
    if tracing_mode not in ("real", "fake", "symbolic"):
        raise ArgumentError(f"tracing_mode is 'real', 'fake' or 'symbolic', not {tracing_mode!r}")
    if tracing_mode == "symbolic":
        raise UnsupportedError(
            "make_fx records a function at the sizes of its arguments",
            help="torch.export.export(module, args, dynamic_shapes=...) leaves sizes open",
        )

    @functools.wraps(f, updated=())
    def record(*args: Any) -> GraphModule:
        made = _Function(f, args).module()
        if not decomposition_table:
            return made
        return _Function(_replacing(made, decomposition_table), args, _names(f, args)).module()

    return record


def _replacing(module: _Flat, table: Table) -> Callable[..., Any]:
    """The function of a module with other functions in the place of some calls."""

    class Replacing(Interpreter):
        def call_function(self, target: Any, args: Any, kwargs: Any) -> Any:
            return super().call_function(table.get(target, target), args, kwargs)

    return lambda *args: Replacing(module).run(*_tensors(args)[1])


class _Flat(GraphModule):
    """A module whose graph takes the tensors among its arguments."""

    def __init__(self, root: Module, graph: Graph, taken: Any):
        self.__dict__["_taken"] = taken
        super().__init__(root, graph, "make_fx")

    def recompile(self) -> Any:
        code = super().recompile()
        run, taken = type(self).forward, self.__dict__["_taken"]

        def forward(self: Any, *args: Any) -> Any:
            structure, tensors = _tensors(args)
            if structure != taken:
                raise ArgumentError(
                    "the arguments are not those that the function was recorded with",
                    help="give tensors in the same places, and the same other values",
                ).located("make_fx", capture())
            return run(self, *tensors)

        type(self).forward = forward  # type: ignore[method-assign]
        return code


class _Function:
    """A function that was recorded on arguments, on the way to a module."""

    def __init__(self, f: Callable[..., Any], args: tuple[Any, ...], names: list[str] | None = None):
        self.taken, tensors = _tensors(args)
        self.names = names or _names(f, args)
        if len({id(tensor) for tensor in tensors}) < len(tensors):
            raise UnsupportedError("a tensor is given twice", help="give a clone of it")

        def record(stand_ins: Sequence[Tensor], numbers: Mapping[int, int] | None = None) -> Recording:
            return record_call(f, tree.unflatten(self.taken, iter(stand_ins)), {}, Tensor).recording

        self.recordings = Recordings(record, tensors, {}, dict, "fx")
        self.first = self.recordings.first
        if self.first.gradients.made:
            raise UnsupportedError(
                "the function computes gradients, which a graph of ATen calls has no word for",
                help="tenfold.export(f, args, dialect='stablehlo') has gradients",
            )

    def module(self) -> _Flat:
        graph, root, program = Graph(), Module(), self.recordings.program
        inputs = [graph.placeholder(f"{name}_1") for name in self.names]
        nodes: dict[Any, Node] = dict(zip(program.leaves, inputs))
        attributes: dict[int, Node] = {}  # by the identity of what holds them
        held = zip(program.leaves[len(inputs) :], self.recordings.holders, strict=True)
        for leaf, holder in held:
            nodes[leaf] = self._attribute(graph, root, holder, leaf, attributes)
        results = built(self.recordings, graph, nodes)
        returned = self._write(graph, results, inputs, attributes)
        graph.output(tree.unflatten(self.first.structure, iter(returned)))
        graph.eliminate_dead_code()
        return _Flat(root, graph, self.taken)

    def _attribute(
        self, graph: Graph, root: Module, holder: Any, leaf: Any, attributes: dict[int, Node]
    ) -> Node:
        kind = "_param_constant" if isinstance(holder, Parameter) else "_tensor_constant"
        name = f"{kind}{sum(str(node.target).startswith(kind) for node in attributes.values())}"
        if isinstance(holder, Parameter):
            root.register_parameter(name, holder)
        else:
            tensor = holder if isinstance(holder, Tensor) else Tensor(leaf).detach()
            root.register_buffer(name, tensor)
        node = attributes[id(leaf if holder is None else holder)] = graph.get_attr(name)
        return node

    def _write(
        self, graph: Graph, results: list[Node], inputs: list[Node], attributes: dict[int, Node]
    ) -> list[Node]:
        """Write what the function writes; what it returns."""
        write = namespace("aten").copy_.default  # type: ignore[union-attr]
        outside, count = self.first.outside_writes, len(self.first.returned)
        returned = []
        for place, node in zip(self.recordings.outputs, results, strict=True):
            if place < count:
                returned.append(node)
                continue
            i = place - count
            if i >= len(outside):
                graph.call_function(write, (inputs[self.first.argument_writes[i - len(outside)]], node))
            elif id(outside[i]) in attributes:
                graph.call_function(write, (attributes[id(outside[i])], node))
            else:
                raise UnsupportedError(
                    "the function writes to memory from outside that it does not read",
                    help="pass the tensor as an argument",
                )
        return returned


def _tensors(args: Any) -> tuple[Any, list[Tensor]]:
    """How arguments are nested, and the tensors among them."""
    tensors: list[Tensor] = []
    return tree.flatten(args, lambda each: isinstance(each, Tensor), tensors), tensors


def _names(f: Callable[..., Any], args: tuple[Any, ...]) -> list[str]:
    """A name for each tensor among the arguments."""
    try:
        parameters = list(inspect.signature(f).parameters.values())
    except (TypeError, ValueError):
        parameters = []
    plain = [
        each.name for each in parameters if each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)
    ]
    names = []
    for i, argument in enumerate(args):
        count = len(_tensors(argument)[1])
        name = plain[i] if i < len(plain) else f"arg{i}"
        names += [name] if isinstance(argument, Tensor) else [f"{name}_{j}" for j in range(count)]
    return names
