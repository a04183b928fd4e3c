"""Tangents in the Trace: how the results of a node move as its inputs do, as one node beside it.

While a level of forward mode is open, which `autograd/forward_ad.py` opens, every node whose inputs move is
followed by such a node: an ordinary one, whose FlatIR is what `flat/jvp.py` makes of the other's.
"""

from __future__ import annotations

from collections.abc import Sequence

from tenfold import flat
from tenfold.base.bounded import remember
from tenfold.flat.ir import in_order
from tenfold.flat.jvp import tangents as pushed_forward
from tenfold.ops.table import Row, Signature
from tenfold.trace.graph import Node, Value, enter

JVP = Row("jvp(Tensor[] primals, Tensor[] tangents) -> Tensor[]", lambda *values: values, {})
RANDOM_JVP = Row(JVP.text, JVP.lowering, {"random": True})

# By signature and which inputs move: what computes the tangents, which of primals and tangents it takes, and
# which results have one.
_known: dict[tuple[int, tuple[bool, ...]], tuple[Signature | None, list[int], list[bool]]] = {}


def push(node: Node, tangents: Sequence[Value | None]) -> list[Value | None]:
    """The tangents of a node's results, given those of its inputs; None for what nothing moves."""
    moving = tuple([each is not None for each in tangents])
    key = (node.signature.id, moving)
    known = _known.get(key)
    if known is None:
        known = remember(_known, key, _signature(node.signature, moving))
    signature, used, moved = known
    if signature is None:
        return [None] * len(moved)
    available = [*node.inputs, *[each for each in tangents if each is not None]]
    made = Node(signature, tuple([available[i] for i in used]), node.source)
    found = iter(enter(made, available[-1].device))
    return [next(found) if moves else None for moves in moved]


def _signature(
    signature: Signature, moving: Sequence[bool]
) -> tuple[Signature | None, list[int], list[bool]]:
    fragment = signature.fragment
    primals = [flat.Value(each.type) for each in fragment.params]
    along = [flat.Value(each.type) if moves else None for each, moves in zip(primals, moving, strict=True)]
    results = fragment.inline(primals, None, whole=True)
    found = pushed_forward(in_order(results), primals, along, results)
    flows = signature.row.differentiable
    open_to = flows if isinstance(flows, tuple) else (flows,) * len(found)
    kept = [t if flow else None for t, flow in zip(found, open_to, strict=True)]
    wanted = [each for each in kept if each is not None]
    moved = [each is not None for each in kept]
    if not wanted:
        return None, [], moved
    params = [*primals, *[each for each in along if each is not None]]
    # No gradient of a tangent comes to what it does not depend on.
    needed = {*wanted, *[operand for op in in_order(wanted) for operand in op.operands]}
    used = [i for i, each in enumerate(params) if each in needed]
    taken = [params[i] for i in used]
    row = RANDOM_JVP if signature.row.random else JVP
    types = tuple([each.type for each in taken])
    return Signature(row, types, (), flat.Function(taken, wanted, "jvp")), used, moved
