"""FlatIR ops that compute across elements: contractions, windows, reductions, sorting, control flow, library calls."""

from __future__ import annotations

from typing import ClassVar, NamedTuple

from tenfold import dtypes
from tenfold.errors import ArgumentError, DTypeError, IndexOutOfRange, ShapeError
from tenfold.flat.graph import Function, Op, TensorType, Value
from tenfold.flat.movement import Ints

Pairs = tuple[tuple[int, int], ...]


class DotDimensions(NamedTuple):
    """StableHLO's dot dimension numbers, by its names."""

    lhs_batching_dimensions: Ints
    rhs_batching_dimensions: Ints
    lhs_contracting_dimensions: Ints
    rhs_contracting_dimensions: Ints


class DotGeneral(Op):
    """Sum of products over the contracting dimensions; result: batch, then x's free, then y's free dimensions.

    `dtype` is the result's: half-precision operands may be summed in float32 and not rounded.
    """

    name: ClassVar[str] = "stablehlo.dot_general"
    x: Value
    y: Value
    dot_dimension_numbers: DotDimensions
    dtype: dtypes.DType

    def infer(self) -> TensorType:
        numbers, x, y = self.dot_dimension_numbers, self.x, self.y
        if x.dtype is not y.dtype:
            raise DTypeError(
                f"cannot multiply {x.type} and {y.type}: their dtypes differ", help="convert one with .to(dtype)"
            )
        for what, xs, ys in (("contracted", numbers[2], numbers[3]), ("batch", numbers[0], numbers[1])):
            for i, j in zip(xs, ys, strict=True):
                if x.shape[i] != y.shape[j]:
                    raise ShapeError(
                        f"cannot multiply {x.type} and {y.type}: {what} dimensions {x.shape[i]} and {y.shape[j]} differ",
                        help="transpose or reshape one operand so that the inner dimensions agree",
                    )
        free_x = [e for i, e in enumerate(x.shape) if i not in numbers[0] and i not in numbers[2]]
        free_y = [e for j, e in enumerate(y.shape) if j not in numbers[1] and j not in numbers[3]]
        return TensorType(self.dtype, tuple([x.shape[i] for i in numbers[0]] + free_x + free_y))


class ConvDimensions(NamedTuple):
    """StableHLO's convolution dimension numbers, by its names."""

    input_batch_dimension: int
    input_feature_dimension: int
    input_spatial_dimensions: Ints
    kernel_input_feature_dimension: int
    kernel_output_feature_dimension: int
    kernel_spatial_dimensions: Ints
    output_batch_dimension: int
    output_feature_dimension: int
    output_spatial_dimensions: Ints


class Convolution(Op):
    name: ClassVar[str] = "stablehlo.convolution"
    x: Value
    kernel: Value
    window_strides: Ints
    padding: Pairs
    lhs_dilation: Ints
    rhs_dilation: Ints
    window_reversal: tuple[bool, ...]
    dimension_numbers: ConvDimensions
    feature_group_count: int
    batch_group_count: int

    def infer(self) -> TensorType:
        x, kernel, numbers = self.x, self.kernel, self.dimension_numbers
        if x.dtype is not kernel.dtype:
            raise DTypeError(f"cannot convolve {x.type} with {kernel.type}: their dtypes differ")
        features, taken = x.shape[numbers.input_feature_dimension], kernel.shape[numbers.kernel_input_feature_dimension]
        if features != taken * self.feature_group_count:
            raise ShapeError(
                f"cannot convolve {x.type} with {kernel.type}: the input has {features} channels, the kernel takes "
                f"{taken * self.feature_group_count}",
                help="the kernel's channels times groups must be the input's channels",
            )
        out = kernel.shape[numbers.kernel_output_feature_dimension]
        if out % self.feature_group_count or out % self.batch_group_count:
            raise ShapeError(f"convolution: {out} output channels do not divide into {self.feature_group_count} groups")
        shape = [0] * x.rank
        shape[numbers.output_batch_dimension] = x.shape[numbers.input_batch_dimension] // self.batch_group_count
        shape[numbers.output_feature_dimension] = out
        for i, axis in enumerate(numbers.output_spatial_dimensions):
            extent = dilated(x.shape[numbers.input_spatial_dimensions[i]], self.lhs_dilation[i]) + sum(self.padding[i])
            window = dilated(kernel.shape[numbers.kernel_spatial_dimensions[i]], self.rhs_dilation[i])
            shape[axis] = windows(extent, window, self.window_strides[i])
        return TensorType(x.dtype, tuple(shape))


