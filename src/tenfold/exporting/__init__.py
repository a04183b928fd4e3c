"""Programs for other compilers: `export` a model to the torch dialect, StableHLO, linalg or TOSA, or have
IREE compile it; run such files with `load_stablehlo` and `load_vmfb`; `module_context` records what is done
in a block."""

from tenfold.base.dim import Dim
from tenfold.exporting.context import RecordedModule, module_context
from tenfold.exporting.exported import DIALECTS, Exported, export
from tenfold.exporting.stablehlo_files import LoadedModule, load_stablehlo
from tenfold.exporting.vmfb import BuiltModule, load_vmfb

__all__ = [
    "DIALECTS",
    "BuiltModule",
    "Dim",
    "Exported",
    "LoadedModule",
    "RecordedModule",
    "export",
    "load_stablehlo",
    "load_vmfb",
    "module_context",
]
