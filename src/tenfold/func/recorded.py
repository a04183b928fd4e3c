"""A function recorded as one program: what `vmap`, `jvp` and `checkpoint` transform.

Whatever it reads besides its arguments becomes a further input, and what it writes in place a further result,
written where it belongs once the transformed function is called.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Hashable, Sequence
from contextlib import nullcontext
from typing import Any, ClassVar

from tenfold import flat
from tenfold.autograd.grad_mode import no_grad
from tenfold.base.errors import ArgumentError, TenfoldError, TraceError
from tenfold.base.source import capture
from tenfold.flat.strides import contiguous
from tenfold.ops.callee import Program, programs
from tenfold.runtime.calls import shares_memory
from tenfold.tensor import Tensor
from tenfold.tensor.views import Alias, Storage
from tenfold.trace import graph, tree
from tenfold.trace.detours import NONE, Detours, Place, detours
from tenfold.trace.gradient import Before
from tenfold.trace.graph import Origin, Value
from tenfold.trace.lower import lower
from tenfold.trace.record import Policy, Recording, record


class RecordedFunction:
    """A function on arguments of given types. Its results are what it returned, then what it wrote."""

    # What a call of a user's own autograd.Function gives inside: `functions.py` says, which records it too.
    apply: ClassVar[Callable[[Any, tuple[Any, ...]], Any]]

    def __init__(
        self,
        what: str,
        call: Callable[[Sequence[Tensor]], Any],
        values: Sequence[Value],
        tensors_only: bool = True,
    ):
        def checked(stand_ins: Sequence[Tensor]) -> Any:
            result = call(stand_ins)
            if tensors_only:
                require_tensors_returned(tree.flatten(result, is_tensor, []), what)
            return result

        policy = Policy(
            what,
            asks=True,
            nested=True,
            differentiates=True,
            through_memory=True,
            apply=RecordedFunction.apply,
        )
        recording = record(checked, _stand_ins(values), policy)
        if recording.passed_by and any(value.origin is not None for value in values):
            recording = record(checked, _stand_ins(values, followed=True), policy)
        self.detours = _detours(recording, what) if recording.passed_by else NONE
        self.silent = recording.silent
        self.trace = recording.trace
        self.leaves = recording.trace.leaves
        # For each leaf, which argument it is; None for one from outside.
        self.places = [source if isinstance(source, int) else None for source in recording.inputs]
        self.structure = recording.structure
        self.count = len(recording.returned)
        self.writes: list[Storage | int] = recording.writes  # type: ignore[assignment]
        self.random = any(_draws(node.callee) for node in self.trace.nodes)
        # All that a transformation of the program depends on.
        types = tuple([leaf.type for leaf in self.leaves])
        into = tuple([write if isinstance(write, int) else None for write in self.writes])
        cuts = tuple([i for i, node in enumerate(self.trace.nodes) if node.cut])
        passing = () if self.detours is NONE else self.detours.key(self.trace)
        self.key = (self.trace.key, types, tuple(self.places), self.count, into, cuts, passing)

    def fragment(self) -> flat.Function:
        return lower(self.trace, whole=True, detours=self.detours)

    def reached(self) -> tuple[int, ...]:
        """For each result the leaves that its gradient flows to in PyTorch, as the bits of a number: none
        beyond `detach`, `no_grad` or an op that no gradient passes."""
        bits = {
            leaf: 1 << i for i, leaf in enumerate(self.leaves) if leaf.type.dtype.kind in ("float", "complex")
        }
        found: list[tuple[int, ...]] = []
        places = {node: i for i, node in enumerate(self.trace.nodes)}

        def at(place: Place) -> int:
            return found[place[0]][place[1]] if place[0] >= 0 else bits.get(self.leaves[-1 - place[0]], 0)

        def of(value: Value) -> int:
            if value in self.detours.operands:
                return at(self.detours.operands[value])
            if value in bits:
                return bits[value]
            return found[places[value.node]][value.index] if value.node in places else 0

        for node in self.trace.nodes:
            inputs = [of(value) for value in node.inputs]
            if node.cut:
                flows = (0,) * len(node.callee.result_types)
            elif node.path:  # its callee does not know what the steps that it differentiates took
                taken = [*inputs, *[of(value) for step in node.path for value in step.inputs]]
                flows = (functools.reduce(operator.or_, taken, 0),) * len(node.callee.result_types)
            else:
                flows = tuple([_joined(inputs, reaches) for reaches in node.callee.reached])
            found.append(flows)
        outputs = [self.detours.outputs.get(i, place) for i, place in enumerate(self.trace.outputs)]
        return tuple([at(place) for place in outputs])

    def states(self) -> set[int]:
        """The leaves that are states of random generators."""
        drawn = {
            operand
            for node in self.trace.nodes
            if node.callee.random
            for operand in node.inputs
            if _is_state(operand.type)
        }
        return {i for i, leaf in enumerate(self.leaves) if leaf in drawn}

    def state_written(self, place: int) -> int | None:
        """Which result is the next state, of a leaf that is a generator's state."""
        for i, root in enumerate(self.writes):
            if isinstance(root, Storage) and root.value is self.leaves[place]:
                return self.count + i
        return None

    def call(
        self,
        key: Hashable,
        tensors: Sequence[Tensor],
        make: Callable[[], flat.Function],
        *more: Tensor,
        alike: bool = False,
    ) -> list[Tensor]:
        """Record one call of the program that `make` gives, in the place of the function. The key says what
        the program depends on besides the function. Its results, less those that were written. The program is
        `alike` if its inputs and results are the function's own, one for one: gradients flow between them as
        in the function."""
        self.refuse_shared(tensors)
        inputs = [
            (graph.fresh(leaf, capture()) if is_of_ended_level(leaf) else leaf)
            if place is None
            else tensors[place].current()
            for leaf, place in zip(self.leaves, self.places, strict=True)
        ]
        inputs += [tensor.current() for tensor in more]
        types = tuple([value.type for value in inputs])
        build = lambda: Program(make(), random=self.random, reached=self.reached() if alike else None)
        program = programs.get((key, self.key, types), build)
        results = graph.call_program(program, inputs, capture(), self.trace.device)
        wanted = len(results) - len(self.writes)
        for target, value in zip(self.writes, results[wanted:], strict=True):
            write_to(target, tensors, value, target in self.silent)
        return [Tensor(result) for result in results[:wanted]]

    def refuse_shared(self, tensors: Sequence[Tensor]) -> None:
        """Refuse a write to an argument where others would have to see it."""
        written = [tensors[write] for write in self.writes if isinstance(write, int)]
        if not written:
            return
        outside = {id(leaf) for leaf, place in zip(self.leaves, self.places, strict=True) if place is None}
        read = any(
            tensor._alias is not None and id(tensor._alias.storage.value) in outside for tensor in written
        )
        if read or shares_memory(tensors):
            raise TraceError(
                "the function writes to an argument whose memory it also reads in another way",
                help="clone() the argument, or pass it in one way only",
            ).located("", capture())


