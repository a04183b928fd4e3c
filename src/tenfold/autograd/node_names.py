"""The names of the nodes of a gradient's graph, `grad_fn.name()`: those of PyTorch's autograd."""

from __future__ import annotations

import re

from tenfold.ops.callee import Callee, OpCall


def step_name(callee: Callee) -> str:
    """The name of an op's gradient: what its row states, else after the op or the one it is an alias of."""
    name = callee.name
    if isinstance(callee, OpCall):
        stated = callee.row.grad_fn
        if callable(stated):
            return stated([type.rank for type in callee.types])
        if stated:
            return stated
        name = callee.row.alias_of or callee.row.name
    words = name.strip("_").split("_")
    joined = "".join(word[:1].upper() + word[1:] for word in words)
    camel = re.sub(r"\d[a-z]", lambda match: match[0].upper(), joined)
    return f"{camel}Backward0"
