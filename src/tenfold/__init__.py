"""Tenfold: PyTorch's names on lazy tensors, compiled as whole programs."""

from tenfold import dispatch, ops
from tenfold.functional import tensor
from tenfold.tensor import Size, Tensor

_namespaces: dict = {"": globals()}
dispatch.install(_namespaces)
