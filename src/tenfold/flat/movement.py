"""FlatIR ops that make or move data without arithmetic: constants, shape changes, slices, gather and scatter."""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import numpy as np

from tenfold import dtypes
from tenfold.dtypes import DType
from tenfold.errors import ArgumentError, DTypeError, IndexOutOfRange, ShapeError
from tenfold.flat.graph import Function, Op, TensorType, Value

Ints = tuple[int, ...]


class Constant(Op):
    """A literal: `value` is a NumPy array, small enough to be written into the program."""

    name: ClassVar[str] = "stablehlo.constant"
    value: np.ndarray
    dtype: DType

    def infer(self) -> TensorType:
        return TensorType(self.dtype, self.value.shape)


class Iota(Op):
    name: ClassVar[str] = "stablehlo.iota"
    dtype: DType
    shape: Ints
    iota_dimension: int

    def infer(self) -> TensorType:
        if not 0 <= self.iota_dimension < len(self.shape):
            raise IndexOutOfRange(f"iota: dimension {self.iota_dimension} is out of range for {len(self.shape)} dimensions")
        return TensorType(self.dtype, self.shape)


class BroadcastInDim(Op):
    """Dimension i of x becomes dimension `broadcast_dimensions[i]` of the result; size 1 stretches."""

    name: ClassVar[str] = "stablehlo.broadcast_in_dim"
    x: Value
    shape: Ints
    broadcast_dimensions: Ints

    def infer(self) -> TensorType:
        dims = self.broadcast_dimensions
        if len(dims) != self.x.rank or any(not 0 <= d < len(self.shape) for d in dims) or len(set(dims)) != len(dims):
            raise ShapeError(f"broadcast: dimensions {dims} do not place {self.x.type} in {list(self.shape)}")
        for extent, d in zip(self.x.shape, dims, strict=True):
            if extent not in (1, self.shape[d]):
                raise ShapeError(f"cannot broadcast {self.x.type} to {list(self.shape)}: {extent} and {self.shape[d]} differ")
        return TensorType(self.x.dtype, self.shape)


class Reshape(Op):
    name: ClassVar[str] = "stablehlo.reshape"
    x: Value
    shape: Ints

    def infer(self) -> TensorType:
        result = TensorType(self.x.dtype, self.shape)
        if result.numel != self.x.numel:
            raise ShapeError(
                f"cannot reshape {self.x.type} to {list(self.shape)}: {self.x.numel} elements and {result.numel}",
                help="leave one dimension to be inferred with -1",
            )
        return result


class Transpose(Op):
    name: ClassVar[str] = "stablehlo.transpose"
    x: Value
    permutation: Ints

    def infer(self) -> TensorType:
        if sorted(self.permutation) != list(range(self.x.rank)):
            raise ShapeError(
                f"{list(self.permutation)} is not a permutation of the {self.x.rank} dimensions of {self.x.type}",
                help="name every dimension once",
            )
        return TensorType(self.x.dtype, tuple([self.x.shape[p] for p in self.permutation]))


