"""`tenfold.nn`: neural networks. For now its functions, in `tenfold.nn.functional`."""

from tenfold.nn import functional

__all__ = ["functional"]
