"""A module of the torch dialect under construction: its functions and regions, and the SSA values that stand
for tensors recorded in it. Ops that are made by hand: `operations.py`."""

from __future__ import annotations

import contextlib
import gc
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from tenfold.base.devices import Device
from tenfold.base.errors import TraceError
from tenfold.base.source import capture
from tenfold.exporting.ssa import SSAValue
from tenfold.mlir import torch_dialect, torch_types
from tenfold.mlir.torch_emitter import Emitter, data_of, require_aten
from tenfold.runtime import evaluate
from tenfold.tensor import Tensor
from tenfold.trace.context import context, outside
from tenfold.trace.graph import Node, Value
from tenfold.trace.record import Recorder

WHAT = "module_context"


class NodesInOrder:
    """The nodes recorded in a block that somebody still needs, in order."""

    def __init__(self) -> None:
        self._places: weakref.WeakKeyDictionary[Node, int] = weakref.WeakKeyDictionary()
        self.count = 0

    def add(self, node: Node) -> None:
        self._places[node] = self.count
        self.count += 1

    def place(self, node: Node) -> int:
        return self._places[node]

    def __contains__(self, node: object) -> bool:
        return node in self._places

    def __iter__(self) -> Iterator[Node]:
        return iter(list(self._places))


class Scope(NamedTuple):
    """A function or region that is being filled."""

    emitter: Emitter
    block: Any
    name: str  # of the function


