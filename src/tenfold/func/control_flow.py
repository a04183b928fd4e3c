"""`cond` and `while_loop`: branches and loops that the program decides when it runs.

Each function is recorded once, without data, and becomes a part of one node. What it reads from outside
becomes an additional input. A tensor that a branch or body writes in place, such as a generator's state,
afterwards holds what the branch or body that ran wrote."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tenfold import flat
from tenfold.base import devices, dtypes
from tenfold.base.errors import ArgumentError, ShapeError, TraceError, located
from tenfold.base.source import capture
from tenfold.func.recorded import RecordedFunction, is_tensor, whole, write_to
from tenfold.ops.callee import programs
from tenfold.ops.table import exact
from tenfold.tensor import Tensor
from tenfold.tensor.views import Storage
from tenfold.trace import control, graph, tree
from tenfold.trace.context import context
from tenfold.trace.control import ControlNode, Part
from tenfold.trace.graph import Value

Target = Storage | int  # memory from outside that is written, or the place of an operand


@located
def cond(
    pred: Any, true_fn: Callable[..., Any], false_fn: Callable[..., Any], operands: Sequence[Any] = ()
) -> Any:
    """`true_fn(*operands)` if pred is true, else `false_fn(*operands)`; the program decides when it runs.

    `pred` is a tensor of one element, or a bool, which decides immediately. Both functions must return
    tensors of the same types in the same containers.

    >>> x = tenfold.tensor([1.0, -2.0])
    >>> tenfold.cond(x.sum() > 0, lambda x: x.sin(), lambda x: x.cos(), (x,))
    """
    _require_usable({"true_fn": true_fn, "false_fn": false_fn}, "operands", operands)
    if isinstance(pred, (bool, np.bool_)):
        return (true_fn if pred else false_fn)(*operands)
    if not isinstance(pred, Tensor) or pred.numel() != 1:
        what = str(pred._value.type) if isinstance(pred, Tensor) else type(pred).__name__
        raise ArgumentError(f"pred must be a bool or a tensor of one element, not {what}")
    tensors: list[Tensor] = []
    structure = tree.flatten(tuple(operands), is_tensor, tensors)
    values = [operand.current() for operand in tensors]

    def on(function: Callable[..., Any]) -> Callable[[Sequence[Tensor]], Any]:
        return lambda stand_ins: function(*tree.unflatten(structure, iter(stand_ins)))

    branches = [RecordedFunction("cond", on(branch), values) for branch in (false_fn, true_fn)]
    _require_alike(*branches)
    for branch in branches:
        branch.refuse_shared(tensors)
    targets = list(dict.fromkeys([target for branch in branches for target in branch.writes]))
    chooses = (pred.reshape(()) if pred.ndim else pred).bool()
    inputs = Inputs([chooses.current(), *values])
    places = [inputs.places(branch, 1) for branch in branches]
    before = [inputs.place(target, 1) for target in targets]
    parts = [_branch(branch, where, targets, before) for branch, where in zip(branches, places, strict=True)]

    random = any(branch.random for branch in branches)
    results = _node(control.COND, random, inputs.values, (parts[0], parts[1]), branches[0].trace.device)
    count = branches[0].count
    for target, result in zip(targets, results[count:], strict=True):
        write_to(target, tensors, result)
    return tree.unflatten(branches[0].structure, iter([Tensor(result) for result in results[:count]]))


@located
def while_loop(
    cond_fn: Callable[..., Any], body_fn: Callable[..., Any], carried_inputs: Sequence[Any]
) -> Any:
    """`carried = body_fn(*carried)` while `cond_fn(*carried)` is true; the program decides when it runs.

    Carried values keep their types. A Python number is carried as a tensor without dimensions. The loop has a
    gradient if it counts from a number, by a constant, to a constant.

    >>> tenfold.while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, x * 2), (0, tenfold.ones(2)))
    """
    _require_usable({"cond_fn": cond_fn, "body_fn": body_fn}, "carried_inputs", carried_inputs)
    carried: list[Any] = []
    structure = tree.flatten(tuple(carried_inputs), _is_carried, carried)
    if not carried:
        raise ArgumentError("nothing is carried", help="carry what changes from one round to the next")
    types = [_type(value) for value in carried]
    values = [value.current() if isinstance(value, Tensor) else None for value in carried]
    stand_ins = [
        Value(type, _device(values)) if value is None else value
        for type, value in zip(types, values, strict=True)
    ]

    def on(function: Callable[..., Any]) -> Callable[[Sequence[Tensor]], Any]:
        return lambda tensors: function(*tree.unflatten(structure, iter(tensors)))

    condition = RecordedFunction("while_loop", on(cond_fn), stand_ins)
    body = RecordedFunction("while_loop", on(body_fn), stand_ins)
    _require_condition(condition)
    _require_carried(body, structure, types)

    inputs = Inputs(stand_ins)
    places = [inputs.places(function, 0) for function in (condition, body)]
    written = {inputs.place(target, 0): i + body.count for i, target in enumerate(body.writes)}
    size = len(inputs.values)
    results = tuple([i if i < len(carried) else written.get(i, -1 - i) for i in range(size)])
    parts = (Part(condition.trace, places[0], (0,)), Part(body.trace, places[1], results))
    starts = _starts(carried, inputs.values)

    random = condition.random or body.random
    node_results = _node(control.WHILE, random, inputs.values, parts, body.trace.device, starts)
    for target in body.writes:
        write_to(target, (), node_results[inputs.place(target, 0)])
    return tree.unflatten(structure, iter([Tensor(result) for result in node_results[: len(carried)]]))


def _require_usable(functions: Mapping[str, Any], name: str, operands: Any) -> None:
    """Refuse functions that cannot be called, and operands that are not in a tuple or list."""
    for function_name, function in functions.items():
        if not callable(function):
            raise ArgumentError(f"{function_name} must be a function, not {type(function).__name__}")
    if not isinstance(operands, (tuple, list)):
        raise ArgumentError(
            f"{name} must be a tuple or list, not {type(operands).__name__}", help="write (x,) for one"
        )


class Inputs:
    """The values that a node takes: those that its functions are given, and those that they read from
    outside."""

    def __init__(self, values: Sequence[Value]):
        self.values = list(values)
        self.outside: dict[Value, int] = {}

    def places(self, recorded: RecordedFunction, shift: int) -> tuple[int, ...]:
        return tuple(
            [
                self.outer(leaf) if place is None else place + shift
                for leaf, place in zip(recorded.leaves, recorded.places, strict=True)
            ]
        )

    def place(self, target: Target, shift: int) -> int:
        """Where the value is that memory holds before it is written."""
        return target + shift if isinstance(target, int) else self.outer(whole(target).current())

    def outer(self, value: Value) -> int:
        place = self.outside.get(value)
        if place is None:
            place = self.outside[value] = len(self.values)
            self.values.append(value)
        return place


def _branch(
    recorded: RecordedFunction, places: tuple[int, ...], targets: list[Target], before: list[int]
) -> Part:
    """A branch's results: what it returns, then the final values of all that either branch writes."""
    written = {target: recorded.count + i for i, target in enumerate(recorded.writes)}
    ends = [written.get(target, -1 - place) for target, place in zip(targets, before, strict=True)]
    return Part(recorded.trace, places, (*range(recorded.count), *ends))


