"""Sparse tensors: which elements are stored, and their values.

A sparse tensor is a `Tensor` without memory of its own. It holds ordinary tensors: the indices, which are
constants, and the values, through which gradients flow. A function that is given one is looked up by its
name in `table.RULES`; without a rule it may apply to the values alone, see `pointwise.py`. `indices.py`
computes with indices on the host, because how many elements a result stores depends on data.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold.base import dtypes, layouts
from tenfold.base.errors import ArgumentError, DTypeError, IndexOutOfRange, TenfoldError, UnsupportedError
from tenfold.base.source import capture
from tenfold.flat.ir import TensorType
from tenfold.sparse import indices as places
from tenfold.sparse.pointwise import is_zero_at_zero
from tenfold.sparse.printing import printed
from tenfold.sparse.table import BY_VALUES, DESCRIBED, RULES, called
from tenfold.tensor import Tensor, leaf
from tenfold.tensor.dispatch import aten, into
from tenfold.tensor.overriding import DisableTorchFunctionSubclass
from tenfold.tensor.subclasses import made, subclassed
from tenfold.trace.graph import NO_DATA, Value

if TYPE_CHECKING:
    Base = Tensor
else:
    Base = subclassed()


class SparseTensor(Base):
    """The base of both kinds: it holds the values."""

    _held: Tensor

    @classmethod
    def __torch_function__(
        cls, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        name = called(func)
        if name in DESCRIBED:
            with DisableTorchFunctionSubclass():
                return func(*args, **(kwargs or {}))
        try:
            return _applied(name, args, kwargs or {})
        except TenfoldError as error:
            raise error.located(name, capture()) from None

    @property
    def requires_grad(self) -> bool:
        return self._held.requires_grad

    @requires_grad.setter
    def requires_grad(self, wanted: bool) -> None:
        self._held.requires_grad_(wanted)

    def requires_grad_(self, requires_grad: bool = True) -> Tensor:
        self._held.requires_grad_(requires_grad)
        return self

    @property
    def grad(self) -> Tensor | None:
        """The gradient, at the elements that this tensor stores."""
        found = self._held.grad
        return None if found is None else self.gradient_of(found)

    @grad.setter
    def grad(self, gradient: Tensor | None) -> None:
        self._held.grad = self.gradient_of_values(gradient)

    @property
    def is_leaf(self) -> bool:
        return self._held.is_leaf

    @property
    def grad_fn(self) -> Any:
        return self._held.grad_fn

    @property  # type: ignore[misc]
    def data(self) -> Tensor:
        return self.with_values(self._held.detach())

    # Of plain tensors several names are one method each of these, which their rules could not tell apart.

    def to_dense(self, dtype: Any = None, *, masked_grad: bool | None = None) -> Tensor:
        return _applied("to_dense", (self, dtype), {})

    def is_coalesced(self) -> bool:
        return self.coordinates()._coalesced

    def pin_memory(self, device: Any = None) -> Tensor:
        return self

    def is_pinned(self) -> bool:
        return False

    is_shared = is_inference = is_distributed = is_pinned

    def is_contiguous(self, memory_format: Any = None) -> bool:
        return False

    def _nnz(self) -> int:
        """How many elements are stored."""
        return self._held.shape[0]

    def _values(self) -> Tensor:
        return self._held

    def coordinates(self) -> CooTensor:
        """The same elements by their coordinates."""
        raise NotImplementedError

    def with_values(self, values: Tensor) -> SparseTensor:
        """The same elements with other values."""
        raise NotImplementedError

    def gradient_of(self, values: Tensor) -> SparseTensor:
        """The gradient of this tensor, from the gradient of its values."""
        return self.with_values(values)

    def gradient_of_values(self, gradient: Any) -> Any:
        """The gradient of the values, from the gradient of this tensor; the inverse of `gradient_of`."""
        return gradient._held if isinstance(gradient, SparseTensor) else gradient

    def parts(self) -> list[tuple[str, Tensor]]:
        """The tensors that this one holds, under the names by which they are printed."""
        raise NotImplementedError

    def on_one_device(self) -> SparseTensor:
        """This tensor, with the indices brought to where the values are."""
        for name, each in list(self.__dict__.items()):
            if isinstance(each, Tensor) and each.device is not self._held.device:
                self.__dict__[name] = each.to(self._held.device)
        return self

    def take(self, other: SparseTensor) -> SparseTensor:
        """Become another tensor of the same layout in place, and keep the dtype."""
        if other.layout != self.layout:
            raise ArgumentError(
                f"cannot write a {other.layout} result into a {self.layout} tensor",
                help="convert the tensors to one layout first",
            )
        if not dtypes.can_cast(other.dtype, self.dtype):
            raise DTypeError(
                f"cannot write a result of {other.dtype.name} into a tensor of {self.dtype.name}",
                help="use the op that returns a new tensor, or convert first",
            )
        if other.dtype is not self.dtype:
            other = other.with_values(other._held.to(self.dtype))
        self.__dict__.update(other.__dict__)
        self._value = other._value
        return self

    def __repr__(self) -> str:
        return printed(self.parts(), self, in_one_line=isinstance(self, CompressedTensor))

    def __deepcopy__(self, memo: Any) -> Any:
        copied = object.__new__(type(self))
        Tensor.__init__(copied, self._value)
        copied.__dict__.update({name: copy.deepcopy(each, memo) for name, each in self.__dict__.items()})
        return memo.setdefault(id(self), copied)

    def __bool__(self) -> bool:
        return bool(self.item())

    def __float__(self) -> float:
        return float(self.item())

    def __int__(self) -> int:
        return int(self.item())


class CooTensor(SparseTensor):
    """Elements by their coordinates. The first dimensions are sparse; each value may be a dense block."""

    is_sparse = True
    layout = layouts.sparse_coo
    _where: Tensor
    _coalesced: bool

    def coordinates(self) -> CooTensor:
        return self

    def with_values(self, values: Tensor) -> CooTensor:
        shape = (*self.shape[: self.sparse_rank], *values.shape[1:])
        return coo(self._where, values, shape, self._coalesced)

    def gradient_of(self, values: Tensor) -> CooTensor:
        """An element stored in several parts is their sum, so each part has the gradient of the element."""
        where, group = self._groups()
        if group is None:
            return self.with_values(values)
        first = np.unique(group, return_index=True)[1]
        device = self._held.device
        return coo(leaf(where, device), values[leaf(first, device)], self.shape, True)

    def gradient_of_values(self, gradient: Any) -> Any:
        if not isinstance(gradient, CooTensor):
            return super().gradient_of_values(gradient)
        where, group = self._groups()
        gradient = gradient.merged()
        if group is None or gradient._where.shape[1] != where.shape[1]:
            return gradient._held
        return gradient._held[leaf(group, self._held.device)]

    def parts(self) -> list[tuple[str, Tensor]]:
        return [("indices", self._where), ("values", self._held)]

    def _indices(self) -> Tensor:
        return self._where

    @property
    def sparse_rank(self) -> int:
        return self._where._value.type.shape[0]

    @property
    def rows(self) -> tuple[Tensor, ...]:
        """The coordinates along each sparse dimension."""
        return self._where.unbind(0)

    def merged(self) -> CooTensor:
        """The same tensor with each element stored once, in the order of its coordinates."""
        if self._coalesced:
            return self
        where, group = self._groups()
        if group is None:
            return coo(self._where, self._held, self.shape, True)
        sums = self._held.new_zeros((where.shape[1], *self._held.shape[1:]))
        values = aten("index_add")(sums, 0, leaf(group, self._held.device), self._held)
        return coo(leaf(where, self._held.device), values, self.shape, True)

    def _groups(self) -> tuple[np.ndarray, np.ndarray | None]:
        """The coordinates of the elements in order; and for each part its element, or None if each element is
        stored once and in order."""
        if self._coalesced:
            return self._where.numpy(), None
        return places.merged(self._where.numpy(), self.shape[: self.sparse_rank])

    def __reduce_ex__(self, protocol: Any) -> Any:
        return coo, (self._where, self._held, tuple(self.shape), self._coalesced)


class CompressedTensor(SparseTensor):
    """A matrix whose elements stand row by row (CSR) or column by column (CSC): `_starts` says where each row
    begins, `_others` are the columns of the elements."""

    is_sparse = False
    _starts: Tensor
    _others: Tensor
    _by_rows: bool

    @property
    def is_sparse_csr(self) -> bool:  # type: ignore[override]
        return self._by_rows

    @property
    def layout(self) -> str:
        return layouts.sparse_csr if self._by_rows else layouts.sparse_csc

    def with_values(self, values: Tensor) -> CompressedTensor:
        return compressed(self._starts, self._others, values, self.shape, self._by_rows)

    def parts(self) -> list[tuple[str, Tensor]]:
        names = ("crow_indices", "col_indices") if self._by_rows else ("ccol_indices", "row_indices")
        return [(names[0], self._starts), (names[1], self._others), ("values", self._held)]

    def turned(self) -> CompressedTensor:
        """The transpose, which has the same parts."""
        return compressed(self._starts, self._others, self._held, self.shape[::-1], not self._by_rows)

    def coordinates(self) -> CooTensor:
        others = self._others.numpy()
        lines = places.expanded(self._starts.numpy())
        where = (lines, others) if self._by_rows else (others, lines)
        stacked = places.stacked(where)
        coalesced = self._by_rows and places.in_order(stacked, self.shape)
        return coo(leaf(stacked, self._held.device), self._held, self.shape, coalesced)

    def __reduce_ex__(self, protocol: Any) -> Any:
        return compressed, (self._starts, self._others, self._held, tuple(self.shape), self._by_rows)


def coo(where: Tensor, values: Tensor, shape: Sequence[int], coalesced: bool = False) -> CooTensor:
    """A tensor of coordinates, which are not checked, and values."""
    new: CooTensor = _wrapping(CooTensor, values, shape)
    new._where, new._held, new._coalesced = where, values, coalesced or values.shape[0] < 2
    return new


def compressed(
    starts: Tensor, others: Tensor, values: Tensor, shape: Sequence[int], by_rows: bool
) -> CompressedTensor:
    """A compressed matrix of its three parts, which are not checked."""
    new: CompressedTensor = _wrapping(CompressedTensor, values, shape)
    new._starts, new._others, new._held, new._by_rows = starts, others, values, by_rows
    return new


def compress(matrix: CooTensor, by_rows: bool) -> CompressedTensor:
    """A matrix by its rows, or by its columns."""
    if matrix.ndim < 2:
        raise IndexOutOfRange(
            f"a compressed tensor has two dimensions, not {matrix.ndim}", help="use to_sparse() instead"
        )
    if matrix.ndim != 2 or matrix.sparse_rank != 2:
        raise UnsupportedError(
            f"a compressed tensor has two dimensions, not {matrix.ndim}", help="use to_sparse() instead"
        )
    matrix = matrix.merged()
    where = matrix._where.numpy()
    order, starts, others = places.compressed(where, matrix.shape, 0 if by_rows else 1)
    device = matrix.device
    values = matrix._held if by_rows else matrix._held[leaf(order, device)]
    return compressed(leaf(starts, device), leaf(others, device), values, matrix.shape, by_rows)


def _wrapping(cls: type[Any], values: Tensor, shape: Sequence[int]) -> Any:
    """A tensor of a class with a shape and no data."""
    place = values._value.device
    value = Value(TensorType(values.dtype, tuple(map(int, shape))), place, buffer=NO_DATA)
    value.source = capture()
    return made(cls, value)


def _applied(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The result of a name's rule, written into `out=` if that is given, or in place if the name says so."""
    options = dict(kwargs)
    out = options.pop("out", None)
    if not args and "input" in options:
        args = (options.pop("input"),)
    if out is not None:
        if not any(_has_sparse(each) for each in (*args, *options.values())):
            raise ArgumentError(f"out= of layout {out.layout} cannot hold a dense result")
        return _written(out, _applied(name, args, options))
    if name not in RULES and args and name.endswith("_") and not name.startswith("_"):
        result = _by_rule(name[:-1], args, options)
        if isinstance(args[0], SparseTensor) and isinstance(result, SparseTensor):
            if tuple(result.shape) != tuple(args[0].shape):
                raise ArgumentError(f"cannot write {list(result.shape)} into {list(args[0].shape)} in place")
            return args[0].take(result)
    return _by_rule(name, args, options)


