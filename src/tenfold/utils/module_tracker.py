"""`utils.module_tracker`: in which modules a program is, inside a block."""

from __future__ import annotations

from typing import Any

from tenfold.nn.hooks import register_module_forward_hook, register_module_forward_pre_hook
from tenfold.nn.module import Module

__all__ = ["ModuleTracker"]


class ModuleTracker:
    """While the block runs, `parents` has the names of the modules whose forward is running: "Global", the
    outermost module's class, and below it the names of its parts.

        with ModuleTracker() as tracker:
            model(x)  # a hook may read tracker.parents
    """

    def __init__(self) -> None:
        self.parents: set[str] = {"Global"}
        self.is_bw = False  # a backward pass runs no module
        self._names: dict[int, str] = {}
        self._running: list[str] = []

    def __enter__(self) -> ModuleTracker:
        self._handles = (
            register_module_forward_pre_hook(self._enter),
            register_module_forward_hook(self._leave, always_call=True),
        )
        return self

    def __exit__(self, *error: object) -> None:
        for handle in self._handles:
            handle.remove()

    def _name(self, module: Module) -> str:
        if id(module) not in self._names:
            outermost = type(module).__name__
            for name, part in module.named_modules():
                self._names[id(part)] = f"{outermost}.{name}" if name else outermost
        return self._names[id(module)]

    def _enter(self, module: Module, inputs: Any) -> None:
        name = self._name(module)
        self._running.append(name)
        self.parents.add(name)

    def _leave(self, module: Module, inputs: Any, output: Any) -> None:
        self._running.remove(self._name(module))
        self.parents = {"Global", *self._running}
