"""A Trace as one function of the torch dialect: an op for each node, led by the row's schema.

A node is an ATen overload on arguments, and so is an op of the dialect: the schema says which constant, list
or tensor stands for each argument. Ops are made by their names, with MLIR's generic builder, because the
dialect's generated Python classes are only for ops that it defines: an ATen op that it does not define
becomes `torch.operator "torch.aten.…"`, which is how torch-mlir itself imports it.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from tenfold.base.devices import Device
from tenfold.base.dtypes import DType, complex64, complex128, float32, float64, int64
from tenfold.base.errors import UnsupportedError
from tenfold.flat.ir import TensorType
from tenfold.flat.sizes import Open
from tenfold.mlir import torch_control, torch_types
from tenfold.mlir.torch_sizes import OpenSizes, Symbols
from tenfold.ops.callee import OpCall
from tenfold.ops.schema import Argument
from tenfold.ops.table import SLOT, TABLE
from tenfold.trace.collect import Trace
from tenfold.trace.control import ControlNode
from tenfold.trace.graph import Node, Value

# Literals of more bytes than this are resources, whose data is beside the module and not copied.
RESOURCE_BYTES = 1024
NUMBERS = ("bool", "int", "float", "Scalar", "complex")


class Emitter:
    """Emits one function, with MLIR's bindings `ir`."""

    def __init__(
        self,
        ir: Any,
        context: Any,
        value_tensors: bool,
        symbols: Symbols | None = None,
        annotated: bool = True,
    ):
        self.ir = ir
        self.context = context
        self.value_tensors = value_tensors
        self.types: dict[Any, Any] = {}
        self.constants: dict[Any, Any] = {}
        self.leaves: dict[Value, Any] = {}
        self.results: dict[tuple[Node, int], Any] = {}
        self.numbers: dict[tuple[Node, int], Open] = {}  # results that are sizes
        # Shapes are bound to values alone.
        self.sizes = OpenSizes(self, symbols or {}, annotated and value_tensors)
        self.unknown = ir.Location.unknown()
        self.location = self.unknown

    def function(
        self,
        module: Any,
        name: str,
        program: Trace,
        literals: dict[Value, np.ndarray],
        kept: Sequence[Value],
        numbers: int = 0,
    ) -> tuple[list[Value], list[tuple[int, int]]]:
        """Add the program to a module; what it takes, and which of the outputs it gives. Its last outputs are
        `numbers` that are sizes, which it does not."""
        ir = self.ir
        end = len(program.outputs) - numbers
        outputs = [output for output in program.outputs[:end] if not is_state(program, *output)]
        sizes = dict(
            zip(program.outputs[end:], list(self.sizes.symbols)[len(self.sizes.symbols) - numbers :])
        )
        # First what tells a size: what has that size does not take it as an operand.
        nodes = list(dict.fromkeys([node for size in sizes for node in _needed(program, [size])]))
        nodes = list(dict.fromkeys([*nodes, *_needed(program, outputs)]))
        for node in nodes:
            require_aten(node)
        taken = {value for node in nodes for value in data_of(node)}
        passed = {program.leaves[-1 - place] for place, _ in (*outputs, *sizes) if place < 0}
        dropped = {operand for node in program.nodes for operand in node.inputs} - taken - passed - set(kept)
        inputs = [each for each in program.leaves if each not in literals and each not in dropped]
        input_types = [self.tensor(operand.type) for operand in inputs]
        output_types = [self.tensor(program.type_of(*output)) for output in outputs]
        attributes = {
            "sym_name": ir.StringAttr.get(name),
            "function_type": ir.TypeAttr.get(ir.FunctionType.get(input_types, output_types)),
        }
        if self.sizes.symbols:  # sizes that differ in a recording are never broadcast against each other
            attributes["torch.assume_strict_symbolic_shapes"] = ir.UnitAttr.get()
        with ir.InsertionPoint(module.body):
            made = ir.Operation.create("func.func", attributes=attributes, regions=1)
        block = made.regions[0].blocks.append(*input_types)
        self.leaves.update(zip(inputs, block.arguments, strict=True))
        with ir.InsertionPoint(block):
            self.sizes.bind(inputs)
            for i, leaf in enumerate(program.leaves):
                if leaf in literals and leaf in taken | passed:
                    self.leaves[leaf] = self.literal(literals[leaf], leaf.type, f"{name}_p{i}")
            for (place, index), size in sizes.items():
                if place < 0:
                    self.sizes.sized[size] = (self.leaves[program.leaves[-1 - place]], None)
                else:
                    self.numbers[program.nodes[place], index] = size
            for node in nodes:
                self.location = self.place(node.source)
                self.node(node)
            results = [
                self.results[program.nodes[place], index]
                if place >= 0
                else self.leaves[program.leaves[-1 - place]]
                for place, index in outputs
            ]
            self.create("func.return", [], results)
        return inputs, outputs

    def inner(self) -> Emitter:
        """What emits a region: it knows what is known out here."""
        emitter = Emitter(self.ir, self.context, self.value_tensors)
        emitter.types, emitter.location = self.types, self.location
        emitter.constants, emitter.leaves, emitter.results = (
            dict(self.constants),
            dict(self.leaves),
            dict(self.results),
        )
        emitter.sizes = self.sizes.inside(emitter)
        return emitter

    def node(self, node: Node) -> None:
        if isinstance(node, ControlNode):
            self.keep(node, torch_control.emit(self, node))
            return
        callee = op_call(node)
        row = callee.row
        returns = row.schema.returns
        count = len(callee.result_types) - row.random
        types = [self.tensor(result_type) for result_type in callee.result_types[:count]]
        name = f"torch.{row.namespace}.{row.qualified}"
        try:
            operands = self.operands(node)
        except UnsupportedError as error:
            raise error.located(row.python_name, node.source) from None
        if _is_reflected(node):
            operands[:2] = reversed(operands[:2])
            name = f"torch.aten.{row.reflected}"
        elif _is_complex(node):
            name = f"torch.aten.{row.name}.Tensor"
        if len(returns) == 1 and returns[0].type.is_list:
            (several,) = self.op(name, [self.list_of(callee.result_types)], operands)
            results = self.create("torch.prim.ListUnpack", types, [several])
        else:
            results = self.op(name, types, operands)
        self.keep(node, results)

    def keep(self, node: Node, results: Sequence[Any]) -> None:
        """Note what a node gives, and which sizes that has."""
        for index, result in enumerate(results):
            self.results[node, index] = result
            if (node, index) in self.numbers:
                self.sizes.sized[self.numbers[node, index]] = (result, None)
            if self.sizes.symbols:
                self.sizes.learn(result, node.callee.result_types[index])

    def list_of(self, types: Sequence[TensorType]) -> Any:
        """The type of a list of tensors: it tells their type if they have but one."""
        if len({torch_types.tensor_text(type, True) for type in types}) == 1:
            element = torch_types.tensor_text(types[0], self.value_tensors).removeprefix("!torch.")
            return self.parsed(f"!torch.list<{element}>")
        return self.parsed(torch_types.list_text("Tensor", False, self.value_tensors))

    def op(self, name: str, types: list[Any], operands: list[Any]) -> Sequence[Any]:
        if self.context.is_registered_operation(name):
            return self.create(name, types, operands)
        return self.create("torch.operator", types, operands, {"name": self.ir.StringAttr.get(name)})

    def operands(self, node: Node) -> list[Any]:
        """One operand for each argument of the schema."""
        callee = op_call(node)
        slots = slots_in(callee.arguments)
        inputs, numbers = iter(node.inputs[:slots]), iter(node.inputs[slots:])
        operands, made = [], callee.result_types[0].dtype
        for argument, value in zip(callee.row.schema.arguments, callee.arguments, strict=False):
            if argument.type.kind == "Generator":
                if value is SLOT:
                    next(inputs)  # the state
                operands.append(self.constant(None))
            elif argument.name == "dtype" and value is None and not node.inputs:
                operands.append(self.constant(_made_dtype(node)))
            elif value is int or value is float:
                number = self.value(next(numbers))
                if argument.type.kind != "Tensor" or _is_reflected(node):
                    operands.append(self.from_tensor(number, "int" if value is int else "float"))
                else:
                    operands.append(self.converted(number, TensorType(made, ())))
            elif argument.type.kind == "Tensor" and isinstance(value, (int, float, complex, Open)):
                operands.append(self.number(value, "Scalar" if _is_reflected(node) else made))
            elif isinstance(value, complex) and _is_complex(node):
                operands.append(self.number(value, complex128 if made is complex128 else complex64))
            else:
                operands.append(self.operand(argument, value, inputs))
        return operands

    def operand(self, argument: Argument, value: Any, inputs: Iterator[Value]) -> Any:
        type = argument.type
        if value is None:
            return self.constant(None)
        if type.is_list:
            many = value if isinstance(value, tuple) else (value,) * max(type.list_size or 1, 1)
            kind = type.kind
            if kind == "Scalar":  # a list has elements of one type
                kind = "float" if any(isinstance(element, float) for element in many) else "int"
            elements = [self.element(kind, element, inputs) for element in many]
            text = torch_types.list_text(kind, type.element_optional, self.value_tensors)
            return self.create("torch.prim.ListConstruct", [self.parsed(text)], elements)[0]
        return self.element(type.kind, value, inputs)

    def number(self, value: Any, kind: str | DType) -> Any:
        """A number where the schema has a tensor: itself, or a tensor of the dtype that is computed in."""
        if isinstance(kind, str):
            return self.element(kind, value, iter(()))
        type = TensorType(kind, ())
        if not isinstance(value, Open):
            return self.literal(np.array(value, kind.numpy), type, "number")
        operand = self.sizes.operand(value, "Scalar")
        own = TensorType(float64 if isinstance(value.values[0], float) else int64, ())
        tensor = self.create("torch.prim.NumToTensor.Scalar", [self.tensor(own)], [operand])[0]
        return self.converted(tensor, type)

    def converted(self, tensor: Any, type: TensorType) -> Any:
        no, keep = self.constant(False), self.constant(None)
        target = self.constant(torch_types.SCALAR_TYPES[type.dtype.name])
        return self.create("torch.aten.to.dtype", [self.tensor(type)], [tensor, target, no, no, keep])[0]

    def from_tensor(self, tensor: Any, kind: str) -> Any:
        """The number in a tensor without dimensions."""
        return self.create(f"torch.aten.{kind.title()}.Tensor", [self.parsed(f"!torch.{kind}")], [tensor])[0]

    def element(self, kind: str, value: Any, inputs: Iterator[Value]) -> Any:
        if value is SLOT:
            return self.value(next(inputs))
        if isinstance(value, Open):
            return self.sizes.operand(value, kind)
        if value is None:
            return self.constant(None)
        if isinstance(value, DType):
            return self.constant(torch_types.SCALAR_TYPES[value.name])
        if kind == "Device" or isinstance(value, Device):
            return self.word("device", "value", str(Device(value).resolved))
        if kind in torch_types.ENUMERATIONS:
            return self.constant(torch_types.ENUMERATIONS[kind][value])
        if kind == "str":
            return self.word("str", "value", value)
        if kind == "float":
            return self.constant(float(value))
        if kind == "int" or (kind == "Scalar" and isinstance(value, bool)):
            return self.constant(int(value))  # the dialect's Scalar is an int or a float
        if kind in NUMBERS:
            return self.constant(value)
        if kind == "Tensor":  # whose numbers the row had to know
            array = np.array(value, np.int64)
            return self.literal(array, TensorType(int64, array.shape), "numbers")
        raise UnsupportedError(f"the torch dialect has no operand for {kind} {value!r}")

    def value(self, value: Value) -> Any:
        operand = self.leaves.get(value)
        return self.results[value.node, value.index] if operand is None else operand  # type: ignore[index]

    def constant(self, value: Any) -> Any:
        # 1, 1.0 and True are equal, as are 0.0 and -0.0: it is the text that tells them apart.
        name, type, text = torch_types.constant_text(value)
        found = self.constants.get((name, text))
        if found is None:
            attributes = {} if text is None else {"value": self.ir.Attribute.parse(text)}
            found = self.constants[name, text] = self.create(name, [self.parsed(type)], [], attributes)[0]
        return found

    def word(self, kind: str, field: str, text: str) -> Any:
        constant = self.constants.get((kind, text))
        if constant is None:
            attributes = {field: self.ir.StringAttr.get(text)}
            type = self.parsed("!torch.Device" if kind == "device" else "!torch.str")
            constant = self.constants[kind, text] = self.create(
                f"torch.constant.{kind}", [type], [], attributes
            )[0]
        return constant

    def literal(self, array: np.ndarray, type: TensorType, name: str) -> Any:
        # The bindings have no small literals that are complex, and no large ones of bools.
        if type.dtype.kind == "complex" or (array.nbytes > RESOURCE_BYTES and type.dtype.kind != "bool"):
            data = np.ascontiguousarray(array).view(np.uint8).reshape(-1)
            shaped = self.ir.Type.parse(torch_types.builtin_text(type))
            elements = self.ir.DenseResourceElementsAttr.get_from_buffer(data, name, shaped)
        else:
            elements = self.ir.Attribute.parse(torch_types.dense_text(array, type))
        op = "torch.vtensor.literal" if self.value_tensors else "torch.tensor.literal"
        return self.create(op, [self.tensor(type)], [], {"value": elements})[0]

    def create(
        self,
        name: str,
        types: Sequence[Any],
        operands: Sequence[Any],
        attributes: dict[str, Any] | None = None,
        regions: int = 0,
    ) -> Any:
        return self.create_op(name, types, operands, attributes, regions).results

    def create_op(
        self,
        name: str,
        types: Sequence[Any],
        operands: Sequence[Any],
        attributes: dict[str, Any] | None = None,
        regions: int = 0,
    ) -> Any:
        return self.ir.Operation.create(name, types, operands, attributes or {}, None, regions, self.location)

    def tensor(self, type: TensorType) -> Any:
        parsed = self.types.get(type)
        if parsed is None:
            parsed = self.types[type] = self.parsed(torch_types.tensor_text(type, self.value_tensors))
        return parsed

    def parsed(self, text: str) -> Any:
        found = self.types.get(text)
        if found is None:
            found = self.types[text] = self.ir.Type.parse(text)
        return found

    def place(self, source: Any) -> Any:
        if source is None:
            return self.unknown
        columns = source.columns
        return self.ir.Location.file(source.filename, source.line, columns[0] + 1 if columns else 0)


