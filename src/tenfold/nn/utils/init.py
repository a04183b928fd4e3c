"""`skip_init`: makes a module without initialising its parameters."""

from __future__ import annotations

import inspect
from typing import Any

from tenfold.base.errors import ArgumentError, located
from tenfold.nn.module import Module


@located
def skip_init(module_cls: type[Module], *args: Any, **kwargs: Any) -> Module:
    """Make a module without initializing its parameters, to load a checkpoint into. Initial values are lazy,
    like every tensor: if they are overwritten before they are read, they are never computed."""
    if not (isinstance(module_cls, type) and issubclass(module_cls, Module)):
        raise ArgumentError(f"module_cls is a class of modules, not {module_cls!r}")
    if "device" not in inspect.signature(module_cls).parameters:
        raise ArgumentError(f"{module_cls.__name__} takes no device, as modules that may be skipped do")
    return module_cls(*args, **kwargs)
