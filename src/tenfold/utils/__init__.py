"""`tenfold.utils`: the place where PyTorch keeps its data loading, checkpoints, trees and hooks."""

import sys
from typing import Any

from tenfold import data
from tenfold.base.errors import unknown_name
from tenfold.tensor.swapping import swap_tensors
from tenfold.utils import _pytree, checkpoint, deterministic, hooks

# `import tenfold.utils.data.distributed` and `from tenfold.utils.data import DataLoader` find the modules of
# `tenfold.data`.
sys.modules["tenfold.utils.data"] = data
sys.modules["tenfold.utils.data.dataloader"] = data.dataloader
sys.modules["tenfold.utils.data.distributed"] = data.distributed

__all__ = ["_pytree", "checkpoint", "data", "deterministic", "hooks", "swap_tensors"]


def __getattr__(name: str) -> Any:
    raise unknown_name("tenfold.utils", name, globals())