class Builder:
    """The functions of a module, filled as ops are called.

    Tensors become SSA values when somebody asks for them: then everything recorded up to there is emitted, in
    order.
    """

    def __init__(self, recorder: Recorder, value_tensors: bool):
        self.recorder, self.value_tensors = recorder, value_tensors
        self.order = NodesInOrder()
        recorder.nodes = self.order  # type: ignore[assignment]
        self.symbolic: set[Value] = set()  # arguments, and what ops made by hand give
        recorder.arguments = self.symbolic
        self.context = torch_dialect.new_context()
        with torch_dialect.building(self.context) as ir:
            self.ir, self.mlir = ir, ir.Module.create()
        self.main: Any = None  # the operation of the function that the block itself is
        self.names: set[str] = {"main"}
        self.scopes: list[Scope] = []
        self.emitted: weakref.WeakSet[Node] = weakref.WeakSet()
        self.nested: weakref.WeakSet[Node] = weakref.WeakSet()  # nodes of other functions and of regions
        self.by_hand: list[tuple[int, weakref.ref[Tensor]]] = []  # tensors of main that ops by hand gave
        self.returned: list[Any] | None = None  # what main returns, if it was said
        self.acts = False  # whether main has ops that were made by hand
        self.literals = 0
        self.finished: torch_dialect.TorchModule | None = None
        self.failed = False

    # Scopes

    @property
    def scope(self) -> Scope:
        """The function or region that ops are emitted into."""
        if not self.scopes:
            self.main = self.add_function("main", [])
            self.scopes.append(Scope(self.emitter(), self.main.regions[0].blocks[0], "main"))
        return self.scopes[-1]

    def emitter(self) -> Emitter:
        with torch_dialect.building(self.context) as ir:
            return Emitter(ir, self.context, self.value_tensors)

    def add_function(self, name: str, types: Sequence[Any]) -> Any:
        """A new function without results or ops."""
        with torch_dialect.building(self.context, self.mlir.body) as ir:
            attributes = {
                "sym_name": ir.StringAttr.get(name),
                "function_type": ir.TypeAttr.get(ir.FunctionType.get(list(types), [])),
            }
            function = ir.Operation.create("func.func", attributes=attributes, regions=1)
            function.regions[0].blocks.append(*types)
        return function

    def set_results(self, function: Any, types: Sequence[Any]) -> None:
        with torch_dialect.building(self.context) as ir:
            taken = [argument.type for argument in function.regions[0].blocks[0].arguments]
            function.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(taken, list(types)))

    @contextlib.contextmanager
    def entered(self, scope: Scope) -> Iterator[None]:
        """A block whose ops go into another scope; at its end everything recorded in it is emitted."""
        depth = len(self.scopes)
        self.scopes.append(scope)
        try:
            yield
            self.catch_up()
        finally:
            self.nested.update([node for node in self.order if node not in self.emitted])
            self.emitted.update(self.nested)
            del self.scopes[depth:]

    @contextlib.contextmanager
    def top_level(self) -> Iterator[None]:
        """A block whose ops stand in the module itself, beside its functions, as global slots do."""
        self.catch_up()
        _ = self.scope  # main, below the module's own
        with self.entered(Scope(self.emitter(), self.mlir.body, "module")):
            yield

    # Emitting what was recorded

    def require_open(self) -> None:
        """Refuse to build on after the block has ended, or where ops are recorded for another recording."""
        self._require_unfinished()
        if context.recorder is not self.recorder:
            raise TraceError(
                "the module of another block or thread",
                help="build a module in its own block, and in the thread that opened it",
            ).located(WHAT, capture())

    def _require_unfinished(self) -> None:
        if self.failed or self.finished is not None:
            raise TraceError("the block has ended, and its module with it").located(WHAT, capture())

    def catch_up(self) -> None:
        """Emit what was recorded since the last time."""
        self._require_unfinished()
        with outside():
            leaves = [leaf for leaf in self.recorder.leaves if leaf.collector is not None]
            evaluate.evaluate(
                [value for value in [leaf.current() for leaf in leaves] if not self._pending(value)]
            )
            waiting = [node for node in self.order if node not in self.emitted]
            if not waiting:
                return
            scope = self.scope
            with torch_dialect.building(self.context, scope.block):
                for node in waiting:
                    self._emit(node, scope)

    def _pending(self, value: Value) -> bool:
        """Whether a parameter's value is computed already, or depends on what has no data."""
        if value.buffer is not None or value in self.symbolic:
            return True
        seen, waiting = set(), [value]
        while waiting:
            waiter = waiting.pop()
            if waiter in self.symbolic:
                return True
            if waiter.node is not None and waiter.buffer is None and waiter.node not in seen:
                seen.add(waiter.node)
                waiting += waiter.node.inputs
        return False

    def _emit(self, node: Node, scope: Scope) -> None:
        require_aten(node)
        emitter = scope.emitter
        for operand in data_of(node):
            self.operand(operand, scope)
        emitter.location = emitter.place(node.source)
        emitter.node(node)
        self.emitted.add(node)
        if len(self.scopes) > 1:
            self.nested.add(node)

    def operand(self, value: Value, scope: Scope) -> Any:
        """The SSA value of a trace value: what is computed elsewhere is a literal."""
        emitter = scope.emitter
        if value in emitter.leaves:
            return emitter.leaves[value]
        if value.buffer is None and (value.node, value.index) in emitter.results:
            return emitter.results[value.node, value.index]  # type: ignore[index]
        if value in self.symbolic or (value.buffer is None and value.node in self.emitted):
            raise TraceError(
                "a tensor of another function, or of a region that has ended",
                help="pass it as an argument, or return it from its region",
            ).located(WHAT, capture())
        array = evaluate.computed_array(value)
        self.literals += 1
        literal = emitter.literal(array, value.type, f"{scope.name}_p{self.literals}")
        emitter.leaves[value] = literal
        return literal

    # Tensors and SSA values

    def value(self, tensor: Tensor) -> SSAValue:
        """The SSA value that stands for a tensor in the function or region where we are."""
        return SSAValue(self, self.mlir_value(tensor))

    def mlir_value(self, tensor: Tensor) -> Any:
        value = tensor.current()
        self.catch_up()
        with outside(), torch_dialect.building(self.context, self.scope.block):
            return self.operand(value, self.scope)

    def wrap(self, mlir: Any) -> Any:
        """A value of torch-mlir's bindings as a tensor, if its type is known whole, or as an SSAValue."""
        type = torch_types.read_tensor(str(mlir.type), self.value_tensors)
        if type is None:
            return SSAValue(self, mlir)
        value = Value(type, Device("cpu"))
        value.source = capture()
        self.symbolic.add(value)
        scope = self.scope
        scope.emitter.leaves[value] = mlir
        with outside():
            tensor = Tensor(value)
        if len(self.scopes) == 1:
            self.order.count += 1
            self.by_hand.append((self.order.count, weakref.ref(tensor)))
        return tensor

    def shown(self, mlir: Any) -> str:
        """The op that makes a value, or an argument with its type."""
        with torch_dialect.building(self.context) as ir:
            owner = mlir.owner
            if isinstance(owner, ir.Block):
                function = self._place_of(owner)
                return f"%arg{mlir.arg_number} of {function}: {mlir.type}"
            operation = getattr(owner, "operation", owner)
            text = operation.get_asm(assume_verified=True, large_elements_limit=32, large_resource_limit=64)
        return str(text).partition("\n{-#")[0].strip()

    def _place_of(self, block: Any) -> str:
        owner = getattr(block.owner, "operation", block.owner)
        named = "sym_name" in owner.attributes
        return f"@{owner.attributes['sym_name'].value}" if named else str(owner.name)

    def describe(self, value: Value) -> str:
        """How a tensor prints in the block: by the op that makes it."""
        if value.device.type == "meta":
            return f"{value.type}, recorded"
        self.catch_up()
        with outside(), torch_dialect.building(self.context, self.scope.block):
            mlir = self.operand(value, self.scope)
        return self.shown(mlir)

    # The whole

    def left(self) -> list[Any]:
        """The SSA values of main that are its results: those said by `returns`, or tensors that are still
        there and that nothing uses."""
        if self.returned is not None:
            return self.returned
        scope = self.scopes[0] if self.scopes else self.scope
        live_results = []
        nodes = [node for node in self.order if node not in self.nested]
        for referrer in gc.get_referrers(*nodes) if nodes else []:
            node = referrer.node if type(referrer) is Value and referrer.buffer is None else None
            if node is not None and node in self.order and node not in self.nested:
                is_state = node.callee.random and referrer.index == len(node.callee.result_types) - 1
                if not is_state:
                    place = (self.order.place(node), referrer.index)
                    live_results.append((place, scope.emitter.results[node, referrer.index]))
        for order, reference in self.by_hand:
            tensor = reference()
            if tensor is not None and tensor._value in scope.emitter.leaves:
                live_results.append(((order, 0), scope.emitter.leaves[tensor._value]))
        unused = {place: result for place, result in live_results if not list(result.uses)}
        return [unused[place] for place in sorted(unused)]

    def _results(self) -> list[Any]:
        """What main gives, once everything is emitted."""
        self.catch_up()
        if len(self.scopes) > 1:  # main goes on, so it gives nothing yet
            return []
        return self.left()

    @contextlib.contextmanager
    def _closed(self, results: Sequence[Any]) -> Iterator[None]:
        """A block in which main has its end: it is taken off again, so that building may go on."""
        if len(self.scopes) != 1:
            yield
            return
        self.set_results(self.main, [result.type for result in results])
        with torch_dialect.building(self.context, self.scopes[0].block) as ir:
            end = ir.Operation.create("func.return", [], results)
        try:
            yield
        finally:
            if self.finished is None:
                with torch_dialect.building(self.context):
                    end.erase()

    def text(self, locations: bool = False, whole: bool = False) -> str:
        """The module as text, in the block that of what was done so far; of long literals only their types,
        unless `whole`."""
        if self.finished is not None:
            return self.finished.text(locations=locations, whole=whole)
        with self._closed(self._results()):
            so_far = torch_dialect.TorchModule(self.mlir, self.context, unfinished=True)
            return so_far.text(locations=locations, whole=whole)

    def finish(self) -> None:
        """End main, and verify the module."""
        results = self._results()
        if not results and not self.acts and len(self.names) == 1:
            raise TraceError(
                "the block leaves no tensor that was computed in it", help="keep a result in a variable"
            ).located(WHAT, capture())
        with self._closed(results):
            if self.main is not None and self._is_empty():
                with torch_dialect.building(self.context):
                    self.main.erase()
            with torch_dialect.building(self.context):
                torch_dialect.require_verified(self.mlir, list(self.order))
            self.finished = torch_dialect.TorchModule(self.mlir, self.context)

    def _is_empty(self) -> bool:
        """Whether main has nothing but its end, in a module of other functions."""
        return len(list(self.scopes[0].block.operations)) == 1 and len(self.names) > 1

    def op(self, name: str, *args: Any, **kwargs: Any) -> Any:
        """Build an op by its name."""
        raise NotImplementedError

    def emit(self, make: Callable[[Any], Any]) -> Any:
        """What `make` gives, called where ops are emitted now, at the user's line."""
        self.require_open()
        self.catch_up()
        scope = self.scope
        source = capture()
        with outside(), torch_dialect.building(self.context, scope.block):
            scope.emitter.location = scope.emitter.place(source)
            return make(scope.emitter)

    def __str__(self) -> str:
        return self.text()
