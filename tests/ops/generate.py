"""Samples for the rows of the op table: calls worth comparing, given by the row or made from its schema.

A sample is an `S` whose tensors are `T`s: shapes and, where it matters, dtypes and ranges. `bind` lays it out
along the row's schema; `array` draws the elements, the same ones each time for a row, sample and dtype.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterator
from typing import Any

import numpy as np

from tenfold.base import dtypes
from tenfold.base.dtypes import BY_NAME, DType
from tenfold.ops.samples import Matrices, S, T
from tenfold.ops.schema import MISSING, Argument, Type
from tenfold.ops.table import PLACEMENT, Row

# Shapes for rows of one tensor, and for rows of several: these broadcast, both ways.
SINGLE = [(3, 4), (), (0, 3), (5,), (2, 3, 4)]
SEVERAL = [
    [(3, 4), (3, 4)],
    [(), ()],
    [(0, 3), (0, 3)],
    [(3, 4), (4,)],
    [(1, 4), (3, 1)],
    [(3, 4), ()],
    [(), (3, 4)],
    [(3, 1), (2, 3, 4)],
]
# Second operands of another dtype, for rows that promote: with dimensions, and without.
MIXED = [((3, 4), "int32"), ((3, 4), "float16"), ((), "int64"), ((), "float64")]


class Edges(T):
    """A tensor of the values where mistakes live: zeros of both signs, infinities, NaN, the dtype's limits.

    Two of shape (19, 19), one of them `down`, meet in every pair. They leave out what C does not define for a
    pair (the lowest integer divided by -1) and the smallest float, whose quotients PyTorch's own code paths
    round differently. They are not broadcast: XLA multiplies by the reciprocal of a divisor that is.
    """

    __slots__ = ("down",)

    def __init__(self, *shape: int, down: bool = False):
        super().__init__(*shape)
        self.down = down

    def __repr__(self) -> str:
        return f"Edges{self.shape}"


def samples(row: Row) -> list[S]:
    """All samples of a row: its own, if it has any, or those that its schema's types suggest.

    Overloads may share one list; each takes the samples that fit its schema.
    """
    if row.samples is None:
        return list(from_schema(row))
    return [each for each in row.samples() if fits(row, each)]


def fits(row: Row, sample: S) -> bool:
    arguments = row.schema.arguments
    placed = dict(zip([a.name for a in arguments], sample.args))
    named = {**placed, **sample.kwargs}
    if len(sample.args) > len(arguments) or len(named) < len(placed) + len(sample.kwargs):
        return False
    if not set(named) <= {a.name for a in arguments}:
        return False
    return all(
        _is_of(named[a.name], a.type) if a.name in named else a.default is not MISSING for a in arguments
    )


def _is_of(value: Any, type: Type) -> bool:
    """Whether a sample's value is of a schema's type, by kind alone."""
    if value is None:
        return type.optional or type.element_optional
    if isinstance(value, (tuple, list)):
        if not type.is_list:
            return False
        return all(each is None or _is_one_of(each, type.kind) for each in value)
    return (not type.is_list or (type.kind == "int" and type.list_size != -1)) and _is_one_of(
        value, type.kind
    )


def _is_one_of(value: Any, kind: str) -> bool:
    if kind == "Tensor":
        return isinstance(value, T)
    if isinstance(value, T):
        return False
    number = isinstance(value, (int, float, complex))
    if kind in ("Scalar", "complex"):
        return number
    if kind == "float":
        return number and not isinstance(value, complex)
    if kind in ("int", "bool"):
        return isinstance(value, int) and isinstance(value, bool) == (kind == "bool")
    return not number


def for_dtype(row: Row, dtype: DType) -> list[tuple[int, S]]:
    """The samples to run with this dtype, numbered: all for float32 and int64, a third for each other dtype.

    Which third turns with the dtype: every sample meets several dtypes and every dtype several samples.
    """
    numbered = []
    for i, each in enumerate(samples(row)):
        given = each if dtype is dtypes.float32 or depends(each) else with_dtype(row, each, dtype)
        if given is not None:
            numbered.append((i, given))
    if dtype in (dtypes.float32, dtypes.int64):
        return numbered
    turn = dtypes.ALL.index(dtype)
    return [(i, each) for i, each in numbered if i == 0 or (i + turn) % 3 == 0]


def depends(value: Any) -> bool:
    """Whether a sample has a tensor of the dtype under test."""
    if isinstance(value, S):
        return depends(value.args) or depends(tuple(value.kwargs.values()))
    if isinstance(value, (tuple, list)):
        return any(depends(each) for each in value)
    return isinstance(value, T) and value.dtype is None


def with_dtype(row: Row, sample: S, dtype: DType) -> S | None:
    """A sample without such a tensor, told to make its result of this dtype; None if it cannot be told."""
    names = [a.name for a in row.schema.arguments]
    if "dtype" not in names or "dtype" in sample.kwargs or len(sample.args) > names.index("dtype"):
        return None
    return S(*sample.args, **sample.kwargs, dtype=dtype)


# From a schema


def from_schema(row: Row) -> Iterator[S]:
    arguments = [a for a in row.schema.arguments if a.name not in PLACEMENT]
    required = [a for a in arguments if a.default is MISSING]
    count = sum(a.type.kind == "Tensor" and not a.type.is_list for a in required)

    def call(tensors: list[T], changed: Argument | None = None, value: Any = None) -> S:
        """The first choice for every required argument, but for one."""
        remaining = iter(tensors)
        positional: list[Any] = []
        keywords: dict[str, Any] = {}
        for a in required:
            if a.type.kind == "Tensor" and not a.type.is_list:
                given = next(remaining)
            else:
                given = value if a is changed else choices(row, a)[0]
            if a.keyword_only:
                keywords[a.name] = given
            else:
                positional.append(given)
        if changed is not None and changed not in required:
            keywords[changed.name] = value
        return S(*positional, **keywords)

    def of(shape: tuple[int, ...]) -> list[T]:
        return [T(*shape) for _ in range(count)]

    if count == 1:
        for shape in SINGLE:
            yield call(of(shape))
        yield call([Edges(19)])
    elif count > 1:
        for first, second in SEVERAL:
            yield call([T(*(second if i % 2 else first)) for i in range(count)])
        if row.promote:
            for shape, other in MIXED:
                yield call([T(3, 4), *(T(*shape, dtype=other) for _ in range(count - 1))])
        if count == 2:
            yield call([Edges(19, 19), Edges(19, 19, down=True)])
    else:
        yield call([])
    for a in arguments:
        if a.type.kind != "Tensor" or a.type.is_list or a not in required:
            found = choices(row, a)
            for value in found[1:] if a in required else [v for v in found if v != a.default]:
                yield call(of((3, 4)), a, value)


class NeedsSamples(Exception):
    """A row whose schema does not tell what its arguments may be, and which gives no samples of its own."""


def choices(row: Row, a: Argument) -> list[Any]:
    """Values for an argument that is not a single required tensor, by its type and name."""
    kind, name, size = a.type.kind, a.name, a.type.list_size
    if size is not None:
        if kind == "Tensor":
            return [(T(3, 4), T(3, 4))]
        if kind == "int" and "dim" in name:
            return [(0,), (-1,)]
        if kind == "int" and name in ("size", "shape"):
            return [(2, 3), (), (0, 2)]
    elif kind == "Tensor":
        return [T(3, 4)]
    elif kind == "Scalar":
        return [2, -1.5, True]
    elif kind == "int":
        return [0, -1] if "dim" in name else [1, 2]
    elif kind == "float":
        return [0.5, 2.0]
    elif kind == "bool":
        return [True, False]
    elif kind == "ScalarType":
        return [dtypes.float64, dtypes.complex64, dtypes.int32]
    elif kind == "Generator" and a.type.optional:
        return [None]
    if a.default is not MISSING:
        return []
    raise NeedsSamples(f"aten::{row.qualified} needs samples=: its schema does not tell what {a} may be")


# Along a schema, and with elements


def bind(row: Row, sample: S) -> tuple[list[tuple[Argument, Any]], list[tuple[Argument, Any]]]:
    """The positional and the keyword arguments of a sample, each with its place in the schema.

    A sample may write keyword-only arguments in their place. What the schema does not have is passed on.
    """
    by_name = {a.name: a for a in row.schema.arguments}
    placed = list(zip(row.schema.arguments, sample.args))
    positional = [(a, v) for a, v in placed if not a.keyword_only]
    named = [(by_name.get(name, _unknown(name)), value) for name, value in sample.kwargs.items()]
    beyond = [(_unknown(""), value) for value in sample.args[len(placed) :]]
    return positional + beyond, [(a, v) for a, v in placed if a.keyword_only] + named


def _unknown(name: str) -> Argument:
    return Argument(name, Type("Any"))


def seed(row: Row, number: int, dtype: DType) -> np.random.Generator:
    return np.random.default_rng([zlib.crc32(row.qualified.encode()), number, dtypes.ALL.index(dtype)])


def array(tensor: T, under_test: DType, rng: np.random.Generator) -> np.ndarray:
    """A tensor's elements. Arrays of three and more dimensions are not contiguous in memory."""
    dtype = BY_NAME[tensor.dtype] if tensor.dtype else under_test
    if isinstance(tensor, Edges):
        values = edges(dtype, paired=len(tensor.shape) > 1)
        elements = (
            np.broadcast_to(values, tensor.shape).T if tensor.down else np.broadcast_to(values, tensor.shape)
        )
        elements = elements.copy()
    elif isinstance(tensor, Matrices):
        elements = matrices(tensor, dtype, rng)
    else:
        elements = drawn(tensor.shape, dtype, tensor.low, tensor.high, rng)
    return np.asfortranarray(elements) if elements.ndim > 2 else elements


