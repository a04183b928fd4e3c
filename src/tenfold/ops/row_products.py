"""Products of a matrix with one row, with the layer norm before it and the elementwise ops after it.

Such a product is bound by reading the matrix, and a model that generates text is a chain of them: what each
kernel costs to start matters as much. So a kernel of our own computes the norm of the row in every program
again, which costs nothing beside its rows of the matrix, and applies to its few results what follows.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from tenfold.base import dtypes
from tenfold.flat.data_ops import Transpose
from tenfold.flat.ir import Value
from tenfold.flat.structured import DotGeneral
from tenfold.ops.tile_kernels import LIMIT, UNROLLED, kernel

DTYPES = (dtypes.float32, dtypes.bfloat16, dtypes.float16)
STRIP = 1024  # elements of a row that are looked at together
SMALLEST = 1 << 16  # elements of a matrix, below which XLA fuses more than this does
PROGRAMS = 256  # that keep a GPU busy
MOST = 8  # rows of the matrix that a program takes
COLUMNS = 16  # of it, which fill what a GPU reads of memory at a time
WARPS = {True: 8, False: 16}  # of a program that takes rows, or columns
NARROW = 4  # of one that takes rows which are one strip at most


def _tanh(k, x):
    """By exponentials, and near zero by a series, which loses no digits there."""
    square = x * x
    series = x + x * square * (square * (2 / 15) - 1 / 3)
    whole = k.full(1.0) - k.full(2.0) / (k.exp(x * 2.0) + 1.0)
    return k.where(square < 0.0025, series, whole)


OPS: dict[str, Any] = {
    "stablehlo.add": lambda k, x, y: x + y,
    "stablehlo.subtract": lambda k, x, y: x - y,
    "stablehlo.multiply": lambda k, x, y: x * y,
    "stablehlo.divide": lambda k, x, y: x / y,
    "stablehlo.maximum": lambda k, x, y: k.maximum(x, y),
    "stablehlo.negate": lambda k, x: x * -1.0,
    "stablehlo.exponential": lambda k, x: k.exp(x),
    "stablehlo.logistic": lambda k, x: k.full(1.0) / (k.exp(x * -1.0) + 1.0),
    "stablehlo.rsqrt": lambda k, x: k.rsqrt(x),
    "stablehlo.tanh": _tanh,
}


@kernel
def multiply(k, x, matrix, *others, width, count, each, strip, turns, steps, by_rows, eps=None):
    """`each` of the products of a matrix's rows, or columns, with the row x, which is normalised first if
    `eps` is given, by the weight and the bias that come next. `steps` are applied to the products:
    ("product",), ("load", operand), ("constant", number), ("round", step), or an op on earlier steps, by
    their numbers. The last step is the result."""
    operands, out = others[:-1], others[-1]
    rows = k.range(each) + k.program() * each
    there = None if count % each == 0 else rows < count
    along, across = (k.row, k.column) if by_rows else (k.column, k.row)
    norm = operands[:2] if eps is not None else ()
    groups = 1 if turns <= UNROLLED else turns // UNROLLED
    turns = turns // groups

    def strips(first):
        places = [k.range(strip) + (first + turn * strip) for turn in range(turns)]
        whole = width == strip * turns * groups
        masks = [None if whole else at < width for at in places]
        return places, masks

    def along_row(operand, places, masks):
        return [k.load(operand, at, mask) for at, mask in zip(places, masks, strict=True)]

    def loaded(places, masks):
        """Strips of the rows of the matrix; all are on their way before any is needed."""
        if by_rows:
            at = [across(rows * width) + along(place) for place in places]
        else:
            at = [across(rows) + along(place * count) for place in places]
        outside = None if there is None else across(there)
        filled = [
            outside if mask is None else along(mask) if outside is None else k.both(outside, along(mask))
            for mask in masks
        ]
        return [k.load(matrix, place, mask) for place, mask in zip(at, filled, strict=True)]

    def turn(i, total):
        places, masks = strips(i * (strip * turns))
        parts = along_row(x, places, masks)
        scales = [along_row(operand, places, masks) for operand in norm]
        tiles = loaded(places, masks)
        if eps is not None:
            parts = _normalised(k, parts, masks, scales, matrix, width, eps)
        for tile, part in zip(tiles, parts, strict=True):
            total = total + tile * along(part)
        return (total,)

    start = k.full(0.0, *((each, strip) if by_rows else (strip, each)))
    # Sums wait for all threads: what is loaded after one is waited for as well.
    taken = {step[1]: k.load(operands[step[1]], rows, there) for step in steps if step[0] == "load"}
    (total,) = turn(0, start) if groups == 1 else k.loop(groups, [start], turn)
    product = k.sum(total, axis=1 if by_rows else 0)
    values: list[Any] = []
    for name, *arguments in steps:
        if name == "product":
            value = product
        elif name == "load":
            value = taken[arguments[0]]
        elif name == "constant":
            value = k.full(arguments[0])
        elif name == "round":
            value = k.rounded(values[arguments[0]], matrix)
        else:
            value = OPS[name](k, *[values[place] for place in arguments])
        values.append(value)
    k.store(out, rows, values[-1], there)


def _normalised(k, parts, masks, scales, like, width, eps):
    """A layer norm of the strips of a row, rounded like the matrix. `scales` has the strips of its weight and
    of its bias."""
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    middle = k.sum(total) * (1 / width)
    centred = [part - middle for part in parts]
    centred = [
        part if mask is None else k.where(mask, part, 0.0) for part, mask in zip(centred, masks, strict=True)
    ]
    total = centred[0] * centred[0]
    for part in centred[1:]:
        total = total + part * part
    rstd = k.rsqrt(k.sum(total) * (1 / width) + eps)
    return [
        k.rounded(part * rstd * weight + bias, like)
        for part, weight, bias in zip(centred, *scales, strict=True)
    ]


class Product(NamedTuple):
    """A row times a matrix, of which the rows or the columns are multiplied with it."""

    row: Value
    matrix: Value
    by_rows: bool

    @classmethod
    def of(cls, op: DotGeneral) -> Product | None:
        """A product of one row with a large matrix; None for another one."""
        numbers, matrix = op.dot_dimension_numbers, op.y
        contracted = numbers.rhs_contracting_dimensions
        if numbers.lhs_batching_dimensions or matrix.rank != 2 or len(contracted) != 1:
            return None
        by_rows = contracted == (1,)
        if isinstance(matrix.op, Transpose):
            matrix, by_rows = matrix.op.x, not by_rows
        product = cls(op.x, matrix, by_rows)
        fits = (
            op.x.numel == product.width >= 128
            and op.x.dtype in DTYPES
            and op.x.dtype is matrix.dtype
            and op.result.dtype in (op.x.dtype, dtypes.float32)
            and SMALLEST <= matrix.numel < LIMIT
            and product.size > 1
        )
        return product if fits else None

    @property
    def size(self) -> int:
        return self.matrix.shape[0 if self.by_rows else 1]

    @property
    def width(self) -> int:
        return self.matrix.shape[1 if self.by_rows else 0]

    @property
    def warps(self) -> int:
        """Of a program. Fewer wait less for each other to add up a row."""
        return NARROW if self.by_rows and self.width <= STRIP else WARPS[self.by_rows]

    def division(self) -> dict[str, int | bool]:
        """How it is divided up: rows or columns of the matrix for a program, and strips of each."""
        each = MOST if self.by_rows else COLUMNS
        while self.by_rows and each > 2 and -(-self.size // each) < PROGRAMS:
            each //= 2
        strip = math.gcd(self.width, STRIP)
        if strip < 128:
            strip = min(STRIP, 1 << (self.width - 1).bit_length())
        turns = -(-self.width // strip)
        if turns > UNROLLED:
            turns = -(-turns // UNROLLED) * UNROLLED
        return {
            "width": self.width, "count": self.size, "each": each, "strip": strip, "turns": turns,
            "by_rows": self.by_rows,
        }  # fmt: skip
