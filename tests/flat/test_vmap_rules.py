"""Every op of FlatIR batched, in every way that `batches.py` knows: against a loop over the elements."""

from __future__ import annotations

import numpy as np
import pytest

from tenfold import flat
from tenfold.base import dtypes
from tenfold.flat import (
    collectives as between_devices,
    data_ops as movement,
    elementwise as e,
    indexed,
    sharding,
    structured,
    windows,
)
from tenfold.flat.composite import Composite, differentiated
from tenfold.flat.ir import Op, TensorType
from tenfold.flat.vmap import BATCHING
from tests.flat import batches
from tests.flat.batches import Case, bools, complexes, floats, ints
from tests.flat.machine import collectives, on_one_device

F32, I64 = dtypes.float32, dtypes.int64


def taking(kind: type[e.Elementwise], dtype: dtypes.DType) -> list[type[e.Elementwise]]:
    found = [each for each in vars(e).values() if isinstance(each, type) and issubclass(each, kind)]
    return [each for each in found if each.name and dtype in each.accepted]


def each_of(kind: type[e.Elementwise], dtype: dtypes.DType):
    return lambda *operands: [op(*operands).result for op in taking(kind, dtype)]


def spd(*shape: int):
    """Symmetric positive definite matrices."""

    def make(rng):
        a = rng.normal(0, 1, shape)
        return (a @ a.swapaxes(-1, -2) + 3 * np.eye(shape[-1])).astype(np.float32)

    return make


ELEMENTWISE = [
    Case("float functions", each_of(e.Unary, F32), [floats(2, 3, low=0.2, high=1.8)], True),
    Case("one function", flat.tanh, [floats()]), Case("one sum", flat.add, [floats(), floats()]),
    Case("complex functions", each_of(e.Unary, dtypes.complex64), [complexes(2)], True),
    Case("int functions", each_of(e.Unary, I64), [ints(2, 3)], True),
    Case("float arithmetic", each_of(e.Binary, F32), [floats(4, low=1.1, high=3)] * 2, True),
    Case("int arithmetic", each_of(e.Binary, I64), [ints(4, low=1, high=5)] * 2, True),
    Case("logic", each_of(e.Binary, dtypes.bool_), [bools(0, 2), bools(0, 2)]),
    Case("compare", lambda x, y: [flat.lt(x, y), flat.compare(x, y, "EQ", True)], [floats(3), floats(3)]),
    Case("select", flat.where, [bools(2, 2), floats(2, 2), floats(2, 2)]),
    Case("clamp", flat.clamp, [floats(5), floats(5, high=0), floats(5, low=0)]),
    Case("complex", flat.complex, [floats(2), floats(2)]),
    Case("convert", lambda x: [flat.convert(x, I64), flat.convert(x, dtypes.bfloat16)], [floats(3, 1)]),
    Case("bits, wider", lambda x: flat.bitcast(x, dtypes.int32), [ints(3, 2, dtype=dtypes.int16)]),
    Case("bits, narrower", lambda x: flat.bitcast(x, dtypes.uint8), [floats(2)]),
    Case("bits of a number", lambda x: flat.bitcast(x, dtypes.uint32), [floats()]),
    Case("precision", lambda x: e.ReducePrecision(x, 5, 10).result, [floats(3)]),
    Case("barrier", lambda x, y: flat.barrier(x, y), [floats(2), ints(0, 2)]),
]  # fmt: skip


def at(build):
    """A function whose last parameters are places, as scalars."""
    return lambda x, *starts: build(x, starts)


