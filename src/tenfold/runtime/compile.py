"""`compile`: a function recorded once for each signature, and from then on only run."""

from __future__ import annotations

import functools
import weakref
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from tenfold.base import dtypes
from tenfold.base.devices import get_default_device
from tenfold.base.errors import ArgumentError, TenfoldError, TraceError, ValueNeeded
from tenfold.base.source import capture
from tenfold.base.warning import warn
from tenfold.engines import xla
from tenfold.engines.xla import TURNS
from tenfold.runtime import evaluate, executables
from tenfold.runtime.argument_containers import Changed
from tenfold.runtime.calls import shares_memory
from tenfold.runtime.data_sizes import Room
from tenfold.runtime.guards import Owners
from tenfold.runtime.integers import IntegerArguments, name_of
from tenfold.runtime.opened import OpenSpecialization, specialize, specialized, why
from tenfold.runtime.recordings import Recorder, UnknownSizes
from tenfold.runtime.sizes import OpenPrograms
from tenfold.runtime.specialization import OTHER, Specialization
from tenfold.runtime.unoptimized import Hasty
from tenfold.trace import tree
from tenfold.trace.context import context
from tenfold.trace.graph import Value

_everyone: weakref.WeakSet[Programs] = weakref.WeakSet()
MAX_VARIANTS = 8  # of a signature, for what it depends on besides its arguments
MAX_SIGNATURES = 512  # of a function: each number that it is given is another


def compiled(
    function: Callable[..., Any],
    tensor: type,
    dynamic: bool | None = None,
    steady: bool = False,
    whole: bool = False,
) -> Callable[..., Any]:
    """The function as one that runs programs; `tensor` is the class of tensors, made from a Value. It has the
    programs as its `programs`. `dynamic` says whether sizes are open: none, all, or those that change;
    `steady`, whether small inputs and results keep their places on a GPU; `whole`, whether a function that
    reads values is an error. Otherwise it runs as it is written."""
    programs = Programs(function, tensor, dynamic, steady, whole)
    in_use, turn = xla.in_use, xla.turn

    # A function and no object with `__call__`, which would take Python longer to call.
    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        short = programs.short
        if short is not None and not kwargs and len(in_use) == 1 and evaluate.engine == "xla":
            # A call like the last one, with its data on the device: nothing to do but start the program.
            buffers_of, start, makers, result, device, default, state = short
            if state == context.unwatched and default is dtypes.get_default_dtype():
                try:
                    buffers = buffers_of(*args)
                    if buffers is not None:
                        (buffer,) = start(buffers).consume_with_handlers(makers)
                        if not turn() & TURNS:
                            xla.let_go()
                        return tensor(Value(result, device, None, 0, buffer))
                except (AttributeError, TypeError, RuntimeError):
                    pass  # not so many, not all tensors, or data not there yet
        if context.recorder is not None:
            return function(*args, **kwargs)
        if evaluate.engine != "xla" or context.level is not None:
            return function(*args, **kwargs)  # op by op: there is nothing to compile, or tangents to follow
        if programs.recent and not kwargs:
            answer = programs.as_before(args)
            if answer is not OTHER:
                return answer
        return programs.general(args, kwargs)

    call.programs = programs  # type: ignore[attr-defined]
    call.guards = programs.guards  # type: ignore[attr-defined]
    call._repr_html_ = programs.html  # type: ignore[attr-defined]
    programs.call = call
    return call


@functools.cache
def _reader_of(count: int) -> Callable[..., Callable[..., list[Any] | None]]:
    """Makes, for so many types, the function from as many tensors to their buffers, or to None if one is
    of another type, or asks for gradients. It is written out for its count, since a loop over the
    arguments would take a twentieth of a call."""
    names = range(count)
    arguments = ", ".join([f"tensor{i}" for i in names])
    asks = [
        f"  value{i} = tensor{i}._value if tensor{i}._alias is None else tensor{i}.current()\n"
        f"  if value{i}.type is not type{i} or value{i}.origin is not None"
        f" or type(tensor{i}) is not kind{i}:\n"
        "   return None\n"
        for i in names
    ]
    code = (
        f"def reader({', '.join([f'type{i}, kind{i}' for i in names])}):\n"
        f" def buffers_of({arguments}):\n"
        f"{''.join(asks)}"
        f"  return [{', '.join([f'value{i}.buffer' for i in names])}]\n"
        " return buffers_of\n"
    )
    scope: dict[str, Any] = {}
    exec(code, scope)
    return scope["reader"]


