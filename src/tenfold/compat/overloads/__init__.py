"""`tenfold.ops.aten.add.Tensor` and the like: every overload by its schema's own name.

A namespace has a packet for each name, and a packet an overload for each schema. Most overloads are rows of
the op table; those on plain Python values are computed at once; `name_` and `out` follow from the rows."""

from tenfold.compat.overloads import tensors  # noqa: F401
from tenfold.compat.overloads.packets import NAMESPACES, Namespace, Overload, Packet, namespace
from tenfold.tensor import quantized  # noqa: F401

__all__ = ["NAMESPACES", "Namespace", "Overload", "Packet", "namespace"]