def op_call(node: Node) -> OpCall:
    """The op that a node calls: what is no op of ATen's has been refused by now."""
    assert isinstance(node.callee, OpCall)
    return node.callee


def slots_in(arguments: Sequence[Any]) -> int:
    """How many tensors there are among arguments. A node's inputs after these are numbers."""
    return sum(
        [slots_in(argument) if isinstance(argument, tuple) else argument is SLOT for argument in arguments]
    )


def _is_reflected(node: Node) -> bool:
    """Whether an operator has a number on its left. No constant is complex, so such a one is a tensor; and
    alpha is of the right operand."""
    row, arguments = op_call(node).row, op_call(node).arguments
    if not row.reflected or arguments[0] is SLOT or isinstance(arguments[0], complex):
        return False
    return row.reflected.partition(".")[0] != row.name or arguments[2:] in ((), (1,))


def _is_complex(node: Node) -> bool:
    """Whether an operator has a complex number on its right, where it may have a tensor."""
    row, arguments = op_call(node).row, op_call(node).arguments
    is_number = row.overload == "Scalar" and isinstance(arguments[1], complex)
    return is_number and any(other.overload == "Tensor" for other in TABLE.get(row.name, ()))


def require_aten(node: Node) -> None:
    """Refuse what is no op of ATen's: gradients, and programs that stand as one node in another."""
    callee = node.callee
    if not isinstance(callee, OpCall) and callee.name == "gradient":
        raise UnsupportedError(
            "the torch dialect has no gradients: this program takes one",
            help="emit StableHLO, which has them computed, or emit the forward pass alone",
        ).located("backward", node.source)
    if isinstance(node, ControlNode):
        torch_control.require_drawless(node)
        for part in node.parts:
            for each in part.trace.nodes:
                require_aten(each)
        return
    if not isinstance(callee, OpCall):
        name = callee.name
        raise UnsupportedError(
            f"{name!r} is a program of its own and no op of ATen's: the torch dialect has no word for it",
            help="emit StableHLO, or call the function itself where the whole is recorded",
        ).located(name, node.source)
    row = callee.row
    returned = row.schema.returns[0].type
    if len(row.schema.returns) == 1 and returned.kind != "Tensor":
        raise UnsupportedError(
            f"{row.qualified} gives a Python {returned}, which a program of tensors cannot hold"
        ).located(row.python_name, node.source)


