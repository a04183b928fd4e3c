"""What has become of each value of a function while its sizes are opened: `Padding`, given to each rule."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from tenfold.base.errors import TenfoldError, UnsupportedError
from tenfold.flat.build import broadcast_to, logical_and, where
from tenfold.flat.data_builders import reshape, take
from tenfold.flat.data_ops import BroadcastInDim
from tenfold.flat.ir import Op, TensorType, Value, give_source
from tenfold.flat.open_layout import Extent, Factor, Layout, Layouts, Sizes, joined, physical, places, valid
from tenfold.flat.sizes import Open, OpenLiteral, OpenText, OpenType

Placed = tuple[Value, Layouts]  # an array at its bounds, and how its dimensions lie in it
Rule = Callable[[Any, "Padding"], Sequence[Placed]]


def is_open(value: Any) -> bool:
    """Whether there is an open number in an attribute."""
    if isinstance(value, (tuple, list)):
        return any(map(is_open, value))
    return isinstance(value, (Open, OpenLiteral, OpenText, OpenType))


def extents_of(value: Value) -> tuple[Extent, ...]:
    """The extents of a value of a merged function, some of them open."""
    shape: Any = value.type.shape
    return shape


def closed(type: TensorType) -> Layouts:
    return tuple([(Factor(extent, extent),) for extent in type.shape])


class Padding:
    """The arrays at their bounds that stand for a function's values."""

    def __init__(self, sizes: Sizes, apply: Callable[[Op, Padding], Sequence[Placed]]):
        self.sizes = sizes
        self.apply = apply
        self.values: dict[Value, Value] = {}
        self.layouts: dict[Value, Layouts] = {}

    def put(self, value: Value, array: Value, layouts: Layouts) -> None:
        self.values[value] = array
        self.layouts[value] = tuple([joined(layout) for layout in layouts])

    def follow(self, ops: Iterable[Op]) -> None:
        """Open the ops, in their order."""
        made: set[Op] = set()
        for op in ops:
            plain = not any(is_open(value.type) for value in (*op.operands, *op.results))
            if plain and not any(map(is_open, op.attributes.values())):
                copy = op.replace(self.values)
                made.add(copy)
                self.values.update(zip(op.results, copy.results, strict=True))
                continue
            try:
                placed = self.apply(op, self)
            except UnsupportedError as error:
                raise error.located(op.name.partition(".")[2], op.source) from None
            except TenfoldError as error:  # a rule that meets what it was not made for
                raise UnsupportedError(
                    f"{op.name.partition('.')[2]} cannot be open: {error.message}"
                ).located(op.name.partition(".")[2], op.source) from None
            for result, (array, layouts) in zip(op.results, placed, strict=True):
                if array.name is None:
                    array.name = result.name
                self.put(result, array, layouts)
            give_source([array for array, _ in placed], op.source, made)

    def at(self, value: Value) -> Value:
        return self.values.get(value, value)

    def of(self, value: Value) -> Layouts:
        """How the dimensions of a value lie."""
        return self.layouts.get(value) or closed(value.type)

    def placed(self, value: Value) -> Placed:
        return self.at(value), self.of(value)

    def simple(self, value: Value, dims: Iterable[int] | None = None) -> Value:
        """The value with the elements of each dimension, or of these, in one row."""
        array, layouts = self.placed(value)
        for dim in range(len(layouts)) if dims is None else dims:
            array = self.relaid(array, dim, layouts[dim], self.sizes.simple(value.type.shape[dim]))
        return array

    def relaid(self, array: Value, dim: int, own: Layout, wanted: Layout) -> Value:
        """The array with a dimension that lies in another way."""
        if own == wanted:
            return array
        shape = (*array.shape[:dim], physical(wanted), *array.shape[dim + 1 :])
        op = array.op
        if isinstance(op, BroadcastInDim):
            source = dict(zip(op.broadcast_dimensions, op.x.shape)).get(dim, 1)
            if source == 1:  # all elements are equal along this dimension
                return BroadcastInDim(op.x, shape, op.broadcast_dimensions).result
        return take(array, places(wanted, own, self.sizes), dim)

    def alike(self, values: Sequence[Value]) -> tuple[list[Value], Layouts]:
        """Values of one shape with their dimensions lying in one way."""
        arrays = [self.at(value) for value in values]
        several = [self.of(value) for value in values]
        chosen = tuple([max(layouts, key=len) for layouts in zip(*several)])
        for i, layouts in enumerate(several):
            for dim, (own, wanted) in enumerate(zip(layouts, chosen, strict=True)):
                arrays[i] = self.relaid(arrays[i], dim, own, wanted)
        return arrays, chosen

    def mask(self, shape: Sequence[int], layouts: Layouts, dims: Iterable[int]) -> Value | None:
        """Which elements of an array are valid as far as these dimensions say; None if all are."""
        found: Value | None = None
        for dim in dims:
            row = valid(layouts[dim], self.sizes)
            if row is not None:
                column = reshape(row, [-1 if d == dim else 1 for d in range(len(shape))])
                holds = broadcast_to(column, shape)
                found = holds if found is None else logical_and(found, holds)
        return found

    def masked(self, array: Value, layouts: Layouts, dims: Iterable[int], filler: Any) -> Value:
        """The array with `filler` in the padding of these dimensions."""
        holds = self.mask(array.shape, layouts, dims)
        return array if holds is None else where(holds, array, filler)

    def again(self, op: Op, operands: Sequence[Value], **changed: Any) -> Op:
        """The op on other operands; `changed` are fields that are not as they were."""
        state = {field: op.__dict__[field] for field in op.fields}
        rest = iter(operands)
        for field, many in op.operand_fields:
            state[field] = tuple([next(rest) for _ in state[field]]) if many else next(rest)
        state.update(changed)
        return type(op)(*state.values())
