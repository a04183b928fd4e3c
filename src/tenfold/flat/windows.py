"""FlatIR ops that slide a window: convolution, reduce_window, select_and_scatter."""

from __future__ import annotations

from typing import ClassVar, NamedTuple

from tenfold.base.errors import ArgumentError, DTypeError, ShapeError
from tenfold.flat.data_ops import Ints, each_dimension
from tenfold.flat.ir import Function, Op, TensorType, Value
from tenfold.flat.structured import BOOL, check_fold

Pairs = tuple[tuple[int, int], ...]


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
    """Sums of products of a kernel with the windows of x, which `lhs_dilation` spreads and `padding` widens.

    Padding that cuts is refused: XLA on the CPU takes (-1, 1) for none. The builder cuts beforehand.
    """

    name: ClassVar[str] = "stablehlo.convolution"
    cuts: ClassVar[bool] = False  # whether padding may
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
        if x.rank < 2 or kernel.rank != x.rank:
            raise ShapeError(
                f"cannot convolve {x.type} with {kernel.type}: they must have equally many dimensions"
            )
        for first, second, spatial in (numbers[:3], numbers[3:6], numbers[6:]):
            if sorted([first, second, *spatial]) != list(range(x.rank)):
                raise ShapeError(
                    f"convolution: {[first, second, *spatial]} do not name {x.rank} dimensions once each"
                )
        settings = (
            self.window_strides,
            self.padding,
            self.lhs_dilation,
            self.rhs_dilation,
            self.window_reversal,
        )
        if any(len(setting) != x.rank - 2 for setting in settings):
            raise ShapeError(
                f"convolution: strides, padding, dilations and reversal must have {x.rank - 2} elements"
            )
        check_positive(self, self.window_strides, self.lhs_dilation, self.rhs_dilation)
        if not self.cuts and any(min(pair) < 0 for pair in self.padding):
            raise ArgumentError(
                f"convolution: padding {list(self.padding)} is negative", help="cut the input by a pad"
            )
        check_positive(self, tuple([kernel.shape[d] for d in numbers.kernel_spatial_dimensions]))
        self._check_groups()
        shape = [0] * x.rank
        shape[numbers.output_batch_dimension] = (
            x.shape[numbers.input_batch_dimension] // self.batch_group_count
        )
        shape[numbers.output_feature_dimension] = kernel.shape[numbers.kernel_output_feature_dimension]
        for i, axis in enumerate(numbers.output_spatial_dimensions):
            extent = dilated(x.shape[numbers.input_spatial_dimensions[i]], self.lhs_dilation[i]) + sum(
                self.padding[i]
            )
            window = dilated(kernel.shape[numbers.kernel_spatial_dimensions[i]], self.rhs_dilation[i])
            shape[axis] = windows(extent, window, self.window_strides[i])
        return TensorType(x.dtype, tuple(shape))

    def _check_groups(self) -> None:
        x, kernel, numbers = self.x, self.kernel, self.dimension_numbers
        groups, batches = self.feature_group_count, self.batch_group_count
        if groups < 1 or batches < 1 or (groups > 1 and batches > 1):
            raise ArgumentError(
                f"convolution: {groups} feature groups and {batches} batch groups", help="one must be 1"
            )
        features, taken = (
            x.shape[numbers.input_feature_dimension],
            kernel.shape[numbers.kernel_input_feature_dimension],
        )
        if features != taken * groups:
            raise ShapeError(
                f"cannot convolve {x.type} with {kernel.type}: "
                f"the input has {features} channels, the kernel takes {taken * groups}",
                help="the kernel's channels times groups must be the input's channels",
            )
        out = kernel.shape[numbers.kernel_output_feature_dimension]
        if out % groups or out % batches:
            raise ShapeError(
                f"convolution: {out} output channels do not divide into {max(groups, batches)} groups"
            )
        batch = x.shape[numbers.input_batch_dimension]
        if batch % batches:
            raise ShapeError(f"convolution: a batch of {batch} does not divide into {batches} groups")


class CuttingConvolution(Convolution):
    """A convolution whose padding may cut x: for XLA on GPUs alone."""

    cuts = True


class ReduceWindow(Op):
    """Fold each window of `inputs`, spread by `base_dilations` and widened by `padding`, from `inits`."""

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
        check_fold(self, self.inputs, self.inits, self.body)
        first = self.inputs[0]
        settings = (self.window_dimensions, self.window_strides, self.base_dilations, self.window_dilations)
        each_dimension(self, first, *settings, self.padding)
        check_positive(self, *settings)
        shape = []
        for i, extent in enumerate(first.shape):
            padded = dilated(extent, self.base_dilations[i]) + sum(self.padding[i])
            check_padded(self, first, padded, i)
            window = dilated(self.window_dimensions[i], self.window_dilations[i])
            shape.append(windows(padded, window, self.window_strides[i]))
        return tuple([TensorType(init.dtype, tuple(shape)) for init in self.inits])


class SelectAndScatter(Op):
    """The gradient of a max-pool: in each window `select` picks where `scatter` folds in the source."""

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
        x, source = self.x, self.source_
        if source.dtype is not x.dtype or self.init.type is not TensorType(x.dtype, ()):
            raise DTypeError(
                f"select_and_scatter: {source.type} and {self.init.type} cannot go into {x.type}"
            )
        each_dimension(self, x, self.window_dimensions, self.window_strides, self.padding, source.shape)
        check_positive(self, self.window_dimensions, self.window_strides)
        counts = []
        for i, extent in enumerate(x.shape):
            check_padded(self, x, extent + sum(self.padding[i]), i)
            counts.append(
                windows(extent + sum(self.padding[i]), self.window_dimensions[i], self.window_strides[i])
            )
        if source.shape != tuple(counts):
            raise ShapeError(
                f"select_and_scatter: {source.type} has not one element for each of the {counts} windows"
            )
        scalar = TensorType(x.dtype, ())
        self.select.expect("select_and_scatter: its choice", [scalar] * 2, [BOOL])
        self.scatter.expect("select_and_scatter: its fold", [scalar] * 2, [scalar])
        return x.type


def dilated(extent: int, dilation: int) -> int:
    return (extent - 1) * dilation + 1 if extent else 0


def windows(extent: int, window: int, stride: int) -> int:
    """How many windows fit."""
    return 0 if extent < window or not extent else (extent - window) // stride + 1


def check_positive(op: Op, *settings: Ints) -> None:
    for setting in settings:
        if min(setting, default=1) < 1:
            raise ArgumentError(
                f"{op.name.split('.')[1]}: windows, strides and dilations start at 1: {list(setting)}"
            )


def check_padded(op: Op, x: Value, extent: int, axis: int) -> None:
    if extent < 0:
        raise ShapeError(
            f"{op.name.split('.')[1]}: padding would make dimension {axis} of {x.type} negative ({extent})"
        )