def _node(
    name: str,
    random: bool,
    values: Sequence[Value],
    parts: tuple[Part, Part],
    device: Any,
    starts: dict[int, Any] | None = None,
) -> tuple[Value, ...]:
    """The results of a new node on these values, those aside that start as numbers."""
    starts = starts or {}
    types = tuple([value.type for value in values])
    numbers = tuple([(i, type(number), exact(number)) for i, number in starts.items()])
    key = (name, random, parts[0].key, parts[1].key, numbers, types, dtypes.get_default_dtype())
    program = programs.get(key, lambda: control.program(name, types, parts, starts, random))
    inputs = tuple([value for i, value in enumerate(values) if i not in starts])
    return graph.enter(ControlNode(program, inputs, capture(), parts, starts), device)


def _require_alike(on_false: RecordedFunction, on_true: RecordedFunction) -> None:
    if on_false.structure != on_true.structure:
        raise ArgumentError(
            "true_fn and false_fn return different containers", help="let both return tensors in the same way"
        )
    for i, pair in enumerate(zip(_returned(on_true), _returned(on_false), strict=True)):
        if pair[0] is not pair[1]:
            raise ShapeError(
                f"true_fn returns {pair[0]} and false_fn {pair[1]} as result {i}: they must be alike",
                help="convert with .to(dtype), or expand one to the other's shape",
            )


