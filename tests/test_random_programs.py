"""Random programs: recorded lazily, evaluated at random points or compiled, they agree with PyTorch op by op.

A program is a list of steps over a pool of tensors of several dtypes and shapes; steps append to the pool or
write into it. Steps are well-conditioned on floats, so that rounding does not grow: what jumps (comparisons,
division of integers, argmax) is applied to integers. TENFOLD_RANDOM_PROGRAMS=10000 and TENFOLD_RANDOM_SEED=1
run more of them, and others, by the policy of tiers, and on libtorch in tests/engines/test_libtorch.py.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple
from unittest import mock

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

import tenfold as tn
from tenfold.runtime import tiers
from tests.ops import golden

DTYPES = ("float32", "float64", "int64", "int32", "uint8", "bool")
SHAPES = ((3, 4), (4,), (3, 1), (), (2, 3, 4), (1, 4), (0, 4))


class Step(NamedTuple):
    """One op: how many tensors it takes, of which kinds, and the call, the same on either library."""

    name: str
    operands: int
    kinds: str  # of the first operand: f(loat), i(nt), b(ool), or any of them
    call: Callable[..., Any]


class Use(NamedTuple):
    """A step applied to places in the pool, with a small number for whatever it chooses (a dim, an index)."""

    step: Step
    places: tuple[int, ...]
    number: int


def dim(x: Any, number: int) -> int:
    return number % max(x.ndim, 1)


STEPS = [
    # Pointwise
    Step("add", 2, "fib", lambda lib, n, x, y: lib.add(x, y)),
    Step("sub", 2, "fi", lambda lib, n, x, y: lib.sub(x, y) if y.dtype != lib.bool else x),
    Step("mul", 2, "fib", lambda lib, n, x, y: lib.mul(lib.tanh(x), lib.sin(y))),
    Step("rsub", 1, "fi", lambda lib, n, x: n - x),
    Step("div", 2, "fib", lambda lib, n, x, y: x / (lib.abs(y * 1.0) + 1)),
    Step("tanh", 1, "fib", lambda lib, n, x: x.tanh()),
    Step("sigmoid", 1, "fib", lambda lib, n, x: lib.sigmoid(x)),
    Step("cos", 1, "f", lambda lib, n, x: lib.cos(lib.tanh(x))),
    Step("exp", 1, "f", lambda lib, n, x: lib.exp(-lib.abs(x))),
    Step("maximum", 2, "fib", lambda lib, n, x, y: lib.maximum(x, y)),
    Step("minimum", 2, "fib", lambda lib, n, x, y: lib.minimum(x, y)),
    Step("clamp", 1, "fi", lambda lib, n, x: x.clamp(-n, n)),
    Step("where", 2, "ib", lambda lib, n, c, x: lib.where(c > n, x, -n)),
    Step("eq", 2, "ib", lambda lib, n, x, y: x == y if y.dtype in (lib.int64, lib.int32) else x != n),
    Step("floor_divide", 1, "i", lambda lib, n, x: x // (n + 1)),
    Step("remainder", 1, "i", lambda lib, n, x: x % (n + 2)),
    Step("bitwise_and", 2, "ib", lambda lib, n, x, y: x & y if y.dtype == x.dtype else ~x),
    Step("logical_not", 1, "fib", lambda lib, n, x: lib.logical_not(x * 0)),
    Step("to", 1, "fib", lambda lib, n, x: x.to([lib.float32, lib.float64, lib.complex64][n % 3]).real * 1),
    # Reductions
    Step("sum", 1, "fib", lambda lib, n, x: x.sum()),
    Step("sum.dim", 1, "fib", lambda lib, n, x: lib.sum(x, dim(x, n), keepdim=n % 2 == 0)),
    Step("mean", 1, "f", lambda lib, n, x: x.mean(dim(x, n))),
    Step("amax", 1, "fib", lambda lib, n, x: lib.amax(x, dim(x, n), keepdim=True)),
    Step("any", 1, "ib", lambda lib, n, x: x.any(dim(x, n))),
    Step("all", 1, "ib", lambda lib, n, x: lib.all(x)),
    Step("argmax", 1, "i", lambda lib, n, x: x.argmax(dim(x, n))),
    Step("cumsum", 1, "fi", lambda lib, n, x: lib.cumsum(x, dim(x, n))),
    Step("sort", 1, "fi", lambda lib, n, x: lib.sort(x, dim(x, n))[0]),
    # Shapes
    Step("reshape", 1, "fib", lambda lib, n, x: x.reshape(-1)),
    Step("transpose", 1, "fib", lambda lib, n, x: x.transpose(0, dim(x, n))),
    Step("unsqueeze", 1, "fib", lambda lib, n, x: x.unsqueeze(dim(x, n))),
    Step("squeeze", 1, "fib", lambda lib, n, x: x.squeeze()),
    Step("flip", 1, "fib", lambda lib, n, x: lib.flip(x, [dim(x, n)])),
    Step("expand", 1, "fib", lambda lib, n, x: x.expand(2, *x.shape)),
    Step("cat", 1, "fib", lambda lib, n, x: lib.cat([x, x], dim(x, n))),
    Step("stack", 2, "fib", lambda lib, n, x, y: lib.stack(lib.broadcast_tensors(x, y.to(x.dtype)), 0)),
    Step("split", 1, "fib", lambda lib, n, x: x.split(n + 1, dim(x, n))[-1]),
    Step("contiguous", 1, "fib", lambda lib, n, x: x.t().contiguous() if x.ndim == 2 else x.contiguous()),
    # Indexing
    Step("select", 1, "fib", lambda lib, n, x: x[n % max(len(x), 1)]),
    Step("slice", 1, "fib", lambda lib, n, x: x[n % 2 :: 2]),
    Step("ellipsis", 1, "fib", lambda lib, n, x: x[..., None, -1]),
    Step("index", 1, "fib", lambda lib, n, x: x[[0, -1, 0]]),
    Step("index_select", 1, "fib", lambda lib, n, x: x.index_select(dim(x, n), lib.tensor([0, 0]))),
    Step("masked_fill", 1, "fi", lambda lib, n, x: x.masked_fill(x * 0 == 0, n)),
    # Writes: what shares memory with the tensor sees them
    Step("add_", 1, "fi", lambda lib, n, x: x.add_(n)),
    Step("zero_", 1, "fib", lambda lib, n, x: x[n % max(len(x), 1)].zero_()),
    Step(
        "copy_",
        2,
        "fi",
        lambda lib, n, x, y: x.copy_(y) if y.is_floating_point() <= x.is_floating_point() else x,
    ),
    Step("setitem", 2, "fi", lambda lib, n, x, y: write(x, n, y)),
    Step("iadd", 1, "fi", lambda lib, n, x: write(x, slice(0, 1), x[-1:] + 1)),
]


def write(x: Any, index: Any, value: Any) -> Any:
    x[index] = value
    return x


class Trace(NamedTuple):
    inputs: list[np.ndarray]
    uses: list[Use]
    pause: int  # evaluate after each so many steps
    pool: list[torch.Tensor]  # what PyTorch made of it

    def __repr__(self) -> str:
        lines = [f"x{i} = {each.dtype}{list(each.shape)}" for i, each in enumerate(self.inputs)]
        for i, use in enumerate(self.uses, len(self.inputs)):
            arguments = [f"x{place}" for place in use.places] + [str(use.number)]
            lines.append(f"x{i} = {use.step.name}({', '.join(arguments)})")
        return "\n".join(["", *lines, f"evaluated after each {self.pause} steps"])


@st.composite
def programs(draw: Any, length: int = 30) -> Trace:
    """A program, grown while PyTorch runs it: steps that it refuses are left out."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    inputs = []
    for _ in range(4):
        dtype, shape = draw(st.sampled_from(DTYPES)), draw(st.sampled_from(SHAPES))
        inputs.append(
            np.asarray(rng.integers(0, 5, shape) if dtype[0] != "f" else rng.normal(0, 1, shape)).astype(
                dtype
            )
        )
    pool = [torch.from_numpy(each.copy()) for each in inputs]
    uses: list[Use] = []
    wanted = draw(st.integers(10, length))
    for _ in range(3 * wanted):
        step = draw(st.sampled_from(STEPS))
        places = tuple(draw(st.integers(0, len(pool) - 1)) for _ in range(step.operands))
        use = Use(step, places, draw(st.integers(0, 3)))
        if kind_of(pool[places[0]]) not in step.kinds:
            continue
        before = [each.clone() for each in pool]
        try:
            made = apply(torch, pool, use)
        except (RuntimeError, IndexError, TypeError):
            same = [np.array_equal(x, y, equal_nan=x.is_floating_point()) for x, y in zip(before, pool)]
            if not all(same):
                raise  # half a write would have to be undone
            continue
        uses.append(use)
        if made.numel() > 2000 or made.ndim > 5 or made.is_complex():
            uses.pop()
            pool.pop()
        if len(uses) == wanted:
            break
    return Trace(inputs, uses, draw(st.sampled_from([1, 4, 1000])), pool)