def _stand_ins(values: Sequence[Value], followed: bool = False) -> list[Tensor]:
    """Tensors without data like the given values: one for what is given twice. Gradients are `followed` to
    those that require them."""
    by_value: dict[Value, Tensor] = {}
    for value in values:
        if value not in by_value:
            by_value[value] = Tensor(Value(value.type, value.device))
            by_value[value]._value.source = value.made_at
            by_value[value]._value.origin = Origin(Before(value)) if followed and value.origin else None
    return [by_value[value] for value in values]


def _detours(recording: Recording, what: str) -> Detours:
    """Where gradients go that pass by what the function writes without them."""
    before = recording.recorder.before.values()
    written = {value.origin.of for value in before if value.origin is not None}
    return detours(recording.trace, recording.origins, written, what, forward=what == "jvp")


def whole(storage: Storage) -> Tensor:
    """A tensor that spans a whole storage."""
    return Tensor(storage.value, Alias(storage, (), contiguous(storage.value.type.shape), 0))


def is_of_ended_level(value: Value) -> bool:
    """Whether a value is the leaf of a level of differentiation whose function is over. What pulls its
    cotangents back keeps it, or nobody holds it any more."""
    held = None if value.origin is None else value.origin.of.leaf
    leaf = None if held is None else held()
    return held is not None and (leaf is None or "_ended_level" in vars(leaf))


def write_to(target: Storage | int, tensors: Sequence[Tensor], value: Value, silent: bool = False) -> None:
    """Write a result to memory from outside, or to one of the arguments; gradients pass by a `silent`
    write."""
    if silent:
        value.origin = None
    with no_grad() if silent else nullcontext():
        (tensors[target] if isinstance(target, int) else whole(target)).assign(value)


def _joined(inputs: Sequence[int], reaches: int) -> int:
    """What those of the inputs reach that a number's bits name."""
    return functools.reduce(operator.or_, [bits for i, bits in enumerate(inputs) if reaches >> i & 1], 0)


def _draws(callee: Any) -> bool:
    """Whether a call draws random numbers; attention without dropout, for one, gives the state back as is."""
    if not callee.random:
        return False
    fragment = callee.fragment
    return not all(result in fragment.params for result in fragment.results if _is_state(result.type))


def _is_state(type: flat.TensorType) -> bool:
    return type.dtype.name == "uint64" and type.shape == (2,)


def like(function: Callable[..., Any], name: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Give a transformed function the name and docstring of the original; its errors name the transform and
    the user's line."""

    def dress(wrapper: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function, updated=())
        def call(*args: Any, **kwargs: Any) -> Any:
            try:
                return wrapper(*args, **kwargs)
            except TenfoldError as error:
                raise error.located(name, capture()) from None

        return call

    return dress


def is_tensor(value: Any) -> bool:
    return isinstance(value, Tensor)


def require_tensors_returned(structure: Any, what: str = "") -> None:
    """Refuse what a function returns where it holds anything but tensors."""
    other = tree.other_type(structure)
    if other is not None:
        error = ArgumentError(
            f"the function returns a {other.__name__} where a Tensor is needed",
            help="return tensors, or lists, tuples and dicts of them",
        )
        raise error.located(what, capture()) if what else error
