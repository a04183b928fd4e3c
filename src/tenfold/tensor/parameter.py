"""Parameters: the tensors of a module that are trained."""

from __future__ import annotations

from typing import Any

from tenfold.base import owners
from tenfold.base.errors import ArgumentError
from tenfold.base.source import capture
from tenfold.tensor import Tensor
from tenfold.trace import graph
from tenfold.trace.graph import Value

__all__ = ["Parameter"]


class Parameter(Tensor):
    """A tensor to be trained, which a module registers when it is assigned to an attribute."""

    __slots__ = ()

    def __init__(self, data: Any = None, requires_grad: bool = True):
        if data.__class__ is Value:
            super().__init__(data)
        elif data is None:
            super().__init__(())
        elif isinstance(data, Tensor):
            # Shares the memory of a tensor that others see; from one made for the purpose, takes it over.
            held = data._alias is not None or owners.count(data) > owners.CONSTRUCTED
            shared = data.detach() if held else data
            super().__init__(graph.fresh(shared.current(), capture()), shared._alias)
        else:
            raise ArgumentError(f"a Parameter is made of a Tensor, not of a {type(data).__name__}").located(
                "Parameter", capture()
            )
        if requires_grad:
            self.requires_grad_()

    def __deepcopy__(self, memo: dict[int, Any]) -> Tensor:
        copy = super().__deepcopy__(memo)
        copy.grad = None  # a copied model begins without gradients
        return copy

    def __repr__(self) -> str:
        return f"Parameter containing:\n{super().__repr__()}"
