"""What each FlatIR op costs, from its types alone: arithmetic, bytes moved, and an estimated time."""

from __future__ import annotations

from dataclasses import dataclass

from tenfold.flat.elementwise import Elementwise
from tenfold.flat.ir import Op
from tenfold.runtime import tiers


@dataclass(frozen=True)
class Cost:
    """Of one op: floating-point operations, bytes read and written, and seconds by the model of the tiers."""

    flops: int
    bytes: int
    seconds: float


def cost_of(op: Op) -> Cost:
    """The cost of one op, by the model that decides on tiers. A view moves nothing; an elementwise function
    counts as one operation for each element."""
    work = tiers.total([op])
    moved = work.bytes * tiers.BYTE + work.flops * tiers.FLOP + work.calls * tiers.CALL
    if isinstance(op, Elementwise):
        return Cost(sum(result.numel for result in op.results), work.bytes, moved)
    return Cost(work.flops + work.calls, work.bytes, moved)
