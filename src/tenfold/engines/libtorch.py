"""The libtorch engine: a Trace run op by op through libtenfold, its gradients by libtorch's own autograd.

Each node is its ATen overload, called by name. A node that a gradient goes back through is called on inputs
that record, and its results are detached for whoever uses them: so a gradient node asks libtorch for the
gradients of one node after the other, from the last to the first, along the wiring that was recorded. Nodes
that ATen has no op for, such as an optimizer's step, run by their FlatIR. Random ops draw from libtorch's
generators, seeded by Tenfold's state: other numbers than XLA's, the same ones each time.
"""

from __future__ import annotations

import ctypes
import functools
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from tenfold.base.devices import Device
from tenfold.base.dtypes import DType
from tenfold.base.errors import EngineError, TenfoldError, UnsupportedError
from tenfold.capi.binding import Library, handles
from tenfold.capi.build import build
from tenfold.engines.libtorch_calls import Calls, Held, by_code, code_of, named, next_state, seed_of
from tenfold.engines.libtorch_flat import evaluate_fragment
from tenfold.flat.ir import TensorType
from tenfold.ops.callee import OpCall
from tenfold.ops.table import Row
from tenfold.trace.collect import Trace
from tenfold.trace.gradient import NOTHING, GradientNode
from tenfold.trace.graph import Node, Value

__all__ = ["Run", "library", "run"]


@functools.cache
def library() -> Library:
    """libtenfold, built against the installed libtorch if it was not before."""
    told = False

    def progress(done: str, step: int, steps: int) -> None:
        nonlocal told
        if not told:
            print("building libtenfold for the libtorch engine, once: a minute or two", file=sys.stderr)
            told = True

    loaded = Library(str(build(progress=progress).library))
    if not loaded.raw("tn_available")():
        raise loaded.error()
    return loaded


def run(program: Trace, arrays: Sequence[np.ndarray], device: Device) -> list[np.ndarray]:
    """A program's outputs, computed from its leaves."""
    run_of = Run(library(), program, device)
    try:
        return run_of.outputs(arrays)
    finally:
        run_of.close()


class _Frame:
    """A node that was called for gradients to go back through it: its inputs, of which some record, and its
    results with their graph."""

    __slots__ = ("inputs", "results")

    def __init__(self, inputs: list[Held], results: list[Held]):
        self.inputs = inputs
        self.results = results


