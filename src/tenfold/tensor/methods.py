"""Methods of Tensor that are no ATen op: Python functions applied to elements, storage that is resized or
taken over, and questions about memory whose answer is always the same here."""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import numpy as np

from tenfold.base.devices import Device
from tenfold.base.dtypes import float32
from tenfold.base.errors import ArgumentError, GradientError, ShapeError, SizeOutOfRange, located
from tenfold.base.hooks import Noticed, RemovableHandle
from tenfold.base.late import on_first_use
from tenfold.base.size import Size
from tenfold.flat.strides import contiguous
from tenfold.tensor import Tensor, dispatch, leaf
from tenfold.tensor.dispatch import aten
from tenfold.tensor.interchange import tensor
from tenfold.trace.collect import collect

with on_first_use(__name__):
    from tenfold.runtime.stages import stage_text


def _sizes(sizes: tuple[Any, ...]) -> tuple[int, ...]:
    shape = sizes[0] if len(sizes) == 1 and isinstance(sizes[0], (tuple, list)) else sizes
    if not all(isinstance(size, int) and size >= 0 for size in shape):
        raise ShapeError(f"sizes are ints from 0 on, not {tuple(shape)}")
    return tuple(shape)


# Python functions on elements


def _elementwise(self: Tensor, others: Sequence[Tensor], function: Callable[..., Any]) -> Tensor:
    for operand in (self, *others):
        if operand.requires_grad:
            raise GradientError("a Python function on elements has no gradient", help="use .detach() first")
        if operand.device.type != "cpu":
            raise ArgumentError("a Python function runs on the CPU", help="move the tensor with .cpu()")
    arrays = np.broadcast_arrays(*[operand.numpy() for operand in (self, *others)])
    if arrays[0].shape != tuple(self.shape):
        raise ShapeError(f"{tuple(self.shape)} cannot hold elements for {arrays[0].shape}")
    results = [
        function(*[element.item() for element in elements]) for elements in zip(*[a.flat for a in arrays])
    ]
    try:
        array = np.array(results, self.dtype.numpy).reshape(self.shape)
    except (TypeError, ValueError):
        raise ArgumentError(f"the function gives what is no element of {self.current().type}") from None
    self.assign(leaf(array, self.device, self.dtype).current())
    return self


@located
def apply_(self: Tensor, callable: Callable[[Any], Any]) -> Tensor:
    """Replace each element by the result of a Python function of it. This is slow, and only for the CPU."""
    return _elementwise(self, (), callable)


@located
def map_(self: Tensor, tensor: Tensor, callable: Callable[[Any, Any], Any]) -> Tensor:
    """Replace each element by the result of a Python function of it and another tensor's element."""
    return _elementwise(self, (tensor,), callable)


@located
def map2_(self: Tensor, x: Tensor, y: Tensor, callable: Callable[[Any, Any, Any], Any]) -> Tensor:
    """Replace each element by the result of a Python function of it and two other tensors' elements."""
    return _elementwise(self, (x, y), callable)


# Memory


@located
def resize_(self: Tensor, *sizes: Any, memory_format: Any = None) -> Tensor:
    """Resize the tensor, in row-major order, on the same memory. Memory that is too small is replaced by a
    larger one with zeros at its end."""
    dispatch.require_placement("memory_format", memory_format)
    if self.requires_grad:
        raise GradientError("a tensor that requires gradients cannot be resized", help="use reshape")
    shape = _sizes(sizes)
    if math.prod(shape) * self.itemsize >= 1 << 63:
        raise SizeOutOfRange(f"a tensor of {list(shape)} has more bytes than 64 bits count")
    held = math.prod(self.share().storage.value.type.shape)
    needed = self.storage_offset() + math.prod(shape)
    if needed <= held:
        view = self.as_strided(shape, contiguous(shape), self.storage_offset())
        self.become(view._value, view._alias)
        return self
    memory = self.as_strided((held,), (1,), 0)
    grown = aten("cat")([memory, aten("zeros")((needed - held,), dtype=self.dtype, device=self.device)])
    view = grown.as_strided(shape, contiguous(shape), self.storage_offset())
    self.become(view._value, view._alias)
    return self


@located
def resize_as_(self: Tensor, the_template: Tensor, *, memory_format: Any = None) -> Tensor:
    """`resize_` to the sizes of another tensor."""
    return resize_(self, *the_template.shape, memory_format=memory_format)


@located
def resize(self: Tensor, *sizes: Any) -> Tensor:
    """Like `reshape`."""
    shape = _sizes(sizes)
    if math.prod(shape) != self.numel():
        raise ShapeError(f"{tuple(self.shape)} has not as many elements as {shape}", help="use resize_")
    return self.reshape(shape)


