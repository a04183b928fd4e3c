"""Packages whose submodules load when one of their names is first used, so that an import stays quick."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any

from tenfold.base.errors import unknown_name
from tenfold.base.garbage import kept


def late_names(
    package: str, names_of: Mapping[str, tuple[str, ...]]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """The `__getattr__` and `__dir__` of a package, given the names that each of its submodules brings.

    A submodule is a name of the package too. So none may bring a name equal to its own: whoever imports such
    a submodule by its path would bind the module to that name.
    """
    assert not any(submodule in names for submodule, names in names_of.items())
    namespace = vars(sys.modules[package])
    module_of = {name: submodule for submodule, names in names_of.items() for name in (submodule, *names)}

    def load(name: str) -> Any:
        if name not in module_of:
            raise unknown_name(package, name, [*namespace, *module_of])
        submodule = module_of[name]
        with kept():
            module = importlib.import_module(f"{package}.{submodule}")
        for each in names_of[submodule]:
            namespace.setdefault(each, getattr(module, each))  # what a program has put there stays
        return namespace[name]

    return load, lambda: sorted({*namespace, *module_of})


def load_all(module: ModuleType) -> None:
    """Bring into a package's namespace all that `late_names` would bring when it is used."""
    load = vars(module).get("__getattr__")
    if getattr(load, "__module__", None) == __name__:
        for name in dir(module):
            getattr(module, name)
