"""When two procedures are the same one: where the same lambda made them and what they hold is the same.

So a procedure need not be one object: a compiled program makes it anew wherever it is mentioned. A variable
that the program assigns is a place, and the same only as itself.
"""

from __future__ import annotations

from collections.abc import Callable
from types import CellType, FunctionType
from typing import Any

ASSIGNED = "m"  # ends Python's names of variables that the program assigns


def is_same_procedure(
    left: FunctionType, right: FunctionType, is_same_value: Callable[[Any, Any], bool]
) -> bool:
    stack = [(left, right)]
    seen = set()  # what holds itself is compared once
    while stack:
        left, right = stack.pop()
        if left is right or (id(left), id(right)) in seen:
            continue
        if left.__code__ is not right.__code__:
            return False
        seen.add((id(left), id(right)))
        held = zip(left.__code__.co_freevars, left.__closure__ or (), right.__closure__ or ())
        for name, one, other in held:
            if one is other:
                continue
            if name.endswith(ASSIGNED):
                return False
            a, b = content(one), content(other)
            if type(a) is FunctionType and type(b) is FunctionType:
                stack.append((a, b))
            elif not is_same_value(a, b):
                return False
    return True


def content(cell: CellType) -> Any:
    """What a captured variable holds; one that is not defined yet stands for itself."""
    try:
        return cell.cell_contents
    except ValueError:
        return cell