@located
def resize_as(self: Tensor, tensor: Tensor) -> Tensor:
    """`reshape` to the sizes of another tensor."""
    return resize(self, *tensor.shape)


@located
def set_(self: Tensor, source: Tensor | None = None, *args: Any, **kwargs: Any) -> Tensor:
    """Make this tensor share the memory of another; without an argument, make it empty."""
    if args or kwargs or not (source is None or isinstance(source, Tensor)):
        raise ArgumentError(
            "takes a Tensor", help="use source.as_strided(size, stride, offset) for a part of it"
        )
    source_tensor = aten("empty")((0,), dtype=self.dtype, device=self.device) if source is None else source
    if source_tensor.dtype is not self.dtype or source_tensor.device is not self.device:
        raise ArgumentError(f"cannot share memory of {source_tensor._value.type} on {source_tensor.device}")
    alias, before = source_tensor.share().copy(), self.current()
    if before.origin is not None:
        before.origin.overwrite(before, source_tensor.current())
    self.become(source_tensor.current(), alias)
    return self


@located
def new(self: Tensor, *args: Any, size: Sequence[int] | None = None) -> Tensor:
    """A tensor with this one's dtype and device: zeros if sizes are given, otherwise the data."""
    args = args if size is None else (Size(size),)
    if not args or isinstance(args[0], (int, Size)):
        shape = args[0] if args and isinstance(args[0], Size) else args or (0,)
        return aten("zeros")(tuple(shape), dtype=self.dtype, device=self.device)
    return tensor(args[0], dtype=self.dtype, device=self.device)


@located
def new_empty_strided(
    self: Tensor,
    size: Sequence[int],
    stride: Sequence[int],
    *,
    dtype: Any = None,
    device: Any = None,
    **more: Any,
) -> Tensor:
    """Like `empty_strided`, with this tensor's dtype and device."""
    return empty_strided(size, stride, dtype=dtype or self.dtype, device=device or self.device, **more)


