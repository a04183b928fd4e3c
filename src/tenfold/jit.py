"""`tenfold.jit`: the words by which code is marked for TorchScript. There is no such script here: a program
is recorded as it runs, so a marked function is the function itself, and `tenfold.compile` compiles it."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import Any, Final, TypeVar

from tenfold.base.absent import CLASSES, absent_name
from tenfold.base.errors import UnsupportedError, unknown_name
from tenfold.base.source import capture

__all__ = [
    "Attribute", "Final", "annotate", "export", "freeze", "ignore", "interface", "is_scripting", "is_tracing",
    "isinstance", "load", "optimize_for_inference", "save", "script", "script_if_tracing", "trace", "unused",
]  # fmt: skip

Kind = TypeVar("Kind")


def is_scripting() -> bool:
    """False: code is recorded by running it, never read."""
    return False


def is_tracing() -> bool:
    """False: a recorded function may ask about types as if it ran."""
    return False


def script(obj: Kind, *args: Any, **kwargs: Any) -> Kind:
    """The function or module itself."""
    return obj


def trace(func: Kind, example_inputs: Any = None, *args: Any, **kwargs: Any) -> Kind:
    """The function or module itself: it is recorded whenever it is called."""
    return func


def freeze(module: Kind, *args: Any, **kwargs: Any) -> Kind:
    """The module itself."""
    return module


optimize_for_inference = freeze


def ignore(drop: Any = False, **kwargs: Any) -> Any:
    """A decorator that does nothing."""
    return drop if callable(drop) else lambda function: function


def unused(function: Kind) -> Kind:
    return function


export = interface = script_if_tracing = _script_if_tracing = _overload = _overload_method = unused


Error = UnsupportedError


def set_fusion_strategy(strategy: Any) -> list[Any]:
    """Nothing: XLA decides what to fuse."""
    return []


def trace_module(mod: Kind, inputs: Any = None, **options: Any) -> Kind:
    """The module itself."""
    return mod


class TracerWarning(Warning):
    """Of PyTorch's tracer, which is not here: it is never given."""


def annotate(the_type: Any, the_value: Kind) -> Kind:
    """The value itself."""
    return the_value


Attribute: Callable[[Any, Any], Any] = lambda value, type: value


def isinstance(obj: Any, target_type: Any) -> bool:
    """Python's own test; of a parameterised type its container is tested."""
    return builtins.isinstance(obj, getattr(target_type, "__origin__", target_type))


def load(*args: Any, **kwargs: Any) -> Any:
    raise UnsupportedError(
        "a TorchScript file needs PyTorch's own interpreter",
        help="save the state_dict with torch.save and load it with tenfold.load, or export StableHLO",
    ).located("load", capture())


def save(*args: Any, **kwargs: Any) -> Any:
    raise UnsupportedError(
        "TorchScript files are not written", help="use tenfold.export, or save the state_dict"
    ).located("save", capture())


def __getattr__(name: str) -> Any:
    if name in CLASSES or name in ("RecursiveScriptModule", "TopLevelTracedModule"):
        return absent_name("torch.jit", name, CLASSES["ScriptModule"])
    raise unknown_name("tenfold.jit", name, globals())
