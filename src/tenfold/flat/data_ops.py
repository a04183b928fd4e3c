"""FlatIR ops that make or move data without arithmetic: constants, shape changes, slices."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from tenfold.base.dtypes import DType
from tenfold.base.errors import ArgumentError, DTypeError, IndexOutOfRange, NumberOutOfRange, ShapeError
from tenfold.flat.ir import Op, TensorType, Value

Ints = tuple[int, ...]


class Constant(Op):
    """A literal: `value` is a NumPy array of the dtype, small enough to be written into the program."""

    name: ClassVar[str] = "stablehlo.constant"
    value: np.ndarray
    dtype: DType

    def infer(self) -> TensorType:
        if self.value.dtype != self.dtype.numpy:
            raise DTypeError(f"constant: an array of {self.value.dtype} is not one of {self.dtype.name}")
        return TensorType(self.dtype, self.value.shape)


class Iota(Op):
    """Each element is its own place along `iota_dimension`."""

    name: ClassVar[str] = "stablehlo.iota"
    dtype: DType
    shape: Ints
    iota_dimension: int

    def infer(self) -> TensorType:
        if not 0 <= self.iota_dimension < len(self.shape):
            raise IndexOutOfRange(
                f"iota: dimension {self.iota_dimension} is out of range for {len(self.shape)} dimensions"
            )
        if self.dtype.kind == "bool":
            raise DTypeError("iota: bool does not count", help="count in integers and compare")
        return TensorType(self.dtype, self.shape)


class BroadcastInDim(Op):
    """Dimension i of x becomes dimension `broadcast_dimensions[i]` of the result; size 1 stretches."""

    name: ClassVar[str] = "stablehlo.broadcast_in_dim"
    x: Value
    shape: Ints
    broadcast_dimensions: Ints

    def infer(self) -> TensorType:
        dims = self.broadcast_dimensions
        if (
            len(dims) != self.x.rank
            or any(not 0 <= d < len(self.shape) for d in dims)
            or len(set(dims)) != len(dims)
        ):
            raise ShapeError(f"broadcast: dimensions {dims} do not place {self.x.type} in {list(self.shape)}")
        for extent, d in zip(self.x.shape, dims, strict=True):
            if extent not in (1, self.shape[d]):
                raise ShapeError(
                    f"cannot broadcast {self.x.type} to {list(self.shape)}: "
                    f"{extent} and {self.shape[d]} differ"
                )
        return TensorType(self.x.dtype, self.shape)


class Reshape(Op):
    name: ClassVar[str] = "stablehlo.reshape"
    x: Value
    shape: Ints

    def infer(self) -> TensorType:
        result = TensorType(self.x.dtype, self.shape)
        if result.numel != self.x.numel:
            raise ShapeError(
                f"cannot reshape {self.x.type} to {list(self.shape)}: "
                f"{self.x.numel} elements and {result.numel}",
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
                f"{list(self.permutation)} is not a permutation "
                f"of the {self.x.rank} dimensions of {self.x.type}",
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
        each_dimension(self, self.x, self.start_indices, self.limit_indices, self.strides)
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
    """`slice_sizes` elements of x from `starts` (integer scalars), moved inside where they overhang."""

    name: ClassVar[str] = "stablehlo.dynamic_slice"
    x: Value
    starts: tuple[Value, ...]
    slice_sizes: Ints

    def infer(self) -> TensorType:
        each_dimension(self, self.x, self.starts, self.slice_sizes)
        _scalar_starts(self, self.starts)
        if any(size > extent for size, extent in zip(self.slice_sizes, self.x.shape, strict=True)):
            raise ShapeError(f"dynamic_slice: sizes {list(self.slice_sizes)} exceed {self.x.type}")
        return TensorType(self.x.dtype, self.slice_sizes)


class DynamicUpdateSlice(Op):
    name: ClassVar[str] = "stablehlo.dynamic_update_slice"
    x: Value
    update: Value
    starts: tuple[Value, ...]

    def infer(self) -> TensorType:
        each_dimension(self, self.x, self.starts, self.update.shape)
        _scalar_starts(self, self.starts)
        if any(u > extent for u, extent in zip(self.update.shape, self.x.shape, strict=True)):
            raise ShapeError(f"dynamic_update_slice: {self.update.type} is larger than {self.x.type}")
        if self.update.dtype is not self.x.dtype:
            raise DTypeError(
                f"dynamic_update_slice: {self.update.type} into {self.x.type}: their dtypes differ"
            )
        return self.x.type


def each_dimension(op: Op, x: Value, *numbers: Sequence[Any]) -> None:
    """Check that there is one of each of these for each dimension of x."""
    for number in numbers:
        if len(number) != x.rank:
            raise ShapeError(
                f"{op.name.split('.')[1]}: {len(number)} numbers "
                f"for the {x.rank} dimensions of {x.type}: {list(number)}"
            )


def _scalar_starts(op: Op, starts: tuple[Value, ...]) -> None:
    for each in starts:
        if each.dtype.kind != "int" or each.rank or each.dtype is not starts[0].dtype:
            raise DTypeError(
                f"{op.name.split('.')[1]}: the starts must be integers of one dtype, not "
                + ", ".join(str(start.type) for start in starts)
            )


class Concatenate(Op):
    name: ClassVar[str] = "stablehlo.concatenate"
    inputs: tuple[Value, ...]
    dimension: int

    def infer(self) -> TensorType:
        if not self.inputs:
            raise ArgumentError("cannot join an empty list of tensors", help="give at least one tensor")
        first = self.inputs[0]
        axis = self.dimension
        if not 0 <= axis < first.rank:
            hint = None if first.rank else "unsqueeze zero-dimensional tensors, or stack them"
            raise IndexOutOfRange(f"dimension {axis} is out of range for {first.type}", help=hint)
        for i, other in enumerate(self.inputs[1:], 1):
            if other.dtype is not first.dtype:
                raise DTypeError(f"cannot join {first.type} and {other.type}: their dtypes differ")
            if (
                other.rank != first.rank
                or other.shape[:axis] != first.shape[:axis]
                or other.shape[axis + 1 :] != first.shape[axis + 1 :]
            ):
                raise ShapeError(
                    f"cannot join {first.type} and {other.type} (tensor {i}) along dimension {axis}",
                    help="all dimensions but that one must agree",
                )
        joined = sum(operand.shape[axis] for operand in self.inputs)
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
        each_dimension(self, self.x, self.edge_padding_low, self.edge_padding_high, self.interior_padding)
        if min(self.interior_padding, default=0) < 0:
            raise ShapeError(f"pad: interior padding {list(self.interior_padding)} is negative")
        shape = []
        for axis, (extent, low, high, interior) in enumerate(
            zip(
                self.x.shape,
                self.edge_padding_low,
                self.edge_padding_high,
                self.interior_padding,
                strict=True,
            )
        ):
            size = low + high + extent + max(extent - 1, 0) * interior
            if size < 0:
                raise ShapeError(
                    f"padding {low}, {high} would make dimension {axis} of {self.x.type} negative ({size})"
                )
            shape.append(size)
        return TensorType(self.x.dtype, tuple(shape))


class Reverse(Op):
    name: ClassVar[str] = "stablehlo.reverse"
    x: Value
    dimensions: Ints

    def infer(self) -> TensorType:
        if any(not 0 <= d < self.x.rank for d in self.dimensions) or len(set(self.dimensions)) != len(
            self.dimensions
        ):
            raise ShapeError(
                f"flip: dimensions {list(self.dimensions)} are not distinct dimensions of {self.x.type}"
            )
        return self.x.type


def array(value: Any, dtype: DType) -> np.ndarray:
    """A NumPy array of exactly this dtype, or an error if the number does not fit it. Programs have the same
    few numbers again and again, so those share their arrays."""
    kind = type(value)
    if kind is int or kind is bool or (kind is float and value):  # -0.0 equals 0.0
        return _shared(value, dtype)
    return _array(value, dtype)


@functools.lru_cache(1024, typed=True)
def _shared(value: Any, dtype: DType) -> np.ndarray:
    shared = _array(value, dtype)
    shared.setflags(write=False)
    return shared


def _array(value: Any, dtype: DType) -> np.ndarray:
    with np.errstate(all="ignore"):
        if dtype.kind == "bool":
            return np.asarray(value).astype(bool)
        misfit = complex if dtype.kind == "float" else (float, complex)
        if not dtype.is_complex and isinstance(value, misfit):
            raise DTypeError(f"the number {value} does not fit {dtype.name}")
        try:
            return (
                np.asarray(value).astype(dtype.numpy) if dtype.kind != "int" else np.array(value, dtype.numpy)
            )
        except OverflowError:
            # PyTorch wraps a Python integer into a narrower dtype.
            wide = np.asarray(value)
            if wide.dtype == object:
                raise NumberOutOfRange(f"the number {value} does not fit {dtype.name}") from None
            return np.asarray(wide.astype(np.int64)).astype(dtype.numpy)
