"""`tenfold.ops.load_library`: operators that a package has compiled for PyTorch."""

from __future__ import annotations

from typing import NoReturn

from tenfold.base.errors import MissingEngine, located


@located
def load_library(path: str) -> NoReturn:
    """Refused: a library of operators calls PyTorch's own C++. It is an ImportError, which packages expect
    where their library does not load."""
    raise MissingEngine(
        f"{path} has operators that are compiled for PyTorch",
        help="write them in Python, and register them with tenfold.library.custom_op",
    )
