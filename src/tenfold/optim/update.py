"""How an optimizer's step becomes one node of the Trace: all parameters of a group are updated at once.

An optimizer says what becomes of one parameter, as a pure function of FlatIR values; here that function is
applied to all of them. The options of a group are not constants of the program but one of its inputs, read
anew at every run: a schedule that changes them compiles nothing, and a compiled step follows it.
"""

from __future__ import annotations

import operator
import types
from collections.abc import Callable, Iterable, Sequence
from typing import Any, ClassVar

import numpy as np

from tenfold import flat
from tenfold.autograd.grad_mode import enable_grad, set_grad_mode
from tenfold.base import dtypes
from tenfold.base.devices import Device
from tenfold.base.errors import ArgumentError, DTypeError, UnsupportedError
from tenfold.base.source import capture
from tenfold.ops.callee import Program, programs
from tenfold.optim.joined import bunches, joined, parted
from tenfold.optim.optimizer import COUNTERS, Optimizer, OptionError, scalar_dtype
from tenfold.optim.terms import State, widened
from tenfold.runtime import evaluate
from tenfold.tensor import Tensor, leaf, sharding
from tenfold.trace import graph
from tenfold.trace.context import context, outside
from tenfold.trace.graph import Holder, Value

MUTABLE = object()


class Numbers(Holder):
    """The options of a group that are numbers, as one value that is always up to date."""

    __slots__ = ("_device", "_given", "_group", "_known", "_names", "_optimizer", "_value")

    def __init__(self, optimizer: Optimizer, group: int, names: Sequence[str], device: Device):
        self._optimizer = optimizer
        self._group = group
        self._names = names
        self._device = device
        self._given: list[Any] = []  # the options themselves, as far as they cannot change unseen
        self._known: list[Any] | None = None
        self._value: Any = None

    def current(self) -> Value:
        group = self._optimizer.param_groups[self._group]
        given = [group[name] for name in self._names]
        if not self._value or not all(map(operator.is_, given, self._given)):
            self._look(group, given)
        recorder = context.recorder
        return self._value if recorder is None else recorder.read(self, self._value)

    def _look(self, group: dict[str, Any], given: list[Any]) -> None:
        known = numbers_of(group, self._names)
        if known != self._known:
            array = np.array(known, np.float64)
            type = flat.TensorType(dtypes.float64, array.shape)
            self._known, self._value = known, Value(type, self._device, buffer=array)
        mutable = any(isinstance(each, list) for each in given)
        self._given = [MUTABLE] * len(given) if mutable else given


class Decisions:
    """What each group's options decide about the program of a step, for a compiled function to compare."""

    def __init__(self, optimizer: Any):
        self._optimizer = optimizer
        self._last: dict[int, tuple[Any, ...]] = {}

    def label(self, index: int) -> str:
        return f"the options of group {index} of {type(self._optimizer).__name__}"

    def __getitem__(self, index: int) -> tuple[Any, ...]:
        """The same object as long as it is the same."""
        optimizer = self._optimizer
        groups = optimizer.param_groups
        group = groups[index]
        tensors = [id(group[name]) for name in optimizer.numbers if isinstance(group[name], Tensor)]
        found = (optimizer.decided(group), decays(group), tensors, len(groups), len(group["params"]))
        if self._last.get(index) != found:
            self._last[index] = found
        return self._last[index]


def decays(group: dict[str, Any]) -> bool:
    """Whether there is weight decay at all: a program without it reads no parameter for its sake."""
    decay = group.get("weight_decay", 0)
    return isinstance(decay, Tensor) or decay != 0


def numbers_of(group: dict[str, Any], names: Sequence[str]) -> list[float]:
    """The group's numbers in order; what a tensor gives instead, or nothing does, counts as 0."""
    found = []
    for name in names:
        option = group[name]
        for each in option if isinstance(option, (tuple, list)) else (option,):
            found.append(0.0 if each is None or isinstance(each, Tensor) else float(each))
    return found