@located
def empty_strided(
    size: Sequence[int],
    stride: Sequence[int],
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """A tensor of zeros with these strides."""
    dispatch.require_placement("layout", layout)
    dispatch.require_placement("pin_memory", pin_memory)
    if len(size) != len(stride):
        raise ShapeError(f"{len(size)} sizes and {len(stride)} strides")
    needed = 0 if 0 in size else 1 + sum((n - 1) * s for n, s in zip(size, stride, strict=True))
    tensor = aten("zeros")((needed,), dtype=dtype, device=device).as_strided(tuple(size), tuple(stride))
    return tensor.requires_grad_() if requires_grad else tensor


@located
def empty_permuted(size: Sequence[int], physical_layout: Sequence[int], **options: Any) -> Tensor:
    """A tensor of zeros whose dimensions are in this order in memory, the outermost first."""
    if sorted(physical_layout) != list(range(len(size))):
        raise ArgumentError(f"{tuple(physical_layout)} is no order of {len(size)} dimensions")
    tensor = aten("empty")([size[d] for d in physical_layout], **options)
    order = [list(physical_layout).index(d) for d in range(len(size))]
    return tensor.permute(order)


@located
def from_file(
    filename: str,
    shared: bool | None = None,
    size: int = 0,
    *,
    dtype: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """The first `size` elements of a file of raw numbers, read into memory."""
    if shared:
        raise ArgumentError("a tensor cannot write to a file", help="leave shared out")
    kind = aten("empty")((0,), dtype=dtype).dtype
    try:
        array = np.fromfile(filename, kind.numpy, size)
    except OSError as error:
        raise ArgumentError(f"cannot read {filename}: {error.strerror}") from None
    if array.size < size:
        raise ArgumentError(f"{filename} has {array.size} elements, not {size}")
    return tensor(array, dtype=kind, requires_grad=requires_grad)


@located
def is_set_to(self: Tensor, tensor: Tensor) -> bool:
    """Whether both tensors refer to the same elements of the same memory."""
    mine, other = self.share(), tensor.share()
    same = mine.storage is other.storage and mine.strides == other.strides and mine.offset == other.offset
    return same and self.shape == tensor.shape


@located
def dim_order(self: Tensor, ambiguity_check: Any = False) -> tuple[int, ...]:
    """The dimensions from the outermost in memory to the innermost."""
    return tuple(sorted(range(self.ndim), key=lambda d: -self.stride(d)))


class UntypedStorage:
    """The memory behind a tensor, which has an address and a size; or the bytes of a file, from which
    `asarray` makes tensors."""

    def __init__(self, owner: Tensor):
        self._owner = owner
        self.device = owner.device

    @staticmethod
    def from_file(filename: str, shared: bool = False, nbytes: int | None = None) -> UntypedStorage:
        """The bytes of a file, which are read lazily."""
        return FileStorage(np.memmap(filename, np.uint8, "c", shape=None if not nbytes else (nbytes,)))

    def data_ptr(self) -> int:
        return self._owner.data_ptr() - self._owner.storage_offset() * self._owner.itemsize

    def nbytes(self) -> int:
        return math.prod(self._owner.share().storage.value.type.shape) * self._owner.itemsize

    def untyped(self) -> UntypedStorage:
        return self

    size = nbytes
    __len__ = nbytes


class FileStorage(UntypedStorage):
    """The bytes of a file. Writing to tensors made from them does not change the file."""

    def __init__(self, array: np.ndarray):
        self._array = array
        self.device = Device("cpu")

    def data_ptr(self) -> int:
        return self._array.ctypes.data

    def nbytes(self) -> int:
        return self._array.nbytes

    size = nbytes
    __len__ = nbytes

    def __getitem__(self, part: slice) -> FileStorage:
        return FileStorage(self._array[part])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return self._array.view(np.ndarray)


def untyped_storage(self: Tensor) -> UntypedStorage:
    """The memory behind this tensor, as bytes."""
    return UntypedStorage(self)


@located
def lu(A: Tensor, pivot: bool = True, get_infos: bool = False) -> tuple[Tensor, ...]:
    """L and U in one matrix, and the pivots; with `get_infos` also zeros for success. A singular matrix is
    factored, too, which `linalg.lu_factor` refuses."""
    return tuple(aten("linalg_lu_factor_ex")(A, pivot=pivot))[: 3 if get_infos else 2]


# What is always so


def itself(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """Return the tensor itself: it is dense already, and XLA decides whether memory is pinned."""
    return self


def no(self: Tensor, *args: Any) -> bool:
    """False for every tensor."""
    return False


@located
def as_float(self: Tensor) -> Tensor:
    """Convert the tensor to float32; it is not quantized."""
    return aten("_to_copy")(self, dtype=float32)


@located
def no_integers(self: Tensor) -> NoReturn:
    raise ArgumentError("the tensor is not quantized", help="use tenfold.quantize_per_tensor")


@located
def as_subclass(self: Tensor, cls: type[Tensor]) -> Tensor:
    """Make a tensor of another class with the same data."""
    if not (isinstance(cls, type) and issubclass(cls, Tensor)):
        raise ArgumentError("takes a class derived from Tensor")
    seen = aten("alias")(self)
    tensor = object.__new__(cls)
    Tensor.__init__(tensor, seen._value, seen._alias)
    return tensor


@located
def module_load(self: Tensor, other: Tensor, assign: bool = False) -> Tensor:
    """The new value of a module's parameter when `other` is loaded into it."""
    return other.detach() if assign else self.copy_(other).detach()


@located
def register_post_accumulate_grad_hook(self: Tensor, hook: Callable[[Tensor], Any]) -> RemovableHandle:
    """Call `hook(self)` whenever `backward` has added to this leaf's `grad`. It may write to the leaf."""
    if self._leaf is None:
        raise GradientError("only a leaf that requires gradients has them accumulated")
    held = weakref.ref(self)

    def call() -> None:
        owner = held()
        if owner is not None and hook(owner) is not None:
            raise GradientError("a hook that is called after a gradient was accumulated returns None")

    hooks = self._leaf.after = Noticed() if self._leaf.after is None else self._leaf.after
    return RemovableHandle(hooks, call)


@located
def show(self: Tensor, stage: str | None = None, source_lines: bool = False) -> str:
    """The text of the program that computes this tensor; see `tenfold.show`."""
    value = self.current()
    program, _ = collect([value])
    return stage_text(program, value.device, stage, source_lines)


METHODS: dict[str, Callable[..., Any]] = {
    **dict.fromkeys(("to_dense", "pin_memory"), itself),
    "dequantize": as_float, "int_repr": no_integers,
    **dict.fromkeys(("is_pinned", "is_shared", "is_inference", "is_distributed", "is_coalesced"), no),
    "apply_": apply_, "map_": map_, "map2_": map2_, "resize_": resize_, "resize_as_": resize_as_,
    "resize": resize, "resize_as": resize_as, "set_": set_, "new": new,
    "new_empty_strided": new_empty_strided, "is_set_to": is_set_to, "dim_order": dim_order,
    "untyped_storage": untyped_storage, "as_subclass": as_subclass, "lu": lu, "module_load": module_load,
    "const_data_ptr": Tensor.data_ptr,
    "register_post_accumulate_grad_hook": register_post_accumulate_grad_hook,
    "show": show,
}  # fmt: skip


def install() -> None:
    for name, method in METHODS.items():
        setattr(Tensor, name, method)
