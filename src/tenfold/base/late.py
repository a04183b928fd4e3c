"""Imports that take effect when what they bring is first used, so that `import tenfold` stays quick: of a
package's own submodules by `late_imports`, and of what only the functions of a module call by
`on_first_use`."""

from __future__ import annotations

import builtins
import importlib
import sys
import threading
from collections.abc import Callable
from types import ModuleType
from typing import Any, NamedTuple

from tenfold.base.errors import unknown_name
from tenfold.base.forking import forkable, imports
from tenfold.base.garbage import kept

_replacing = forkable(threading.Lock())  # held while `__import__` is another one


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
        with imports.under_way(), kept():
            module = importlib.import_module(f"{self._package}.{submodule}")
        namespace.setdefault(submodule, module)
        for each in self._names_of[submodule]:
            namespace.setdefault(each, getattr(module, each))  # what a program has put there stays
        return namespace[name]


class on_first_use:
    """A block whose imports take effect when a function first uses what they bring:

        with on_first_use(__name__):
            import json
            from tenfold.flat import jvp
            from tenfold.flat.reducing import reduced

    Each name stands for a module or a function until then, and is bound to it from then on: what is used
    often costs nothing more. To type checkers and to the rules about imports these are imports like any
    others. Not for classes that are derived from, or that `isinstance` asks for, nor for what is compared by
    identity, nor for functions that count the frames above them: the first call has one more.
    """

    def __init__(self, module: str):
        self._namespace = vars(sys.modules[module])

    def __enter__(self) -> None:
        _replacing.acquire()
        self._import = builtins.__import__
        builtins.__import__ = self._stand_in

    def __exit__(self, *error: object) -> None:
        builtins.__import__ = self._import
        _replacing.release()

    def _stand_in(
        self, name: str, globals: Any = None, locals: Any = None, fromlist: Any = (), level: int = 0
    ) -> Any:
        """What one of the block's imports takes its names from; other threads import as ever."""
        if globals is not self._namespace:
            return self._import(name, globals, locals, fromlist, level)
        assert level == 0 and (fromlist or "." not in name)
        return _Source(globals, name) if fromlist else _Unused(globals, name)


class _Source:
    """What `from … import` takes unused names from."""

    def __init__(self, namespace: dict[str, Any], module: str):
        self._of = namespace, module

    def __getattr__(self, name: str) -> _Unused:
        return _Unused(*self._of, name)


class _Unused:
    """Stands for a module, or for a name that it brings, until it is used."""

    __slots__ = ("_module", "_name", "_namespace")
    __hash__ = None  # type: ignore[assignment]  # it is not equal to what it stands for

    def __init__(self, namespace: dict[str, Any], module: str, name: str | None = None):
        for slot, value in zip(("_namespace", "_module", "_name"), (namespace, module, name), strict=True):
            object.__setattr__(self, slot, value)

    def __getattr__(self, name: str) -> Any:
        return getattr(_loaded(self), name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(_loaded(self), name, value)

    def __delattr__(self, name: str) -> None:
        delattr(_loaded(self), name)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return _loaded(self)(*args, **kwargs)

    def __dir__(self) -> list[str]:
        return dir(_loaded(self))

    def __repr__(self) -> str:
        return repr(_loaded(self))


def _loaded(unused: _Unused) -> Any:
    """What a name stands for, loaded now, and bound to the name in its namespace."""
    namespace, name = unused._namespace, unused._name
    with imports.under_way(), kept():
        value: Any = importlib.import_module(unused._module)
        if name is not None:
            value = getattr(value, name, unused)
            if value is unused:
                value = importlib.import_module(f"{unused._module}.{name}")
    for bound, present in list(namespace.items()):
        if present is unused:
            namespace[bound] = value  # what a program has put there stays
    return value


def load_all(module: ModuleType) -> None:
    """Bring into a package's namespace all that loads when it is used."""
    load = vars(module).get("__getattr__")
    if isinstance(getattr(load, "__self__", None), late_imports):
        for name in dir(module):
            getattr(module, name)
