"""Rows of Fourier transforms: along one dimension, two, or any; of complex, real and Hermitian signals.

All of them end in `transformed`, which moves the dimensions to the end: StableHLO's op takes the
last ones, and three at most.
"""

import math

from tenfold import flat
from tenfold.base import dtypes
from tenfold.base.errors import ArgumentError, DTypeError, IndexOutOfRange, ShapeError
from tenfold.ops.promote import floating
from tenfold.ops.samples import S, T
from tenfold.ops.shape import roll
from tenfold.ops.table import op, written

# By which power of the number of points each direction is scaled.
NORMS = {
    None: {"forward": 0.0, "inverse": 1.0},
    "backward": {"forward": 0.0, "inverse": 1.0},
    "forward": {"forward": 1.0, "inverse": 0.0},
    "ortho": {"forward": 0.5, "inverse": 0.5},
}
OPPOSITE = {None: "forward", "backward": "forward", "forward": "backward", "ortho": "ortho"}


def _check_norm(norm):
    if norm not in NORMS:
        raise ArgumentError(f"unknown normalization {norm!r}", help="forward, backward or ortho")


def _number(name, x):
    """x as floats or complex numbers that can be transformed."""
    x = flat.convert(x, floating(x.dtype))
    if x.dtype not in (dtypes.float32, dtypes.float64, dtypes.complex64, dtypes.complex128):
        raise DTypeError(f"{name} is not defined for {x.dtype.name}", help="convert it to float32 first")
    return x


def _real(name, x):
    if x.dtype.is_complex:
        raise DTypeError(f"{name} takes real tensors, not {x.dtype.name}", help="use the one without r or h")
    return _number(name, x)


def resized(x, dim, length):
    """x with this many elements along a dimension: cut off, or filled up with zeros."""
    if length < 1:
        raise ShapeError(f"a signal of {length} points cannot be transformed")
    if x.shape[dim] >= length:
        return flat.slice_dim(x, dim, 0, length)
    high = [0] * x.rank
    high[dim] = length - x.shape[dim]
    return flat.pad(x, [0] * x.rank, high)


def transformed(x, kind, dims, lengths):
    """StableHLO's transform over dimensions of x, in any order; IFFT and IRFFT divide by the points."""
    order = [*[each for each in range(x.rank) if each not in dims], *dims]
    x = flat.fft(flat.transpose(x, order), kind, lengths)
    return flat.transpose(x, [order.index(each) for each in range(x.rank)])


def _complex_transform(x, dims, inverse):
    """Over all of `dims`, without a scale."""
    for start in range(0, len(dims), 3):
        some = dims[start : start + 3]
        lengths = [x.shape[each] for each in some]
        x = transformed(x, "IFFT" if inverse else "FFT", some, lengths)
        x = x * math.prod(lengths) if inverse else x
    return x


def _scaled(x, count, norm, direction):
    power = NORMS[norm][direction]
    return x if power == 0.0 else x * (1.0 / count**power)


def complex_to_complex(name, x, dims, lengths, norm, inverse):
    _check_norm(norm)
    x = _number(name, x)
    x = flat.convert(x, x.dtype.to_complex())
    for dim, length in zip(dims, lengths, strict=True):
        x = resized(x, dim, length)
    found = _complex_transform(x, dims, inverse) if x.numel else x
    return _scaled(found, math.prod(lengths), norm, "inverse" if inverse else "forward")


def real_to_complex(name, x, dims, lengths, norm):
    """The half of the spectrum, along the last of the dimensions, that tells the other."""
    _check_norm(norm)
    x = _real(name, x)
    for dim, length in zip(dims, lengths, strict=True):
        x = resized(x, dim, length)
    found = transformed(x, "RFFT", dims[-1:], lengths[-1:])
    return _scaled(_complex_transform(found, dims[:-1], False), math.prod(lengths), norm, "forward")


