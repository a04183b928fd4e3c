"""Checkpointing: intermediate values of a function are recomputed for its gradient instead of saved."""

from __future__ import annotations

import contextlib
import enum
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from tenfold import flat
from tenfold.base import dtypes
from tenfold.base.devices import Device
from tenfold.base.errors import ArgumentError, located
from tenfold.flat.composite import Composite
from tenfold.flat.grad import gradients
from tenfold.flat.ir import in_order
from tenfold.flat.partials import carries
from tenfold.func.recorded import RecordedFunction, is_tensor
from tenfold.tensor import Tensor, generators
from tenfold.trace import tree
from tenfold.trace.graph import Origin


class CheckpointPolicy(enum.Enum):
    """What a selective checkpoint does with the results of an operator."""

    MUST_SAVE = 0
    PREFER_SAVE = 1
    MUST_RECOMPUTE = 2
    PREFER_RECOMPUTE = 3
    MUST_CPU_OFFLOAD = 4


class CheckpointError(RuntimeError):
    """The function computed something else the second time; here it is recorded once."""


def noop_context_fn() -> tuple[Any, Any]:
    """Two contexts that do nothing."""
    return contextlib.nullcontext(), contextlib.nullcontext()


def create_selective_checkpoint_contexts(
    policy_fn_or_list: Any, allow_cache_entry_mutation: bool = False
) -> tuple[Any, Any]:
    """Two contexts that have no effect: a checkpoint saves only its arguments, and XLA decides what to
    recompute."""
    return noop_context_fn()


@contextlib.contextmanager
def set_checkpoint_early_stop(enable: bool) -> Iterator[None]:
    """A block that changes nothing: XLA computes nothing that no gradient needs."""
    yield


@contextlib.contextmanager
def set_checkpoint_debug_enabled(enabled: bool | None) -> Iterator[None]:
    """A block that changes nothing: what is checkpointed is recorded once, so there is nothing to compare."""
    yield


