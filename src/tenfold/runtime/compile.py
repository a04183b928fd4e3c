"""`compile`: a function recorded once for each signature, and from then on only run."""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable
from typing import Any

from tenfold.base import dtypes
from tenfold.base.devices import get_default_device
from tenfold.base.errors import ArgumentError, TraceError
from tenfold.base.source import capture
from tenfold.engines import xla
from tenfold.runtime import evaluate, executables
from tenfold.runtime.calls import shares_memory
from tenfold.runtime.specialization import OTHER, Specialization, specialize
from tenfold.trace import tree
from tenfold.trace.context import context
from tenfold.trace.graph import Value

_everyone: weakref.WeakSet[Programs] = weakref.WeakSet()
MAX_VARIANTS = 8  # of a signature, for what it depends on besides its arguments
MAX_SIGNATURES = 512  # of a function: each number that it is given is another


def compiled(function: Callable[..., Any], tensor: type) -> Callable[..., Any]:
    """The function as one that runs programs; `tensor` is the class of tensors, made from a Value. It has the
    programs as its `programs`."""
    programs = Programs(function, tensor)
    in_use = xla.in_use

    # A function and no object with `__call__`, which would take Python longer to call.
    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        if context.recorder is not None:
            return function(*args, **kwargs)
        if evaluate.engine != "xla" or context.level is not None:
            return function(*args, **kwargs)  # op by op: there is nothing to compile, or tangents to follow
        short = programs.short
        if short is not None and not kwargs and len(in_use) == 1:
            # A call like the last one, with its data on the device: nothing to do but start the program.
            buffers_of, start, makers, result, device, default, state = short
            try:
                buffers = buffers_of(*args)
                if buffers is not None and default is dtypes.get_default_dtype() and state == context.state:
                    (buffer,) = start(buffers).consume_with_handlers(makers)
                    return tensor(Value(result, device, None, 0, buffer))
            except (AttributeError, TypeError, RuntimeError):
                pass  # not so many, not all tensors, or data not there yet
        if programs.last is not None and not kwargs:
            found = programs.as_last(args)
            if found is not OTHER:
                return found
        return programs.general(args, kwargs)

    call.programs = programs  # type: ignore[attr-defined]
    programs.call = call
    return call


@functools.cache
def _reader_of(count: int) -> Callable[..., Callable[..., list[Any] | None]]:
    """Makes, for so many types, the function from as many tensors to their buffers, or to None if one is
    of another type, a view, or asks for gradients. It is written out for its count, since a loop over the
    arguments would take a twentieth of a call."""
    names = range(count)
    given = ", ".join([f"tensor{i}" for i in names])
    asks = [
        f"  value{i} = tensor{i}._value\n"
        f"  if value{i}.type is not type{i} or value{i}.origin is not None or tensor{i}._alias is not None:\n"
        "   return None\n"
        for i in names
    ]
    code = (
        f"def reader({', '.join([f'type{i}' for i in names])}):\n"
        f" def buffers_of({given}):\n"
        f"{''.join(asks)}"
        f"  return [{', '.join([f'value{i}.buffer' for i in names])}]\n"
        " return buffers_of\n"
    )
    scope: dict[str, Any] = {}
    exec(code, scope)
    return scope["reader"]