def dilated(extent: int, dilation: int) -> int:
    return (extent - 1) * dilation + 1 if extent else 0


def windows(extent: int, window: int, stride: int) -> int:
    return 0 if extent < window else (extent - window) // stride + 1


class Reduce(Op):
    """Fold `inputs` over `dimensions` by `body` (accumulators, elements) from `inits`."""

    name: ClassVar[str] = "stablehlo.reduce"
    inputs: tuple[Value, ...]
    inits: tuple[Value, ...]
    dimensions: Ints
    body: Function

    def infer(self) -> tuple[TensorType, ...]:
        first = self.inputs[0]
        for d in self.dimensions:
            if not 0 <= d < first.rank:
                raise IndexOutOfRange(f"dimension {d} is out of range for {first.type}")
        kept = tuple([e for axis, e in enumerate(first.shape) if axis not in self.dimensions])
        return tuple([TensorType(each.dtype, kept) for each in self.inits])


class ReduceWindow(Op):
    name: ClassVar[str] = "stablehlo.reduce_window"
    inputs: tuple[Value, ...]
    inits: tuple[Value, ...]
    window_dimensions: Ints
    window_strides: Ints
    base_dilations: Ints
    window_dilations: Ints
    padding: Pairs
    body: Function

    def infer(self) -> tuple[TensorType, ...]:
        shape = []
        for i, extent in enumerate(self.inputs[0].shape):
            padded = dilated(extent, self.base_dilations[i]) + sum(self.padding[i])
            window = dilated(self.window_dimensions[i], self.window_dilations[i])
            shape.append(windows(padded, window, self.window_strides[i]))
        return tuple([TensorType(each.dtype, tuple(shape)) for each in self.inits])


class SelectAndScatter(Op):
    """The gradient of a max-pool: in each window `select` picks a place, into which `scatter` folds the source."""

    name: ClassVar[str] = "stablehlo.select_and_scatter"
    x: Value
    source_: Value
    init: Value
    window_dimensions: Ints
    window_strides: Ints
    padding: Pairs
    select: Function
    scatter: Function

    def infer(self) -> TensorType:
        return self.x.type


class Sort(Op):
    """Sort `inputs` together along `dimension`; `comparator` takes a pair of elements of each input."""

    name: ClassVar[str] = "stablehlo.sort"
    inputs: tuple[Value, ...]
    dimension: int
    is_stable: bool
    comparator: Function

    def infer(self) -> tuple[TensorType, ...]:
        if any(each.shape != self.inputs[0].shape for each in self.inputs):
            raise ShapeError("sort: the tensors sorted together differ in shape")
        return tuple([each.type for each in self.inputs])


class TopK(Op):
    """The k largest of the last dimension, largest first, and their places as int32."""

    name: ClassVar[str] = "chlo.top_k"
    x: Value
    k: int

    def infer(self) -> tuple[TensorType, ...]:
        if not self.x.rank or not 0 <= self.k <= self.x.shape[-1]:
            raise IndexOutOfRange(f"k={self.k} is out of range for {self.x.type}")
        shape = (*self.x.shape[:-1], self.k)
        return TensorType(self.x.dtype, shape), TensorType(dtypes.int32, shape)


class While(Op):
    """`carry = body(carry)` while `condition(carry)`; both functions see nothing but the carry."""

    name: ClassVar[str] = "stablehlo.while"
    carry: tuple[Value, ...]
    condition: Function
    body: Function

    def infer(self) -> tuple[TensorType, ...]:
        before = tuple([each.type for each in self.carry])
        after = tuple([each.type for each in self.body.results])
        if before != after:
            raise ShapeError(f"while: the body turns {list(before)} into {list(after)}", help="keep shapes and dtypes")
        if [each.type for each in self.condition.results] != [TensorType(dtypes.bool_, ())]:
            raise DTypeError("while: the condition must give one bool")
        return before


