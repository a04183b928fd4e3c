"""`tenfold.ops.load_library`: operators that a package has compiled for PyTorch."""

from __future__ import annotations

from pathlib import Path

from tenfold.base.errors import MissingEngine, located
from tenfold.ops.table import OTHERS


@located
def load_library(path: str) -> None:
    """Nothing, where the library's operators are rows here, as torchvision's are. Others call PyTorch's own
    C++ and are refused, by an ImportError, which packages expect where their library does not load."""
    library = Path(path)
    if library.parent.name in OTHERS and library.stem.partition(".")[0] == "_C":
        return
    raise MissingEngine(
        f"{path} has operators that are compiled for PyTorch",
        help="write them in Python, and register them with tenfold.library.custom_op",
    )
