"""Kernels of our own for GPUs, as Triton IR that XLA compiles inside a program.

A kernel is a Python function over tiles, which are vectors of a fixed size: `kernel(k, *refs, **options)`. It
runs once for each program of a grid, on references to its operands and then its results; a reference has the
tensor's dtype, and loads widen to float32 as stores round. `Writer` writes such a kernel as Triton IR.
`ops/tile_kernels.py` has the kernels themselves.
"""

from __future__ import annotations

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


class Ref(NamedTuple):
    """A tensor in the device's memory, by the name of its pointer."""

    name: str
    dtype: DType


class Tile:
    """A value of Triton IR: a number, or a vector of `size` numbers. Operators stretch numbers."""

    def __init__(self, writer: Writer, name: str, element: str, size: int | None):
        self.writer, self.name, self.element, self.size = writer, name, element, size

    @property
    def type(self) -> str:
        return self.element if self.size is None else f"tensor<{self.size}x{self.element}>"

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
        return self._made("tt.get_program_id x : i32", "i32", None)

    def range(self, size: int) -> Tile:
        """0, 1, …, size - 1; the size is a power of two."""
        text = f"tt.make_range {{end = {size} : i32, start = 0 : i32}} : tensor<{size}xi32>"
        return self._made(text, "i32", size)

    def full(self, value: float, size: int | None = None, element: str = "f32") -> Tile:
        return self._constant(value, element, size)

    def load(self, ref: Ref, offsets: Tile, mask: Tile | None = None, other: float = 0.0) -> Tile:
        pointers, element = self._pointers(ref, offsets)
        type = _pointer_type(element, offsets.size)
        guard = ""
        if mask is not None:
            guard = f", {mask.name}, {self._constant(other, element, offsets.size).name}"
        loaded = self._made(f"tt.load {pointers}{guard} : {type}", element, offsets.size)
        return self._cast("arith.extf", loaded, "f32") if ref.dtype in NARROW else loaded

    def store(self, ref: Ref, offsets: Tile, value: Tile, mask: Tile | None = None) -> None:
        pointers, element = self._pointers(ref, offsets)
        value = self._stretched(value, offsets.size)
        if element != value.element:
            value = self._cast("arith.truncf", value, element)
        guard = "" if mask is None else f", {mask.name}"
        self._line(f"tt.store {pointers}, {value.name}{guard} : {_pointer_type(element, offsets.size)}")

    def sum(self, x: Tile) -> Tile:
        return self._reduced(x, "arith.addf")

    def max(self, x: Tile) -> Tile:
        return self._reduced(x, "arith.maximumf")

    def maximum(self, x: Tile, y: Tile) -> Tile:
        x, y = self._matched(x, y)
        return self._made(f"arith.maximumf {x.name}, {y.name} : {x.type}", x.element, x.size)

    def exp(self, x: Tile) -> Tile:
        return self._made(f"math.exp {x.name} : {x.type}", x.element, x.size)

    def log(self, x: Tile) -> Tile:
        return self._made(f"math.log {x.name} : {x.type}", x.element, x.size)

    def rsqrt(self, x: Tile) -> Tile:
        return self._made(f"math.rsqrt {x.name} : {x.type}", x.element, x.size)

    def rounded(self, x: Tile, ref: Ref) -> Tile:
        """What a load gives of x once it is stored."""
        if ref.dtype not in NARROW:
            return x
        return self._cast("arith.extf", self._cast("arith.truncf", x, ELEMENTS[ref.dtype]), "f32")

    def where(self, condition: Tile, x: Any, y: Any) -> Tile:
        x, y = self._matched(x, y)
        x, y = self._stretched(x, condition.size), self._stretched(y, condition.size)
        text = f"arith.select {condition.name}, {x.name}, {y.name} : {_vector('i1', x.size)}, {x.type}"
        return self._made(text, x.element, x.size)

    def quotient(self, x: Tile, divisor: int) -> Tile:
        x, y = self._matched(x, divisor)
        return self._made(f"arith.divsi {x.name}, {y.name} : {x.type}", x.element, x.size)

    def both(self, x: Tile, y: Tile) -> Tile:
        x, y = self._matched(x, y)
        return self._made(f"arith.andi {x.name}, {y.name} : {x.type}", "i1", x.size)

    def stretched(self, x: Tile, size: int) -> Tile:
        return self._stretched(x, size)

    def to_int32(self, x: Tile) -> Tile:
        return self._cast("arith.trunci", x, "i32")

    def loop(self, count: int, carry: Sequence[Tile], body: Callable[..., Sequence[Tile]]) -> list[Tile]:
        """`carry = body(i, *carry)` for i = 0, 1, …, count - 1."""
        bounds = [self._constant(each, "i32", None).name for each in (0, count, 1)]
        index = self._fresh()
        inner = [Tile(self, self._fresh(), each.element, each.size) for each in carry]
        result = self._fresh()
        types = ", ".join(each.type for each in carry)
        starts = ", ".join(f"{own.name} = {each.name}" for own, each in zip(inner, carry, strict=True))
        carried = f" iter_args({starts}) -> ({types})" if carry else ""
        head = "" if not carry else f"{result}:{len(carry)} = " if len(carry) > 1 else f"{result} = "
        low, high, step = bounds
        self._line(f"{head}scf.for {index} = {low} to {high} step {step}{carried} : i32 {{")
        found = body(Tile(self, index, "i32", None), *inner)
        if carry:
            self._line(f"scf.yield {', '.join(each.name for each in found)} : {types}")
        self._line("}")
        names = [f"{result}#{i}" for i in range(len(carry))] if len(carry) > 1 else [result]
        return [Tile(self, name, own.element, own.size) for name, own in zip(names, carry, strict=False)]

    # What operators call

    def arithmetic(self, what: str, x: Tile, y: Any) -> Tile:
        x, y = self._matched(x, y)
        kind = "i" if x.element.startswith("i") else "f"
        return self._made(f"arith.{what}{kind} {x.name}, {y.name} : {x.type}", x.element, x.size)

    def compare(self, what: str, x: Tile, y: Any) -> Tile:
        x, y = self._matched(x, y)
        if x.element.startswith("i"):
            text = f"arith.cmpi {'eq' if what == 'eq' else 's' + what}, {x.name}, {y.name} : {x.type}"
        else:
            text = f"arith.cmpf o{what}, {x.name}, {y.name} : {x.type}"
        return self._made(text, "i1", x.size)

    # How it is written

    def _matched(self, x: Any, y: Any) -> tuple[Tile, Tile]:
        if not isinstance(x, Tile):
            x = self._constant(x, y.element, None)
        if not isinstance(y, Tile):
            y = self._constant(y, x.element, None)
        size = x.size if x.size is not None else y.size
        return self._stretched(x, size), self._stretched(y, size)

    def _stretched(self, x: Tile, size: int | None) -> Tile:
        if x.size == size:
            return x
        text = f"tt.splat {x.name} : {x.element} -> {_vector(x.element, size)}"
        return self._made(text, x.element, size)

    def _constant(self, value: float, element: str, size: int | None) -> Tile:
        if element.startswith("i"):
            written = str(int(value))
        elif value in (float("inf"), float("-inf")):
            written = _INFINITIES[element][value < 0]
        else:
            written = f"{value:.9e}"
        written = written if size is None else f"dense<{written}>"
        return self._made(f"arith.constant {written} : {_vector(element, size)}", element, size)

    def _cast(self, op: str, x: Tile, element: str) -> Tile:
        text = f"{op} {x.name} : {x.type} to {_vector(element, x.size)}"
        return self._made(text, element, x.size)

    def _pointers(self, ref: Ref, offsets: Tile) -> tuple[str, str]:
        element = ELEMENTS[ref.dtype]
        base, pointer = ref.name, f"!tt.ptr<{element}>"
        if offsets.size is not None:
            type = _pointer_type(element, offsets.size)
            base = self._made(f"tt.splat {base} : {pointer} -> {type}", element, offsets.size).name
        type = f"{_pointer_type(element, offsets.size)}, {offsets.type}"
        return self._made(f"tt.addptr {base}, {offsets.name} : {type}", element, offsets.size).name, element

    def _reduced(self, x: Tile, op: str) -> Tile:
        a, b, c = self._fresh(), self._fresh(), self._fresh()
        body = f"^bb0({a}: f32, {b}: f32): {c} = {op} {a}, {b} : f32 tt.reduce.return {c} : f32"
        text = f'"tt.reduce"({x.name}) <{{axis = 0 : i32}}> ({{ {body} }}) : ({x.type}) -> f32'
        return self._made(text, "f32", None)

    def _made(self, text: str, element: str, size: int | None) -> Tile:
        name = self._fresh()
        self._line(f"{name} = {text}")
        return Tile(self, name, element, size)

    def _fresh(self) -> str:
        self.count += 1
        return f"%v{self.count}"

    def _line(self, text: str) -> None:
        self.lines.append(text)


