"""What is differentiated in the tests: every FlatIR op that has a derivative. A family shares a program."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from tenfold import flat
from tenfold.base import dtypes
from tenfold.flat import data_ops as m, elementwise as e, structured as s
from tenfold.flat.grad_products import triangle
from tenfold.flat.indexed import GatherDimensions, ScatterDimensions
from tenfold.flat.ir import Value
from tenfold.flat.sharding import constrained
from tenfold.flat.windows import ConvDimensions, Convolution, ReduceWindow
from tests.flat.derivatives import Build, Case, listed
from tests.flat.machine import collectives, on_one_device

RANDOM = np.random.default_rng(7)


def real(*shape: int) -> np.ndarray:
    return np.asarray(RANDOM.standard_normal(shape))


def wavy(*shape: int) -> np.ndarray:
    return np.asarray(real(*shape) + 1j * real(*shape))


def squared(build: Build) -> Build:
    """Of a linear function the second derivative says nothing; of its square it does."""
    return lambda *xs: [
        each * each if each.dtype.kind in ("float", "complex") else each for each in listed(build(*xs))
    ]


def twice(name: str, build: Build, *arrays: Any) -> list[Case]:
    """The function, and the gradient of its square, which is not linear."""
    return [Case(name, build, arrays), Case(f"{name}, twice", squared(build), arrays, order=2)]


UNARY = """
    acos asin asinh atan atanh bessel_i1e cbrt cos cosh digamma erf erfc erfinv exp expm1 lgamma log log1p
    logistic rsqrt sin sinh sqrt tan tanh
"""
HOLOMORPHIC = """
    acos acosh asin asinh atan atanh cos cosh exp expm1 log log1p logistic rsqrt sin sinh sqrt tan tanh
