"""One hand-written call of an op: the arguments of its builder, and the types of its results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from tenfold.base.errors import ArgumentError
from tenfold.exporting.operands import Rendering, renderings
from tenfold.exporting.ssa import SSAValue
from tenfold.flat.ir import TensorType
from tenfold.mlir.interrupts import pass_on
from tenfold.mlir.torch_operations import Signature
from tenfold.ops.schema import MISSING
from tenfold.ops.table import TABLE, Row
from tenfold.tensor import Tensor
from tenfold.tensor.dispatch import function as function_of
from tenfold.trace import tree
from tenfold.trace.context import outside

if TYPE_CHECKING:
    from tenfold.exporting.operations import Operations

__all__ = ["Call", "by_row"]


class Call:
    """An op's operands and attributes, as its builder takes them; refused if the verifier objects to the
    types of its operands."""

    def __init__(self, builder: Operations, of: Signature, args: Sequence[Any], kwargs: dict[str, Any]):
        self.builder, self.of = builder, of
        self.name: str = of.builder.OPERATION_NAME  # type: ignore[attr-defined]
        self.row = _row(self.name)
        self.given = self._bound(args, kwargs)
        self.ways: dict[str, list[list[Rendering]]] = {}
        for argument in of.given:
            value = self.given[argument.name]
            if argument.name not in of.operands or (argument.optional and value is None):
                continue
            if argument.many and not isinstance(value, (list, tuple)):
                raise ArgumentError(f"{of}: {argument.name} are several operands, in a list")
            self.ways[argument.name] = [
                renderings(builder, part) for part in (value if argument.many else [value])
            ]
        self.operands = self._accepted([way for ways in self.ways.values() for way in ways])

    def _bound(self, args: Sequence[Any], kwargs: dict[str, Any]) -> dict[str, Any]:
        positional = [argument for argument in self.of.given if not argument.optional]
        arguments = dict(zip([argument.name for argument in positional], args, strict=False))
        unknown = set(kwargs) - {argument.name for argument in self.of.given}
        if len(args) > len(positional) or unknown or set(arguments) & set(kwargs):
            raise ArgumentError(f"{self.of} does not take these arguments")
        arguments.update(kwargs)
        defaults = (
            {argument.name: argument.default for argument in self.row.schema.arguments} if self.row else {}
        )
        for place, parameter in enumerate(self.of.given):
            if parameter.name not in arguments:
                name = self.row.schema.arguments[place].name if self.row and place < len(defaults) else ""
                default = defaults.get(name, MISSING)
                if default is MISSING and not parameter.optional:
                    raise ArgumentError(f"{self.of} lacks its argument {parameter.name}")
                arguments[parameter.name] = None if default is MISSING else default
        return arguments

    def _accepted(self, ways: list[list[Rendering]]) -> list[Rendering]:
        """One way for each operand, such that the verifier has nothing against their types."""
        places = [0] * len(ways)
        nothing = ["!torch.none"] * len(self.of.result_names)
        while True:
            chosen = [way[place] for way, place in zip(ways, places, strict=True)]
            objection = self.builder.verifier.objection(
                self.name, [operand.type for operand in chosen], nothing
            )
            if objection is None or objection[0] != "operand":
                self.converted = sum(places)
                return chosen
            _, at, words = objection
            if at >= len(ways) or places[at] + 1 >= len(ways[at]):
                raise ArgumentError(f"{self.of}: operand {at} {words}, not {ways[at][0].type}")
            places[at] += 1

    def result_types(self, told: Any) -> list[Any] | None:
        """The types of the results; None where the op's builder infers them."""
        if told is not None:
            several = told if isinstance(told, (list, tuple)) else [told]
            return [self.builder.parsed(result_type) for result_type in several]
        if self.of.inferred or not self.of.result_names:
            return None
        if self.of.results is not None:
            raise ArgumentError(
                f"{self.of} gives as many results as it is asked for", help="give results=[…]"
            )
        inferred = self._by_row() if self.row and not self.row.host else None
        if inferred is not None:
            return [self.builder.parsed(inferred_type) for inferred_type in inferred]
        tensor = "!torch.vtensor" if self.builder.value_tensors else "!torch.tensor"
        types = [operand.type for operand in self.operands]
        return [
            self.builder.parsed(text) for text in self.builder.verifier.result_types(self.name, types, tensor)
        ]

    def _by_row(self) -> list[TensorType] | None:
        """What the row infers, where nothing but the value of a number is unknown."""
        assert self.row is not None
        arguments = []
        for argument, value in zip(self.row.schema.arguments, self.given.values(), strict=False):
            if isinstance(value, SSAValue):
                stand_in = {"!torch.int": 2, "!torch.float": 2.5}.get(value.type)
                if argument.type.kind != "Scalar" or stand_in is None:
                    return None
                value = stand_in
            elif isinstance(value, (list, tuple)) and any(isinstance(element, SSAValue) for element in value):
                return None
            arguments.append((argument, value))
        positional = [value for argument, value in arguments if not argument.keyword_only]
        named = {argument.name: value for argument, value in arguments if argument.keyword_only}
        with outside():
            result = function_of(self.row.name, [self.row])(*positional, **named)
            several = [result] if isinstance(result, Tensor) else list(result)
            types = [tensor.current().type for tensor in several]
        return types if len(types) == len(self.of.result_names) else None

    def make(self, at: Any, types: list[Any] | None) -> Any:
        """The op itself."""
        parts = iter([operand.emit(at) for operand in self.operands])
        words: dict[str, Any] = {}
        for argument in self.of.given:
            if argument.name in self.ways:
                several = [next(parts) for _ in self.ways[argument.name]]
                words[argument.name] = several if argument.many else several[0]
            elif self.given[argument.name] is not None:
                words[argument.name] = self._attribute(self.given[argument.name])
        if self.of.results is not None:
            if types is not None:
                words[self.of.results.name] = types
        elif types is not None:
            words.update(zip(self.of.result_names, types, strict=True))
        try:
            return self.of.builder(**words, loc=at.location).operation
        except Exception as error:  # MLIR's bindings, where an attribute is of another kind
            pass_on(error)
            raise ArgumentError(
                f"{self.of}: it does not take these attributes",
                help="give one in MLIR's syntax as '#3 : i64'",
            ) from None

    def _attribute(self, value: Any) -> Any:
        """An attribute: Python's value, or text in MLIR's syntax after a `#`."""
        if isinstance(value, str) and value.startswith("#"):
            return self.builder.ir.Attribute.parse(value[1:])
        return value


def _row(name: str) -> Row | None:
    """The row of an op of the dialect, if the table has it."""
    plain, _, overload = name.removeprefix("torch.aten.").partition(".")
    rows = TABLE.get(plain, ()) if name.startswith("torch.aten.") else ()
    return next((row for row in rows if row.overload == overload), None)


def by_row(name: str, args: Sequence[Any], kwargs: dict[str, Any]) -> Callable[..., Any] | None:
    """The function of Tenfold's own for an op on tensors and Python values."""
    plain, _, overload = name.removeprefix("aten.").partition(".")
    rows = list(TABLE.get(plain, ())) if name.startswith("aten.") else []
    if overload:
        rows = [row for row in rows if row.overload == overload]
    leaves: list[Any] = []
    tree.flatten([args, kwargs], lambda value: isinstance(value, (Tensor, SSAValue)), leaves)
    takes_none = not any(argument.type.kind == "Tensor" for row in rows for argument in row.schema.arguments)
    symbolic = any(isinstance(leaf, SSAValue) for leaf in leaves)
    if not rows or symbolic or not (leaves or takes_none) or any(row.host for row in rows):
        return None
    return function_of(plain, rows)
