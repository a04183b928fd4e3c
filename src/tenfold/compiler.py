"""`tenfold.compiler`: `compile` a function, `show` it at every stage, and PyTorch's marks."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, ParamSpec, TypeVar, overload

from tenfold.base.errors import ArgumentError, located, unknown_name
from tenfold.base.garbage import uncollected
from tenfold.mlir import stablehlo
from tenfold.runtime.calls import record_call
from tenfold.runtime.compile import Programs, compiled
from tenfold.runtime.ranges import Mark
from tenfold.runtime.stages import stage_text
from tenfold.tensor import Tensor
from tenfold.tensor.dynamic import call_dimensions, tensors_of
from tenfold.trace.collect import Trace
from tenfold.trace.context import context
from tenfold.trace.lower import lower

__all__ = [
    "allow_in_graph", "assume_constant_result", "compile", "cudagraph_mark_step_begin", "disable",
    "is_compiling", "is_dynamo_compiling", "is_exporting", "list_backends", "mark_dynamic", "mark_static",
    "reset", "set_stance", "show", "substitute_in_graph", "wrap_numpy",
]  # fmt: skip

P = ParamSpec("P")
R = TypeVar("R")


# PyTorch's names of what optimises, and how hard: here XLA does, as hard as it can.
BACKENDS = ("inductor", "openxla", "eager", "aot_eager", "cudagraphs")
UNCOMPILED = ("eager", "aot_eager")  # backends that optimise nothing
MODES = ("default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs")


@overload
def compile(
    model: Callable[P, R],
    *,
    fullgraph: bool = ...,
    dynamic: Any = ...,
    backend: str = ...,
    mode: str | None = ...,
    options: dict[str, Any] | None = ...,
    disable: bool = ...,
) -> Callable[P, R]: ...


@overload
def compile(
    model: None = None,
    *,
    fullgraph: bool = ...,
    dynamic: Any = ...,
    backend: str = ...,
    mode: str | None = ...,
    options: dict[str, Any] | None = ...,
    disable: bool = ...,
) -> Callable[[Callable[P, R]], Callable[P, R]]: ...


@located
def compile(
    model: Any = None,
    *,
    fullgraph: bool = False,
    dynamic: Any = None,
    backend: str = "inductor",
    mode: str | None = None,
    options: dict[str, Any] | None = None,
    disable: bool = False,
) -> Any:
    """Compile a function into one program, which is recorded once for each signature and only runs after
    that. Compiling a module returns a module with the same parameters. Without an argument, it is a
    decorator.

    Tensors in nested lists, tuples and dicts are inputs and results. Other arguments are static: the function
    is compiled again for each value. Tensors that it reads from outside are read at every call. Tensors that
    it writes are updated, and so are attributes and variables that it binds to tensors. Any other side effect
    in Python happens only while the function is recorded. Results are new tensors, never views of arguments.

    If a dimension has another size at the second call, it becomes open: one program then serves all sizes up
    to a bound. `dynamic=True` opens all dimensions from the start, `dynamic=False` none. A dictionary as
    `export` takes it, such as `{"x": {0: Dim("n", max=64)}}`, opens the dimensions that it names; see
    docs/sizes.md.

    `mode="reduce-overhead"` is for many short calls on a GPU, such as those that decode a token. Small
    arguments and results are copied from and to fixed addresses, so that the program's CUDA graph can be used
    again. Results are not overwritten by the next call.

    `disable=True`, `backend="eager"` and `backend="aot_eager"` return the function unchanged. All other
    backends, "inductor", "openxla" and "cudagraphs", mean XLA, which captures CUDA graphs on a GPU itself.

    If a function depends on values, as in `if x.sum() > 0` or `x.item()`, it cannot become one program: its
    calls run uncompiled, with a warning. With `fullgraph=True` this is an error, as in PyTorch.

        step = tenfold.compile(lambda x: (x @ x).tanh())
        step(tenfold.ones(3, 3))
    """
    for name, given, known in (("backend", backend, BACKENDS), ("mode", mode or "default", MODES)):
        if given not in known:
            raise ArgumentError(f"there is no {name} {given!r}", help=f"one of {', '.join(known)}")
    disable = disable or backend in UNCOMPILED
    if model is None:
        return lambda function: compile(
            function, fullgraph=fullgraph, dynamic=dynamic, mode=mode, disable=disable
        )
    _require_callable(model)
    if disable:
        return model
    module = getattr(type(model), "_optimized", None)
    if module is not None:
        return module(model, dynamic, mode, fullgraph)
    if dynamic is None or isinstance(dynamic, bool):
        return compiled(model, Tensor, dynamic, mode == "reduce-overhead", fullgraph)
    return _marking(compiled(model, Tensor, None, mode == "reduce-overhead", fullgraph), model, dynamic)


def _marking(run: Any, model: Any, dynamic: Any) -> Any:
    """The compiled function as one whose calls mark the dimensions that `dynamic` names."""

    @functools.wraps(run)
    def call(*args: Any, **kwargs: Any) -> Any:
        open = call_dimensions(dynamic, model, args, kwargs)
        tensors = tensors_of(args, kwargs)
        for place, dims in open.items():
            for axis, dim in dims.items():
                if dim.multiple > 1:
                    raise ArgumentError(
                        f"compile: {dim!r} may have no multiple",
                        help="split the dimension, x.reshape(-1, multiple), before the call",
                    )
                _mark(tensors[place], axis, Mark(True, dim.min if dim.min > 1 else None, dim.max))
        return run(*args, **kwargs)

    return call


@located
def show(
    function: Callable[..., Any],
    *args: Any,
    stage: str | None = None,
    source_lines: bool = False,
    **kwargs: Any,
) -> str:
    """Return the program of a function on these arguments as text.

    `stage` is "trace", "flat", "stablehlo", "torch" (the torch dialect, by torch-mlir), "hlo" (optimised by
    XLA) or, on a mesh, "sharding" (the placement of each value). The default is the first three. In the Trace
    and FlatIR, each op has the user's line beside it; with `source_lines`, so has MLIR's text.
    """
    _require_callable(function)
    trace = recorded(function, args, kwargs)
    return stage_text(trace, trace.device, stage, source_lines)


def recorded(function: Callable[..., Any], args: tuple, kwargs: dict[str, Any]) -> Trace:
    """A function's program on these arguments. On a mesh its leaves lie as the arguments do."""
    given, recording, _ = record_call(uncompiled(function), args, kwargs, Tensor)
    trace = recording.trace
    if trace.device.mesh is not None:  # stand-ins have no data to tell how they are sharded
        for leaf, source in zip(trace.leaves, recording.inputs, strict=True):
            if type(source) is int:
                leaf.buffer = given[source]._computed().buffer
    return trace


