"""FlatIR ops that compute across elements: contractions, reductions, sorting, control flow, library calls."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, NamedTuple

from tenfold.base import dtypes
from tenfold.base.errors import ArgumentError, DTypeError, IndexOutOfRange, ShapeError
from tenfold.flat.data_ops import Ints
from tenfold.flat.ir import Function, Op, TensorType, Value

BOOL = TensorType(dtypes.bool_, ())


class DotDimensions(NamedTuple):
    """StableHLO's dot dimension numbers, by its names."""

    lhs_batching_dimensions: Ints
    rhs_batching_dimensions: Ints
    lhs_contracting_dimensions: Ints
    rhs_contracting_dimensions: Ints


class DotGeneral(Op):
    """Sum of products over contracting dimensions. The result has batch, then x's, then y's free dimensions.

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
                f"cannot multiply {x.type} and {y.type}: their dtypes differ",
                help="convert one with .to(dtype)",
            )
        for value, dims in ((x, numbers[0] + numbers[2]), (y, numbers[1] + numbers[3])):
            if len(set(dims)) != len(dims) or any(not 0 <= d < value.rank for d in dims):
                raise IndexOutOfRange(
                    f"dot_general: {list(dims)} are not distinct dimensions of {value.type}"
                )
        for what, xs, ys in (("contracted", numbers[2], numbers[3]), ("batch", numbers[0], numbers[1])):
            if len(xs) != len(ys):
                raise ShapeError(
                    f"cannot multiply {x.type} and {y.type}: "
                    f"{len(xs)} {what} dimensions of one and {len(ys)} of the other"
                )
            for i, j in zip(xs, ys, strict=True):
                if x.shape[i] != y.shape[j]:
                    raise ShapeError(
                        f"cannot multiply {x.type} and {y.type}: "
                        f"{what} dimensions {x.shape[i]} and {y.shape[j]} differ",
                        help="transpose or reshape one operand so that the inner dimensions agree",
                    )
        free_x = [e for i, e in enumerate(x.shape) if i not in numbers[0] and i not in numbers[2]]
        free_y = [e for j, e in enumerate(y.shape) if j not in numbers[1] and j not in numbers[3]]
        return TensorType(self.dtype, tuple([x.shape[i] for i in numbers[0]] + free_x + free_y))


class Reduce(Op):
    """Fold `inputs` over `dimensions` by `body` (accumulators, elements) from `inits`."""

    name: ClassVar[str] = "stablehlo.reduce"
    inputs: tuple[Value, ...]
    inits: tuple[Value, ...]
    dimensions: Ints
    body: Function

    def infer(self) -> tuple[TensorType, ...]:
        check_fold(self, self.inputs, self.inits, self.body)
        first = self.inputs[0]
        for d in self.dimensions:
            if not 0 <= d < first.rank:
                raise IndexOutOfRange(f"dimension {d} is out of range for {first.type}")
        if len(set(self.dimensions)) != len(self.dimensions):
            raise ShapeError(f"reduce: a dimension appears twice in {list(self.dimensions)}")
        kept = tuple([e for axis, e in enumerate(first.shape) if axis not in self.dimensions])
        return tuple([TensorType(init.dtype, kept) for init in self.inits])


def check_fold(op: Op, inputs: Sequence[Value], inits: Sequence[Value], body: Function) -> None:
    """Check what is folded: one initial scalar for each input, of its dtype; inputs of one shape."""
    name = op.name.split(".")[1]
    if not inputs or len(inputs) != len(inits):
        raise ArgumentError(f"{name}: {len(inits)} initial values for {len(inputs)} tensors")
    for x, init in zip(inputs, inits, strict=True):
        if x.shape != inputs[0].shape:
            raise ShapeError(
                f"{name}: tensors folded together differ in shape: {inputs[0].type} and {x.type}"
            )
        if init.type is not TensorType(x.dtype, ()):
            raise DTypeError(f"{name}: {init.type} cannot be the initial value for {x.type}")
    scalars = [each.type for each in inits]
    body.expect(f"{name}: its body", scalars * 2, scalars)


class Sort(Op):
    """Sort `inputs` together along `dimension`; `comparator` takes a pair of elements of each input."""

    name: ClassVar[str] = "stablehlo.sort"
    inputs: tuple[Value, ...]
    dimension: int
    is_stable: bool
    comparator: Function

    def infer(self) -> tuple[TensorType, ...]:
        if not self.inputs:
            raise ArgumentError("sort: there is nothing to sort")
        first = self.inputs[0]
        if any(operand.shape != first.shape for operand in self.inputs):
            raise ShapeError("sort: the tensors sorted together differ in shape")
        if not 0 <= self.dimension < first.rank:
            raise IndexOutOfRange(f"sort: dimension {self.dimension} is out of range for {first.type}")
        pairs = [TensorType(operand.dtype, ()) for operand in self.inputs for _ in range(2)]
        self.comparator.expect("sort: its comparator", pairs, [BOOL])
        return tuple([operand.type for operand in self.inputs])


class TopK(Op):
    """The k largest of the last dimension, largest first, and their places as int32."""

    name: ClassVar[str] = "chlo.top_k"
    x: Value
    k: int

    def infer(self) -> tuple[TensorType, ...]:
        if not self.x.rank or not 0 <= self.k <= self.x.shape[-1]:
            raise IndexOutOfRange(f"k={self.k} is out of range for {self.x.type}")
        if self.x.dtype.kind not in ("int", "float"):
            raise DTypeError(
                f"top_k is not defined for {self.x.dtype.name}", help="it takes int, float tensors"
            )
        shape = (*self.x.shape[:-1], self.k)
        return TensorType(self.x.dtype, shape), TensorType(dtypes.int32, shape)


class While(Op):
    """`carry = body(carry)` while `condition(carry)`; both functions see nothing but the carry."""

    name: ClassVar[str] = "stablehlo.while"
    carry: tuple[Value, ...]
    condition: Function
    body: Function

    def infer(self) -> tuple[TensorType, ...]:
        types = tuple([value.type for value in self.carry])
        self.condition.expect("while: the condition", types, [BOOL])
        self.body.expect("while: the body", types, types)
        return types


class Case(Op):
    """The results of `branches[index]` on `arguments`; an index out of range takes the last branch."""

    name: ClassVar[str] = "stablehlo.case"
    index: Value
    arguments: tuple[Value, ...]
    branches: tuple[Function, ...]

    def infer(self) -> tuple[TensorType, ...]:
        if not self.branches:
            raise ArgumentError("case: there are no branches")
        types = [argument.type for argument in self.arguments]
        first = tuple([result.type for result in self.branches[0].results])
        for i, other in enumerate(self.branches):
            found = tuple([result.type for result in other.results])
            if found != first:
                raise ShapeError(
                    f"the branches give different types: {list(first)} and {list(found)}",
                    help="make every branch return the same shapes and dtypes",
                )
            other.expect(f"case: branch {i}", types, first)
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
        if self.state.dtype is not dtypes.uint64 or self.state.shape not in ((2,), (3,)):
            raise DTypeError(f"the state of Philox is u64[2] or u64[3], not {self.state.type}")
        return self.state.type, TensorType(self.dtype, self.shape)


FFT_TYPES = {
    "FFT": (dtypes.complex64, dtypes.complex128),
    "IFFT": (dtypes.complex64, dtypes.complex128),
    "RFFT": (dtypes.float32, dtypes.float64),
    "IRFFT": (dtypes.complex64, dtypes.complex128),
}


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
        if self.fft_type not in FFT_TYPES:
            raise ArgumentError(f"fft: {self.fft_type!r} is not one of {', '.join(FFT_TYPES)}")
        wants = FFT_TYPES[self.fft_type]
        if x.dtype not in wants:
            names = " and ".join(want.name for want in wants)
            raise DTypeError(f"{self.fft_type.lower()} takes {names} tensors, not {x.dtype.name}")
        expected = list(self.fft_length)
        if self.fft_type == "IRFFT" and expected[-1]:
            expected[-1] = expected[-1] // 2 + 1
        if list(x.shape[-len(expected) :]) != expected:
            raise ShapeError(
                f"{self.fft_type.lower()} of length {list(self.fft_length)} does not fit {x.type}"
            )
        if self.fft_type == "RFFT":
            return TensorType(x.dtype.to_complex(), (*x.shape[:-1], self.fft_length[-1] // 2 + 1))
        if self.fft_type == "IRFFT":
            return TensorType(x.dtype.to_real(), (*x.shape[:-1], self.fft_length[-1]))
        return x.type


def _square(op: Op, x: Value) -> None:
    if x.rank < 2 or x.shape[-1] != x.shape[-2]:
        raise ShapeError(
            f"{op.name.split('.')[1]} needs square matrices in the last two dimensions, not {x.type}"
        )
    if x.dtype.kind not in ("float", "complex"):
        raise DTypeError(
            f"{op.name.split('.')[1]} is not defined for {x.dtype.name}",
            help="it takes float, complex tensors",
        )


class Cholesky(Op):
    name: ClassVar[str] = "stablehlo.cholesky"
    x: Value
    lower: bool

    def infer(self) -> TensorType:
        _square(self, self.x)
        return self.x.type


TRANSPOSES = ("NO_TRANSPOSE", "TRANSPOSE", "ADJOINT")


class TriangularSolve(Op):
    """X of a @ X = b (or X @ a = b), for triangular a; `transpose_a`: NO_TRANSPOSE, TRANSPOSE or ADJOINT."""

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
        side = -2 if self.left_side else -1
        if (
            self.b.shape[:-2] != self.a.shape[:-2]
            or self.b.rank < 2
            or self.b.shape[side] != self.a.shape[-1]
        ):
            raise ShapeError(f"triangular_solve: {self.b.type} does not fit {self.a.type}")
        if self.transpose_a not in TRANSPOSES:
            raise ArgumentError(
                f"triangular_solve: {self.transpose_a!r} is not one of {', '.join(TRANSPOSES)}"
            )
        return self.b.type


# What XLA calls Python functions by. In `call_target_name`, the function's name and arguments follow.
PYTHON = "xla_ffi_python_cpu_callback"


class CustomCall(Op):
    """A call of a function that the engine knows by name; `aliases`: results written into which inputs.

    `by_columns` says of each input, and then of each result, whether its matrices lie in memory by columns,
    or names its dimensions from the nearest in memory to the farthest. `backend_config` has the call's named
    options, or is a text for calls that XLA itself knows.
    """

    name: ClassVar[str] = "stablehlo.custom_call"
    inputs: tuple[Value, ...]
    call_target_name: str
    result_types: tuple[TensorType, ...]
    backend_config: tuple[tuple[str, object], ...] | str
    aliases: tuple[tuple[int, int], ...]
    by_columns: tuple[bool | tuple[int, ...], ...]

    def infer(self) -> tuple[TensorType, ...]:
        if not self.call_target_name:
            raise ArgumentError("custom_call needs a target name")
        types = [*[each.type for each in self.inputs], *self.result_types]
        if len(self.by_columns) not in (0, len(types)):
            raise ArgumentError(f"custom_call: {len(self.by_columns)} layouts for {len(types)} tensors")
        for type, columns in zip(types, self.by_columns):
            if columns is True and type.rank < 2:
                raise ShapeError(f"custom_call: {type} is no matrix and has no columns")
        for out, operand in self.aliases:
            if not (0 <= out < len(self.result_types) and 0 <= operand < len(self.inputs)):
                raise IndexOutOfRange(
                    f"custom_call: there is no result {out} or no input {operand} to share memory"
                )
            if self.result_types[out] is not self.inputs[operand].type:
                raise ShapeError(
                    f"custom_call: result {out}, {self.result_types[out]}, "
                    f"cannot share the memory of input {operand}, {self.inputs[operand].type}"
                )
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
        if self.holds.type is not BOOL:
            raise DTypeError(f"check: the condition must be one bool, not {self.holds.type}")
        return self.x.type
