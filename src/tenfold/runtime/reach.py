"""The names that a function's code may reach: variables, functions, methods of objects, attributes of
classes, and what the code of those reaches in turn.

Code of this package, of Python's library and of installed ones is not looked into: it is what it was.
"""

from __future__ import annotations

import dis
import functools
import os
import sys
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from types import CellType, CodeType, FunctionType, MemberDescriptorType, MethodType, ModuleType, NoneType
from typing import Any, NamedTuple

from tenfold.base.package import NAME, is_ours
from tenfold.runtime.bindings import FAR
from tenfold.runtime.containers import Absent, Attributes, Cells, Count, Has, Slots

_DESCRIPTORS = (staticmethod, classmethod, property, functools.cached_property)
_CONTAINERS = (tuple, list, dict, deque, set, frozenset)
_SHADOWED = (FunctionType, staticmethod, classmethod)  # what an object's own attribute takes the place of
_SLOT = MemberDescriptorType
_MAKING = ("__init__", "__new__")  # methods that are called on classes, and not on objects
_INSTALLED = ("site-packages", "dist-packages")  # folders of installed libraries


class Reach:
    """What is reached from a function and objects that it is given, with `tensor` the class of tensors, which
    are not looked into."""

    def __init__(self, function: Any, arguments: Iterable[Any], tensor: type):
        self._passed_by = (tensor, NoneType, bool, int, float, complex, str, bytes)
        self._seen: dict[int, Any] = {}
        self._waiting: deque[Any] = deque()
        # What attributes are called in all code that is reached: those it looks up, calls, or sets.
        self._names: dict[str, None] = {}
        self._called: dict[str, None] = {}
        self._set: set[str] = set()
        self._asked: dict[str, None] = {}  # attributes that it does well without
        self._by_other_means = False  # whether it may look up any
        self._asks_any = False  # whether it may ask for any, if they are there
        self._functions: dict[FunctionType, Names] = {}
        self._dressed: list[FunctionType] = []  # functions that may have attributes
        self._kinds: dict[type, None] = {}
        self._bases: dict[type, list[type]] = {}
        self._modules: list[ModuleType] = []
        self.objects: list[Any] = []  # but for those of this package's classes
        self._slotted: list[tuple[Any, list[str]]] = []  # objects with attributes that have slots
        self.owner: Any = None  # what it is a method of
        self._want(arguments)
        self._start(function)
        while self._waiting:
            self._see(self._waiting.popleft())
            if not self._waiting:
                self._see_named()

    def containers(self) -> Iterator[tuple[Any, Iterable[Any]]]:
        """Where names are looked up that decide what the function does, and which."""
        for function, names in self._functions.items():
            yield function.__globals__, names.variables
            if function.__defaults__:
                yield function.__defaults__, range(len(function.__defaults__))
            if function.__kwdefaults__:
                yield function.__kwdefaults__, tuple(function.__kwdefaults__)
        cells = Cells(
            [
                pair
                for function in self._functions
                for pair in zip(function.__code__.co_freevars, function.__closure__ or (), strict=False)
            ]
        )
        yield cells, tuple(cells)
        for function in self._dressed:
            yield vars(function), self._named(vars(function))
        for kind in self._kinds:
            yield Attributes(kind), self._named(vars(kind))
        for module in self._modules:
            yield vars(module), self._named(vars(module))
        for holder in self.objects:
            yield vars(holder), self._chosen(vars(holder))
        for holder, slots in self._slotted:
            yield Slots(holder), self._chosen(_bound(holder, slots))

    def absent(self) -> Iterator[tuple[Any, str]]:
        """Names that are not bound in a class or an object, but in a class it is made of: it may come to have
        something else there."""
        for kind in self._kinds:
            for name in self._inherited(kind.__mro__[1:]):
                if name not in vars(kind):
                    yield Attributes(kind), name
        inherited = {kind: self._inherited(kind.__mro__) for kind in set(map(type, self.objects))}
        for holder in self.objects:
            for name in inherited[type(holder)]:
                if name not in vars(holder):
                    yield vars(holder), name

    def unbound(self) -> Iterator[tuple[Any, Any]]:
        """Where attributes are not there that the code asks for, or that would take the place of methods,
        and which; of objects whose attributes it looks up by other means, how many there are."""
        asked = frozenset(self._asked)
        for module in self._modules:
            if missing := asked.difference(vars(module)):
                yield Absent(f"the module {module.__name__}", vars(module)), missing
            yield from self._present(vars(module), vars(module))
        for kind in self._kinds:
            inherited = self._methods(kind.__mro__[1:])
            if missing := asked.union(inherited).difference(vars(kind)):
                yield Absent(f"the class {kind.__qualname__}", vars(kind)), missing
            yield from self._present(Attributes(kind), vars(kind))
        methods = {kind: self._methods(kind.__mro__) for kind in set(map(type, self.objects))}
        for holder in self.objects:
            yield from self._present(vars(holder), vars(holder))
            if is_ours(type(holder)):
                continue  # a module says by itself what it does not have
            if missing := asked.union(methods[type(holder)]).difference(vars(holder)):
                yield Absent(f"a {type(holder).__qualname__}", vars(holder)), missing
            if self._by_other_means or self._asks_any:
                yield Count(holder), "attributes"
        for holder, slots in self._slotted:
            for name in slots:
                if (name in asked or self._asks_any) and not hasattr(holder, name):
                    yield Has(Slots(holder)), name

    def _present(self, container: Any, bound: Mapping[str, Any]) -> Iterator[tuple[Any, Any]]:
        """The attributes that are there, and of which the code asks nothing else."""
        for name in self._asked:
            if name in bound and name not in self._names:
                yield Has(container), name

    def _methods(self, kinds: Iterable[type]) -> frozenset[str]:
        """The methods of the user's own classes that the code may call."""
        return frozenset(
            name
            for kind in kinds
            if kind in self._kinds
            for name, bound in vars(kind).items()
            if isinstance(bound, _SHADOWED) and self._may_call(kind, name)
        )

    def _may_call(self, kind: type, name: str) -> bool:
        if name in self._names or name in self._called:
            return not name.startswith("__")
        return name == "forward" and is_ours(kind)

    def _inherited(self, kinds: Iterable[type]) -> list[str]:
        """What is bound in classes of the user's own to something else than methods."""
        bound = {name: vars(kind)[name] for kind in kinds if kind in self._kinds for name in vars(kind)}
        methods = (FunctionType, *_DESCRIPTORS, _SLOT)
        return [name for name in self._names if name in bound and not isinstance(bound[name], methods)]

    def _named(self, bound: Mapping[str, Any]) -> list[str]:
        """The names that the code may come to among those that are bound, and those that it binds."""
        called = [name for name in self._called if name in bound and self._is_called(name, bound[name])]
        return [*called, *(name for name in self._names if name in bound or name in self._set)]

    def _chosen(self, attributes: Mapping[str, Any]) -> list[str]:
        """Of an object's attributes those that the code may come to: any, if it looks them up by other
        means."""
        return [
            name
            for name, value in attributes.items()
            if self._by_other_means or name in self._names or self._is_called(name, value)
        ]

    def _is_called(self, name: str, value: Any) -> bool:
        """Whether it may be what is called by a name: `optimizer.step()` does not come to a number `step`."""
        return name in self._called and name not in self._names and callable(value)

    def _start(self, function: Any) -> None:
        """The function itself is looked into, whosever it is."""
        while function is not None:
            self._want([function])
            if isinstance(function, functools.partial):
                function = function.func
            elif isinstance(function, MethodType):
                self.owner, function = function.__self__, function.__func__
            elif isinstance(function, FunctionType):
                self._read(function)
                function = getattr(function, "__wrapped__", None)  # what a decorator was given
            else:
                called: Any = type(function).__call__
                self.owner, function = function, called if isinstance(called, FunctionType) else None

    def _want(self, values: Iterable[Any]) -> None:
        for value in values:
            kind = type(value)
            if issubclass(kind, self._passed_by) or id(value) in self._seen:
                continue
            if not issubclass(kind, _CONTAINERS) or len(value) or self._own(kind):
                self._seen[id(value)] = value
                self._waiting.append(value)

    def _see(self, value: Any) -> None:
        kind = type(value)  # of a proxy its own: what it stands for may be gone
        if kind is FunctionType:
            own, wrapped = _is_users_own(value.__globals__.get("__name__")), vars(value).get("__wrapped__")
            if own:
                self._read(value)
            if own or wrapped is not None:
                self._want([wrapped])
                self._dressed.append(value)
        elif kind is MethodType:
            self._want([value.__func__, value.__self__])
        elif issubclass(kind, _DESCRIPTORS):
            self._want([getattr(value, name, None) for name in ("__func__", "fget", "fset", "func")])
        elif issubclass(kind, type):
            self._kinds.update(dict.fromkeys(self._own(value)))
            self._want([vars(base).get(name) for base in self._own(value) for name in _MAKING])
        elif issubclass(kind, ModuleType):
            if _is_users_own(value.__name__):
                self._modules.append(value)
        elif len(self._seen) <= FAR:
            self._see_inside(value)

    def _see_inside(self, value: Any) -> None:
        kind = type(value)
        if issubclass(kind, functools.partial):
            self._want([value.func, *value.args, *value.keywords.values()])
        elif issubclass(kind, _CONTAINERS):
            self._want(value.values() if issubclass(kind, dict) else value)
        own = self._own(kind)
        self._kinds.update(dict.fromkeys(own))
        slots = [name for base in own for name in vars(base) if type(vars(base)[name]) is _SLOT]
        if slots:
            self._slotted.append((value, slots))
        if kind.__dictoffset__:
            if own or not is_ours(kind):
                self.objects.append(value)
            if is_ours(kind):
                self._want(vars(value).values())  # code of this package may come to any of it

    def _see_named(self) -> None:
        """What is reached of classes, objects and modules by the names in all code that is reached."""
        for kind in self._kinds:
            ours = [base for base in kind.__mro__ if _package(base.__module__) == NAME]
            for name, value in vars(kind).items():
                # Python calls some methods by itself, and this package those that it has, too.
                called = name.startswith("__") or any(hasattr(base, name) for base in ours)
                if (called or name in self._names or name in self._called) and name not in _MAKING:
                    self._want([value])
        for module in self._modules:
            self._want([vars(module)[name] for name in self._named(vars(module)) if name in vars(module)])
        for holder in self.objects:
            self._want([vars(holder)[name] for name in self._chosen(vars(holder))])
        for holder, slots in self._slotted:
            bound = _bound(holder, slots)
            self._want([bound[name] for name in self._chosen(bound)])

    def _own(self, kind: type) -> list[type]:
        """Of the classes that a class is made of, those that are the user's own."""
        bases = self._bases.get(kind)
        if bases is None:
            bases = [base for base in kind.__mro__ if _is_users_own(base.__module__)]
            self._bases[kind] = bases
        return bases

    def _read(self, function: FunctionType) -> None:
        if function in self._functions:
            return
        names = _names_in(function.__code__)
        self._functions[function] = names
        self._names.update(dict.fromkeys(names.attributes))
        self._called.update(dict.fromkeys(names.called))
        self._set.update(names.set)
        self._asked.update(dict.fromkeys(names.asked))
        self._asks_any |= "hasattr" in names.variables and not names.asked
        self._by_other_means |= not {"getattr", "vars", "__dict__"}.isdisjoint(
            names.variables + names.attributes
        )
        self._want([function.__globals__[name] for name in names.variables if name in function.__globals__])
        self._want([contents for cell in function.__closure__ or () for contents in _held(cell)])
        self._want([*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()])


