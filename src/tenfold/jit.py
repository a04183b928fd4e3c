"""`tenfold.jit`: TorchScript, and the decorators that mark code for it.

A scripted or traced function runs as before, and `tenfold.compile` compiles it. It can be saved as
TorchScript, which libtorch writes: a traced function by its ops, a scripted one by its source. TorchScript
files can be loaded, called and trained; libtorch runs them.
"""

from __future__ import annotations

import builtins
import copy
import functools
import os
from collections.abc import Callable
from types import FunctionType
from typing import Any, Final, TypeVar

from tenfold.base.absent import CLASSES, absent_name
from tenfold.base.errors import (
    ArgumentError,
    EngineError,
    FormatError,
    MissingEngine,
    TenfoldError,
    UnsupportedError,
    located,
    unknown_name,
)
from tenfold.exporting.script import scripted
from tenfold.exporting.script_calls import Compiled
from tenfold.exporting.script_loaded import HeldModule
from tenfold.exporting.script_modules import module_archive
from tenfold.exporting.script_names import (
    enable_onednn_fusion,
    fork,
    onednn_fusion_enabled,
    optimized_execution,
    script_method,
    strict_fusion,
    wait,
)
from tenfold.exporting.script_sources import script_source
from tenfold.nn import Module
from tenfold.serialize import beginning
from tenfold.serialize.atomic import replacing

__all__ = [
    "Attribute", "CompilationUnit", "Final", "ScriptFunction", "ScriptModule", "annotate",
    "enable_onednn_fusion", "export", "fork", "freeze", "ignore", "interface", "is_scripting", "is_tracing",
    "isinstance", "load", "onednn_fusion_enabled", "optimize_for_inference", "optimized_execution", "save",
    "script", "script_if_tracing", "script_method", "strict_fusion", "trace", "trace_module", "unused",
    "wait", ]  # fmt: skip

Kind = TypeVar("Kind")


def is_scripting() -> bool:
    """False: code is recorded by running it, and its source is never read."""
    return False


def is_tracing() -> bool:
    """False: a function that is recorded may inspect types as if it ran."""
    return False


class Traced:
    """A traced function or model, which can be saved and printed as TorchScript."""

    _traced: Any  # the function or model
    _examples: tuple[Any, ...]

    @functools.cached_property
    def _scripted(self) -> Any:
        return scripted(self._traced, self._examples)

    @property
    def graph(self) -> str:
        """The graph of `forward`, as libtorch prints it."""
        return str(self._scripted.text("graph", b"forward"))

    @property
    def code(self) -> str:
        """`forward` in TorchScript."""
        return str(self._scripted.text("code"))

    def save(self, f: Any) -> None:
        """Write a file of TorchScript, which torch.jit.load reads."""
        save(self, f)


class TracedFunction(Traced):
    """A traced function, which runs like the original."""

    def __init__(self, function: Callable[..., Any], examples: tuple[Any, ...]):
        self._traced, self._examples = function, examples
        functools.update_wrapper(self, function)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._traced(*args, **kwargs)


class ScriptFunction(TracedFunction):
    """A scripted function, which runs like the original. When it is printed or saved, libtorch compiles its
    source, branches and loops included."""

    def __init__(self, function: Callable[..., Any]):
        super().__init__(function, ())

    @functools.cached_property
    def _scripted(self) -> Any:
        from tenfold.engines.libtorch_script import Script

        return _compiled(Script.compile, script_source(self._traced), self._traced.__name__)

    def __reduce__(self) -> str:
        return str(self._traced.__qualname__)


class Scripted(Traced):
    """A scripted model."""

    @functools.cached_property
    def _scripted(self) -> Any:
        from tenfold.engines.libtorch_script import Script

        return _compiled(Script.load, module_archive(self._traced), type(self._traced).__name__)


def _compiled(compile: Callable[[Any], Any], source: Any, name: str) -> Any:
    """A source that libtorch has compiled; what it refuses is told in its own words."""
    try:
        return compile(source)
    except MissingEngine:
        raise
    except TenfoldError as error:
        raise UnsupportedError(
            f"TorchScript cannot express {name}: {error.message}",
            help="trace it, or write it in what TorchScript has",
        ) from None


@located
def script(obj: Any, *args: Any, **kwargs: Any) -> Any:
    """Script a function or model. It runs as before; `save` writes it as TorchScript, compiled from its
    source, branches and loops included, and from the source of the functions and layers that it calls.

        @tenfold.jit.script
        def halved(x, times: int):
            for i in range(times):
                x = x / 2
            return x

        halved.save("halved.pt")
    """
    if type(obj) is FunctionType:
        return ScriptFunction(obj)
    if type(obj).__module__ == "builtins" and not callable(obj) and type(obj) not in (list, dict):
        raise ArgumentError(f"takes a function, a class or a module, not {obj!r}")
    if builtins.isinstance(obj, Traced | LoadedModule) or not hasattr(type(obj), "named_parameters"):
        return obj
    return _dressed(obj, Scripted, ())


def _dressed(model: Any, addition: type[Traced], examples: tuple[Any, ...]) -> Any:
    """A copy of a model, with the same parameters, that can also be saved as TorchScript."""
    found = copy.copy(model)
    kind = type(model)
    name = f"{addition.__name__}{kind.__name__}"
    found.__class__ = type(name, (addition, kind), {"__module__": kind.__module__})
    object.__setattr__(found, "_traced", model)
    object.__setattr__(found, "_examples", examples)
    return found


