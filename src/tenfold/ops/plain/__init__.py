"""ATen's ops on plain Python values: numbers, texts, lists, dictionaries, and questions about tensors.

What they give is computed at once, while a program is recorded, so a program never holds them. They are
reached through `tenfold.ops.aten` and `tenfold.ops.prim` alone, and loaded with these."""

from tenfold.ops.plain import containers, numbers, questions  # noqa: F401
from tenfold.ops.plain.table import PLAIN, PlainRow, plain

__all__ = ["PLAIN", "PlainRow", "plain"]
