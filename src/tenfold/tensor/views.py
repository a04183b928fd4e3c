"""Memory that tensors share: PyTorch's views and in-place writes on a Trace that is pure.

Tensors that alias each other share a `Storage`, whose value is replaced by each write. A view remembers the
ops that lead to it from there: it is read by replaying them when the storage has changed, and written by
putting the new value back through them. Strides and offset tell what PyTorch would: whether a reshape can
share, whether elements overlap.

A view row of the table gives these facts:
- `strides(place, strides, offset, *arguments)`: the result's strides and offset; None where PyTorch copies;
- `write(call, base, new, *arguments)`: the base with the view's new value put back; else strides are used;
- `steps(place, *arguments)`: the simpler view ops, as (name, *arguments), that a result amounts to. They tell
  how to read and write it, and the first of them its strides if the row does not. No steps: the result is the
  argument itself;
- `recodes`: elements change, not just their places, so strides cannot see through it;
- `storage`: its first argument stands for all the memory behind it.
`arguments` are the schema's after `self`; `call(name, ...)` records an op.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from tenfold.base import owners
from tenfold.base.errors import ShapeError, UnsupportedError
from tenfold.base.forking import forkable
from tenfold.flat.ir import TensorType
from tenfold.flat.strides import Layout, contiguous
from tenfold.ops.table import Row, find
from tenfold.runtime import evaluate
from tenfold.tensor import data_attribute
from tenfold.trace import graph
from tenfold.trace.context import context
from tenfold.trace.graph import Holder, Origin, Value, call_op

Call = Callable[..., Value]


SAVED_APART = "_saved_apart"  # the attribute of a view that shares no storage with others in a file


class Storage(Holder):
    """The memory behind tensors that alias: its present value, and how often it was written; `leaf` if all of
    it is one tensor that collects gradients."""

    __slots__ = ("__weakref__", "borrowed", "leaf", "value", "version")
    borrowed: tuple[np.ndarray, bytes | None]  # the memory of others, and what it last held; see Borrowed

    def __init__(self, value: Value, leaf: Origin | None = None):
        self.value = value
        self.leaf = leaf
        self.version = 0

    def current(self) -> Value:
        return self.value

    def replace(self, value: Value) -> None:
        if self.leaf is not None:
            value.origin = self.leaf
        self.value = value
        self.version += 1


class Borrowed(Storage):
    """Memory that others may write, such as that of an array given to `from_numpy`. Reading it takes a
    snapshot: an op that was recorded does not see later changes of the memory, while the tensors that alias
    it do, as if it was written in place. It becomes a plain storage when nobody else can write the memory
    any more, when a tensor writes to it, and after the first snapshot if it is larger than COMPARED."""

    __slots__ = ()

    @property
    def value(self) -> Value:
        self._look()
        return _value.__get__(self)

    @value.setter
    def value(self, value: Value) -> None:
        _value.__set__(self, value)

    @property
    def version(self) -> int:
        self._look()
        return _version.__get__(self)

    @version.setter
    def version(self, version: int) -> None:
        self._own()  # it is written here
        self.version = version

    def replace(self, value: Value) -> None:
        self._own()
        self.replace(value)

    def _own(self) -> None:
        with _looking:
            if self.__class__ is Borrowed:  # else another thread was here first
                self.__class__ = Storage  # type: ignore[assignment]
                del self.borrowed

    def _look(self) -> None:
        """Take a snapshot if the memory is not as it was at the last look."""
        with _looking:
            if self.__class__ is not Borrowed:
                return
            memory, seen = self.borrowed
            ours = self._is_ours()
            if seen is None or memory.tobytes() != seen:
                snapshot = np.asarray(memory, order="C") if ours else np.array(memory, order="C")
                if seen is None:
                    _value.__get__(self).buffer = snapshot  # nobody has read it yet
                else:
                    self._change_to(snapshot)
                if memory.nbytes <= COMPARED:
                    self.borrowed = memory, snapshot.tobytes()
            if ours or memory.nbytes > COMPARED:
                self._own()

    def _change_to(self, snapshot: np.ndarray) -> None:
        before = _value.__get__(self)
        value = Value(before.type, before.device, buffer=snapshot)
        value.source = before.source
        value.origin = self.leaf or (None if before.origin is None else before.origin.beside())
        self.value = value
        _version.__set__(self, _version.__get__(self) + 1)

    def _is_ours(self) -> bool:
        """Whether nobody else holds the memory: neither the array that was given nor one that it is a part
        of. Bytes never change."""
        memory: Any = self.borrowed[0]
        others = 2 + (_value.__get__(self).buffer is memory)  # `borrowed`, a name in `_look`, and the value
        while type(memory) is np.ndarray:
            if owners.count(memory) > owners.NAMED + others:
                return False
            memory, others = memory.base, 1
        return memory is None or type(memory) is bytes


_value, _version = vars(Storage)["value"], vars(Storage)["version"]  # where the properties keep theirs
_looking = forkable(threading.RLock())
# Borrowed memory of up to so many bytes is compared with the last snapshot whenever it is read. Larger memory
# is read once, since a comparison would cost more than many an op on a part of it.
COMPARED = 1 << 16


def borrowing(value: Value, memory: np.ndarray) -> Alias:
    """The alias for a value that will hold the data of memory which others may write; it covers all of that
    memory."""
    alias = whole(value)
    alias.storage.borrowed = memory, None
    alias.storage.__class__ = Borrowed
    return alias


def memory_of(alias: Alias | None) -> np.ndarray | None:
    """The memory of others that an alias is all of, if it is borrowed."""
    if alias is None or alias.steps:
        return None
    memory, _ = getattr(alias.storage, "borrowed", (None, None))
    return memory


class Place(NamedTuple):
    """A view op on one operand: the type that it looks at, the type of its result, and which result that
    is."""

    base: TensorType
    view: TensorType
    which: int = 0

    @property
    def shape(self) -> tuple[int, ...]:
        return self.base.shape

    @property
    def result(self) -> tuple[int, ...]:
        return self.view.shape


class Step(NamedTuple):
    """One view op on the way from the storage to a view; `arguments` are the schema's, after `self`."""

    row: Row
    arguments: tuple[Any, ...]
    which: int = 0

    def read(self, base: Value, where: Any) -> Value:
        return call_op(self.row, (base, *self.arguments), where)[self.which]


