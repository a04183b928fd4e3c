"""`tenfold.utils`: the place where PyTorch keeps its data loading and checkpoints."""

import sys

from tenfold import data
from tenfold.utils import checkpoint

# `import tenfold.utils.data` and `from tenfold.utils.data import DataLoader` find the one module there is.
sys.modules["tenfold.utils.data"] = data

__all__ = ["checkpoint", "data"]
