"""The kernel of the discrete Fourier transform, in the precision of its operand."""

from __future__ import annotations

from typing import Any

import numpy as np

from tenfold.engines.numpy.kernels import Array, Kernel


def fft(op: Any) -> Kernel:
    kind, lengths, result = op.fft_type, op.fft_length, op.result
    axes = tuple(range(-len(lengths), 0))
    dtype = result.dtype.numpy
    if not op.x.numel or not result.numel:
        return lambda x: np.zeros(result.shape, dtype)
    transforms: dict[str, Kernel] = {
        "FFT": lambda x: np.fft.fftn(x, lengths, axes),
        "IFFT": lambda x: np.fft.ifftn(x, lengths, axes),
        "RFFT": lambda x: np.fft.rfftn(x, lengths, axes),
        "IRFFT": lambda x: np.fft.irfftn(x, lengths, axes),
    }
    transform = transforms[kind]

    def kernel(x: Array) -> Array:
        return transform(x).astype(dtype, copy=False)

    return kernel