class Programs:
    """The programs of a function, one for each signature of its arguments."""

    __slots__ = ("__weakref__", "_recorded", "_tensor", "call", "function", "last", "short")

    def __init__(self, function: Callable[..., Any], tensor: type):
        _everyone.add(self)
        self.function = function
        self.call: Callable[..., Any] = function  # the one that runs them
        self._tensor = tensor
        self._recorded: dict[Any, list[Specialization]] = {}
        # What a call like the last one needs, to start the program at once, or to run it as usual.
        self.short: tuple[Any, ...] | None = None
        self.last: tuple[list[Any], Specialization, tuple[Any, ...]] | None = None

    def as_last(self, args: tuple[Any, ...]) -> Any:
        """A call on tensors like those of the last one: what it depends on is all there is to compare."""
        assert self.last is not None
        types, recorded, settings = self.last
        if len(args) != len(types) or settings != _settings():
            return OTHER
        if len(set(map(id, args))) != len(args):
            return OTHER
        for each, (type, device) in zip(args, types, strict=True):
            if not isinstance(each, self._tensor):
                return OTHER
            tensor: Any = each
            value = tensor._value
            if (
                tensor._alias is not None
                or value.type is not type
                or value.device is not device
                or value.origin is not None
            ):
                return OTHER
        return recorded.run(args, self._tensor)

    def general(self, args: tuple, kwargs: dict[str, Any]) -> Any:
        tensor = self._tensor
        given: list[Any] = []
        structure = tree.flatten((args, kwargs), lambda each: isinstance(each, tensor), given)
        current = [each.current() for each in given]
        types = tuple([(each.type, each.device) for each in current])
        # What is the same tensor, and what shares memory, decides what a write is seen by.
        same = tuple([[id(other) for other in given].index(id(each)) for each in given])
        asks = tuple([each.origin is not None for each in current]) if context.grad_enabled else None
        key = (structure, types, same, shares_memory(given), asks, _settings())
        try:
            variants = self._recorded.get(key)
        except TypeError:
            raise ArgumentError(
                "arguments other than tensors must be hashable, since each value is compiled apart",
                help="pass tensors for data, and numbers, strings or tuples for options",
            ).located("compile", capture()) from None
        if variants is None:
            variants = self._recorded[key] = []
            if len(self._recorded) > MAX_SIGNATURES:
                for each in list(self._recorded)[: MAX_SIGNATURES // 2]:
                    del self._recorded[each]
        for i, recorded in enumerate(variants):
            result = recorded.run(given, tensor)
            if result is not OTHER:
                if i:
                    variants.insert(0, variants.pop(i))
                break
        else:
            for _ in range(MAX_VARIANTS):
                recorded = self._record(args, kwargs, variants)
                result = recorded.run(given, tensor)
                if result is not OTHER:
                    break
            else:
                raise TraceError(
                    "what the function depends on changes before it can run",
                    help="let no other thread change it meanwhile",
                ).located("compile", capture())
        self._shorten(recorded, args, kwargs)
        return result

    def _record(self, args: tuple, kwargs: dict[str, Any], variants: list[Specialization]) -> Specialization:
        recorded = specialize(self.function, args, kwargs, self._tensor)
        numbers: list[Any] = []
        tree.flatten((args, kwargs), lambda each: type(each) in (int, float), numbers)
        recorded.for_numbers = bool(numbers)
        variants.insert(0, recorded)
        del variants[MAX_VARIANTS:]
        return recorded

    def _shorten(self, recorded: Specialization, args: tuple, kwargs: dict[str, Any]) -> None:
        """Let calls like this one go the short way, if they need no more than to start the program."""
        self.short = self.last = None
        loaded = recorded.loaded
        distinct = len({id(each) for each in args}) == len(args)
        if not kwargs and distinct and all(isinstance(each, self._tensor) for each in args):
            values = [each.current() for each in args]
            if all(each.origin is None for each in values) and all(each._alias is None for each in args):
                types = [(each.type, each.device) for each in values]
                self.last = (types, recorded, _settings())
        if not (recorded.plain and args and not kwargs and loaded is not None and not loaded.checks):
            return
        if all(isinstance(each, self._tensor) for each in args):
            executable = loaded.executable
            self.short = (
                _reader_of(len(args))(*[each._value.type for each in args]),
                executable.start,
                executable.makers,
                recorded.plan.result_types[0],
                recorded.plan.device,
                dtypes.get_default_dtype(),
                context.state,
            )


def _settings() -> tuple[Any, ...]:
    """What programs depend on besides the function and its arguments."""
    defaults = (dtypes.get_default_dtype(), get_default_device())
    return (*defaults, context.state, xla.is_deterministic())


def set_deterministic(wanted: bool) -> None:
    """Whether programs on GPUs give the same bits whenever they run, also those of compiled functions."""
    if xla.set_deterministic(wanted):
        executables.forget("cuda")
        for each in list(_everyone):
            each.short = each.last = None
