"""The Tensor: its value (`tensor.py`), views and writes through them (`views.py`), indexing, conversion,
methods from the op table (`dispatch.py`) and methods by hand (`methods.py`)."""

from tenfold.tensor.tensor import Tensor, leaf

__all__ = ["Tensor", "leaf"]
