"""`x[…]` and `x[…] = …`, as PyTorch has them, and `nonzero` and `one_hot`, whose shapes may depend on data.

An index is taken apart item by item. Integers, slices, None and `…` make views; the tensors, arrays and lists
that remain are one `index` or `index_put` on that view. A mask is evaluated to be read, since the shape of
what it selects depends on data, but in a compiled function its size is open; writing by a mask stays lazy.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np

from tenfold.base import dtypes
from tenfold.base.bounded import BOUND
from tenfold.base.errors import (
    ArgumentError,
    BadIndex,
    DTypeError,
    IndexOutOfRange,
    NumberOutOfRange,
    TenfoldError,
    ValueNeeded,
)
from tenfold.base.source import capture
from tenfold.base.warning import warn
from tenfold.flat.data_ops import array
from tenfold.ops.numbers import number_in, require_width
from tenfold.ops.table import LateRows, OpCall, Row, find
from tenfold.tensor import Tensor, leaf, views
from tenfold.tensor.dispatch import function, invoke
from tenfold.tensor.interchange import as_array
from tenfold.tensor.symbolic import Symbolic, size_of
from tenfold.trace import graph
from tenfold.trace.context import context
from tenfold.trace.graph import NO_DATA, Node, Value

ROWS = LateRows(
    select="select.int", slice="slice.Tensor", unsqueeze="unsqueeze", reshape="reshape",
    narrow="narrow.Tensor", index="index.Tensor", index_put="index_put", masked_fill="masked_fill.Scalar",
    copy="copy", fill="fill.Scalar", nonzero_each="nonzero_numpy",
)  # fmt: skip

BASIC = {int, slice, type(None), type(Ellipsis)}
WHOLE = slice(None)


def getitem(self: Tensor, index: Any) -> Tensor:
    where = capture()
    kind = type(index)
    try:
        if kind is int:
            return _select(self, 0, index, where)
        if kind is slice:
            return _slice(self, 0, index, where)
        view, views = _views(self, index, where)
        if views:
            return invoke(ROWS.index, (view, _indices(views, where)), where)
        return view if view is not self else self.__copy__()
    except TenfoldError as error:
        raise error.located("index", where) from None


def setitem(self: Tensor, index: Any, value: Any) -> None:
    where = capture()
    try:
        view, views = _views(self, index, where)
        value = _value(value, view)
        result = _put(view, views, value, where) if views else _copied(view, value, where)
    except TenfoldError as error:
        raise error.located("index", where) from None
    if result is not view:
        view.assign(result.current(), _agrees(view, value))


def delitem(self: Tensor, index: Any) -> NoReturn:
    raise ArgumentError("elements of a tensor cannot be deleted", help="select those to keep").located(
        "del", capture()
    )


# Taking an index apart


def _views(x: Tensor, index: Any, where: Any) -> tuple[Tensor, dict[int, Tensor]]:
    """The view that the basic items of an index make, and the index tensors and masks for its dimensions."""
    parts = index if type(index) is tuple else _parts(index)
    items = [part if type(part) in BASIC else _item(part, x) for part in parts]
    used = sum([_width(item) for item in items])
    if used > x.ndim:
        raise IndexOutOfRange(
            f"an index of {used} dimensions into {x.current().type}, which has {x.ndim}",
            help=None if x.ndim else "use .item() for the number in a zero-dimensional tensor",
        )
    tensors: dict[int, Tensor] = {}
    view, dim = x, 0
    for item in items:
        if type(item) is int:
            view = _select(view, dim, item, where)
        elif type(item) is slice:
            if item != WHOLE:
                view = _slice(view, dim, item, where)
            dim += 1
        elif item is None:
            view = _view(ROWS.unsqueeze, view, (dim,), where)
            dim += 1
        elif item is Ellipsis:
            dim += x.ndim - used
        elif item.ndim == 0 and item.dtype is not dtypes.bool_:
            narrow = invoke(ROWS.narrow, (view, dim, item, 1), where)
            view = _select(narrow, dim, 0, where)
        else:
            if item.ndim == 0:  # a condition is a mask of a dimension that it adds
                view = _view(ROWS.unsqueeze, view, (dim,), where)
                item = _view(ROWS.unsqueeze, item, (0,), where)
            tensors[dim] = item
            dim += 1 if item.dtype is not dtypes.bool_ else _mask_rank(view, dim, item)
    return view, tensors


def _width(item: Any) -> int:
    """How many dimensions of the tensor an item takes up."""
    if type(item) is int or type(item) is slice:
        return 1
    if item is None or item is Ellipsis:
        return 0
    return item.ndim if item.dtype is dtypes.bool_ else 1


def _mask_rank(view: Tensor, dim: int, mask: Tensor) -> int:
    shape = tuple(view.shape[dim : dim + mask.ndim])
    if shape != tuple(mask.shape):
        raise IndexOutOfRange(
            f"a mask of shape {list(mask.shape)} at dimension {dim} of {view.current().type}",
            help=f"there it must have the shape {list(shape)}",
        )
    return mask.ndim


# Longer lists are arrays of indices, as they were in NumPy when it had at most 32 dimensions.
LONGEST_LIST = 31


def _parts(index: Any) -> Sequence[Any]:
    """The items of an index that is not a tuple: itself, or those of a short list that holds more than
    numbers, which PyTorch takes for a tuple."""
    if (
        isinstance(index, list)
        and len(index) <= LONGEST_LIST
        and any(item is None or item is Ellipsis or isinstance(item, _INDICES) for item in index)
    ):
        warn("a list of lists, slices or tensors as an index is deprecated: use a tuple", UserWarning)
        return tuple(index)
    return (index,)


_INDICES = (Tensor, slice, Sequence, np.ndarray)


def _item(item: Any, x: Tensor) -> Any:
    """An item of an index as an int, a slice, None, …, or a tensor of int64, int32 or bool, where x is."""
    if type(item) is Symbolic:
        item = item.tensor
    if isinstance(item, Tensor):
        index = item if item.device is x.device or item.ndim == 0 else item.to(x.device)
    elif isinstance(item, (bool, np.bool_)):
        index = leaf(np.asarray(bool(item)), x.device)
    elif isinstance(item, (list, tuple, range, np.ndarray)):
        index = leaf(_index_array(item), x.device)
    elif isinstance(item, slice):
        return item
    else:
        try:
            return operator.index(item)
        except TypeError:
            raise BadIndex(
                f"a {type(item).__name__} cannot be an index",
                help="use integers, slices, …, None, and tensors, arrays or lists of integers or bools",
            ) from None
    if index.dtype is dtypes.uint8:
        warn("indexing with uint8 as a mask is deprecated: use bool", DeprecationWarning)
        return index.bool()
    if index.ndim == 0 and index.dtype.kind == "int":
        return index
    if index.dtype not in (dtypes.int64, dtypes.int32, dtypes.bool_):
        raise BadIndex(
            f"a tensor of indices must be int64, int32 or bool, not {index.dtype.name}",
            help="convert it with .long()",
        )
    return index


def _index_array(item: Any) -> np.ndarray:
    try:
        array = np.array(item)
    except (ValueError, TypeError):
        array = np.array(None)
    if array.size == 0 and array.dtype.kind == "f":
        return array.astype(np.int64)
    if array.dtype.kind not in "biu":
        raise BadIndex(
            f"a {type(item).__name__} that is not an array of integers or bools cannot be an index",
            help="convert floats with .astype(int), and give nested lists of equal lengths",
        )
    return array if array.dtype in (np.bool_, np.uint8) else array.astype(np.int64)


class _Seen:
    """The callee of a view op on a type of tensor, and what it added to the last alias."""

    __slots__ = ("callee", "way")

    def __init__(self, callee: OpCall):
        self.callee = callee
        self.way: views.Way | None = None


_seen: dict[Any, _Seen] = {}


def _view(row: Row, x: Tensor, arguments: tuple[Any, ...], where: Any) -> Tensor:
    """`invoke` for a view op. One that was seen before on this type of tensor is recorded at once."""
    if context.recorder is None and context.quick:
        value = x.current()
        seen = _seen.get((row, value.type, arguments))
        if seen is not None and value.buffer is not NO_DATA:
            node = Node(seen.callee, (value,), where)
            result = Value(seen.callee.result_types[0], value.device, node)
            if value.origin is not None:
                graph.track(node, (result,))
            alias, way = x.share(), seen.way
            if way is None or way.offset != alias.offset or way.strides != alias.strides:
                way = seen.way = views.way_on(alias, row, value.type, arguments, result)
            return Tensor(result, views.extend(alias, row, value, way))
    view = invoke(row, (x, *arguments), where)
    node = view._value.node
    if (
        context.recorder is None
        and node is not None
        and isinstance(node.callee, OpCall)
        and node.callee.row is row
    ):
        if len(_seen) > BOUND:
            _seen.clear()
        _seen[row, x._value.type, arguments] = _Seen(node.callee)
    return view


def _select(x: Tensor, dim: int, index: int, where: Any) -> Tensor:
    return _view(ROWS.select, x, (dim, index), where)


def _slice(x: Tensor, dim: int, item: slice, where: Any) -> Tensor:
    start, stop, step = item.start, item.stop, item.step
    try:
        if start is not None and type(start) is not int:
            start = operator.index(size_of(start))
        if stop is not None and type(stop) is not int:
            stop = operator.index(size_of(stop))
        step = 1 if step is None else operator.index(size_of(step))
    except ValueNeeded:
        raise
    except TypeError:
        raise ArgumentError(f"the slice {item} is not made of integers") from None
    if step < 1:
        raise ArgumentError(f"the step of a slice must be positive, not {step}", help="use flip to reverse")
    try:
        return _view(ROWS.slice, x, (dim, start, stop, step), where)
    except NumberOutOfRange:  # beyond any dimension, where a slice ends as one that leads past its end
        return _view(ROWS.slice, x, (dim, _within(start), _within(stop), _within(step)), where)


def _within(number: int | None) -> int | None:
    return None if number is None else max(-(1 << 63), min(number, (1 << 63) - 1))


def _indices(tensors: dict[int, Tensor], where: Any) -> tuple[Tensor | None, ...]:
    """The index tensors one for each dimension, masks as the places where they are true."""
    indices: list[Tensor | None] = []
    for dim, tensor in tensors.items():
        indices += [None] * (dim - len(indices))
        indices += invoke(ROWS.nonzero_each, (tensor,), where) if tensor.dtype is dtypes.bool_ else (tensor,)
    return tuple(indices)


# Writing


def _value(value: Any, view: Tensor) -> Any:
    """What is assigned, as a tensor or a Python number."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, (Tensor, bool, int, float, complex)):
        require_width("int", value)
        return value
    if isinstance(value, (list, tuple, np.ndarray)):
        if isinstance(value, np.ndarray) and value.dtype.kind == "c" and not view.dtype.is_complex:
            raise DTypeError(
                f"complex numbers do not fit {view.dtype.name}", help="assign the .real part of the array"
            )
        return leaf(as_array(value, view.dtype), view.device, view.dtype)
    raise ArgumentError(
        f"a {type(value).__name__} cannot be assigned to elements of a tensor",
        help="use a number, a tensor, or a list or array of numbers",
    )


