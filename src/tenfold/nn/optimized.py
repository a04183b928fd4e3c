"""The result of compiling a module: a module whose calls are compiled programs."""

from __future__ import annotations

from typing import Any

from tenfold.base.late import on_first_use
from tenfold.nn.module import Module

with on_first_use(__name__):
    from tenfold import compiler


OWN = frozenset(["_orig_mod", "_run", "training"])


class OptimizedModule(Module):
    """A wrapper around a module, `_orig_mod`, that runs its calls as compiled programs, one for each
    signature of its inputs. All other attributes and methods are those of the wrapped module."""

    def __init__(
        self, module: Module, dynamic: bool | None = None, mode: str | None = None, fullgraph: bool = False
    ):
        super().__init__()
        self._orig_mod = module
        self._run = compiler.compile(module.__call__, fullgraph=fullgraph, dynamic=dynamic, mode=mode)
        self.training = module.training

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self._run(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        module = self.__dict__["_modules"].get("_orig_mod") if "_modules" in self.__dict__ else None
        return super().__getattr__(name) if module is None or name in OWN else getattr(module, name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name in OWN:
            super().__setattr__(name, value)
        else:
            setattr(self._orig_mod, name, value)

    def __delattr__(self, name: str) -> None:
        delattr(self._orig_mod, name)

    def __reduce__(self) -> Any:
        return OptimizedModule, (self._orig_mod,)


Module._optimized = OptimizedModule