def complex_to_real(name, x, dims, lengths, norm):
    """The signal of a half spectrum; the last of the lengths is the signal's."""
    _check_norm(norm)
    x = _number(name, x)
    x = flat.convert(x, x.dtype.to_complex())
    if lengths[-1] < 1:
        raise ShapeError(f"a signal of {lengths[-1]} points cannot be transformed")
    for dim, length in zip(dims, (*lengths[:-1], lengths[-1] // 2 + 1), strict=True):
        x = resized(x, dim, length)
    found = transformed(_complex_transform(x, dims[:-1], True), "IRFFT", dims[-1:], lengths[-1:])
    return _scaled(found * lengths[-1], math.prod(lengths), norm, "inverse")


# Which dimensions, how long


def _one(x, dim):
    if not x.rank:
        raise IndexOutOfRange("a zero-dimensional tensor has no dimension to transform")
    return flat.axis(dim, x.rank)


def _several(x, s, dim):
    """Distinct dimensions, and the length asked for along each, or None for the length there is."""
    if dim is not None:
        dims = [_one(x, each) for each in dim]
        if len(set(dims)) < len(dims):
            raise ShapeError(f"a dimension appears twice in {list(dim)}")
    elif s is not None:
        if len(s) > x.rank:
            raise ShapeError(f"{len(s)} lengths do not fit {x.type}")
        dims = list(range(x.rank - len(s), x.rank))
    else:
        dims = list(range(x.rank))
    lengths = [None] * len(dims) if s is None else [None if each == -1 else each for each in s]
    if len(lengths) != len(dims):
        raise ShapeError(f"{len(lengths)} lengths for {len(dims)} dimensions")
    return dims, lengths


def _given(x, dims, lengths):
    return [x.shape[dim] if length is None else length for dim, length in zip(dims, lengths, strict=True)]


def _given_half(x, dims, lengths):
    """As given; by default the signal of a half spectrum has an even length."""
    found = _given(x, dims, lengths)
    if lengths[-1] is None:
        found[-1] = 2 * (x.shape[dims[-1]] - 1)
    return found


def _some(name, dims):
    if not dims:
        raise ShapeError(f"{name} transforms at least one dimension")


KINDS = {
    "fft": lambda name, x, dims, lengths, norm: complex_to_complex(
        name, x, dims, _given(x, dims, lengths), norm, False
    ),
    "ifft": lambda name, x, dims, lengths, norm: complex_to_complex(
        name, x, dims, _given(x, dims, lengths), norm, True
    ),
    "rfft": lambda name, x, dims, lengths, norm: real_to_complex(
        name, x, dims, _given(x, dims, lengths), norm
    ),
    "irfft": lambda name, x, dims, lengths, norm: complex_to_real(
        name, x, dims, _given_half(x, dims, lengths), norm
    ),
    "hfft": lambda name, x, dims, lengths, norm: complex_to_real(
        name, flat.conj(x), dims, _given_half(x, dims, lengths), OPPOSITE.get(norm, norm)
    ),
    "ihfft": lambda name, x, dims, lengths, norm: flat.conj(
        real_to_complex(name, x, dims, _given(x, dims, lengths), OPPOSITE.get(norm, norm))
    ),
}
MEANINGS = {
    "fft": "The spectrum of a signal",
    "ifft": "The signal of a spectrum",
    "rfft": "Half of the spectrum of a real signal, whose other half is the conjugate",
    "irfft": "The real signal of half a spectrum",
    "hfft": "The real spectrum of half a Hermitian signal",
    "ihfft": "Half of the Hermitian signal of a real spectrum",
}

_ALONG = lambda: [
    S(T(3, 4)), S(T(3, 5), 4), S(T(3, 5), 7, 0), S(T(2, 3, 4), None, 1, "ortho"),
    S(T(3, 4), None, -1, "forward"),
    S(T(3, 4), 3, -1, "backward"), S(T(6), 1), S(T(8)), S(T(2, 12), 12),
]  # fmt: skip
_PLANES = lambda: [
    S(T(3, 4)), S(T(2, 3, 5), (4, 4)), S(T(2, 3, 4), None, (0, 2), "ortho"), S(T(2, 3, 4), (-1, 6), (2, 0)),
    S(T(3, 4), None, (-2, -1), "forward"),
]  # fmt: skip
_SPACES = lambda: [
    *_PLANES(), S(T(2, 3, 4)), S(T(2, 3, 4), (2, 2)), S(T(2, 3, 2, 3)),
    S(T(2, 2, 3, 2, 3), None, None, "ortho"), S(T(5), None, (0,)),
]  # fmt: skip


def _declare(kind):
    compute = KINDS[kind]
    several = (
        "" if kind in ("hfft", "ihfft") else "cpu: float32"
    )  # PyTorch casts these along one dimension alone

    @op(
        f"fft_{kind}(Tensor self, SymInt? n=None, int dim=-1, str? norm=None) -> Tensor",
        method=False,
        samples=_ALONG,
        meaning=f"{MEANINGS[kind]}, along one dimension.",
        autocast="cpu: float32",
        late=written,
        casts_out=kind != "ihfft",
    )
    def along(x, n, dim, norm):
        return compute(kind, x, [_one(x, dim)], [n], norm)

    @op(
        f"fft_{kind}2(Tensor self, SymInt[1]? s=None, int[1] dim=[-2,-1], str? norm=None) -> Tensor",
        method=False,
        samples=_PLANES,
        meaning=f"{MEANINGS[kind]}, over two dimensions.",
        autocast=several,
        casts_out=True,
    )
    def plane(x, s, dim, norm):
        dims, lengths = _several(x, s, dim)
        _some(f"{kind}2", dims)
        return compute(f"{kind}2", x, dims, lengths, norm)

    @op(
        f"fft_{kind}n(Tensor self, SymInt[1]? s=None, int[1]? dim=None, str? norm=None) -> Tensor",
        method=False,
        samples=_SPACES,
        meaning=f"{MEANINGS[kind]}, over any dimensions.",
        autocast=several,
        casts_out=True,
    )
    def space(x, s, dim, norm):
        dims, lengths = _several(x, s, dim)
        if kind not in ("fft", "ifft"):
            _some(f"{kind}n", dims)
        return compute(f"{kind}n", x, dims, lengths, norm)


for _kind in KINDS:
    _declare(_kind)


# PyTorch's own three, whose scale is a number: none, by the root of the number of points, or by it

SCALES = {0: 0.0, 1: 0.5, 2: 1.0}
_INNER = lambda: [S((0, 1), 0), S((1,), 1), S((1, 0), 2)]


def _inner(name, x, dims, normalization):
    if normalization not in SCALES:
        raise ArgumentError(f"{name}: the normalization is 0, 1 or 2, not {normalization}")
    dims = [_one(x, dim) for dim in dims]
    if len(set(dims)) < len(dims):
        raise ShapeError(f"{name}: a dimension appears twice in {dims}")
    return dims


def _inner_scaled(x, count, normalization):
    power = SCALES[normalization]
    return x if power == 0.0 else x * (1.0 / count**power)


@op(
    "_fft_c2c(Tensor self, SymInt[] dim, int normalization, bool forward) -> Tensor",
    method=False,
    samples=lambda: [
        S(T(3, 4, dtype=dtype), *each.args, forward)
        for each in _INNER()
        for forward in (True, False)
        for dtype in ("complex64", "complex128")
    ],
    needs="transformed_dims",
    casts_out=True,
)
def fft_complex(x, dims, normalization, forward):
    """A complex signal's spectrum, or the signal of one."""
    dims = _inner("_fft_c2c", x, dims, normalization)
    if not x.dtype.is_complex:
        raise DTypeError(f"_fft_c2c takes complex tensors, not {x.dtype.name}")
    found = _complex_transform(x, dims, not forward)
    return _inner_scaled(found, math.prod([x.shape[dim] for dim in dims]), normalization)


@op(
    "_fft_r2c(Tensor self, int[] dim, int normalization, bool onesided) -> Tensor",
    method=False,
    samples=lambda: [
        S(T(3, 4, dtype=dtype), *each.args, onesided)
        for each in _INNER()
        for onesided in (True, False)
        for dtype in ("float32", "float64")
    ],
    needs="some_dims",
    casts_out=True,
)
def fft_real(x, dims, normalization, onesided):
    """A real signal's spectrum, or the half that tells the other."""
    dims = _inner("_fft_r2c", x, dims, normalization)
    _some("_fft_r2c", dims)
    lengths = [x.shape[dim] for dim in dims]
    if onesided:
        found = real_to_complex("_fft_r2c", x, dims, lengths, "backward")
    else:
        found = complex_to_complex("_fft_r2c", _real("_fft_r2c", x), dims, lengths, "backward", False)
    return _inner_scaled(found, math.prod(lengths), normalization)


@op(
    "_fft_c2r(Tensor self, int[] dim, int normalization, SymInt last_dim_size) -> Tensor",
    method=False,
    samples=lambda: [
        S(T(4, 4, dtype=dtype), *each.args, size)
        for each in _INNER()
        for size in (6, 7)
        for dtype in ("complex64", "complex128")
    ],
    needs="half_of_last_dim",
    casts_out=True,
)
def fft_to_real(x, dims, normalization, last_dim_size):
    """The real signal of half a spectrum."""
    dims = _inner("_fft_c2r", x, dims, normalization)
    _some("_fft_c2r", dims)
    if not x.dtype.is_complex:
        raise DTypeError(f"_fft_c2r takes complex tensors, not {x.dtype.name}")
    if x.shape[dims[-1]] != last_dim_size // 2 + 1:
        raise ShapeError(f"_fft_c2r: {x.type} is not half the spectrum of {last_dim_size} points")
    lengths = [*[x.shape[dim] for dim in dims[:-1]], last_dim_size]
    return _inner_scaled(
        complex_to_real("_fft_c2r", x, dims, lengths, "forward"), math.prod(lengths), normalization
    )


# Frequencies


def _frequencies(x, count, spacing, dtype):
    dtype = dtype or dtypes.get_default_dtype()
    if dtype.kind != "float":
        raise DTypeError(f"frequencies are floating-point numbers, not {dtype.name}")
    step = math.inf if spacing * count == 0 else 1.0 / (count * spacing)
    return flat.convert(flat.convert(x, dtypes.float64) * step, dtype)


_FREQUENCIES = lambda: [S(5), S(6, 0.5), S(1), S(0), S(7, 2.0)]
_PLACED = "ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None"


@op(f"fft_fftfreq(int n, float d=1.0, *, {_PLACED}) -> Tensor", samples=_FREQUENCIES, late=written)
def fft_fftfreq(n, d, dtype):
    """The frequency of each element of the spectrum of n points d apart: from 0 on, then negative ones."""
    place = flat.arange(n)
    return _frequencies(flat.where(place >= (n + 1) // 2, place - n, place), n, d, dtype)


@op(f"fft_rfftfreq(int n, float d=1.0, *, {_PLACED}) -> Tensor", samples=_FREQUENCIES, late=written)
def fft_rfftfreq(n, d, dtype):
    """The frequency of each element of the half spectrum of n points d apart."""
    return _frequencies(flat.arange(n // 2 + 1), n, d, dtype)


_SHIFTS = lambda: [S(T(5)), S(T(3, 4)), S(T(3, 4), 1), S(T(2, 3, 5), (0, 2)), S(T(0, 3))]


def _halves(x, dim, half):
    dims = list(range(x.rank)) if dim is None else [flat.axis(each, x.rank) for each in dim]
    return roll(x, tuple([half(x.shape[each]) for each in dims]), tuple(dims))


@op("fft_fftshift(Tensor self, int[1]? dim=None) -> Tensor", method=False, samples=_SHIFTS)
def fft_fftshift(x, dim):
    """A spectrum with the frequency 0 moved to the middle."""
    return _halves(x, dim, lambda extent: extent // 2)


@op("fft_ifftshift(Tensor self, int[1]? dim=None) -> Tensor", method=False, samples=_SHIFTS)
def fft_ifftshift(x, dim):
    """A spectrum with the frequency 0 moved from the middle to the front."""
    return _halves(x, dim, lambda extent: (extent + 1) // 2)
