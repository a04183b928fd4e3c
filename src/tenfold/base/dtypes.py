"""Element types: the dtypes under PyTorch's names, what NumPy, MLIR and the printed IRs call each one, and
PyTorch's rules for combining them. Converting values from one to another is the operators' business."""

from collections.abc import Iterable
from functools import cache
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from tenfold.base import package
from tenfold.base.errors import DTypeError, located
from tenfold.base.late import on_first_use
from tenfold.base.source import capture

with on_first_use(__name__):
    import ml_dtypes

Kind = Literal["bool", "int", "float", "complex"]
Category = Literal["tensor", "scalar", "number"]

_RANK = {"bool": 0, "int": 1, "float": 2, "complex": 3}


class DType:
    """One element type. Each is a single object, so dtypes compare by identity, also after unpickling."""

    __slots__ = (
        "is_complex",
        "is_floating_point",
        "is_signed",
        "itemsize",
        "kind",
        "mlir",
        "name",
        "numpy",
        "short",
    )

    name: str
    short: str
    mlir: str
    numpy: np.dtype[Any]
    kind: Kind
    itemsize: int
    is_floating_point: bool
    is_complex: bool
    is_signed: bool

    def __init__(self, name: str, short: str, mlir: str, numpy: np.dtype[Any] | int, kind: Kind) -> None:
        """`numpy` is what NumPy stores elements as, or their size in bytes if that is a type of ml_dtypes."""
        self.name = name
        self.short = short
        self.mlir = mlir
        if isinstance(numpy, int):
            self.itemsize = numpy
        else:
            self.numpy = numpy
            self.itemsize = numpy.itemsize
        self.kind = kind
        self.is_floating_point = kind == "float"
        self.is_complex = kind == "complex"
        self.is_signed = kind != "bool" and not name.startswith("uint")

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """The `numpy` of a type of ml_dtypes, which takes a while to load, and few programs need."""
            if name != "numpy":
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
            self.numpy = found = np.dtype(getattr(ml_dtypes, self.name))
            return found

    @property
    def abbr(self) -> str:
        """PyTorch's short name of the dtype: "f32" for float32, "b8" for bool."""
        return "b8" if self.kind == "bool" else self.short

    def to_real(self) -> "DType":
        """The dtype of one component: float32 for complex64; a dtype that is not complex is its own."""
        return _COMPONENT.get(self, self)

    def to_complex(self) -> "DType":
        """The complex dtype whose components hold this one: complex64 for float32."""
        if self not in _COMPLEX:
            raise DTypeError(
                f"{self.name} has no complex counterpart", help="convert to float32 or float64 first"
            )
        return _COMPLEX[self]

    def __repr__(self) -> str:
        return f"{package.shown}.{self.name}"

    def __reduce__(self) -> str:
        # A string tells pickle and copy to find the object by its name in this module.
        return "bool_" if self.name == "bool" else self.name


class NamedDType(DType):
    """A dtype of PyTorch's that tensors cannot have here; see `named_dtypes`."""

    __slots__ = ()
    __module__ = "tenfold.base.named_dtypes"  # where pickle and copy find its objects by their names


bool_ = DType("bool", "bool", "i1", np.dtype(np.bool_), "bool")
uint8 = DType("uint8", "u8", "ui8", np.dtype(np.uint8), "int")
uint16 = DType("uint16", "u16", "ui16", np.dtype(np.uint16), "int")
uint32 = DType("uint32", "u32", "ui32", np.dtype(np.uint32), "int")
uint64 = DType("uint64", "u64", "ui64", np.dtype(np.uint64), "int")
int8 = DType("int8", "i8", "i8", np.dtype(np.int8), "int")
int16 = DType("int16", "i16", "i16", np.dtype(np.int16), "int")
int32 = DType("int32", "i32", "i32", np.dtype(np.int32), "int")
int64 = DType("int64", "i64", "i64", np.dtype(np.int64), "int")
float8_e4m3fn = DType("float8_e4m3fn", "f8e4m3fn", "f8E4M3FN", 1, "float")
float8_e5m2 = DType("float8_e5m2", "f8e5m2", "f8E5M2", 1, "float")
float16 = DType("float16", "f16", "f16", np.dtype(np.float16), "float")
bfloat16 = DType("bfloat16", "bf16", "bf16", 2, "float")
float32 = DType("float32", "f32", "f32", np.dtype(np.float32), "float")
float64 = DType("float64", "f64", "f64", np.dtype(np.float64), "float")
complex64 = DType("complex64", "c64", "complex<f32>", np.dtype(np.complex64), "complex")
complex128 = DType("complex128", "c128", "complex<f64>", np.dtype(np.complex128), "complex")

