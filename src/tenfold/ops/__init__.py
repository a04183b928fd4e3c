"""The op table: importing this package declares every row."""

from tenfold.ops import creation, pointwise, views  # noqa: F401
from tenfold.ops.table import TABLE, Row, find

__all__ = ["TABLE", "Row", "find"]