class Signature(NamedTuple):
    """What a call's arguments are, as far as another program is needed for others."""

    structure: Any  # containers, and values that are no tensors
    types: tuple[Any, ...]  # with devices; of an integer that changes the name of the argument
    # Which tensors are the same, and whether others share memory: it decides what a write is seen by.
    same: tuple[int, ...]
    shared: bool
    # Whether each tensor is a leaf that collects gradients, or one that they flow through; None of others.
    asks: tuple[bool | None, ...]
    settings: tuple[Any, ...]

    @property
    def loose(self) -> tuple[Any, ...]:
        """All of it but sizes."""
        types = tuple([(type.dtype, type.rank, device) for type, device in self.types])
        return self.structure, types, self.same, self.shared, self.asks, self.settings

    def difference(self, other: Signature) -> str:
        """How another signature differs from this one, in the user's words."""
        if self.structure != other.structure:
            path, before, now = tree.difference(self.structure, other.structure)
            if len(path) < 2:  # the arguments by place, or those by name, as a whole
                return "it was called with another number of arguments, or with other names"
            by_name, argument, *inside = path
            place = "".join([f"[{part!r}]" for part in inside])
            return f"argument {f'`{argument}`' if by_name else argument}{place} was {before} and is {now}"
        for i, (mine, theirs) in enumerate(zip(self.types, other.types, strict=False)):
            if mine != theirs:
                if isinstance(mine[1], str):
                    return f"{mine[1]} was {mine[0].shape[0]} and is {theirs[0].shape[0]}"
                before, now = (f"{type} on {device}" for type, device in (mine, theirs))
                return f"tensor {i} of the arguments was {before} and is {now}"
        if self.asks != other.asks:
            return "other arguments require gradients, or gradients are followed that were not"
        if self.settings != other.settings:
            return (
                "the default dtype or device, the gradient mode, autocast, determinism or precision changed"
            )
        return "other arguments are the same tensor or share memory"


def _signature(structure: Any, tensors: Sequence[Any]) -> Signature:
    """The signature of a call with these tensors among its arguments. It keeps no value, since what refers to
    one besides its tensor keeps it from being written in place."""
    current = [argument.current() for argument in tensors]
    types = tuple([(value.type, name_of(value) or value.device) for value in current])
    same = tuple([[id(other) for other in tensors].index(id(argument)) for argument in tensors])
    asks = tuple(
        [
            None if value.origin is None else argument.is_leaf
            for argument, value in zip(tensors, current, strict=True)
        ]
    )
    return Signature(structure, types, same, shares_memory(tensors), asks, _settings())


def everyone() -> list[Programs]:
    """The programs of every compiled function that is still there."""
    return list(_everyone)


