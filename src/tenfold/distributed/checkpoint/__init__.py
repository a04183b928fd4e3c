"""`distributed.checkpoint`: nested dicts of tensors, saved in a folder. Each process writes its own parts;
any mesh, or a single process, can read them."""

from tenfold.distributed.checkpoint import state_dict
from tenfold.distributed.checkpoint.reading import load
from tenfold.distributed.checkpoint.writing import async_save, save

__all__ = ["async_save", "load", "save", "state_dict"]