def kind_of(x: torch.Tensor) -> str:
    return "f" if x.is_floating_point() else "b" if x.dtype == torch.bool else "i"


def apply(lib: Any, pool: list[Any], use: Use) -> Any:
    made = use.step.call(lib, use.number, *[pool[i] for i in use.places])
    pool.append(made)
    return made


def run(program: Trace, inputs: list[tn.Tensor], pause: int) -> list[tn.Tensor]:
    pool = list(inputs)
    for i, use in enumerate(program.uses, 1):
        apply(tn, pool, use)
        if i % pause == 0:
            tn.eval(pool[-1])
    return pool


def check(program: Trace, pool: list[tn.Tensor]) -> None:
    tn.eval(*pool)
    for i, (ours, theirs) in enumerate(zip(pool, program.pool, strict=True)):
        name = f"x{i}"
        assert ours.dtype.name == str(theirs.dtype)[6:] and tuple(ours.shape) == tuple(theirs.shape), name
        found, reference = ours.numpy(), golden.to_numpy(theirs)
        # Steps of float32 each of condition about one; sums may cancel, so relative to the largest element.
        scale = np.abs(reference.astype(np.float64)).max(initial=1.0)
        close = golden.close(found, reference, 1e-4, 1e-5 * scale)
        assert close.all(), f"{name}: {found} and PyTorch {reference}"


