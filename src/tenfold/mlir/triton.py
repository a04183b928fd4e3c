"""Kernels of our own for GPUs, as Triton IR that XLA compiles inside a program.

A kernel is a Python function over tiles, which are vectors or matrices of a fixed size: `kernel(k, *refs,
**options)`. It runs once for each program of a grid, on references to its operands and then its results; a
reference has the tensor's dtype, and loads widen to float32 as stores round. `Writer` writes such a kernel as
Triton IR. `ops/tile_kernels.py` has the kernels themselves.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from tenfold.base import dtypes
from tenfold.base.dtypes import DType
from tenfold.flat.structured import CustomCall

ELEMENTS = {
    dtypes.float32: "f32",
    dtypes.bfloat16: "bf16",
    dtypes.float16: "f16",
    dtypes.int64: "i64",
    dtypes.int32: "i32",
}
NARROW = (dtypes.bfloat16, dtypes.float16)

Shape = tuple[int, ...]


class Ref(NamedTuple):
    """A tensor in the device's memory, by the name of its pointer."""

    name: str
    dtype: DType


class Tile:
    """A value of Triton IR: a number, or an array of `shape`. Operators broadcast."""

    def __init__(self, writer: Writer, name: str, element: str, shape: Shape):
        self.writer, self.name, self.element, self.shape = writer, name, element, shape

    @property
    def type(self) -> str:
        return _array(self.element, self.shape)

    def __add__(self, other: Any) -> Tile:
        return self.writer.arithmetic("add", self, other)

    def __sub__(self, other: Any) -> Tile:
        return self.writer.arithmetic("sub", self, other)

    def __mul__(self, other: Any) -> Tile:
        return self.writer.arithmetic("mul", self, other)

    def __truediv__(self, other: Any) -> Tile:
        return self.writer.arithmetic("div", self, other)

    def __lt__(self, other: Any) -> Tile:
        return self.writer.compare("lt", self, other)

    def __gt__(self, other: Any) -> Tile:
        return self.writer.compare("gt", self, other)

    def __eq__(self, other: Any) -> Tile:  # type: ignore[override]
        return self.writer.compare("eq", self, other)

    __hash__ = None  # type: ignore[assignment]


