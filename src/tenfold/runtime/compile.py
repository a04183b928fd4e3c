"""`compile`: a function recorded once for each signature, and from then on only run.

While it is recorded, a `Recording` follows which tensors the function reads from outside of its arguments,
and which it writes in place. Both become part of the program: the first as hidden inputs, read anew at each
call, the second as hidden results, put back after it.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tenfold import dtypes
from tenfold.devices import Device
from tenfold.engines import xla
from tenfold.errors import ArgumentError, TenfoldError, TraceError
from tenfold.runtime import evaluate, tree
from tenfold.runtime.evaluate import Pending
from tenfold.source import capture
from tenfold.trace import graph
from tenfold.trace.graph import Holder, Node, Program, Value, collect

_recording = threading.RLock()


class Recording:
    """What a function does to tensors while it is recorded."""

    def __init__(self) -> None:
        self.thread = threading.get_ident()
        self.nodes: set[Node] = set()
        self.arguments: set[Value] = set()
        self.holders: dict[Value, Holder] = {}
        self.before: dict[Holder, Value] = {}
        self.written: list[Holder] = []

    def read(self, holder: Holder, value: Value) -> Value:
        """A tensor's value is used: one from outside is computed now, and remembered as an input."""
        if not self.traced(value):
            if value.buffer is None:
                with self.paused():
                    evaluate.evaluate([value])
            self.holders.setdefault(value, holder)
        return value

    def write(self, holder: Holder, root: Holder) -> None:
        """A tensor is about to be written; `root` is the memory behind it."""
        if root not in self.before:
            with self.paused():
                self.before[root] = root.current()
        if not self.traced(self.before[root]):
            self.written.append(holder)

    def traced(self, value: Value) -> bool:
        return value in self.arguments or self.made(value)

    def made(self, value: Value) -> bool:
        """Whether a value was computed by the function itself."""
        return value.buffer is None and value.node in self.nodes

    def results(self) -> dict[Holder, Value]:
        """What the tensors from outside that were written hold at the end."""
        return {root: root.current() for root, value in self.before.items() if not self.traced(value)}

    def restore(self) -> None:
        for root, value in self.before.items():
            root.replace(value)

    def paused(self) -> _Paused:
        return _Paused()


class _Paused:
    def __enter__(self) -> None:
        self.recorder, graph.recorder = graph.recorder, None

    def __exit__(self, *error: Any) -> None:
        graph.recorder = self.recorder


class Recorded:
    """A function on arguments of given types: its program, and how results become what it returned."""

    def __init__(
        self,
        program: Program,
        inputs: list[int | Holder | Value],
        structure: Any,
        returned: list[int | Holder | None],
        writes: list[Holder],
        argument_writes: list[int],
        device: Device,
    ):
        self.program = program
        self.inputs = inputs
        self.structure = structure
        self.returned = returned  # for each tensor: an argument, one from outside, or None for a new one
        self.count = len(returned)
        self.writes = writes
        self.argument_writes = argument_writes
        self.device = device
        self.types = [leaf.type for leaf in program.leaves]
        self.loaded: evaluate.Loaded | None = None
        # Whether a call is no more than its arguments in, one tensor out.
        in_order = all(type(each) is int and each == i for i, each in enumerate(inputs))
        new = structure is tree.LEAF and returned == [None]
        self.plain = in_order and new and not writes and not argument_writes
        self.result_types = [
            program.nodes[place].signature.result_types[index]
            if place >= 0
            else program.leaves[-1 - place].type
            for place, index in program.outputs
        ]

    def run(self, arguments: Sequence[Any], wrap: Callable[[Value], Any]) -> Any:
        if not self.writes and not self.argument_writes:
            return self._run(arguments, wrap)
        with evaluate.lock:  # between reading what it writes and writing it, no other thread may write
            return self._run(arguments, wrap)

    def _run(self, arguments: Sequence[Any], wrap: Callable[[Value], Any]) -> Any:
        if self.loaded is None:
            self.loaded = evaluate.build(self.program, self.device)
        device = self.device
        buffers = []
        for each in self.inputs:
            if type(each) is int:
                value = arguments[each].current()
            elif type(each) is Value:
                value = each
            else:
                value = each.current()  # type: ignore[union-attr]
            buffer = value.buffer
            if buffer is None:
                evaluate.evaluate([value])
                buffer = value.buffer
            if type(buffer) in (np.ndarray, Pending) or value.device is not device:
                buffer = evaluate.buffer_of(value, device)
            buffers.append(buffer)
        try:
            computed = self.loaded(buffers)
        except TenfoldError as error:
            raise evaluate.placed(error, self.program) from None
        results = [
            Value(type, device, None, 0, buffer)
            for type, buffer in zip(self.result_types, computed, strict=True)
        ]
        for root, value in zip(self.writes, results[self.count :], strict=False):
            root.replace(value)
        for index, value in zip(self.argument_writes, results[self.count + len(self.writes) :], strict=True):
            arguments[index].assign(value)
        tensors = [
            wrap(value) if each is None else arguments[each] if type(each) is int else each
            for each, value in zip(self.returned, results, strict=False)
        ]
        return tree.unflatten(self.structure, iter(tensors))

    def fits(self) -> bool:
        """Whether the tensors it reads from outside still have the types they had."""
        return all(
            type(each) is int or type(each) is Value or each.current().type is expected  # type: ignore[union-attr]
            for each, expected in zip(self.inputs, self.types, strict=True)
        )