each_program = settings(
    max_examples=12,
    deadline=None,
    phases=[
        Phase.generate
    ],  # to shrink a program takes minutes; it prints itself, and the wrong step is named
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
)


@each_program
@given(programs())
def test_lazy_programs_agree_with_pytorch(program):
    check(program, run(program, [tn.tensor(each) for each in program.inputs], program.pause))


@each_program
@given(programs())
def test_compiled_programs_agree_with_pytorch(program):
    compiled = tn.compile(lambda *inputs: run(program, [each.clone() for each in inputs], pause=1000))
    for _ in range(2):
        check(program, list(compiled(*[tn.tensor(each) for each in program.inputs])))


@pytest.mark.slow
@settings(each_program, max_examples=300)
@given(programs(60))
def test_long_programs_agree_with_pytorch(program):
    check(program, run(program, [tn.tensor(each) for each in program.inputs], program.pause))


@contextlib.contextmanager
def on(engine: str) -> Iterator[None]:
    tn.set_engine(engine)
    try:
        yield
    finally:
        tn.set_engine("xla")


@settings(each_program, max_examples=60)
@given(programs())
def test_programs_on_tier_0_agree_with_pytorch(program):
    with on("numpy"):
        check(program, run(program, [tn.tensor(each) for each in program.inputs], program.pause))


PROGRAMS = int(os.environ.get("TENFOLD_RANDOM_PROGRAMS", "60"))
SEED = int(os.environ.get("TENFOLD_RANDOM_SEED", "0"))
many_programs = settings(each_program, max_examples=PROGRAMS, derandomize=False, database=None)


@seed(SEED)
@many_programs
@given(programs())
def test_programs_run_by_the_policy_of_tiers_agree_with_pytorch(program):
    with mock.patch.object(tiers, "setting", lambda: ""):
        for pause in (1, 3, 1000):
            check(program, run(program, [tn.tensor(each) for each in program.inputs], pause))


@pytest.mark.slow
@settings(each_program, max_examples=10_000)
@given(programs(60))
def test_ten_thousand_programs_on_tier_0_agree_with_pytorch(program):
    with on("numpy"):
        check(program, run(program, [tn.tensor(each) for each in program.inputs], program.pause))
