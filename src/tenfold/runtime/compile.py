"""`compile`: a function recorded once for each signature, and from then on only run.

While it is recorded, a `Recording` follows which tensors the function reads from outside of its arguments,
and which it writes in place. Both become part of the program: the first as hidden inputs, read anew at each
call, the second as hidden results, put back after it.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tenfold import dtypes
from tenfold.devices import Device, get_default_device
from tenfold.engines import xla
from tenfold.errors import ArgumentError, EngineError, TenfoldError, TraceError
from tenfold.ops.table import Row, Signature
from tenfold.runtime import evaluate, tree
from tenfold.runtime.checks import AHEAD, Loaded, settle
from tenfold.runtime.evaluate import Pending
from tenfold.runtime.packing import Packing, pack
from tenfold.source import capture
from tenfold.trace import graph
from tenfold.trace.graph import Holder, Node, Origin, Program, Value, collect
from tenfold.trace.lower import lower

_recording = threading.RLock()


class Recording:
    """What a function does to tensors while it is recorded."""

    through_memory = False

    def __init__(self) -> None:
        self.thread = threading.get_ident()
        self.nodes: set[Node] = set()
        self.arguments: set[Value] = set()
        self.holders: dict[Value, Holder] = {}
        self.before: dict[Holder, Value] = {}
        self.written: list[Holder] = []
        self.grads: dict[Origin, Any] = {}
        self.guards: dict[tuple[int, Any], Guard] = {}

    def read(self, holder: Holder, value: Value) -> Value:
        """A tensor's value is used: one from outside is computed now, and remembered as an input."""
        if not self.traced(value):
            if value.buffer is None:
                with graph.outside():
                    evaluate.evaluate([value])
            self.holders.setdefault(value, holder)
        return value

    def write(self, holder: Holder, root: Holder) -> None:
        """A tensor is about to be written; `root` is the memory behind it."""
        if root not in self.before:
            with graph.outside():
                self.before[root] = root.current()
        if not self.traced(self.before[root]):
            self.written.append(holder)

    def traced(self, value: Value) -> bool:
        return value in self.arguments or self.made(value)

    def made(self, value: Value) -> bool:
        """Whether a value was computed by the function itself."""
        return value.buffer is None and value.node in self.nodes

    def knows(self, value: Value) -> bool:
        """Never: also what a tensor from outside holds today would be written into the program."""
        return False

    def results(self) -> dict[Holder, Value]:
        """What the tensors from outside that were written hold at the end."""
        return {root: root.current() for root, value in self.before.items() if not self.traced(value)}

    def restore(self) -> None:
        for root, value in self.before.items():
            root.replace(value)
        for origin, gradient in self.grads.items():
            origin.collected = gradient

    def touch_grad(self, origin: Origin) -> None:
        """A leaf's gradient is about to be read or replaced."""
        self.grads.setdefault(origin, origin.collected)

    def guard(self, container: Any, key: Any) -> None:
        """What is recorded depends on what a container has under a key: something else there needs another
        program. Attributes are what `__dict__` contains."""
        self.guards.setdefault((id(container), key), (container, key, container[key]))


Guard = tuple[Any, Any, Any]
# What may be another object of the same value; of anything else it must be the same object.
PLAIN = frozenset([bool, int, float, str, tuple])


