"""Ops of the torch dialect made by hand in a `module_context`: by name, with regions, and in functions."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from tenfold.base.errors import ArgumentError, TenfoldError, TraceError
from tenfold.base.source import capture
from tenfold.exporting.building import WHAT, Builder, Scope
from tenfold.exporting.calls import Call, by_row
from tenfold.exporting.dialect import Dialect
from tenfold.exporting.operands import Rendering, renderings
from tenfold.exporting.ssa import SSAValue
from tenfold.flat.ir import TensorType
from tenfold.mlir import torch_dialect, torch_types
from tenfold.mlir.interrupts import pass_on
from tenfold.mlir.torch_operations import Verifier, overloads, signature
from tenfold.tensor import Tensor
from tenfold.trace import tree
from tenfold.trace.record import Recorder

__all__ = ["Function", "Operations"]


class Function:
    """A function of the module under construction; calling it builds a call."""

    def __init__(self, builder: Operations, name: str, takes: list[Any], gives: list[Any], structure: Any):
        self.name, self.arguments, self.results = name, [str(t) for t in takes], [str(t) for t in gives]
        self._builder, self._gives, self._structure = builder, gives, structure

    def __call__(self, *args: Any) -> Any:
        builder = self._builder
        arguments = [
            _fitting(builder, argument, type) for argument, type in zip(args, self.arguments, strict=False)
        ]
        if len(args) != len(self.arguments) or None in arguments:
            raise ArgumentError(
                f"@{self.name} takes ({', '.join(self.arguments)})", help="the types must be the same"
            ).located(self.name, capture())

        def make(at: Any) -> Any:
            callee = {"callee": builder.ir.FlatSymbolRefAttr.get(self.name)}
            operands = [argument.emit(at) for argument in arguments if argument is not None]
            return at.create("func.call", self._gives, operands, callee)

        builder.mark()
        results = builder.emit(make)
        return tree.unflatten(self._structure, iter([builder.wrap(result) for result in results]))

    def __repr__(self) -> str:
        return f"<Function @{self.name}({', '.join(self.arguments)}) -> ({', '.join(self.results)})>"


class Operations(Builder, Dialect):
    """Ops by hand. What they give is a tensor where its type is known whole, else an `SSAValue`."""

    def __init__(self, recorder: Recorder, value_tensors: bool):
        super().__init__(recorder, value_tensors)
        self.verifier = Verifier(self.ir, self.context)

    def mark(self) -> None:
        """Note that an op is made by hand."""
        self.acts = self.acts or len(self.scopes) <= 1

    def op(
        self, name: str, *args: Any, results: Any = None, regions: Sequence[Any] = (), **kwargs: Any
    ) -> Any:
        """Build an op by its name, `aten.size.int`, on tensors, SSAValues and Python values.

        The types of its `results` are those that the dialect or the op's row infers; where they may be
        several, they are said: `results=["!torch.int"]`. A region is a pair: the types of its arguments, and
        a function on those that builds its ops, the terminator included.
        """
        self.require_open()
        try:
            if results is None and not regions:
                call = by_row(name, args, kwargs)
                if call is not None:
                    return call(*args, **kwargs)
            names = overloads(f"torch.{name}") or [f"torch.{name}"]
            return self._built(self._choose(names, args, kwargs), results, regions)
        except TenfoldError as error:
            raise error.located(name, capture()) from None

    def _choose(self, names: Sequence[str], args: Sequence[Any], kwargs: dict[str, Any]) -> Call:
        """The overload that takes these operands, with the fewest of them converted."""
        refusals, calls = [], []
        for name in names:
            try:
                calls.append(Call(self, signature(name), args, kwargs))
            except ArgumentError as error:
                refusals.append(error)
        if calls:
            return min(calls, key=lambda call: call.converted)
        if len({str(refusal) for refusal in refusals}) == 1:
            raise refusals[0]  # of the value itself, whatever the overload
        raise ArgumentError(
            "no overload takes these operands",
            help="there are " + "; ".join(str(signature(n)) for n in names),
        )

    def _built(self, call: Call, results: Any, regions: Sequence[Any]) -> Any:
        types = call.result_types(results)
        if len(regions) != call.of.regions:
            raise ArgumentError(
                f"{call.of} has {call.of.regions} regions, not {len(regions)}",
                help="give regions=[((), body)], with the types of a region's arguments first",
            )
        self.mark()
        operation = self.emit(lambda at: call.make(at, types))
        with self._verified(operation):
            for region, (arguments, body) in zip(operation.regions, regions, strict=True):
                self._fill(region, [self.parsed(argument) for argument in arguments], body, None)
        return self._given(operation)

    @contextlib.contextmanager
    def _verified(self, operation: Any) -> Iterator[None]:
        """A block that fills the regions of an op, which is verified after it, and erased on an error."""
        try:
            yield
            with torch_dialect.building(self.context):
                operation.verify()
        except Exception as error:
            pass_on(error)
            with torch_dialect.building(self.context):
                operation.erase()
            if isinstance(error, TenfoldError) or type(error).__name__ != "MLIRError":
                raise
            raise ArgumentError(torch_dialect.reason(str(error))) from None

    def _given(self, operation: Any) -> Any:
        """What an op gives: nothing, one value, or a tuple of them."""
        results = [self.wrap(result) for result in operation.results]
        return None if not results else results[0] if len(results) == 1 else tuple(results)

    def parsed(self, type: Any) -> Any:
        """A type: as text with or without `!torch.`, or that of a tensor or value."""
        if isinstance(type, Tensor):
            type = type.current().type
        if isinstance(type, SSAValue):
            return type.mlir.type
        if isinstance(type, TensorType):
            type = torch_types.tensor_text(type, self.value_tensors)
        with torch_dialect.building(self.context) as ir:
            try:
                return ir.Type.parse(type if type.startswith("!") else f"!torch.{type}")
            except Exception as error:
                pass_on(error)
                raise ArgumentError(f"{type} is no type of the torch dialect").located(
                    WHAT, capture()
                ) from None

    # Regions

    def _fill(self, region: Any, types: Sequence[Any], body: Callable[..., Any], end: str | None) -> Any:
        """Build a region: call `body` on its arguments, and end it with what that returns."""
        with torch_dialect.building(self.context):
            block = region.blocks.append(*types)
            inner = Scope(self.scope.emitter.inner(), block, self.scope.name)
        with self.entered(inner):
            returned, structure, values = self._run(body, block)
            if end is not None:
                self.emit(lambda at: at.create(end, [], values))
        return structure, values, returned

    def _run(self, body: Callable[..., Any], block: Any) -> tuple[list[Any], Any, list[Any]]:
        """What a body returns: flat, how it was nested, and as SSA values."""
        result = body(*[self.wrap(argument) for argument in block.arguments])
        returned: list[Any] = []
        structure = tree.flatten(
            result, lambda value: isinstance(value, (Tensor, SSAValue, int, float)), returned
        )
        ways = [renderings(self, result)[0] for result in returned]
        return returned, structure, [self.emit(way.emit) for way in ways]

    def if_(self, condition: Any, on_true: Callable[[], Any], on_false: Callable[[], Any]) -> Any:
        """`torch.prim.If`: what one of two functions gives, by a `!torch.bool`."""
        call = Call(self, signature("torch.prim.If"), (condition,), {})
        self.mark()
        draft = self.emit(
            lambda at: at.create_op("torch.prim.If", [], [call.operands[0].emit(at)], regions=2)
        )
        try:
            parts = [
                self._fill(region, [], body, "torch.prim.If.yield")
                for region, body in zip(draft.regions, (on_true, on_false), strict=True)
            ]
            kinds = [[str(value.type) for value in values] for _, values, _ in parts]
            if kinds[0] != kinds[1]:
                told = " or ".join([", ".join(kind) or "nothing" for kind in kinds])
                raise TraceError(
                    f"the choice gives {told}",
                    help="let both functions give values of the same types",
                ).located("if_", capture())
            types = [result.type for result in parts[0][1]]
            operation = self.emit(
                lambda at: at.create_op("torch.prim.If", types, list(draft.operands), regions=2)
            )
            with torch_dialect.building(self.context):
                for region, drafted in zip(operation.regions, draft.regions, strict=True):
                    drafted.blocks[0].append_to(region)
        finally:
            with torch_dialect.building(self.context):
                draft.erase()
        return tree.unflatten(parts[0][0], iter([self.wrap(result) for result in operation.results]))

    def loop(self, count: Any, body: Callable[..., Any], *starts: Any, while_: Any = None) -> Any:
        """`torch.prim.Loop`: `body(i, *carried)` gives what is carried on, `count` times. With `while_`, the
        first condition, it gives the next condition before that."""
        condition = True if while_ is None else while_
        call = Call(self, signature("torch.prim.Loop"), (count, condition, list(starts)), {})
        types = [self.parsed(operand.type) for operand in call.operands[2:]]
        self.mark()
        operation = self.emit(
            lambda at: at.create_op(
                "torch.prim.Loop", types, [operand.emit(at) for operand in call.operands], regions=1
            )
        )

        def step(*arguments: Any) -> Any:
            returned = body(*arguments)
            several = (
                returned if isinstance(returned, (tuple, list)) else () if returned is None else (returned,)
            )
            return tuple(several) if while_ is not None else (True, *several)

        try:
            with self._verified(operation):
                index = self.parsed("!torch.int")
                self._fill(operation.regions[0], [index, *types], step, "torch.prim.Loop.condition")
        except TenfoldError as error:
            raise error.located("loop", capture()) from None
        return self._given(operation)

    # Functions

    def function(self, *types: Any, name: str | None = None) -> Callable[[Callable[..., Any]], Function]:
        """A decorator: builds a function of the module at once, on arguments of these types, and gives what
        calls it."""

        def decorate(body: Callable[..., Any]) -> Function:
            called = name or body.__name__
            if called in self.names:
                raise ArgumentError(f"the module has a function {called} already").located(called, capture())
            self.catch_up()
            takes = [self.parsed(text) for text in types]
            function = self.add_function(called, takes)
            self.names.add(called)
            _ = self.scope  # main, below the function's own
            block = function.regions[0].blocks[0]
            try:
                with self.entered(Scope(self.emitter(), block, called)):
                    _, structure, values = self._run(body, block)
                    self.emit(lambda at: at.create("func.return", [], values))
            except BaseException:
                self.names.discard(called)
                with torch_dialect.building(self.context):
                    function.erase()
                raise
            gives = [value.type for value in values]
            self.set_results(function, gives)
            return Function(self, called, takes, gives, structure)

        return decorate

    def returns(self, *values: Any) -> None:
        """Say what main gives, where it is not the tensors that are left."""
        self.require_open()
        if len(self.scopes) > 1:
            raise TraceError(
                "returns says what main gives, and this is another function or a region",
                help="return the values from the Python function that builds it",
            ).located("returns", capture())
        if self.returned is not None:
            raise TraceError("what main gives was said already").located("returns", capture())
        ways = [renderings(self, value)[0] for value in values]
        self.returned = [self.emit(way.emit) for way in ways]
        self.mark()


def _fitting(builder: Operations, value: Any, type: str) -> Rendering | None:
    """The way to write a value that has just this type."""
    return next((rendering for rendering in renderings(builder, value) if rendering.type == type), None)
