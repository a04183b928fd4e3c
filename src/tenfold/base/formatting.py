"""How a tensor is written: PyTorch's layout for `repr`, from values that are already computed. The options of
`set_printoptions` live here too."""

from collections.abc import Callable, Sequence
from math import inf, isfinite
from types import SimpleNamespace
from typing import Any

import numpy as np

from tenfold.base.dtypes import DType, bool_, complex64, complex128, float64, get_default_dtype, int64
from tenfold.base.errors import ArgumentError

_PROFILES: dict[str, dict[str, Any]] = {
    "default": {"precision": 4, "threshold": 1000, "edgeitems": 3, "linewidth": 80},
    "short": {"precision": 2, "threshold": 1000, "edgeitems": 2, "linewidth": 80},
    "full": {"precision": 4, "threshold": inf, "edgeitems": 3, "linewidth": 80},
}
_options = SimpleNamespace(**_PROFILES["default"], sci_mode=None)

_PREFIX = "tensor("


def set_printoptions(
    precision: int | None = None,
    threshold: float | None = None,
    edgeitems: int | None = None,
    linewidth: int | None = None,
    profile: str | None = None,
    sci_mode: bool | None = None,
) -> None:
    """Choose how tensors are written: `precision` digits after the point; the middle left out of tensors with
    more than `threshold` elements, of which `edgeitems` stay at each edge; lines of `linewidth` characters. A
    profile ("default", "short", "full") sets all four. `sci_mode` turns scientific notation on or off; a call
    that does not give it leaves the choice to the values again.
    """
    if profile is not None and profile not in _PROFILES:
        raise ArgumentError(
            f"set_printoptions: unknown profile {profile!r}", help="profiles are default, short and full"
        )
    given = {"precision": precision, "threshold": threshold, "edgeitems": edgeitems, "linewidth": linewidth}
    chosen = _PROFILES[profile] if profile else {}
    vars(_options).update(chosen | {name: value for name, value in given.items() if value is not None})
    _options.sci_mode = sci_mode


def get_printoptions() -> dict[str, Any]:
    """The options now in force, as keyword arguments of `set_printoptions`."""
    return dict(vars(_options))


def format_tensor(array: np.ndarray, dtype: DType, *, suffixes: Sequence[str] = ()) -> str:
    """The text of a tensor that holds `array`. Of the caller's suffixes, `device=...` comes before the size
    and dtype written here, the others (`requires_grad=True`) after."""
    own = []
    if (array.size == 0 and array.ndim != 1) or (array.size and not _options.edgeitems):
        own.append(f"size={array.shape}")
    if not is_implied(dtype, array.size == 0):
        own.append(f"dtype={dtype!r}")
    device = [suffix for suffix in suffixes if suffix.startswith("device=")]
    others = [suffix for suffix in suffixes if not suffix.startswith("device=")]
    return _with_suffixes(_PREFIX + _elements(array, dtype), device + own + others)


def format_part(array: np.ndarray, dtype: DType, name: str) -> str:
    """The elements of a part of a tensor that is written by its parts, after the part's name."""
    if array.size == 0:
        return f"[], size={array.shape})"
    return _elements(array, dtype, len(_PREFIX) + len(name)) + ")"


def joined(parts: Sequence[str], suffixes: Sequence[str], in_one_line: bool) -> str:
    """A tensor written by its parts, each on a line; the suffixes begin another, or follow the last."""
    text = _PREFIX + (",\n" + " " * len(_PREFIX)).join(parts)
    if in_one_line:
        return _with_suffixes(text, list(suffixes))
    first, *others = suffixes
    return _with_suffixes(text + ",\n" + " " * len(_PREFIX) + first, others)


def is_implied(dtype: DType, empty: bool = False) -> bool:
    """Whether a reader can tell the dtype from the elements."""
    default = get_default_dtype()
    if empty:
        return dtype is default
    return dtype in (default, complex128 if default is float64 else complex64, int64, bool_)


