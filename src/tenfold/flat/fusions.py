"""How large a kernel XLA's CPU compiler makes: an estimate of what it fuses into one."""

from __future__ import annotations

from collections.abc import Iterator

from tenfold.flat.data_ops import BroadcastInDim, Constant, Iota, Pad, Reshape, Reverse, Slice, Transpose
from tenfold.flat.elementwise import Elementwise, OptimizationBarrier, Power
from tenfold.flat.ir import Function, Op, Value

FUSED = (
    *(Elementwise, BroadcastInDim, Constant, Iota, Pad, Reshape, Reverse, Slice, Transpose),
    OptimizationBarrier,  # gone before ops are fused
)


def is_plain(function: Function) -> bool:
    """Whether XLA's older emitters compute it right: they get integers to negative powers wrong, and do not
    know all that there is for complex numbers."""
    return not any(
        operand.dtype.kind == "complex" or (isinstance(op, Power) and operand.dtype.kind != "float")
        for op in _with_regions(function)
        for operand in op.operands
    )


def _with_regions(function: Function) -> Iterator[Op]:
    """The ops of a function and of all regions in it."""
    for op in function.expanded().ops:
        yield op
        for field in op.fields:
            held = op.__dict__[field]
            for region in held if isinstance(held, tuple) else (held,):
                if isinstance(region, Function):
                    yield from _with_regions(region)


def largest_fusion(function: Function, least: int) -> int:
    """How many ops the largest kernel has, 0 if there are fewer than `least` ops to fuse. An op goes into the
    kernel of those that use its results, where that is one."""
    if sum(isinstance(op, FUSED) for op in function.ops) < least:
        return 0
    used_in: dict[Value, set[int | None]] = {result: {None} for result in function.results}
    sizes: list[int] = []
    for op in reversed(function.ops):
        kernel = _kernel(op, used_in, sizes)
        for operand in op.operands:
            used_in.setdefault(operand, set()).add(kernel)
    return max(sizes, default=0)


def _kernel(op: Op, used_in: dict[Value, set[int | None]], sizes: list[int]) -> int | None:
    """The kernel that an op goes into, by its number; None if it is fused with nothing."""
    if not isinstance(op, FUSED):
        return None
    users = set().union(*[used_in.get(result, set()) for result in op.results])
    kernel = users.pop() if len(users) == 1 else None
    if kernel is None:
        kernel = len(sizes)
        sizes.append(0)
    sizes[kernel] += 1
    return kernel