def _agrees(view: Tensor, value: Any) -> bool:
    """Whether what is assigned to a view are its own elements, of which several may share memory."""
    return isinstance(value, Tensor) and views.same_elements(view, value)


def _copied(view: Tensor, value: Any, where: Any) -> Tensor:
    if not isinstance(value, Tensor):
        return invoke(ROWS.fill, (view, value), where)
    own, other = view._alias, value._alias
    if own is not None and other is not None and own.storage is other.storage and own.steps == other.steps:
        return view  # `x[i] += y` has already written through its view by the time it assigns that to itself
    return invoke(ROWS.copy, (view, _narrowed(value, view.ndim, where), False), where)


def _put(view: Tensor, tensors: dict[int, Tensor], value: Any, where: Any) -> Tensor:
    ((dim, mask), *others) = tensors.items()
    number = not isinstance(value, Tensor)
    if mask.dtype is dtypes.bool_ and not others:
        if number:
            value = number_in(value, view.dtype, single=True)
            after = view.ndim - dim - mask.ndim
            mask = invoke(ROWS.reshape, (mask, (*mask.shape, *[1] * after)), where) if after else mask
            return invoke(ROWS.masked_fill, (view, mask, value), where)
        indices: tuple[Tensor | None, ...] = (None,) * dim + (mask,)
    else:
        indices = _indices(tensors, where)
    if number:
        value = leaf(array(number_in(value, view.dtype, single=True), view.dtype), view.device, view.dtype)
    return invoke(ROWS.index_put, (view, indices, _narrowed(value, 0, where), False), where)