MOVEMENT = [
    Case("broadcast", lambda x: movement.BroadcastInDim(x, (2, 4, 3), (2, 0)).result, [floats(3, 1)]),
    Case("broadcast a number", lambda x: flat.broadcast_to(x, (2, 0)), [ints()]),
    Case("reshape", lambda x: flat.reshape(x, (3, 2, 2)), [floats(4, 3)]),
    Case("reshape to a number", lambda x: flat.reshape(x, ()), [floats(1, 1)]),
    Case("transpose", lambda x: flat.transpose(x, (2, 0, 1)), [floats(2, 3, 4)]),
    Case("sharding constraint", lambda x: sharding.constrained(x, on_one_device(0)), [floats(4, 3)]),
    *[Case(name, build, [floats(4, 3)]) for name, build in collectives().items()],
    Case("slice", lambda x: flat.slice(x, (1, 0), (4, 2), (2, 1)), [floats(5, 3)]),
    Case("concatenate", lambda x, y: flat.concatenate((x, y, x), 1), [floats(2, 1), floats(2, 3)]),
    Case("pad", lambda x, v: flat.pad(x, (1, -1), (0, 2), v, (1, 0)), [floats(2, 3), floats()]),
    Case("pad nothing", lambda x, v: flat.pad(x, (2,), (1,), v), [ints(0), ints()]),
    Case("reverse", lambda x: flat.reverse(x, (1,)), [floats(2, 3)]),
    Case("made of nothing", lambda x: [flat.iota((2, 2), 1), flat.add(x, flat.iota((2,), 0))], [ints(2)]),
    Case(
        "dynamic slice",
        at(lambda x, starts: flat.dynamic_slice(x, starts, (2, 3))),
        [floats(4, 3), ints(low=-2, high=5), ints(low=-2, high=5)],
    ),
    Case(
        "dynamic slice, narrow places",
        at(lambda x, starts: flat.dynamic_slice(x, starts, (2,))),
        [floats(300), ints(low=0, high=256, dtype=dtypes.uint8)],
    ),
    Case("dynamic slice of a number", lambda x: flat.dynamic_slice(x, (), ()), [floats()]),
    Case(
        "dynamic update slice",
        lambda x, update, *starts: flat.dynamic_update_slice(x, update, starts),
        [floats(4, 3), floats(2, 2), ints(low=-2, high=5), ints(low=-2, high=5)],
    ),
    Case(
        "dynamic update slice, nothing",
        lambda x, update, start: flat.dynamic_update_slice(x, update, (start,)),
        [ints(3), ints(0), ints(low=0, high=5, dtype=dtypes.int32)],
    ),
]

INDEXED = [
    Case("take", lambda x, i: flat.take(x, i, 1), [floats(2, 4, 3), ints(5, low=-1, high=5)]),
    Case("take one", lambda x, i: flat.take(x, i, 0), [floats(4), ints(low=0, high=4)]),
    Case("take along", lambda x, i: flat.take_along(x, i, 0), [floats(4, 3), ints(2, 3, low=0, high=4)]),
    Case(
        "gather, narrow places",
        lambda x, i: flat.take(x, i, 0),
        [floats(4), ints(2, low=0, high=4, dtype=dtypes.uint8)],
    ),
    Case(
        "gather of windows, places in columns",
        lambda x, i: flat.gather(x, i, flat.GatherDimensions((0, 2), (), (1, 0), 0), (2, 2)),
        [floats(4, 5), ints(2, 3, low=-1, high=6)],
    ),
    Case(
        "gather with a batch of its own",
        lambda x, i: flat.gather(
            x, i, flat.GatherDimensions((2,), (1,), (1,), 2, (0,), (0,)), (1, 1, 3)
        ),
        [floats(2, 4, 3), ints(2, 5, 1, low=0, high=4)],
    ),
    Case("take nothing", lambda x, i: flat.take(x, i, 0), [floats(3, 0), ints(0, low=0, high=3)]),
    *[
        Case(
            f"scatter, {kind}",
            lambda x, i, u, kind=kind: flat.scatter(
                x, i, u, flat.ScatterDimensions((1,), (0,), (0,), 1), kind
            ),
            [floats(5, 3), lambda rng: rng.permutation(6)[:4, None] - 0, floats(4, 3)],
        )
        for kind in ("set", "add", "max", "mul")
    ],
    Case(
        "scatter with a batch of its own",
        lambda x, i, u: flat.scatter(
            x, i, u, flat.ScatterDimensions((2,), (1,), (1,), 2, (0,), (0,)), "add"
        ),
        [floats(2, 4, 3), ints(2, 5, 1, low=-1, high=5), floats(2, 5, 3)],
    ),
    Case(
        "scatter of several",
        lambda x, y, i, u, v: indexed.Scatter(
            (x, y), i, (u, v), flat.ScatterDimensions((), (0,), (0,), 1), False, False,
            flat.function(lambda a, b, c, d: (a + c, b * d), [TensorType(F32, ()), TensorType(I64, ())] * 2),
        ).results,
        [floats(4), ints(4), ints(3, 1, low=0, high=4), floats(3), ints(3)],
    ),
]  # fmt: skip


