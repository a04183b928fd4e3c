"""Types some of whose dimensions are open, as `f32[n,3]`, and whether tensors are of them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from tenfold.base.dim import Dim
from tenfold.base.dtypes import ALL, DType
from tenfold.base.errors import FormatError, ShapeError
from tenfold.flat.ir import TensorType

MAX_DIGITS = 19  # of an extent
DTYPES = {dtype.short: dtype for dtype in ALL}


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
    extents = match.group(2).split(",") if match and match.group(2) else []
    digits = max([len(extent) for extent in extents if extent.isdecimal()], default=0)
    if match is None or match.group(1) not in DTYPES or digits > MAX_DIGITS:
        raise FormatError(f"{text[:100]!r} is no type of a tensor")
    return SymbolicType(DTYPES[match.group(1)], [int(e) if e.isdecimal() else e for e in extents])


def check(
    expected: Sequence[SymbolicType], types: Sequence[TensorType], dimensions: Mapping[str, Dim]
) -> dict[str, int]:
    """Refuse tensors that a module does not take; else the size of each named dimension."""
    sizes: dict[str, int] = {}
    first: dict[str, int] = {}
    for i, (wanted, actual) in enumerate(zip(expected, types, strict=True)):
        if wanted.dtype is not actual.dtype or wanted.rank != actual.rank:
            raise ShapeError(f"argument {i} of the module is {wanted}, not {actual}")
        for extent, size in zip(wanted.shape, actual.shape):
            if isinstance(extent, int):
                if extent != size:
                    raise ShapeError(f"argument {i} of the module is {wanted}, not {actual}")
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