class Base:
    """The base of views, as autograd sees it. `leaf` is its origin if it collects gradients. A base that is
    `apart` (a detached tensor, say) shares memory with tensors that gradients flow to, without being one of
    them: `depth` steps lead to it from the storage. A write to it is its own `value` for autograd, and a
    constant for the memory. One that is `hidden` (a tensor's `.data`, or a tensor that was given it) has a
    `counter` of its own: writes to it are not told to others in its memory, nor theirs to it."""

    __slots__ = ("_made_in", "apart", "counter", "depth", "hidden", "leaf", "owner", "value", "version")

    def __init__(self, leaf: Origin | None = None, apart: bool = False, depth: int = 0):
        self.leaf = leaf
        self.apart = apart
        self.depth = depth
        self.hidden = False
        self.counter = data_attribute.Counter()
        self.value: Value | None = None
        self.version = 0  # of the storage, when it held that value
        self.owner: Callable[[], Any] | None = None  # the tensor, as a weak reference
        self._made_in = None if context.recorder is None else weakref.ref(context.recorder)

    @property
    def is_told(self) -> bool:
        """Whether it has a value of its own in the present recording."""
        if self.value is None:
            return False
        recorder = context.recorder
        return recorder is None or recorder.made(self.value)

    def is_to_be_told(self, new: Value) -> bool:
        """Whether gradients flow to what is written to it: where it was made, that they may be told of it."""
        if not self.apart or self.is_told:
            return self.apart
        if new.origin is None or new.origin.of is self.leaf:
            return False
        return context.recorder is (None if self._made_in is None else self._made_in())