def conv(spec, **settings):
    x, kernel, out = spec
    spatial = [c for c in out if c.isdigit()]
    numbers = flat.ConvDimensions(
        x.index("b"), x.index("f"), tuple(x.index(c) for c in spatial),
        kernel.index("i"), kernel.index("o"), tuple(kernel.index(c) for c in spatial),
        out.index("b"), out.index("f"), tuple(out.index(c) for c in spatial),
    )  # fmt: skip
    return lambda a, k: flat.convolution(a, k, numbers, **settings)


PRODUCTS = [
    Case("matrix product", lambda x, y: flat.dot_general(x, y, ((1,), (0,))), [floats(2, 3), floats(3, 4)]),
    Case("inner product", lambda x, y: flat.dot_general(x, y, ((0,), (0,))), [floats(3), floats(3)]),
    Case("outer product", lambda x, y: flat.dot_general(x, y, ((), ())), [ints(2), ints(3)]),
    Case(
        "products, batch behind",
        lambda x, y: flat.dot_general(x, y, ((0,), (1,)), ((2,), (0,)), F32),
        [floats(3, 2, 4, dtype=dtypes.float16), floats(4, 3, 5, dtype=dtypes.float16)],
    ),
    Case("empty product", lambda x, y: flat.dot_general(x, y, ((1,), (0,))), [floats(2, 0), floats(0, 3)]),
    Case(
        "convolution",
        conv(("bf01", "oi01", "bf01"), strides=(2, 1), padding=((1, 0), (2, -1))),
        [floats(2, 3, 5, 4), floats(4, 3, 2, 3)],
    ),
    Case(
        "grouped convolution, dilated",
        conv(("0bf", "i0o", "f0b"), groups=2, x_dilation=(2,), kernel_dilation=(2,), padding=((1, 1),)),
        [floats(5, 2, 4), floats(2, 2, 6)],
    ),
    Case(
        "convolution in batch groups",
        conv(("fb0", "o0i", "b0f"), batch_groups=2),
        [floats(3, 4, 5), floats(6, 2, 3)],
    ),
    Case("convolution of nothing", conv(("bf0", "oi0", "bf0")), [floats(0, 2, 4), floats(3, 2, 2)]),
]


def larger(a, i, b, j):
    """argmax's body: the larger of two and its place."""
    first = flat.ge(a, b)
    return flat.where(first, a, b), flat.where(first, i, j)


def in_windows(kind):
    return lambda x, init: (
        windows.ReduceWindow(
            (x,), (init,), (2, 2), (1, 2), (1, 2), (1, 1), ((1, 0), (0, 1)), flat.monoid(kind, F32)
        ).result
    )


def pooled_back(x, source, init):
    scalar = TensorType(F32, ())
    choice = flat.function(flat.ge, [scalar, scalar])
    return windows.SelectAndScatter(
        x, source, init, (2, 2), (2, 2), ((0, 0), (0, 0)), choice, flat.monoid("add", F32)
    ).result


FOLDS = [
    Case("sum", lambda x: flat.sum(x, (0, 2)), [floats(2, 3, 4)]),
    Case("fold of nothing", lambda x: flat.reduce(x, "max", 0), [floats(0, 3)]),
    Case(
        "fold from something",
        lambda x, init: structured.Reduce((x,), (init,), (1,), flat.monoid("add", F32)).result,
        [floats(2, 3), floats()],
    ),
    Case(
        "argmax",
        lambda x, i: flat.reduce_with((x, i), (float("-inf"), 0), (1,), larger),
        [floats(2, 5), ints(2, 5)],
    ),
    Case("windows", in_windows("add"), [floats(4, 3), floats()]),
    Case("windows of maxima", in_windows("max"), [floats(4, 3), floats()]),
    Case("max pool's gradient", pooled_back, [floats(4, 4), floats(2, 2), floats()]),
    Case(
        "sort",
        lambda x, y: flat.sort((x, y), 0, lambda a, b, c, d: flat.lt(a, b)),
        [ints(5, 2, high=0), floats(5, 2)],
    ),
    Case("top k", lambda x: flat.top_k(x, 2), [floats(2, 5)]),
    Case("top k of a vector", lambda x: flat.top_k(x, 3), [ints(5, low=0, high=3)]),
]


def collatz(x, steps):
    """A loop whose length depends on x; `steps` counts, and what is added to it never changes."""
    one = flat.constant(1, I64)

    def step(x, steps, each):
        odd = flat.eq(x & each, 1)
        return flat.where(odd, x * 3 + 1, flat.shift_right(x, flat.constant(1, I64))), steps + each, each

    return flat.while_loop(lambda x, steps, each: flat.gt(x, 1), step, (x, steps, one))