@located
def trace(func: Any, example_inputs: Any = None, *args: Any, **kwargs: Any) -> Any:
    """Trace a function or model. It runs as before; `save` writes it as TorchScript, recorded on inputs like
    these.

        traced = tenfold.jit.trace(model, x)
        traced.save("model.pt")
    """
    if not callable(func):
        raise ArgumentError(f"trace takes a function or a model, not {type(func).__name__}")
    examples = (
        tuple(example_inputs) if builtins.isinstance(example_inputs, (tuple, list)) else (example_inputs,)
    )
    if not hasattr(func, "named_parameters"):
        return TracedFunction(func, examples)
    return _dressed(func, Traced, examples)


def freeze(module: Kind, *args: Any, **kwargs: Any) -> Kind:
    """Return the module unchanged."""
    return module


optimize_for_inference = freeze


def ignore(drop: Any = False, **kwargs: Any) -> Any:
    """A decorator that does nothing."""
    return drop if callable(drop) else lambda function: function


def unused(function: Kind) -> Kind:
    return function


export = interface = script_if_tracing = _script_if_tracing = _overload = _overload_method = unused
_copy_to_script_wrapper = unused


Error = UnsupportedError


def set_fusion_strategy(strategy: Any) -> list[Any]:
    """Does nothing: XLA decides what to fuse."""
    return []


def trace_module(mod: Any, inputs: Any = None, **options: Any) -> Any:
    """Trace the `forward` of a model. For TorchScript of other methods, use `script`."""
    if not builtins.isinstance(inputs, dict) or set(inputs) != {"forward"}:
        raise UnsupportedError(
            "trace_module traces `forward`", help='{"forward": (x,)}, or save other methods apart'
        )
    return trace(mod, inputs["forward"], **options)


class TracerWarning(Warning):
    """The class of warnings of PyTorch's tracer. Tenfold never emits it."""


def annotate(the_type: Any, the_value: Kind) -> Kind:
    """Return the value unchanged."""
    return the_value


Attribute: Callable[[Any, Any], Any] = lambda value, type: value


def isinstance(obj: Any, target_type: Any) -> bool:
    """Python's own `isinstance`; for a parameterised type, the container is tested."""
    return builtins.isinstance(obj, getattr(target_type, "__origin__", target_type))


class ScriptModule(Module):
    """The base of modules written for TorchScript. Their methods, marked by `script_method` or not, run like
    those of any other module. The result of `load` is also one."""

    def save(self, f: Any) -> None:
        """Write its source as a file of TorchScript."""
        save(self, f)


class LoadedModule(HeldModule, ScriptModule):
    """A module of TorchScript, run by libtorch, whose autograd gives its gradients."""

    @property
    def graph(self) -> str:
        return str(self._script.text("graph", b"forward"))

    @property
    def code(self) -> str:
        return str(self._script.text("code"))


class CompilationUnit(Compiled):
    """The functions of a TorchScript source, compiled by libtorch."""

    def __init__(self, source: str):
        from tenfold.engines.libtorch_script import Script

        self._script = Script.compile(source)


@located
def load(f: Any, map_location: Any = None, **options: Any) -> ScriptModule:
    """Load a TorchScript file, given by name or as an open file; libtorch runs it. The file contains a
    program, so load only files that you trust."""
    from tenfold.engines.libtorch_script import Script

    if map_location is not None and str(map_location) != "cpu":
        raise UnsupportedError(f"a TorchScript module runs on the CPU here, not on {map_location}")
    if hasattr(f, "read"):
        source = f.read()
        head, name = source[:4], "the file"
    else:
        head, name = beginning(f, 4)
        source = name
    if head[:2] != b"PK":
        said = f"it begins with {head!r}" if head else "it is empty"
        raise FormatError(f"{name} is no TorchScript file: {said}", help="load what torch.jit.save wrote")
    try:
        return LoadedModule(Script.load(source))
    except EngineError as error:
        reason = error.message.partition(": ")[2].partition(". This is an internal")[0]
        raise FormatError(
            f"{name} cannot be read as TorchScript: {reason}",
            help="it is damaged, or holds tensors alone, which tenfold.load reads",
        ) from None


@located
def save(m: Any, f: Any, **options: Any) -> None:
    """Save the result of `trace`, `load` or `CompilationUnit`, or a `ScriptModule`, as a TorchScript file."""
    if builtins.isinstance(m, ScriptModule):
        m = script(m)
    compiled = m._scripted if builtins.isinstance(m, Traced) else getattr(m, "_script", None)
    if compiled is None:
        raise UnsupportedError(
            f"a {type(m).__name__} is no TorchScript: there are no example inputs to record it on",
            help="save(trace(model, x), path), or use tenfold.export",
        )
    data = compiled.bytes()
    if hasattr(f, "write"):
        f.write(data)
        return
    with replacing(os.fspath(f)) as file:
        file.write(data)


def __getattr__(name: str) -> Any:
    if name == "RecursiveScriptModule":
        return LoadedModule
    if name in CLASSES or name == "TopLevelTracedModule":
        return absent_name("torch.jit", name, CLASSES["ScriptModule"])
    raise unknown_name("tenfold.jit", name, globals())
