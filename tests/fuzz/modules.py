"""Hostile modules that parse: well-typed StableHLO with odd numbers, which is checked, compiled and run."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence

Shape = tuple[int, ...]
FLOATS = ["f32", "f64", "f16", "bf16", "f8E4M3FN", "complex<f32>"]
INTEGERS = ["i32", "i64", "i8", "ui8", "ui32", "ui64", "i1", "i4"]
NUMBERS = [
    0,
    1,
    2,
    3,
    -1,
    -2,
    7,
    64,
    255,
    1 << 16,
    (1 << 31) - 1,
    -(1 << 31),
    1 << 62,
    -(1 << 63),
    (1 << 63) - 1,
]
EXTENTS = [0, 1, 1, 2, 3, 4, 5, 8, 17]
UNARY = "abs negate exponential log cosine sqrt cbrt sign floor not popcnt count_leading_zeros tan"
BINARY = (
    "add subtract multiply divide remainder power maximum atan2 and xor "
    "shift_left shift_right_logical shift_right_arithmetic"
)
OPEN = "tensor<?xf32>"


def array(numbers: Iterable[int]) -> str:
    text = ", ".join(map(str, numbers))
    return f"array<i64: {text}>" if text else "array<i64>"


def spelled(shape: Shape, kind: str) -> str:
    return f"tensor<{''.join(f'{extent}x' for extent in shape)}{kind}>"


def windows(
    shape: Sequence[int], size: Sequence[int], stride: Sequence[int], pads: Sequence[list[int]]
) -> Shape:
    """How many windows there are along each dimension."""
    whole = [extent + sum(pad) for extent, pad in zip(shape, pads, strict=True)]
    return tuple(
        0 if total <= 0 or width > total else (total - width) // step + 1
        for total, width, step in zip(whole, size, stride, strict=True)
    )


class Writer:
    """The body of a `main` without arguments."""

    def __init__(self, chance: random.Random):
        self.chance = chance
        self.lines: list[str] = []
        self.values: list[tuple[str, Shape, str]] = []
        for _ in range(3):
            self.constant(tuple(chance.choices(EXTENTS, k=chance.randrange(4))), self.kind())

    def kind(self) -> str:
        return self.chance.choice([*FLOATS, *INTEGERS, "f32", "f32", "i32"])

    def small(self) -> int:
        return self.chance.choice(NUMBERS if self.chance.random() < 0.1 else [0, 0, 1, 1, 2, 3, -1, -2])

    def positive(self) -> int:
        return max(1, abs(self.small()))

    def add(self, text: str, shape: Shape, kind: str, *taken: tuple[Shape, str]) -> str:
        name, takes = f"%v{len(self.values)}", ", ".join(spelled(*each) for each in taken)
        self.lines.append(f"{name} = {text} : ({takes}) -> {spelled(shape, kind)}")
        self.values.append((name, shape, kind))
        return name

    def constant(self, shape: Shape, kind: str, number: int | None = None) -> str:
        number = self.chance.choice([0, 1, 3]) if number is None else number
        text = f"{number}.5" if kind in FLOATS else str(number)
        text = "true" if kind == "i1" else f"({text}, 1.0)" if kind.startswith("c") else text
        if kind in ("i4", "i8") and abs(number) > 7:
            text = "7"
        name = f"%v{len(self.values)}"
        self.lines.append(f"{name} = stablehlo.constant dense<{text}> : {spelled(shape, kind)}")
        self.values.append((name, shape, kind))
        return name

    def indices(self, shape: Shape = ()) -> str:
        """Integers that may lie far outside."""
        return self.constant(shape, "i64", self.chance.choice(NUMBERS))

    def region(self, kind: str, op: str) -> str:
        """What joins two elements."""
        of, result = f"tensor<{kind}>", "i1" if op.startswith("compare") else kind
        return (
            f"({{ ^bb0(%l: {of}, %r: {of}): %s = stablehlo.{op} %l, %r : ({of}, {of}) -> tensor<{result}> "
            f'"stablehlo.return"(%s) : (tensor<{result}>) -> () }})'
        )


def elementwise(w: Writer) -> None:
    x, shape, kind = w.chance.choice(w.values)
    if w.chance.random() < 0.4:
        w.add(f'"stablehlo.{w.chance.choice(UNARY.split())}"({x})', shape, kind, (shape, kind))
        return
    y = w.chance.choice([name for name, *type in w.values if type == [shape, kind]])
    w.add(
        f'"stablehlo.{w.chance.choice(BINARY.split())}"({x}, {y})', shape, kind, (shape, kind), (shape, kind)
    )


def converted(w: Writer) -> None:
    x, shape, kind = w.chance.choice(w.values)
    op = w.chance.choice(["convert", "convert", "bitcast_convert"])
    w.add(f'"stablehlo.{op}"({x})', shape, w.kind(), (shape, kind))


def counted(w: Writer) -> None:
    shape = w.chance.choice([(1,), (17,), (1 << 10,), (3, 2), (2, 1, 5)])
    options = f"{{iota_dimension = {w.chance.randrange(len(shape))} : i64}}"
    w.add(f'"stablehlo.iota"() {options}', shape, w.kind())


def reduced(w: Writer) -> None:
    x, shape, kind = w.chance.choice(w.values)
    if w.chance.random() < 0.1:  # a range so long that nothing else should work through it
        shape = (1 << 23,)
        x = w.add('"stablehlo.iota"() {iota_dimension = 0 : i64}', shape, kind)
        w.values[-1] = w.values[0]
    axes = sorted(w.chance.sample(range(len(shape)), w.chance.randint(0, len(shape))))
    join = w.region(kind, w.chance.choice(["add", "maximum", "subtract", "divide", "power"]))
    new = tuple(extent for axis, extent in enumerate(shape) if axis not in axes)
    text = f'"stablehlo.reduce"({x}, {w.constant((), kind)}) {join} {{dimensions = {array(axes)}}}'
    w.add(text, new, kind, (shape, kind), ((), kind))


def padded(w: Writer) -> None:
    x, shape, kind = w.chance.choice(w.values)
    pads = [[w.small(), w.small(), abs(w.small())] for _ in shape]
    low, high, inside = zip(*pads, strict=True) if pads else ((), (), ())
    new = tuple(n + a + b + max(0, n - 1) * c for n, (a, b, c) in zip(shape, pads, strict=True))
    edges = f"edge_padding_low = {array(low)}, edge_padding_high = {array(high)}"
    text = f'"stablehlo.pad"({x}, {w.constant((), kind)}) {{{edges}, interior_padding = {array(inside)}}}'
    w.add(text, tuple(max(0, extent) for extent in new), kind, (shape, kind), ((), kind))


def windowed(w: Writer) -> None:
    x, shape, kind = w.chance.choice(w.values)
    if not shape:
        return
    size, stride = ([w.positive() for _ in shape] for _ in range(2))
    pads = [[w.small(), w.small()] for _ in shape]
    options = (
        f"{{window_dimensions = {array(size)}, window_strides = {array(stride)}, "
        f"padding = dense<{pads}> : tensor<{len(shape)}x2xi64>}}"
    )
    new, zero = windows(shape, size, stride, pads), w.constant((), kind)
    join = w.region(kind, w.chance.choice(["add", "maximum", "subtract", "divide"]))
    if w.chance.random() < 0.6:
        w.add(
            f'"stablehlo.reduce_window"({x}, {zero}) {join} {options}', new, kind, (shape, kind), ((), kind)
        )
        return
    source, select = w.constant(new, kind), w.region(kind, f"compare {w.chance.choice(['GE', 'NE'])},")
    text = f'"stablehlo.select_and_scatter"({x}, {source}, {zero}) {select[:-1]}, {join[1:]} {options}'
    w.add(text, shape, kind, (shape, kind), (new, kind), ((), kind))


def sliced(w: Writer) -> None:
    x, shape, kind = w.chance.choice(w.values)
    size = tuple(w.chance.randrange(extent + 1) for extent in shape)
    starts, types = [w.indices() for _ in shape], [((), "i64")] * len(shape)
    if w.chance.random() < 0.5:
        text = f'"stablehlo.dynamic_slice"({", ".join([x, *starts])}) {{slice_sizes = {array(size)}}}'
        w.add(text, size, kind, (shape, kind), *types)
    else:
        text = f'"stablehlo.dynamic_update_slice"({", ".join([x, w.constant(size, kind), *starts])})'
        w.add(text, shape, kind, (shape, kind), (size, kind), *types)


def gathered(w: Writer) -> None:
    x, shape, kind = w.chance.choice(w.values)
    if not shape:
        return
    rows, mapped = (
        w.chance.choice([0, 1, 3]),
        w.chance.sample(range(len(shape)), w.chance.randint(1, len(shape))),
    )
    indices, taken = w.indices((rows, len(mapped))), ((rows, len(mapped)), "i64")
    kept = [axis for axis in range(len(shape)) if axis not in mapped]
    if w.chance.random() < 0.5:
        size = [
            w.chance.randrange(extent + 1) if i in kept else min(1, extent) for i, extent in enumerate(shape)
        ]
        numbers = (
            f"#stablehlo.gather<offset_dims = {[1 + i for i in range(len(kept))]}, "
            f"collapsed_slice_dims = {sorted(mapped)}, start_index_map = {mapped}, index_vector_dim = 1>"
        )
        options = f"{{dimension_numbers = {numbers}, slice_sizes = {array(size)}, indices_are_sorted = true}}"
        new = (rows, *[size[axis] for axis in kept])
        w.add(f'"stablehlo.gather"({x}, {indices}) {options}', new, kind, (shape, kind), taken)
        return
    new = (rows, *[w.chance.randrange(shape[axis] + 1) for axis in kept])
    numbers = (
        f"#stablehlo.scatter<update_window_dims = {[1 + i for i in range(len(kept))]}, "
        f"inserted_window_dims = {sorted(mapped)}, scatter_dims_to_operand_dims = {mapped}, "
        "index_vector_dim = 1>"
    )
    join = w.region(kind, w.chance.choice(["add", "maximum", "divide"]))
    options = f"{{scatter_dimension_numbers = {numbers}, indices_are_sorted = true, unique_indices = true}}"
    text = f'"stablehlo.scatter"({x}, {indices}, {w.constant(new, kind)}) {join} {options}'
    w.add(text, shape, kind, (shape, kind), taken, (new, kind))


def convolved(w: Writer) -> None:
    kind, rank, groups = w.kind(), w.chance.randrange(3), w.chance.choice([1, 1, 2])
    spatial = [w.chance.choice(EXTENTS) for _ in range(rank)]
    size = [w.chance.choice([0, 1, 2, 3]) for _ in range(rank)]
    stride, pads = [w.positive() for _ in range(rank)], [[w.small(), w.small()] for _ in range(rank)]
    inputs, weights = (2, 2 * groups, *spatial), (3 * groups, 2, *size)
    axes = "".join(f", {axis}" for axis in range(rank))
    text = (
        f"stablehlo.convolution({w.constant(inputs, kind)}, {w.constant(weights, kind)}) "
        f"dim_numbers = [b, f{axes}]x[o, i{axes}]->[b, f{axes}], "
        f"window = {{stride = {stride}, pad = {pads}}} "
        f"{{batch_group_count = 1 : i64, feature_group_count = {groups} : i64}}"
    )
    new = (2, 3 * groups, *windows(spatial, size, stride, pads))
    w.add(text, new, kind, (inputs, kind), (weights, kind))


def sorted_(w: Writer) -> None:
    x, shape, kind = w.chance.choice(w.values)
    if shape:
        options = f"{{dimension = {w.chance.randrange(len(shape))} : i64}}"
        join = w.region(kind, f"compare {w.chance.choice(['LT', 'GE', 'NE'])},")
        w.add(f'"stablehlo.sort"({x}) {join} {options}', shape, kind, (shape, kind))


def solved(w: Writer) -> None:
    x, shape, kind = w.chance.choice(w.values)
    if len(shape) > 1 and w.chance.random() < 0.5:
        w.add(f'"stablehlo.cholesky"({x}) {{lower = true}}', shape, kind, (shape, kind))
    elif shape:
        w.add(f"stablehlo.fft {x}, type = FFT, length = [{shape[-1]}]", shape, kind, (shape, kind))


OPS: list[Callable[[Writer], None]] = [
    elementwise,
    elementwise,
    converted,
    counted,
    reduced,
    reduced,
    padded,
    windowed,
    sliced,
    gathered,
    convolved,
    sorted_,
    solved,
]


def opened(chance: random.Random) -> str:
    """A module whose size is computed from its argument's, which MLIR does as the sizes are fixed."""
    steps = [f"%s0 = stablehlo.get_dimension_size %a, dim = 0 : ({OPEN}) -> tensor<i32>"]
    for i in range(chance.randrange(1, 5)):
        number = chance.choice([0, 1, 2, 3, -1, 31, 1 << 16, -(1 << 31)])
        steps.append(f"%c{i} = stablehlo.constant dense<{number}> : tensor<i32>")
        steps.append(f"%s{i + 1} = stablehlo.{chance.choice(BINARY.split())} %s{i}, %c{i} : tensor<i32>")
    last = f"%s{(len(steps) - 1) // 2}"
    steps.append(
        f"%z = stablehlo.constant dense<300> : tensor<i32> %n = stablehlo.minimum {last}, %z : tensor<i32>"
    )
    steps.append("%r = stablehlo.reshape %n : (tensor<i32>) -> tensor<1xi32>")
    steps.append(f"%0 = stablehlo.dynamic_iota %r, dim = 0 : (tensor<1xi32>) -> {OPEN} return %0 : {OPEN}")
    return f"module {{ func.func @main(%a: {OPEN}) -> {OPEN} {{ {' '.join(steps)} }} }}"


def hostile_program(chance: random.Random) -> bytes:
    if chance.random() < 0.2:
        return opened(chance).encode()
    w = Writer(chance)
    for _ in range(chance.randrange(1, 7)):
        chance.choice(OPS)(w)
    kept = w.values[-chance.choice([1, 2, 4]) :]
    types = ", ".join(spelled(*type) for _, *type in kept)
    body = "\n".join([*w.lines, f"return {', '.join(name for name, *_ in kept)} : {types}"])
    return f"module {{ func.func @main() -> ({types}) {{\n{body}\n}} }}".encode()
