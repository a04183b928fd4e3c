"""Python's plain values as R writes them."""

from __future__ import annotations

import math
from typing import Any

from tenfold.base.dtypes import DType

__all__ = ["literal"]


def literal(value: Any, counted: bool = False) -> str | None:
    """A value in R, where positions, which are `counted`, start at 1; None for what has no short form."""
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, int) and abs(value) < 2**31 - 1:
        return f"{value + 1 if counted and value >= 0 else value}L"
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else {math.inf: "Inf", -math.inf: "-Inf"}.get(value) or repr(value)
    if isinstance(value, str) and value.isprintable() and '"' not in value and "\\" not in value:
        return f'"{value}"'
    if isinstance(value, DType):
        return f'"{value.name}"'
    if isinstance(value, (tuple, list)) and value:
        entries = [literal(each, counted) for each in value]
        if None in entries:
            return None
        return entries[0] if len(entries) == 1 else f"c({', '.join(map(str, entries))})"
    return None
