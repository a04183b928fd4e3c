"""Annotations of running functions as the text of a stub, and the imports that the text needs."""

from __future__ import annotations

import collections.abc
import inspect
import types
import typing
from collections.abc import Callable
from typing import Any

# Of these, stubs use other names: `float` and `type` are functions there, too.
SHADOWED = ("bool", "int", "float", "complex", "str", "type")
PLAIN = ("bytes", "tuple", "list", "dict", "set", "frozenset", "object", "slice")
PRELUDE = """\
# mypy: disable-error-code="overload-cannot-match, overload-overlap"
from builtins import {builtins}
from collections.abc import Callable as _Callable, Iterable as _Iterable, Iterator as _Iterator
from collections.abc import Mapping as _Mapping, Sequence as _Sequence
from typing import Any as _Any, NamedTuple as _NamedTuple, NoReturn as _NoReturn, overload as _overload
from typing import TypeAlias as _TypeAlias

import numpy as _np

from tenfold.base.devices import Device as _Device
from tenfold.base.dtypes import DType as _DType
from tenfold.tensor.generators import Generator as _Generator

_Number: _TypeAlias = _int | _float | _bool | _complex
""".format(builtins=", ".join(f"{each} as _{each}" for each in SHADOWED))


class Hints:
    """Writes annotations, and notes which classes must be imported for them."""

    def __init__(self, module: str):
        self.module = module
        self.imports: dict[str, str] = {}  # the class's name in the stub, and the import statement

    def text(self, hint: Any) -> str:
        if hint is None or hint is type(None):
            return "None"
        if hint is Any or isinstance(hint, (str, typing.TypeVar, typing.ForwardRef)):
            return "_Any"
        origin, parameters = typing.get_origin(hint), typing.get_args(hint)
        if origin in (typing.Union, types.UnionType):
            return " | ".join(dict.fromkeys(map(self.text, parameters)))
        if origin is typing.Literal:
            return "_str" if all(isinstance(parameter, str) for parameter in parameters) else "_Any"
        if origin is collections.abc.Callable:
            return f"_Callable[..., {self.text(parameters[-1])}]" if parameters else "_Callable[..., _Any]"
        if origin is not None:
            name = self._class(origin)
            given = [("..." if parameter is Ellipsis else self.text(parameter)) for parameter in parameters]
            return f"{name}[{', '.join(given)}]" if name != "_Any" and given else name
        return self._class(hint)

    def _class(self, hint: Any) -> str:
        if not isinstance(hint, type):
            return "_NoReturn" if hint in (typing.NoReturn, typing.Never) else "_Any"
        module, name = hint.__module__, hint.__qualname__
        if module == "builtins" and name in PLAIN:
            return name
        if module == "builtins" and name in SHADOWED:
            return f"_{name}"
        if module == "collections.abc" and name in (
            "Callable",
            "Iterable",
            "Iterator",
            "Mapping",
            "Sequence",
        ):
            return f"_{name}"
        if module == "numpy":
            return f"_np.{name}"
        if name in ("Device", "DType", "Generator"):
            return f"_{name}"
        if name == "Tensor" and module.startswith("tenfold.tensor"):
            return "Tensor"
        if module.startswith("tenfold.") and module != self.module and "." not in name:
            self.imports[f"_{name}"] = f"from {module} import {name} as _{name}"
            return f"_{name}"
        return name if module == self.module and "." not in name else "_Any"

    def signature(self, function: Callable[..., Any]) -> str:
        """The parameters and the result of a Python function: `(self, dim: _int = ...) -> Tensor`."""
        try:
            hints = typing.get_type_hints(inspect.unwrap(function))
        except (NameError, TypeError):
            hints = {}
        parts: list[str] = []
        parameters = list(inspect.signature(function).parameters.values())
        for i, parameter in enumerate(parameters):
            if parameter.kind is parameter.KEYWORD_ONLY and not any(part.startswith("*") for part in parts):
                parts.append("*")
            parts.append(self._parameter(parameter, hints))
            ends = i + 1 == len(parameters) or parameters[i + 1].kind is not parameter.POSITIONAL_ONLY
            if parameter.kind is parameter.POSITIONAL_ONLY and ends:
                parts.append("/")
        result = self.text(hints["return"]) if "return" in hints else "_Any"
        return f"({', '.join(parts)}) -> {result}"

    def _parameter(self, parameter: inspect.Parameter, hints: dict[str, Any]) -> str:
        stars = "*" * (parameter.kind is parameter.VAR_POSITIONAL) + "**" * (
            parameter.kind is parameter.VAR_KEYWORD
        )
        if parameter.name == "self":
            return "self"
        text = f"{stars}{parameter.name}: {self.text(hints.get(parameter.name, Any))}"
        if parameter.default is parameter.empty:
            return text
        value = parameter.default
        plain = value is None or isinstance(value, (bool, int, str)) or (
            isinstance(value, float) and value == value and abs(value) != float("inf")
        )  # fmt: skip
        return (
            f"{text} = {value!r}"
            if plain and type(value) in (type(None), bool, int, float, str)
            else f"{text} = ..."
        )