def detach_variable(inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    """The inputs without their history; they ask for gradients as before."""
    if not isinstance(inputs, tuple):
        raise ArgumentError(f"takes a tuple, not {type(inputs).__name__}")
    return tuple(
        [each.detach().requires_grad_(each.requires_grad) if is_tensor(each) else each for each in inputs]
    )


def check_backward_validity(inputs: Iterable[Any]) -> None:
    """Warn where no input asks for a gradient."""
    if not any(is_tensor(each) and each.requires_grad for each in inputs):
        warnings.warn("None of the inputs have requires_grad=True. Gradients will be None", stacklevel=2)


class DefaultDeviceType:
    """Which device's generators a checkpoint keeps; each device has its own here."""

    _type = "cuda"

    @staticmethod
    def set_device_type(device: str = "cuda") -> None:
        DefaultDeviceType._type = device

    @staticmethod
    def get_device_type() -> str:
        return DefaultDeviceType._type


@located
def checkpoint(
    function: Callable[..., Any],
    *args: Any,
    use_reentrant: bool | None = None,
    preserve_rng_state: bool = True,
    context_fn: Callable[[], tuple[Any, Any]] = noop_context_fn,
    determinism_check: str = "default",
    debug: bool = False,
    early_stop: bool = True,
    **kwargs: Any,
) -> Any:
    """Call a function, and recompute its intermediate values from the arguments when its gradient needs them.

    Some options have no effect: recomputed random numbers are always the same (`preserve_rng_state`),
    gradients always flow to everything that the function reads (`use_reentrant`), and only what a gradient
    needs is recomputed (`early_stop`). The function is recorded once, within the first of `context_fn`'s
    contexts; the second is not entered.
    """
    if not callable(function):
        raise ArgumentError(f"takes a function, not {type(function).__name__}")
    given: list[Any] = []
    structure = tree.flatten((args, kwargs), is_tensor, given)

    def call(stand_ins: Sequence[Tensor]) -> Any:
        for stand_in, each in zip(stand_ins, given, strict=True):
            if each.requires_grad:
                _let_gradients_flow_to(stand_in)
        positional, named = tree.unflatten(structure, iter(stand_ins))
        with context_fn()[0]:
            return function(*positional, **named)

    values = [each.current() for each in given]
    recorded = RecordedFunction("checkpoint", call, values, tensors_only=False)

    def make() -> flat.Function:
        body = recorded.fragment()
        params = [flat.Value(param.type) for param in body.params]
        arguments = [place is not None for place in recorded.places]
        rule = _recomputed(body, arguments if any(arguments) else [True] * len(params))
        return flat.Function(params, Composite(tuple(params), body, rule, {}, None).results, "checkpoint")

    results = recorded.call("checkpoint", given, make, alike=True)
    return tree.unflatten(recorded.structure, iter(results))


def _let_gradients_flow_to(stand_in: Tensor) -> None:
    """Let the function differentiate by an argument itself. It is no leaf: it may be written in place."""
    value = stand_in.current()
    if value.origin is None:
        value.origin = Origin()


def _recomputed(body: flat.Function, delayed: Sequence[bool]) -> Callable[..., Any]:
    """The gradient rule of a function that keeps nothing but its inputs; `delayed` are those that it begins
    with, and must not have before the cotangents."""

    def rule(
        cotangents: Sequence[flat.Value | None], results: Sequence[flat.Value], inputs: Sequence[flat.Value]
    ) -> Sequence[flat.Value | None]:
        present = [cotangent for cotangent in cotangents if cotangent is not None]
        # Behind the barrier XLA cannot tell that this is the forward pass again, and so does not keep what it
        # computed there. It would still compute it early: on the CPU nothing is left of a barrier when ops
        # are put in order. A choice that it cannot make before the cotangents are there remains.
        held = flat.barrier(*inputs, *present)
        ready = _true(held[len(inputs)])
        again = [
            flat.where(ready, each, flat.full_like(each, 0)) if late else each
            for each, late in zip(held, delayed, strict=False)
        ]
        rest = iter(held[len(inputs) :])
        given = [None if cotangent is None else next(rest) for cotangent in cotangents]
        outputs = body.inline(again, None, whole=True)
        wanted = [each for each in again if carries(each)]
        found = dict(zip(wanted, gradients(in_order(outputs), outputs, given, wanted), strict=True))
        return [found.get(each) for each in again]

    return rule


def _true(cotangent: flat.Value) -> flat.Value:
    """True, found out from an element of the cotangent: some bit is set where the lowest is."""
    x = flat.real(cotangent) if cotangent.dtype.is_complex else cotangent
    if not x.numel:
        return flat.constant(True, dtypes.bool_)
    first = flat.reshape(flat.slice(x, (0,) * x.rank, (1,) * x.rank), ())
    bits = flat.bitcast(
        first, {1: dtypes.int8, 2: dtypes.int16, 4: dtypes.int32, 8: dtypes.int64}[x.dtype.itemsize]
    )
    return flat.ne(flat.logical_or(bits, 1), 0)


@located
def checkpoint_sequential(
    functions: Any, segments: int, input: Any, use_reentrant: bool | None = None, **kwargs: Any
) -> Any:
    """Call functions in sequence, split into `segments`, of which all but the last are checkpointed."""
    preserve = kwargs.pop("preserve_rng_state", True)
    if kwargs:
        raise ArgumentError(f"unexpected argument {next(iter(kwargs))!r}")
    steps = list(functions.children() if hasattr(functions, "children") else functions)
    if not 0 < segments <= len(steps):
        raise ArgumentError(f"{len(steps)} functions cannot be in {segments} segments")

    def run(part: Sequence[Callable[..., Any]]) -> Callable[..., Any]:
        def call(*given: Any) -> Any:
            for each in part:
                given = each(*given) if isinstance(given, tuple) else each(given)
            return given

        return call

    size = len(steps) // segments
    for start in range(0, size * (segments - 1), size):
        given = input if isinstance(input, tuple) else (input,)
        part = run(steps[start : start + size])
        input = checkpoint(part, *given, use_reentrant=use_reentrant, preserve_rng_state=preserve)
    last = run(steps[size * (segments - 1) :])
    return last(*input) if isinstance(input, tuple) else last(input)


def get_device_states(*args: Any) -> tuple[list[int], list[Tensor]]:
    """The GPUs on which tensors among the arguments are, and the states of their generators."""
    indices = sorted({each.get_device() for each in args if is_tensor(each) and each.is_cuda})
    return indices, [_generator(index).get_state() for index in indices]


def set_device_states(
    devices: Sequence[int], states: Sequence[Tensor], *, device_type: str | None = None
) -> None:
    """Put the generators of these GPUs into states that `get_device_states` gave."""
    for index, state in zip(devices, states, strict=True):
        _generator(index).set_state(state)


def _generator(index: int) -> Any:
    return generators.default_generator(Device("cuda", index))