class Slice(Op):
    name: ClassVar[str] = "stablehlo.slice"
    x: Value
    start_indices: Ints
    limit_indices: Ints
    strides: Ints

    def infer(self) -> TensorType:
        shape = []
        for axis, (extent, start, limit, stride) in enumerate(
            zip(self.x.shape, self.start_indices, self.limit_indices, self.strides, strict=True)
        ):
            if not 0 <= start <= limit <= extent or stride < 1:
                raise IndexOutOfRange(
                    f"slice {start}:{limit}:{stride} does not fit dimension {axis} of {self.x.type}"
                )
            shape.append(-(-(limit - start) // stride))
        return TensorType(self.x.dtype, tuple(shape))


class DynamicSlice(Op):
    """`slice_sizes` elements of x from `starts` (one integer scalar a dimension), moved inside if they overhang."""

    name: ClassVar[str] = "stablehlo.dynamic_slice"
    x: Value
    starts: tuple[Value, ...]
    slice_sizes: Ints

    def infer(self) -> TensorType:
        if len(self.starts) != self.x.rank or len(self.slice_sizes) != self.x.rank:
            raise ShapeError(f"dynamic_slice: {self.x.type} needs {self.x.rank} starts and sizes")
        if any(size > extent for size, extent in zip(self.slice_sizes, self.x.shape, strict=True)):
            raise ShapeError(f"dynamic_slice: sizes {list(self.slice_sizes)} exceed {self.x.type}")
        return TensorType(self.x.dtype, self.slice_sizes)


class DynamicUpdateSlice(Op):
    name: ClassVar[str] = "stablehlo.dynamic_update_slice"
    x: Value
    update: Value
    starts: tuple[Value, ...]

    def infer(self) -> TensorType:
        if self.update.rank != self.x.rank or len(self.starts) != self.x.rank:
            raise ShapeError(f"dynamic_update_slice: {self.update.type} does not fit {self.x.type}")
        if any(u > extent for u, extent in zip(self.update.shape, self.x.shape, strict=True)):
            raise ShapeError(f"dynamic_update_slice: {self.update.type} is larger than {self.x.type}")
        if self.update.dtype is not self.x.dtype:
            raise DTypeError(f"dynamic_update_slice: {self.update.type} into {self.x.type}")
        return self.x.type


class Concatenate(Op):
    name: ClassVar[str] = "stablehlo.concatenate"
    inputs: tuple[Value, ...]
    dimension: int

    def infer(self) -> TensorType:
        if not self.inputs:
            raise ArgumentError("cannot join an empty list of tensors", help="give at least one tensor")
        first = self.inputs[0]
        axis = self.dimension
        if not 0 <= axis < max(first.rank, 1):
            raise IndexOutOfRange(f"dimension {axis} is out of range for {first.type}")
        for i, other in enumerate(self.inputs[1:], 1):
            if other.dtype is not first.dtype:
                raise DTypeError(f"cannot join {first.type} and {other.type}: their dtypes differ")
            if other.rank != first.rank or other.shape[:axis] != first.shape[:axis] or other.shape[axis + 1 :] != first.shape[axis + 1 :]:
                raise ShapeError(
                    f"cannot join {first.type} and {other.type} (tensor {i}) along dimension {axis}",
                    help="all dimensions but that one must agree",
                )
        joined = sum(each.shape[axis] for each in self.inputs)
        return TensorType(first.dtype, (*first.shape[:axis], joined, *first.shape[axis + 1 :]))


class Pad(Op):
    """Negative edges cut; `interior_padding` puts that many between neighbours."""

    name: ClassVar[str] = "stablehlo.pad"
    x: Value
    padding_value: Value
    edge_padding_low: Ints
    edge_padding_high: Ints
    interior_padding: Ints

    def infer(self) -> TensorType:
        if self.padding_value.rank or self.padding_value.dtype is not self.x.dtype:
            raise DTypeError(f"pad: {self.padding_value.type} cannot fill {self.x.type}")
        shape = []
        for axis, (extent, low, high, interior) in enumerate(
            zip(self.x.shape, self.edge_padding_low, self.edge_padding_high, self.interior_padding, strict=True)
        ):
            size = low + high + extent + max(extent - 1, 0) * interior
            if size < 0:
                raise ShapeError(f"padding {low}, {high} would make dimension {axis} of {self.x.type} negative ({size})")
            shape.append(size)
        return TensorType(self.x.dtype, tuple(shape))


class Reverse(Op):
    name: ClassVar[str] = "stablehlo.reverse"
    x: Value
    dimensions: Ints

    def infer(self) -> TensorType:
        if any(not 0 <= d < self.x.rank for d in self.dimensions) or len(set(self.dimensions)) != len(self.dimensions):
            raise ShapeError(f"flip: dimensions {list(self.dimensions)} are not distinct dimensions of {self.x.type}")
        return self.x.type


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
        numbers, indices = self.dimension_numbers, self.start_indices
        if indices.dtype.kind != "int":
            raise DTypeError(f"indices must be integers, not {indices.dtype.name}", help="convert them with .long()")
        batch = [e for axis, e in enumerate(indices.shape) if axis != numbers.index_vector_dim]
        dropped = {*numbers.collapsed_slice_dims, *numbers.operand_batching_dims}
        offsets = [size for axis, size in enumerate(self.slice_sizes) if axis not in dropped]
        for axis, (size, extent) in enumerate(zip(self.slice_sizes, self.x.shape, strict=True)):
            if size > extent:
                raise IndexOutOfRange(f"gather: a slice of {size} exceeds dimension {axis} of {self.x.type}")
        shape: list[int] = []
        for axis in range(len(batch) + len(offsets)):
            shape.append(offsets.pop(0) if axis in numbers.offset_dims else batch.pop(0))
        return TensorType(self.x.dtype, tuple(shape))


class ScatterDimensions(NamedTuple):
    """StableHLO's scatter dimension numbers, by its names."""

    update_window_dims: Ints
    inserted_window_dims: Ints
    scatter_dims_to_operand_dims: Ints
    index_vector_dim: int
    input_batching_dims: Ints = ()
    scatter_indices_batching_dims: Ints = ()


class Scatter(Op):
    """x with `updates` combined in by `body` (old, new) at computed places; places outside are left out."""

    name: ClassVar[str] = "stablehlo.scatter"
    inputs: tuple[Value, ...]
    scatter_indices: Value
    updates: tuple[Value, ...]
    scatter_dimension_numbers: ScatterDimensions
    indices_are_sorted: bool
    unique_indices: bool
    body: Function

    def infer(self) -> tuple[TensorType, ...]:
        if self.scatter_indices.dtype.kind != "int":
            raise DTypeError(f"indices must be integers, not {self.scatter_indices.dtype.name}")
        for x, update in zip(self.inputs, self.updates, strict=True):
            if x.dtype is not update.dtype:
                raise DTypeError(f"scatter: {update.type} into {x.type}: their dtypes differ")
        return tuple(each.type for each in self.inputs)


def array(value: Any, dtype: DType) -> np.ndarray:
    """A NumPy array of exactly this dtype, or an error if the number does not fit it."""
    with np.errstate(all="ignore"):
        if dtype.kind == "bool":
            return np.asarray(value).astype(bool)
        if dtype.kind == "int" and isinstance(value, (float, complex)):
            raise DTypeError(f"the number {value} does not fit {dtype.name}")
        try:
            return np.asarray(value).astype(dtype.numpy) if dtype.kind != "int" else np.array(value, dtype.numpy)
        except OverflowError:
            # PyTorch wraps a Python integer into a narrower dtype.
            return np.asarray(np.asarray(value).astype(np.int64)).astype(dtype.numpy)


index_dtype = dtypes.int64
