"""FlatIR with open sizes to StableHLO: ops whose shapes are open become StableHLO's dynamic ops, which take
shapes as tensors, computed from the sizes of the arguments. What has no open number is emitted as ever."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tenfold.base.dtypes import DType, float64, int32, int64
from tenfold.base.errors import UnsupportedError
from tenfold.flat import data_ops as movement, indexed, structured, windows
from tenfold.flat.ir import Function, Op, TensorType, Value
from tenfold.flat.sizes import DOUBLE, SINGLE, Formula, Formulas, Open, OpenLiteral, OpenType
from tenfold.mlir import stablehlo

# StableHLO tells a size in 32 bits; what follows from sizes may need more.
SIZE, NUMBER = TensorType(int32, ()), TensorType(int64, ())
ARITHMETIC = {"+": "stablehlo.add", "*": "stablehlo.multiply"}


def emit(function: Function, symbols: Sequence[Open]) -> stablehlo.Module:
    """A module whose `main` is the function; `symbols` are the open sizes of its parameters."""
    with stablehlo._lock:
        stablehlo.generated()
        b = stablehlo.bindings()
        with b.context, b.unknown:
            return OpenEmitter(b, symbols).module(function, {})


class OpenEmitter(stablehlo._Emitter):
    """Emits a function some of whose sizes are open."""

    def __init__(self, b: Any, symbols: Sequence[Open]):
        super().__init__(b)
        self.symbols = symbols
        self.formulas = Formulas(symbols)
        self.sized: dict[Open, tuple[Any, int]] = {}
        self.sizes: dict[Any, Any] = {}
        self.place = b.unknown

    def ops(self, function: Function) -> None:
        for param in function.params:
            self.learn(param)
        for op in function.ops:
            self.place = self.location(op.source, op.name)
            if not any(map(_is_open, op.attributes.values())):
                super().ops(_One(op))  # type: ignore[arg-type]
            elif type(op) in DYNAMIC:
                try:
                    results = DYNAMIC[type(op)](self, op)
                    several = results if isinstance(results, list) else [results]
                    self.values.update(zip(op.results, several, strict=True))
                except UnsupportedError as error:
                    raise error.located("", op.source) from None
            else:
                raise _without_open_sizes(op).located("", op.source)
            for result in op.results:
                self.learn(result)

    def inner(self) -> OpenEmitter:
        """What emits a region: it knows the sizes that are known out here."""
        emitter = OpenEmitter(self.b, self.symbols)
        emitter.formulas.known, emitter.sized, emitter.sizes = (
            dict(self.formulas.known),
            dict(self.sized),
            dict(self.sizes),
        )
        return emitter

    def learn(self, value: Value) -> None:
        """Note which sizes a value has."""
        extents: tuple[Any, ...] = value.type.shape
        for axis, extent in enumerate(extents):
            if isinstance(extent, Open) and extent not in self.sized:
                self.sized[extent] = (self.values[value], axis)
                self.formulas.learn(extent)

    def create(self, name: str, type: Any, operands: Sequence[Any], **attributes: Any) -> Any:
        return self.b.ir.Operation.create(name, [type], operands, attributes, None, 0, self.place).result

    def scalar(self, number: Any, dtype: DType = int64) -> Any:
        """A number as a tensor without dimensions: a constant, or computed from sizes."""
        if isinstance(number, Open):
            return self.open(number, dtype)
        key = (dtype, str(number))
        if key not in self.sizes:
            literal = stablehlo._literal(self, np.array(number, dtype.numpy), dtype)
            type = self.type(TensorType(dtype, ()))
            self.sizes[key] = self.create("stablehlo.constant", type, [], value=literal)
        return self.sizes[key]

    def open(self, number: Open, dtype: DType) -> Any:
        whole = all(float(each).is_integer() for each in number.values)
        found = self.formulas.find(Open(map(int, number.values))) if whole else None
        if found is not None:
            return self.converted(self.follow(found), dtype)
        rounding = DOUBLE if dtype is float64 else SINGLE
        by_float = self.formulas.find_float(number, rounding) if dtype.kind == "float" else None
        if by_float is None:
            seen = ", ".join(map(str, number.values[:3]))
            raise UnsupportedError(
                f"a number is {seen}, … for various sizes: how it follows from them is not known",
                help="leave this dimension fixed",
            )
        form, formula = by_float
        type = self.type(TensorType(dtype, ()))
        value = self.converted(self.follow(formula), dtype)
        if form.startswith("/"):
            return self.create("stablehlo.divide", type, [value, self.scalar(int(form[1:]), dtype)])
        if "sqrt" in form:
            value = self.create("stablehlo.sqrt", type, [value])
        return (
            self.create("stablehlo.divide", type, [self.scalar(1, dtype), value]) if "1/" in form else value
        )

    def converted(self, value: Any, dtype: DType) -> Any:
        return (
            value
            if dtype is int64
            else self.create("stablehlo.convert", self.type(TensorType(dtype, ())), [value])
        )

    def follow(self, formula: Formula) -> Any:
        """A formula as an i64."""
        return self.as_scalar(formula.follow(self.size, self.arithmetic))

    def as_scalar(self, value: Any) -> Any:
        return self.scalar(value) if isinstance(value, int) else value

    def size(self, size: Open) -> Any:
        found = self.sizes.get(size)
        if found is None:
            value, axis = self.sized[size]
            dimension = self.b.ir.Attribute.parse(f"{axis} : i64")
            told = self.create("stablehlo.get_dimension_size", self.type(SIZE), [value], dimension=dimension)
            found = self.sizes[size] = self.create("stablehlo.convert", self.type(NUMBER), [told])
        return found

    def arithmetic(self, op: str, left: Any, right: Any) -> Any:
        operands = [self.as_scalar(left), self.as_scalar(right)]
        return (
            self.floored(*operands)
            if op == "//"
            else self.create(ARITHMETIC[op], self.type(NUMBER), operands)
        )

    def floored(self, left: Any, right: Any) -> Any:
        """The quotient by a positive number, rounded down: StableHLO's own is rounded towards zero, which is
        one too much where a remainder is negative."""
        type = self.type(NUMBER)
        quotient, remainder = (
            self.create(f"stablehlo.{name}", type, [left, right]) for name in ("divide", "remainder")
        )
        sign = self.create("stablehlo.sign", type, [remainder])
        correction = self.create("stablehlo.minimum", type, [sign, self.scalar(0)])
        return self.create("stablehlo.add", type, [quotient, correction])

    def numbers(self, numbers: Sequence[Any]) -> Any:
        """Numbers as one tensor, which dynamic ops take shapes and places by."""
        key = tuple(numbers)
        if key not in self.sizes:
            self.sizes[key] = self.joined([self.scalar(number) for number in numbers])
        return self.sizes[key]

    def joined(self, scalars: Sequence[Any], dtype: DType = int64) -> Any:
        one, all = (self.type(TensorType(dtype, (count,))) for count in (1, len(scalars)))
        rows = [self.create("stablehlo.reshape", one, [scalar]) for scalar in scalars]
        dimension = self.b.ir.Attribute.parse("0 : i64")
        return self.create("stablehlo.concatenate", all, rows, dimension=dimension)


class _One:
    """A function of one op, as far as an emitter asks."""

    def __init__(self, op: Op):
        self.ops = (op,)


def _is_open(value: Any) -> bool:
    """Whether a number in an attribute is open."""
    if isinstance(value, (tuple, list)):
        return any(map(_is_open, value))
    return isinstance(value, (Open, OpenLiteral, OpenType))


def _result(emitter: OpenEmitter, op: Op) -> Any:
    return emitter.type(op.result.type)


def _constant(emitter: OpenEmitter, op: movement.Constant) -> Any:
    literal: Any = op.value
    scalars = [emitter.scalar(number, op.dtype) for number in literal.numbers]
    if not literal.ndim:
        return scalars[0]
    return emitter.create("stablehlo.reshape", _result(emitter, op), [emitter.joined(scalars, op.dtype)])


def _iota(emitter: OpenEmitter, op: movement.Iota) -> Any:
    dimension = emitter.b.ir.Attribute.parse(f"{op.iota_dimension} : i64")
    shape = emitter.numbers(op.shape)
    return emitter.create("stablehlo.dynamic_iota", _result(emitter, op), [shape], iota_dimension=dimension)


def _broadcast(emitter: OpenEmitter, op: movement.BroadcastInDim) -> Any:
    operands = [emitter.values[op.x], emitter.numbers(op.shape)]
    # Which dimensions grow is the same at all sizes, and some compilers must be told.
    pairs = list(enumerate(zip(op.x.type.shape, (op.shape[dim] for dim in op.broadcast_dimensions))))
    told = {
        "broadcast_dimensions": tuple(op.broadcast_dimensions),
        "known_expanding_dimensions": tuple(i for i, (own, wanted) in pairs if own != wanted),
        "known_nonexpanding_dimensions": tuple(i for i, (own, wanted) in pairs if own == wanted),
    }
    attributes = {name: emitter.attribute(dims) for name, dims in told.items()}
    return emitter.create("stablehlo.dynamic_broadcast_in_dim", _result(emitter, op), operands, **attributes)


def _reshape(emitter: OpenEmitter, op: movement.Reshape) -> Any:
    operands = [emitter.values[op.x], emitter.numbers(op.shape)]
    return emitter.create("stablehlo.dynamic_reshape", _result(emitter, op), operands)


def _slice(emitter: OpenEmitter, op: movement.Slice) -> Any:
    bounds = [emitter.numbers(numbers) for numbers in (op.start_indices, op.limit_indices, op.strides)]
    return emitter.create(
        "stablehlo.real_dynamic_slice", _result(emitter, op), [emitter.values[op.x], *bounds]
    )


def _dynamic_slice(emitter: OpenEmitter, op: movement.DynamicSlice) -> Any:
    """The sizes of StableHLO's dynamic_slice are fixed; a gather of one window, moved inside alike, has open
    ones."""
    rank = op.x.rank
    dims = tuple(range(rank))
    dtype = op.starts[0].dtype
    starts = emitter.joined([emitter.values[start] for start in op.starts], dtype)
    operands = [emitter.values[op.x], starts, emitter.numbers(op.slice_sizes)]
    kept = {
        "dimension_numbers": emitter.attribute(indexed.GatherDimensions(dims, (), dims, 0)),
        "indices_are_sorted": emitter.attribute(False),
    }
    return emitter.create("stablehlo.dynamic_gather", _result(emitter, op), operands, **kept)


def _pad(emitter: OpenEmitter, op: movement.Pad) -> Any:
    edges = (op.edge_padding_low, op.edge_padding_high, op.interior_padding)
    operands = [emitter.values[op.x], emitter.values[op.padding_value], *map(emitter.numbers, edges)]
    return emitter.create("stablehlo.dynamic_pad", _result(emitter, op), operands)


def _gather(emitter: OpenEmitter, op: indexed.Gather) -> Any:
    operands = [emitter.values[operand] for operand in op.operands] + [emitter.numbers(op.slice_sizes)]
    kept = {
        field: emitter.attribute(op.__dict__[field]) for field in ("dimension_numbers", "indices_are_sorted")
    }
    return emitter.create("stablehlo.dynamic_gather", _result(emitter, op), operands, **kept)


def _reduce_window(emitter: OpenEmitter, op: windows.ReduceWindow) -> Any:
    """A window over whole dimensions is a fold of them; its sizes may be open, other windows' not."""
    folded = []
    for axis, (extent, window, padding) in enumerate(
        zip(op.inputs[0].type.shape, op.window_dimensions, op.padding)
    ):
        plain = tuple(padding) == (0, 0) and op.window_dilations[axis] == 1 and op.base_dilations[axis] == 1
        if plain and extent == window:
            folded.append(axis)
        elif not (plain and window == 1 and op.window_strides[axis] == 1):
            raise _without_open_sizes(op)
    if len(op.inputs) > 1:
        raise _without_open_sizes(op)
    kept = [extent for axis, extent in enumerate(op.inputs[0].type.shape) if axis not in folded]
    fold = object.__new__(structured.Reduce)
    state = {"inputs": op.inputs, "inits": op.inits, "dimensions": tuple(folded), "body": op.body}
    result = Value(OpenType(op.result.type.dtype, kept), fold)  # type: ignore[arg-type]
    fold.__dict__.update(state, source=op.source, results=(result,))
    stablehlo._Emitter.ops(emitter, _One(fold))  # type: ignore[arg-type]
    operands = [emitter.values[result], emitter.numbers(op.result.type.shape)]
    return emitter.create("stablehlo.dynamic_reshape", _result(emitter, op), operands)


