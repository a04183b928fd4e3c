"""Whether a program uses tensors: only then is it linked with libtenfold."""

from __future__ import annotations

from tenfold.purple import core
from tenfold.purple.captures import everything
from tenfold.purple.names import PRIMITIVES, row_of

TENSOR_FAMILY = "tensors"
DRAWING = ("%uniform", "%normal", "%permutation")


def uses_tensors(program: core.Program) -> bool:
    return any(_is_about_tensors(node) for form in program.forms for node in everything(form))


def _is_about_tensors(node: core.Node) -> bool:
    match node:
        case core.Prim() | core.PrimRef():
            found = PRIMITIVES.get(node.name)
            if found is None:
                return row_of(node.name) is not None
            return (found.family == TENSOR_FAMILY and node.name != "tensor?") or node.name in DRAWING
        case core.With():
            return True
        case core.Ffi():
            passed = [*node.parameters, node.result]
            return node.symbol.startswith("tn_") or any(each.type == "tensor" for each in passed)
    return False
