"""A recorded program as a graph of `tenfold.fx`: each node of the Trace is a call of an ATen overload."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from tenfold.base.errors import UnsupportedError
from tenfold.compat.overloads import namespace
from tenfold.exporting.recordings import Recordings
from tenfold.flat.ir import TensorType
from tenfold.flat.sizes import Formulas, Open
from tenfold.fx.graph import Graph
from tenfold.fx.node import Node as Call
from tenfold.mlir.torch_emitter import slots_in
from tenfold.ops.callee import OpCall
from tenfold.ops.schema import MISSING, Argument
from tenfold.ops.table import SLOT, Row
from tenfold.trace.control import ControlNode
from tenfold.trace.graph import Node, Value

__all__ = ["built", "overload"]

ARITHMETIC: dict[str, Callable[..., Any]] = {
    "+": operator.add,
    "*": operator.mul,
    "//": operator.floordiv,
}


def overload(row: Row) -> Any:
    """The object that stands for a row in graphs, `torch.ops.aten.add.Tensor`."""
    return getattr(getattr(namespace(row.namespace), row.name), row.overload or "default")


def built(recordings: Recordings, graph: Graph, inputs: dict[Value, Call]) -> list[Call]:
    """Add the calls of a recorded program to a graph, given the nodes of its leaves; its results."""
    return _Builder(recordings, graph, inputs).built()


class _Builder:
    def __init__(self, recordings: Recordings, graph: Graph, inputs: dict[Value, Call]):
        self.recordings, self.graph, self.leaves = recordings, graph, inputs
        self.results: dict[tuple[Node, int], Call] = {}
        symbols = recordings.symbols()
        self.formulas = Formulas(symbols)
        self.sized: dict[Open, tuple[Call, int]] = {}  # which dimension of which tensor has this size
        self.sizes: dict[Open, Call] = {}
        for leaf, node in inputs.items():
            self._learn(node, leaf.type)

    def built(self) -> list[Call]:
        program = self.recordings.program
        for node in program.nodes:
            self._add(node)
        return [
            self.results[program.nodes[place], index]
            if place >= 0
            else self.leaves[program.leaves[-1 - place]]
            for place, index in program.outputs
        ]

    def _learn(self, call: Call, type: Any) -> None:
        call.meta["val"] = self.recordings.named(type)
        for axis, extent in enumerate(type.shape):
            if isinstance(extent, Open) and extent not in self.sized:
                self.sized[extent] = (call, axis)
                self.formulas.learn(extent)

    def _add(self, node: Node) -> None:
        callee = node.callee
        if isinstance(node, ControlNode) or not isinstance(callee, OpCall):
            raise UnsupportedError(
                f"{callee.name!r} is no op of ATen's: a graph has no word for it",
                help="tenfold.export gives the program as StableHLO, with its choices, loops and gradients",
            ).located(callee.name, node.source)
        row = callee.row
        types = callee.result_types[: len(callee.result_types) - row.random]
        try:
            args, kwargs = self._arguments(node, callee)
        except UnsupportedError as error:
            raise error.located(row.python_name, node.source) from None
        call = self.graph.call_function(overload(row), args, kwargs, name=row.name)
        call.meta["source"] = node.source
        returns = row.schema.returns
        if len(returns) == 1 and not returns[0].type.is_list:
            self._keep(node, 0, call, types[0])
            return
        for i, type in enumerate(types):
            self._keep(node, i, self.graph.call_function(operator.getitem, (call, i)), type)

    def _keep(self, node: Node, index: int, call: Call, type: TensorType) -> None:
        self.results[node, index] = call
        self._learn(call, type)

    def _arguments(self, node: Node, callee: OpCall) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments of a call, without those that are as by default."""
        slots = slots_in(callee.arguments)
        inputs, numbers = iter(node.inputs[:slots]), iter(node.inputs[slots:])
        args: list[Any] = []
        kwargs: dict[str, Any] = {}
        needed = 0  # positional arguments
        for argument, value in zip(callee.row.schema.arguments, callee.arguments, strict=False):
            if argument.type.kind == "Generator":
                if value is SLOT:
                    next(inputs)  # the state: whoever runs the graph draws from its own
                given: Any = None
            elif value is int or value is float:
                number = self._value(next(numbers))
                given = self.graph.call_function(namespace("aten").item.default, (number,))  # type: ignore[union-attr]
            else:
                given = self._argument(argument, value, inputs)
            is_default = argument.default is not MISSING and _same(given, argument.default)
            if argument.keyword_only:
                if not is_default:
                    kwargs[argument.name] = given
                continue
            args.append(given)
            if not is_default:
                needed = len(args)
        return tuple(args[:needed]), kwargs

    def _argument(self, argument: Argument, value: Any, inputs: Iterator[Value]) -> Any:
        if isinstance(value, tuple):
            return [self._argument(argument, each, inputs) for each in value]
        if value is SLOT:
            return self._value(next(inputs))
        if isinstance(value, Open):
            return self._number(value)
        if isinstance(value, float):
            return float(value)
        return complex(value) if isinstance(value, complex) else value

    def _value(self, value: Value) -> Call:
        leaf = self.leaves.get(value)
        return self.results[value.node, value.index] if leaf is None else leaf  # type: ignore[index]

    def _number(self, number: Open) -> Any:
        """A number that follows from sizes, computed from them."""
        formula = self.formulas.find(number) if type(number.values[0]) is int else None
        if formula is not None:
            return formula.follow(self._size, self._computed)
        by_float = self.formulas.find_float(number)
        if by_float is None:
            seen = ", ".join(map(str, number.values[:3]))
            raise UnsupportedError(
                f"an argument is {seen}, … for various sizes: how it follows from them is not known",
                help="compute it from a tensor's shape by + - * //, or leave this dimension fixed",
            )
        form, formula = by_float
        whole = formula.follow(self._size, self._computed)
        call = self.graph.call_function
        if form == "":
            return call(float, (whole,))
        if form.startswith("/"):
            return call(operator.truediv, (whole, int(form[1:])))
        if form == "1/":
            return call(operator.truediv, (1, whole))
        root = call(operator.pow, (whole, 0.5))
        return root if form == "sqrt" else call(operator.truediv, (1.0, root))

    def _size(self, size: Open) -> Call:
        if size not in self.sizes:
            call, axis = self.sized[size]
            target = namespace("aten").sym_size.int  # type: ignore[union-attr]
            self.sizes[size] = self.graph.call_function(target, (call, axis), name="sym_size_int")
        return self.sizes[size]

    def _computed(self, op: str, left: Any, right: Any) -> Any:
        return self.graph.call_function(ARITHMETIC[op], (left, right))


def _same(given: Any, default: Any) -> bool:
    """Whether an argument is what it is by default, not merely equal to it: 1 is not True."""
    if isinstance(given, Call):
        return False
    if isinstance(given, list) and isinstance(default, Sequence):
        return len(given) == len(default) and all(map(_same, given, default))
    return type(given) is type(default) and given == default
