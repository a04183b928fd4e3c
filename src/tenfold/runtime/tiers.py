"""The policy of tiers: what runs at once on tier 0 (NumPy), what XLA compiles, what it compiles meanwhile.

A decision is a pure function of what a program is estimated to cost, how often it was seen, and the settings.
The estimates come from types alone. They need to be right within a factor of a few: compiling costs tens of
milliseconds, which is a thousand times what a small program takes. docs/tiers.md gives the reasons.
"""

from __future__ import annotations

import enum
import functools
import math
import os
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from tenfold.base.devices import Device
from tenfold.base.errors import ArgumentError
from tenfold.flat import elementwise as e, indexed, structured, windows
from tenfold.flat.composite import Composite
from tenfold.flat.data_ops import BroadcastInDim, Constant, Iota, Reshape, Reverse, Slice, Transpose
from tenfold.flat.ir import Function, Op

# Seconds, as measured on one core of a server of 2023.
STEP = 2e-6  # for tier 0 to start a kernel
BYTE = 3e-10  # for tier 0 to read or write one: results are arrays of their own
FLOP = 5e-11  # of a matrix product
CALL = 1e-8  # for an element of a function such as exp
COMPILE, COMPILE_OP = 45e-3, 1.5e-3  # for XLA: a program, and each of its ops
ROUNDS = 100  # that a loop is taken to make: its condition is not known
SMALL = 6e-5  # what it costs to find an executable and to call it
PATIENCE = 0.05  # of the time to compile a program that tier 0 may spend on it first
LONG = 0.25  # seconds of compiling that a program's first result need not wait for
WORTH = 0.25  # of the time to compile a program without optimisations that it may run before it is optimised


class Tier(enum.Enum):
    NUMPY = "numpy"  # run on tier 0
    XLA = "xla"  # compile now and run
    BACKGROUND = "background"  # run on tier 0, and compile in another thread for the next time


class Decision(NamedTuple):
    tier: Tier
    reason: str


class Work(NamedTuple):
    """What a program costs: kernels, bytes read and written, multiplications and additions of matrix
    products, elements of transcendental functions."""

    ops: int = 0
    bytes: int = 0
    flops: int = 0
    calls: int = 0

    def plus(self, other: Work, times: int = 1) -> Work:
        return Work(*[a + times * b for a, b in zip(self, other, strict=True)])

    @property
    def seconds(self) -> float:
        """The time that tier 0 takes, estimated."""
        return self.ops * STEP + self.bytes * BYTE + self.flops * FLOP + self.calls * CALL

    @property
    def compile_seconds(self) -> float:
        """The time that XLA takes to compile it, estimated."""
        return COMPILE + self.ops * COMPILE_OP


def decide(
    work: Work, seen: int, *, setting: str = "", device: str = "cpu", pinned: bool = False
) -> Decision:
    """Where a lazy program runs that was `seen` so often before. `pinned` says that results must be the same
    to the bit, whenever it runs."""
    if device != "cpu":
        return Decision(Tier.XLA, f"its data is on {device}")
    if setting:
        return Decision(Tier(setting), f"TENFOLD_TIER={setting}")
    if pinned:
        return Decision(Tier.XLA, "use_deterministic_algorithms keeps to one tier")
    if work.seconds <= SMALL:
        return Decision(Tier.NUMPY, "to call an executable would take as long")
    if work.seconds > work.compile_seconds:
        return Decision(Tier.XLA, "one run on tier 0 would take longer than to compile it")
    if seen == 0:
        return Decision(Tier.NUMPY, "it is seen for the first time")
    if seen * work.seconds < PATIENCE * work.compile_seconds:
        return Decision(Tier.NUMPY, "it was not seen often yet")
    return Decision(Tier.BACKGROUND, "it is seen again and again")


def compiles_in_haste(work: Work, device: Device, pinned: bool) -> bool:
    """Whether XLA compiles a program without optimisations first, to optimise it while that runs. That takes
    a fifth of the time, and the program up to four times as long: it pays unless one run takes long, too.
    Libraries compute products and convolutions either way, so what counts is the memory that is moved."""
    if device.type != "cpu" or device.mesh is not None or pinned or setting():
        return False
    return work.compile_seconds > LONG and work.bytes * BYTE < work.compile_seconds / 2


