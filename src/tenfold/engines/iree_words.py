"""Replaces StableHLO ops on open sizes that IREE does not lower by equivalent ops of MLIR's own dialects:
reshapes, gathers, pads, and insertions of one tensor into another."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from tenfold.base.errors import UnsupportedError

OPEN = -(2**63)  # how MLIR writes a number that an operand gives


def rewrite(ir: Any, module: Any) -> None:
    """Replace such ops of a module, in place."""
    ops: list[Any] = []

    loops: list[Any] = []

    def look(op: Any) -> Any:
        if op.name in WORDS:
            ops.append(op)
        elif op.name == "stablehlo.while":
            loops.append(op)
        return ir.WalkResult.ADVANCE

    module.operation.walk(look)
    if any("?" in str(result.type) for loop in loops for result in loop.results):
        # It takes two that are carried for one where they start alike, and says nothing.
        raise UnsupportedError(
            "IREE computes StableHLO's loops over tensors of open sizes wrongly",
            help="export(..., dialect='torch'), or run this on XLA by load_stablehlo",
        )
    for op in ops:
        with ir.InsertionPoint(op), op.location:
            replacement = WORDS[op.name](_Writer(ir), op)
        if replacement is not None:
            op.results[0].replace_all_uses_with(replacement)
            op.erase()


class _Writer:
    """Makes ops where we are."""

    def __init__(self, ir: Any):
        self.ir = ir
        self.index = ir.IndexType.get()

    def op(self, name: str, type: Any, operands: Sequence[Any], **attributes: str) -> Any:
        parsed = {key: self.ir.Attribute.parse(text) for key, text in attributes.items()}
        return self.ir.Operation.create(name, [type], operands, parsed).result

    def number(self, value: int) -> Any:
        return self.op("arith.constant", self.index, [], value=f"{value} : index")

    def extent(self, tensor: Any, dim: int) -> Any:
        shaped = self.ir.RankedTensorType(tensor.type)
        if not shaped.is_dynamic_dim(dim):
            return self.number(shaped.get_dim_size(dim))
        return self.op("tensor.dim", self.index, [tensor, self.number(dim)])

    def extract(self, tensor: Any, places: Sequence[Any]) -> Any:
        element = self.ir.RankedTensorType(tensor.type).element_type
        return self.op("tensor.extract", element, [tensor, *places])

    def extracted_index(self, tensor: Any, places: Sequence[Any]) -> Any:
        return self.op("arith.index_cast", self.index, [self.extract(tensor, places)])

    def arithmetic(self, name: str, left: Any, right: Any) -> Any:
        return self.op(f"arith.{name}", self.index, [left, right])

    def holds(self, comparison: str, left: Any, right: Any) -> Any:
        places = {"eq": 0, "slt": 2, "sge": 5}  # of MLIR's comparisons
        one_bit = self.ir.IntegerType.get_signless(1)
        return self.op("arith.cmpi", one_bit, [left, right], predicate=f"{places[comparison]} : i64")

    def empty(self, type: Any, extents: Sequence[Any]) -> Any:
        """A tensor of a type, of whose open dimensions these are the sizes."""
        shaped = self.ir.RankedTensorType(type)
        open = [extent for dim, extent in enumerate(extents) if shaped.is_dynamic_dim(dim)]
        return self.op("tensor.empty", type, open)

    def each(self, type: Any, extents: Sequence[Any], element: Callable[[Sequence[Any]], Any]) -> Any:
        """A tensor whose elements are computed from their places."""
        ir, rank = self.ir, self.ir.RankedTensorType(type).rank
        dims = ", ".join(f"d{i}" for i in range(rank))
        attributes = {
            "indexing_maps": ir.Attribute.parse(f"[affine_map<({dims}) -> ({dims})>]"),
            "iterator_types": ir.Attribute.parse(
                f"[{', '.join(['#linalg.iterator_type<parallel>'] * rank)}]"
            ),
            "operandSegmentSizes": ir.Attribute.parse("array<i32: 0, 1>"),
        }
        outputs = [self.empty(type, extents)]
        generic = ir.Operation.create("linalg.generic", [type], outputs, attributes, regions=1)
        block = generic.regions[0].blocks.append(ir.RankedTensorType(type).element_type)
        with ir.InsertionPoint(block):
            places = [self.op("linalg.index", self.index, [], dim=f"{i} : i64") for i in range(rank)]
            ir.Operation.create("linalg.yield", [], [element(places)])
        return generic.result


def _reshape(writer: _Writer, op: Any) -> Any:
    return writer.op("tensor.reshape", op.results[0].type, list(op.operands))


def _gather(writer: _Writer, op: Any) -> Any:
    """A gather over open sizes, element by element; others stay."""
    operand, indices, *slice_sizes = op.operands
    type = op.results[0].type
    shaped = [writer.ir.RankedTensorType(tensor_type) for tensor_type in (type, operand.type, indices.type)]
    if all(type.has_static_shape for type in shaped):
        return None
    numbers = str(op.attributes["dimension_numbers"])
    offsets, collapsed, batching, index_batching, starts = (
        _dims(numbers, field)
        for field in (
            "offset_dims",
            "collapsed_slice_dims",
            "operand_batching_dims",
            "start_indices_batching_dims",
            "start_index_map",
        )
    )
    told = re.search(r"index_vector_dim = (\d+)", numbers)  # which is 0 if it is not there
    vector = int(told.group(1)) if told else 0
    rank = shaped[1].rank
    sizes = (
        [writer.extracted_index(slice_sizes[0], [writer.number(d)]) for d in range(rank)]
        if slice_sizes
        else [writer.number(int(slice_size)) for slice_size in _slice_sizes(op)]
    )
    zero, kept = writer.number(0), [d for d in range(rank) if d not in (*collapsed, *batching)]
    batch_dims = [dim for dim in range(shaped[2].rank) if dim != vector]
    extents: list[Any] = []
    windows, batches = iter(kept), iter(batch_dims)
    for dim in range(shaped[0].rank):
        extents.append(sizes[next(windows)] if dim in offsets else writer.extent(indices, next(batches)))
    last = [
        writer.arithmetic("subi", writer.extent(operand, d), sizes[d]) if d in starts else zero
        for d in range(rank)
    ]

    def element(places: Sequence[Any]) -> Any:
        batch = [place for dim, place in enumerate(places) if dim not in offsets]
        within = iter([places[dim] for dim in offsets])
        at = []
        for d in range(rank):
            place = next(within) if d in kept else zero
            if d in starts:
                where = list(batch)
                if vector < shaped[2].rank:
                    where.insert(vector, writer.number(starts.index(d)))
                start = writer.extracted_index(indices, where)
                start = writer.arithmetic("minsi", writer.arithmetic("maxsi", start, zero), last[d])
                place = writer.arithmetic("addi", place, start)
            elif d in batching:
                place = batch[batch_dims.index(index_batching[batching.index(d)])]
            at.append(place)
        return writer.extract(operand, at)

    return writer.each(type, extents, element)


def _pad(writer: _Writer, op: Any) -> Any:
    """Padding by open amounts: each element is one of x, or between them or outside."""
    x, value, low, high, between = op.operands
    type = op.results[0].type
    zero, one = writer.number(0), writer.number(1)
    extents, along = [], []
    for dim in range(writer.ir.RankedTensorType(type).rank):
        place = [writer.number(dim)]
        before, after, gap = (writer.extracted_index(operand, place) for operand in (low, high, between))
        count, step = writer.extent(x, dim), writer.arithmetic("addi", gap, one)
        spread = writer.arithmetic("muli", writer.arithmetic("subi", count, one), step)
        edges = writer.arithmetic("addi", writer.arithmetic("addi", before, after), one)
        extents.append(writer.arithmetic("addi", spread, edges))
        along.append((before, step, count))

    def element(places: Sequence[Any]) -> Any:
        inside, at = None, []
        for place, (before, step, count) in zip(places, along):
            reached = writer.arithmetic("subi", place, before)
            number = writer.arithmetic("divsi", reached, step)
            for test in (
                writer.holds("sge", reached, zero),
                writer.holds("eq", writer.arithmetic("remsi", reached, step), zero),
                writer.holds("slt", number, count),
            ):
                inside = test if inside is None else writer.op("arith.andi", test.type, [inside, test])
            least = writer.arithmetic("maxsi", number, zero)
            at.append(writer.arithmetic("minsi", least, writer.arithmetic("subi", count, one)))
        own, other = writer.extract(x, at), writer.extract(value, [])
        return writer.op("arith.select", own.type, [inside, own, other])

    return writer.each(type, extents, element)


def _update_slice(writer: _Writer, op: Any) -> Any:
    """A tensor put into another of open size, at places moved inside; others stay."""
    x, update, *starts = op.operands
    shaped = writer.ir.RankedTensorType(update.type)
    if shaped.has_static_shape and writer.ir.RankedTensorType(x.type).has_static_shape:
        return None
    zero, rank = writer.number(0), shaped.rank
    offsets, sizes, fixed = [], [], []
    for dim, start in enumerate(starts):
        extent = writer.extent(update, dim)
        last = writer.arithmetic("subi", writer.extent(x, dim), extent)
        lowest = writer.arithmetic("maxsi", writer.extracted_index(start, []), zero)
        offsets.append(writer.arithmetic("minsi", lowest, last))
        open = shaped.is_dynamic_dim(dim)
        sizes += [extent] if open else []
        fixed.append(OPEN if open else shaped.get_dim_size(dim))
    return writer.op(
        "tensor.insert_slice",
        x.type,
        [update, x, *offsets, *sizes],
        static_offsets=_array([OPEN] * rank),
        static_sizes=_array(fixed),
        static_strides=_array([1] * rank),
        operandSegmentSizes=f"array<i32: 1, 1, {rank}, {len(sizes)}, 0>",
    )


def _array(numbers: Sequence[int]) -> str:
    return f"array<i64: {', '.join(map(str, numbers))}>" if numbers else "array<i64>"


def _dims(numbers: str, field: str) -> list[int]:
    match = re.search(rf"\b{field} = \[([\d, ]*)\]", numbers)
    return [int(number) for number in match.group(1).split(",")] if match and match.group(1) else []


def _slice_sizes(op: Any) -> list[str]:
    return re.findall(r"-?\d+", str(op.attributes["slice_sizes"]).partition(":")[2])


WORDS: dict[str, Callable[[_Writer, Any], Any]] = {
    "stablehlo.dynamic_reshape": _reshape,
    "stablehlo.dynamic_gather": _gather,
    "stablehlo.dynamic_pad": _pad,
    "stablehlo.gather": _gather,
    "stablehlo.dynamic_update_slice": _update_slice,
}
