"""Recording a function: which tensors it reads from outside of its arguments, and which it writes in place.

Both become part of the program: the first as hidden inputs, read anew at each call, the second as hidden
results, put back after it.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Collection, Sequence
from types import ModuleType
from typing import Any

from tenfold.base.errors import TraceError
from tenfold.base.forking import forkable
from tenfold.base.source import capture
from tenfold.runtime import evaluate, tree
from tenfold.runtime.bindings import Bindings, Change, Has, Place, is_ours, keys_of, memory_under
from tenfold.runtime.collected import ANY, Cleared, Gradients
from tenfold.runtime.guards import CONTAINERS, MANY, PLAIN, Guard, contents_of, hold
from tenfold.runtime.reach import Reach
from tenfold.runtime.recorded import Again, Recorded, is_spent, memory_of
from tenfold.trace import graph
from tenfold.trace.graph import Holder, Node, Origin, Value
from tenfold.trace.program import collect

one_at_a_time = forkable(threading.RLock())  # there is one recorder: other threads record after it


class Recording:
    """What a function does to tensors while it is recorded."""

    through_memory = False

    def __init__(self, tensor: type) -> None:
        self.thread = threading.get_ident()
        self.bindings = Bindings(tensor)
        self.nodes: set[Node] = set()
        self.arguments: set[Value] = set()
        self.holders: dict[Value, Holder] = {}
        self.before: dict[Holder, Value] = {}
        self.written: list[Holder] = []
        self.grads: dict[Origin, Any] = {}
        self.cleared: set[Origin] = set()
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

    def touch_grad(self, origin: Origin, clears: bool) -> None:
        """A leaf's gradient is about to be read or replaced, or cleared."""
        self.grads.setdefault(origin, origin.collected)
        if clears:
            self.cleared.add(origin)

    def guard(self, container: Any, key: Any, contents: bool = False) -> None:
        """What is recorded depends on what a container has under a key: something else there needs another
        program, and where it depends on `contents`, so does the same list or dict with something else in it.
        Attributes are what `__dict__` contains."""
        found = contents_of(container[key]) if contents else container[key]
        self.guards.setdefault((id(container), key), (container, key, found))

    def watch(self, container: Any, apart: Collection[Any] = (), of_object: bool = False) -> None:
        """What is bound to names of this container, be it all that an object has, may change, and what is in
        that, but for names that stand apart."""
        self.bindings.watch(container, apart=apart, of_object=of_object)

    def kept_guards(self, places: Sequence[Place], changes: Sequence[Change]) -> list[Guard]:
        """What must be as it was: not what is looked up at each call, nor what the function changed itself,
        while it was recorded and for good."""
        found = keys_of(places)
        kept = [guard for key, guard in self.guards.items() if key not in found and hold([guard])]
        return self.bindings.opened(kept, changes)


def _stays_itself(argument: Any) -> bool:
    """Whether it is an object of the user's that stays the same while its attributes change."""
    kind: Any = type(argument)
    known = isinstance(argument, (type, ModuleType)) or _guards_itself(argument)
    by_identity: Any = object.__hash__
    return kind.__hash__ is by_identity and not known


def _depend(recording: Recording, function: Any, arguments: Any, tensor: type) -> None:
    """Let the program depend on what the function's code comes to by name, and on the attributes of modules
    and objects among the arguments; and see what it binds there."""
    objects: list[Any] = []
    tree.flatten(arguments, lambda each: _guards_itself(each) or _stays_itself(each), objects)
    for each in objects:
        if _guards_itself(each):
            each._guard()
    reach = Reach(function, objects, tensor)
    for each in reach.objects:
        if not _guards_itself(each):
            recording.watch(vars(each), of_object=True)
    if _guards_itself(reach.owner):
        reach.owner._guard()
    apart = {id(vars(each)) for each in reach.objects if _guards_itself(each)}
    for container, names in reach.containers():
        if id(container) not in apart:
            recording.bindings.watch(container, names)
        for name in names:
            with contextlib.suppress(LookupError):
                value = container[name]
                if _guards_itself(value):
                    value._guard()
                if not issubclass(type(value), (tensor, ModuleType)):
                    recording.guard(container, name, contents=_is_setting(value))
    for container, name in reach.absent():
        recording.guard(Has(container), name)


def _guards_itself(value: Any) -> bool:
    return is_ours(type(value)) and hasattr(type(value), "_guard")


def _is_setting(value: Any) -> bool:
    return type(value) in PLAIN or (type(value) in CONTAINERS and len(value) <= MANY)