_INFINITIES = {
    "f32": ("0x7F800000", "0xFF800000"), "bf16": ("0x7F80", "0xFF80"), "f16": ("0x7C00", "0xFC00"),
}  # fmt: skip


def _vector(element: str, size: int | None) -> str:
    return element if size is None else f"tensor<{size}x{element}>"


def _pointer_type(element: str, size: int | None) -> str:
    return f"!tt.ptr<{element}>" if size is None else f"tensor<{size}x!tt.ptr<{element}>>"


def written(kernel: Callable[..., None], tensors: Sequence[DType], options: dict[str, Any]) -> str:
    """The Triton IR of a kernel for operands and results of these dtypes."""
    writer = Writer()
    refs = [Ref(f"%arg{i}", each) for i, each in enumerate(tensors)]
    kernel(writer, *refs, **options)
    aligned = "{tt.divisibility = 16 : i32}"
    params = ", ".join(f"{each.name}: !tt.ptr<{ELEMENTS[each.dtype]}> {aligned}" for each in refs)
    body = "\n".join(writer.lines)
    return f"module {{\ntt.func public @{kernel.__name__}({params}) {{\n{body}\ntt.return\n}}\n}}"


def configuration(call: CustomCall, kernel: Callable[..., None]) -> str:
    """What XLA is told of a call of a kernel, as an attribute."""
    assert not isinstance(call.backend_config, str)
    options: dict[str, Any] = dict(call.backend_config)
    grid, warps = options.pop("grid"), options.pop("warps")
    tensors = [*[each.dtype for each in call.inputs], *[each.dtype for each in call.result_types]]
    text = written(kernel, tensors, options).replace("\n", " ").replace('"', '\\"')
    return (
        f'{{name = "{kernel.__name__}", ir = "{text}", num_stages = 1 : i32, num_warps = {warps} : i32, '
        f"grid_x = {grid} : i32, grid_y = 1 : i32, grid_z = 1 : i32, debug = false}}"
    )
