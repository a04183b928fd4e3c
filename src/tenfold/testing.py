"""`tenfold.testing`: comparisons for tests, and tensors of random numbers for them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tenfold.base import dtypes
from tenfold.base.dtypes import DType, as_dtype
from tenfold.base.errors import ArgumentError, located, unknown_name
from tenfold.tensor import Tensor
from tenfold.tensor.dispatch import aten
from tenfold.tensor.interchange import DeviceLike, tensor

__all__ = ["assert_allclose", "assert_close", "make_tensor"]

# The relative and the absolute tolerance by dtype; for all others both are zero.
TOLERANCES = {
    dtypes.float16: (1e-3, 1e-5),
    dtypes.bfloat16: (1.6e-2, 1e-5),
    dtypes.float32: (1.3e-6, 1e-5),
    dtypes.float64: (1e-7, 1e-7),
    dtypes.complex64: (1.3e-6, 1e-5),
    dtypes.complex128: (1e-7, 1e-7),
}
Message = str | Callable[[str], str] | None


@located
def assert_close(
    actual: Any,
    expected: Any,
    *,
    allow_subclasses: bool = True,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = False,
    check_device: bool = True,
    check_dtype: bool = True,
    check_layout: bool = True,
    check_stride: bool = False,
    msg: Message = None,
) -> None:
    """Raise an AssertionError unless |actual - expected| <= atol + rtol * |expected| everywhere.

    Both are tensors, data for tensors, numbers, or sequences and mappings of these. Default tolerances depend
    on the dtype. `msg` is the message, or a function of the default message.
    """
    if (rtol is None) != (atol is None):
        raise ArgumentError("rtol and atol are given together or not at all")
    given = None if rtol is None or atol is None else (rtol, atol)
    rules = _Rules(given, equal_nan, check_device, check_dtype, check_stride, allow_subclasses)
    problem = rules.compare(actual, expected, "")
    if problem is not None:
        raise AssertionError(msg(problem) if callable(msg) else problem if msg is None else msg)


@located
def assert_allclose(
    actual: Any,
    expected: Any,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = True,
    msg: Message = None,
) -> None:
    """The older form of `assert_close`: the dtypes may differ, and NaN equals NaN."""
    assert_close(
        _tensor(actual),
        _tensor(expected),
        rtol=rtol,
        atol=atol,
        equal_nan=equal_nan,
        check_device=False,
        check_dtype=False,
        msg=msg or None,
    )


class _Rules:
    """How two values are compared; `compare` tells how they differ, or None."""

    def __init__(
        self,
        tolerances: tuple[float, float] | None,
        equal_nan: bool,
        device: bool,
        dtype: bool,
        stride: bool,
        subclasses: bool,
    ):
        self.tolerances = tolerances
        self.equal_nan = equal_nan
        self.device = device
        self.dtype = dtype
        self.stride = stride
        self.subclasses = subclasses

    def compare(self, actual: Any, expected: Any, place: str) -> str | None:
        if isinstance(actual, Mapping) and isinstance(expected, Mapping):
            return self._mappings(actual, expected, place)
        if _is_sequence(actual) and _is_sequence(expected):
            return self._sequences(actual, expected, place)
        if actual is None and expected is None:
            return None
        if not (_is_comparable(actual) and _is_comparable(expected)):
            kinds = f"{type(actual).__name__} and {type(expected).__name__}"
            return None if actual is expected else f"{kinds} cannot be compared{_at(place)}"
        if not self.subclasses and type(actual) is not type(expected):
            return f"types differ{_at(place)}: {type(actual).__name__} and {type(expected).__name__}"
        return self._tensors(actual, expected, place)

    def _mappings(self, actual: Mapping[Any, Any], expected: Mapping[Any, Any], place: str) -> str | None:
        if actual.keys() != expected.keys():
            return f"keys differ{_at(place)}: {sorted(map(str, actual))} and {sorted(map(str, expected))}"
        found = (self.compare(actual[key], expected[key], f"{place}[{key!r}]") for key in actual)
        return next((each for each in found if each is not None), None)

    def _sequences(self, actual: Sequence[Any], expected: Sequence[Any], place: str) -> str | None:
        if len(actual) != len(expected):
            return f"lengths differ{_at(place)}: {len(actual)} and {len(expected)}"
        pairs = enumerate(zip(actual, expected, strict=True))
        found = (self.compare(a, e, f"{place}[{i}]") for i, (a, e) in pairs)
        return next((each for each in found if each is not None), None)

    def _tensors(self, actual: Any, expected: Any, place: str) -> str | None:
        numbers = not isinstance(actual, (Tensor, np.ndarray)) and not isinstance(
            expected, (Tensor, np.ndarray)
        )
        a, e = _tensor(actual, numbers), _tensor(expected, numbers)
        for what, checked, one, other in (
            ("shapes", True, tuple(a.shape), tuple(e.shape)),
            ("devices", self.device, a.device, e.device),
            ("dtypes", self.dtype and not numbers, a.dtype, e.dtype),
            ("strides", self.stride, a.stride(), e.stride()),
        ):
            if checked and one != other:
                return f"{what} differ{_at(place)}: {one} and {other}"
        rtol, atol = self.tolerances or tuple(
            max(pair) for pair in zip(*[TOLERANCES.get(x.dtype, (0.0, 0.0)) for x in (a, e)], strict=True)
        )
        return _difference(_array(a), _array(e), rtol, atol, self.equal_nan, place)


def _difference(
    actual: np.ndarray, expected: np.ndarray, rtol: float, atol: float, equal_nan: bool, place: str
) -> str | None:
    with np.errstate(all="ignore"):
        exact = not rtol and not atol and actual.dtype.kind in "biu" and expected.dtype.kind in "biu"
        close = actual == expected if exact else np.isclose(actual, expected, rtol, atol, equal_nan)
    if close.all():
        return None
    if not actual.ndim:
        bound = f"up to {atol} + {rtol} * |expected| allowed"
        return f"not close{_at(place)}: {actual.item()} and {expected.item()} ({bound})"
    wrong = int((~close).sum())
    with np.errstate(all="ignore"):
        distance = np.where(close, 0, np.abs(np.subtract(actual, expected, dtype=_wide(actual))))
        relative = np.where(close, 0, distance / np.abs(expected))
    lines = [f"not close{_at(place)}: {wrong} of {actual.size} elements ({100 * wrong / actual.size:.1f}%)"]
    for what, each, allowed in (("absolute", distance, atol), ("relative", relative, rtol)):
        index = np.unravel_index(
            int(np.argmax(np.nan_to_num(each, nan=math.inf, posinf=math.inf))), each.shape
        )
        here = tuple(int(i) for i in index)
        lines.append(f"greatest {what} difference: {each[index].item()} at {here} (up to {allowed} allowed)")
    return "\n".join(lines)


def _wide(array: np.ndarray) -> Any:
    return array.dtype if array.dtype.kind in "fc" else np.float64


def _array(x: Tensor) -> np.ndarray:
    """The elements in a dtype in which differences do not overflow; integers of 64 bits stay exact."""
    host = x.detach().numpy(force=True)
    if x.dtype.is_complex:
        return host.astype(np.complex128)
    return host.astype(np.float64) if x.dtype.is_floating_point else host


def _tensor(value: Any, exact: bool = False) -> Tensor:
    if isinstance(value, Tensor):
        return value
    wide = exact and isinstance(value, (float, complex))
    dtype = None if not wide else dtypes.complex128 if isinstance(value, complex) else dtypes.float64
    return tensor(value, dtype=dtype)


def _is_sequence(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str)


def _is_comparable(value: Any) -> bool:
    return isinstance(value, (Tensor, np.ndarray, np.generic, bool, int, float, complex))


def _at(place: str) -> str:
    return f" at {place}" if place else ""


@located
def make_tensor(
    *shape: Any,
    dtype: DType,
    device: DeviceLike | None = None,
    low: float | None = None,
    high: float | None = None,
    requires_grad: bool = False,
    noncontiguous: bool = False,
    exclude_zero: bool = False,
    memory_format: Any = None,
) -> Tensor:
    """Make a tensor of random numbers, uniform in [low, high). The default is -9 to 9 for floats, and a
    smaller range for other dtypes.

    With `exclude_zero`, zeros become the smallest positive number, or one. A `noncontiguous` tensor is every
    second element of a larger one.
    """
    sizes = tuple(shape[0]) if len(shape) == 1 and isinstance(shape[0], Sequence) else shape
    dtype = as_dtype(dtype)
    floor, ceiling = _range(dtype)
    low, high = floor if low is None else low, ceiling if high is None else high
    if math.isnan(low) or math.isnan(high) or low > high or (low == high and dtype.kind != "float"):
        raise ArgumentError(f"cannot draw from {low} to {high}", help="low must be less than high")
    drawn = (*sizes[:-1], 2 * sizes[-1]) if noncontiguous and sizes else sizes
    made = _drawn(dtype, low, high, drawn, device)
    if exclude_zero:
        least = float(np.finfo(np.float32).tiny) if dtype.kind in ("float", "complex") else 1
        made = made.masked_fill(made == 0, least)
    made = made[..., ::2] if noncontiguous and sizes else made
    return made.detach().requires_grad_() if requires_grad else made


def _range(dtype: DType) -> tuple[float, float]:
    if dtype.kind == "bool":
        return 0, 2
    if dtype.kind == "int":
        return (-9, 10) if dtype.is_signed else (0, 10)
    return -9.0, 9.0


def _drawn(dtype: DType, low: float, high: float, sizes: Sequence[int], device: Any) -> Tensor:
    if dtype.kind in ("bool", "int"):
        whole = aten("randint")(math.ceil(low), math.ceil(high), sizes, dtype=dtypes.int64, device=device)
        return whole.to(dtype)
    if dtype.is_complex:
        parts = dtype.to_real()
        return aten("complex")(*[_drawn(parts, low, high, sizes, device) for _ in range(2)])
    wide = dtype if dtype is dtypes.float64 else dtypes.float32
    return (aten("rand")(sizes, dtype=wide, device=device) * (high - low) + low).to(dtype)


def __getattr__(name: str) -> Any:
    raise unknown_name("tenfold.testing", name, globals())
