"""The lazy Tensor: PyTorch's names and visible semantics over the Trace.

This file defines the tensor and how it is read, written and copied. Its sizes, dtype and layout are in
`questions.py`, Python's protocols in `protocols.py`. Its methods and operators come from the op table,
through `dispatch.py` and `operators.py`; methods that no op provides are in `methods.py`, and creation from
Python data is in `interchange.py`.
"""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from tenfold.base import dtypes
from tenfold.base.devices import Device
from tenfold.base.dtypes import DType
from tenfold.base.errors import (
    ArgumentError,
    DTypeError,
    GradientError,
    NotLent,
    ShapeError,
    TraceError,
    UnknownName,
    ValueNeeded,
    did_you_mean,
)
from tenfold.base.late import on_first_use
from tenfold.base.source import capture
from tenfold.engines import xla
from tenfold.flat.ir import TensorType
from tenfold.flat.strides import contiguous
from tenfold.ops.table import find
from tenfold.runtime import evaluate
from tenfold.tensor import data_attribute, views
from tenfold.tensor.protocols import Protocols
from tenfold.trace import graph
from tenfold.trace.context import context, outside
from tenfold.trace.graph import Holder, Origin, Value
from tenfold.trace.record import Recorder

with on_first_use(__name__):
    import copy


__all__ = ["Tensor", "leaf"]