def uncompiled(function: Any) -> Callable[..., Any]:
    """Of a compiled function or module, what it was made from; any other as it is."""
    if type(function) is getattr(type(function), "_optimized", None):
        return function._orig_mod
    programs = getattr(function, "programs", None)
    return programs.function if isinstance(programs, Programs) and programs.call is function else function


def _require_callable(function: object) -> None:
    if not callable(function):
        raise ArgumentError(f"takes a function, not {type(function).__name__}")


def stablehlo_module(function: Callable[..., Any], *args: Any, **kwargs: Any) -> stablehlo.Module:
    """The StableHLO module of a function on these arguments."""
    with uncollected():
        return stablehlo.emit(lower(record_call(function, args, kwargs, Tensor).recording.trace))


@located
def mark_dynamic(
    t: Tensor, index: int | Sequence[int], *, min: int | None = None, max: int | None = None, **hints: Any
) -> None:
    """Declare that the size of one or several dimensions of a tensor varies from `min` to `max`. Functions
    that get the tensor are compiled once for all these sizes, or, without `max`, once for each power of two.

        batch = tenfold.ones(5, 3)
        tenfold.compiler.mark_dynamic(batch, 0, max=64)
    """
    for name, bound in (("min", min), ("max", max)):
        if bound is not None and (type(bound) is not int or bound < 1):
            raise ArgumentError(f"mark_dynamic: {name} is a positive number, not {bound!r}")
    for dim in _dims(t, index):
        size = t.shape[dim]
        if size < (min or 0) or (max is not None and size > max):
            raise ArgumentError(f"mark_dynamic: dimension {dim} is {size}, which is not from {min} to {max}")
        _mark(t, dim, Mark(True, min, max))


@located
def mark_static(t: Tensor, index: int | Sequence[int] | None = None) -> None:
    """Declare that the size of one, several or all dimensions of a tensor does not vary: each size is
    compiled separately."""
    for dim in _dims(t, range(len(t.shape)) if index is None else index):
        _mark(t, dim, Mark(False))


def _mark(t: Tensor, dim: int, mark: Mark) -> None:
    t._open_dims = {**t._open_dims, dim: mark}


def _dims(t: Tensor, index: int | Sequence[int]) -> list[int]:
    if not isinstance(t, Tensor):
        raise ArgumentError(f"only a tensor has sizes to mark, not {type(t).__name__}")
    rank = len(t.shape)
    dims = [index] if isinstance(index, int) else list(index)
    for dim in dims:
        if type(dim) is not int or not -rank <= dim < rank:
            raise ArgumentError(f"there is no dimension {dim!r} of {t.current().type} to mark")
    return [dim % rank for dim in dims]


def is_compiling() -> bool:
    """Whether a function is being recorded, by `tenfold.compile` for example."""
    return context.recorder is not None


is_dynamo_compiling = is_compiling


def is_exporting() -> bool:
    """Whether a function is being recorded by `tenfold.export`."""
    return context.recorder is not None and context.exporting


def disable(fn: Any = None, recursive: bool = True, **kwargs: Any) -> Any:
    """Return the function unchanged: what a compiled function calls is recorded with it."""
    return fn if callable(fn) else lambda function: function


def allow_in_graph(fn: Any) -> Any:
    """Return the function, or the list of functions, unchanged: what a compiled function calls is recorded
    with it."""
    return fn


assume_constant_result = wrap_numpy = allow_in_graph


def substitute_in_graph(original_fn: Any, **options: Any) -> Any:
    """A decorator that does nothing: the original function is recorded as it runs."""
    return allow_in_graph


class set_stance:
    """Does nothing, as a call, a `with` block or a decorator: programs are compiled when they are new."""

    def __init__(self, stance: str = "default", **options: Any):
        self.stance = stance

    def __enter__(self) -> None:
        pass

    def __exit__(self, *error: Any) -> None:
        pass

    def __call__(self, function: Any) -> Any:
        return function


def list_backends(*args: Any) -> list[str]:
    """The valid names for `backend`."""
    return list(BACKENDS)


def cudagraph_mark_step_begin() -> None:
    """Does nothing: there are no graphs of CUDA's to begin."""


def reset() -> None:
    """Does nothing: compiled programs are found by what they compute, and never stale."""


def __getattr__(name: str) -> Any:
    raise unknown_name("tenfold.compiler", name, globals())
