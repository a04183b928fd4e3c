"""Packages whose submodules load when one of their names is first used, so that an import stays quick."""

from __future__ import annotations

import builtins
import importlib
import sys
import threading
from collections.abc import Callable
from types import ModuleType
from typing import Any, NamedTuple

from tenfold.base.errors import unknown_name
from tenfold.base.garbage import kept

_replacing = threading.Lock()  # held while `__import__` is another one


class _LateName(NamedTuple):
    """Stands for a submodule, or for a name that it brings, while a package is imported."""

    submodule: str
    name: str | None = None


class _LateModule:
    """What import statements take late names from."""

    def __init__(self, package: str, module: str):
        self._submodule = module.removeprefix(package).removeprefix(".")

    def __getattr__(self, name: str) -> _LateName:
        return _LateName(self._submodule, name) if self._submodule else _LateName(name)


class late_imports:
    """A block at the end of a package, whose imports of its own submodules take effect when they are used:

        with late_imports(__name__) as late:
            from tenfold.optim.sgd import SGD as SGD

        __getattr__, __dir__, __all__ = late.attributes()

    Each name is written once, imported as itself, which type checkers take for public. The statements of the
    block run, but load nothing: `__import__` hands them stand-ins. What a package imports before the block is
    there at once; of that, all but modules is public too.

    A submodule is a name of the package. So none may bring a name equal to its own: whoever imports such a
    submodule by its path would bind the module to that name.
    """

    def __init__(self, package: str):
        self._package = package
        self._namespace = vars(sys.modules[package])
        self._public = [
            name
            for name, value in self._namespace.items()
            if not (name.startswith("_") or isinstance(value, ModuleType) or value is late_imports)
        ]
        self._names_of: dict[str, list[str]] = {}  # of each submodule that loads late
        self._submodule_of: dict[str, str] = {}

    def __enter__(self) -> late_imports:
        _replacing.acquire()
        self._import = builtins.__import__
        builtins.__import__ = self._stand_in
        return self

    def __exit__(self, *error: object) -> None:
        builtins.__import__ = self._import
        _replacing.release()
        for name, value in list(self._namespace.items()):
            if isinstance(value, _LateName):
                assert value.name != value.submodule
                del self._namespace[name]
                self._public.append(name)
                self._submodule_of[name] = self._submodule_of[value.submodule] = value.submodule
                self._names_of.setdefault(value.submodule, []).extend([name] if value.name else [])

    def _stand_in(self, name: str, globals: Any = None, *others: Any, **keywords: Any) -> Any:
        """The module that one of the block's imports names; other threads import as ever."""
        if globals is self._namespace:
            return _LateModule(self._package, name)
        return self._import(name, globals, *others, **keywords)

    def attributes(self) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
        """The `__getattr__`, `__dir__` and `__all__` of the package."""
        return self._load, lambda: sorted({*self._namespace, *self._submodule_of}), self._public

    def _load(self, name: str) -> Any:
        namespace, submodule = self._namespace, self._submodule_of.get(name)
        if submodule is None:
            raise unknown_name(self._package, name, [*namespace, *self._submodule_of])
        with kept():
            module = importlib.import_module(f"{self._package}.{submodule}")
        namespace.setdefault(submodule, module)
        for each in self._names_of[submodule]:
            namespace.setdefault(each, getattr(module, each))  # what a program has put there stays
        return namespace[name]


def load_all(module: ModuleType) -> None:
    """Bring into a package's namespace all that loads when it is used."""
    load = vars(module).get("__getattr__")
    if isinstance(getattr(load, "__self__", None), late_imports):
        for name in dir(module):
            getattr(module, name)