class Recorded:
    """A function on arguments of given types: its program, and how results become what it returned."""

    def __init__(
        self,
        program: Program,
        inputs: list[int | Holder | Value],
        structure: Any,
        returned: list[int | Holder | None],
        writes: list[Holder],
        argument_writes: list[int],
        device: Device,
        gradients: Gradients,
        guards: list[Guard],
        replaced: evaluate.Donations,
        differentiable: bool,
        follows: list[bool],
    ):
        self.program = program
        # Memory that is read is asked itself for its value, not the tensor in front of it; which must still
        # be in front of it when the program runs again.
        self.inputs = [memory_of(each) for each in inputs]
        self.fronts: dict[int, Any] = {
            i: each
            for i, (each, root) in enumerate(zip(inputs, self.inputs, strict=True))
            if each is not root
        }
        self.watched = [(each, self.inputs[i]) for i, each in self.fronts.items()]
        self.leaves = [(each, each.leaf) for each in self.inputs if hasattr(each, "leaf")]
        self.structure = structure
        self.returned = returned  # for each tensor: an argument, one from outside, or None for a new one
        self.count = len(returned)
        self.writes = writes
        self.argument_writes = argument_writes
        self.device = device
        self.gradients = gradients
        self.guards = guards
        self.result_types = [
            program.nodes[place].signature.result_types[index]
            if place >= 0
            else program.leaves[-1 - place].type
            for place, index in program.outputs
        ]
        self.donated = donated = tuple(
            [
                (place, result)
                for place, result in replaced
                if evaluate.donatable(program.leaves[place].type, self.result_types[result])
            ]
        )
        self.differentiable = differentiable
        self.follows = follows  # of each result, whether gradients flow through it
        self.signature: Signature | None = None
        self.types = [leaf.type for leaf in program.leaves]
        self.loaded: Loaded | None = None
        # Whether a call is no more than its arguments in, one tensor out.
        in_order = all(type(each) is int and each == i for i, each in enumerate(inputs))
        new = structure is tree.LEAF and returned == [None]
        self.stateless = not (writes or argument_writes or gradients.made or gradients.cleared)
        self.plain = in_order and new and self.stateless and not guards and not gradients.expected
        self.packing: Packing | None = None
        if not differentiable:
            count = self.count + len(writes) + len(argument_writes)
            gradient_results = range(count, count + len(gradients.made))
            own = [(place, i) for place, i in replaced if self.inputs[place] is writes[i - self.count]]
            self.packing = pack(own, gradient_results, self.types, self.result_types)
        taken, packed = (self.packing.taken, self.packing.results) if self.packing else (set(), set())
        alone = [i for i in range(len(self.inputs)) if i not in taken]
        self.alone = [(self.inputs[i], self.types[i]) for i in alone]
        self.lent = [(alone.index(place), self.fronts.get(place)) for place, _ in donated]
        self.lent_to = [result - sum([each < result for each in packed]) for _, result in donated]
        targets = [
            *[("returned", i) for i in range(self.count)],
            *[("written", root) for root in writes],
            *[("argument", i) for i in argument_writes],
            *[("gradient", owner) for owner in gradients.made],
        ]
        self.targets = [each for i, each in enumerate(targets) if i not in packed]
        self.alone_types = [each for i, each in enumerate(self.result_types) if i not in packed]
        for vector in self.packing.vectors if self.packing else ():
            vector.roots = [(self.inputs[place], self.fronts.get(place)) for place in vector.places]
            vector.owners = [targets[i][1] for i in vector.results[len(vector.places) :]]

    def run(self, arguments: Sequence[Any], wrap: Callable[[Value], Any]) -> Any:
        """What the function returns for these arguments; OTHER if it must be recorded anew for them."""
        if self.stateless:
            try:
                return self._run(arguments, wrap)
            except EngineError as error:
                # Another thread's function may have taken the memory of what was just about to be read.
                if "deleted or donated" not in error.message:
                    raise
        with evaluate.lock:  # between reading what it writes and writing it, no other thread may write
            return self._run(arguments, wrap)

    def _run(self, arguments: Sequence[Any], wrap: Callable[[Value], Any]) -> Any:
        settle(AHEAD)
        values = self.fits(arguments)
        if values is None:
            return OTHER
        if self.differentiable and graph.mode.enabled:
            results = self._call_node(values)
        else:
            results = self._execute(values, arguments, wrap)
        return self._finish(arguments, results, wrap)

    def _inputs(self, arguments: Sequence[Any]) -> list[Value] | None:
        """The values of what goes in by itself; None if one is of another type than it was."""
        values = []
        for each, expected in self.alone:
            if type(each) is int:
                value = arguments[each].current()
            else:
                value = each if type(each) is Value else each.current()
            if value.type is not expected:
                return None
            values.append(value)
        return values

    def _execute(
        self, values: list[Value], arguments: Sequence[Any], wrap: Callable[[Value], Any]
    ) -> list[Value]:
        """The results, computed now; the memory of what is written goes to what replaces it."""
        if self.loaded is None:
            self.loaded = evaluate.build(self.program, self.device, self.donated, self.packing)
        device, packing = self.device, self.packing
        buffers = []
        value: Any = None
        buffer: Any = None
        for value in values:
            buffer = value.buffer
            if buffer is None:
                evaluate.evaluate([value])
                buffer = value.buffer
            if type(buffer) in (np.ndarray, Pending) or value.device is not device:
                buffer = evaluate.buffer_of(value, device)
            buffers.append(buffer)
        value = buffer = None
        for i, front in self.lent:
            # Known are the references of the memory, the list, and the tensor in front if it has looked.
            known = 2 + (front is not None and front._value is values[i])
            buffers[i] = evaluate.lent(values[i], buffers[i], known)
        if packing is not None:
            buffers += [each.take(device, evaluate.computed_array) for each in packing.vectors]
        try:
            computed, failure = self.loaded(buffers)
        except TenfoldError as error:
            raise evaluate.placed(error, self.program) from None
        vectors = () if packing is None else packing.vectors
        count = len(computed) - len(vectors)
        if failure is not None:
            for (i, _), result in zip(self.lent, self.lent_to, strict=True):
                values[i].buffer = computed[result]
            for vector, buffer in zip(vectors, computed[count:], strict=True):
                if vector.lent:
                    vector.pending.results = buffer
            raise failure
        for vector, buffer in zip(vectors, computed[count:], strict=True):
            pending = Pending(buffer, vector.layout)
            vector.advance(pending, device, lambda owner: _origin(owner, arguments), wrap)
        return [
            Value(type, device, None, 0, buffer)
            for type, buffer in zip(self.alone_types, computed, strict=False)
        ]

    def _call_node(self, values: list[Value]) -> list[Value]:
        """The results as those of one node, so that gradients flow through it."""
        if self.signature is None:
            fragment = lower(self.program, whole=True)
            self.signature = Signature(CALL, tuple(self.types), (), fragment)
        node = Node(self.signature, tuple(values), capture())
        graph.follow(node)
        results = list(graph.results_of(node, self.device))
        graph.track(node, results)
        for result, follows in zip(results, self.follows, strict=True):
            if not follows:
                result.origin = None
        for root in self.writes:
            evaluate.written(root, root.current())
        return results

    def _finish(self, arguments: Sequence[Any], results: list[Value], wrap: Callable[[Value], Any]) -> Any:
        """Put results where they belong: into tensors that are written, into gradients, into what is
        returned."""
        returned: list[Any] = []
        for (kind, target), value in zip(self.targets, results, strict=True):
            if kind == "returned":
                returned.append(value)
            elif kind == "written":
                target.replace(value)
            elif kind == "argument":
                arguments[target].assign(value)
            else:
                _origin(target, arguments).collected = wrap(value)
        for owner in self.gradients.cleared:
            _origin(owner, arguments).collected = None
        tensors = [
            wrap(value) if each is None else arguments[each] if type(each) is int else each
            for each, value in zip(self.returned, returned, strict=True)
        ]
        if self.structure is tree.LEAF:
            return tensors[0]
        return tree.unflatten(self.structure, iter(tensors))

    def fits(self, arguments: Sequence[Any]) -> list[Value] | None:
        """The values that go in, if what it depends on from outside is as it was: types of tensors, Python
        attributes, whether there are gradients, and which, where they are read."""
        try:
            for container, key, value in self.guards:
                found = container[key]
                if found is not value and (type(value) not in PLAIN or found != value):
                    return None
        except LookupError:
            return None
        for owner, gradient in self.gradients.expected:
            found = _origin(owner, arguments).collected
            if (found is None) != (gradient is None) or (gradient is not ANY and found is not gradient):
                return None
        for tensor, root in self.watched:
            if tensor._alias.storage is not root:
                return None
        for root, leaf in self.leaves:
            if root.leaf is not leaf:  # it requires gradients now, or no longer
                return None
        return self._inputs(arguments)