class Alias:
    """How a tensor aliases its storage, and what autograd knows of it: whether it is a view of its `base`,
    was made of a leaf (`of_leaf`), or was made under `no_grad` (`untold`)."""

    __slots__ = ("base", "is_view", "of_leaf", "offset", "steps", "storage", "strides", "untold", "version")

    def __init__(
        self,
        storage: Storage,
        steps: tuple[Step, ...],
        strides: tuple[int, ...],
        offset: int,
        base: Base | None = None,
    ):
        self.base = base or Base()
        self.is_view = self.of_leaf = self.untold = False
        self.storage = storage
        self.steps = steps
        self.version = storage.version
        self.strides = strides
        self.offset = offset

    def copy(self, base: Base | None = None) -> Alias:
        """The same alias for another tensor; by default one that is detached from autograd."""
        return Alias(self.storage, self.steps, self.strides, self.offset, base or self.own_base())

    def own_base(self, leaf: Origin | None = None) -> Base:
        """The base for a detached tensor at this place."""
        base = Base(leaf, True, len(self.steps))
        base.hidden, base.counter = self.base.hidden, self.base.counter
        return base

    def taken_by(self, before: Alias | None, leaf: Origin | None) -> Alias:
        """The same alias for a tensor that aliased other memory before, and keeps its role in autograd."""
        alias = self.copy(self.own_base(leaf))
        alias.base.counter = data_attribute.Counter() if before is None else before.base.counter
        alias.version = self.version
        if before is not None:
            depth = before.base.depth
            if before.storage is self.storage and before.steps[:depth] == self.steps[:depth]:
                alias.base = before.base
            alias.is_view, alias.of_leaf, alias.untold = before.is_view, before.of_leaf, before.untold
        return alias

    @property
    def of_leaf_now(self) -> bool:
        """Whether this is a view of a leaf, also if that became a leaf after the view was made."""
        return self.of_leaf or (self.is_view and self.base.leaf is not None)

    @property
    def in_doubt(self) -> bool:
        """Whether autograd would have to see a write, although the view was made under `no_grad`."""
        known = self.base.value if self.base.apart else self.storage.value
        return self.untold and known is not None and known.origin is not None

    def is_foreign(self, origin: Origin) -> bool:
        """Whether a value of the storage is known to gradients as another tensor's, which wrote it."""
        return origin.of is not self.base.leaf and (self.base.apart or origin.node is None)


class Reader(Holder):
    """Reads what lies at a place in memory."""

    __slots__ = ("_alias",)

    def __init__(self, alias: Alias):
        self._alias = alias

    @property
    def version(self) -> int:
        """How often the memory was written."""
        return self._alias.storage.version

    def current(self) -> Value:
        return read(self._alias, self._alias.storage.value.made_at)


def whole(value: Value, leaf: Origin | None = None, version: int = 0) -> Alias:
    """A storage of its own for a value, and the alias that is all of it."""
    storage = Storage(value, leaf)
    storage.version = version
    return Alias(storage, (), contiguous(value.type.shape), 0, Base(leaf))


class Way(NamedTuple):
    """What a view op adds to an alias that lies at these `strides` and `offset`: its steps, and the layout of
    its result, None if PyTorch copies."""

    strides: tuple[int, ...]
    offset: int
    steps: tuple[Step, ...]
    layout: Layout | None


def way_on(alias: Alias, row: Row, base: TensorType, arguments: Sequence[Any], result: Value) -> Way:
    """What a view op on a tensor of type `base` adds to its alias."""
    place = Place(base, result.type, result.index)
    if row.steps is None:
        steps: tuple[Step, ...] = (Step(row, tuple(arguments), result.index),)
    else:
        simple = [(find(name), own) for name, *own in row.steps(place, *arguments)]
        steps = tuple([_complete(step, own) for step, own in simple])
    layout: Layout | None = (alias.strides, alias.offset)
    shown = row if row.strides is not None else steps[0].row if steps else None
    if shown is not None:
        shown_arguments = arguments if shown is row else steps[0].arguments
        assert shown.strides is not None
        layout = shown.strides(place, alias.strides, alias.offset, *shown_arguments)
    return Way(alias.strides, alias.offset, steps, layout)


def extend(alias: Alias, row: Row, base: Value, way: Way) -> Alias | None:
    """The alias of a view op's result. It is the same one if the result is the tensor itself, and None if
    PyTorch copies."""
    if way.layout is None:
        return None
    if not way.steps:
        return alias
    if row.storage:
        _check_storage(alias)
    every = way.steps if row.storage else (*alias.steps, *way.steps)
    extended = Alias(alias.storage, every, *way.layout, alias.base)
    if row.name == "detach" or (row.storage and alias.base.depth):
        extended.base = extended.own_base()
    else:
        extended.is_view = True
        extended.of_leaf = alias.of_leaf or (base.origin is not None and base.origin.node is None)
        extended.untold = alias.untold or not context.grad_enabled
    return extended


def _complete(row: Row, leading: Sequence[Any]) -> Step:
    """A step with the defaults of the arguments that were not given."""
    rest = [argument.default for argument in row.schema.arguments[1 + len(leading) :]]
    return Step(row, (*leading, *rest))


