"""Rows that make tensors from sizes and numbers, and copies. Sequences of numbers are in `sequences.py`."""

from __future__ import annotations

import math

from tenfold import flat
from tenfold.base import dtypes
from tenfold.base.dtypes import DType
from tenfold.base.errors import DTypeError, ShapeError
from tenfold.ops.numbers import number_in
from tenfold.ops.samples import S, T
from tenfold.ops.table import op

# The keyword arguments of every row that makes a tensor.
MADE = "*, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None"
LIKE = f"{MADE}, MemoryFormat? memory_format=None"


def floating_or_int(dtype: DType) -> DType:
    """The dtype that a late number of this one stands for as a Python number."""
    return dtypes.get_default_dtype() if dtype.is_floating_point else dtypes.int64


def _filled(size: tuple[int, ...], value: flat.Number, dtype: DType) -> flat.Value:
    if any(extent < 0 for extent in size):
        raise ShapeError(f"a tensor cannot have the shape {list(size)}: {min(size)} is negative")
    return flat.full(size, number_in(value, dtype, math.prod(size) == 1), dtype)


_SIZES = lambda: [S((2, 3)), S(()), S((0, 3))]


@op(
    f"full(SymInt[] size, Scalar fill_value, {MADE}) -> Tensor",
    samples=lambda: [S((2, 3), 1.5), S((), 2), S((0, 3), True), S((2,), 3, dtype=dtypes.int8)],
)
def full(size, fill_value, dtype):
    """fill_value in every element of a tensor of this size; the dtype is by default that of fill_value."""
    if dtype is None:
        late = isinstance(fill_value, flat.LateNumber)
        dtype = floating_or_int(fill_value.dtype) if late else dtypes.of_python(fill_value)
    return _filled(size, fill_value, dtype)


@op(f"zeros(SymInt[] size, {MADE}) -> Tensor", samples=_SIZES)
def zeros(size, dtype):
    """0 in every element of a tensor of this size."""
    return _filled(size, 0, dtype or dtypes.get_default_dtype())


@op(f"ones(SymInt[] size, {MADE}) -> Tensor", samples=_SIZES)
def ones(size, dtype):
    """1 in every element of a tensor of this size."""
    return _filled(size, 1, dtype or dtypes.get_default_dtype())


UNSET = "PyTorch leaves whatever the memory held; here it is zeros"


@op(f"empty.memory_format(SymInt[] size, {LIKE}) -> Tensor", samples=_SIZES, differs=UNSET)
def empty(size, dtype):
    """A tensor of this size whose elements mean nothing: they are 0."""
    return zeros(size, dtype)


@op(f"full_like(Tensor self, Scalar fill_value, {LIKE}) -> Tensor", method=False, differentiable=False)
def full_like(x, fill_value, dtype):
    """fill_value in every element of a tensor like self in shape and, unless another is given, dtype."""
    return _filled(x.shape, fill_value, dtype or x.dtype)


@op(f"zeros_like(Tensor self, {LIKE}) -> Tensor", method=False, differentiable=False)
def zeros_like(x, dtype):
    """0 in every element of a tensor like self in shape and, unless another is given, dtype."""
    return full_like(x, 0, dtype)


@op(f"ones_like(Tensor self, {LIKE}) -> Tensor", method=False, differentiable=False)
def ones_like(x, dtype):
    """1 in every element of a tensor like self in shape and, unless another is given, dtype."""
    return full_like(x, 1, dtype)


@op(f"empty_like(Tensor self, {LIKE}) -> Tensor", method=False, differentiable=False, differs=UNSET)
def empty_like(x, dtype):
    """A tensor like self in shape and dtype whose elements mean nothing: they are 0."""
    return full_like(x, 0, dtype)


_NEW = lambda: [S(T(2), (2, 3)), S(T(3, 4), ()), S(T(0), (0, 2), dtype=dtypes.int16)]


@op(
    f"new_full(Tensor self, SymInt[] size, Scalar fill_value, {MADE}) -> Tensor",
    function=False,
    differentiable=False,
    samples=lambda: [S(T(2), (2, 3), 1), S(T(3, 4), (), True), S(T(0), (0, 2), 1.5, dtype=dtypes.float64)],
)
def new_full(x, size, fill_value, dtype):
    """fill_value in every element of a tensor of this size, of self's dtype unless another is given."""
    return _filled(size, fill_value, dtype or x.dtype)


@op(
    f"new_zeros(Tensor self, SymInt[] size, {MADE}) -> Tensor",
    function=False,
    differentiable=False,
    samples=_NEW,
)
def new_zeros(x, size, dtype):
    """0 in every element of a tensor of this size, of self's dtype unless another is given."""
    return new_full(x, size, 0, dtype)


