"""A call of a function, recorded on stand-ins for its tensors: how `compile`, `show` and `export` begin."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from tenfold.base import log
from tenfold.base.errors import TraceError
from tenfold.base.source import capture
from tenfold.base.watched_sizes import Asked, Watched, plain
from tenfold.flat.ir import TensorType
from tenfold.runtime import evaluate
from tenfold.runtime.dependencies import Dependencies
from tenfold.runtime.integers import name_of
from tenfold.trace import tree
from tenfold.trace.context import context, outside
from tenfold.trace.counts import Counts
from tenfold.trace.gradient import Before
from tenfold.trace.graph import Origin, Value
from tenfold.trace.numbers import Numbers
from tenfold.trace.record import Policy, Recording, record, recording_lock


class Call(NamedTuple):
    """A recorded call: the tensors among its arguments, what was recorded with stand-ins in their places, and
    the Python state that this depends on."""

    given: list[Any]
    recording: Recording
    dependencies: Dependencies


def record_call(
    function: Callable[..., Any],
    args: tuple,
    kwargs: dict[str, Any],
    tensor: type,
    shapes: Mapping[int, tuple[int, ...]] | None = None,
    asked: list[Asked] | None = None,
    counts: Counts | None = None,
    numbers: Numbers | None = None,
) -> Call:
    """Record a call of a function. `shapes` gives some of its tensors other shapes, by place; `asked`
    collects what the function asks of sizes. `counts` turns sizes that depend on data into numbers, and
    `numbers` keeps the numbers that come from tensors. `tensor` is the class of tensors, made from a
    Value."""
    arguments: list[Any] = []
    structure = tree.flatten((args, kwargs), lambda leaf: isinstance(leaf, tensor), arguments)
    by_tensor: dict[int, Any] = {}  # one stand-in for a tensor that is given twice
    for i, argument in enumerate(arguments):
        if id(argument) not in by_tensor:
            by_tensor[id(argument)] = _stand_in(argument, tensor, (shapes or {}).get(i))
    stand_ins = [by_tensor[id(argument)] for argument in arguments]
    integers = {i for i, argument in enumerate(arguments) if name_of(argument._value)}
    if counts is not None:
        with outside():
            counts.arguments = [
                (stand_in.current(), argument) for stand_in, argument in zip(stand_ins, arguments)
            ]

    def call(tensors: Sequence[Any]) -> Any:
        leaves = [_integer(leaf, asked) if i in integers else leaf for i, leaf in enumerate(tensors)]
        call_args, call_kwargs = tree.unflatten(structure, iter(leaves))
        before, context.asked = context.asked, asked
        try:
            return plain(dependencies.call(*call_args, **call_kwargs))
        finally:
            context.asked = before

    dependencies = Dependencies(function, (args, kwargs), tensor, keeps_changes=numbers is None)
    what = "compile" if numbers is None else "export"
    policy = Policy(what, evaluate=evaluate.evaluate, listener=dependencies, numbers=numbers, counts=counts)
    start = time.perf_counter()
    with recording_lock:
        try:
            recording = record(call, stand_ins, policy)
        finally:
            dependencies.put_back()
    if log.topics:
        name = getattr(function, "__qualname__", type(function).__name__)
        nodes = len(recording.trace.nodes)
        log.write("trace", f"recorded {name}: {nodes} nodes", time.perf_counter() - start)
    _require_apart(arguments, recording)
    return Call(arguments, recording, dependencies)


def _integer(stand_in: Any, asked: list[Asked] | None) -> Any:
    """The integer that a tensor stands for, watched if what is asked of sizes is collected."""
    (number,) = stand_in.current().type.shape
    return number if asked is None else Watched(number, asked)


def _stand_in(argument: Any, tensor: Any, shape: tuple[int, ...] | None) -> Any:
    """A tensor without data that takes an argument's place. Gradients collect in it if they would in the
    argument; one that was computed stays no leaf."""
    with outside():
        present = argument.current()
    type = present.type if shape is None else TensorType(present.type.dtype, shape)
    value = Value(type, present.device)
    value.source = present.made_at
    stand_in: Any = tensor(value)
    gradient = argument.grad
    if argument.requires_grad:
        value.origin = Origin()
        if argument.is_leaf:
            stand_in._leaf = value.origin
        else:
            value.origin.node = Before(present, present.origin.node)
        value.origin.collected = gradient
    elif gradient is not None:
        stand_in._shelf = Origin()
        stand_in._shelf.collected = gradient
    return stand_in


def _require_apart(arguments: Sequence[Any], recording: Recording) -> None:
    """Refuse writes to an argument that other tensors would have to see."""
    what = recording.recorder.policy.what
    changed = recording.argument_writes
    if changed and shares_memory(arguments):
        raise TraceError(
            "the function writes to an argument that shares memory with another", help="clone() one of them"
        ).located(what, capture())
    memory = {id(argument.memory) for argument in arguments}
    inside = [read for read in recording.recorder.reads.values() if id(read.memory) in memory]
    if any(id(root) in memory for root in recording.recorder.before) or (changed and inside):
        raise TraceError(
            "the function writes to a tensor that it is given as an argument and also reads from outside",
            help="pass it in one of the two ways",
        ).located(what, capture())


def shares_memory(tensors: Sequence[Any]) -> bool:
    """Whether two of these tensors, not being the same, lie in one storage."""
    distinct = {id(tensor): tensor for tensor in tensors if tensor._alias is not None}
    return len({id(view._alias.storage) for view in distinct.values()}) < len(distinct)
