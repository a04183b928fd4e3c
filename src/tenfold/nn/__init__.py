"""`tenfold.nn`: neural networks. For now the functions of `torch.nn.functional`, in `tenfold.nn.functional`."""

from tenfold.nn import functional

__all__ = ["functional"]