class Updating(Optimizer):
    """An optimizer whose step is one node for each group.

    `numbers` are the options that the update computes with, `flags` those that decide what it does.
    """

    numbers: ClassVar[tuple[str, ...]] = ()
    flags: ClassVar[tuple[str, ...]] = ()
    takes_sparse: ClassVar[bool] = False  # whether a gradient of 0 leaves an element and its state alone
    _counters = COUNTERS
    elementwise: ClassVar[bool] = True  # whether an element's update depends on that element alone
    # Set by a GradScaler: not 0 where gradients overflowed, and then the step itself leaves all as it was.
    found_inf: Tensor | None = None

    def __init__(self, params: Any, defaults: dict[str, Any]):
        for other in ("foreach", "differentiable"):
            if defaults.get("fused") and defaults.get(other):
                raise OptionError(f"fused and {other} cannot both be True")
        super().__init__(params, defaults)

    @staticmethod
    def update(param: flat.Value, grad: flat.Value, state: State, options: Any) -> tuple[flat.Value, State]:
        """What becomes of a parameter, given its gradient; and of its state."""
        raise NotImplementedError

    def initial(self, param: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        """The state that a parameter needs, and how it starts: with a number; with a tensor of its dtype and
        shape, all elements equal to the one in a tuple; or of another shape, the second in the tuple."""
        raise NotImplementedError

    def dense(self, gradient: Tensor, group: dict[str, Any]) -> Tensor:
        """A sparse gradient with its zeros, where a step with them is the same as one without."""
        if not self.takes_sparse or decays(group):
            reason = f"{type(self).__name__} does not take sparse gradients"
            reason += " with a weight decay" if self.takes_sparse else ""
            raise UnsupportedError(reason, help="use SparseAdam, or layers with sparse=False")
        return gradient.to_dense()

    def decided(self, group: dict[str, Any]) -> tuple[Any, ...]:
        """The values of `flags`, by which programs differ."""
        return tuple([group[name] for name in self.flags])

    def begin(self, param: Tensor, group: dict[str, Any], counters: dict[str, Tensor]) -> dict[str, Tensor]:
        """The state that a parameter needs, with what is missing of it begun. Numbers that begin together,
        in `counters`, are one tensor: so they are computed once for all parameters."""
        wanted = self.initial(param, group)
        if wanted:
            state = self.state[param]
            for name, start in wanted.items():
                if state.get(name) is None:
                    if isinstance(start, tuple):
                        state[name] = _begun(param, start)
                    else:
                        if name not in counters:
                            counters[name] = _begun(param, start)
                        state[name] = counters[name]
                wanted[name] = state[name]
        return wanted

    def _part(self, states: list[dict[str, Tensor]], pairs: list[tuple[Tensor, Tensor]]) -> None:
        """Give parameters that are updated now counters of their own, where they share one with others that
        are not."""
        if len(pairs) == len(self.state):
            return  # all are
        uses = _occurrences(states)
        owners = _occurrences(self.state.values())
        copies: dict[int, Tensor] = {}
        for (param, _), kept in zip(pairs, states, strict=True):
            for name, each in kept.items():
                if owners.get(id(each), 0) > uses.get(id(each), 0):
                    if id(each) not in copies:
                        copies[id(each)] = _apart(each)
                    kept[name] = self.state[param][name] = copies[id(each)]

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update all parameters that have gradients; `closure` computes the loss and the gradients first."""
        loss = None
        if closure is not None:
            with enable_grad():
                loss = closure()
        with set_grad_mode(bool(self.defaults.get("differentiable"))):
            for i, group in enumerate(self.param_groups):
                by_device: dict[Device, list[tuple[Tensor, Tensor]]] = {}
                for param in group["params"]:
                    gradient = param.grad
                    if gradient is not None:
                        gradient = self.dense(gradient, group) if gradient.is_sparse else gradient
                        by_device.setdefault(param._value.device, []).append((param, gradient))
                for device, pairs in by_device.items():
                    self._update(i, group, device, pairs)
        if context.recorder is None:
            # The end of a step of training: all that it recorded runs now, as one program. A loop that reads
            # no loss would otherwise be recorded whole.
            evaluate.evaluate([each.current() for group in self.param_groups for each in group["params"]])
        return loss

    def _update(
        self, index: int, group: dict[str, Any], device: Device, pairs: list[tuple[Tensor, Tensor]]
    ) -> None:
        counters: dict[str, Tensor] = {}
        kept = [self.begin(param, group, counters) for param, _ in pairs]
        self._part(kept, pairs)
        states: list[Tensor] = []
        places: dict[int, int] = {}  # of each tensor of the state, of which some are shared
        # Of all parameters what is called the same comes together, as it does where they are joined.
        for name in dict.fromkeys([name for each in kept for name in each]):
            for tensor in [each[name] for each in kept if name in each]:
                if id(tensor) not in places:
                    places[id(tensor)] = len(states)
                    states.append(tensor)
        names = [tuple([(name, places[id(tensor)]) for name, tensor in each.items()]) for each in kept]
        targets = [*[param for param, _ in pairs], *states]
        # Where gradients flow through the step they may need a parameter as it was before.
        params = [(param.clone() if context.grad_enabled else param).current() for param, _ in pairs]
        grads = [gradient.current() for _, gradient in pairs]
        before = [state.current() for state in states]
        tensors, given = self._given(index, group, device)
        inputs = (*params, *grads, *before, *given)
        input_types = tuple([each.type for each in inputs])
        guarded = self.found_inf is not None
        joins = device.mesh is None  # parameters that are sharded in different ways are updated one by one
        decided = (self.decided(group), decays(group), context.grad_enabled, joins)
        key = ("step", type(self).update, decided, tuple(names), tensors, guarded, input_types)
        counts = (len(params), len(grads), len(before), len(given))
        program = programs.get(
            key, lambda: self._program(group, input_types, counts, names, tensors, guarded, joins)
        )
        results = graph.call_program(program, inputs, capture(), device)
        followed: dict[int, Tensor] = {}  # state that gradients flow through is not written: they need it
        for target, result in zip(targets, results, strict=True):
            if result.origin is not None and id(target) in places:
                followed[id(target)] = Tensor(result)
            else:
                target.assign(result)
        if followed:
            for (param, _), each in zip(pairs, kept, strict=True):
                self.state[param].update(
                    {name: followed[id(old)] for name, old in each.items() if id(old) in followed}
                )

    def _given(
        self, index: int, group: dict[str, Any], device: Device
    ) -> tuple[tuple[str, ...], list[Value]]:
        """The inputs of a step beside tensors: the group's numbers, those that are tensors, and whether
        gradients overflowed."""
        recorder = context.recorder
        if recorder is not None:
            own = self.__dict__
            recorder.guard(own.setdefault("_decisions", Decisions(self)), index)
            # The state is of other tensors once it was loaded, or once parameters no longer share a counter.
            recorder.guard(own, "state")
            for param in group["params"]:
                for name in self.state.get(param, ()):
                    recorder.guard(self.state, param)
                    recorder.guard(self.state[param], name)
        holders = self.__dict__.setdefault("_numbers", {})
        holder = holders.get((index, device))
        if holder is None:
            holder = holders[index, device] = Numbers(self, index, self.numbers, device)
        tensors = tuple([name for name in self.numbers if isinstance(group[name], Tensor)])
        given = [holder.current(), *[group[name].current() for name in tensors]]
        if self.found_inf is not None:
            given.append(self.found_inf.current())
        return tensors, given

    def _program(
        self,
        group: dict[str, Any],
        input_types: tuple[flat.TensorType, ...],
        counts: tuple[int, ...],
        names: Sequence[tuple[tuple[str, int], ...]],
        tensors: Sequence[str],
        guarded: bool,
        joins: bool,
    ) -> Program:
        """The step of a group: parameters, gradients, state and numbers in, parameters and state out."""
        inputs = [flat.Value(input_type) for input_type in input_types]
        remaining = iter(inputs)
        params, grads, kept, given = ([next(remaining) for _ in range(count)] for count in counts)
        options = _options(group, self.numbers, tensors, given)
        for name, flag in zip(self.flags, self.decided(group), strict=True):
            setattr(options, name, flag)
        options.decays = decays(group)
        overflow = flat.ne(flat.reshape(given[-1], ()), 0) if guarded else None
        new_params = list(params)
        new_kept = list(kept)
        alone = [[i] for i in range(len(params))]
        for bunch in bunches(params, kept, names) if self.elementwise and joins else alone:
            own = [params[i] for i in bunch]
            tensors_of: dict[str, list[int]] = {}
            for name, place in [each for i in bunch for each in names[i]]:
                if place not in tensors_of.setdefault(name, []):  # a counter is one for all
                    tensors_of[name].append(place)
            state = {name: joined([kept[each] for each in places]) for name, places in tensors_of.items()}
            param, grad = joined(own), joined([grads[i] for i in bunch])
            changed, new_state = _apply(type(self).update, param, grad, state, options)
            for i, each in zip(bunch, parted(changed, own), strict=True):
                new_params[i] = _unless(overflow, params[i], each)
            for name, places in tensors_of.items():
                before = [kept[each] for each in places]
                for place, each in zip(places, parted(new_state[name], before), strict=True):
                    if new_kept[place] is kept[place]:
                        new_kept[place] = _unless(overflow, kept[place], each)
        name = type(self).__name__.lower()
        return Program(flat.Function(inputs, [*new_params, *new_kept], name))


def _options(
    group: dict[str, Any], names: Sequence[str], tensors: Sequence[str], given: list[flat.Value]
) -> Any:
    """The group's numbers as float64 values, under their names; tuples of numbers as tuples."""
    found = types.SimpleNamespace()
    place = 0
    for name in names:
        option = group[name]
        several = isinstance(option, (tuple, list))
        count = len(option) if several else 1
        parts = [flat.reshape(flat.slice(given[0], (i,), (i + 1,)), ()) for i in range(place, place + count)]
        place += count
        if name in tensors:
            source = given[1 + list(tensors).index(name)]
            if source.numel != 1:
                raise ArgumentError(f"{name} is one number, not a tensor of shape {list(source.shape)}")
            parts = [flat.convert(flat.reshape(source, ()), dtypes.float64)]
        setattr(found, name, tuple(parts) if several else parts[0])
    return found


def _occurrences(states: Iterable[dict[str, Any]]) -> dict[int, int]:
    """How often each counter occurs in the states of parameters."""
    found: dict[int, int] = {}
    for kept in states:
        for name in COUNTERS:
            each = kept.get(name)
            if each is not None:
                found[id(each)] = found.get(id(each), 0) + 1
    return found


def _apart(counter: Tensor) -> Tensor:
    """A counter that goes on from where this one is. Like those that begin it holds data at once: a compiled
    function that makes it goes on with it later."""
    now, recorder = counter.current(), context.recorder
    if recorder is None or not recorder.made(now):
        with outside():
            return Tensor(graph.fresh(counter._computed(), capture()))
    made = leaf(np.zeros(counter.shape, counter.dtype.numpy), counter.device, counter.dtype)
    made.assign(now)
    return made


def _begun(param: Tensor, start: Any) -> Tensor:
    """State before the first step: data at once, not a value to compute. So the first step is the same
    program as the others, and may be the one that `compile` records."""
    if not isinstance(start, tuple):
        dtype = scalar_dtype()
        return leaf(np.full((), start, dtype.numpy), param.device, dtype)
    number, shape = start if len(start) == 2 else (*start, param.shape)
    if param.dtype.is_complex:  # two numbers, each with its own state
        number = complex(number, number)
    array = np.broadcast_to(np.asarray(number, param.dtype.numpy), shape)
    if param.device.mesh is not None and tuple(shape) == tuple(param.shape):
        return sharding.leaf_like(array, param)
    return leaf(array.copy(), param.device, param.dtype)


def _unless(overflow: flat.Value | None, before: flat.Value, after: flat.Value) -> flat.Value:
    return after if overflow is None else flat.where(overflow, before, after)


def _apply(
    update: Callable[..., tuple[flat.Value, State]],
    param: flat.Value,
    grad: flat.Value,
    state: State,
    options: Any,
) -> tuple[flat.Value, State]:
    """The update in the precision it needs: narrow floats in float32, complex numbers as two real ones."""
    if param.dtype.is_complex:
        parts = [
            update(
                part(param),
                part(grad),
                {k: part(v) if v.dtype.is_complex else v for k, v in state.items()},
                options,
            )
            for part in (flat.real, flat.imag)
        ]
        (real, real_state), (imag, imag_state) = parts
        joined = {
            name: flat.complex(real_state[name], imag_state[name])
            if each.dtype.is_complex
            else real_state[name]
            for name, each in state.items()
        }
        return flat.complex(real, imag), joined
    if not param.dtype.is_floating_point:
        raise DTypeError(f"only float and complex parameters are optimized, not {param.dtype.name}")
    wide = {name: widened(each) for name, each in state.items()}
    new, new_state = update(widened(param), widened(grad), wide, options)
    return flat.convert(new, param.dtype), {k: flat.convert(new_state[k], v.dtype) for k, v in state.items()}