def _check_storage(alias: Alias) -> None:
    if any(step.row.recodes for step in alias.steps):
        raise UnsupportedError(
            "the whole memory behind a tensor that was viewed as another dtype or conjugated cannot be seen",
            help="clone() the tensor first",
        )


def on_storage(alias: Alias, row: Row, arguments: Sequence[Any], where: Any) -> Value:
    """Call an op that sees the whole storage of its first argument."""
    _check_storage(alias)
    result = call_op(row, (_memory(alias, where), *arguments), where)[0]
    if not row.schema.is_view:  # the argument, as it would lie in a copy of the storage
        for step in alias.steps:
            result = step.read(result, where)
    return result


def read(alias: Alias, where: Any) -> Value:
    """What the view sees in its storage now; with gradients, wherever it is read, if it was made so."""
    base = alias.base
    if base.is_told:
        value, steps = _held(alias, where), alias.steps[base.depth :]
    else:
        value, steps = _memory(alias, where), alias.steps
    telling = value.origin is not None and not context.grad_enabled and not alias.untold
    if telling:
        context.grad_enabled = True
    try:
        for step in steps:
            value = step.read(value, where)
    finally:
        if telling:
            context.grad_enabled = False
    return value


def is_told(alias: Alias) -> bool:
    """Whether gradients flow to what `read` gives."""
    base = alias.base
    if base.is_told:
        return base.value is not None and base.value.origin is not None
    origin = alias.storage.value.origin
    return origin is not None and not alias.is_foreign(origin)


def _memory(alias: Alias, where: Any) -> Value:
    """What the storage holds, a constant where gradients know it as another tensor's."""
    value = alias.storage.value
    foreign = value.origin is not None and alias.is_foreign(value.origin)
    return _apart(value, where) if foreign else value


def _apart(value: Value, where: Any) -> Value:
    """The same data as a value that no gradient flows to; in a function that is recorded, by an op: it reads
    whatever the memory holds when it runs."""
    return graph.fresh(value, where, by_op=context.recorder is not None)


def _held(alias: Alias, where: Any) -> Value:
    """What the base of a tensor holds that is apart from others in its memory: with its own gradients, which
    pass by what the others have written."""
    base, known = alias.base, alias.base.value
    if known is not None and base.version == alias.storage.version:
        return known
    value = _apart(alias.storage.value, where)
    for step in alias.steps[: base.depth]:
        value = step.read(value, where)
    if known is not None and known.origin is not None:
        value.origin = known.origin.beside()
        base.value, base.version = value, alias.storage.version
    return value


def on_host(alias: Alias, type: TensorType) -> np.ndarray | None:
    """What a view of this type sees, where its storage is on the host already: nothing is to be computed."""
    stored = alias.storage.value
    if stored.buffer is None or stored.device.type != "cpu" or stored.type.dtype is not type.dtype:
        return None
    if not type.numel or any(step.row.recodes for step in alias.steps):
        return None
    memory = evaluate.host_array(stored)
    if not memory.flags.c_contiguous:
        return None
    size, bytes_of = memory.itemsize, memory.reshape(-1).view(np.uint8)
    strides = [stride * size for stride in alias.strides]
    return np.ndarray(type.shape, memory.dtype, bytes_of, alias.offset * size, strides)


def number(alias: Alias, type: TensorType) -> Any:
    """The one element that a view of this type sees, by the data of its storage, which is computed if need
    be: it would be with the view. None if that does not tell."""
    stored = alias.storage.value
    if stored.device.type != "cpu" or stored.device.mesh is not None or stored.type.dtype is not type.dtype:
        return None
    if any(step.row.recodes for step in alias.steps):
        return None
    if stored.buffer is None:
        if stored.node is None:
            return None
        evaluate.evaluate([stored])
    memory = evaluate.host_array(stored)
    return memory.item(alias.offset) if memory.flags.c_contiguous else None


def same_elements(x: Any, y: Any) -> bool:
    """Whether two tensors see the same elements of the same memory at the same places."""
    one, other = x._alias, y._alias
    if one is None or other is None or x._value.type is not y._value.type:
        return x is y
    if one.storage is not other.storage or one.offset != other.offset or one.strides != other.strides:
        return False
    recoded = [[step for step in alias.steps if step.row.recodes] for alias in (one, other)]
    return recoded[0] == recoded[1]


