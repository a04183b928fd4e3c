"""`tenfold.nn`: neural networks, by the names of `torch.nn`."""

from tenfold.nn import functional
from tenfold.nn.module import Module
from tenfold.nn.parameter import Buffer, Parameter, UninitializedBuffer, UninitializedParameter
