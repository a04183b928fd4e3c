"""Random programs of pointwise ops, reductions, shapes, indexing and writes, over several dtypes and shapes.

Steps are well-conditioned on floats, so that rounding does not grow: what jumps (comparisons, division of
integers, argmax) is applied to integers.
"""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import torch

from tests.random_programs.programs import Program, Step, Use, apply

DTYPES = ("float32", "float64", "int64", "int32", "uint8", "bool")
SHAPES = ((3, 4), (4,), (3, 1), (), (2, 3, 4), (1, 4), (0, 4))


def dim(x: Any, number: int) -> int:
    return number % max(x.ndim, 1)


def fitting(y: Any, x: Any) -> Any:
    """A tensor to write into another: what an integer makes of a NaN or of a large float, C leaves open."""
    return y.to(x.dtype) if y.is_floating_point() <= x.is_floating_point() else x


def write(x: Any, index: Any, value: Any) -> Any:
    x[index] = value
    return x


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
    Step("stack", 2, "fib", lambda lib, n, x, y: lib.stack(lib.broadcast_tensors(x, fitting(y, x)), 0)),
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
    Step("copy_", 2, "fi", lambda lib, n, x, y: x.copy_(fitting(y, x))),
    Step("setitem", 2, "fi", lambda lib, n, x, y: write(x, n, fitting(y, x))),
    Step("iadd", 1, "fi", lambda lib, n, x: write(x, slice(0, 1), x[-1:] + 1)),
]


def grow(seed: int, length: int = 30) -> Program:
    """A program, grown while PyTorch runs it: steps that it refuses are left out."""
    draw = random.Random(seed)
    inputs = [random_input(draw) for _ in range(4)]
    pool = [torch.from_numpy(each.copy()) for each in inputs]
    uses: list[Use] = []
    wanted = draw.randint(10, length)
    for _ in range(3 * wanted):
        step = draw.choice(STEPS)
        places = tuple(draw.randrange(len(pool)) for _ in range(step.operands))
        use = Use(step, places, draw.randrange(4))
        if kind_of(pool[places[0]]) in step.kinds and tried(pool, use):
            uses.append(use)
        if len(uses) == wanted:
            break
    pause = draw.choice([1, 4, 1000])
    return Program(
        f"general program {seed}", inputs, uses, frozenset(range(pause - 1, len(uses), pause)), pool
    )


def random_input(draw: random.Random) -> np.ndarray:
    rng = np.random.default_rng(draw.getrandbits(32))
    dtype, shape = draw.choice(DTYPES), draw.choice(SHAPES)
    numbers = rng.normal(0, 1, shape) if dtype[0] == "f" else rng.integers(0, 5, shape)
    return np.asarray(numbers).astype(dtype)


def tried(pool: list[torch.Tensor], use: Use) -> bool:
    """Whether PyTorch does this, with a result of a kind and size to go on with, which joins the pool."""
    before = [each.clone() for each in pool]
    try:
        made = apply(torch, pool, use)
    except (RuntimeError, IndexError, TypeError):
        same = [np.array_equal(x, y, equal_nan=x.is_floating_point()) for x, y in zip(before, pool)]
        if not all(same):
            raise  # half a write would have to be undone
        return False
    if made.numel() > 2000 or made.ndim > 5 or made.is_complex():
        pool.pop()
        return False
    return True


def kind_of(x: torch.Tensor) -> str:
    return "f" if x.is_floating_point() else "b" if x.dtype == torch.bool else "i"
