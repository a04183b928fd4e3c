"""Names in graphs: what a function is called in generated code, and names that no two nodes share."""

from __future__ import annotations

import builtins
import functools
import keyword
import re
import sys
from collections import defaultdict
from typing import Any

from tenfold import fft, linalg, special
from tenfold.nn import functional

MODULES = {
    "torch.nn.functional": functional,
    "torch.linalg": linalg,
    "torch.fft": fft,
    "torch.special": special,
}
# Names of generated code that are no variables.
RESERVED = frozenset(["inf", "nan", "NoneType", "torch", "device", "fx_pytree", "pytree"])


@functools.cache
def _public() -> dict[int, str]:
    """The package's functions by their places in memory, with PyTorch's names."""
    found: dict[int, str] = {}
    modules = {"torch": sys.modules["tenfold"], **MODULES}
    for module, held in modules.items():
        for name, member in vars(held).items():
            if callable(member) and not name.startswith("_"):
                found.setdefault(id(member), f"{module}.{name}")
    return found


def qualified_name(func: Any) -> str:
    """How generated code calls a function: "torch.add", "math.sqrt", "len"."""
    known = _public().get(id(func))
    if known is not None:
        return known
    name = getattr(func, "__name__", None) or type(func).__name__
    if getattr(builtins, name, None) is func:
        return name
    module = getattr(func, "__module__", None) or "torch"
    if hasattr(func, "namespace") and hasattr(func, "overloads" if not hasattr(func, "_text") else "_text"):
        return f"torch.ops.{func.namespace}.{name}"
    module = module.replace("_operator", "operator").replace("tenfold", "torch", 1)
    return f"{module}.{name}"


def snake_case(name: str) -> str:
    """ "BatchNorm" as "batch_norm"."""
    return re.sub(r"(?<=[a-z0-9])([A-Z])", r"_\1", name).lower()


class Namespace:
    """Gives out names; a candidate that is taken gets a number."""

    def __init__(self) -> None:
        self._names: dict[Any, str] = {}
        self._used: set[str] = set()
        self._counts: dict[str, int] = defaultdict(int)

    def create_name(self, candidate: str, obj: Any = None) -> str:
        if obj is not None and _key(obj) in self._names:
            return self._names[_key(obj)]
        candidate = re.sub(r"[^0-9a-zA-Z_]+", "_", candidate) or "_unnamed"
        if candidate[0].isdigit():
            candidate = f"_{candidate}"
        numbered = re.fullmatch(r"(.*)_(\d+)", candidate)
        base, number = (numbered[1], int(numbered[2])) if numbered else (candidate, 0)
        number = number or self._counts[base]
        while candidate in self._used or self._illegal(candidate, obj):
            number += 1
            candidate = f"{base}_{number}"
        self._used.add(candidate)
        self._counts[base] = number
        if obj is not None:
            self._names[_key(obj)] = candidate
        return candidate

    def associate_name_with_obj(self, name: str, obj: Any) -> None:
        self._names.setdefault(_key(obj), name)

    def _rename_object(self, obj: Any, name: str) -> None:
        self._names[_key(obj)] = name
        self._used.add(name)

    def _illegal(self, name: str, obj: Any) -> bool:
        if name in keyword.kwlist or name in RESERVED:
            return True
        return name in vars(builtins) and vars(builtins)[name] is not obj


def _key(obj: Any) -> Any:
    return obj if obj.__hash__ is not None and not hasattr(obj, "requires_grad") else id(obj)
