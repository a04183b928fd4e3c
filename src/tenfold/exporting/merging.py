"""Recordings of one program at several sizes, merged into one: what differs between them is `Open`. Where
they differ in more than numbers, the program is another one at other sizes: it is refused, with the place."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tenfold import flat
from tenfold.base.errors import UnsupportedError
from tenfold.flat.composite import Composite
from tenfold.flat.ir import Function, Op, TensorType
from tenfold.mlir.sizes import Open, OpenLiteral, OpenType
from tenfold.ops.callee import Callee, OpCall, Program
from tenfold.ops.table import Row
from tenfold.trace.collect import Trace
from tenfold.trace.control import ControlNode, Part
from tenfold.trace.graph import Node, Value

# Says of a number in a recording at which sizes that was made: "n = 11".
Described = Callable[[int], str]


class OpenCall(OpCall):
    """A call of an op with open numbers: it has no FlatIR, which would be another at each size."""

    __slots__ = ()

    def __init__(self, row: Row, arguments: tuple[Any, ...], result_types: Sequence[Any]):
        self.row = row
        self.arguments = arguments
        self.result_types = tuple(result_types)


class OpenProgram(Program):
    """A call of a program whose results have open sizes."""

    __slots__ = ()

    def __init__(self, callee: Callee, result_types: Sequence[Any]):
        self.name = callee.name
        self.random = callee.random
        self.result_types = tuple(result_types)


class OpenNode(Node):
    """A node of a merged program."""

    __slots__ = ()

    def __init__(self, callee: Any, inputs: tuple[Value, ...], source: Any):
        self.callee, self.inputs, self.source = callee, inputs, source


class OpenControlNode(ControlNode):
    """A choice or loop of a merged program."""

    __slots__ = ()

    def __init__(
        self, callee: Any, inputs: tuple[Value, ...], source: Any, parts: Any, starts: dict[int, Any]
    ):
        self.callee, self.inputs, self.source = callee, inputs, source
        self.parts, self.starts = parts, starts


def merged_programs(programs: Sequence[Trace], described: Described) -> Trace:
    """The programs as one, with their leaves in their order."""
    first = programs[0]
    for k, other in enumerate(programs[1:], 1):
        _require_same(first, other, k, described)
    values: dict[Value, Value] = {}
    leaves = []
    for several in zip(*[each.leaves for each in programs]):
        type = merged_type([each.type for each in several])
        leaves.append(Value(type, several[0].device, buffer=several[0].buffer))
        values[several[0]] = leaves[-1]
    nodes: list[Node] = []
    of_node: dict[Any, Value] = {}
    for several_nodes in zip(*[each.nodes for each in programs]):
        node = several_nodes[0]
        callees = [each.callee for each in several_nodes]
        inputs = tuple(
            [values[each] if each in values else of_node[each.node, each.index] for each in node.inputs]
        )
        try:
            arguments = merged([each.arguments for each in callees if isinstance(each, OpCall)] or [()])
            starts = [each.starts for each in several_nodes if isinstance(each, ControlNode)]
            carried = {i: merged([each[i] for each in starts]) for i in (starts[0] if starts else ())}
            types = [merged_type(each) for each in zip(*[each.result_types for each in callees])]
        except Different as error:
            raise _another(node.callee.name, node.source, error.numbers, described) from None
        callee: Callee
        if isinstance(node.callee, OpCall):
            callee = OpenCall(node.callee.row, arguments, types)
        else:
            callee = OpenProgram(node.callee, types)
        made: Node
        if isinstance(node, ControlNode):
            parts = tuple(_merged_part(each, described) for each in zip(*[n.parts for n in several_nodes]))
            made = OpenControlNode(callee, inputs, node.source, parts, carried)
        else:
            made = OpenNode(callee, inputs, node.source)
        of_node.update(((node, i), Value(type, first.device, made, i)) for i, type in enumerate(types))
        nodes.append(made)
    return Trace(nodes, leaves, first.outputs, first.key, first.device)


def _merged_part(parts: Sequence[Part], described: Described) -> Part:
    """A program inside a choice or a loop, as it is at all sizes."""
    first = parts[0]
    return Part(merged_programs([each.trace for each in parts], described), first.places, first.results)


def _require_same(first: Trace, other: Trace, k: int, described: Described) -> None:
    """Refuse programs that call other ops, or the same on other values."""
    places, other_places = ({node: i for i, node in enumerate(each.nodes)} for each in (first, other))
    leaves, other_leaves = ({leaf: i for i, leaf in enumerate(each.leaves)} for each in (first, other))

    def operands(node: Node, places: Mapping[Node, int], leaves: Mapping[Value, int]) -> list[Any]:
        return [(places.get(each.node, -1), each.index, leaves.get(each)) for each in node.inputs]  # type: ignore[arg-type]

    for one, two in zip(first.nodes, other.nodes):
        name, other_name = one.callee.qualified, two.callee.qualified
        if name != other_name or operands(one, places, leaves) != operands(two, other_places, other_leaves):
            what = f"{name} at {described(0)} and {other_name} at {described(k)}"
            if name == other_name:
                what = f"{name} on other tensors at {described(k)} than at {described(0)}"
            raise UnsupportedError(
                f"the program depends on the sizes by more than its shapes: it calls {what}",
                help="decide by data with where, say in dynamic which sizes it is for, or export twice",
            ).located(one.callee.name, two.source or one.source)
    if len(first.nodes) != len(other.nodes) or first.outputs != other.outputs:
        counts = f"{len(first.nodes)} ops at {described(0)} and {len(other.nodes)} at {described(k)}"
        longer = max((first, other), key=lambda each: len(each.nodes)).nodes
        extra = (
            longer[min(len(first.nodes), len(other.nodes))] if len(first.nodes) != len(other.nodes) else None
        )
        raise UnsupportedError(
            f"the program depends on the sizes by more than its shapes: it calls {counts}",
            help="a loop over a dimension is as long as that is: leave this dimension fixed",
        ).located(extra.callee.name if extra else "", extra.source if extra else None)


def _another(op: str, source: Any, numbers: Sequence[Any], described: Described) -> UnsupportedError:
    if isinstance(numbers[0], TensorType):  # of which other sizes are no difference
        k = next(
            i
            for i, each in enumerate(numbers)
            if (each.rank, each.dtype) != (numbers[0].rank, numbers[0].dtype)
        )
        what = "a result"
    else:
        k = next(i for i, each in enumerate(numbers) if each != numbers[0])
        what = "an argument"
    return UnsupportedError(
        f"{what} is {numbers[0]!r} at {described(0)} and {numbers[k]!r} at {described(k)}: the program "
        "is another one for other sizes",
        help="leave this dimension fixed, say which sizes it is for, as Dim('n', min=2), or export once for "
        "each size",
    ).located(op, source)


class Different(Exception):
    """Values that cannot be merged."""

    def __init__(self, numbers: Sequence[Any]):
        super().__init__(numbers)
        self.numbers = numbers


def merged(values: Sequence[Any]) -> Any:
    """Arguments or attributes of one op in all recordings, as one."""
    first = values[0]
    if all(each is first for each in values):
        return first
    if isinstance(first, np.ndarray):
        return _merged_arrays(values)
    if isinstance(first, Function):
        return merged_functions(values)
    if isinstance(first, TensorType):
        return merged_type(values)
    if isinstance(first, (tuple, list)):
        if any(len(each) != len(first) for each in values):
            raise Different(values)
        parts = [merged(each) for each in zip(*values)]
        return type(first)(*parts) if hasattr(first, "_fields") else type(first)(parts)
    if all(type(each) is type(first) and each == first for each in values):
        return first
    if all(type(each) in (int, float) and type(each) is type(first) for each in values):
        return Open(values)
    raise Different(values)


def _merged_arrays(arrays: Sequence[np.ndarray]) -> Any:
    """A literal; or, if it differs, a tuple of numbers with the literal's shape."""
    first = arrays[0]
    if all(each.shape == first.shape and each.tobytes() == first.tobytes() for each in arrays):
        return first
    if any(each.shape != first.shape for each in arrays) or first.size > 16:
        raise Different([f"a literal of shape {list(each.shape)}" for each in arrays])
    return OpenLiteral(first.shape, merged([tuple(each.ravel().tolist()) for each in arrays]))


