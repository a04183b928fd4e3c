"""Linear algebra on CUDA: LAPACK's calls become cuSOLVER's; on a machine with a GPU, with NumPy's values."""

from __future__ import annotations

import numpy as np
import pytest

import tenfold as tn
from tenfold.mlir import stablehlo
from tenfold.ops.cusolver import on_cuda
from tenfold.runtime.calls import record_call
from tenfold.trace.lower import lower

DTYPES = [tn.float32, tn.float64, tn.complex64, tn.complex128]
SHAPES = [(5, 5), (2, 3, 4, 4), (40, 40), (7, 4), (4, 7), (3, 50, 40), (40, 50)]
gpu = pytest.mark.skipif(not tn.cuda.is_available(), reason="there is no GPU here")


def matrices(shape, dtype, definite=False):
    random = np.random.default_rng(0)
    x = random.normal(size=shape)
    if dtype.is_complex:
        x = x + 1j * random.normal(size=shape)
    if definite:
        x = x @ x.conj().swapaxes(-1, -2) + shape[-1] * np.eye(shape[-1])
    return x.astype(dtype.numpy)


CALLS = {
    "cholesky": lambda x: tn.linalg.cholesky(x),
    "lu": lambda x: tn.linalg.lu(x),
    "qr": lambda x: tn.linalg.qr(x),
    "svd": lambda x: tn.linalg.svd(x, full_matrices=False),
    "eigh": lambda x: tn.linalg.eigh(x),
    "eig": lambda x: tn.linalg.eig(x),
    "solve": lambda x: tn.linalg.solve(x, x),
}
TARGETS = {
    "cholesky": ["potrf"], "lu": ["getrf"], "qr": ["geqrf", "orgqr"], "svd": ["gesvdj"],
    "eigh": ["syevd"], "eig": ["geev"], "solve": ["getrf"],
}  # fmt: skip


@pytest.mark.parametrize("dtype", [tn.float32, tn.complex128])
@pytest.mark.parametrize("name", CALLS)
def test_a_program_for_cuda_calls_cusolver_and_never_lapack(name, dtype):
    trace = record_call(CALLS[name], (tn.tensor(matrices((2, 4, 4), dtype)),), {}, tn.Tensor).recording.trace
    function = on_cuda(lower(trace))
    text = stablehlo.emit(function).text()
    assert "lapack" not in text
    for target in TARGETS[name]:
        assert f"@cusolver_{target}_ffi" in text
    assert [each.type for each in function.results] == [trace.type_of(*each) for each in trace.outputs]


def test_large_wide_matrices_are_decomposed_by_rows():
    x = tn.ones(2, 1100, 1200)
    trace = record_call(CALLS["svd"], (x,), {}, tn.Tensor).recording.trace
    text = stablehlo.emit(on_cuda(lower(trace))).text()
    assert "@cusolver_gesvd_ffi" in text
    assert "transposed = true" in text


def close(found, expected, dtype):
    wide = dtype in (tn.float64, tn.complex128)
    scale = max(1.0, float(np.abs(expected).max()))
    np.testing.assert_allclose(found, expected, atol=scale * (1e-9 if wide else 2e-4), rtol=0)


def adjoint(x):
    return x.conj().swapaxes(-1, -2)


@gpu
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
def test_factors_multiply_to_the_matrix(shape, dtype):
    x = matrices(shape, dtype)
    given = tn.tensor(x, device="cuda")
    for full in (False, True):
        u, s, vh = [each.cpu().numpy() for each in tn.linalg.svd(given, full_matrices=full)]
        k = s.shape[-1]
        close((u[..., :k] * s[..., None, :]) @ vh[..., :k, :], x, dtype)
        close(
            adjoint(u) @ u,
            np.broadcast_to(np.eye(u.shape[-1]), adjoint(u).shape[:-2] + (u.shape[-1],) * 2),
            dtype,
        )
    close(tn.linalg.svdvals(given).cpu().numpy(), np.linalg.svd(x, compute_uv=False), dtype)
    for mode in ("reduced", "complete"):
        q, r = [each.cpu().numpy() for each in tn.linalg.qr(given, mode=mode)]
        close(q @ r, x, dtype)
    p, low, up = [each.cpu().numpy() for each in tn.linalg.lu(given)]
    close(p @ low @ up, x, dtype)


@gpu
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(5, 5), (2, 3, 4, 4), (60, 60)])
def test_square_matrices(shape, dtype):
    x, definite = matrices(shape, dtype), matrices(shape, dtype, definite=True)
    given, positive = tn.tensor(x, device="cuda"), tn.tensor(definite, device="cuda")
    for upper in (False, True):
        factor = tn.linalg.cholesky(positive, upper=upper).cpu().numpy()
        close(adjoint(factor) @ factor if upper else factor @ adjoint(factor), definite, dtype)
    for side in ("L", "U"):
        w, v = [each.cpu().numpy() for each in tn.linalg.eigh(positive, UPLO=side)]
        close(definite @ v, v * w[..., None, :], dtype)
    w, v = [each.cpu().numpy() for each in tn.linalg.eig(given)]
    close(x @ v, v * w[..., None, :], dtype)
    right = matrices((*shape[:-1], 3), dtype)
    close(x @ tn.linalg.solve(given, tn.tensor(right, device="cuda")).cpu().numpy(), right, dtype)
    close(tn.linalg.inv(given).cpu().numpy() @ x, np.broadcast_to(np.eye(shape[-1]), shape), dtype)
    if shape[-1] < 10:  # that of a larger one is beyond float32
        close(tn.linalg.det(given).cpu().numpy(), np.linalg.det(x), dtype)


@gpu
def test_gradients_flow_and_failures_are_told():
    x = tn.tensor(matrices((6, 6), tn.float64, definite=True), device="cuda", requires_grad=True)
    (tn.linalg.cholesky(x).sum() + tn.linalg.eigvalsh(x).sum() + tn.linalg.svdvals(x).sum()).backward()
    y = x.detach().cpu().requires_grad_()
    (tn.linalg.cholesky(y).sum() + tn.linalg.eigvalsh(y).sum() + tn.linalg.svdvals(y).sum()).backward()
    np.testing.assert_allclose(x.grad.cpu().numpy(), y.grad.numpy(), atol=1e-9)
    with pytest.raises(RuntimeError):
        tn.linalg.cholesky(-tn.eye(3, device="cuda")).cpu()


@gpu
def test_large_matrices_both_ways():
    for shape in ((1100, 1050), (1050, 1100)):
        x = matrices(shape, tn.float64)
        u, s, vh = [
            each.cpu().numpy() for each in tn.linalg.svd(tn.tensor(x, device="cuda"), full_matrices=False)
        ]
        close((u * s) @ vh, x, tn.float64)
