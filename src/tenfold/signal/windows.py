"""`tenfold.signal.windows`: windows of M points as functions of n = 0 … M - 1. A symmetric one ends where it
began; `sym=False` makes one that continues into its own copy, whose next point would be that end."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any, TypedDict, Unpack

from tenfold.base import dtypes
from tenfold.base.dtypes import DType, as_dtype
from tenfold.base.errors import ArgumentError, located, unknown_name
from tenfold.tensor import Tensor
from tenfold.tensor.dispatch import aten

__all__ = [
    "bartlett", "blackman", "cosine", "exponential", "gaussian", "general_cosine", "general_hamming",
    "hamming", "hann", "kaiser", "nuttall",
]  # fmt: skip


class Made(TypedDict, total=False):
    """How every window may be made."""

    sym: bool
    dtype: DType | None
    layout: str
    device: Any
    requires_grad: bool


def _window(
    M: int,
    formula: Callable[[Tensor, int], Tensor],
    sym: bool = True,
    dtype: DType | None = None,
    layout: str = "strided",
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """`formula(n, last)` for the places n of a window that is symmetric on 0 … last."""
    wanted = dtypes.get_default_dtype() if dtype is None else as_dtype(dtype)
    if M < 0:
        raise ArgumentError(f"a window has no negative length, such as M={M}")
    if layout != "strided":
        raise ArgumentError(f"a window is strided, not of layout {layout!r}", help="leave layout out")
    if wanted not in (dtypes.float32, dtypes.float64):
        raise ArgumentError(
            f"a window is made of float32 or float64, not {wanted.name}", help="convert the window instead"
        )
    places = aten("arange")(M, dtype=wanted, device=device)
    made = formula(places, M - 1 if sym or M == 1 else M) if M else places
    return made.detach().requires_grad_(requires_grad)


@located
def bartlett(M: int, **made: Unpack[Made]) -> Tensor:
    """1 - |2n / last - 1|: a triangle."""
    return _window(M, lambda n, last: 1 - (n * (2 / last) - 1).abs() if M > 1 else n + 1, **made)


@located
def general_cosine(M: int, *, a: Iterable[float], **made: Unpack[Made]) -> Tensor:
    """The sum of (-1)ⁱ · aᵢ · cos(2πin / last)."""
    if not isinstance(a, Iterable):
        raise ArgumentError(f"the coefficients a are numbers in a list, not {type(a).__name__}")
    coefficients = [(-1) ** i * float(each) for i, each in enumerate(a)]
    if not coefficients:
        raise ArgumentError("a has no coefficient: a sum of cosines takes one at least")

    def formula(n: Tensor, last: int) -> Tensor:
        if M < 2:
            return n + 1
        waves = [
            (n * (2 * math.pi * i / last)).cos() * coefficient for i, coefficient in enumerate(coefficients)
        ]
        return aten("stack")(waves).sum(0)

    return _window(M, formula, **made)


@located
def blackman(M: int, **made: Unpack[Made]) -> Tensor:
    """0.42 - 0.5 · cos(2πn / last) + 0.08 · cos(4πn / last)."""
    return general_cosine(M, a=[0.42, 0.5, 0.08], **made)


@located
def general_hamming(M: int, *, alpha: float = 0.54, **made: Unpack[Made]) -> Tensor:
    """alpha - (1 - alpha) · cos(2πn / last)."""
    return general_cosine(M, a=[alpha, 1.0 - alpha], **made)


@located
def hamming(M: int, **made: Unpack[Made]) -> Tensor:
    """0.54 - 0.46 · cos(2πn / last)."""
    return general_hamming(M, **made)


@located
def hann(M: int, **made: Unpack[Made]) -> Tensor:
    """0.5 - 0.5 · cos(2πn / last)."""
    return general_hamming(M, alpha=0.5, **made)


@located
def nuttall(M: int, **made: Unpack[Made]) -> Tensor:
    """A sum of four cosines, with the lowest sidelobes that these can have."""
    return general_cosine(M, a=[0.3635819, 0.4891775, 0.1365995, 0.0106411], **made)


@located
def cosine(M: int, **made: Unpack[Made]) -> Tensor:
    """sin(π(n + 1/2) / (last + 1)): half a wave."""
    return _window(M, lambda n, last: ((n + 0.5) * (math.pi / (last + 1))).sin(), **made)


@located
def exponential(M: int, *, center: float | None = None, tau: float = 1.0, **made: Unpack[Made]) -> Tensor:
    """exp(-|n - center| / tau); the center is last / 2 unless given, as it may be where sym=False."""
    if tau <= 0:
        raise ArgumentError(f"tau={tau} must be positive: the window decays by it")
    if center is not None and made.get("sym", True):
        raise ArgumentError(
            f"center={center} cannot be given for a symmetric window", help="leave it out, or say sym=False"
        )
    return _window(
        M, lambda n, last: (-(n - (last / 2 if center is None else center)).abs() / tau).exp(), **made
    )


@located
def gaussian(M: int, *, std: float = 1.0, **made: Unpack[Made]) -> Tensor:
    """exp(-(n - last / 2)² / (2 · std²))."""
    if std <= 0:
        raise ArgumentError(f"std={std} must be positive: it is a standard deviation")
    return _window(M, lambda n, last: (-(((n - last / 2) / (std * math.sqrt(2))) ** 2)).exp(), **made)


@located
def kaiser(M: int, *, beta: float = 12.0, **made: Unpack[Made]) -> Tensor:
    """I₀(beta · √(1 - (2n / last - 1)²)) / I₀(beta), by the modified Bessel function of order zero."""
    if beta < 0:
        raise ArgumentError(f"beta={beta} must not be negative")

    def formula(n: Tensor, last: int) -> Tensor:
        if M < 2:
            return n + 1
        edge = n * 0 + beta
        inside = 1 - (n * (2 / last) - 1).clamp(-1, 1) ** 2
        return aten("i0")(edge * inside.sqrt()) / aten("i0")(edge)

    return _window(M, formula, **made)


def __getattr__(name: str) -> Any:
    raise unknown_name("tenfold.signal.windows", name, globals())