def _root(holder: Any) -> Any:
    """The memory that a tensor lies in, be it all of it or a part."""
    alias = getattr(holder, "_alias", None)
    return holder if alias is None else alias.storage


def memory_of(holder: Any) -> Any:
    """The memory that a tensor is all of; other inputs as they are."""
    alias = getattr(holder, "_alias", None)
    return holder if alias is None or alias.steps else alias.storage


ANY = object()
OTHER = object()
MAX_VARIANTS = 8  # of a signature, for what it depends on besides its arguments


class Gradients:
    """What a recorded function does to the `grad` of leaves, each an Origin or the place of an argument."""

    def __init__(self) -> None:
        self.expected: list[tuple[Any, Any]] = []  # a Tensor, None, or ANY tensor
        self.made: list[Any] = []
        self.cleared: list[Any] = []


def _origin(owner: Any, arguments: Sequence[Any]) -> Origin:
    return arguments[owner]._leaf if type(owner) is int else owner


CALL = Row("compiled(Tensor[] arguments) -> Tensor[]", lambda *arguments: arguments, {})


def trace(function: Callable[..., Any], args: tuple, kwargs: dict[str, Any], tensor: type) -> Recorded:
    """Record a function on arguments like these; `tensor` is the class of tensors, made from a Value."""
    given: list[Any] = []
    structure = tree.flatten((args, kwargs), lambda each: isinstance(each, tensor), given)
    with _recording:
        recording = Recording()
        by_tensor: dict[int, Any] = {}  # one stand-in for a tensor that is given twice
        for each in given:
            value = Value(each.current().type, each.current().device)
            value.source = each.current().made_at
            by_tensor.setdefault(id(each), _stand_in(tensor(value), each))
        stand_ins = [by_tensor[id(each)] for each in given]
        values = [each.current() for each in stand_ins]
        recording.arguments.update(values)
        outer, graph.recorder = graph.recorder, recording
        try:
            call_args, call_kwargs = tree.unflatten(structure, iter(stand_ins))
            result = function(*call_args, **call_kwargs)
            outputs: list[Any] = []
            result_structure = tree.flatten(result, lambda each: isinstance(each, tensor), outputs)
            targets = [each.current() for each in outputs]
        finally:
            graph.recorder = outer
            written = recording.results()
            finals = [each.current() for each in stand_ins]
            after = {origin: origin.collected for origin in recording.grads}
            recording.restore()
    first = {id(each): i for i, each in reversed(list(enumerate(stand_ins)))}
    changed = [i for i in first.values() if finals[i] is not values[i]]
    if changed and shares_memory(given):
        raise TraceError(
            "the function writes to an argument that shares memory with another", help="clone() one of them"
        ).located("compile", capture())
    memory = {id(_root(each)) for each in given}
    inside = [each for each in recording.holders.values() if id(_root(each)) in memory]
    if any(id(root) in memory for root in recording.before) or (changed and inside):
        raise TraceError(
            "the function writes to a tensor that it is given as an argument and also reads from outside",
            help="pass it in one of the two ways",
        ).located("compile", capture())
    leaves = {each._leaf: i for i, each in enumerate(stand_ins) if each._leaf is not None}
    gradients, collected = _gradients(recording, after, leaves)
    wanted = targets + list(written.values()) + [finals[i] for i in changed] + collected
    if not wanted:
        raise TraceError(
            "the compiled function neither returns nor changes a tensor", help="return what it computes"
        ).located("compile", capture())
    program, _ = collect(wanted)
    followed = [each.origin for each in targets if each.origin is not None and not _spent(each.origin)]
    _refuse_python(followed)
    places = {values[i]: i for i in first.values()}
    inputs: list[int | Holder | Value] = [
        places[leaf] if leaf in places else recording.holders.get(leaf, leaf) for leaf in program.leaves
    ]
    outside = {id(each): each for each in (*recording.holders.values(), *recording.written)}
    returned = [first.get(id(each), outside.get(id(each))) for each in outputs]
    places_of = {leaf: i for i, leaf in enumerate(program.leaves)}
    replaced = tuple(
        [
            (places_of[recording.before[root]], len(targets) + i)
            for i, root in enumerate(written)
            if recording.before[root] in places_of
        ]
    )
    return Recorded(
        program,
        inputs,
        result_structure,
        returned,
        list(written),
        changed,
        wanted[0].device,
        gradients,
        list(recording.guards.values()),
        replaced,
        bool(followed),
        [each.origin is not None for each in wanted],
    )


