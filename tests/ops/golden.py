"""PyTorch as the golden reference: the same call of the same ATen overload, and how results are compared.

Tolerances are `torch.testing`'s own for each dtype; integers and bools are exact. A row that cannot meet them
stands in `WIDER` with its reason, and nowhere else.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import torch

import tenfold as tn
from tenfold.base.dtypes import BY_NAME, DType
from tenfold.base.errors import DTypeError, TenfoldError
from tenfold.ops.samples import S, T
from tenfold.ops.schema import Argument
from tenfold.ops.table import Row
from tenfold.tensor import dispatch
from tests.ops import generate

# rtol and atol by dtype, as in torch.testing.assert_close; two float8 values of one call agree exactly.
TOLERANCES = {
    "float16": (1e-3, 1e-5),
    "bfloat16": (1.6e-2, 1e-5),
    "float32": (1.3e-6, 1e-5),
    "float64": (1e-7, 1e-7),
    "complex64": (1.3e-6, 1e-5),
    "complex128": (1e-7, 1e-7),
}
# Rows that need more, by name: {dtype: (rtol, atol)} and why.
_STEPWISE = (
    {"float16": (3e-3, 1e-3), "bfloat16": (3e-2, 4e-3)},
    "PyTorch rounds a half-precision window after each of its steps; here it is computed in float32",
)
_HALF_INSIDE = (
    {"float16": (4e-3, 2e-3), "bfloat16": (3e-2, 4e-3)},
    "PyTorch rounds to half precision inside the formula; here it is computed in float32 and rounded once",
)
_RECURRENCE = (
    {"float32": (2e-5, 1e-5)},
    "PyTorch's recurrence loses a digit to cancellation: ours is nearer to the exact value",
)
WIDER: dict[str, tuple[dict[str, tuple[float, float]], str]] = {
    **dict.fromkeys(("bartlett_window", "blackman_window", "hamming_window", "hann_window"), _STEPWISE),
    **dict.fromkeys(("_log_softmax", "log_softmax", "special_log_softmax", "special_ndtr"), _HALF_INSIDE),
    "special_hermite_polynomial_h": _RECURRENCE,
}

# Rows for which PyTorch's results in float32 count as well: it adds the products of a transposed convolution
# in bfloat16 on processors that have no instructions for bfloat16, and in float32 on others.
SUMMED_IN_HALF = {"_convolution", "convolution", *(f"conv_transpose{n}d" for n in (1, 2, 3))}

# Functions whose results PyTorch leaves as the memory was.
UNINITIALISED = {"empty", "empty_like", "empty_strided", "empty_permuted", "new_empty", "new_empty_strided"}

_BITS = {1: np.uint8, 2: np.int16}


def to_torch(array: np.ndarray) -> torch.Tensor:
    """The array as PyTorch's tensor, strides included."""
    if array.dtype.isbuiltin == 1:
        return torch.from_numpy(array)
    name = {ml_dtypes.bfloat16: "bfloat16"}.get(array.dtype.type, array.dtype.name)
    return torch.from_numpy(array.view(_BITS[array.dtype.itemsize])).view(getattr(torch, name))


def to_numpy(tensor: torch.Tensor) -> np.ndarray:
    tensor = tensor.detach().resolve_conj().resolve_neg()
    name = str(tensor.dtype).removeprefix("torch.")
    dtype = BY_NAME[name]
    if dtype.numpy.isbuiltin == 1:
        return tensor.numpy()
    return (
        tensor.contiguous().view({1: torch.uint8, 2: torch.int16}[dtype.itemsize]).numpy().view(dtype.numpy)
    )


class Call:
    """A sample with its elements: calls the row, and PyTorch's overload, with the same arguments."""

    def __init__(self, row: Row, number: int, sample: S, dtype: DType):
        self.row = row
        self.sample = sample
        self.dtype = dtype
        rng = generate.seed(row, number, dtype)
        positional, named = generate.bind(row, sample)
        self.positional = [(a, self._drawn(v, rng)) for a, v in positional]
        self.named = [(a, self._drawn(v, rng)) for a, v in named]

    def _drawn(self, value: Any, rng: np.random.Generator) -> Any:
        if isinstance(value, T):
            return generate.array(value, self.dtype, rng)
        if isinstance(value, (tuple, list)):
            return tuple(self._drawn(each, rng) for each in value)
        return value

    def ours(self, call: Callable[..., Any] | None = None) -> Any:
        """Our results, still to be computed. `call` stands for the row's function, a method for example."""
        call = call or function(self.row)
        args, kwargs = self.arguments(to_tenfold)
        return call(*args, **kwargs)

    def theirs(self, call: Callable[..., Any] | None = None) -> Any:
        """PyTorch's results; what it raises comes through."""
        call = call or overload(self.row)
        args, kwargs = self.arguments(as_torch)
        return quietly(call, *args, **kwargs)

    def widened(self) -> list[Any]:
        """PyTorch's results in a half type, computed in float32 from the same elements and rounded once."""
        args, kwargs = self.arguments(lambda argument, value: _wide(as_torch(argument, value)))
        narrow = getattr(torch, self.dtype.name)
        return [
            each.to(narrow) if isinstance(each, torch.Tensor) and each.dtype == torch.float32 else each
            for each in flattened(quietly(overload(self.row), *args, **kwargs))
        ]

    def arguments(self, converted: Callable[[Argument, Any], Any]) -> tuple[list[Any], dict[str, Any]]:
        return [converted(a, v) for a, v in self.positional], {a.name: converted(a, v) for a, v in self.named}

    def __str__(self) -> str:
        return f"{self.dtype.short} {self.sample}"