class Tensor(Protocols):
    """An n-dimensional array that is computed when its value is first needed."""

    __slots__ = ("__dict__", "__weakref__", "_alias", "_leaf", "_shelf", "_value", "_writes")
    __array_priority__ = 1000
    _open_dims: dict[int, Any] = {}  # what `mark_dynamic` and `mark_static` say of its dimensions
    _value: Value
    _alias: views.Alias | None
    _leaf: Origin | None  # of a tensor that requires gradients and was not computed: where they collect
    _shelf: Origin | None  # where its gradient is while it requires none
    _writes: int  # how often it was written before it had a storage

    def __init__(self, value: Any = (), alias: Any = None, *sizes: int):
        """From a value of the trace; or, as PyTorch's own constructor, from sizes or from data."""
        if value.__class__ is not Value:
            value, alias = _constructed(value, alias, sizes), None
        self._value = value
        self._alias = alias
        self._leaf = self._shelf = None
        self._writes = 0

    # Reading and writing the value

    def current(self) -> Value:
        """The trace value of this tensor now."""
        recorder = context.recorder
        if recorder is not None:
            return self._recorded(recorder)
        alias = self._alias
        if alias is not None and alias.version != alias.storage.version:
            self._refresh(alias)
        return self._value

    def _refresh(self, alias: views.Alias) -> None:
        """Read the view from its storage, which was written since, by replaying its ops."""
        version = alias.storage.version  # before reading: another thread may write meanwhile
        before = self._value
        data_attribute.note_reading(before, self, alias.base.counter)
        self._value = self._lying_in(self._marked(views.read(alias, alias.storage.value.made_at)), alias)
        alias.version = version
        if before.origin is not None and self._value.origin is not None:
            before.origin.hand_on(self._value.origin)

    def look_again(self) -> None:
        alias = self._alias
        if alias is not None and not alias.steps:
            self._refresh(alias)

    def _recorded(self, recorder: Recorder) -> Value:
        """The value, read by the function that is being recorded."""
        alias = self._alias
        if alias is not None and alias.version != alias.storage.version:
            if alias.steps:
                inside = recorder.made(alias.storage.value)
                if self._leaf is not None and recorder.through_memory and not inside:
                    # Where the function is called: inside it would be a value that no gradient comes to.
                    with outside(recorder.outer):
                        self.current()
                    return recorder.read(self, self._value)
                recorder.read(alias.storage, alias.storage.value)
            self._refresh(alias)
        if (
            alias is not None
            and alias.steps
            and self._leaf is None
            and recorder.through_memory
            and not recorder.made(self._value)
        ):
            # What is recorded may run again after it has written to this memory. (A leaf is read as itself,
            # or its gradients would not come to it; and so is a view of a leaf that is a view.)
            if self._value.origin is not None and not views.is_told(alias):
                recorder.hold(alias.storage)
                return recorder.read(self, self._value)
            recorder.read(alias.storage, alias.storage.value)
            return self._marked(views.read(alias, alias.storage.value.made_at))
        return recorder.read(self, self._value)

    @property
    def collector(self) -> Origin | None:
        return self._leaf

    @property
    def shelf(self) -> Origin | None:
        return self._shelf

    @property
    def memory(self) -> Holder:
        return self if self._alias is None else self._alias.storage

    def assign(self, value: Value, uniform: bool = False) -> None:
        """Take a new value in place; tensors that share this one's memory see it."""
        before, result = self._value, value
        if value.type is not before.type:
            value = _fitted(value, before.type, capture())
        if context.grad_enabled:
            self.check_write(value, capture())
        if before.origin is not None:
            if value.origin is None and context.grad_enabled:
                value = _flowing(value, before, capture())
            before.origin.overwrite(before, result)
            if value.origin is not None:
                before.origin.hand_on(value.origin)
            if (
                value.origin is None and not context.grad_enabled
            ):  # gradients pass by what is done without them
                value.origin = self._leaf or before.origin.beside()
        recorder = context.recorder
        # While a function is recorded, every tensor that is written has a storage: one place to put back as
        # it was.
        alias = self._alias if recorder is None else self.share()
        root = self if alias is None else alias.storage
        if recorder is not None and alias is not None:
            recorder.write(self, root, not context.grad_enabled or alias.base.apart)
            recorder.read(root, alias.storage.value)
        else:
            evaluate.written(root, before if alias is None else alias.storage.value)
        if alias is not None:
            data_attribute.note_own_write(before, result)
            views.write(alias, value, capture(), uniform)
            value = self._lying_in(value, alias)
        else:
            self._writes += 1
        self._value = value
        if alias is not None and alias.is_view:
            self._hand_on(alias)

    def _hand_on(self, alias: views.Alias) -> None:
        """This view was written. Where its base or it itself retains a gradient, that is the gradient of what
        they hold from now on: the base all of it, the view a part of the base."""
        owner = None if alias.base.owner is None else alias.base.owner()
        of_base = None if owner is None else owner._value.origin
        of_view = self._value.origin
        if owner is not None and of_base is not None and of_base.of.retains:
            owner.current()
            self._refresh(alias)
        elif of_view is not None and of_view.of.retains:
            self._refresh(alias)

    def become(self, value: Value, alias: views.Alias | None) -> None:
        """Take another value, of any shape, at another place in memory: what out=, t_ and .data = do."""
        recorder = context.recorder
        if recorder is not None and not recorder.made(self._value):
            raise TraceError(
                "a compiled function cannot give another shape or memory to a tensor from outside",
                help="return the new tensor instead",
            ).located("compile", capture())
        held = self._alias
        self._value = self._marked(value)
        self._alias = None
        if alias is not None:
            self._alias = alias.taken_by(held, self._leaf)
            self._value = self._lying_in(self._value, self._alias)

    def replace(self, value: Value) -> None:
        """Replace the value without regard to views: for state that a compiled function updates."""
        if self._alias is None:
            if self._leaf is not None:
                value.origin = self._leaf
            self._value = value
        else:
            self._alias.storage.replace(value)

    def share(self) -> views.Alias:
        """This tensor's alias of a storage; the storage is created at first use."""
        if self._alias is None:
            self._alias = views.whole(self._value, self._leaf, self._writes)
        else:
            self.current()
        if self._alias.base.owner is None and not self._alias.is_view:
            self._alias.base.owner = weakref.ref(self)
        return self._alias

    def eval(self) -> Tensor:
        """Compute the value now, and return the tensor."""
        self._computed()
        return self

    def _computed(self) -> Value:
        recorder = context.recorder
        if recorder is not None:
            memory = self._value if self._alias is None else self._alias.storage.value
            if not (recorder.knows(self._value) and recorder.knows(memory)):
                _refuse_value()
            with outside():
                return self._computed()
        value = self.current()
        if value.buffer is None:
            evaluate.evaluate([value])
        return value

    def _host(self) -> np.ndarray:
        """The data as a NumPy array that shares memory where it can; it must not be written."""
        return evaluate.host_array(self._computed())

    def _buffer(self) -> Any:
        """The data as a buffer of the engine's, on the tensor's device."""
        return evaluate.buffer_of(self._computed(), self.device)

    # Memory

    @property
    def data(self) -> Tensor:
        """A tensor with the same memory and no autograd history. Assigning to it makes this tensor share
        another's memory."""
        memory = self.detach()
        alias = memory.share()
        alias.base.hidden, alias.base.counter = True, data_attribute.Counter()
        memory._value = memory._lying_in(memory._value, alias)
        return memory

    @data.setter
    def data(self, other: Tensor) -> None:
        if not isinstance(other, Tensor):
            raise ArgumentError(
                f"the data of a tensor is another tensor, not {type(other).__name__}", help="tensor.fill_(…)"
            ).located("data", capture())
        if self.requires_grad and other.dtype.kind not in ("float", "complex"):
            raise DTypeError(
                f"a tensor that requires gradients cannot hold {other.dtype.name}",
                help="convert with .float() first",
            ).located("data", capture())
        before, other = self.current(), other.data
        self.become(other.current(), other.share())
        data_attribute.note_rebinding(before, self, self.share().base.counter)
        if self._leaf is None and before.origin is not None and before.type is self._value.type:
            # A tensor that was computed keeps its history: gradients pass by what is assigned.
            self._value = graph.fresh(self._value, capture())
            self._value.origin = before.origin.beside()
            alias = self.share()
            alias.base.value, alias.base.version = self._value, alias.storage.version
            self._lying_in(self._value, alias)

    # Gradients: what `autograd.py` computes is kept here

    @property
    def requires_grad(self) -> bool:
        return self._leaf is not None or self.current().origin is not None

    @requires_grad.setter
    def requires_grad(self, wanted: bool) -> None:
        self.requires_grad_(wanted)

    def requires_grad_(self, requires_grad: bool = True) -> Tensor:
        """Set whether this tensor requires gradients."""
        if requires_grad == self.requires_grad:
            return self
        if not requires_grad and self._leaf is None:
            raise GradientError(
                "gradients flow through this tensor because it was computed from others that require them",
                help="use .detach() for a tensor without history",
            ).located("requires_grad_", capture())
        if self.dtype.kind not in ("float", "complex"):
            raise DTypeError(
                f"only tensors of float and complex dtypes have gradients, not {self.dtype.name}",
                help="convert with .float() first",
            ).located("requires_grad_", capture())
        present = self.current()
        # The same place each time, so that a compiled function that collects gradients there may run again.
        if requires_grad:
            self._leaf, self._shelf = self._shelf or Origin(), None
            self._leaf.leaf = weakref.ref(self)
        else:
            self._leaf, self._shelf = None, self._leaf
        value = self._marked(present) if requires_grad else graph.fresh(present, capture())
        self._value = value
        if self._alias is not None and not self._alias.is_view:
            self._alias.base.leaf = self._leaf
        if self._alias is not None and not self._alias.steps:
            self._alias.storage.leaf = self._leaf
            self._alias.storage.value = value
            self._alias.version = self._alias.storage.version
        return self

    def _marked(self, value: Value) -> Value:
        """The value as one that gradients of this tensor flow to, if it is a leaf that collects them."""
        if self._leaf is not None and value.origin is not self._leaf:
            value = graph.fresh(value, capture())
            value.origin = self._leaf
        return value

    def _lying_in(self, value: Value, alias: views.Alias) -> Value:
        """The value as this tensor's alone, if its memory is written by others without telling it."""
        if not alias.base.hidden:
            return value
        if value is alias.storage.value:
            value = graph.fresh(value, capture())
            value.origin = alias.storage.value.origin
        data_attribute.note_place(value, views.Reader(alias), alias.base.counter)
        return value

    def check_write(self, value: Value, where: Any) -> None:
        """Whether this may be written in place where gradients are followed."""
        alias = self._alias
        if self._leaf is not None or (alias is not None and alias.of_leaf_now):
            raise GradientError(
                "a leaf that requires gradients, or a view of one, is written in place",
                help="write inside `with tenfold.no_grad():`, or to a copy",
            ).located("in-place", where)
        if alias is not None and alias.untold and (value.origin is not None or alias.in_doubt):
            raise GradientError(
                "a view that was made inside no_grad is written in place where gradients are followed",
                help="make the view and write to it both inside `with tenfold.no_grad():`, or both outside",
            ).located("in-place", where)

    @property
    def grad(self) -> Tensor | None:
        origin = self._leaf or self._value.origin
        collected = None if origin is None else origin.of.grad
        if collected is None and self._leaf is None:
            shelf = self._shelved()
            return None if shelf is None else shelf.grad
        return collected

    @grad.setter
    def grad(self, gradient: Tensor | None) -> None:
        if gradient is not None:
            if not isinstance(gradient, Tensor):
                raise ArgumentError(f"a gradient is a Tensor or None, not {type(gradient).__name__}").located(
                    "grad", capture()
                )
            if gradient._value.type is not self._value.type or gradient.device is not self.device:
                raise ShapeError(
                    f"the gradient of {self._value.type} on {self.device} cannot be "
                    f"{gradient._value.type} on {gradient.device}"
                ).located("grad", capture())
            if gradient is self:
                raise GradientError("a tensor cannot be its own gradient").located("grad", capture())
        origin = self._leaf or self._value.origin
        if origin is not None:
            origin.of.grad = gradient
        if self._leaf is None:  # it stays when a write in place gives the tensor another origin
            shelf = self._shelved() if gradient is None else self._shelf or Origin()
            if shelf is not None:
                self._shelf = shelf
                shelf.grad = gradient

    _grad = grad  # by this name PyTorch's own code sets it

    @property
    def keeper(self) -> Origin:
        """Where its gradient is kept, if it has one."""
        origin = self._leaf or self.current().origin
        if origin is None:
            origin = self._shelf = self._shelf or Origin()
        return origin

    def _shelved(self) -> Origin | None:
        """Where the gradient is of a tensor that requires none. A function that is recorded depends on there
        being none, too."""
        if self._shelf is None and context.recorder is not None:
            self._shelf = Origin()
        return self._shelf

    @property
    def is_leaf(self) -> bool:
        return self._leaf is not None or self.current().origin is None

    @property
    def _version(self) -> int:
        """How often the memory of this tensor was written in place."""
        return self._writes if self._alias is None else self._alias.storage.version

    def _is_view(self) -> bool:
        return self._alias is not None and self._alias.is_view

    @property
    def _base(self) -> Tensor | None:
        """The tensor that this one is a view of: that itself, or all of its memory once nobody holds it."""
        alias = self._alias
        if alias is None or not alias.is_view:
            return None
        owner = None if alias.base.owner is None else alias.base.owner()
        if owner is not None or alias.base.depth:
            return owner
        stored = alias.storage.value
        found = Tensor(stored, views.Alias(alias.storage, (), contiguous(stored.type.shape), 0, alias.base))
        alias.base.owner = weakref.ref(found)  # so that all views report the same base
        return found

    def data_ptr(self) -> int:
        """The address of the first element, 0 if there is none. A view shares the memory of its base."""
        if 0 in self.shape:
            return 0
        memory = views.memory_of(self._alias)
        if memory is not None:
            return memory.ctypes.data
        root = self if self._alias is None else Tensor(self._alias.storage.value)
        data = root._computed().buffer
        start = data.ctypes.data if type(data) is np.ndarray else xla.pointer(root._buffer())
        return start + self.storage_offset() * self.itemsize

    # To other libraries and processes

    def __array_wrap__(self, array: np.ndarray, context: Any = None, return_scalar: bool = False) -> Tensor:
        """What NumPy computed of tensors is a tensor."""
        return leaf(np.ascontiguousarray(array).reshape(array.shape), Device("cpu"))

    def __dlpack__(
        self, *, stream: Any = None, max_version: Any = None, dl_device: Any = None, copy: Any = None
    ) -> Any:
        if self.requires_grad:
            raise NotLent(
                "a tensor that requires gradients is not lent: the other library could not pass them on",
                help="call detach() first",
            ).located("__dlpack__", capture())
        if stream is not None and type(stream) is not int:
            raise ArgumentError(f"stream is an int or None, not {stream!r}").located("__dlpack__", capture())
        if dl_device is not None and tuple(map(int, dl_device)) != self.__dlpack_device__():
            if copy is False or int(dl_device[0]) != 1:
                raise BufferError(f"a tensor on {self.device} cannot be lent to DLPack's {tuple(dl_device)}")
            return leaf(self._host(), Device("cpu"), self.dtype).__dlpack__(copy=copy)
        lent = leaf(self._host().copy(), self.device, self.dtype) if copy else self
        held = views.memory_of(lent._alias)
        if held is None:
            held = lent._computed().buffer
        if type(held) is np.ndarray and held.flags.c_contiguous and held.flags.writeable:
            return xla.lend(held)
        return xla.to_dlpack(lent._buffer())

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        # Sharing of memory between tensors does not travel: each is pickled as it looks.
        host = self._host()
        state = (type(self), host.tobytes(), self.dtype, tuple(self.shape), self.device, self.requires_grad)
        return _unpickle, state, vars(self) or None

    def __copy__(self) -> Tensor:
        alias = self.share()
        copy = object.__new__(type(self))  # a class of a program's own may be called in another way
        Tensor.__init__(copy, self.current(), alias.copy(alias.base))
        vars(copy).update(vars(self))
        return copy

    def __deepcopy__(self, memo: dict[int, Any]) -> Tensor:
        if self._leaf is None and self.requires_grad:
            raise GradientError(
                "a tensor computed from others that require gradients cannot be copied with its history",
                help="use .detach() or .clone()",
            ).located("deepcopy", capture())
        clone = object.__new__(type(self))
        Tensor.__init__(clone, graph.fresh(self.current(), capture()))
        if self._alias is not None and context.recorder is None:
            old = self._alias.storage  # views copied together share their memory again
            storage = memo.setdefault(id(old), views.Storage(graph.fresh(old.value, capture())))
            clone._alias = views.Alias(storage, self._alias.steps, self._alias.strides, self._alias.offset)
        if clone.requires_grad != self.requires_grad:
            clone.requires_grad_(self.requires_grad)
        memo[id(self)] = clone
        clone.grad = copy.deepcopy(self.grad, memo)
        vars(clone).update(copy.deepcopy(vars(self), memo))
        return clone

    if TYPE_CHECKING:  # what the table adds; see dispatch.py
        T: Tensor
        mT: Tensor
        real: Tensor
        imag: Tensor

        def __add__(self, other: Any) -> Tensor: ...
        def __radd__(self, other: Any) -> Tensor: ...
        def __sub__(self, other: Any) -> Tensor: ...
        def __rsub__(self, other: Any) -> Tensor: ...
        def __mul__(self, other: Any) -> Tensor: ...
        def __rmul__(self, other: Any) -> Tensor: ...
        def __truediv__(self, other: Any) -> Tensor: ...
        def __rtruediv__(self, other: Any) -> Tensor: ...
        def __floordiv__(self, other: Any) -> Tensor: ...
        def __mod__(self, other: Any) -> Tensor: ...
        def __pow__(self, other: Any) -> Tensor: ...
        def __matmul__(self, other: Any) -> Tensor: ...
        def __and__(self, other: Any) -> Tensor: ...
        def __or__(self, other: Any) -> Tensor: ...
        def __xor__(self, other: Any) -> Tensor: ...
        def __invert__(self) -> Tensor: ...
        def __neg__(self) -> Tensor: ...
        def __abs__(self) -> Tensor: ...
        def __eq__(self, other: Any) -> Tensor: ...  # type: ignore[override]
        def __ne__(self, other: Any) -> Tensor: ...  # type: ignore[override]
        def __lt__(self, other: Any) -> Tensor: ...
        def __le__(self, other: Any) -> Tensor: ...
        def __gt__(self, other: Any) -> Tensor: ...
        def __ge__(self, other: Any) -> Tensor: ...
        def __getitem__(self, index: Any) -> Tensor: ...
        def __setitem__(self, index: Any, value: Any) -> None: ...

    def __getattr__(self, name: str) -> Any:
        known = lambda: [attribute for attribute in dir(type(self)) if not attribute.startswith("_")]
        error = UnknownName(f"a Tensor has no attribute {name!r}", help=lambda: did_you_mean(name, known()))
        raise error.located("", capture())


