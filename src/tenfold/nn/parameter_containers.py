"""Containers of parameters: by number, by name. Tensors put into them become parameters; other objects are
kept beside them."""

from __future__ import annotations

import operator
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from operator import itemgetter
from typing import Any

from tenfold.base.errors import ArgumentError, IndexOutOfRange
from tenfold.base.source import capture
from tenfold.nn.module import Module, in_layer
from tenfold.nn.parameter import Parameter
from tenfold.nn.registry import RegistrationError
from tenfold.tensor import Tensor


def _as_parameter(value: Any) -> Any:
    return Parameter(value) if isinstance(value, Tensor) and not isinstance(value, Parameter) else value


def _described(name: Any, value: Any, type_text: str | None = None) -> str:
    if not isinstance(value, Tensor):
        return f"  ({name}): Object of type: {type(value).__name__}"
    kind = "Parameter" if isinstance(value, Parameter) else "Tensor"
    sizes = "x".join(map(str, value.shape))
    place = "" if value.device.type == "cpu" else f" ({value.device})"
    return f"  ({name}): {kind} containing: [{type_text or value.dtype} of size {sizes}{place}]"


class ParameterList(Module):
    """A list of parameters, which it registers as its own

    scales = nn.ParameterList([tn.ones(4) for _ in range(3)])
    """

    def __init__(self, values: Iterable[Any] | None = None):
        super().__init__()
        self._size = 0
        if values is not None:
            self += values

    def _name(self, index: Any) -> str:
        place = operator.index(index)
        if not -len(self) <= place < len(self):
            raise IndexOutOfRange(f"index {place} is out of range for {len(self)} values").located(
                "ParameterList", capture()
            )
        return str(place % len(self))

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return type(self)(list(self)[index])
        return getattr(self, self._name(index))

    def __setitem__(self, index: int, value: Any) -> None:
        setattr(self, self._name(index), _as_parameter(value))

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[Any]:
        return iter([self[i] for i in range(len(self))])

    def __iadd__(self, values: Iterable[Any]) -> Any:
        return self.extend(values)

    def append(self, value: Any) -> ParameterList:
        """Add a value at the end; a tensor becomes a parameter."""
        name = str(self._size)
        self._size += 1
        setattr(self, name, _as_parameter(value))
        return self

    def extend(self, values: Iterable[Any]) -> ParameterList:
        """Add values at the end; tensors become parameters."""
        if not isinstance(values, Iterable) or isinstance(values, Tensor):
            raise ArgumentError(f"takes several values, not a {type(values).__name__}").located(
                "ParameterList", capture()
            )
        for value in list(values):
            self.append(value)
        return self

    def __dir__(self) -> list[str]:
        return [each for each in super().__dir__() if not each.isdigit()]

    def extra_repr(self) -> str:
        return "\n".join([_described(i, value) for i, value in enumerate(self)])

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise ArgumentError("a ParameterList is not called").located("ParameterList", capture())


class ParameterDict(Module):
    """A dict of parameters, which it registers as its own

    weights = nn.ParameterDict({"left": tn.ones(4), "right": tn.zeros(4)})
    """

    def __init__(self, parameters: Any = None):
        super().__init__()
        self._keys: dict[str, None] = {}
        if parameters is not None:
            self.update(parameters)

    def _attribute(self, key: Any) -> str:
        # A name that is not free, such as "forward", must not be hidden.
        if not isinstance(key, str):
            raise ArgumentError(f"a key is a string, not a {type(key).__name__}").located(
                "ParameterDict", capture()
            )
        return key

    def __getitem__(self, key: str) -> Any:
        if key not in self._keys:
            raise RegistrationError(f"no parameter {key!r}").located("ParameterDict", capture())
        return getattr(self, self._attribute(key))

    def __setitem__(self, key: str, value: Any) -> None:
        name = self._attribute(key)
        if key not in self._keys and hasattr(self, name):
            raise RegistrationError(f"the name {key!r} is taken").located("ParameterDict", capture())
        self._keys[key] = None
        setattr(self, name, _as_parameter(value))

    def __delitem__(self, key: str) -> None:
        self[key]
        del self._keys[key]
        delattr(self, self._attribute(key))

    def __len__(self) -> int:
        return len(self._keys)

    def __iter__(self) -> Iterator[str]:
        return iter(self._keys)

    def __reversed__(self) -> Iterator[str]:
        return reversed(list(self._keys))

    def __contains__(self, key: object) -> bool:
        return key in self._keys

    def copy(self) -> ParameterDict:
        return ParameterDict({key: self[key] for key in self._keys})

    def setdefault(self, key: str, default: Any = None) -> Any:
        if key not in self._keys:
            self[key] = default
        return self[key]

    def clear(self) -> None:
        for key in list(self._keys):
            del self[key]

    def pop(self, key: str) -> Any:
        """Remove a name and return its value."""
        value = self[key]
        del self[key]
        return value

    def popitem(self) -> tuple[str, Any]:
        """Remove and return the last name and value."""
        if not self._keys:
            raise RegistrationError("nothing is left to take out").located("ParameterDict", capture())
        key = next(reversed(self))
        return key, self.pop(key)

    def get(self, key: str, default: Any = None) -> Any:
        return self[key] if key in self._keys else default

    def fromkeys(self, keys: Iterable[str], default: Any = None) -> ParameterDict:
        return ParameterDict((key, default) for key in keys)

    def keys(self) -> Any:
        return self._keys.keys()

    def items(self) -> Any:
        return [(key, self[key]) for key in self._keys]

    def values(self) -> Any:
        return [self[key] for key in self._keys]

    @in_layer
    def update(self, parameters: Any) -> None:
        """Add values from a mapping, or from pairs of a name and a value; tensors become parameters. Those of
        a mapping are added in the order of their names, unless it is an OrderedDict or a ParameterDict."""
        if not isinstance(parameters, Iterable):
            raise ArgumentError(f"takes a mapping or pairs, not a {type(parameters).__name__}")
        if isinstance(parameters, (OrderedDict, ParameterDict)):
            pairs: Iterable[Any] = parameters.items()
        elif isinstance(parameters, Mapping):
            pairs = sorted(parameters.items(), key=itemgetter(0))
        else:
            pairs = parameters
        for pair in pairs:
            if not isinstance(pair, (tuple, list)) or len(pair) != 2:
                raise ArgumentError(f"takes pairs of a name and a value, not {pair!r}")
            self[pair[0]] = pair[1]

    def extra_repr(self) -> str:
        old_name = lambda value: value.type() if isinstance(value, Tensor) else None
        return "\n".join([_described(key, value, old_name(value)) for key, value in self.items()])

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise ArgumentError("a ParameterDict is not called").located("ParameterDict", capture())

    def __or__(self, other: Any) -> ParameterDict:
        return ParameterDict(chain(self.items(), other.items()))

    def __ror__(self, other: Any) -> ParameterDict:
        return ParameterDict(chain(other.items(), self.items()))

    def __ior__(self, other: Any) -> Any:
        self.update(other)
        return self