class Writer:
    """Writes the Triton IR of a kernel."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.count = 0

    # What kernels call

    def program(self) -> Tile:
        """Which program of the grid this is."""
        return self._made("tt.get_program_id x : i32", "i32", ())

    def range(self, size: int) -> Tile:
        """0, 1, …, size - 1; the size is a power of two."""
        text = f"tt.make_range {{end = {size} : i32, start = 0 : i32}} : tensor<{size}xi32>"
        return self._made(text, "i32", (size,))

    def full(self, value: float, *shape: int) -> Tile:
        return self._constant(value, "f32", shape)

    def column(self, x: Tile) -> Tile:
        """A vector as a matrix of one column."""
        return self._expanded(x, 1)

    def row(self, x: Tile) -> Tile:
        """A vector as a matrix of one row."""
        return self._expanded(x, 0)

    def load(self, ref: Ref, offsets: Any, mask: Tile | None = None, other: float = 0.0) -> Tile:
        offsets = offsets if isinstance(offsets, Tile) else self._constant(offsets, "i32", ())
        pointers, element = self._pointers(ref, offsets)
        type = _pointer_type(element, offsets.shape)
        guard = ""
        if mask is not None:
            mask = self._stretched(mask, offsets.shape)
            guard = f", {mask.name}, {self._constant(other, element, offsets.shape).name}"
        loaded = self._made(f"tt.load {pointers}{guard} : {type}", element, offsets.shape)
        return self._cast("arith.extf", loaded, "f32") if ref.dtype in NARROW else loaded

    def store(self, ref: Ref, offsets: Tile, value: Tile, mask: Tile | None = None) -> None:
        pointers, element = self._pointers(ref, offsets)
        value = self._stretched(value, offsets.shape)
        if element != value.element:
            value = self._cast("arith.truncf", value, element)
        guard = "" if mask is None else f", {self._stretched(mask, offsets.shape).name}"
        self._line(f"tt.store {pointers}, {value.name}{guard} : {_pointer_type(element, offsets.shape)}")

    def sum(self, x: Tile, axis: int = 0) -> Tile:
        return self._reduced(x, "arith.addf", axis)

    def max(self, x: Tile, axis: int = 0) -> Tile:
        return self._reduced(x, "arith.maximumf", axis)

    def maximum(self, x: Tile, y: Tile) -> Tile:
        x, y = self._matched(x, y)
        return self._made(f"arith.maximumf {x.name}, {y.name} : {x.type}", x.element, x.shape)

    def exp(self, x: Tile) -> Tile:
        return self._made(f"math.exp {x.name} : {x.type}", x.element, x.shape)

    def log(self, x: Tile) -> Tile:
        return self._made(f"math.log {x.name} : {x.type}", x.element, x.shape)

    def rsqrt(self, x: Tile) -> Tile:
        return self._made(f"math.rsqrt {x.name} : {x.type}", x.element, x.shape)

    def rounded(self, x: Tile, ref: Ref) -> Tile:
        """What a load gives of x once it is stored."""
        if ref.dtype not in NARROW:
            return x
        return self._cast("arith.extf", self._cast("arith.truncf", x, ELEMENTS[ref.dtype]), "f32")

    def where(self, condition: Tile, x: Any, y: Any) -> Tile:
        x, y = self._matched(x, y)
        shape = _broadcast(condition.shape, x.shape)
        condition, x, y = (self._stretched(each, shape) for each in (condition, x, y))
        text = f"arith.select {condition.name}, {x.name}, {y.name} : {condition.type}, {x.type}"
        return self._made(text, x.element, shape)

    def quotient(self, x: Tile, divisor: int) -> Tile:
        x, y = self._matched(x, divisor)
        return self._made(f"arith.divsi {x.name}, {y.name} : {x.type}", x.element, x.shape)

    def both(self, x: Tile, y: Tile) -> Tile:
        x, y = self._matched(x, y)
        return self._made(f"arith.andi {x.name}, {y.name} : {x.type}", "i1", x.shape)

    def stretched(self, x: Tile, size: int) -> Tile:
        return self._stretched(x, (size,))

    def to_int32(self, x: Tile) -> Tile:
        return x if x.element == "i32" else self._cast("arith.trunci", x, "i32")

    def loop(self, count: int, carry: Sequence[Tile], body: Callable[..., Sequence[Tile]]) -> list[Tile]:
        """`carry = body(i, *carry)` for i = 0, 1, …, count - 1."""
        bounds = [self._constant(each, "i32", ()).name for each in (0, count, 1)]
        index = self._fresh()
        inner = [Tile(self, self._fresh(), each.element, each.shape) for each in carry]
        head, types, results = self._results_of_region(carry)
        starts = ", ".join(f"{own.name} = {each.name}" for own, each in zip(inner, carry, strict=True))
        carried = f" iter_args({starts}) -> ({types})" if carry else ""
        low, high, step = bounds
        self._line(f"{head}scf.for {index} = {low} to {high} step {step}{carried} : i32 {{")
        found = body(Tile(self, index, "i32", ()), *inner)
        if carry:
            self._line(f"scf.yield {', '.join(each.name for each in found)} : {types}")
        self._line("}")
        return results

    def when(
        self, condition: Tile, body: Callable[[], Sequence[Tile]], otherwise: Sequence[Tile]
    ) -> list[Tile]:
        """What `body` gives if a number is true, and these tiles if not."""
        head, types, results = self._results_of_region(otherwise)
        self._line(f"{head}scf.if {condition.name} -> ({types}) {{")
        self._line(f"scf.yield {', '.join(each.name for each in body())} : {types}")
        self._line("} else {")
        self._line(f"scf.yield {', '.join(each.name for each in otherwise)} : {types}")
        self._line("}")
        return results

    # What operators call

    def arithmetic(self, what: str, x: Tile, y: Any) -> Tile:
        x, y = self._matched(x, y)
        kind = "i" if x.element.startswith("i") else "f"
        return self._made(f"arith.{what}{kind} {x.name}, {y.name} : {x.type}", x.element, x.shape)

    def compare(self, what: str, x: Tile, y: Any) -> Tile:
        x, y = self._matched(x, y)
        if x.element.startswith("i"):
            text = f"arith.cmpi {'eq' if what == 'eq' else 's' + what}, {x.name}, {y.name} : {x.type}"
        else:
            text = f"arith.cmpf o{what}, {x.name}, {y.name} : {x.type}"
        return self._made(text, "i1", x.shape)

    def moved(self, ref: Ref, start: int) -> Ref:
        """A tensor from this element on."""
        if start == 0:
            return ref
        offset = self._constant(start, "i32", ()).name
        element = ELEMENTS[ref.dtype]
        return Ref(
            self._made(f"tt.addptr {ref.name}, {offset} : !tt.ptr<{element}>, i32", element, ()).name,
            ref.dtype,
        )

    # How it is written

    def _matched(self, x: Any, y: Any) -> tuple[Tile, Tile]:
        if not isinstance(x, Tile):
            x = self._constant(x, y.element, ())
        if not isinstance(y, Tile):
            y = self._constant(y, x.element, ())
        shape = _broadcast(x.shape, y.shape)
        return self._stretched(x, shape), self._stretched(y, shape)

    def _stretched(self, x: Tile, shape: Shape) -> Tile:
        if x.shape == shape:
            return x
        op = "tt.broadcast" if x.shape else "tt.splat"
        return self._made(f"{op} {x.name} : {x.type} -> {_array(x.element, shape)}", x.element, shape)

    def _expanded(self, x: Tile, axis: int) -> Tile:
        shape = (*x.shape[:axis], 1, *x.shape[axis:])
        text = f"tt.expand_dims {x.name} {{axis = {axis} : i32}} : {x.type} -> {_array(x.element, shape)}"
        return self._made(text, x.element, shape)

    def _constant(self, value: float, element: str, shape: Shape) -> Tile:
        if element.startswith("i"):
            written = str(int(value))
        elif math.isnan(value):
            written = _NAN[element]
        elif math.isinf(value):
            written = _INFINITIES[element][value < 0]
        else:
            written = f"{value:.9e}"
        written = f"dense<{written}>" if shape else written
        return self._made(f"arith.constant {written} : {_array(element, shape)}", element, shape)

    def _cast(self, op: str, x: Tile, element: str) -> Tile:
        text = f"{op} {x.name} : {x.type} to {_array(element, x.shape)}"
        return self._made(text, element, x.shape)

    def _pointers(self, ref: Ref, offsets: Tile) -> tuple[str, str]:
        element = ELEMENTS[ref.dtype]
        base, pointer = ref.name, f"!tt.ptr<{element}>"
        type = _pointer_type(element, offsets.shape)
        if offsets.shape:
            base = self._made(f"tt.splat {base} : {pointer} -> {type}", element, offsets.shape).name
        text = f"tt.addptr {base}, {offsets.name} : {type}, {offsets.type}"
        return self._made(text, element, offsets.shape).name, element

    def _reduced(self, x: Tile, op: str, axis: int) -> Tile:
        a, b, c = self._fresh(), self._fresh(), self._fresh()
        body = f"^bb0({a}: f32, {b}: f32): {c} = {op} {a}, {b} : f32 tt.reduce.return {c} : f32"
        shape = (*x.shape[:axis], *x.shape[axis + 1 :])
        type = f"({x.type}) -> {_array('f32', shape)}"
        text = f'"tt.reduce"({x.name}) <{{axis = {axis} : i32}}> ({{ {body} }}) : {type}'
        return self._made(text, "f32", shape)

    def _results_of_region(self, alike: Sequence[Tile]) -> tuple[str, str, list[Tile]]:
        """The head of an op whose results are alike these tiles, their types, and the results."""
        name, count = self._fresh(), len(alike)
        names = [f"{name}#{i}" for i in range(count)] if count > 1 else [name] * count
        head = "" if count == 0 else f"{name}:{count} = " if count > 1 else f"{name} = "
        results = [Tile(self, own, each.element, each.shape) for own, each in zip(names, alike, strict=True)]
        return head, ", ".join(each.type for each in alike), results

    def _made(self, text: str, element: str, shape: Shape) -> Tile:
        name = self._fresh()
        self._line(f"{name} = {text}")
        return Tile(self, name, element, shape)

    def _fresh(self) -> str:
        self.count += 1
        return f"%v{self.count}"

    def _line(self, text: str) -> None:
        self.lines.append(text)


_INFINITIES = {
    "f32": ("0x7F800000", "0xFF800000"), "bf16": ("0x7F80", "0xFF80"), "f16": ("0x7C00", "0xFC00"),
}  # fmt: skip


_NAN = {"f32": "0x7FC00000", "bf16": "0x7FC0", "f16": "0x7E00"}


def _array(element: str, shape: Shape) -> str:
    return f"tensor<{'x'.join(map(str, shape))}x{element}>" if shape else element


def _pointer_type(element: str, shape: Shape) -> str:
    return _array(f"!tt.ptr<{element}>", shape)


def _broadcast(x: Shape, y: Shape) -> Shape:
    """The shape that both are stretched to: arrays are of one rank, or one is a number."""
    if not x or not y:
        return x or y
    return tuple([max(a, b) for a, b in zip(x, y, strict=True)])


def written(
    kernel: Callable[..., None],
    tensors: Sequence[DType],
    options: dict[str, Any],
    starts: Sequence[tuple[int, int]] = (),
) -> str:
    """The Triton IR of a kernel for operands and results of these dtypes. `starts` says at which element an
    operand starts, where that is not the first."""
    writer = Writer()
    refs = [Ref(f"%arg{i}", each) for i, each in enumerate(tensors)]
    moved = dict(starts)
    kernel(writer, *[writer.moved(ref, moved.get(i, 0)) for i, ref in enumerate(refs)], **options)
    aligned = "{tt.divisibility = 16 : i32}"
    params = ", ".join(f"{each.name}: !tt.ptr<{ELEMENTS[each.dtype]}> {aligned}" for each in refs)
    body = "\n".join(writer.lines)
    return f"module {{\ntt.func public @{kernel.__name__}({params}) {{\n{body}\ntt.return\n}}\n}}"


def configuration(call: CustomCall, kernel: Callable[..., None]) -> str:
    """What XLA is told of a call of a kernel, as an attribute."""
    assert not isinstance(call.backend_config, str)
    options: dict[str, Any] = dict(call.backend_config)
    grid, warps, starts = options.pop("grid"), options.pop("warps"), options.pop("starts", ())
    tensors = [*[each.dtype for each in call.inputs], *[each.dtype for each in call.result_types]]
    text = written(kernel, tensors, options, starts).replace("\n", " ").replace('"', '\\"')
    return (
        f'{{name = "{kernel.__name__}", ir = "{text}", num_stages = 1 : i32, num_warps = {warps} : i32, '
        f"grid_x = {grid} : i32, grid_y = 1 : i32, grid_z = 1 : i32, debug = false}}"
    )