def _returned(recorded: RecordedFunction) -> list[flat.TensorType]:
    return [recorded.trace.type_of(*output) for output in recorded.trace.outputs[: recorded.count]]


def _require_condition(recorded: RecordedFunction) -> None:
    if recorded.writes:
        raise TraceError(
            "cond_fn writes to a tensor, or draws a random number: it may only ask",
            help="do so in body_fn, and carry what cond_fn is to know of it",
        )
    returned = _returned(recorded)
    if len(returned) != 1 or returned[0].dtype is not dtypes.bool_ or returned[0].numel != 1:
        returned_types = ", ".join(map(str, returned))
        raise ArgumentError(f"cond_fn must return one bool tensor of one element, not {returned_types}")


def _require_carried(body: RecordedFunction, structure: Any, types: Sequence[flat.TensorType]) -> None:
    returned = body.structure
    if returned is tree.LEAF:
        returned = (tuple, None, (returned,))
    elif returned[0] is list:
        returned = (tuple, *returned[1:])
    if returned != structure:
        raise ArgumentError(
            f"body_fn returns {body.count} tensors, not in the containers of the {len(types)} carried",
            help="return a tuple with the next value of each",
        )
    for i, (before, after) in enumerate(zip(types, _returned(body), strict=True)):
        if before is not after:
            raise ShapeError(
                f"body_fn turns what is carried as {before} at place {i} into {after}: its type must stay",
                help="convert with .to(dtype), or start with a tensor of that type",
            )
    if any(isinstance(target, int) for target in body.writes):
        raise TraceError(
            "body_fn writes in place to what is carried",
            help="return the new value: use x + 1, not x.add_(1)",
        )


def _is_carried(leaf: Any) -> bool:
    return isinstance(leaf, (Tensor, bool, int, float))


def _type(value: Any) -> flat.TensorType:
    if isinstance(value, Tensor):
        return value.current().type
    by_kind = {bool: dtypes.bool_, int: dtypes.int64}
    return flat.TensorType(by_kind.get(type(value), dtypes.get_default_dtype()), ())


def _device(values: Sequence[Value | None]) -> Any:
    from_tensor = [value.device for value in values if value is not None]
    return from_tensor[0] if from_tensor else devices.get_default_device().resolved


def _starts(operands: Sequence[Any], values: Sequence[Value]) -> dict[int, Any]:
    """The numbers with which carried places start, where they are known now: Python's own; and, if gradients
    are to flow, counters that are tensors, since how often the loop runs must be known for these."""
    starts = {i: value for i, value in enumerate(operands) if not isinstance(value, Tensor)}
    if (
        context.grad_enabled
        and context.recorder is None
        and any(value.origin is not None for value in values)
    ):
        for i, value in enumerate(operands):
            if isinstance(value, Tensor) and not value.ndim and value.dtype.kind == "int":
                node = value.current().node
                if node is None or not node.inputs:
                    starts[i] = value.item()
    return starts
