"""Dimensions whose size is open until a program runs: their names, what is demanded of them, and types that
hold them, as `f32[n,3]`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from tenfold.base.dtypes import ALL, DType
from tenfold.base.errors import ArgumentError, FormatError, ShapeError
from tenfold.flat.ir import TensorType

DTYPES = {dtype.short: dtype for dtype in ALL}


class Dim:
    """A dimension of any size from `min` to `max` that is a multiple of `multiple`. Dimensions of one name
    have one size.

        batch = tenfold.Dim("batch", max=64)
        tenfold.export(model, (x,), dynamic={0: {0: batch}})
    """

    __slots__ = ("max", "min", "multiple", "name")

    def __init__(self, name: str, *, min: int = 1, max: int | None = None, multiple: int = 1):
        if not isinstance(name, str) or not name.isidentifier():
            raise ArgumentError(f"Dim: the name of a dimension is an identifier, not {name!r}")
        for what, number in (("min", min), ("max", max), ("multiple", multiple)):
            if not (type(number) is int and number >= 1) and not (what == "max" and number is None):
                raise ArgumentError(f"Dim: {what} of {name} is a positive number, not {number!r}")
        first = -(-min // multiple) * multiple
        if max is not None and first > max:
            demands = f"from {min} to {max}" + (f" and a multiple of {multiple}" if multiple > 1 else "")
            raise ArgumentError(f"Dim: no size of {name} is {demands}: the constraints contradict each other")
        self.name, self.min, self.max, self.multiple = name, first, max, multiple

    def admits(self, size: int) -> bool:
        return self.min <= size <= (size if self.max is None else self.max) and size % self.multiple == 0

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Dim) and repr(self) == repr(other)

    def __hash__(self) -> int:
        return hash(repr(self))

    @property
    def constraints(self) -> dict[str, int | None]:
        """The arguments that it was made with, its name aside."""
        return {"min": self.min, "max": self.max, "multiple": self.multiple}

    @property
    def demands(self) -> str:
        """What is demanded of its size, in words."""
        words = f"at least {self.min}" if self.max is None else f"from {self.min} to {self.max}"
        return words + (f" and a multiple of {self.multiple}" if self.multiple > 1 else "")

    def __repr__(self) -> str:
        options = [f"min={self.min}"] if self.min > 1 else []
        options += [f"max={self.max}"] if self.max is not None else []
        options += [f"multiple={self.multiple}"] if self.multiple > 1 else []
        return f"Dim({', '.join([repr(self.name), *options])})"


class SymbolicType:
    """A dtype and a shape some of whose extents are names; of results they may be formulas, or "?"."""

    __slots__ = ("dtype", "shape")

    def __init__(self, dtype: DType, shape: Sequence[int | str]):
        self.dtype = dtype
        self.shape = tuple(shape)

    @property
    def rank(self) -> int:
        return len(self.shape)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SymbolicType) and str(self) == str(other)

    def __hash__(self) -> int:
        return hash(str(self))

    def __repr__(self) -> str:
        return f"{self.dtype.short}[{','.join(map(str, self.shape))}]"


def read_type(text: str) -> SymbolicType:
    """A type from its text, `f32[n,3]`."""
    match = re.fullmatch(r"(\w+)\[(.*)\]", text)
    if match is None or match.group(1) not in DTYPES:
        raise FormatError(f"{text!r} is no type of a tensor")
    extents = match.group(2).split(",") if match.group(2) else []
    return SymbolicType(DTYPES[match.group(1)], [int(e) if e.isdigit() else e for e in extents])


def check(
    expected: Sequence[SymbolicType], given: Sequence[TensorType], dimensions: Mapping[str, Dim]
) -> dict[str, int]:
    """Refuse tensors that a module does not take; else the size of each named dimension."""
    sizes: dict[str, int] = {}
    first: dict[str, int] = {}
    for i, (wanted, found) in enumerate(zip(expected, given, strict=True)):
        if wanted.dtype is not found.dtype or wanted.rank != found.rank:
            raise ShapeError(f"argument {i} of the module is {wanted}, not {found}")
        for extent, size in zip(wanted.shape, found.shape):
            if isinstance(extent, int):
                if extent != size:
                    raise ShapeError(f"argument {i} of the module is {wanted}, not {found}")
                continue
            if sizes.setdefault(extent, size) != size:
                raise ShapeError(f"{extent} is {sizes[extent]} in argument {first[extent]} and {size} in {i}")
            first.setdefault(extent, i)
            if extent in dimensions and not dimensions[extent].admits(size):
                raise ShapeError(
                    f"{extent} must be {dimensions[extent].demands}, not {size} (argument {i})",
                    help=f"for other sizes export it again, with dynamic's Dim({extent!r}, min=…, max=…)",
                )
    return sizes