class Case(Op):
    """The results of `branches[index]` on `arguments`; an index out of range takes the last branch."""

    name: ClassVar[str] = "stablehlo.case"
    index: Value
    arguments: tuple[Value, ...]
    branches: tuple[Function, ...]

    def infer(self) -> tuple[TensorType, ...]:
        first = tuple([each.type for each in self.branches[0].results])
        for other in self.branches[1:]:
            found = tuple([each.type for each in other.results])
            if found != first:
                raise ShapeError(
                    f"the branches give different types: {list(first)} and {list(found)}",
                    help="make every branch return the same shapes and dtypes",
                )
        if self.index.type is not TensorType(dtypes.int32, ()):
            raise DTypeError(f"case: the index must be i32[], not {self.index.type}")
        return first


class RngBitGenerator(Op):
    """A new state and random bits, by the Philox algorithm."""

    name: ClassVar[str] = "stablehlo.rng_bit_generator"
    state: Value
    dtype: dtypes.DType
    shape: Ints

    def infer(self) -> tuple[TensorType, ...]:
        if self.dtype.kind != "int" or self.dtype.is_signed:
            raise DTypeError(f"random bits come as unsigned integers, not {self.dtype.name}")
        return self.state.type, TensorType(self.dtype, self.shape)


class Fft(Op):
    """`fft_type` is FFT, IFFT, RFFT or IRFFT, over the last len(fft_length) dimensions."""

    name: ClassVar[str] = "stablehlo.fft"
    x: Value
    fft_type: str
    fft_length: Ints

    def infer(self) -> TensorType:
        x = self.x
        if not 1 <= len(self.fft_length) <= min(3, x.rank):
            raise ShapeError(f"fft: {len(self.fft_length)} transformed dimensions do not fit {x.type}")
        wants = "float" if self.fft_type == "RFFT" else "complex"
        if x.dtype.kind != wants:
            raise DTypeError(f"{self.fft_type.lower()} takes {wants} tensors, not {x.dtype.name}")
        if self.fft_type == "RFFT":
            return TensorType(x.dtype.to_complex(), (*x.shape[:-1], self.fft_length[-1] // 2 + 1))
        if self.fft_type == "IRFFT":
            return TensorType(x.dtype.to_real(), (*x.shape[:-1], self.fft_length[-1]))
        return x.type


def _square(op: Op, x: Value) -> None:
    if x.rank < 2 or x.shape[-1] != x.shape[-2]:
        raise ShapeError(f"{op.name.split('.')[1]} needs square matrices in the last two dimensions, not {x.type}")


class Cholesky(Op):
    name: ClassVar[str] = "stablehlo.cholesky"
    x: Value
    lower: bool

    def infer(self) -> TensorType:
        _square(self, self.x)
        return self.x.type


class TriangularSolve(Op):
    """The X of a @ X = b (or X @ a = b), for triangular a; `transpose_a`: NO_TRANSPOSE, TRANSPOSE or ADJOINT."""

    name: ClassVar[str] = "stablehlo.triangular_solve"
    a: Value
    b: Value
    left_side: bool
    lower: bool
    unit_diagonal: bool
    transpose_a: str

    def infer(self) -> TensorType:
        _square(self, self.a)
        if self.a.dtype is not self.b.dtype:
            raise DTypeError(f"triangular_solve: {self.a.type} and {self.b.type} differ in dtype")
        if self.b.rank != self.a.rank or self.b.shape[-2 if self.left_side else -1] != self.a.shape[-1]:
            raise ShapeError(f"triangular_solve: {self.b.type} does not fit {self.a.type}")
        return self.b.type


class CustomCall(Op):
    """A call of a function that the engine knows by name."""

    name: ClassVar[str] = "stablehlo.custom_call"
    inputs: tuple[Value, ...]
    call_target_name: str
    result_types: tuple[TensorType, ...]
    backend_config: tuple[tuple[str, object], ...]
    aliases: tuple[tuple[int, int], ...]

    def infer(self) -> tuple[TensorType, ...]:
        if not self.call_target_name:
            raise ArgumentError("custom_call needs a target name")
        return self.result_types


class Check(Op):
    """x itself; but if `holds` is false when the program runs, reading any of its results raises `message`.

    It has no counterpart in StableHLO: the emitter passes x on and joins the conditions into one more result.
    """

    name: ClassVar[str] = "tenfold.check"
    x: Value
    holds: Value
    error: type[Exception]
    message: str

    def infer(self) -> TensorType:
        if self.holds.type is not TensorType(dtypes.bool_, ()):
            raise DTypeError(f"check: the condition must be one bool, not {self.holds.type}")
        return self.x.type
