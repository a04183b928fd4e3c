"""`torch.export`: modules as graphs of ATen calls, which can be read, changed, run, saved and loaded.

`tenfold.export`, which is a function, writes programs for other compilers."""

from typing import Any

from tenfold.compat.export.archive import load, save
from tenfold.compat.export.dimensions import Dim, ShapesCollection, dims
from tenfold.compat.export.programs import ExportedModule, ExportedProgram, export
from tenfold.compat.export.signature import ExportGraphSignature


def default_decompositions() -> dict[Any, Any]:
    """An empty table, for `run_decompositions`: each op of a program is one that Tenfold lowers by itself."""
    return {}


__all__ = [
    "Dim", "ExportGraphSignature", "ExportedModule", "ExportedProgram", "ShapesCollection",
    "default_decompositions", "dims", "export", "load", "save",
]  # fmt: skip