def write(alias: Alias, new: Value, where: Any, uniform: bool = False) -> None:
    """Put a view's new value back into its storage; `uniform`: elements that share memory agree."""
    if not uniform:
        _check_no_overlap(new.type.shape, alias.strides)

    def call(name: str, *arguments: Any) -> Value:
        row = find(name)
        return call_op(row, (arguments[0], *_complete(row, arguments[1:]).arguments), where)[0]

    def put(new: Value, memory: Value, steps: Sequence[Step]) -> tuple[Value, bool]:
        """What these steps lead from, with a new value put back; and whether they see just that."""
        bases = [memory]
        for step in steps[:-1]:
            bases.append(step.read(bases[-1], where))
        seen, end = True, len(steps)
        while end:
            start = _strided_from(steps[:end])
            if start is None:
                end -= 1
                back = steps[end].row.write
                assert back is not None
                new = back(call, bases[end], new, *steps[end].arguments)
            else:
                strides, offset = _layout(steps[start:end], [*bases[start:end], new])
                if not uniform:
                    _check_no_overlap(new.type.shape, strides)
                for dim, (extent, stride) in enumerate(zip(new.type.shape, strides, strict=True)):
                    if extent > 1 and stride == 0:  # all of them agree: one is enough
                        new = call("slice.Tensor", new, dim, 0, 1)
                new = call("as_strided_scatter", bases[start], new, new.type.shape, strides, offset)
                seen, end = False, start
        return new, seen

    storage, steps, base, written, seen = alias.storage, alias.steps, alias.base, new, True
    told = base.is_to_be_told(new)
    if told:
        held = _held(alias, where)
        new, seen = put(new, held, steps[base.depth :])
        if held.origin is not None and new.origin is None and not context.grad_enabled:
            new.origin = held.origin.beside()
        base.value = None if new.origin is None else new
        new, steps = call("detach", new), steps[: base.depth]
    before, placed = storage.value.origin, new
    new, also = put(new, storage.value, steps)
    seen = seen and also
    if base.apart and new is not placed:
        new.origin = None  # not cut by what is put in their way: they pass by it
    if before is not None and before.node is None and before.of is not storage.leaf:
        before = None  # of a tensor apart, which collects its gradients whatever the memory says
    untold = base.apart or not context.grad_enabled
    others = [leaf for leaf in (before, storage.leaf) if leaf is not None and leaf.of is not base.leaf]
    if base.apart and new is written and others:
        new = graph.fresh(new, where)  # gradients come to the memory, and not to the view
    if before is not None and new.origin is None and untold:
        new.origin = before.beside()  # gradients pass by what is done without them
    if base.apart and context.level is not None:
        if written in context.level.tangents:
            raise UnsupportedError(
                "a tensor with a tangent is written to a detached one, in forward mode",
                help="write to a copy, made with .detach().clone()",
            ).located("in-place", where)
        context.level.same(storage.value, new)  # and so do tangents
    base.counter.writes += 1
    if base.hidden:
        data_attribute.note_write(storage.value, storage)
    elif base.apart and storage.value.origin is not None:
        storage.value.origin.overwrite(storage.value, written)
    storage.replace(new)
    if told:
        base.version = storage.version
    # Where gradients follow the write, a view of it is read again: gradients for what uses it flow through
    # the memory, as in PyTorch, where a tensor that the view was made of collects them all.
    if seen and not (steps and alias.is_view and new.origin is not None and not base.apart):
        alias.version = storage.version


def _strided_from(steps: Sequence[Step]) -> int | None:
    """Where the ops at the end that only strides can undo begin; None if the last can be undone by itself."""
    first = None
    for i in range(len(steps) - 1, -1, -1):
        if steps[i].row.recodes:
            break
        if steps[i].row.write is None:
            first = i
    return first


def _layout(steps: Sequence[Step], values: Sequence[Value]) -> Layout:
    """How the last of `values` lies in the first, each step leading from one to the next."""
    strides, offset = contiguous(values[0].type.shape), 0
    for step, base, result in zip(steps, values, values[1:], strict=False):
        assert step.row.strides is not None
        place = Place(base.type, result.type, step.which)
        strides, offset = step.row.strides(place, strides, offset, *step.arguments)
    return strides, offset


def _check_no_overlap(shape: Sequence[int], strides: Sequence[int]) -> None:
    """Refuse a write to an expanded tensor, as PyTorch does."""
    shared = any(extent > 1 and stride == 0 for extent, stride in zip(shape, strides, strict=True))
    if shared and 0 not in shape:
        raise ShapeError(
            "cannot write in place: several elements share one memory location (the tensor was expanded)",
            help="clone() it first",
        )