def _custom_call(emitter: OpenEmitter, op: structured.CustomCall) -> Any:
    """A call of a function whose results' shapes are further operands. Which these are, an attribute tells;
    they go when the sizes are fixed."""
    operands = [emitter.values[operand] for operand in op.inputs]
    kept = stablehlo.ATTRIBUTES[structured.CustomCall](emitter, op)
    shapes = [emitter.numbers(result.type.shape) for result in op.results]
    places = list(range(len(operands), len(operands) + len(shapes)))
    indices = f"dense<{places}> : tensor<{len(places)}xi64>"
    kept["indices_of_shape_operands"] = emitter.b.ir.Attribute.parse(indices)
    if "operand_layouts" in kept:
        row = emitter.b.ir.Attribute.parse("dense<0> : tensor<1xindex>")
        kept["operand_layouts"] = emitter.b.ir.ArrayAttr.get([*kept["operand_layouts"], *[row] * len(shapes)])
    types = [emitter.type(result.type) for result in op.results]
    operation = emitter.b.ir.Operation.create(
        op.name, types, [*operands, *shapes], kept, None, 0, emitter.place
    )
    return list(operation.results)


def _without_open_sizes(op: Op) -> UnsupportedError:
    return UnsupportedError(
        f"StableHLO's {op.name.partition('.')[2]} takes no sizes that are open until it runs",
        help="export the torch dialect, or leave this dimension fixed",
    )


DYNAMIC: dict[type[Op], Callable[[OpenEmitter, Any], Any]] = {
    movement.Constant: _constant,
    movement.Iota: _iota,
    movement.BroadcastInDim: _broadcast,
    movement.Reshape: _reshape,
    movement.Slice: _slice,
    movement.DynamicSlice: _dynamic_slice,
    movement.Pad: _pad,
    indexed.Gather: _gather,
    windows.ReduceWindow: _reduce_window,
    structured.CustomCall: _custom_call,
}