def _refuse_python(followed: list[Origin]) -> None:
    """Refuse a function whose gradient is taken outside of it though Python has a say in it: a compiled
    function is differentiated as the program that it is."""
    seen: set[Any] = set()
    stack = list(followed)
    while stack:
        origin = stack.pop()
        if origin.node is not None and (origin.hooks or not isinstance(origin.node, Node)):
            raise TraceError(
                "a hook or an autograd.Function in a compiled function cannot change gradients taken outside",
                help="call backward() inside the function, or leave this part out of it",
            ).located("compile", capture())
        if origin.node is not None and origin.node not in seen:
            seen.add(origin.node)
            stack += [each.origin for each in origin.node.inputs if each.origin is not None]


def _stand_in(made: Any, given: Any) -> Any:
    """A tensor without data in the place of an argument; gradients collect in it if they would there."""
    if given.requires_grad:
        made._leaf = made._value.origin = Origin()
        made._leaf.collected = given.grad
    return made


def _spent(origin: Origin) -> bool:
    return origin.node is not None and origin.node.spent


def _gradients(
    recording: Recording, after: dict[Origin, Any], leaves: dict[Any, int]
) -> tuple[Gradients, list[Value]]:
    """What became of the gradients that a function touched, and the values it made for them."""
    gradients, values = Gradients(), []
    used = {id(each) for each in (*recording.holders.values(), *recording.written)}
    for origin, final in after.items():
        owner = leaves.get(origin, origin)
        before = recording.grads[origin]
        gradients.expected.append((owner, before if before is None or id(before) in used else ANY))
        if final is None and before is not None:
            gradients.cleared.append(owner)
        elif final is not None and final is not before:
            gradients.made.append(owner)
            values.append(final.current())
    return gradients, values


