"""What a row says about arguments worth testing, where its schema alone does not tell."""

from __future__ import annotations

from typing import Any


class T:
    """A tensor argument: its shape, and where they matter its dtype (else the one under test) and range."""

    __slots__ = ("dtype", "high", "low", "shape")

    def __init__(
        self, *shape: int, dtype: str | None = None, low: float | None = None, high: float | None = None
    ):
        self.shape = shape
        self.dtype = dtype
        self.low = low
        self.high = high

    def __repr__(self) -> str:
        return f"T{self.shape}" if self.dtype is None else f"T{self.shape}:{self.dtype}"


class Matrices(T):
    """Matrices that are not near singular ones; `positive`: Hermitian and positive-definite. With `rows`, one
    matrix, of which so many dimensions together are the rows."""

    __slots__ = ("positive", "rows")

    def __init__(self, *shape: int, positive: bool = False, rows: int | None = None):
        super().__init__(*shape)
        self.positive = positive
        self.rows = rows

    def __repr__(self) -> str:
        return f"Matrices{self.shape}"


# Matrices of every form, and none at all.
MATRICES = [
    Matrices(4, 4),
    Matrices(2, 5, 3),
    Matrices(3, 5),
    T(2, 0, 3, dtype="float32"),
    T(3, 0, dtype="float32"),
    T(0, 3, 2, dtype="float32"),
]


def pivot_rows(count: int, *shape: int) -> T:
    """Rows of a matrix that has `count`, as LAPACK numbers them."""
    return T(*shape, dtype="int32", low=1, high=count + 1)


class S:
    """One call: positional and keyword arguments, tensors among them as `T`."""

    __slots__ = ("args", "kwargs")

    def __init__(self, *args: Any, **kwargs: Any):
        self.args = args
        self.kwargs = kwargs

    def __repr__(self) -> str:
        parts = [repr(arg) for arg in self.args] + [f"{k}={v!r}" for k, v in self.kwargs.items()]
        return f"({', '.join(parts)})"