"""


def elementwise() -> Iterator[Case]:
    x, y = RANDOM.uniform(0.2, 0.8, 5), RANDOM.uniform(0.3, 0.9, 5)
    for name in UNARY.split():
        yield from twice(name, getattr(flat, name), x)
    yield from twice("acosh", flat.acosh, x + 1.5)
    yield from twice("abs", flat.abs, x - 0.5)
    yield from twice("negate", flat.neg, x)
    yield Case("bessel_i1e, far out", flat.bessel_i1e, [np.array([-0.5, 3.0, -35.0, 41.0, 700.0])])
    for build in (flat.add, flat.sub, flat.mul, flat.div, flat.power, flat.atan2):
        yield from twice(build.__name__, build, x, y)
    for build in (flat.maximum, flat.minimum, flat.rem):
        yield from twice(build.__name__, build, x * 3, y)
    for exponent in (0, 1, 2, 5, 0.5, -1.5):
        yield from twice(f"power of {exponent}", lambda x, n=exponent: flat.power(x * 2.0, n) + x, x)
    yield from twice("polygamma", lambda x: flat.polygamma(2.0, x), x)
    yield from twice("zeta", lambda x: flat.zeta(2.5, x), x)
    bounds = np.array([-1.0, 0.0, 0.0, 2.0]), np.array([1.0, 1.0, 1.0, 1.0])
    yield from twice("clamp", flat.clamp, np.array([-2.0, 0.3, 3.0, 0.0]), *bounds)
    yield from twice("select", flat.where, np.array([True, False, True]), real(3), real(3))
    yield from twice("reduce_precision", lambda x: e.ReducePrecision(x, 11, 52).result, x)
    yield from twice("barrier", flat.barrier, x, y)


def complex_numbers() -> Iterator[Case]:
    z, w = wavy(4), wavy(4)
    for name in HOLOMORPHIC.split():
        yield from twice(f"complex {name}", getattr(flat, name), z)
    for build in (flat.abs, flat.sign, flat.conj, flat.real, flat.imag, flat.neg):
        yield from twice(f"complex {build.__name__}", build, z)
    for build in (flat.add, flat.sub, flat.mul, flat.div, flat.power, flat.atan2):
        yield from twice(f"complex {build.__name__}", build, z, w)
    yield from twice("complex of parts", flat.complex, real(3), real(3))
    yield from twice("a real part", lambda x: flat.real(x) * 2.0, real(3))
    yield from twice("a real factor", lambda x, z: flat.convert(x, dtypes.complex128) * z, real(4), z)
    yield from twice("to real", lambda z: e.Convert(z, dtypes.float64).result, z)


def movement() -> Iterator[Case]:
    yield from twice("stretch", lambda x: m.BroadcastInDim(x, (4, 2, 3, 5), (2, 0)).result, real(3, 1))
    yield from twice("turn and stretch", lambda x: m.BroadcastInDim(x, (4, 3), (1, 0)).result, real(3, 4))
    yield from twice("stretch to nothing", lambda x: m.BroadcastInDim(x, (0, 3), (0, 1)).result, real(1, 3))
    yield from twice("a number everywhere", lambda x: flat.broadcast_to(x, (2, 3)), real())
    yield from twice("reshape", lambda x: flat.reshape(x, (6, 2)), real(3, 4))
    yield from twice("transpose", lambda x: flat.transpose(x, (2, 0, 1)), wavy(3, 4, 2))
    forth, back = on_one_device(0), on_one_device(1)
    yield from twice("sharding constraint", lambda x: constrained(x, forth, back), real(4, 3))
    yield from twice("reverse", lambda x: flat.reverse(x, (0,)), real(4, 3))
    yield from twice("slice", lambda x: flat.slice(x, (1, 0), (6, 3), (2, 1)), real(7, 4))
    yield Case("slice of nothing", lambda x: flat.slice(x, (1, 0), (1, 3), (2, 1)), [real(7, 4)])
    yield from twice("dynamic slice", lambda x: flat.dynamic_slice(x, (5, 1), (3, 2)), real(7, 4))
    put = lambda x, update: flat.dynamic_update_slice(x, update, (5, 1))
    yield from twice("dynamic update", put, real(7, 4), real(3, 2))
    yield from twice("join", lambda x, y: flat.concatenate([x, y, x], 1), real(2, 3), real(2, 1))
    spread = lambda x, value: flat.pad(x, (-1, 2), (3, -2), value, (2, 1))
    yield from twice("pad", spread, real(4, 3), real())
    yield from twice("pad nothing", lambda x, v: flat.pad(x, (1, 2), (3, 2), v, (2, 1)), real(0, 3), real())


def indexed() -> Iterator[Case]:
    yield from twice("take", lambda x, i: flat.take(x, i, 1), real(2, 4, 3), np.array([[0, 3], [3, 1]]))
    places = np.array([[0, 3, 3], [3, 1, 0]], np.int32)
    yield from twice("take along", lambda x, i: flat.take_along(x, i, 1), real(2, 4), places)
    rows = GatherDimensions((1,), (0,), (0, 1), 1)
    outside = np.array([[0, 3], [9, -1]], np.int8)
    yield from twice("gather outside", lambda x, i: flat.gather(x, i, rows, (1, 2)), real(300, 5), outside)
    yield Case("gather nothing", lambda x, i: flat.take(x, i, 0), [real(4, 3), np.zeros(0, np.int64)])
    numbers = ScatterDimensions((1,), (0,), (0,), 1)
    once, again = np.array([[1], [3], [0], [7]]), np.array([[1], [3], [1], [-7]])
    yield from twice(
        "scatter set", lambda x, i, u: flat.scatter(x, i, u, numbers, "set"), real(4, 3), once, real(4, 3)
    )
    for kind in ("add", "mul", "max", "min"):
        put = lambda x, i, u, kind=kind: flat.scatter(x, i, u, numbers, kind)
        yield from twice(f"scatter {kind}", put, real(4, 3), again, real(4, 3))
    put = lambda x, i, u: flat.scatter(x, i, u, numbers, "mul")
    yield from twice("complex scatter mul", put, wavy(4, 3), again, wavy(4, 3))
    zeros = np.array([[0.0, 1, 2], [1, 1, 1], [2, 3, 0], [1, 0, 1]])
    yield Case("scatter mul of zeros", put, [real(4, 3), again, zeros])
    batched = ScatterDimensions((), (1,), (1,), 2, (0,), (0,))
    put = lambda x, i, u: flat.scatter(x, i, u, batched, "add")
    yield from twice("batched scatter", put, real(2, 4), np.array([[[0], [3]], [[1], [1]]]), real(2, 2))
    yield from twice(
        "sort", lambda x, y: flat.sort((x, y), 1, lambda a, b, c, d: a < b), real(3, 4), real(3, 4)
    )
    count = lambda x: flat.sort((x, flat.iota(x.shape, 0)), 0, lambda a, b, c, d: a < b)[0]
    yield from twice("sort with places", count, real(3, 4))
    yield from twice("top_k", lambda x: flat.top_k(x, 2)[0], real(3, 4))


def first_largest(x: Value) -> tuple[Value, ...]:
    """The largest of each row and its place, in one reduction."""

    def body(a: Value, i: Value, b: Value, j: Value) -> tuple[Value, Value]:
        keep = (a > b) | (flat.eq(a, b) & (i < j))
        return flat.where(keep, a, b), flat.where(keep, i, j)

    return flat.reduce_with((x, flat.iota(x.shape, 1)), (float("-inf"), 0), (1,), body)


def folds() -> Iterator[Case]:
    yield from twice("sum", lambda x: flat.sum(x, (0, 2)), wavy(2, 3, 4))
    yield from twice("sum of nothing", lambda x: flat.sum(x, 0), real(0, 3))
    started = lambda x, start: s.Reduce((x,), (start,), (1,), flat.monoid("add", x.dtype)).result
    yield from twice("sum from a start", started, real(2, 3), real())
    yield from twice("max", lambda x: flat.reduce(x, "max", (0, 2)), real(2, 3, 4))
    yield from twice("min", lambda x: flat.reduce(x, "min"), real(2, 3, 4))
    yield from twice("product", lambda x: flat.reduce(x, "mul", (0, 2)), real(2, 3, 4))
    zeros = np.array([[0.0, 2, 3], [0, 0, 3], [1, 2, 3], [0, 0, 0]])
    yield from twice("product of zeros", lambda x: flat.reduce(x, "mul", 1), zeros)
    yield from twice("complex product", lambda x: flat.reduce(x, "mul", 1), wavy(2, 5))
    yield from twice("largest and its place", first_largest, real(3, 4))
    every = lambda x: flat.reduce_window(x, "add", (2, 3), (2, 1), ((1, 2), (-1, 3)), (1, 2), (2, 1))
    yield from twice("window sums", every, real(5, 6))
    yield from twice("plain window sums", lambda x: flat.reduce_window(x, "add", (2, 3), (3, 1)), real(6, 6))
    settings = (2,), (2,), (2,), (1,), ((1, 2),)
    started = lambda x, start: ReduceWindow((x,), (start,), *settings, flat.monoid("add", x.dtype)).result
    yield from twice("window sums from a start", started, real(5), real())
    pool = flat.reduce_window
    yield from twice("windows side by side", lambda x: pool(x, "max", (2, 2), (2, 2)), real(4, 6))
    gaps = lambda x: pool(x, "max", (2, 2), (3, 2), ((1, 0), (-1, 1)))
    yield from twice("windows apart", gaps, real(8, 7))
    overlapping = lambda x: pool(x, "min", (3, 2), (2, 1), ((1, 1), (0, 1)))
    yield from twice("windows that overlap", overlapping, real(5, 4))
    holes = lambda x: pool(x, "max", (3, 2), (2, 1), ((1, 1), (0, 1)), (2, 1), (1, 2))
    yield from twice("windows with holes", holes, real(5, 4))


def products() -> Iterator[Case]:
    def dot(*contract: Sequence[int], batch: Any = ((), ())) -> Build:
        return lambda x, y: flat.dot_general(x, y, contract, batch)

    yield from twice("matrices", dot((1,), (0,)), real(3, 4), real(4, 2))
    yield from twice("turned complex matrices", dot((0,), (1,)), wavy(3, 4), wavy(2, 3))
    yield from twice("a batch by a matrix", dot((2,), (0,)), real(2, 3, 4), real(4, 5))
    yield from twice("two sums", dot((1, 3), (2, 0)), real(2, 3, 4, 5), real(5, 2, 3))
    yield from twice("a sum in the middle", dot((1,), (1,)), real(2, 3, 4), real(5, 3, 2))
    yield from twice("vectors", dot((0,), (0,)), real(3), real(3))
    yield from twice("outer product", dot((), ()), real(3), real(2))
    yield from twice("batches", dot((1,), (2,), batch=((2,), (0,))), wavy(2, 3, 4), wavy(4, 5, 3))
    yield from twice(
        "batches, two sums", dot((1, 2), (3, 1), batch=((0,), (0,))), real(2, 3, 4), real(2, 4, 5, 3)
    )
    yield from twice("a square", lambda x: flat.dot_general(x, x, ((1,), (0,))), real(3, 3))
    yield from twice("sums of nothing", dot((1,), (0,)), real(3, 0), real(0, 2))
    for kind in ("FFT", "IFFT"):
        yield from twice(kind, lambda x, kind=kind: flat.fft(x, kind, (3, 4)), wavy(2, 3, 4))
    for n in (4, 5):
        yield from twice(f"RFFT of {n}", lambda x, n=n: flat.fft(x, "RFFT", (3, n)), real(2, 3, n))
        yield from twice(f"IRFFT of {n}", lambda x, n=n: flat.fft(x, "IRFFT", (3, n)), wavy(2, 3, n // 2 + 1))


PLAIN = ConvDimensions(0, 1, (2, 3), 1, 0, (2, 3), 0, 1, (2, 3))
OTHER = ConvDimensions(3, 0, (1, 2), 2, 3, (0, 1), 1, 3, (2, 0))


def convolutions() -> Iterator[Case]:
    def convolve(numbers: ConvDimensions = PLAIN, **settings: Any) -> Build:
        return lambda x, kernel: flat.convolution(x, kernel, numbers, **settings)

    step = {"strides": (2, 1), "padding": ((1, 0), (0, 1))}
    spread = {"strides": (2, 1), "padding": ((1, 2), (3, 0)), "x_dilation": (2, 1), "kernel_dilation": (1, 2)}
    cut = {"strides": (2, 3), "padding": ((-1, 2), (3, -2)), "kernel_dilation": (2, 1)}
    yield from twice("convolution", convolve(), real(2, 3, 4, 5), real(4, 3, 3, 2))
    yield Case("every setting", convolve(**spread), [real(2, 3, 5, 6), real(4, 3, 3, 2)])
    yield Case("cut", convolve(**cut), [real(2, 3, 7, 8), real(4, 3, 2, 3)])
    yield Case(
        "spread and cut",
        convolve(padding=((-1, 2), (3, -2)), x_dilation=(2, 3)),
        [real(1, 2, 4, 4), real(2, 2, 2, 3)],
    )
    yield from twice("groups", convolve(**step, groups=2), real(2, 4, 5, 4), real(4, 2, 3, 2))
    yield Case("one channel each", convolve(groups=3), [real(2, 3, 5, 4), real(6, 1, 3, 2)])
    yield from twice(
        "groups of batches", convolve(**step, batch_groups=2), real(4, 3, 5, 4), real(6, 3, 3, 2)
    )
    yield Case("groups, other places", convolve(OTHER, groups=2), [real(4, 5, 6, 2), real(2, 3, 2, 6)])
    yield Case(
        "batch groups, other places", convolve(OTHER, batch_groups=2), [real(3, 5, 6, 4), real(2, 3, 3, 6)]
    )
    yield Case("complex convolution", convolve(), [wavy(2, 3, 4, 5), wavy(4, 3, 3, 2)])
    settings = (2, 1), ((0, 1), (1, 1)), (1, 1), (1, 2), (True, False), PLAIN, 1, 1
    turned = lambda x, kernel: Convolution(x, kernel, *settings).result
    yield Case("a kernel turned round", turned, [real(2, 3, 5, 6), real(4, 3, 3, 2)])
    point = ConvDimensions(0, 1, (), 1, 0, (), 0, 1, ())
    yield from twice("no space", convolve(point), real(2, 3), real(4, 3))
    yield Case("no windows", convolve(), [real(2, 3, 2, 2), real(4, 3, 3, 2)])


def positive(z: Value) -> Value:
    """A positive definite matrix made of any."""
    batch = tuple(range(z.rank - 2))
    square = flat.dot_general(
        z, flat.conj(flat.swap(z, -1, -2)), ((z.rank - 1,), (z.rank - 2,)), (batch, batch)
    )
    return square + flat.broadcast_to(flat.constant(np.eye(z.shape[-1]), z.dtype), z.shape)


def factorizations() -> Iterator[Case]:
    for lower in (True, False):
        factor = lambda z, lower=lower: triangle(flat.cholesky(positive(z), lower), lower)
        yield from twice(f"cholesky, lower={lower}", factor, real(2, 2, 2))
        yield Case(f"complex cholesky, lower={lower}", factor, [wavy(3, 3)])
    for place, transpose in enumerate(s.TRANSPOSES):
        for left in (True, False):
            settings = {"left": left, "lower": (place + left) % 2 == 0, "transpose_a": transpose}
            b = wavy(3, 2) if left else wavy(2, 3)
            for unit in (True, False):
                solve = lambda a, b, unit=unit, settings=settings: flat.triangular_solve(
                    a, b, unit=unit, **settings
                )
                yield Case(f"solve {settings}, unit={unit}", solve, [wavy(3, 3) + 2 * np.eye(3), b])
    yield from twice("solve in batches", flat.triangular_solve, real(2, 2, 2) + 2 * np.eye(2), real(2, 2, 1))


def loop(start: int, going: Callable[[Value], Value], step: Callable[[Value], Value], body: Build) -> Build:
    def build(*xs: Value) -> tuple[Value, ...]:
        carry = [flat.constant(start, dtypes.int64), *xs]
        return flat.while_loop(lambda k, *_: going(k), lambda k, *c: [step(k), *body(k, *c)], carry)[1:]

    return build


def control() -> Iterator[Case]:
    body = lambda k, x, w: (flat.sin(x * w) + flat.convert(k, x.dtype) * 0.1, w)
    loops = {
        "up": (0, lambda k: k < 5, lambda k: k + 1),
        "up to": (0, lambda k: k <= 3, lambda k: k + 2),
        "down": (7, lambda k: k >= 1, lambda k: k - 2),
        "until": (2, lambda k: flat.ne(8, k), lambda k: 3 + k),
        "never": (2, lambda k: k < 2, lambda k: k + 1),
    }
    for name, numbers in loops.items():
        yield from twice(f"a loop {name}", loop(*numbers, body), real(3), real(3))
    mixed = loop(0, lambda k: k < 4, lambda k: k + 1, lambda k, x, y: (y * 2.0, flat.sin(x) * y))
    yield from twice("a loop of two", mixed, wavy(3), wavy(3))
    beside = loop(0, lambda k: k < 2, lambda k: k + 1, lambda k, x, y, i: (flat.cos(y), y * x, i + 1))
    yield from twice("a loop with an integer", beside, real(3), real(3), np.array(3))
    branches = (
        lambda x, y: (x * y, x),
        lambda x, y: (flat.sin(x), flat.cos(x)),
        lambda x, y: (y, y * x),
    )
    choose = lambda i, x, y: flat.case(i, branches, (x, y))
    for index in range(3):
        yield from twice(f"branch {index}", choose, np.array(index, np.int32), real(3), real(3))
    true = lambda: flat.constant(True, dtypes.bool_)
    yield from twice("check", lambda x: flat.check(x, true(), ValueError, "wrong"), real(3))
    relu = flat.differentiated(lambda ct, result, x: (flat.where(result > 0, ct, 0),))(
        lambda x: flat.maximum(x, 0)
    )
    yield from twice("composite", lambda x: relu(x * 2.0), real(4))
    both = flat.differentiated(
        lambda cts, results, x, n, y: (flat.conj(y) * cts[0] * n + cts[1], flat.conj(x) * cts[0] * n)
    )(lambda x, n, y: (x * y * n, x))
    yield from twice("composite of two", lambda x, y: both(x, 3.0, y), wavy(4), wavy(4))
    inside = loop(0, lambda k: k < 3, lambda k: k + 1, lambda k, x: (relu(flat.sin(x * 2.0)),))
    yield from twice("composite in a loop", inside, real(4))


def between_devices() -> Iterator[Case]:
    for name, build in collectives().items():
        yield from twice(name, build, real(4, 3))


FAMILIES: dict[str, Callable[[], Iterator[Case]]] = {
    build.__name__: build
    for build in (
        elementwise,
        complex_numbers,
        movement,
        indexed,
        folds,
        products,
        convolutions,
        factorizations,
        control,
        between_devices,
    )
}
