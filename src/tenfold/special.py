"""`tenfold.special`: the functions of `torch.special`, by the same names. The op table fills it."""

from typing import Any

from tenfold.base.errors import unknown_name
from tenfold.tensor import Tensor as Tensor


def __getattr__(name: str) -> Any:
    raise unknown_name("tenfold.special", name, globals())