def _wide(value: Any) -> Any:
    if isinstance(value, list):
        return [_wide(each) for each in value]
    half = isinstance(value, torch.Tensor) and value.dtype in (torch.float16, torch.bfloat16)
    return value.float() if half else value


def overload(row: Row) -> Any:
    return getattr(getattr(torch.ops.aten, row.name), row.overload or "default")


def function(row: Row) -> Callable[..., Any]:
    """The function of this overload alone."""
    return dispatch.function(row.name, [row])


def runs_empty(error: TenfoldError, theirs: list[Any]) -> bool:
    """Whether we refuse a dtype that PyTorch lets pass only because there is nothing to compute."""
    return isinstance(error, DTypeError) and all(
        isinstance(t, torch.Tensor) and not t.numel() for t in theirs
    )


def quietly(call: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """A call of PyTorch's without its warnings."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return call(*args, **kwargs)


def to_tenfold(argument: Argument, value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return tn.tensor(value)
    if isinstance(value, tuple):
        return tuple(to_tenfold(argument, each) for each in value)
    return (
        BY_NAME.get(value, value) if argument.type.kind == "ScalarType" and isinstance(value, str) else value
    )


def as_torch(argument: Argument, value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return to_torch(value.copy(order="K"))
    if isinstance(value, tuple):
        return [as_torch(argument, each) for each in value]
    if isinstance(value, DType):
        return getattr(torch, value.name)
    return (
        getattr(torch, value, value)
        if argument.type.kind == "ScalarType" and isinstance(value, str)
        else value
    )


def only_lacks(error: Exception) -> bool:
    """Whether PyTorch merely has no kernel for a dtype, as opposed to arguments that are wrong."""
    return isinstance(error, NotImplementedError) or "not implemented for" in str(error)


def flattened(results: Any) -> list[Any]:
    return (
        [part for each in results for part in flattened(each)]
        if isinstance(results, (tuple, list))
        else [results]
    )


# Comparing


def difference(row: Row, ours: Any, theirs: Any, values: bool = True, slack: float = 1) -> str | None:
    """How one of our results differs from PyTorch's, in a line, or None. Both are computed."""
    if not isinstance(theirs, torch.Tensor) or not isinstance(ours, tn.Tensor):
        same = type(ours) is type(theirs) and (ours == theirs or (ours != ours and theirs != theirs))
        return None if same else f"gave {ours!r}, PyTorch {theirs!r}"
    expected = str(theirs.dtype).removeprefix("torch.")
    if ours.dtype.name != expected or tuple(ours.shape) != tuple(theirs.shape):
        return f"gave {ours.dtype.name}{list(ours.shape)}, PyTorch {expected}{list(theirs.shape)}"
    if not values:
        return None
    found, golden = ours.numpy(), to_numpy(theirs)
    rtol, atol = tolerance(row, ours.dtype)
    wrong = ~close(found, golden, rtol * slack, atol * slack)
    if not wrong.any():
        return None
    place = tuple(int(i) for i in np.argwhere(wrong)[0])
    values = f"{found[place]!r}, PyTorch {golden[place]!r}"
    return f"{int(wrong.sum())} of {wrong.size} differ, at {list(place)} {values}"


def call_difference(call: Call, place: int, ours: Any, theirs: Any, values: bool) -> str | None:
    """The same for a result of a call, the one at that place."""
    found = difference(call.row, ours, theirs, values)
    if found and values and call.dtype.name == "bfloat16" and call.row.name in SUMMED_IN_HALF:
        return difference(call.row, ours, call.widened()[place])
    return found


def tolerance(row: Row, dtype: DType) -> tuple[float, float]:
    wider = WIDER.get(row.name)
    if wider and dtype.name in wider[0]:
        return wider[0][dtype.name]
    return usual_tolerance(dtype.name)


def usual_tolerance(dtype: str) -> tuple[float, float]:
    """rtol and atol, by the dtype's name."""
    return TOLERANCES.get(dtype, (0.0, 0.0))


def close(found: np.ndarray, golden: np.ndarray, rtol: float, atol: float) -> np.ndarray:
    if found.dtype.kind in "biu":
        return np.asarray(found == golden)
    wide = np.complex128 if found.dtype.kind == "c" else np.float64
    with np.errstate(all="ignore"):
        return np.asarray(np.isclose(found.astype(wide), golden.astype(wide), rtol, atol, equal_nan=True))
