"""Open sizes in the torch dialect: constraints on them, written as symbols, and operands computed from the
sizes of tensors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tenfold.base.errors import UnsupportedError
from tenfold.flat.sizes import Formulas, Open
from tenfold.mlir import torch_types
from tenfold.trace.graph import Value

if TYPE_CHECKING:
    from tenfold.mlir.torch_emitter import Emitter

# The sizes of inputs that are open, and of each what is demanded (a Dim).
Symbols = Mapping[Open, Any]
ARITHMETIC = {"+": "torch.aten.add.int", "*": "torch.aten.mul.int", "//": "torch.aten.floordiv.int"}


class OpenSizes:
    """The open sizes of a function that is emitted. What is demanded of them becomes part of the module if it
    is `annotated`."""

    def __init__(self, emitter: Emitter, symbols: Symbols, annotated: bool):
        self.emitter = emitter
        self.symbols = symbols
        self.annotated = annotated
        self.formulas = Formulas(symbols)
        # A value, and which of its dimensions has this size; None: the size is the number in it.
        self.sized: dict[Open, tuple[Any, int | None]] = {}

    def inside(self, emitter: Emitter) -> OpenSizes:
        """What is known of sizes where a region of an op begins, for who emits it."""
        sizes = OpenSizes(emitter, self.symbols, self.annotated)
        sizes.formulas.known, sizes.sized = dict(self.formulas.known), dict(self.sized)
        return sizes

    def bind(self, inputs: Sequence[Value]) -> None:
        """Say which dimensions of the inputs are open, and what is demanded of them."""
        emitter, dims = self.emitter, list(self.symbols.values())
        places = {size: i for i, size in enumerate(self.symbols)}
        numbers = []
        for dim in dims if self.annotated else ():
            name, bounds = torch_types.symbol_text(dim)
            attributes = {"symbol_name": emitter.ir.StringAttr.get(name)}
            for field, bound in bounds.items():
                attributes[field] = emitter.ir.Attribute.parse(f"{bound} : i64")
            numbers += emitter.create("torch.symbolic_int", [emitter.parsed("!torch.int")], [], attributes)
        for operand in inputs:
            shape: tuple[Any, ...] = operand.type.shape
            if any(isinstance(extent, Open) for extent in shape):
                self.learn(emitter.leaves[operand], operand.type)
                if self.annotated:
                    text = torch_types.shape_text(shape, places, dims)
                    expressions = {"shape_expressions": emitter.ir.Attribute.parse(text)}
                    operands = [emitter.leaves[operand], *numbers]
                    emitter.create("torch.bind_symbolic_shape", [], operands, expressions)

    def learn(self, value: Any, type: Any) -> None:
        """Note which sizes a value has."""
        for axis, extent in enumerate(type.shape):
            if isinstance(extent, Open) and extent not in self.sized:
                self.sized[extent] = (value, axis)
                self.formulas.learn(extent)

    def operand(self, number: Open, kind: str) -> Any:
        """A number that follows from sizes, for an operand of this kind."""
        if kind != "Tensor" and type(number.values[0]) is int:
            found = self.formulas.find(number)
            if found is not None:
                return found.follow(self.size, self.arithmetic)
        by_float = self.formulas.find_float(number) if kind != "Tensor" else None
        if by_float is None:
            seen = ", ".join(map(str, number.values[:3]))
            raise UnsupportedError(
                f"an argument is {seen}, … for various sizes: how it follows from them is not known",
                help="compute it from a tensor's shape by + - * //, or leave this dimension fixed",
            )
        form, formula = by_float
        emitter, whole = self.emitter, formula.follow(self.size, self.arithmetic)
        real = [emitter.parsed("!torch.float")]
        if form == "":
            return emitter.create("torch.aten.Float.Scalar", real, [whole])[0]
        if form.startswith("/"):
            divisor = emitter.constant(int(form[1:]))
            return emitter.create("torch.aten.div.int", real, [whole, divisor])[0]
        if form == "1/":
            return emitter.create("torch.aten.div.int", real, [emitter.constant(1), whole])[0]
        root = emitter.create("torch.aten.sqrt.int", real, [whole])[0]
        if form == "sqrt":
            return root
        return emitter.create("torch.aten.div.float", real, [emitter.constant(1.0), root])[0]

    def size(self, size: Open) -> Any:
        emitter = self.emitter
        constant = emitter.constants.get(size)
        if constant is None:
            value, axis = self.sized[size]
            if axis is None:
                constant = emitter.from_tensor(value, "int")
            else:
                operands = [value, emitter.constant(axis)]
                constant = emitter.create("torch.aten.size.int", [emitter.parsed("!torch.int")], operands)[0]
            emitter.constants[size] = constant
        return constant

    def arithmetic(self, op: str, left: Any, right: Any) -> Any:
        emitter = self.emitter
        operands = [emitter.constant(side) if isinstance(side, int) else side for side in (left, right)]
        return emitter.create(ARITHMETIC[op], [emitter.parsed("!torch.int")], operands)[0]