def _narrowed(value: Tensor, rank: int, where: Any) -> Tensor:
    """A value without the leading dimensions of 1 that it has beyond this rank."""
    shape = tuple(value.shape)
    while len(shape) > rank and shape[0] == 1:
        shape = shape[1:]
    return value if len(shape) == value.ndim else invoke(ROWS.reshape, (value, shape), where)


# Results whose shape depends on data


_nonzero = function("nonzero", lambda: [find("nonzero")])
_one_hot = function("one_hot", lambda: [find("one_hot")])


def nonzero(input: Tensor, *, out: Tensor | None = None, as_tuple: bool = False) -> Any:
    """The coordinates of the nonzero elements, one row for each, or a tuple with one tensor for each
    dimension."""
    if out is not None and as_tuple:
        raise ArgumentError("out= takes one tensor, and as_tuple=True gives several").located(
            "nonzero", capture()
        )
    if out is not None and out.dtype is not dtypes.int64:
        raise DTypeError(f"out= must be int64, not {out.dtype.name}").located("nonzero", capture())
    return invoke(ROWS.nonzero_each, (input,), capture()) if as_tuple else _nonzero(input, out=out)


def one_hot(input: Tensor, num_classes: int = -1) -> Tensor:
    """Turns classes (*) into vectors (*, num_classes) that are 1 at the class and 0 elsewhere

    num_classes=-1 evaluates the input to find the largest class.

        F.one_hot(tn.tensor([0, 2]))  # [[1, 0, 0], [0, 0, 1]]
    """
    if input.dtype is dtypes.int64 and type(num_classes) is int and num_classes == -1:
        if not input.numel():
            raise ArgumentError("an empty tensor does not tell the number of classes").located(
                "one_hot", capture()
            )
        num_classes = input.max()._as_size() + 1
    return _one_hot(input, num_classes)


def install() -> None:
    """Give Tensor these methods."""
    own = {"__getitem__": getitem, "__setitem__": setitem, "__delitem__": delitem, "nonzero": nonzero}
    for name, method in own.items():
        method.__name__ = name
        setattr(Tensor, name, method)
