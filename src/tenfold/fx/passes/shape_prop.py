"""`ShapeProp`: runs a graph and notes at each node the shape and dtype of what it gave."""

from __future__ import annotations

from typing import Any, NamedTuple

from tenfold.base.dtypes import DType
from tenfold.base.size import Size
from tenfold.fx.interpreter import Interpreter
from tenfold.fx.node import Node, map_aggregate
from tenfold.tensor import Tensor

__all__ = ["ShapeProp", "TensorMetadata"]


class TensorMetadata(NamedTuple):
    """What is known of a node's tensor."""

    shape: Size
    dtype: DType
    requires_grad: bool
    stride: tuple[int, ...]
    memory_format: Any
    is_quantized: bool
    qparams: dict[str, Any]


def _metadata(given: Any) -> Any:
    if not isinstance(given, Tensor):
        return given
    return TensorMetadata(given.shape, given.dtype, given.requires_grad, given.stride(), None, False, {})


class ShapeProp(Interpreter):
    """Fills `node.meta["tensor_meta"]` and `node.meta["type"]` of each node.

    >>> traced = tenfold.fx.symbolic_trace(lambda x: x.flatten(1))
    >>> result = tenfold.fx.passes.shape_prop.ShapeProp(traced).propagate(tenfold.ones(2, 3, 4))
    >>> [node.meta["tensor_meta"].shape for node in traced.graph.nodes if node.name == "flatten"]
    [tenfold.Size([2, 12])]
    """

    def __init__(self, gm: Any, fake_mode: Any = None):
        super().__init__(gm)

    def run_node(self, n: Node) -> Any:
        result = super().run_node(n)
        found = [False]

        def note(each: Any) -> Any:
            found[0] = found[0] or isinstance(each, Tensor)
            return _metadata(each)

        meta = map_aggregate(result, note)
        if found[0]:
            n.meta["tensor_meta"] = meta
        n.meta["type"] = type(result)
        return result

    def propagate(self, *args: Any) -> Any:
        return super().run(*args)