def drawn(
    shape: tuple[int, ...], dtype: DType, low: float | None, high: float | None, rng: np.random.Generator
) -> np.ndarray:
    """Random elements from `low` up to, not including, `high`; by default small ones of both signs."""
    if dtype.kind == "bool":
        only = True if low is not None and low >= 1 else False if high is not None and high <= 1 else None
        return rng.integers(0, 2, shape).astype(bool) if only is None else np.full(shape, only)
    if dtype.kind == "int":
        bottom = int(np.ceil(low)) if low is not None else -9 if high is None else int(high) - 10
        bottom = bottom if dtype.is_signed else max(bottom, 0)
        top = int(np.ceil(high)) if high is not None else bottom + (10 if low is not None else 19)
        return np.asarray(rng.integers(bottom, max(top, bottom + 1), shape)).astype(dtype.numpy)

    def real() -> np.ndarray:
        if low is None and high is None:
            return np.asarray(rng.normal(0, 2, shape))
        bottom = low if low is not None else high - 5  # type: ignore[operator]
        return np.asarray(rng.uniform(bottom, high if high is not None else bottom + 5, shape))

    if dtype.kind == "complex":
        return np.asarray(real() + 1j * real()).astype(dtype.numpy)
    if dtype.itemsize < 4 and low is None and high is None:
        # Quarters: sums and small products of them are exact, so that the order of rounding does not show.
        return np.asarray(np.round(real() * 4) / 4 + 0.0).astype(dtype.numpy)  # without -0.0
    return real().astype(dtype.numpy)


