"""Rows of Fourier transforms of a signal's parts that overlap, and the signal from them."""

from tenfold import flat
from tenfold.base import dtypes
from tenfold.base.errors import ArgumentError, DTypeError, ShapeError
from tenfold.ops.fourier import complex_to_complex, complex_to_real, real_to_complex
from tenfold.ops.padding import pad
from tenfold.ops.recoding import view_as_real
from tenfold.ops.samples import S, T
from tenfold.ops.table import op


def _settings(name, n_fft, hop_length, win_length, window, dtype):
    """The hop, and the window widened on both sides to n_fft, or None where all weigh the same."""
    hop = n_fft // 4 if hop_length is None else hop_length
    length = n_fft if win_length is None else win_length
    if hop <= 0:
        raise ArgumentError(f"{name}: hop_length is positive, not {hop}")
    if not 0 < length <= n_fft:
        raise ArgumentError(f"{name}: win_length is from 1 to n_fft, {n_fft}, not {length}")
    if window is not None and window.shape != (length,):
        raise ShapeError(f"{name}: the window has {length} elements, not {window.type}")
    if window is None and length == n_fft:
        return hop, length, None
    weights = flat.full((length,), 1, dtype) if window is None else window
    before = (n_fft - length) // 2
    return hop, length, flat.pad(weights, (before,), (n_fft - length - before,))


def _times(x, window):
    """A product in the dtype that holds both."""
    if window is None:
        return x
    dtype = dtypes.promote_types(x.dtype, window.dtype)
    return flat.convert(x, dtype) * flat.convert(window, dtype)


def _places(frames, hop, n_fft):
    """For each frame, where its elements lie."""
    return flat.iota((frames, n_fft), 0) * hop + flat.iota((frames, n_fft), 1)


_SIGNALS = lambda: [
    S(T(20), 8, return_complex=True),
    S(T(2, 20), 8, 3, return_complex=True),
    S(T(2, 20), 8, 2, 6, T(6, low=0.5, high=1), return_complex=True),
    S(T(20), 7, 2, 4, onesided=False, normalized=True, return_complex=True),
    S(T(20), 8, return_complex=False),
]


