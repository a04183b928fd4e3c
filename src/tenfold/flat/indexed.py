"""FlatIR ops at computed places: gather and scatter of slices, with StableHLO's dimension numbers."""

from __future__ import annotations

from typing import ClassVar, NamedTuple

from tenfold.base.errors import ArgumentError, DTypeError, IndexOutOfRange, ShapeError
from tenfold.flat.data_ops import Ints, each_dimension
from tenfold.flat.ir import Function, Op, TensorType, Value


class GatherDimensions(NamedTuple):
    """StableHLO's gather dimension numbers, by its names."""

    offset_dims: Ints
    collapsed_slice_dims: Ints
    start_index_map: Ints
    index_vector_dim: int
    operand_batching_dims: Ints = ()
    start_indices_batching_dims: Ints = ()


class Gather(Op):
    """Slices of x at computed places; a place that overhangs is moved inside."""

    name: ClassVar[str] = "stablehlo.gather"
    x: Value
    start_indices: Value
    dimension_numbers: GatherDimensions
    slice_sizes: Ints
    indices_are_sorted: bool

    def infer(self) -> TensorType:
        each_dimension(self, self.x, self.slice_sizes)
        kept = _check_numbers(self, self.x, self.start_indices, *self.dimension_numbers)
        for axis, (size, extent) in enumerate(zip(self.slice_sizes, self.x.shape, strict=True)):
            most = extent if axis in kept else min(extent, 1)
            if not 0 <= size <= most:
                raise IndexOutOfRange(
                    f"gather: slices of {size} (at most {most}) along dimension {axis} of {self.x.type}"
                )
        window = [self.slice_sizes[axis] for axis in kept]
        return TensorType(self.x.dtype, _woven(self, self.start_indices, self.dimension_numbers, window))


class ScatterDimensions(NamedTuple):
    """StableHLO's scatter dimension numbers, by its names."""

    update_window_dims: Ints
    inserted_window_dims: Ints
    scatter_dims_to_operand_dims: Ints
    index_vector_dim: int
    input_batching_dims: Ints = ()
    scatter_indices_batching_dims: Ints = ()


class Scatter(Op):
    """x with `updates` combined in by `body` (old, new) at computed places; places outside are left out.

    Of a window that lies half inside, XLA leaves all out and the specification the other half: make none.
    """

    name: ClassVar[str] = "stablehlo.scatter"
    inputs: tuple[Value, ...]
    scatter_indices: Value
    updates: tuple[Value, ...]
    scatter_dimension_numbers: ScatterDimensions
    indices_are_sorted: bool
    unique_indices: bool
    body: Function

    def infer(self) -> tuple[TensorType, ...]:
        if not self.inputs or len(self.inputs) != len(self.updates):
            raise ArgumentError(f"scatter: {len(self.updates)} updates for {len(self.inputs)} tensors")
        first, numbers = self.inputs[0], self.scatter_dimension_numbers
        kept = _check_numbers(self, first, self.scatter_indices, *numbers)
        for x, update in zip(self.inputs, self.updates, strict=True):
            if x.dtype is not update.dtype:
                raise DTypeError(f"scatter: {update.type} into {x.type}: their dtypes differ")
            if x.shape != first.shape or update.shape != self.updates[0].shape:
                raise ShapeError(
                    f"scatter: {update.type} into {x.type}: tensors scattered together differ in shape"
                )
            if update.rank != self.scatter_indices.rank - self._vectors() + len(kept):
                raise ShapeError(
                    f"scatter: {update.type} has not one dimension for each of its places and windows"
                )
            window = [update.shape[d] for d in numbers.update_window_dims if d < update.rank]
            expected = _woven(self, self.scatter_indices, numbers, window)
            if update.shape != expected or any(
                size > x.shape[d] for size, d in zip(window, kept, strict=True)
            ):
                raise ShapeError(
                    f"scatter: {update.type} does not fit {x.type} at places {self.scatter_indices.type}",
                    help=f"there must be one slice, no larger than {list(x.shape)}, for each place",
                )
        scalars = [TensorType(operand.dtype, ()) for operand in self.inputs]
        self.body.expect("scatter: its body", scalars * 2, scalars)
        return tuple([operand.type for operand in self.inputs])

    def _vectors(self) -> int:
        """How many dimensions of the indices hold their components: one, or none where each is a number."""
        return int(self.scatter_dimension_numbers.index_vector_dim < self.scatter_indices.rank)


def _check_numbers(
    op: Op,
    x: Value,
    indices: Value,
    window_dims: Ints,
    dropped: Ints,
    index_map: Ints,
    index_vector_dim: int,
    x_batching: Ints,
    index_batching: Ints,
) -> list[int]:
    """Check dimension numbers, by the rules of gather and scatter; gives x's dimensions that windows keep."""
    name = op.name.split(".")[1]
    if indices.dtype.kind != "int":
        raise DTypeError(
            f"indices must be integers, not {indices.dtype.name}", help="convert them with .long()"
        )
    if not 0 <= index_vector_dim <= indices.rank:
        raise IndexOutOfRange(
            f"{name}: index_vector_dim {index_vector_dim} is out of range for {indices.type}"
        )
    components = indices.shape[index_vector_dim] if index_vector_dim < indices.rank else 1
    if len(index_map) != components:
        raise ShapeError(
            f"{name}: an index has {components} components, for the dimensions {list(index_map)} of {x.type}"
        )
    for what, dims, of in (
        ("dropped and batching dimensions", dropped + x_batching, x),
        ("indexed and batching dimensions", index_map + x_batching, x),
        ("batching dimensions", index_batching, indices),
    ):
        if len(set(dims)) != len(dims) or any(not 0 <= d < of.rank for d in dims):
            raise IndexOutOfRange(f"{name}: the {what} {list(dims)} are not distinct dimensions of {of.type}")
    for what, dims in (("window", window_dims), ("dropped", dropped), ("batching", x_batching)):
        if list(dims) != sorted(set(dims)) or (dims and dims[0] < 0):
            raise IndexOutOfRange(f"{name}: the {what} dimensions {list(dims)} are not in ascending order")
    if index_vector_dim in index_batching:
        raise ShapeError(
            f"{name}: dimension {index_vector_dim} of {indices.type} holds indices, not batches of them"
        )
    if [x.shape[d] for d in x_batching] != [indices.shape[d] for d in index_batching]:
        raise ShapeError(
            f"{name}: batching dimensions {list(x_batching)} of {x.type} and {list(index_batching)} of "
            f"{indices.type} differ"
        )
    kept = [d for d in range(x.rank) if d not in dropped and d not in x_batching]
    if len(window_dims) != len(kept):
        raise ShapeError(
            f"{name}: {len(window_dims)} window dimensions for the {len(kept)} that {x.type} keeps"
        )
    return kept


def _woven(op: Op, indices: Value, numbers: GatherDimensions | ScatterDimensions, window: list[int]) -> Ints:
    """The shape in which windows stand at `numbers[0]`, and the dimensions of the indices around them."""
    around = [extent for d, extent in enumerate(indices.shape) if d != numbers.index_vector_dim]
    rank = len(around) + len(window)
    if any(d >= rank for d in numbers[0]):
        raise IndexOutOfRange(
            f"{op.name.split('.')[1]}: window dimensions {list(numbers[0])} exceed {rank} dimensions"
        )
    inside, outside = iter(window), iter(around)
    return tuple([next(inside) if d in numbers[0] else next(outside) for d in range(rank)])
