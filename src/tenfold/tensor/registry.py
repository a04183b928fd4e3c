"""Registers methods of Tensor that are defined elsewhere, by users too."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from tenfold.base.errors import ArgumentError
from tenfold.base.source import capture
from tenfold.tensor.tensor import Tensor

__all__ = ["TENSOR_METHOD_REGISTRY", "MethodRegistry"]

Method = TypeVar("Method", bound=Callable[..., Any])


class MethodRegistry:
    """The methods of tensors that were registered by name.

        @tenfold.TENSOR_METHOD_REGISTRY("cube")
        def cube(self):
            return self * self * self

        tenfold.ones(3).cube()

    A name that tensors already have is refused, unless `replace` is set. `remove` removes a registered
    method, and restores what it replaced.
    """

    def __init__(self) -> None:
        self._methods: dict[str, list[Any]] = {}

    def __call__(self, name: str, *, replace: bool = False) -> Callable[[Method], Method]:
        if not isinstance(name, str) or not name.isidentifier():
            raise ArgumentError(f"{name!r} is no name of a method").located(
                "TENSOR_METHOD_REGISTRY", capture()
            )
        if hasattr(Tensor, name) and not replace:
            raise ArgumentError(
                f"tensors have a method {name} already", help="replace=True replaces it"
            ).located("TENSOR_METHOD_REGISTRY", capture())

        def register(method: Method) -> Method:
            self._methods.setdefault(name, []).append(Tensor.__dict__.get(name))
            setattr(Tensor, name, method)
            return method

        return register

    def remove(self, name: str) -> None:
        if name not in self._methods:
            raise ArgumentError(f"no method {name} was registered").located(
                "TENSOR_METHOD_REGISTRY", capture()
            )
        before = self._methods[name].pop()
        if not self._methods[name]:
            del self._methods[name]
        if before is None:
            delattr(Tensor, name)
        else:
            setattr(Tensor, name, before)

    def __contains__(self, name: object) -> bool:
        return name in self._methods

    def __iter__(self) -> Any:
        return iter(self._methods)


TENSOR_METHOD_REGISTRY = MethodRegistry()