# Every dtype, in the order declared above.
ALL: tuple[DType, ...] = tuple(value for value in globals().values() if isinstance(value, DType))

BY_NAME: dict[str, DType] = {dtype.name: dtype for dtype in ALL} | {
    "half": float16,
    "float": float32,
    "double": float64,
    "short": int16,
    "int": int32,
    "long": int64,
    "cfloat": complex64,
    "cdouble": complex128,
}

_OF_ML_DTYPES = (float8_e4m3fn, float8_e5m2, bfloat16)
_BY_NUMPY = {dtype.numpy: dtype for dtype in ALL if dtype not in _OF_ML_DTYPES}
_BY_PYTHON: dict[type, DType] = {bool: bool_, int: int64, float: float64, complex: complex128}
_COMPONENT = {complex64: float32, complex128: float64}
# bfloat16 has float32's range, so PyTorch pairs it with complex64.
_COMPLEX = {
    bfloat16: complex64,
    float32: complex64,
    float64: complex128,
    complex64: complex64,
    complex128: complex128,
}
_KNOWN = "dtypes are " + ", ".join(dtype.name for dtype in ALL)
_FLOAT8 = (float8_e4m3fn, float8_e5m2)
_WIDE_UNSIGNED = (uint16, uint32, uint64)

_default_dtype = float32


def get_default_dtype() -> DType:
    """The dtype given to Python floats: float32 unless `set_default_dtype` changed it."""
    return _default_dtype


@located
def set_default_dtype(dtype: DType) -> None:
    """Choose the dtype given to Python floats. It must be a floating-point dtype of at least 16 bits."""
    global _default_dtype
    if not isinstance(dtype, DType) or not dtype.is_floating_point or dtype in _FLOAT8:
        raise DTypeError(
            f"only floating-point dtypes can be the default, not {dtype!r}",
            help="use one of tenfold.float16, bfloat16, float32, float64",
        )
    _default_dtype = dtype


def default_complex_dtype() -> DType:
    """The dtype given to Python complex numbers: the default dtype's counterpart. (float16 has none.)"""
    return _default_dtype.to_complex()


def from_numpy(dtype: np.dtype[Any]) -> DType:
    """The dtype whose elements NumPy stores as `dtype`."""
    found = _BY_NUMPY.get(dtype)
    if found is None:
        for each in _OF_ML_DTYPES:
            _BY_NUMPY.setdefault(each.numpy, each)
        found = _BY_NUMPY.get(dtype)
    if found is not None:
        return found
    if dtype.newbyteorder("=") in _BY_NUMPY:
        raise DTypeError(
            f"NumPy's {dtype.str} is not in this machine's byte order",
            help="convert the array first: array.astype(array.dtype.newbyteorder('='))",
        )
    raise DTypeError(f"a tensor cannot hold NumPy's {dtype.name}", help=_KNOWN)


def of_python(value: object) -> DType:
    """The dtype that a Python (or NumPy) number takes on when it becomes a tensor, by its kind alone."""
    if isinstance(value, bool):
        return bool_
    if isinstance(value, int):
        return int64
    if isinstance(value, float):
        return _default_dtype
    if isinstance(value, complex):
        return default_complex_dtype()
    if isinstance(value, np.generic) and from_numpy(value.dtype):
        return of_python(value.item())
    raise DTypeError(f"expected a number, not {type(value).__name__}")


def as_dtype(spec: DType | type) -> DType:
    """What a `dtype=` argument means: a DType, or one of Python's `bool`, `int`, `float` and `complex`."""
    if isinstance(spec, DType):
        if isinstance(spec, NamedDType):
            raise DTypeError(f"tensors cannot be of {spec!r}", help=_KNOWN)
        return spec
    found = _BY_PYTHON.get(spec) if isinstance(spec, type) else None
    if found is None:
        raise DTypeError(f"expected a dtype, not {spec!r}", help=_nearest_dtype(spec))
    return found


def _nearest_dtype(spec: object) -> str:
    if isinstance(spec, str):
        meant = BY_NAME.get(spec.rpartition(".")[2])
    else:
        scalar = spec.type if isinstance(spec, np.dtype) else spec
        meant = next((dtype for dtype in ALL if dtype.numpy.type is scalar), None)
    return f"write {meant!r}" if meant else _KNOWN


@cache
def promote_types(a: DType, b: DType) -> DType:
    """The smallest dtype that holds both, by PyTorch's lattice; an error where PyTorch has none."""
    if a is b:
        return a
    low, high = sorted((a, b), key=lambda dtype: _RANK[dtype.kind])
    if low in _FLOAT8 or high in _FLOAT8:
        raise _no_common_dtype(a, b)
    if high.is_complex:
        if low in _WIDE_UNSIGNED:
            raise _no_common_dtype(a, b)
        return complex128 if complex128 is high or low in (float64, complex128) else complex64
    if high.is_floating_point:
        if not low.is_floating_point:
            return high
        return float32 if low.itemsize == high.itemsize else _wider(low, high)
    if low in _WIDE_UNSIGNED or high in _WIDE_UNSIGNED:
        raise _no_common_dtype(a, b)
    if low.kind == "bool":
        return high
    return int16 if {low, high} == {uint8, int8} else _wider(low, high)


