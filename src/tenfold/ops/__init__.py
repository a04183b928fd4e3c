"""The op table: importing this package declares every row."""

from tenfold.ops import (  # noqa: F401
    bitwise,
    compare,
    creation,
    extremes,
    parts,
    pointwise,
    reductions,
    rounding,
    transcendental,
    views,
)
from tenfold.ops.table import TABLE, Row, find

__all__ = ["TABLE", "Row", "find"]