def powers(x, y):
    """A loop of known length: y spreads into `total` only in the second round."""

    def step(i, x, y, total, last):
        return i + 1, x * x, y, total + last, y

    zero = flat.full_like(y, 0)
    start = (flat.constant(0, I64), x, y, zero, zero)
    return flat.while_loop(lambda i, *_: flat.lt(i, 3), step, start)


def nested_loops(n, x):
    def outer(i, x):
        return i + 1, flat.while_loop(
            lambda j, x: flat.lt(j, 2), lambda j, x: (j + 1, x * 2 - 1), (i - 1, x)
        )[1]

    return flat.while_loop(lambda i, x: flat.lt(i, 3), outer, (n, x))


def branching(index, x, y):
    branches = (
        lambda x, y: (x, flat.constant(1.0, F32), flat.sum(y)),
        lambda x, y: (x + y, flat.constant(2.0, F32), flat.sum(x)),
        lambda x, y: (flat.tanh(y), flat.sum(x), flat.constant(3.0, F32)),
    )
    return flat.case(index, branches, (x, y))


@differentiated(lambda ct, result, x, factor, y: (ct * factor, flat.sum(ct * x), ct))
def scaled(x, factor, y):
    return x * factor + y


def random(state):
    state, bits = flat.random_bits(state, (2, 3), dtypes.uint32)
    return [*flat.random_bits(state, (), dtypes.uint64), bits]


CONTROL = [
    Case("a loop of any length", collatz, [ints(low=1, high=30), ints()]),
    Case("a loop of any length, for many", lambda x: flat.power(x, x), [ints(3, low=0, high=70)]),
    Case("a loop of known length", powers, [floats(2), floats(2)]),
    Case("a loop in a loop", nested_loops, [ints(low=-1, high=5), floats(2)]),
    Case("branches", branching, [ints(low=-1, high=4, dtype=dtypes.int32), floats(2), floats(2)]),
    Case("composite", scaled, [floats(2, 3), floats(), floats(2, 3)]),
    Case("random bits", random, [ints(2, low=0, high=1000, dtype=dtypes.uint64)]),
]

LIBRARY = [
    Case("fft", lambda x: flat.fft(x, "FFT", (2, 4)), [complexes(3, 2, 4)]),
    Case("rfft", lambda x: flat.fft(x, "RFFT", (5,)), [floats(5)]),
    Case("irfft", lambda x: flat.fft(x, "IRFFT", (4,)), [complexes(2, 3)], True),
    Case("cholesky", flat.cholesky, [spd(3, 3)]),
    Case("cholesky of several", lambda x: flat.cholesky(x, False), [spd(2, 3, 3)], True),
    Case("triangular solve", flat.triangular_solve, [spd(3, 3), floats(3, 2)]),
    Case(
        "triangular solve, right",
        lambda a, b: flat.triangular_solve(a, b, left=False, lower=False, transpose_a="TRANSPOSE"),
        [spd(2, 3, 3), floats(2, 4, 3)],
    ),
    Case(
        "check",
        lambda x, y: flat.check(x, flat.lt(y, 100), ValueError, "too large"),
        [floats(2), floats()],
    ),
]
GROUPS = {
    "elementwise": ELEMENTWISE,
    "movement": MOVEMENT,
    "indexed": INDEXED,
    "products": PRODUCTS,
    "folds": FOLDS,
    "control": CONTROL,
    "library": LIBRARY,
}


@pytest.mark.parametrize("group", GROUPS)
def test_a_batch_gives_what_a_loop_over_its_elements_gives(group):
    batches.compare(GROUPS[group], tolerance=1e-5)


def test_every_op_with_operands_has_a_rule_and_a_case():
    modules = (between_devices, e, movement, indexed, sharding, windows, structured)
    kinds = {each for module in modules for each in vars(module).values() if isinstance(each, type)}
    known = {each for each in kinds if issubclass(each, Op) and each.name and each.operand_fields}
    known.remove(windows.CuttingConvolution)  # made where a program is prepared for a GPU
    assert set(BATCHING) == known | {Composite}
    tried = {type(op) for group in GROUPS.values() for case in group for op in batches.plain(case).ops}
    assert known - tried == {structured.CustomCall}