def trace(
    function: Callable[..., Any], args: tuple, kwargs: dict[str, Any], tensor: type, reuse: bool = False
) -> Recorded:
    """Record a function on arguments like these; `tensor` is the class of tensors, made from a Value. With
    `reuse` it is to be called again: names are looked up at each call, and gradients that it clears lend
    their memory to those that it makes in their place."""
    given: list[Any] = []
    structure = tree.flatten((args, kwargs), lambda each: isinstance(each, tensor), given)
    with one_at_a_time:
        recording = Recording(tensor)
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
            _depend(recording, function, (args, kwargs), tensor)
            call_args, call_kwargs = tree.unflatten(structure, iter(stand_ins))
            result = function(*call_args, **call_kwargs)
            changes = recording.bindings.changes()
            if changes:
                result = (result, [each.after for each in changes])
            outputs: list[Any] = []
            result_structure = tree.flatten(result, lambda each: isinstance(each, tensor), outputs)
            targets = [each.current() for each in outputs]
        finally:
            graph.recorder = outer
            written = recording.results()
            finals = [each.current() for each in stand_ins]
            after = {origin: origin.collected for origin in recording.grads}
            collected = {each: each.current() for each in after.values() if each is not None}
            recording.restore()
            recording.bindings.put_back()
    first = {id(each): i for i, each in reversed(list(enumerate(stand_ins)))}
    arguments = {values[i]: i for i in first.values()}
    changed = [i for i in first.values() if finals[i] is not values[i]]
    if changed and shares_memory(given):
        raise TraceError(
            "the function writes to an argument that shares memory with another", help="clone() one of them"
        ).located("compile", capture())
    memory = {id(memory_under(each)) for each in given}
    inside = [each for each in recording.holders.values() if id(memory_under(each)) in memory]
    if any(id(root) in memory for root in recording.before) or (changed and inside):
        raise TraceError(
            "the function writes to a tensor that it is given as an argument and also reads from outside",
            help="pass it in one of the two ways",
        ).located("compile", capture())
    leaves = {each._leaf: i for i, each in enumerate(stand_ins) if each._leaf is not None}
    gradients, made = _gradients(recording, after, collected, leaves)
    wanted = targets + list(written.values()) + [finals[i] for i in changed] + made
    if not wanted:
        raise TraceError(
            "the compiled function neither returns nor changes a tensor", help="return what it computes"
        ).located("compile", capture())
    read = recording.holders.values()
    found = recording.bindings.places(changes, recording.before, given, read) if reuse else ([], [], [])
    places, looked_up, same = found
    for i, each in enumerate(looked_up, len(given)):
        first.setdefault(id(each), i)
        first.setdefault(id(memory_of(each)), i)
    program, _ = collect(wanted)
    followed = [each.origin for each in targets if each.origin is not None and not is_spent(each.origin)]
    _refuse_python(followed)
    inputs: list[int | Holder | Value | Cleared] = []
    for leaf in program.leaves:
        holder = recording.holders.get(leaf, leaf)
        inputs.append(arguments[leaf] if leaf in arguments else first.get(id(holder), holder))
    outside = {id(each): each for each in (*recording.holders.values(), *recording.written)}
    new: dict[int, int] = {}
    returned: list[int | Holder | Again | None] = []
    for i, each in enumerate(outputs):
        known = first.get(id(each), outside.get(id(each)))
        earlier = new.setdefault(id(each), i)
        returned.append(Again(earlier) if known is None and earlier < i else known)
    places_of = {leaf: i for i, leaf in enumerate(program.leaves)}
    replaced = tuple(
        [
            (places_of[recording.before[root]], len(targets) + i)
            for i, root in enumerate(written)
            if recording.before[root] in places_of
        ]
    )
    if reuse and not followed:
        for i, owner in enumerate(gradients.made, len(wanted) - len(made)):
            if owner in recording.cleared and evaluate.donatable(wanted[i].type, wanted[i].type):
                replaced += ((len(inputs), i),)
                inputs.append(Cleared(owner, wanted[i].type, wanted[i].device))
                program.leaves.append(Value(wanted[i].type, wanted[i].device))
    return Recorded(
        program,
        inputs,
        result_structure,
        returned,
        list(written),
        changed,
        wanted[0].device,
        gradients,
        recording.kept_guards(places, changes) + same,
        replaced,
        bool(followed),
        [each.origin for each in wanted],
        places,
        [(each.container, each.name) for each in changes],
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


def _gradients(
    recording: Recording, after: dict[Origin, Any], collected: dict[Any, Value], leaves: dict[Any, int]
) -> tuple[Gradients, list[Value]]:
    """What became of the gradients that a function touched, and the values it made for them; `after` has them
    as tensors, `collected` what those held in the end."""
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
            values.append(collected[final])
    return gradients, values


def shares_memory(tensors: Sequence[Any]) -> bool:
    """Whether two of these tensors, not being the same, lie in one storage."""
    distinct = {id(each): each for each in tensors if each._alias is not None}
    return len({id(each._alias.storage) for each in distinct.values()}) < len(distinct)
