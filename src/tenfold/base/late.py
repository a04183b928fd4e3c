"""Packages whose submodules load when one of their names is first used, so that an import stays quick."""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from tenfold.base.errors import unknown_name
from tenfold.base.garbage import kept

# `from tenfold.nn.linear import Linear as Linear`, in parentheses where there are many names.
_IMPORT = re.compile(r"^( *)from ([\w.]+) import (\([^)]*\)|.*)", re.MULTILINE)
_ITSELF = re.compile(r"\b(\w+) as \1\b")


def late_names(package: str) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """The `__getattr__`, `__dir__` and `__all__` of a package, from the imports in its own source.

    Each name is written once, imported as itself (`Linear as Linear`), which type checkers take for public.
    What stands under `if TYPE_CHECKING:` loads with its submodule, when it is used. A submodule is a name of
    the package too. So none may bring a name equal to its own: whoever imports such a submodule by its path
    would bind the module to that name.
    """
    namespace = vars(sys.modules[package])
    names_of, public = written_names(package, Path(namespace["__file__"]).read_text(encoding="utf-8"))
    assert not any(submodule in names for submodule, names in names_of.items())
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

    return load, lambda: sorted({*namespace, *module_of}), public


def written_names(package: str, source: str) -> tuple[dict[str, list[str]], list[str]]:
    """From the source of a package: the names of each submodule that loads late, and all public names."""
    names_of: dict[str, list[str]] = {}
    public: list[str] = []
    for indent, module, imported in _IMPORT.findall(source):
        names = _ITSELF.findall(imported)
        public += names
        if indent and module == package:
            names_of.update({submodule: [] for submodule in names if submodule not in names_of})
        elif indent:
            names_of.setdefault(module.removeprefix(f"{package}."), []).extend(names)
    return names_of, public


def load_all(module: ModuleType) -> None:
    """Bring into a package's namespace all that `late_names` would bring when it is used."""
    load = vars(module).get("__getattr__")
    if getattr(load, "__module__", None) == __name__:
        for name in dir(module):
            getattr(module, name)
