"""The op table: importing this package declares every row."""

from tenfold.ops import (  # noqa: F401
    bitwise,
    compare,
    creation,
    division,
    dropout,
    extremes,
    indexing,
    joining,
    masks,
    padding,
    parts,
    pointwise,
    random,
    reductions,
    rounding,
    sampling,
    scatter,
    shape,
    strided,
    transcendental,
    views,
)
from tenfold.ops.table import TABLE, Row, find

__all__ = ["TABLE", "Row", "find"]
