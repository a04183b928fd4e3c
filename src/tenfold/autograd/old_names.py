"""Names of `torch.autograd` that older scripts use: `Variable`, and a switch for multithreading."""

from __future__ import annotations

from typing import Any

from tenfold.base.errors import ArgumentError
from tenfold.base.source import capture
from tenfold.tensor import Tensor


class _Kind(type):
    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, Tensor)

    def __call__(cls, data: Any, requires_grad: bool = False, volatile: bool = False) -> Tensor:
        if not isinstance(data, Tensor):
            raise ArgumentError(f"takes a Tensor, not {type(data).__name__}").located("Variable", capture())
        return data.detach().requires_grad_(requires_grad)


class Variable(metaclass=_Kind):
    """A tensor: `Variable(x, requires_grad=True)` shares the data of x and requires gradients."""


class set_multithreading_enabled:
    """Has no effect: all gradients are one program, whose engine chooses its threads."""

    def __init__(self, mode: bool):
        self.mode = mode

    def __enter__(self) -> None:
        pass

    def __exit__(self, *error: Any) -> None:
        pass