def matrices(tensor: Matrices, dtype: DType, rng: np.random.Generator) -> np.ndarray:
    """Random elements, and a diagonal that outweighs them; times its adjoint for a positive matrix."""
    low, high = (-3, 3) if dtype.kind == "int" else (-1, 1)
    elements = drawn(tensor.shape, dtype, low, high, rng)
    if dtype.kind == "bool":
        return elements
    wide = np.result_type(elements, np.float64) if dtype.itemsize < 4 else elements.dtype
    if tensor.rows is not None:
        rows, columns = math.prod(tensor.shape[: tensor.rows]), math.prod(tensor.shape[tensor.rows :])
        outweighing = 3 * np.eye(rows, columns, dtype=wide).reshape(tensor.shape)
    else:
        outweighing = 3 * np.eye(*tensor.shape[-2:], dtype=wide)
    found = elements.astype(wide) + outweighing
    if tensor.positive:
        found = found @ found.conj().swapaxes(-1, -2)
    return found.astype(dtype.numpy)


def edges(dtype: DType, paired: bool) -> np.ndarray:
    """Nineteen values of a dtype where rules change."""
    if dtype.kind == "bool":
        return np.arange(19) % 2 == 0
    if dtype.kind == "int":
        lowest, highest = int(np.iinfo(dtype.numpy).min), int(np.iinfo(dtype.numpy).max)
        small = [
            0,
            1,
            2,
            3,
            5,
            7,
            8,
            31,
            63,
            100,
            highest,
            highest - 1,
            highest // 2,
            lowest + paired,
            lowest + 2,
        ]
        more = [-1, -2, -3, -7] if dtype.is_signed else [4, 6, 9, 15]
        return np.array(small + more, object).astype(dtype.numpy)
    if dtype.kind == "complex":
        # Where parts are infinite or NaN, PyTorch's own functions do not agree with each other.
        inner = [0, 1, -1, 1j, -1j, 0.5, 2 + 1j, 2 - 1j, -2 + 1j, -2 - 1j]
        outer = [1e-3, 1e-3j, 3, -3, 3j, -3j, 0.1 + 0.2j, 5, 1 + 1j]
        return np.array(inner + outer).astype(dtype.numpy)
    limits = dtypes.finfo(dtype)
    ordinary = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5, -2.5, 1e-3, 10.0, -20.0, 100.0]
    extreme = [limits.max, -limits.max, float("inf"), float("-inf"), float("nan")]
    return np.array([*ordinary, *extreme, 0.25 if paired else limits.smallest_normal]).astype(dtype.numpy)
