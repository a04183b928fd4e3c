"""Ops that slide a window, against loops over their definition."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from tenfold import flat
from tenfold.base import dtypes
from tenfold.base.errors import ArgumentError, DTypeError, ShapeError, TenfoldError
from tenfold.flat.ir import TensorType, Value
from tenfold.flat.windows import ConvDimensions, Convolution, ReduceWindow, SelectAndScatter
from tests.flat.machine import Machine, check_inference, params, unchecked, verdict
from tests.flat.test_data_ops import padded

F32, I64 = dtypes.float32, dtypes.int64
NCHW = ConvDimensions(0, 1, (2, 3), 1, 0, (2, 3), 0, 1, (2, 3))
NHWC = ConvDimensions(0, 3, (1, 2), 2, 3, (0, 1), 0, 3, (1, 2))


def laid_out(a: np.ndarray, first: int, second: int, spatial: tuple[int, ...]) -> np.ndarray:
    """From batch, feature, spatial to the order that dimension numbers name."""
    return np.moveaxis(a, range(a.ndim), (first, second, *spatial))


def convolved(
    x, kernel, strides, padding, x_dilation, kernel_dilation, reversal, groups, batches
) -> np.ndarray:
    """x as batch, feature, spatial; kernel as out, in, spatial: a dot product for each window."""
    low, high = ([0, 0, *(pair[side] for pair in padding)] for side in (0, 1))
    x = padded(x, 0, low, high, [0, 0, *(d - 1 for d in x_dilation)])
    kernel = kernel[(..., *(slice(None, None, -1 if r else 1) for r in reversal))]
    kernel = padded(
        kernel, 0, [0] * kernel.ndim, [0] * kernel.ndim, [0, 0, *(d - 1 for d in kernel_dilation)]
    )
    counts = [
        max(0, (n - k) // s + 1) for n, k, s in zip(x.shape[2:], kernel.shape[2:], strides, strict=True)
    ]
    batch, out, inner = x.shape[0] // batches, kernel.shape[0], kernel.shape[1]
    result = np.zeros((batch, out, *counts), x.dtype)
    for b, o, *place in np.ndindex(result.shape):
        group = o // (out // groups)
        part = o // (out // batches)
        corner = [p * s for p, s in zip(place, strides, strict=True)]
        window = tuple(slice(c, c + k) for c, k in zip(corner, kernel.shape[2:], strict=True))
        seen = x[(part * batch + b, slice(group * inner, (group + 1) * inner), *window)]
        result[(b, o, *place)] = (seen * kernel[o]).sum()
    return result


SETTINGS = {
    "plain": {},
    "strides and padding": {"strides": (2, 1), "padding": ((1, 2), (0, 1))},
    "dilated input": {"x_dilation": (2, 1)},
    "dilated kernel": {"kernel_dilation": (1, 2)},
    "reversed": {"reversal": (True, False)},
    "groups": {"groups": 2},
    "batch groups": {"batches": 2},
    "no window fits": {"kernel_dilation": (5, 1)},
}


def test_convolutions_are_sums_of_products():
    random, machine = np.random.default_rng(0), Machine()
    for (name, given), (order, numbers) in itertools.product(
        SETTINGS.items(), {"NCHW": NCHW, "NHWC": NHWC}.items()
    ):
        options = {
            "strides": (1, 1),
            "padding": ((0, 0), (0, 0)),
            "x_dilation": (1, 1),
            "kernel_dilation": (1, 1),
            "reversal": (False, False),
            "groups": 1,
            "batches": 1,
        } | given
        x = random.integers(-3, 4, (2, 4, 5, 6)).astype(np.float32)
        kernel = random.integers(-3, 4, (6, 4 // options["groups"], 2, 3)).astype(np.float32)
        expected = laid_out(convolved(x, kernel, *options.values()), *numbers[6:])
        kernel_numbers = (
            numbers.kernel_output_feature_dimension,
            numbers.kernel_input_feature_dimension,
            numbers[5],
        )
        operands = laid_out(x, *numbers[:3]), laid_out(kernel, *kernel_numbers)
        settings = list(options.values())
        op = Convolution(*map(machine.input, operands), *settings[:5], numbers, *settings[5:])
        check_inference(op, dtype=False)
        machine.expect(f"{name}, {order}", op.result, expected)
    machine.run()


def test_negative_padding_cuts_before_the_convolution():
    random, machine = np.random.default_rng(6), Machine()
    x, kernel = (random.integers(-3, 4, shape).astype(np.float32) for shape in ((2, 4, 5, 6), (6, 4, 2, 3)))
    for padding, dilation in itertools.product(
        [((-1, 1), (0, -1)), ((0, -2), (-1, -1)), ((2, -1), (0, 0))], (1, 2)
    ):
        spread = (dilation, 1)
        value = flat.convolution(
            machine.input(x), machine.input(kernel), NCHW, padding=padding, x_dilation=spread, strides=(1, 2)
        )
        expected = convolved(x, kernel, (1, 2), padding, spread, ONES, FORWARD, 1, 1)
        machine.expect(f"{padding} {dilation}", value, expected)
    machine.run()


def test_convolutions_of_other_dtypes_and_ranks():
    machine = Machine()
    for dtype, rank in itertools.product((np.float16, np.float64, np.int32, np.complex64), (0, 1, 3)):
        spatial = tuple(range(2, rank + 2))
        numbers = ConvDimensions(0, 1, spatial, 1, 0, spatial, 0, 1, spatial)
        x = (np.arange(2 * 4**rank) % 5).reshape(1, 2, *[4] * rank).astype(dtype)
        kernel = np.ones((3, 2, *[3] * rank), dtype)
        ones, none = (1,) * rank, ((0, 0),) * rank
        op = Convolution(
            *map(machine.input, (x, kernel)), ones, none, ones, ones, (False,) * rank, numbers, 1, 1
        )
        check_inference(op, dtype=False)
        expected = (
            convolved(x, kernel, ones, none, ones, ones, (False,) * rank, 1, 1) if rank else x @ kernel.T
        )
        machine.expect(f"{rank} dimensions", op.result, expected)
    machine.run()


FOLDS = {"add": np.sum, "mul": np.prod, "max": np.max, "min": np.min, "and": np.all, "or": np.any}


def reduced(x: np.ndarray, kind: str, init, window, strides, padding, dilation, base_dilation) -> np.ndarray:
    low, high = zip(*padding, strict=True)
    x = padded(x, init, list(low), list(high), [d - 1 for d in base_dilation])
    spans = [(w - 1) * d + 1 for w, d in zip(window, dilation, strict=True)]
    counts = [max(0, (n - span) // s + 1) for n, span, s in zip(x.shape, spans, strides, strict=True)]
    result = np.zeros(counts, x.dtype)
    for place in np.ndindex(*counts):
        slices = zip(place, strides, spans, dilation, strict=True)
        result[place] = FOLDS[kind](x[tuple(slice(p * s, p * s + span, d) for p, s, span, d in slices)])
    return result


@pytest.mark.parametrize("kind", FOLDS)
def test_windows_are_reduced(kind):
    random, machine = np.random.default_rng(1), Machine()
    dtype = dtypes.bool_ if kind in ("and", "or") else F32
    for _ in range(6):
        x = random.integers(0 if dtype is dtypes.bool_ else 1, 2 if dtype is dtypes.bool_ else 4, (4, 5))
        x = x.astype(dtype.numpy)
        window, strides, dilation, base = (tuple(random.integers(1, 3, 2).tolist()) for _ in range(4))
        padding = tuple(map(tuple, random.integers(-1, 3, (2, 2)).tolist()))
        value = flat.reduce_window(machine.input(x), kind, window, strides, padding, dilation, base)
        check_inference(value.op)
        init = flat.identity(kind, dtype)
        machine.expect(kind, value, reduced(x, kind, init, window, strides, padding, dilation, base))
    machine.run()


def test_several_tensors_are_reduced_together():
    machine = Machine()
    scalars = [TensorType(F32, ()), TensorType(I64, ())]

    def largest(a: Value, i: Value, b: Value, j: Value) -> tuple[Value, Value]:
        return flat.where(a < b, b, a), flat.where(a < b, j, i)

    x, places = machine.input(np.float32([1, 5, 2, 7, 3])), machine.input(np.arange(5))
    inits = flat.constant(-np.inf, F32), flat.constant(-1, I64)
    op = ReduceWindow(
        (x, places), inits, (3,), (1,), (1,), (1,), ((0, 0),), flat.function(largest, scalars * 2)
    )
    check_inference(op)
    machine.expect("largest", op.results[0], [5, 7, 7])
    machine.expect("where", op.results[1], [1, 3, 3])
    machine.run()


def chosen(x: np.ndarray, source: np.ndarray, window, strides, padding) -> np.ndarray:
    low, high = zip(*padding, strict=True)
    wide = padded(x, -np.inf, list(low), list(high), [0] * x.ndim)
    result = np.zeros_like(wide)
    for place in np.ndindex(source.shape):
        corner = [p * s for p, s in zip(place, strides, strict=True)]
        seen = wide[tuple(slice(c, c + w) for c, w in zip(corner, window, strict=True))]
        at = np.unravel_index(seen.argmax(), seen.shape)
        result[tuple(c + a for c, a in zip(corner, at, strict=True))] += source[place]
    return result[tuple(slice(lo, lo + n) for lo, n in zip(low, x.shape, strict=True))]


def test_sources_go_where_the_largest_element_of_each_window_is():
    random, machine = np.random.default_rng(2), Machine()
    scalar = TensorType(F32, ())
    select = flat.function(flat.ge, [scalar, scalar])
    for window, strides, padding in [
        ((2, 2), (2, 2), ((0, 0), (0, 0))),
        ((2, 3), (1, 2), ((0, 0), (1, 0))),
        ((3, 3), (1, 1), ((1, 1), (1, 1))),
    ]:
        x = random.permutation(30).reshape(5, 6).astype(np.float32)
        counts = [
            (n + sum(p) - w) // s + 1 for n, p, w, s in zip(x.shape, padding, window, strides, strict=True)
        ]
        source = random.integers(1, 5, counts).astype(np.float32)
        operands = machine.input(x), machine.input(source), flat.constant(0.0, F32)
        op = SelectAndScatter(*operands, window, strides, padding, select, flat.monoid("add", F32))
        check_inference(op)
        machine.expect("select_and_scatter", op.result, chosen(x, source, window, strides, padding))
    machine.run()


X, KERNEL, ZERO = *params((F32, (2, 4, 5, 6)), (F32, (6, 4, 2, 3))), flat.constant(0.0, F32)
ONES, NONE, FORWARD = (1, 1), ((0, 0), (0, 0)), (False, False)
ADD = flat.monoid("add", F32)


def convolution(
    x=X, kernel=KERNEL, strides=ONES, padding=NONE, dilation=ONES, numbers=NCHW, groups=1, batches=1
):
    return Convolution(x, kernel, strides, padding, dilation, ONES, FORWARD, numbers, groups, batches)


def window(inputs=(X,), inits=(ZERO,), sizes=(1, 1, 2, 2), strides=(1,) * 4, padding=((0, 0),) * 4, body=ADD):
    return ReduceWindow(inputs, inits, sizes, strides, (1,) * 4, (1,) * 4, padding, body)


def select(x=X, source=X, init=ZERO, sizes=(1,) * 4, strides=(1,) * 4, choice=None, fold=ADD):
    scalar = TensorType(F32, ())
    choice = choice or flat.function(flat.ge, [scalar, scalar])
    return SelectAndScatter(x, source, init, sizes, strides, ((0, 0),) * 4, choice, fold)


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: convolution(kernel=flat.convert(KERNEL, I64)), DTypeError, "their dtypes differ"),
        (lambda: convolution(kernel=ZERO), ShapeError, "equally many dimensions"),
        (
            lambda: convolution(numbers=NCHW._replace(input_feature_dimension=0)),
            ShapeError,
            "do not name 4 dimensions",
        ),
        (
            lambda: convolution(numbers=NCHW._replace(output_spatial_dimensions=(2,))),
            ShapeError,
            "do not name 4",
        ),
        (lambda: convolution(strides=(1,)), ShapeError, "must have 2 elements"),
        (lambda: convolution(strides=(0, 1)), ArgumentError, "start at 1"),
        (lambda: convolution(dilation=(1, 0)), ArgumentError, "start at 1"),
        (lambda: convolution(kernel=params((F32, (6, 4, 0, 3)))[0]), ArgumentError, "start at 1"),
        (lambda: convolution(padding=((-1, 1), (0, 0))), ArgumentError, "is negative"),
        (
            lambda: flat.convolution(X, KERNEL, NCHW, padding=((-9, 0), (0, 0))),
            ShapeError,
            "dimension 2 .* negative",
        ),
        (lambda: convolution(groups=3), ShapeError, "the input has 4 channels, the kernel takes 12"),
        (
            lambda: convolution(kernel=params((F32, (5, 2, 2, 3)))[0], groups=2),
            ShapeError,
            "do not divide into 2 groups",
        ),
        (lambda: convolution(groups=0), ArgumentError, "0 feature groups"),
        (lambda: convolution(groups=2, batches=2), ArgumentError, "2 feature groups and 2 batch groups"),
        (lambda: convolution(batches=3), ShapeError, "a batch of 2 does not divide into 3 groups"),
        (lambda: window(inputs=()), ArgumentError, "1 initial values for 0 tensors"),
        (
            lambda: window(inputs=(X, KERNEL), inits=(ZERO, ZERO)),
            ShapeError,
            "folded together differ in shape",
        ),
        (lambda: window(inits=(flat.constant(0, I64),)), DTypeError, "cannot be the initial value"),
        (lambda: window(sizes=(2, 2)), ShapeError, "reduce_window: 2 numbers for the 4 dimensions"),
        (lambda: window(sizes=(1, 1, 0, 1)), ArgumentError, "start at 1"),
        (lambda: window(strides=(1, 1, -1, 1)), ArgumentError, "start at 1"),
        (lambda: window(padding=((0, 0), (0, 0), (0, 0), (0, -7))), ShapeError, "negative"),
        (lambda: window(body=flat.monoid("add", I64)), ArgumentError, "reduce_window: its body must turn"),
        (lambda: select(source=KERNEL), ShapeError, "not one element for each of the"),
        (lambda: select(source=flat.convert(X, I64)), DTypeError, "cannot go into"),
        (lambda: select(init=X), DTypeError, "cannot go into"),
        (lambda: select(sizes=(1, 1)), ShapeError, "2 numbers for the 4 dimensions"),
        (lambda: select(strides=(0,) * 4), ArgumentError, "start at 1"),
        (lambda: select(choice=ADD), ArgumentError, "its choice must turn"),
        (lambda: select(fold=flat.monoid("add", I64)), ArgumentError, "its fold must turn"),
    ],
)
def test_settings_that_do_not_fit_are_refused(make, error, message):
    with pytest.raises(error, match=message):
        make()


def test_stablehlo_refuses_what_we_refuse():
    """Random settings, most of them wrong: we accept just those that the verifier accepts."""
    random = np.random.default_rng(5)
    accepted = refused = 0
    for _ in range(150):
        shape, kernel_shape = random.integers(0, 5, 4).tolist(), random.integers(0, 4, 4).tolist()
        x, kernel = params((F32, tuple(shape)), (F32, tuple(kernel_shape)))
        if random.random() < 0.7:
            kernel = params((F32, (kernel_shape[0], shape[1], *kernel_shape[2:])))[0]
        strides, dilation = (tuple(random.integers(1, 3, 2).tolist()) for _ in range(2))
        padding = tuple(map(tuple, random.integers(0, 3, (2, 2)).tolist()))
        groups, batches = (int(random.choice([1, 2, 0], p=[0.8, 0.15, 0.05])) for _ in range(2))
        fields = (x, kernel, strides, padding, ONES, dilation, FORWARD, NCHW, groups, batches)
        try:
            op = Convolution(*fields)
        except TenfoldError as error:
            refused += 1
            complaint = verdict(unchecked(Convolution, *fields, results=[x.type]))
            assert complaint and "inferred" not in complaint, (str(error), complaint)
        else:
            accepted += 1
            assert verdict(op) == "", [str(each) for each in fields]
    assert min(accepted, refused) > 20
