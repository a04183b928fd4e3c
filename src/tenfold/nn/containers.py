"""Containers of modules: in order, by number, by name."""

from __future__ import annotations

import operator
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import Any, TypeVar

from tenfold.base.errors import ArgumentError, IndexOutOfRange
from tenfold.base.source import capture
from tenfold.nn.module import Module, _bracketed, _indented, in_layer

Self = TypeVar("Self", bound="_Numbered")


def _pop(self: Any, key: Any) -> Module:
    """Take out the module at an index, or of a name."""
    module: Module = self[key]
    del self[key]
    return module


class _Container(Module):
    """A module of others, which are asked for by name."""

    @property
    def _held(self) -> dict[str, Any]:
        """The modules, to be read: a function that is recorded depends on which there are."""
        self._guard()
        return self._modules

    def __len__(self) -> int:
        return len(self._held)


class _Numbered(_Container):
    """Modules under the names "0", "1", …"""

    def _name(self, index: Any) -> str:
        """The name of the module at an index, which may count from the end."""
        place = operator.index(index)
        if not -len(self) <= place < len(self):
            raise IndexOutOfRange(f"index {place} is out of range for {len(self)} modules").located(
                type(self).__name__, capture()
            )
        return list(self._held)[place]

    def _replace(self, modules: Iterable[Any]) -> None:
        held = list(modules)
        self._modules.clear()
        for i, module in enumerate(held):
            self.add_module(str(i), module)

    def __getitem__(self, index: Any) -> Any:
        return self._modules[self._name(index)]

    def __setitem__(self, index: Any, module: Module) -> None:
        setattr(self, self._name(index), module)

    def __delitem__(self, index: Any) -> None:
        names = list(self._modules)[index] if isinstance(index, slice) else [self._name(index)]
        for name in names:
            delattr(self, name)
        self._replace(self._modules.values())

    def __iter__(self) -> Iterator[Any]:
        return iter(list(self._held.values()))

    def __dir__(self) -> list[str]:
        return [each for each in super().__dir__() if not each.isdigit()]

    def append(self: Self, module: Module) -> Self:
        """Add a module at the end."""
        self.add_module(str(len(self)), module)
        return self

    def insert(self, index: int, module: Module) -> Any:
        """Put a module before the one at an index."""
        held = list(self)
        if not -len(held) <= index <= len(held):
            raise IndexOutOfRange(f"index {index} is out of range for {len(held)} modules").located(
                type(self).__name__, capture()
            )
        held.insert(index, module)
        self._replace(held)
        return self

    def extend(self: Self, modules: Iterable[Module]) -> Self:
        """Add modules at the end."""
        if not isinstance(modules, Iterable):
            raise ArgumentError(f"takes several modules, not a {type(modules).__name__}").located(
                type(self).__name__, capture()
            )
        for module in list(modules):
            self.append(module)
        return self

    pop = _pop

    def __iadd__(self: Self, modules: Iterable[Module]) -> Self:
        return self.extend(modules)


class Sequential(_Numbered):
    """Calls modules in sequence, each on the output of the one before

    Modules are named by their position, or by the keys of an OrderedDict.

        model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
        model(tn.ones(3, 4)).shape  # [3, 2]
        model[:2]  # the first two
    """

    def __init__(self, *args: Any):
        super().__init__()
        if len(args) == 1 and isinstance(args[0], OrderedDict):
            for name, module in args[0].items():
                self.add_module(name, module)
        else:
            for i, module in enumerate(args):
                self.add_module(str(i), module)

    def forward(self, input: Any) -> Any:
        for module in self._modules.values():
            input = module(input)
        return input

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return type(self)(OrderedDict(list(self._modules.items())[index]))
        return super().__getitem__(index)

    @in_layer
    def __add__(self, other: Any) -> Sequential:
        return Sequential(*self, *_sequential(other))

    @in_layer
    def __iadd__(self, other: Any) -> Any:
        return self.extend(_sequential(other))

    @in_layer
    def __mul__(self, times: int) -> Sequential:
        return Sequential(*(list(self) * _positive(times)))

    __rmul__ = __mul__

    @in_layer
    def __imul__(self, times: int) -> Any:
        return self.extend(list(self) * (_positive(times) - 1))


def _sequential(other: Any) -> Sequential:
    if not isinstance(other, Sequential):
        raise ArgumentError(f"a Sequential is added to another, not to a {type(other).__name__}")
    return other


def _positive(times: Any) -> int:
    if not isinstance(times, int) or times <= 0:
        raise ArgumentError(f"a Sequential is repeated a positive number of times, not {times!r}")
    return times


class ModuleList(_Numbered):
    """A list of modules, which it registers as submodules

    layers = nn.ModuleList([nn.Linear(4, 4) for _ in range(3)])
    """

    def __init__(self, modules: Iterable[Module] | None = None):
        super().__init__()
        if modules is not None:
            self += modules

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return type(self)(list(self._held.values())[index])
        return super().__getitem__(index)

    def insert(self, index: int, module: Module) -> None:
        """Put a module before the one at an index, as Python's lists do."""
        held = list(self)
        held.insert(index, module)
        self._replace(held)

    def __add__(self, other: Iterable[Module]) -> ModuleList:
        return ModuleList(chain(self, other))

    def __repr__(self) -> str:
        """As other modules; a run of equal ones is shown once, with its length."""
        runs: list[list[Any]] = []  # first, last, text
        for i, text in enumerate(map(repr, self)):
            if runs and runs[-1][2] == text:
                runs[-1][1] = i
            else:
                runs.append([i, i, text])
        lines = [
            f"({first}): {_indented(text)}"
            if first == last
            else f"({first}-{last}): {last - first + 1} x {_indented(text)}"
            for first, last, text in runs
        ]
        return _bracketed(self._get_name(), lines, single=False)


class ModuleDict(_Container):
    """A dict of modules, which it registers as submodules

    choices = nn.ModuleDict({"relu": nn.ReLU(), "gelu": nn.GELU()})
    """

    def __init__(self, modules: Any = None):
        super().__init__()
        if modules is not None:
            self.update(modules)

    def __getitem__(self, key: str) -> Any:
        return self._held[key]

    def __setitem__(self, key: str, module: Module) -> None:
        self.add_module(key, module)

    def __delitem__(self, key: str) -> None:
        del self._modules[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._held)

    def __contains__(self, key: str) -> bool:
        return key in self._held

    def clear(self) -> None:
        self._modules.clear()

    pop = _pop

    def keys(self) -> Any:
        return self._held.keys()

    def items(self) -> Any:
        return self._held.items()

    def values(self) -> Any:
        return self._held.values()

    @in_layer
    def update(self, modules: Any) -> None:
        """Add modules from a mapping, or from pairs of a name and a module."""
        if not isinstance(modules, Iterable):
            raise ArgumentError(f"takes a mapping or pairs, not a {type(modules).__name__}")
        pairs = modules.items() if isinstance(modules, (Mapping, ModuleDict)) else modules
        for pair in pairs:
            if not isinstance(pair, (tuple, list)) or len(pair) != 2:
                raise ArgumentError(f"takes pairs of a name and a module, not {pair!r}")
            self[pair[0]] = pair[1]