def merged_type(types: Sequence[TensorType]) -> Any:
    """A type, itself where all are equal."""
    first = types[0]
    if all(each is first for each in types):
        return first
    if any(each.rank != first.rank or each.dtype is not first.dtype for each in types):
        raise Different(types)
    return OpenType(first.dtype, merged([each.shape for each in types]))


def merged_functions(functions: Sequence[Function], described: Described | None = None) -> Function:
    """FlatIR functions as one. Its ops are not checked again: no one op holds for all sizes at once."""
    first = functions[0]
    values: dict[flat.Value, flat.Value] = {}
    for several in zip(*[each.params for each in functions]):
        values[several[0]] = flat.Value(merged_type([each.type for each in several]))
        values[several[0]].name = several[0].name
    for ops in _rows(functions, described):
        op = ops[0]
        try:
            copy = _merged_op(ops, values)
        except Different as error:
            if described is None:
                raise
            raise _another(op.name.split(".")[1], op.source, error.numbers, described) from None
        values.update(zip(op.results, copy.results, strict=True))
    made = Function(
        [values[each] for each in first.params], [values[each] for each in first.results], first.name
    )
    return made


def _rows(functions: Sequence[Function], described: Described | None) -> Any:
    places = [
        {value: (i, r) for i, op in enumerate(f.ops) for r, value in enumerate(op.results)} for f in functions
    ]
    params = [{value: i for i, value in enumerate(f.params)} for f in functions]
    for ops in zip(*[each.ops for each in functions]):
        shapes = {
            (type(op), tuple((places[k].get(v), params[k].get(v)) for v in op.operands))
            for k, op in enumerate(ops)
        }
        if len(shapes) > 1:
            raise _lowered_otherwise(ops[0].source, described)
        yield ops
    if len({len(each.ops) for each in functions}) > 1:
        raise _lowered_otherwise(functions[0].ops[-1].source, described)


def _lowered_otherwise(source: Any, described: Described | None) -> Exception:
    if described is None:
        return Different(["a program in a branch or loop", "another"])
    return UnsupportedError(
        "this op is lowered to StableHLO in another way for other sizes",
        help="export the torch dialect, or leave this dimension fixed",
    ).located("", source)


def _merged_op(ops: Sequence[Op], values: Mapping[flat.Value, flat.Value]) -> Op:
    op = ops[0]
    copy = object.__new__(type(op))
    operands = dict(op.operand_fields)
    state: dict[str, Any] = {"source": op.source}
    for field in op.fields:
        own = op.__dict__[field]
        if isinstance(op, Composite) and field in ("rule", "push"):
            state[field] = own  # what is exported is not differentiated: its body is what it is
        elif field not in operands:
            state[field] = merged([each.__dict__[field] for each in ops])
        elif operands[field]:
            state[field] = tuple([values.get(each, each) for each in own])
        else:
            state[field] = values.get(own, own)
    types = [merged_type([each.results[r].type for each in ops]) for r in range(len(op.results))]
    state["results"] = tuple([flat.Value(type, copy, r) for r, type in enumerate(types)])
    copy.__dict__ = state
    return copy
