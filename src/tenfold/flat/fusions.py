"""How large a kernel XLA's CPU compiler makes: an estimate of what it fuses into one."""

from __future__ import annotations

from tenfold.flat.data_ops import BroadcastInDim, Constant, Iota, Pad, Reshape, Reverse, Slice, Transpose
from tenfold.flat.elementwise import Elementwise, OptimizationBarrier
from tenfold.flat.ir import Function, Op, Value

FUSED = (
    *(Elementwise, BroadcastInDim, Constant, Iota, Pad, Reshape, Reverse, Slice, Transpose),
    OptimizationBarrier,  # gone before ops are fused
)
APART = -1  # the kernel of what is not fused


def largest_fusion(function: Function, least: int) -> int:
    """How many ops the largest kernel has, 0 if there are fewer than `least` ops to fuse. An op goes into the
    kernel of those that use its results, where that is one."""
    if sum(isinstance(op, FUSED) for op in function.ops) < least:
        return 0
    used_in: dict[Value, set[int]] = {result: {APART} for result in function.results}
    sizes: list[int] = []
    for op in reversed(function.ops):
        kernel = _kernel(op, used_in, sizes)
        for operand in op.operands:
            used_in.setdefault(operand, set()).add(kernel)
    return max(sizes, default=0)


def _kernel(op: Op, used_in: dict[Value, set[int]], sizes: list[int]) -> int:
    if not isinstance(op, FUSED):
        return APART
    users = set().union(*[used_in.get(result, set()) for result in op.results])
    kernel = users.pop() if len(users) == 1 else APART
    if kernel == APART:
        kernel = len(sizes)
        sizes.append(0)
    sizes[kernel] += 1
    return kernel