@functools.cache
def setting() -> str:
    """What TENFOLD_TIER forces, as it was at the first use: "numpy", "xla", or "" for neither."""
    found = os.environ.get("TENFOLD_TIER", "")
    if found not in ("", "numpy", "xla"):
        raise ArgumentError(
            f"TENFOLD_TIER={found!r} names no tier", help="one of numpy, xla, or leave it unset"
        )
    return found


def work_of(function: Function) -> Work:
    """The work of a function, from the types of its values."""
    return total(function.ops)


def total(ops: Iterable[Op]) -> Work:
    """The work of some ops. Views are kernels that move nothing, and a plan has constants beforehand."""
    count = moved = flops = calls = 0
    nested: Work | None = None
    for op in ops:
        kind = type(op)
        if kind is Constant:
            continue
        if kind in NESTED:
            nested = (nested or Work()).plus(NESTED[kind](op))
            continue
        count += 1
        if kind in FREE:
            continue
        numel = 0
        for value in op.results:
            numel += value.type.numel
            moved += value.type.numel * value.type.dtype.itemsize
        for value in op.operands:
            moved += value.type.numel * value.type.dtype.itemsize
        if kind in ARITHMETIC:
            multiplications, elements = ARITHMETIC[kind](op, numel)
            flops += multiplications
            calls += elements
        elif kind not in CHEAP and issubclass(kind, e.Elementwise):
            calls += numel
    work = Work(count, moved, flops, calls)
    return work if nested is None else work.plus(nested)


FREE = frozenset(
    (BroadcastInDim, Reshape, Reverse, Slice, Transpose, e.OptimizationBarrier, structured.Check)
)
CHEAP = frozenset(
    (
        *(e.Abs, e.Add, e.And, e.Ceil, e.Conj, e.CountLeadingZeros, e.Divide, e.Floor, e.Imag, e.IsFinite),
        *(e.Maximum, e.Minimum, e.Multiply, e.Negate, e.Not, e.Or, e.Real, e.RoundNearestEven, e.Sign),
        *(e.ShiftLeft, e.ShiftRightArithmetic, e.ShiftRightLogical, e.Sqrt, e.Subtract, e.Xor),
    )
)


def _loop(op: Any) -> Work:
    return Work().plus(work_of(op.body).plus(work_of(op.condition)), ROUNDS)


def _branches(op: Any) -> Work:
    return max([work_of(branch) for branch in op.branches], key=lambda work: work.seconds)


NESTED: dict[type, Callable[[Any], Work]] = {
    Composite: lambda op: work_of(op.body),
    structured.While: _loop,
    structured.Case: _branches,
}


def _product(op: Any, numel: int) -> tuple[int, int]:
    return 2 * numel * math.prod([op.x.shape[d] for d in op.dot_dimension_numbers[2]]), 0


def _convolution(op: Any, numel: int) -> tuple[int, int]:
    features = op.kernel.shape[op.dimension_numbers.kernel_output_feature_dimension]
    return 2 * numel * (op.kernel.numel // max(features, 1)), op.x.numel + numel


def _windows(op: Any, numel: int) -> tuple[int, int]:
    return 0, op.operands[0].numel * min(math.prod(op.window_dimensions), 64)


def _order(op: Any, numel: int) -> tuple[int, int]:
    count = op.operands[0].numel
    return 0, 4 * count * max(count.bit_length(), 1)


def _places(op: Any, numel: int) -> tuple[int, int]:
    return 0, 2 * (op.operands[0].numel if op.operands else 0) + 2 * numel


def _factors(op: Any, numel: int) -> tuple[int, int]:
    edge = max([*op.operands[0].shape[-2:], 1])
    return 20 * op.operands[0].numel * edge, op.operands[0].numel * 10


# Of an op with so many elements in its results: steps of products, and calls of functions.
ARITHMETIC: dict[type, Callable[[Any, int], tuple[int, int]]] = {
    structured.DotGeneral: _product,
    windows.Convolution: _convolution,
    windows.CuttingConvolution: _convolution,
    **dict.fromkeys((windows.ReduceWindow, windows.SelectAndScatter), _windows),
    **dict.fromkeys((structured.Sort, structured.TopK), _order),
    **dict.fromkeys((structured.Fft, indexed.Gather, indexed.Scatter), _places),
    **dict.fromkeys((structured.RngBitGenerator, Iota), _places),
    **dict.fromkeys((structured.Cholesky, structured.TriangularSolve, structured.CustomCall), _factors),
}