def _with_suffixes(text: str, suffixes: list[str]) -> str:
    # PyTorch takes the last line to be two characters longer than it is.
    length = len(text) - text.rfind("\n") + 1
    for suffix in suffixes:
        if length + len(suffix) + 2 > _options.linewidth:
            text += ",\n" + " " * len(_PREFIX) + suffix
            length = len(_PREFIX) + len(suffix)
        else:
            text += ", " + suffix
            length += len(suffix) + 2
    return text + ")"


class _Style:
    """How the elements of one tensor are written: each by `write`, most of them in `width` characters."""

    def __init__(self, width: int, write: Callable[[Any], str]) -> None:
        self.width = width
        self.write = write


def _elements(array: np.ndarray, dtype: DType, indent: int = len(_PREFIX)) -> str:
    if array.size == 0:
        return "[]"
    cut = [False] * array.ndim
    if array.size > _options.threshold:
        edge = _options.edgeitems
        cut = [size > 2 * edge for size in array.shape]
        for axis, size in enumerate(array.shape):
            if cut[axis]:
                array = array.take([*range(edge), *range(size - edge, size)], axis)
    if dtype.is_complex:
        style = _complex_style(array)
    elif dtype.is_floating_point:
        array = array.astype(np.float64)
        style = _float_style(array)
    else:
        style = _aligned(str, array)
    return _block(array, cut, indent, style)


def _block(array: np.ndarray, cut: list[bool], indent: int, style: _Style) -> str:
    """The elements in brackets, the first bracket in column `indent`. Each dimension that was `cut` has an
    ellipsis in the middle."""
    if array.ndim == 0:
        return style.write(array.item())
    if array.ndim == 1:
        items = [style.write(element) for element in array.tolist()]
    else:
        items = [_block(part, cut[1:], indent + 1, style) for part in array]
    if cut[0]:
        items.insert(_options.edgeitems, " ..." if array.ndim == 1 and items else "...")
    margin = " " * (indent + 1)
    if array.ndim == 1:
        per_line = max(1, (_options.linewidth - indent) // (style.width + 2))
        lines = [", ".join(items[start : start + per_line]) for start in range(0, len(items), per_line)]
        return "[" + f",\n{margin}".join(lines) + "]"
    return "[" + ("," + "\n" * (array.ndim - 1) + margin).join(items) + "]"


def _float_style(values: np.ndarray) -> _Style:
    """One notation for all elements, chosen by those that are neither zero, infinite nor NaN."""
    telling = values[np.isfinite(values) & (values != 0)]
    if telling.size == 0:
        return _aligned(_integral, telling)
    precision = _options.precision
    magnitudes = np.abs(telling)
    smallest, largest = float(magnitudes.min()), float(magnitudes.max())
    scientific = _options.sci_mode
    if scientific is None:
        scientific = largest / smallest > 1000.0 or largest > 1.0e8 or smallest < 1.0e-4
    if scientific:
        return _aligned(lambda value: f"{value:.{precision}e}", telling)
    if (telling == np.ceil(telling)).all():
        return _aligned(_integral, telling)
    return _aligned(lambda value: f"{value:.{precision}f}", telling)


def _integral(value: float) -> str:
    return f"{value:.0f}." if isfinite(value) else f"{value:.0f}"


def _complex_style(values: np.ndarray) -> _Style:
    real, imag = _float_style(values.real), _float_style(values.imag)

    def write(value: complex) -> str:
        imaginary = imag.write(value.imag).lstrip()
        sign = "" if imaginary.startswith("-") else "+"
        return f"{real.write(value.real)}{sign}{imaginary}j"

    return _Style(real.width + imag.width + 1, write)


def _aligned(write: Callable[[Any], str], samples: np.ndarray) -> _Style:
    """The style that writes each element by `write`, flush right in the width of the longest sample."""
    width = max((len(write(sample)) for sample in samples.ravel().tolist()), default=1)
    return _Style(width, lambda value: write(value).rjust(width))