def shares_memory(tensors: Sequence[Any]) -> bool:
    """Whether two of these tensors, not being the same, lie in one storage."""
    distinct = {id(each): each for each in tensors if each._alias is not None}
    return len({id(each._alias.storage) for each in distinct.values()}) < len(distinct)


class Compiled:
    """A function whose programs are kept, one for each signature of its arguments."""

    def __init__(self, function: Callable[..., Any], tensor: type):
        functools.update_wrapper(self, function)
        self.function = function
        self._tensor = tensor
        self._recorded: dict[Any, list[Recorded]] = {}
        self._short: tuple[list[Any], xla.Executable, Any, Any] | None = None
        self._last: tuple[list[Any], Recorded, Any, bool] | None = None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if graph.recorder is not None and graph.active() is not None:
            return self.function(*args, **kwargs)
        if evaluate.engine == "libtorch":
            return self.function(*args, **kwargs)  # it runs op by op: there is nothing to compile
        short = self._short
        if short is not None and not kwargs and len(xla.in_use) == 1 and graph.mode.precision is None:
            # A call like the last one, with its data on the device: nothing to do but start the program.
            types, executable, result, default = short
            try:
                values = [each._value for each in args if each._alias is None]
                same = [each.type for each in values if each.origin is None] == types
                if same and default is dtypes.get_default_dtype():
                    started = executable.start([each.buffer for each in values])
                    (buffer,) = started.consume_with_handlers(executable.makers)
                    return self._tensor(Value(result, values[0].device, None, 0, buffer))
            except (AttributeError, TypeError, RuntimeError):
                pass  # not all tensors, or data not there yet
        if self._last is not None and not kwargs:
            result = self._as_last(args)
            if result is not OTHER:
                return result
        return self._general(args, kwargs)

    def _as_last(self, args: tuple[Any, ...]) -> Any:
        """A call on tensors like those of the last one: what it depends on is all there is to compare."""
        assert self._last is not None
        types, recorded, defaults, follows = self._last
        if len(args) != len(types) or defaults != (dtypes.get_default_dtype(), get_default_device()):
            return OTHER
        if graph.mode.enabled is not follows or graph.mode.precision is not None:
            return OTHER
        if len({id(each) for each in args}) != len(args):
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

    def _general(self, args: tuple, kwargs: dict[str, Any]) -> Any:
        tensor = self._tensor
        given: list[Any] = []
        structure = tree.flatten((args, kwargs), lambda each: isinstance(each, tensor), given)
        current = [each.current() for each in given]
        types = tuple([(each.type, each.device) for each in current])
        # What is the same tensor, and what shares memory, decides what a write is seen by.
        same = tuple([[id(other) for other in given].index(id(each)) for each in given])
        asks = tuple([each.origin is not None for each in current]) if graph.mode.enabled else None
        settings = (dtypes.get_default_dtype(), get_default_device(), graph.mode.precision, asks)
        key = (structure, types, same, shares_memory(given), settings)
        try:
            variants = self._recorded.setdefault(key, [])
        except TypeError:
            raise ArgumentError(
                "arguments other than tensors must be hashable, since each value is compiled apart",
                help="pass tensors for data, and numbers, strings or tuples for options",
            ).located("compile", capture()) from None
        for i, recorded in enumerate(variants):
            result = recorded.run(given, tensor)
            if result is not OTHER:
                if i:
                    variants.insert(0, variants.pop(i))
                break
        else:
            recorded = trace(self.function, args, kwargs, tensor)
            variants.insert(0, recorded)
            del variants[MAX_VARIANTS:]
            result = recorded.run(given, tensor)
        self._shorten(recorded, args, kwargs)
        return result

    def _shorten(self, recorded: Recorded, args: tuple, kwargs: dict[str, Any]) -> None:
        """Let calls like this one go the short way, if they need no more than to start the program."""
        self._short = self._last = None
        if graph.mode.precision is not None:
            return
        loaded = recorded.loaded
        distinct = len({id(each) for each in args}) == len(args)
        if not kwargs and distinct and all(isinstance(each, self._tensor) for each in args):
            values = [each.current() for each in args]
            if all(each.origin is None for each in values) and all(each._alias is None for each in args):
                types = [(each.type, each.device) for each in values]
                defaults = (dtypes.get_default_dtype(), get_default_device())
                self._last = (types, recorded, defaults, graph.mode.enabled)
        if not (recorded.plain and args and not kwargs and loaded is not None and not loaded.checks):
            return
        if all(isinstance(each, self._tensor) for each in args):
            shapes = [each._value.type for each in args]
            self._short = (shapes, loaded.executable, recorded.result_types[0], dtypes.get_default_dtype())

    def __get__(self, instance: Any, owner: Any) -> Any:
        return self if instance is None else functools.partial(self, instance)