def _is_users_own(module: Any) -> bool:
    """Whether a module, by its name, is no part of Python, of this package or of what is installed."""
    return not isinstance(module, str) or _is_own(_package(module))


def _package(module: str) -> str:
    return module.partition(".")[0]


@functools.cache
def _is_own(package: str) -> bool:
    module = sys.modules.get(package)
    files = [getattr(module, "__file__", None), *getattr(module, "__path__", ())]
    installed = any(folder in str(file).split(os.sep) for file in files for folder in _INSTALLED)
    return not installed and package != NAME and package not in sys.stdlib_module_names


class Names(NamedTuple):
    """The names in a function's code and in those that are defined in it, by what it does with them."""

    variables: tuple[str, ...]
    attributes: tuple[str, ...]  # that are read, set or deleted
    called: tuple[str, ...]  # attributes that are called where they are looked up
    set: tuple[str, ...]
    asked: tuple[str, ...]  # attributes that need not be there


@functools.lru_cache(maxsize=10_000)
def _names_in(code: CodeType) -> Names:
    names: dict[str, dict[str, None]] = {kind: {} for kind in Names._fields}
    codes = [code]
    for block in codes:
        codes += [const for const in block.co_consts if isinstance(const, CodeType)]
        if not {"hasattr", "getattr"}.isdisjoint(block.co_names):
            strings = [const for const in block.co_consts if isinstance(const, str) and const.isidentifier()]
            names["asked"].update(dict.fromkeys(strings))
            if "getattr" in block.co_names:
                names["attributes"].update(dict.fromkeys(strings))
        if "AttributeError" in block.co_names:
            names["asked"].update(dict.fromkeys(block.co_names))
        for instruction in dis.get_instructions(block):
            if instruction.opcode not in dis.hasname:
                continue
            kind = _kind_of(instruction)
            names[kind][instruction.argval] = None
            if instruction.opname == "STORE_ATTR":
                names["set"][instruction.argval] = None
    return Names(*(tuple(names[kind]) for kind in Names._fields))


def _kind_of(instruction: dis.Instruction) -> str:
    if not instruction.opname.endswith(("_ATTR", "_METHOD", "_FROM")):
        return "variables"
    # From Python 3.12 on a method is looked up by LOAD_ATTR, whose lowest bit says that it is called.
    flagged = instruction.opname == "LOAD_ATTR" and sys.version_info >= (3, 12) and (instruction.arg or 0) & 1
    return "called" if instruction.opname == "LOAD_METHOD" or flagged else "attributes"


def _bound(owner: Any, slots: Iterable[str]) -> dict[str, Any]:
    """The attributes of an object that have slots, those that are there."""
    return {name: getattr(owner, name) for name in slots if hasattr(owner, name)}


def _held(cell: CellType) -> list[Any]:
    try:
        return [cell.cell_contents]
    except ValueError:  # it has no value yet, or no longer
        return []
