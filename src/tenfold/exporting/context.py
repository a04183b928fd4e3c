"""`module_context`: what is done to tensors in a block, as a module of the torch dialect."""

from __future__ import annotations

import gc
import threading
from typing import Any

from tenfold.base.errors import TraceError
from tenfold.base.source import capture
from tenfold.runtime import evaluate
from tenfold.runtime.recording import one_at_a_time
from tenfold.trace import graph
from tenfold.trace.graph import Holder, Node, Origin, Value
from tenfold.trace.program import collect


class RecordedModule:
    """The module of a block, complete when the block ends; printing it gives its text."""

    def __init__(self) -> None:
        self.module: Any = None

    def text(self, locations: bool = False, whole: bool = False) -> str:
        """The module as text; of long literals only their types, unless `whole`."""
        if self.module is None:
            raise TraceError(
                "the module is complete when its block ends", help="print it after the `with` block"
            ).located("module_context", capture())
        return self.module.text(locations=locations, whole=whole)

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
        one_at_a_time.acquire()  # there is one recorder: other threads record after the block
        if graph.recorder is not None:
            one_at_a_time.release()
            raise TraceError("module_context inside something else that is recorded").located(
                "module_context", capture()
            )
        self.recorded, self.recorder = RecordedModule(), _Recorder()
        graph.recorder = self.recorder
        return self.recorded

    def __exit__(self, kind: Any, *error: Any) -> None:
        try:
            graph.recorder = None
            if kind is None:
                self.recorded.module = self._emitted()
        finally:
            one_at_a_time.release()

    def _emitted(self) -> Any:
        from tenfold.mlir import torch_dialect

        parameters = [each.current() for each in self.recorder.parameters]
        evaluate.evaluate([each for each in parameters if each.buffer is None])
        targets = _left(self.recorder.order.made)
        if not targets:
            raise TraceError(
                "the block leaves no tensor that was computed in it", help="keep a result in a variable"
            ).located("module_context", capture())
        program, _ = collect(targets)
        literals = {leaf: evaluate.computed_array(leaf) for leaf in program.leaves}
        return torch_dialect.emit(program, literals=literals, value_tensors=self.value_tensors)


class _Recorder:
    """Follows what a block does. Writes are left as they are: the block is part of the user's program."""

    what = "mlir.module_context"
    through_memory = False

    def __init__(self) -> None:
        self.thread = threading.get_ident()
        self.order = _InOrder()
        self.nodes: set[Node] = self.order
        self.parameters: dict[Holder, None] = {}

    def read(self, holder: Holder, value: Value) -> Value:
        if getattr(holder, "_leaf", None) is not None:
            self.parameters[holder] = None
        if value.buffer is None and value.node not in self.nodes:
            with graph.outside():
                evaluate.evaluate([value])
        return value

    def write(self, holder: Holder, root: Holder) -> None:
        pass

    def made(self, value: Value) -> bool:
        return value.buffer is None and value.node in self.nodes

    def knows(self, value: Value) -> bool:
        return False

    def touch_grad(self, origin: Origin, clears: bool) -> None:
        pass

    def guard(self, container: Any, key: Any, contents: bool = False) -> None:
        pass

    def watch(self, container: Any, apart: Any = (), of_object: bool = False) -> None:
        pass


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
            signature = each.node.signature
            is_state = signature.row.random and each.index == len(signature.result_types) - 1
            if not is_state:
                found.append((places[each.node], each.index, each))
    return [each for _, _, each in sorted(found, key=lambda place: place[:2])]
