"""Whether a program uses tensors: only then is it linked with libtenfold."""

from __future__ import annotations

import functools

from tenfold.purple import core
from tenfold.purple.captures import everything
from tenfold.purple.names import PRIMITIVES, row_of

TENSOR_FAMILY = "tensors"
DRAWING = ("%uniform", "%normal", "%permutation")


@functools.lru_cache(maxsize=2)  # a program does not change, and each of its C files asks
def uses_tensors(program: core.Program) -> bool:
    return any(_needs_tensors(node) for form in program.forms for node in everything(form))


def is_about_tensors(name: str) -> bool:
    """Whether a primitive takes or gives tensors, and nothing else would do."""
    found = PRIMITIVES.get(name)
    if found is None:
        return row_of(name) is not None
    return (found.family == TENSOR_FAMILY and name != "tensor?") or name in DRAWING


def _needs_tensors(node: core.Node) -> bool:
    match node:
        case core.Prim() | core.PrimRef():
            return is_about_tensors(node.name)
        case core.With():
            return True
        case core.Ffi():
            passed = [*node.parameters, node.result]
            return node.symbol.startswith("tn_") or any(each.type == "tensor" for each in passed)
    return False
