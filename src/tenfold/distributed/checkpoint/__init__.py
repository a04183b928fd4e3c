"""`distributed.checkpoint`: nested dicts of tensors in a folder. Each process writes the parts that it has;
any mesh, or a single process, reads them."""

from tenfold.distributed.checkpoint import state_dict
from tenfold.distributed.checkpoint.reading import load
from tenfold.distributed.checkpoint.writing import async_save, save

__all__ = ["async_save", "load", "save", "state_dict"]