def _by_rule(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What the rule of a name gives. Compressed tensors are passed as coordinates, except to rules that take
    them; the result has the layout of the first sparse argument."""
    found = RULES.get(name)
    if found is None:
        return _on_values(name, args, kwargs)
    if name in BY_VALUES:
        return found(*args, **kwargs)
    given = next((each for each in (*args, *kwargs.values()) if isinstance(each, SparseTensor)), None)
    named = {key: _as_coordinates(each) for key, each in kwargs.items()}
    result = found(*[_as_coordinates(arg) for arg in args], **named)
    if isinstance(given, CompressedTensor) and isinstance(result, CooTensor) and result.ndim == 2:
        return compress(result, given._by_rows)
    return result


def _on_values(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> SparseTensor:
    """A function without a rule, of the stored elements alone, if that is the same."""
    given = args[0] if args else None
    if not isinstance(given, SparseTensor) or not is_zero_at_zero(
        name, given._held, tuple(given.shape), args[1:], kwargs
    ):
        raise UnsupportedError(f"{name} takes no sparse tensors", help="call to_dense() on them first")
    whole = given.merged() if isinstance(given, CooTensor) else given
    return whole.with_values(aten(name)(whole._held, *args[1:], **kwargs))


def _written(out: Any, result: Any) -> Any:
    """Put a result into the tensor given as `out=`, which takes its shape."""
    if isinstance(out, SparseTensor) and isinstance(result, SparseTensor):
        return out.take(result)
    if isinstance(out, SparseTensor) or isinstance(result, SparseTensor):
        given, found = (getattr(each, "layout", type(each).__name__) for each in (out, result))
        raise ArgumentError(
            f"out= of layout {given} cannot hold a {found} result", help="use an out= of the same layout"
        )
    return into(out, result, casts=True)


def _has_sparse(argument: Any) -> bool:
    listed = argument if isinstance(argument, (list, tuple)) else [argument]
    return any(isinstance(each, SparseTensor) for each in listed)


def _as_coordinates(argument: Any) -> Any:
    return argument.coordinates() if isinstance(argument, CompressedTensor) else argument
