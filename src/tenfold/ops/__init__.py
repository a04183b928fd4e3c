"""The op table: importing this package declares every row."""

from tenfold.ops import (  # noqa: F401
    activations,
    bitwise,
    compare,
    contraction,
    creation,
    distance,
    division,
    dropout,
    einsum,
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
    softmax,
    strided,
    transcendental,
    views,
)
from tenfold.ops.table import TABLE, Row, find

__all__ = ["TABLE", "Row", "find"]
