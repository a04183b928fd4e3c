"""Cuts a lazy loop whose values nobody reads. It would be recorded without end, so past some depth its values
are computed.

A loop that repeats itself is cut after whole rounds. Then its pieces are the same program, which is compiled
once, and however many rounds there are, that program is no longer. Values that gradients flow to are computed
again by the gradient, so a loop of those is cut as late as can be.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

from tenfold.trace.graph import Node

SHORT = 500  # the depth past which a loop is cut where it repeats itself
LONG = 5_000  # the depth past which anything is cut


class _Rounds(threading.local):
    depth = 0  # of one round of the loop that this thread records, 0 if it is not known to be one


_rounds = _Rounds()


def is_due(node: Node) -> bool:
    """Whether to compute the chain of nodes that ends with this one now."""
    depth = node.depth
    if depth <= SHORT:
        return False
    if (depth - 1) % SHORT == 0:
        chain = _chain(node)
        if len(chain) < SHORT // 2:  # the rest was computed after nodes were recorded that follow it
            node.depth = len(chain)
            return False
        _rounds.depth = _period(chain)
    if depth > LONG:
        return True
    return node.spent is None and _rounds.depth > 0 and depth % _rounds.depth == 0


def _chain(node: Node) -> list[int]:
    """The callees of the longest chain's last nodes, from this one back: half of those that wait. What comes
    before a loop is left out."""
    called = []
    for _ in range(SHORT // 2):
        called.append(node.callee.id)
        waiting = [operand.node for operand in node.inputs if operand.node is not None]
        if not waiting:
            break
        node = max(waiting, key=lambda candidate: candidate.depth)
    return called


def _period(sequence: Sequence[Any]) -> int:
    """After how many places a sequence repeats itself, at least once as a whole; 0 if it does not. By the
    failure function of Knuth, Morris and Pratt."""
    borders = [0] * len(sequence)
    border = 0
    for i in range(1, len(sequence)):
        while border and sequence[i] != sequence[border]:
            border = borders[border - 1]
        border += sequence[i] == sequence[border]
        borders[i] = border
    period = len(sequence) - border
    return period if 2 * period <= len(sequence) else 0