class Programs:
    """The programs of a function, one for each signature of its arguments."""

    __slots__ = (
        "__weakref__", "_integers", "_open", "_recorded", "_tensor", "call", "function", "recent",
        "recompiles", "room", "short", "steady", "unrecorded", "whole",
    )  # fmt: skip

    def __init__(
        self,
        function: Callable[..., Any],
        tensor: type,
        dynamic: bool | None = None,
        steady: bool = False,
        whole: bool = False,
    ):
        _everyone.add(self)
        self.whole = whole
        # Why calls of a signature run as the function is written: it needs values that are not known before.
        self.unrecorded: dict[Signature, str] = {}
        self.steady = steady
        self.function = function
        self.call: Callable[..., Any] = function  # the one that runs them
        self._tensor = tensor
        self._recorded: dict[Signature, list[Specialization]] = {}
        self._open = None if dynamic is False else OpenPrograms(dynamic is True)
        self._integers = IntegerArguments()
        self.room = Room()  # for sizes that only the data bound
        # Why programs after the first were needed, the latest last.
        self.recompiles: deque[str] = deque(maxlen=MAX_VARIANTS)
        # What a call like the last one needs, to start the program at once.
        self.short: tuple[Any, ...] | None = None
        # For calls on tensors alone, by the types and devices of these: the program, and the settings.
        self.recent: dict[tuple[Any, ...], tuple[Specialization, tuple[Any, ...]]] = {}

    def as_before(self, args: tuple[Any, ...]) -> Any:
        """A call on tensors like those of an earlier one: what it depends on is all there is to compare."""
        count = len(args)
        if count > 1 and len(set(map(id, args))) != count:
            return OTHER
        key: list[Any] = []
        plain, aliases = self._tensor, 0
        for arg in args:
            tensor: Any = arg
            if type(arg) is not plain and (not isinstance(arg, plain) or _overrides(tensor.__class__, plain)):
                return OTHER
            if tensor._alias is None:
                value = tensor._value
            else:
                value = tensor.current()
                aliases += 1
            if value.origin is not None:
                return OTHER
            key += (value.type, value.device)
            del value  # what refers to it besides its tensor keeps it from being written in place
        latest = self.recent.get(tuple(key))
        if latest is None or latest[1] != _settings() or (aliases > 1 and shares_memory(args)):
            return OTHER
        return latest[0].run(args, self._tensor)

    def general(self, args: tuple, kwargs: dict[str, Any]) -> Any:
        """Any call: by the program that fits the signature of its arguments, or a new one."""
        tensor = self._tensor
        tensors: list[Any] = []
        given = args, kwargs
        if self._integers.changing:
            args, kwargs = self._integers.replaced(args, kwargs, tensor)
        try:
            structure = tree.flatten((args, kwargs), lambda leaf: isinstance(leaf, tensor), tensors)
        except RecursionError:
            raise ArgumentError("an argument contains itself").located("compile", capture()) from None
        observed = context.modes or context.watcher is not None
        if observed or any(_overrides(argument.__class__, tensor) for argument in tensors):
            return self.function(*given[0], **given[1])  # what its ops do is for others to say, at each call
        key = _signature(structure, tensors)
        try:
            variants = self._recorded.get(key)
        except TypeError:
            raise ArgumentError(
                "arguments other than tensors must be hashable, since each value is compiled apart",
                help="pass tensors for data; numbers, strings, or containers of them for options",
            ).located("compile", capture()) from None
        variants = [] if variants is None else variants
        for i, recorded in enumerate(variants):
            result = recorded.run(tensors, tensor)
            if result is not OTHER:
                if i:
                    variants.insert(0, variants.pop(i))
                break
        else:
            if key in self.unrecorded:
                return self.function(*given[0], **given[1])
            if self._open is not None and self._integers.notice(*given):
                return self.general(*given)
            try:
                recorded, result = self._anew(key, args, kwargs, variants, tensors)
            except (ValueNeeded, UnknownSizes) as error:
                self.room.restore()
                if self.whole:
                    raise
                self._leave(key, error)
                return self.function(*given[0], **given[1])
            except BaseException:
                self.room.restore()
                raise
            self.room.keep()
            self._recorded[key] = variants
            if len(self._recorded) > MAX_SIGNATURES:
                for signature in list(self._recorded)[: MAX_SIGNATURES // 2]:
                    del self._recorded[signature]
        if not self._integers.changing:
            self._shorten(recorded, args, kwargs)
        return result.done_to((args, kwargs)) if type(result) is Changed else result

    def _leave(self, key: Signature, error: TenfoldError) -> None:
        """Note that calls like this one run as the function is written, and say so the first time."""
        reason = why(error)
        if not self.unrecorded:
            name = getattr(self.function, "__qualname__", type(self.function).__name__)
            warn(
                f"compile: {name} is not one program, and runs as it is written: {reason}. Its Python code "
                "ran twice in this call; compile it with fullgraph=True to get an error instead"
            )
        if len(self.unrecorded) >= MAX_SIGNATURES:
            self.unrecorded.clear()
        self.unrecorded[key] = reason

    def _anew(
        self,
        key: Signature,
        args: tuple,
        kwargs: dict[str, Any],
        variants: list[Specialization],
        tensors: list[Any],
    ) -> tuple[Specialization, Any]:
        """A program for a call that none of the variants fits, and what it gives: one for open sizes if it
        can be one."""
        recorder: Recorder | None = None
        if all(isinstance(variant, OpenSpecialization) for variant in variants):
            open_variant, result, recorder = self._run_open(key, args, kwargs, tensors)
            if open_variant is not None and result is not OTHER:
                variants[:] = [
                    open_variant,
                    *[variant for variant in variants if variant is not open_variant],
                ][:MAX_VARIANTS]
                return open_variant, result
        if variants:
            self.recompiles.append(variants[0].broken(tensors))
        elif self._recorded:
            self.recompiles.append(self._difference(key))
        return self._record_until_it_fits(args, kwargs, variants, tensors, recorder)

    def _difference(self, key: Signature) -> str:
        """How a call differs from those that there are programs for."""
        change, self._integers.change = self._integers.change, ""
        return change or next(reversed(self._recorded)).difference(key)

    def _run_open(
        self, key: Signature, args: tuple, kwargs: dict[str, Any], tensors: list[Any]
    ) -> tuple[OpenSpecialization | None, Any, Recorder | None]:
        """A program for open sizes, and what it gives for a call; OTHER if there is none and can be none.
        With what recorded the call, if it was."""
        if self._open is None:
            return None, OTHER, None
        call = self._open.find(key.loose, tensors, self._integers.first(tensors))
        if call is None:
            return None, OTHER, None
        recorder = Recorder(self.function, args, kwargs, self._tensor, self.room)
        for program in call.programs:
            if program.admits(call.shapes) and program.holds(call.shapes, recorder):
                result = program.run(tensors, self._tensor)
                if result is not OTHER:
                    return program, result, None
        recorded = None if call.refused else call.record(recorder)
        if recorded is None:
            if call.of_integers and not self._open.specializations():
                self._integers.fix()
            return None, OTHER, recorder
        if self._recorded:
            self.recompiles.append(self._difference(key))
        return recorded, recorded.run(tensors, self._tensor), None

    @property
    def count(self) -> int:
        """How many programs there are for closed sizes."""
        several = self._recorded.values()
        return sum(
            not isinstance(variant, OpenSpecialization) for variants in several for variant in variants
        )

    @property
    def open_count(self) -> int:
        """How many programs there are for open sizes."""
        return 0 if self._open is None else len(self._open.specializations())

    def containers(self) -> list[Any]:
        """What its programs look into at each call, besides their arguments."""
        several = [variant for variants in self._recorded.values() for variant in variants]
        if self._open is not None:
            several += self._open.specializations()
        return [container for variant in several for container in variant.containers()]

    def guards(self, owners: Owners | None = None) -> str:
        """What each program depends on besides its arguments, and why the last recompile happened."""
        lines = []
        owners = Owners(self.containers()) if owners is None else owners
        for signature, variants in self._recorded.items():
            tensors = ", ".join(
                f"{device} of {type.shape[0]}" if isinstance(device, str) else str(type)
                for type, device in signature.types
            )
            tensors = tensors or "no tensors"
            for closed in [variant for variant in variants if not variant.of_open_arguments]:
                lines += [
                    f"for {tensors}:",
                    *[f"    {guard}" for guard in closed.described(owners) or ["no guards"]],
                ]
        for reason in dict.fromkeys(self.unrecorded.values()):
            lines += ["runs as it is written because", f"    {reason}"]
        for what, guards in self._open.described(owners) if self._open is not None else ():
            lines += [f"{what}:", *[f"    {guard}" for guard in guards]]
        if self.recompiles:
            lines.append(f"last recompiled because {self.recompiles[-1]}")
        return "\n".join(lines) or "not called yet"

    def html(self) -> str:
        """What a notebook shows of the compiled function: its programs, and what they depend on, folded."""
        from tenfold.base.notebooks import program_html

        name = getattr(self.function, "__name__", type(self.function).__name__)
        counts = [f"{self.count} program{'' if self.count == 1 else 's'}"]
        counts += [f"{self.open_count} for open sizes"] if self.open_count else []
        again = [f"last recompiled because {self.recompiles[-1]}"] if self.recompiles else []
        return program_html(" · ".join([f"compiled {name}", *counts, *again]), self.guards())

    def _record_until_it_fits(
        self,
        args: tuple,
        kwargs: dict[str, Any],
        variants: list[Specialization],
        tensors: list[Any],
        recorder: Recorder | None,
    ) -> tuple[Specialization, Any]:
        for i in range(MAX_VARIANTS):
            recorded = self._record(args, kwargs, variants, None if i else recorder)
            result = recorded.run(tensors, self._tensor)
            if result is not OTHER:
                return recorded, result
        raise TraceError(
            "what the function depends on changes before it can run",
            help="let no other thread change it meanwhile",
        ).located("compile", capture())

    def _record(
        self, args: tuple, kwargs: dict[str, Any], variants: list[Specialization], recorder: Recorder | None
    ) -> Specialization:
        if recorder is None or recorder.own is None:
            recorded = specialize(self.function, args, kwargs, self._tensor, self.room)
        else:
            recorded = specialized(recorder, recorder.own)
        numbers: list[Any] = []
        tree.flatten((args, kwargs), lambda leaf: type(leaf) in (int, float), numbers)
        recorded.for_numbers = bool(numbers) or bool(self._integers.changing)
        recorded.steady = self.steady
        variants.insert(0, recorded)
        del variants[MAX_VARIANTS:]
        return recorded

    def _shorten(self, recorded: Specialization, args: tuple, kwargs: dict[str, Any]) -> None:
        """Let calls like this one go the short way, if they need no more than to start the program."""
        self.short = None
        loaded = recorded.loaded
        if loaded is not None and isinstance(loaded.executable, Hasty):
            return  # another executable comes soon
        if kwargs or not all(isinstance(arg, self._tensor) for arg in args):
            return
        values = [arg.current() for arg in args]
        if any(value.origin is not None for value in values):
            return  # those calls are for tensors that require no gradients
        if len({id(arg) for arg in args}) == len(args) and not shares_memory(args):
            if len(self.recent) >= MAX_SIGNATURES:
                self.recent.clear()
            key = tuple([of for value in values for of in (value.type, value.device)])
            self.recent[key] = (recorded, _settings())
        del values  # what refers to a value besides its tensor keeps it from being written in place
        if recorded.plan.device.mesh is not None:
            return  # the executable depends on how the arguments are sharded
        if not (recorded.plain and args and loaded is not None and not loaded.checks):
            return
        executable = loaded.executable
        if isinstance(executable, xla.Executable):
            self.short = (
                _reader_of(len(args))(*[of for arg in args for of in (arg._value.type, type(arg))]),
                executable.start,
                executable.makers,
                recorded.plan.result_types[0],
                recorded.plan.device,
                dtypes.get_default_dtype(),
                context.state,
            )


@functools.cache
def _overrides(kind: Any, tensor: Any) -> bool:
    """Whether a type of tensors says itself what functions do with them."""
    own = getattr(kind.__torch_function__, "__func__", None)
    return own is not None and own is not tensor.__torch_function__.__func__


def _settings() -> tuple[Any, ...]:
    """What programs depend on besides the function and its arguments."""
    defaults = (dtypes.get_default_dtype(), get_default_device())
    return (*defaults, context.state, xla.is_deterministic(), xla.exact())


def set_deterministic(wanted: bool) -> None:
    """Whether programs give the same bits whenever they run, also those of compiled functions."""
    if xla.set_deterministic(wanted):
        _forget_programs("cuda")
        _forget_programs("cpu")


def set_exact(what: str, wanted: bool) -> None:
    """Whether GPUs keep all bits of float32 factors, in stablehlo.PRODUCTS or stablehlo.CONVOLUTIONS."""
    if xla.set_exact(what, wanted):
        _forget_programs("cuda")


def _forget_programs(platform: str) -> None:
    executables.forget(platform)
    for function in list(_everyone):
        function.short = None
        function.recent.clear()