def _wider(a: DType, b: DType) -> DType:
    return a if a.itemsize > b.itemsize else b


def _no_common_dtype(a: DType, b: DType) -> DTypeError:
    return DTypeError(
        f"{a.name} and {b.name} have no common dtype",
        help="convert one operand to the dtype you want with .to(dtype)",
    )


def result_type(operands: Iterable[tuple[DType, Category]]) -> DType:
    """The dtype of an operator's result. An operand is its dtype and its category: "tensor" when it has
    dimensions, "scalar" when it is a zero-dimensional tensor, "number" when it is a Python number. A lower
    category decides only when its kind is higher (float over int, complex over float)."""
    by_category: dict[Category, DType] = {}
    for dtype, category in operands:
        if category == "number":
            if dtype.is_complex:
                dtype = default_complex_dtype()
            elif dtype.is_floating_point:
                dtype = _default_dtype
        seen = by_category.get(category)
        by_category[category] = dtype if seen is None else promote_types(seen, dtype)
    lower = _prefer(by_category.get("scalar"), by_category.get("number"))
    result = _prefer(by_category.get("tensor"), lower)
    if result is None:
        raise DTypeError("result_type needs at least one operand")
    return result


def _prefer(higher: DType | None, lower: DType | None) -> DType | None:
    if higher is None or lower is None:
        return higher or lower
    if higher.is_complex:
        return higher
    if higher.is_floating_point:
        return higher.to_complex() if lower.is_complex else higher
    if lower.is_complex:
        return lower
    if higher is bool_ or lower.is_floating_point:
        return promote_types(higher, lower)
    return higher


def can_cast(src: DType, dst: DType) -> bool:
    """Whether a result of dtype `src` may be stored as `dst`: not when its kind is higher."""
    return _RANK[src.kind] <= _RANK[dst.kind]


class finfo:
    """The limits of a floating-point dtype (of a complex one: of its components)."""

    bits: int
    eps: float
    max: float
    min: float
    tiny: float
    smallest_normal: float
    resolution: float
    dtype: str

    def __init__(self, type: DType | type | None = None) -> None:
        dtype = _default_dtype if type is None else as_dtype(type).to_real()
        if not dtype.is_floating_point:
            hint = "use tenfold.iinfo" if dtype.kind == "int" else None
            raise DTypeError(f"{dtype.name} is not a floating-point dtype", help=hint).located(
                "finfo", capture()
            )
        limits: Any = (ml_dtypes if dtype in _OF_ML_DTYPES else np).finfo(dtype.numpy)
        self.bits = dtype.itemsize * 8
        self.eps = float(limits.eps)
        self.max = float(limits.max)
        self.min = float(limits.min)
        self.tiny = self.smallest_normal = float(limits.smallest_normal)
        # What C++ calls digits10: how many decimal digits survive a round trip.
        self.resolution = float(f"1e-{int(limits.nmant * np.log10(2)):d}")
        self.dtype = dtype.name

    def __eq__(self, other: object) -> bool:
        return isinstance(other, finfo) and self.dtype == other.dtype

    def __hash__(self) -> int:
        return hash(self.dtype)

    def __repr__(self) -> str:
        shown = ("resolution", "min", "max", "eps", "smallest_normal", "tiny")
        return f"finfo({', '.join(f'{name}={getattr(self, name):g}' for name in shown)}, dtype={self.dtype})"


class iinfo:
    """The limits of an integer dtype."""

    bits: int
    max: int
    min: int
    dtype: str

    def __init__(self, type: DType | type) -> None:
        dtype = as_dtype(type)
        if dtype.kind != "int":
            hint = None if dtype is bool_ else "use tenfold.finfo"
            raise DTypeError(f"{dtype.name} is not an integer dtype", help=hint).located("iinfo", capture())
        limits = np.iinfo(dtype.numpy)
        self.bits = limits.bits
        self.max = int(limits.max)
        self.min = int(limits.min)
        self.dtype = dtype.name

    def __eq__(self, other: object) -> bool:
        return isinstance(other, iinfo) and self.dtype == other.dtype

    def __hash__(self) -> int:
        return hash(self.dtype)

    def __repr__(self) -> str:
        return f"iinfo(min={self.min:g}, max={self.max:g}, dtype={self.dtype})"
