"""The names of the torch dialect's ops on a module under construction: `module.aten.add.int(2, 3)`.

Type checkers read the stub of this file, in which each op has its operands and results.
"""

from __future__ import annotations

from typing import Any

from tenfold.mlir import torch_dialect
from tenfold.mlir.torch_operations import overloads, signature

__all__ = ["Dialect", "Ops"]


class Ops:
    """The ops under a name: `module.aten.add.int(2, 3)`, or `module.aten.add(2, 3)` for the overload that
    takes such operands."""

    def __init__(self, builder: Dialect, name: str):
        self._builder, self._name = builder, name

    def __getattr__(self, name: str) -> Ops:
        if "_name" not in self.__dict__:  # a copy that is not filled yet
            raise AttributeError(name)
        ops = Ops(self._builder, f"{self._name}.{name}")
        if name.startswith("__") and not overloads(f"torch.{ops._name}"):
            raise AttributeError(name)  # a question of Python's own
        return ops

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._builder.op(self._name, *args, **kwargs)

    def __dir__(self) -> list[str]:
        start = f"torch.{self._name}."
        known = torch_dialect.operations()
        return sorted({name.removeprefix(start).split(".")[0] for name in known if name.startswith(start)})

    def __repr__(self) -> str:
        names = overloads(f"torch.{self._name}")
        return "\n".join([str(signature(name)) for name in names]) or f"<ops of torch.{self._name}>"


class Dialect:
    """What has the dialect's ops as attributes, and builds one by its name."""

    def __getattr__(self, name: str) -> Ops:
        known = f"torch.{name}"
        if name.startswith("_") or not any(
            operation == known or operation.startswith(f"{known}.")
            for operation in torch_dialect.operations()
        ):
            raise AttributeError(
                f"a module has no attribute {name}, and the torch dialect no ops of that name"
            )
        return Ops(self, name)

    def op(self, name: str, *args: Any, **kwargs: Any) -> Any:
        """Build an op by its name."""
        raise NotImplementedError