@op(
    "stft.center(Tensor self, int n_fft, int? hop_length=None, int? win_length=None, Tensor? window=None, "
    'bool center=True, str pad_mode="reflect", bool normalized=False, bool? onesided=None, '
    "bool? return_complex=None, bool? align_to_window=None) -> Tensor",
    samples=lambda: [
        *_SIGNALS(),
        S(T(20), 8, 4, center=False, return_complex=True),
        S(T(20), 8, 4, pad_mode="constant", return_complex=True),
    ],
    autocast="cpu: float32",
)
def stft_centered(
    x, n_fft, hop, win_length, window, center, pad_mode, normalized, onesided, return_complex, align
):
    """The spectrum of each n_fft elements of a signal, hop_length apart, by frequency and frame. Centered,
    the signal is first widened on both sides, so that frame i lies around element i · hop_length."""
    if center and align is not None:
        raise ArgumentError("stft: align_to_window is for center=False")
    if center and x.rank in (1, 2):
        rows = flat.reshape(x, (*[1] * (3 - x.rank), *x.shape))
        wide = pad(rows, (n_fft // 2, n_fft // 2), pad_mode, None)
        x = flat.reshape(wide, (*x.shape[:-1], wide.shape[-1]))
    return stft(x, n_fft, hop, win_length, window, normalized, onesided, return_complex, align)


@op(
    "stft(Tensor self, int n_fft, int? hop_length=None, int? win_length=None, Tensor? window=None, "
    "bool normalized=False, bool? onesided=None, bool? return_complex=None, bool? align_to_window=None) "
    "-> Tensor",
    samples=lambda: [*_SIGNALS(), S(T(20), 8, 2, 4, align_to_window=True, return_complex=True)],
    autocast="cpu: float32",
)
def stft(x, n_fft, hop_length, win_length, window, normalized, onesided, return_complex, align):
    """The spectrum of each n_fft elements of a signal, hop_length apart, by frequency and frame."""
    if x.rank not in (1, 2) or x.dtype.kind not in ("float", "complex"):
        raise ShapeError(f"stft takes one signal of floats, or rows of them, not {x.type}")
    is_complex = x.dtype.is_complex or (window is not None and window.dtype.is_complex)
    if return_complex is None and not is_complex:
        raise ArgumentError("stft: say whether the result is to be complex", help="return_complex=True")
    hop, length, weights = _settings("stft", n_fft, hop_length, win_length, window, x.dtype)
    if align:
        before = (n_fft - length) // 2
        low, high = [0] * x.rank, [0] * x.rank
        low[-1], high[-1] = before, n_fft - length - before
        x = flat.pad(x, low, high)
    if not 0 < n_fft <= x.shape[-1]:
        raise ShapeError(f"stft: n_fft, {n_fft}, is from 1 to the length of the signal, {x.shape[-1]}")
    onesided = not is_complex if onesided is None else onesided
    if onesided and is_complex:
        raise ArgumentError("stft: half a spectrum does not tell a complex signal", help="onesided=False")
    frames = 1 + (x.shape[-1] - n_fft) // hop
    parts = _times(flat.take(x, _places(frames, hop, n_fft), x.rank - 1), weights)
    norm, last = "ortho" if normalized else "backward", parts.rank - 1
    if onesided:
        found = real_to_complex("stft", parts, [last], [n_fft], norm)
    else:
        found = complex_to_complex("stft", parts, [last], [n_fft], norm, False)
    found = flat.swap(found, -1, -2)
    return found if return_complex or return_complex is None else view_as_real(found)


def _added(parts, hop, length):
    """Frames (n, frame, element) added up where they overlap."""
    count, frames, n_fft = parts.shape
    places = flat.reshape(_places(frames, hop, n_fft), (frames * n_fft, 1))
    numbers = flat.ScatterDimensions((0,), (1,), (1,), 1)
    updates = flat.reshape(parts, (count, frames * n_fft))
    return flat.scatter(flat.full((count, length), 0, parts.dtype), places, updates, numbers, "add")


def _inverses():
    calls = []
    for kind, real in (("complex64", "float32"), ("complex128", "float64")):
        half, whole = T(5, 6, dtype=kind), T(8, 6, dtype=kind)
        calls += [
            S(half, 8),
            S(T(2, 5, 6, dtype=kind), 8, 2, 6, T(6, dtype=real, low=0.5, high=1)),
            S(half, 8, length=20),
            S(half, 8, 4, center=False, normalized=True),
            S(whole, 8, onesided=False, return_complex=True),
            S(whole, 8, onesided=False, length=3),
        ]
    return calls


@op(
    "istft(Tensor self, int n_fft, int? hop_length=None, int? win_length=None, Tensor? window=None, "
    "bool center=True, bool normalized=False, bool? onesided=None, int? length=None, "
    "bool return_complex=False) -> Tensor",
    samples=_inverses,
)
def istft(x, n_fft, hop_length, win_length, window, center, normalized, onesided, length, return_complex):
    """The signal whose `stft` comes nearest to x: frames added up, over the sum of the windows' squares."""
    if not x.dtype.is_complex:
        raise DTypeError(f"istft takes complex spectra, not {x.dtype.name}", help="use view_as_complex")
    if x.rank not in (2, 3) or not x.numel:
        raise ShapeError(f"istft takes frequencies by frames, or rows of them, not {x.type}")
    size, frames = x.shape[-2:]
    onesided = size != n_fft if onesided is None else onesided
    if size != (n_fft // 2 + 1 if onesided else n_fft):
        raise ShapeError(f"istft: {size} frequencies do not fit n_fft={n_fft}")
    if onesided and return_complex:
        raise ArgumentError("istft: half a spectrum tells a real signal alone", help="onesided=False")
    if not return_complex and window is not None and window.dtype.is_complex:
        raise DTypeError("istft: a complex window gives a complex signal", help="return_complex=True")
    real = x.dtype.to_real()
    hop, taken, weights = _settings("istft", n_fft, hop_length, win_length, window, real)
    if hop > taken:
        raise ArgumentError(f"istft: hop_length {hop} leaves gaps between windows of {taken}")
    weights = flat.full((n_fft,), 1, real) if weights is None else weights
    spectra = flat.swap(x if x.rank == 3 else flat.unsqueeze(x, 0), -1, -2)
    norm = "ortho" if normalized else "backward"
    if return_complex:
        parts = complex_to_complex("istft", spectra, [2], [n_fft], norm, True)
    else:
        parts = complex_to_real("istft", spectra, [2], [n_fft], norm)
    whole = n_fft + hop * (frames - 1)
    signal = _added(_times(parts, weights), hop, whole)
    squares = flat.broadcast_to(flat.reshape(weights * weights, (1, 1, n_fft)), (1, frames, n_fft))
    envelope = _added(squares, hop, whole)
    start = n_fft // 2 if center else 0
    end = start + length if length is not None else whole - start
    inside = min(end, whole)
    signal, envelope = (flat.slice_dim(each, 1, start, inside) for each in (signal, envelope))
    signal = flat.check(
        signal,
        flat.abs(envelope) > 1e-11,
        ArgumentError,
        "istft: the windows leave elements of the signal without weight",
    )
    signal = signal / flat.convert(envelope, signal.dtype)
    if end > inside:
        signal = flat.pad(signal, (0, 0), (0, end - inside))
    return signal if x.rank == 3 else flat.squeeze(signal, 0)