@op(
    f"new_ones(Tensor self, SymInt[] size, {MADE}) -> Tensor",
    function=False,
    differentiable=False,
    samples=_NEW,
)
def new_ones(x, size, dtype):
    """1 in every element of a tensor of this size, of self's dtype unless another is given."""
    return new_full(x, size, 1, dtype)


@op(
    f"new_empty(Tensor self, SymInt[] size, {MADE}) -> Tensor",
    function=False,
    differentiable=False,
    samples=_NEW,
    differs=UNSET,
)
def new_empty(x, size, dtype):
    """A tensor of this size and self's dtype whose elements mean nothing: they are 0."""
    return new_full(x, size, 0, dtype)


@op(f"scalar_tensor(Scalar s, {MADE}) -> Tensor", samples=lambda: [S(2), S(1.5), S(3, dtype=dtypes.int16)])
def scalar_tensor(s, dtype):
    """The number s as a zero-dimensional tensor, of the default dtype unless another is given."""
    return _filled((), s, dtype or dtypes.get_default_dtype())


@op("clone(Tensor self, *, MemoryFormat? memory_format=None) -> Tensor", linear=True)
def clone(x):
    """self, copied."""
    return x


@op(
    "_to_copy(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, "
    "bool? pin_memory=None, bool non_blocking=False, MemoryFormat? memory_format=None) -> Tensor",
    function=False,
    method=False,
)
def _to_copy(x, dtype):
    """self converted to dtype, copied."""
    return flat.convert(x, dtype or x.dtype)


# Matrices


@op(f"eye(SymInt n, {MADE}) -> Tensor", samples=lambda: [S(3), S(0), S(2, dtype=dtypes.bool_)])
def eye(n, dtype):
    """Ones on the diagonal of an n × n matrix, zeros elsewhere."""
    return eye_m(n, n, dtype)


@op(
    f"eye.m(SymInt n, SymInt m, {MADE}) -> Tensor",
    samples=lambda: [S(2, 3), S(3, 0), S(4, 2, dtype=dtypes.int8)],
)
def eye_m(n, m, dtype):
    """Ones on the diagonal of an n × m matrix, zeros elsewhere."""
    if n < 0 or m < 0:
        raise ShapeError(f"there is no matrix of {n} × {m}")
    diagonal = flat.eq(flat.iota((n, m), 0), flat.iota((n, m), 1))
    return flat.convert(diagonal, dtype or dtypes.get_default_dtype())


def powers(x: flat.Value, count: int) -> flat.Value:
    """1, x, x², … in a new last dimension, by products of what is there already."""
    if count == 0:
        return flat.full((*x.shape, 0), 0, x.dtype)
    found, next_power = flat.full((*x.shape, 1), 1, x.dtype), flat.unsqueeze(x, x.rank)
    while found.shape[-1] < count:
        found = flat.concatenate([found, found * next_power], x.rank)
        next_power = next_power * next_power
    return flat.slice_dim(found, -1, 0, count)


@op(
    "vander(Tensor x, int? N=None, bool increasing=False) -> Tensor",
    method=False,
    samples=lambda: [S(T(3)), S(T(4), 2), S(T(3), 6, True), S(T(3), 0), S(T(2), 1)],
)
def vander(x, N, increasing):
    """Each element's powers in a row, the highest first unless `increasing`."""
    if x.rank != 1:
        raise ShapeError(f"vander takes a vector, not {x.type}")
    count = x.shape[0] if N is None else N
    if count < 0:
        raise ShapeError(f"vander: {count} columns cannot be")
    found = powers(flat.convert(x, dtypes.promote_types(x.dtype, dtypes.int64)), count)
    if count < 2:
        return flat.stop_gradient(found)
    return found if increasing else flat.reverse(found, (1,))


@op(
    "linalg_vander(Tensor x, *, SymInt? N=None) -> Tensor",
    method=False,
    samples=lambda: [S(T(3)), S(T(2, 4), N=3), S(T(2, 3), N=5), S(T(), N=2), S(T())],
)
def linalg_vander(x, N):
    """Each element's powers, from the 0th, in a new last dimension."""
    if x.dtype.kind == "bool" or (x.dtype.is_floating_point and x.dtype.itemsize < 4):
        raise DTypeError(f"vander takes integers, float32, float64 and complex numbers, not {x.dtype.name}")
    if not x.rank:
        x = flat.unsqueeze(x, 0)
    count = x.shape[-1] if N is None else N
    if count <= 1:
        raise ShapeError(f"vander: {count} columns are too few", help="N is at least 2")
    return powers(flat.convert(x, dtypes.int64 if x.dtype.kind == "int" else x.dtype), count)
