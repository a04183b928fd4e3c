"""`module_context`: what is done to tensors in a block, as a module of the torch dialect."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

from tenfold.base.errors import TraceError, UnsupportedError
from tenfold.base.source import capture
from tenfold.runtime import evaluate
from tenfold.trace.collect import collect
from tenfold.trace.context import context
from tenfold.trace.graph import Node, Value
from tenfold.trace.record import Policy, Recorder, recording_lock


def _refuse_function(function: Any, args: tuple[Any, ...]) -> Any:
    raise UnsupportedError(
        "a Function inside mlir.module_context: the derivative would not be its own",
        help="write its forward with ordinary ops there",
    ).located(function.__name__, capture())


# Writes are left as they are: the block is part of the user's program.
POLICY = Policy("mlir.module_context", evaluate=evaluate.evaluate, apply=_refuse_function)


class RecordedModule:
    """The module of a block; printing it gives its text, in the block that of what was done so far."""

    def __init__(self, so_far: Callable[[], Any]) -> None:
        self.module: Any = None
        self._so_far = so_far

    def text(self, locations: bool = False, whole: bool = False) -> str:
        """The module as text; of long literals only their types, unless `whole`."""
        module = self._so_far() if self.module is None else self.module
        return str(module.text(locations=locations, whole=whole))

    def __str__(self) -> str:
        return self.text()


class module_context:
    """A block whose ops are recorded as a function of the torch dialect, without arguments.

    What exists before the block, and parameters wherever they are made, are literals in it; its results are
    the tensors made in the block that nothing else in it uses and that are still there when it ends. Nothing
    is computed in the block, so no value can be asked for.

        with module_context() as module:
            y = nn.Linear(10, 10)(tenfold.ones(10))
        print(module)
    """

    def __init__(self, *, value_tensors: bool = True):
        self.value_tensors = value_tensors

    def __enter__(self) -> RecordedModule:
        if context.recorder is not None:
            raise TraceError("module_context inside something else that is recorded").located(
                "module_context", capture()
            )
        self.recorded, self.recorder = RecordedModule(self._so_far), Recorder(POLICY)
        self.recorder.nodes = self.order = _InOrder()
        recording_lock.acquire()  # recordings of other threads wait until the block ends
        context.recorder = self.recorder
        return self.recorded

    def __exit__(self, kind: Any, *error: Any) -> None:
        try:
            context.recorder = None
            if kind is None:
                self.recorded.module = self._emitted()
        finally:
            recording_lock.release()

    def _so_far(self) -> Any:
        """The module of what was recorded until now; the block goes on."""
        if context.recorder is not self.recorder:
            raise TraceError("the block ended with an error, so it has no module").located(
                "module_context", capture()
            )
        context.recorder = None
        try:
            return self._emitted()
        finally:
            context.recorder = self.recorder

    def _emitted(self) -> Any:
        from tenfold.mlir import torch_dialect

        leaves = [each for each in self.recorder.leaves if each.collector is not None]
        parameters = [each.current() for each in leaves]
        evaluate.evaluate([each for each in parameters if each.buffer is None])
        targets = _left(self.order.made)
        if not targets:
            raise TraceError(
                "the block leaves no tensor that was computed in it", help="keep a result in a variable"
            ).located("module_context", capture())
        program, _ = collect(targets)
        literals = {leaf: evaluate.computed_array(leaf) for leaf in program.leaves}
        return torch_dialect.emit(program, literals=literals, value_tensors=self.value_tensors)


class _InOrder(set[Node]):
    """Nodes that remember in which order they came."""

    def __init__(self) -> None:
        super().__init__()
        self.made: list[Node] = []

    def add(self, node: Node) -> None:
        super().add(node)
        self.made.append(node)


def _left(nodes: list[Node]) -> list[Value]:
    """The values that the nodes made for somebody who still holds them, and no other node uses."""
    used = {each for node in nodes for each in node.inputs}
    places = {node: i for i, node in enumerate(nodes)}
    found = []
    for each in gc.get_referrers(*nodes):
        if type(each) is Value and each.node in places and each not in used:
            callee = each.node.callee
            is_state = callee.random and each.index == len(callee.result_types) - 1
            if not is_state:
                found.append((places[each.node], each.index, each))
    return [each for _, _, each in sorted(found, key=lambda place: place[:2])]
