"""Fourier transforms beyond the generated samples: signals come back, gradients, sizes that are not small."""

import numpy as np
import pytest
import torch

import tenfold as tn


def signal(*shape, dtype=np.float64, seed=0):
    rng = np.random.default_rng(seed)
    found = rng.normal(size=shape)
    return (found + 1j * rng.normal(size=shape) if np.dtype(dtype).kind == "c" else found).astype(dtype)


def near(ours, theirs, slack=1e-9):
    np.testing.assert_allclose(ours.detach().numpy(), theirs.detach().resolve_conj().numpy(), slack, slack)


@pytest.mark.parametrize("norm", [None, "backward", "forward", "ortho"])
def test_inverse_transforms_bring_the_signal_back(norm):
    x = tn.tensor(signal(3, 4, 6, 5))
    z = tn.tensor(signal(3, 4, 5, dtype=np.complex128))
    pairs = [
        (tn.fft.ifft(tn.fft.fft(z, norm=norm), norm=norm), z),
        (tn.fft.irfft(tn.fft.rfft(x, norm=norm), 5, norm=norm), x),
        (tn.fft.hfft(tn.fft.ihfft(x, norm=norm), 5, norm=norm), x),
        (tn.fft.ifftn(tn.fft.fftn(x, norm=norm), norm=norm).real, x),
        (tn.fft.irfftn(tn.fft.rfftn(x, norm=norm), x.shape, norm=norm), x),
    ]
    tn.eval(*[each for pair in pairs for each in pair])
    for found, expected in pairs:
        np.testing.assert_allclose(found.numpy(), expected.numpy(), 1e-10, 1e-10)


def test_a_long_transform_is_pytorchs():
    array = signal(2, 10_007, dtype=np.float32)
    ours, theirs = tn.fft.rfft(tn.tensor(array)), torch.fft.rfft(torch.tensor(array))
    np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=1e-3, atol=1e-2)


def test_frames_of_a_signal_give_it_back():
    x, window = tn.tensor(signal(2, 400)), tn.hann_window(64, dtype=tn.float64)
    frames = tn.stft(x, 64, 16, window=window, return_complex=True)
    back = tn.istft(frames, 64, 16, window=window, length=400)
    np.testing.assert_allclose(back.numpy(), x.numpy(), 1e-10, 1e-10)


GRADIENTS = {
    "istft": lambda t, z: t.istft(z, 8, 2, onesided=True),
    "istft of a length": lambda t, z: t.istft(z, 8, 2, center=False, length=30, normalized=True),
    "irfft": lambda t, z: t.fft.irfft(z, 7),
    "irfftn": lambda t, z: t.fft.irfftn(z, (4, 6), norm="ortho"),
    "hfft": lambda t, z: t.fft.hfft(z),
    "_fft_c2c": lambda t, z: t._fft_c2c(z, (0, 1), 2, False),
    "_fft_c2r": lambda t, z: t._fft_c2r(z, (0, 1), 1, 11),
    "_fft_r2c": lambda t, z: t._fft_r2c(z.real, (0, 1), 1, True),
    "rfft2": lambda t, z: t.fft.rfft2(z.imag, (6, 4)),
}


@pytest.mark.filterwarnings("ignore:(The length of signal is shorter|A window was not provided)")
@pytest.mark.parametrize("name", GRADIENTS)
def test_gradients_are_pytorchs(name):
    array = signal(5, 6, dtype=np.complex128)
    gradients = []
    for t, make in ((tn, tn.tensor), (torch, torch.tensor)):
        z = make(array).requires_grad_()
        found = GRADIENTS[name](t, z)
        weights = make(
            signal(*found.shape, dtype=np.complex128 if found.is_complex() else np.float64, seed=1)
        )
        gradients += t.autograd.grad([found], [z], [weights])
    near(*gradients)


def test_windows_that_leave_gaps_are_an_error():
    frames = tn.ones(5, 6, dtype=tn.complex64)
    with pytest.raises(TypeError, match="without weight"):
        tn.istft(frames, 8, 8, window=tn.zeros(8)).numpy()


@pytest.mark.parametrize(
    "call",
    [
        lambda x: tn.fft.fft(x, 0),
        lambda x: tn.fft.fft(x, norm="double"),
        lambda x: tn.fft.rfft(x + 0j),
        lambda x: tn.fft.fftn(x, dim=(0, 0)),
        lambda x: tn.fft.fftn(x, (2, 2, 2)),
        lambda x: tn.fft.rfftn(x, dim=()),
        lambda x: tn.stft(x, 99, return_complex=True),
        lambda x: tn.stft(x, 2),
        lambda x: tn.istft(x, 4),
    ],
)
def test_what_cannot_be_transformed_is_refused(call):
    with pytest.raises((ValueError, TypeError)):
        call(tn.ones(3, 4))