def trace(function: Callable[..., Any], args: tuple, kwargs: dict[str, Any], tensor: type) -> Recorded:
    """Record a function on arguments like these; `tensor` is the class of tensors, made from a Value."""
    given: list[Any] = []
    structure = tree.flatten((args, kwargs), lambda each: isinstance(each, tensor), given)
    with _recording:
        recording = Recording()
        by_tensor: dict[int, Any] = {}  # one stand-in for a tensor that is given twice
        for each in given:
            value = Value(each.current().type, each.current().device)
            value.source = each.current().made_at
            by_tensor.setdefault(id(each), tensor(value))
        stand_ins = [by_tensor[id(each)] for each in given]
        values = [each.current() for each in stand_ins]
        recording.arguments.update(values)
        outer, graph.recorder = graph.recorder, recording
        try:
            call_args, call_kwargs = tree.unflatten(structure, iter(stand_ins))
            result = function(*call_args, **call_kwargs)
            outputs: list[Any] = []
            result_structure = tree.flatten(result, lambda each: isinstance(each, tensor), outputs)
            targets = [each.current() for each in outputs]
        finally:
            graph.recorder = outer
            written = recording.results()
            finals = [each.current() for each in stand_ins]
            recording.restore()
    first = {id(each): i for i, each in reversed(list(enumerate(stand_ins)))}
    changed = [i for i in first.values() if finals[i] is not values[i]]
    if changed and shares_memory(given):
        raise TraceError(
            "the function writes to an argument that shares memory with another", help="clone() one of them"
        ).located("compile", capture())
    wanted = targets + list(written.values()) + [finals[i] for i in changed]
    if not wanted:
        raise TraceError(
            "the compiled function neither returns nor changes a tensor", help="return what it computes"
        ).located("compile", capture())
    program, _ = collect(wanted)
    places = {values[i]: i for i in first.values()}
    inputs: list[int | Holder | Value] = [
        places[leaf] if leaf in places else recording.holders.get(leaf, leaf) for leaf in program.leaves
    ]
    outside = {id(each): each for each in (*recording.holders.values(), *recording.written)}
    returned = [first.get(id(each), outside.get(id(each))) for each in outputs]
    return Recorded(program, inputs, result_structure, returned, list(written), changed, wanted[0].device)


def shares_memory(tensors: Sequence[Any]) -> bool:
    """Whether two of these tensors, not being the same, lie in one storage."""
    distinct = {id(each): each for each in tensors if each._alias is not None}
    return len({id(each._alias.storage) for each in distinct.values()}) < len(distinct)


class Compiled:
    """A function whose programs are kept, one for each signature of its arguments."""

    def __init__(self, function: Callable[..., Any], tensor: type):
        functools.update_wrapper(self, function)
        self.function = function
        self._tensor = tensor
        self._recorded: dict[Any, Recorded] = {}
        self._short: tuple[list[Any], Callable[..., Any], Any, Any] | None = None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if graph.recorder is not None and graph.active() is not None:
            return self.function(*args, **kwargs)
        short = self._short
        if short is not None and not kwargs and len(xla.in_use) == 1:
            # A call like the last one, with its data on the device: nothing to do but start the program.
            types, start, result, default = short
            try:
                values = [each._value for each in args if each._alias is None]
                same = len(args) == len(types) and [each.type for each in values] == types
                if same and default is dtypes.get_default_dtype():
                    results = start([each.buffer for each in values])
                    return self._tensor(Value(result, values[0].device, None, 0, Pending(results)))
            except (AttributeError, TypeError, RuntimeError):
                pass  # not all tensors, or data not there yet
        return self._general(args, kwargs)

    def _general(self, args: tuple, kwargs: dict[str, Any]) -> Any:
        tensor = self._tensor
        given: list[Any] = []
        structure = tree.flatten((args, kwargs), lambda each: isinstance(each, tensor), given)
        types = tuple([(each.current().type, each.current().device) for each in given])
        # What is the same tensor, and what shares memory, decides what a write is seen by.
        same = tuple([[id(other) for other in given].index(id(each)) for each in given])
        key = (structure, types, same, shares_memory(given), dtypes.get_default_dtype())
        try:
            recorded = self._recorded.get(key)
        except TypeError:
            raise ArgumentError(
                "arguments other than tensors must be hashable, since each value is compiled apart",
                help="pass tensors for data, and numbers, strings or tuples for options",
            ).located("compile", capture()) from None
        if recorded is None or not recorded.fits():
            recorded = self._recorded[key] = trace(self.function, args, kwargs, tensor)
        result = recorded.run(given, tensor)
        self._shorten(recorded, args, kwargs)
        return result

    def _shorten(self, recorded: Recorded, args: tuple, kwargs: dict[str, Any]) -> None:
        """Let calls like this one go the short way, if they need no more than to start the program."""
        self._short = None
        loaded = recorded.loaded
        if not (recorded.plain and args and not kwargs and loaded is not None and not loaded.checks):
            return
        if all(isinstance(each, self._tensor) for each in args):
            types = [each._value.type for each in args]
            start = loaded.executable.start
            self._short = (types, start, recorded.result_types[0], dtypes.get_default_dtype())

    def __get__(self, instance: Any, owner: Any) -> Any:
        return self if instance is None else functools.partial(self, instance)