class Run(Calls):
    """One run of a program."""

    def __init__(self, lib: Library, program: Trace, device: Device):
        super().__init__(lib, device)
        self.program = program
        self.values: dict[Any, Held] = {}  # of leaves by value, of results by node and index
        self.frames: dict[Node, _Frame] = {}

    def outputs(self, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
        kept = [np.ascontiguousarray(array).reshape(array.shape) for array in arrays]  # until the run is over
        return [self.fetch(handle) for handle in self.handles([self.wrap(array) for array in kept])]

    def handles(self, leaves: Sequence[Held]) -> list[Held]:
        """The outputs' tensors, computed from those of the leaves."""
        program = self.program
        self.values.update(zip(program.leaves, leaves, strict=True))
        recording = _recording(program)
        last = _last_uses(program)
        for i, node in enumerate(program.nodes):
            try:
                self._node(node, recording.get(node))
            except TenfoldError as error:
                raise error.located(node.callee.name, node.source) from None
            for key in last.get(i, ()):
                self.free(self.values.pop(key))
        return [
            self.values[program.leaves[-1 - place] if place < 0 else (program.nodes[place], index)]
            for place, index in program.outputs
        ]

    def _value(self, value: Value) -> Held:
        return self.values[value if value in self.values else (value.node, value.index)]

    def _node(self, node: Node, records: Sequence[bool] | None) -> None:
        inputs = [self._value(operand) for operand in node.inputs]
        if isinstance(node, GradientNode):
            results = self._gradient(node, inputs)
        elif records is None:
            results = self._call(node, inputs)
        else:
            results = self._recorded(node, inputs, records)
        for i, result in enumerate(results):
            self.values[node, i] = result

    def _recorded(self, node: Node, inputs: list[Held], records: Sequence[bool]) -> list[Held]:
        """Call a node so that gradients can go back through it, to the inputs that say so."""
        own = []
        for handle, wanted in zip(inputs, records, strict=True):
            alias = self.apply("aten::detach", handle)
            if wanted:
                self.lib.tn_set_requires_grad(alias, True)
            own.append(alias)
        results = self._call(node, own, recording=True)
        self.frames[node] = _Frame(own, results)
        return [self.apply("aten::detach", result) for result in results]

    def _gradient(self, node: GradientNode, cotangents: list[Held]) -> list[Held]:
        """The cotangents that are wanted, by going back through the nodes of the path."""
        wiring = node.callee.wiring
        slots: dict[int, Held] = {}

        def add(slot: int, cotangent: Held) -> None:
            known = slots.get(slot)
            slots[slot] = cotangent if known is None else self._add(known, cotangent)

        for slot, cotangent in zip(wiring.starts, cotangents, strict=True):
            add(slot, cotangent)
        for k in range(len(node.path) - 1, -1, -1):
            frame = self.frames[node.path[k]]
            starts = [
                (result, slots[slot])
                for result, slot in zip(frame.results, wiring.results[k], strict=False)
                if slot in slots and self.lib.tn_requires_grad(result)
            ]
            wanted = [
                (handle, slot)
                for handle, slot in zip(frame.inputs, wiring.inputs[k], strict=True)
                if slot != NOTHING and self.lib.tn_requires_grad(handle)
            ]
            if not starts or not wanted:
                continue
            try:
                gradients = self._back(starts, [handle for handle, _ in wanted])
            except TenfoldError as error:
                raise error.located(node.path[k].callee.name, node.path[k].source) from None
            for handed, (_, slot) in zip(gradients, wanted, strict=True):
                if handed is not None:
                    add(slot, self.own(handed))
        types = node.callee.result_types
        return [
            self.own(self.lib.tn_tensor_share(slots[slot])) if slot in slots else self._zeros(type)
            for slot, type in zip(wiring.wants, types, strict=True)
        ]

    def _back(self, starts: list[tuple[Held, Held]], inputs: list[Held]) -> list[int | None]:
        out, count = handles([None] * len(inputs))
        results, cotangents = (
            handles([result for result, _ in starts]),
            handles([cotangent for _, cotangent in starts]),
        )
        self.lib.tn_gradients(*results, *handles(inputs), *cotangents, True, False, True, out, count)
        return list(out[: len(inputs)])

    def _add(self, x: Held, y: Held) -> Held:
        return self.apply("aten::add.Tensor", x, y)

    def _zeros(self, type: TensorType) -> Held:
        return self.copied(np.zeros(type.shape, type.dtype.numpy), type.dtype)

    def _call(self, node: Node, inputs: list[Held], recording: bool = False) -> list[Held]:
        """Call a node's op: its results as the table says they are."""
        callee = node.callee
        if not isinstance(callee, OpCall):
            results = evaluate_fragment(self, callee.fragment, inputs)
            self._check(results, callee.result_types)
            return results
        scope = None if recording else self.lib.tn_no_grad_begin()
        try:
            results = self._on_recorded_layout(callee, inputs)
        except TenfoldError as error:
            raise type(error)(f"libtorch: {error.message.removeprefix('tn_call_op: ')}") from None
        finally:
            if scope is not None:
                self.lib.tn_scope_end(scope)
        self._check(results, callee.result_types)
        return results

    def _on_recorded_layout(self, callee: OpCall, inputs: list[Held]) -> list[Held]:
        """Call an op. One that sees the whole storage of its input gets a copy, which lies as was recorded;
        so does a view that libtorch refuses, which depends on the strides of what it looks at."""
        row = callee.row
        if row.storage:
            return self._aten(callee, [self.compact(inputs[0]), *inputs[1:]])
        try:
            return self._aten(callee, inputs)
        except TenfoldError:
            if not row.schema.is_view or not inputs:
                raise
        return self._aten(callee, [self.compact(inputs[0]), *inputs[1:]])

    def _aten(self, callee: OpCall, inputs: list[Held]) -> list[Held]:
        row = callee.row
        op = _find(self.lib, row)
        remaining = iter(inputs)
        state = None
        types = callee.types[:-1] if row.random else callee.types  # a state decides no dtype
        stack = self.lib.tn_stack_new()
        try:
            for argument, value in zip(row.schema.arguments, callee.arguments, strict=False):
                if row.random and argument.name == "generator":
                    state = next(remaining)
                    self.push_generator(stack, self.fetch(state))
                elif argument.type.kind == "Generator":
                    self.lib.tn_stack_push_none(stack)
                else:
                    self.push(stack, argument, value, remaining, callee.result_types[0], types)
            if row.random and state is None:
                state = next(remaining)
                self.lib.tn_manual_seed(seed_of(self.fetch(state)))
            self.lib.tn_call_op(op, stack)
            results = [self.own(result) for result in self.results(stack)]
        finally:
            self.lib.tn_stack_free(stack)
        if state is not None:
            drawn = next_state(self.fetch(state))
            results.append(self.copied(drawn, callee.result_types[-1].dtype))
        return results

    def _check(self, results: list[Held], types: Sequence[TensorType]) -> None:
        """Nothing may go on with another shape or dtype than was recorded."""
        if len(results) != len(types):
            raise EngineError(f"libtorch gives {len(results)} results, and {len(types)} were recorded")
        for i, (handle, type) in enumerate(zip(results, types, strict=True)):
            shape = (ctypes.c_int64 * max(type.rank, 1))()
            rank = self.lib.tn_tensor_shape(handle, shape, type.rank)
            code = self.lib.tn_tensor_dtype(handle)
            if (
                rank != type.rank
                or tuple(shape[:rank]) != tuple(type.shape)
                or code != code_of(type.dtype.name)
            ):
                dtype = by_code()[code].short
                raise EngineError(
                    f"libtorch gives {dtype}{list(shape[:rank])} for result {i}, and {type} was recorded"
                )


def _find(lib: Library, row: Row) -> int:
    name = f"{row.namespace}::{row.qualified}"
    try:
        return named(lib, name)
    except TenfoldError:
        raise UnsupportedError(
            f"this libtorch has no {name}", help="tn.set_engine('xla') runs every op of Tenfold's"
        ) from None


def _recording(program: Trace) -> dict[Node, list[bool]]:
    """For each node that a gradient goes back through, which of its inputs that reaches."""
    needed: dict[Node, list[bool]] = {}
    for node in program.nodes:
        if isinstance(node, GradientNode):
            for on_path, slots in zip(node.path, node.callee.wiring.inputs, strict=True):
                known = needed.setdefault(on_path, [False] * len(slots))
                for i, slot in enumerate(slots):
                    known[i] = known[i] or (slot != NOTHING and _continuous(on_path.inputs[i].type.dtype))
    return needed


def _continuous(dtype: DType) -> bool:
    return dtype.kind in ("float", "complex")


def _last_uses(program: Trace) -> dict[int, list[Any]]:
    """For each place of a node, the results that nothing after it needs."""
    places: dict[Any, int] = {}
    for i, node in enumerate(program.nodes):
        for k in range(len(node.callee.result_types)):
            places[node, k] = i
        for operand in node.inputs:
            if operand.buffer is None and operand.node is not None:
                places[operand.node, operand.index] = i
    for place, index in program.outputs:
        if place >= 0:
            places.pop((program.nodes[place], index), None)
    keys: dict[int, list[Any]] = {}
    for key, i in places.items():
        keys.setdefault(i, []).append(key)
    return keys
