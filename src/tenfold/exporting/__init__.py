"""Programs for other compilers: `export` a model to the torch dialect, StableHLO, linalg or TOSA, and
`load_stablehlo` to run such a file; `module_context` records what is done in a block."""

from tenfold.exporting.context import RecordedModule, module_context
from tenfold.exporting.exported import DIALECTS, Exported, export
from tenfold.exporting.loaded import LoadedModule, load_stablehlo

__all__ = [
    "DIALECTS",
    "Exported",
    "LoadedModule",
    "RecordedModule",
    "export",
    "load_stablehlo",
    "module_context",
]