def leaf(array: np.ndarray, device: Device, dtype: DType | None = None) -> Tensor:
    """A tensor that holds this array's memory."""
    dtype = dtype or dtypes.from_numpy(array.dtype)
    value = Value(TensorType(dtype, array.shape), device.resolved, buffer=array)
    value.source = capture()
    if device.type == "meta":
        value.buffer = graph.NO_DATA
    elif device.type != "cpu":
        value.buffer = xla.put(array, device.resolved)
    return Tensor(value)


def _constructed(first: Any, second: Any, sizes: tuple[int, ...]) -> Value:
    """What `Tensor(2, 3)` and `Tensor([1, 2])` hold: zeros, or the data, in the default dtype."""
    dtype = dtypes.get_default_dtype()
    try:
        if isinstance(first, int):
            array = np.zeros((first,) if second is None else (first, second, *sizes), dtype.numpy)
        else:
            array = np.array(first, np.float64).astype(dtype.numpy)
    except (TypeError, ValueError) as error:
        raise ArgumentError(f"Tensor takes sizes or numbers: {error}", help="use tn.tensor(data)").located(
            "Tensor", capture()
        ) from None
    return leaf(array, Device("cpu"), dtype)._value


def _unpickle(
    kind: type[Tensor], data: bytes, dtype: DType, shape: tuple[int, ...], device: Device, requires_grad: bool
) -> Tensor:
    array = np.frombuffer(bytearray(data), dtype.numpy).reshape(shape)
    tensor = object.__new__(kind)
    Tensor.__init__(tensor, leaf(array, device, dtype)._value)
    return tensor if tensor.requires_grad == requires_grad else tensor.requires_grad_(requires_grad)