def _needed(program: Trace, outputs: Sequence[tuple[int, int]]) -> list[Node]:
    """The nodes that outputs depend on by data: what drew from a generator before them is not among those."""
    stack = [program.nodes[place] for place, _ in outputs if place >= 0]
    needed = set(stack)
    while stack:
        for value in data_of(stack.pop()):
            if value.buffer is None and value.node is not None and value.node not in needed:
                needed.add(value.node)
                stack.append(value.node)
    return [node for node in program.nodes if node in needed]


def data_of(node: Node) -> list[Value]:
    """The inputs of a node, a generator's state aside."""
    if not node.callee.random or not isinstance(node.callee, OpCall):
        return list(node.inputs)
    names = [argument.name for argument in node.callee.row.schema.arguments]
    before = itertools.takewhile(lambda pair: pair[0] != "generator", zip(names, node.callee.arguments))
    state = sum(_slots(value) for _, value in before)
    return [operand for i, operand in enumerate(node.inputs) if i != state]


def _slots(value: Any) -> int:
    return sum(map(_slots, value)) if isinstance(value, tuple) else int(value is SLOT)


def is_state(program: Trace, place: int, index: int) -> bool:
    """Whether an output is the state of a generator, before or after it was drawn from."""
    if place >= 0:
        callee = program.nodes[place].callee
        return callee.random and index == len(callee.result_types) - 1
    leaf = program.leaves[-1 - place]
    return any(leaf in node.inputs and leaf not in data_of(node) for node in program.nodes)


def _made_dtype(node: Node) -> int | None:
    """The dtype of a new tensor where the call names none, if it is one by Tenfold's default alone."""
    dtype = node.callee.result_types[0].dtype
    by_default = dtype.kind not in ("float", "complex") or dtype in (float32, complex64)
    return None if by_default else torch_types.SCALAR_TYPES[dtype.name]