def _fitted(value: Value, type: TensorType, where: Any) -> Value:
    """A value about to be written into a tensor of this type: same shape, a dtype that may narrow to it."""
    if value.type.shape != type.shape:
        raise ShapeError(
            f"cannot write {value.type} into {type}: an in-place result must have the tensor's own shape"
        ).located("in-place", where)
    if not dtypes.can_cast(value.type.dtype, type.dtype):
        raise DTypeError(
            f"cannot write a {value.type.dtype.name} result into a {type.dtype.name} tensor",
            help="use the op that returns a new tensor, or convert first",
        ).located("in-place", where)
    return graph.call_op(find("_to_copy"), [value, type.dtype, None, None, None, False, None], where)[0]


def _flowing(value: Value, before: Value, where: Any) -> Value:
    """A value that depends on nothing, written over one that gradients flow to: they still do, all zero."""
    never = graph.call_op(find("full_like"), [value, False, dtypes.bool_, None, None, None, None], where)[0]
    return graph.call_op(find("where.self"), [never, before, value], where)[0]


def _refuse_value() -> NoReturn:
    what = "compile" if context.recorder is None else context.recorder.policy.what
    raise ValueNeeded(
        f"the value of a traced tensor was asked for, but tenfold.{what} records f once, without data",
        help="use tn.where or tn.cond for a choice, tn.while_loop for a loop, or move this decision out of "
        "the " + ("compiled function" if what == "compile" else "function"),
    ).located(what, capture(), [])
