"""Linear algebra beyond the generated samples: what vectors are determined up to, singular matrices,
gradients of losses that do not see a sign or a phase, batching, and where LAPACK comes from."""

import os
import subprocess
import sys

import numpy as np
import pytest
import torch

import tenfold as tn
from tenfold.base.devices import Device
from tenfold.base.errors import TenfoldError, UnsupportedError
from tenfold.engines import xla
from tenfold.flat import TensorType, Value
from tenfold.flat.ir import Function
from tenfold.mlir import stablehlo
from tenfold.ops import lapack

DTYPES = (np.float32, np.float64, np.complex64, np.complex128)
SLACK = {np.dtype(d): 2e-5 if d in (np.float32, np.complex64) else 1e-12 for d in DTYPES}


def matrices(shape, dtype=np.float64, seed=0):
    rng = np.random.default_rng(seed)
    found = rng.normal(size=shape)
    if np.dtype(dtype).kind == "c":
        found = found + 1j * rng.normal(size=shape)
    return found.astype(dtype)


def near(found, expected, slack):
    np.testing.assert_allclose(found, expected, rtol=slack, atol=slack)


# Vectors: what they compose to, and that they are orthonormal


def test_singular_vectors_compose_to_the_matrix():
    cases = []
    for dtype in DTYPES:
        for shape in ((4, 4), (2, 5, 3), (3, 5)):
            for full in (False, True):
                a = matrices(shape, dtype)
                cases.append((a, full, tn.linalg.svd(tn.tensor(a), full_matrices=full)))
    tn.eval(*[each for _, _, found in cases for each in found])
    for a, full, found in cases:
        u, s, vh = (each.numpy() for each in found)
        slack, k = SLACK[a.dtype], min(a.shape[-2:])
        reference = torch.linalg.svd(torch.from_numpy(a), full_matrices=full)
        assert [each.shape for each in (u, s, vh)] == [tuple(each.shape) for each in reference]
        near(s, reference.S.numpy(), slack)
        near(u[..., :k] * s[..., None, :] @ vh[..., :k, :], a, slack)
        near(
            u.conj().swapaxes(-1, -2) @ u,
            np.broadcast_to(np.eye(u.shape[-1]), (*u.shape[:-2], u.shape[-1], u.shape[-1])),
            slack,
        )


def test_eigenvectors_are_what_the_matrix_only_stretches():
    cases = []
    for dtype in DTYPES:
        for uplo in "LU":
            a = matrices((2, 4, 4), dtype)
            cases.append((a, uplo, tn.linalg.eigh(tn.tensor(a), UPLO=uplo)))
        a = matrices((2, 4, 4), dtype)
        cases.append((a, None, tn.linalg.eig(tn.tensor(a))))
    tn.eval(*[each for _, _, found in cases for each in found])
    for a, uplo, found in cases:
        values, vectors = (each.numpy() for each in found)
        if uplo is not None:
            half = np.tril(a, -1) if uplo == "L" else np.triu(a, 1)
            on = np.einsum("bii->bi", a).real[..., None] * np.eye(4)
            a = half + half.conj().swapaxes(-1, -2) + on.astype(a.dtype)
            assert (np.diff(values) >= 0).all()
        near(a @ vectors, vectors * values[..., None, :], 20 * SLACK[np.dtype(found[0].dtype.numpy)])


# Gradients of losses that depend on no sign and no phase


def weights(shape):
    return np.random.default_rng(7).normal(size=shape)


def weighted(t, *tensors):
    """A sum of real tensors' elements, each with a weight of its own."""
    make = tn.tensor if t is tn else torch.tensor
    return sum((each * make(weights(tuple(each.shape)))).sum() for each in tensors)


def of_svd(t, x):
    u, s, vh = t.linalg.svd(x, full_matrices=False)
    return weighted(t, u.abs() ** 2, s, vh.abs() ** 2, (u @ vh).real)


def of_eigh(t, x):
    values, vectors = t.linalg.eigh(x[..., :3, :3])
    return weighted(t, values, vectors.abs() ** 2)


def of_eig(t, x):
    values, vectors = t.linalg.eig(x[..., :3, :3])
    return weighted(t, values.abs(), vectors.abs() ** 2)


LOSSES = {
    "svd": of_svd,
    "one side of svd": lambda t, x: weighted(t, t.linalg.svd(x, full_matrices=False)[0].abs() ** 2),
    "all of one side": lambda t, x: weighted(t, t.linalg.svd(x)[2][..., :3, :].abs() ** 2),
    "eigh": of_eigh,
    "eig": of_eig,
    "eigvals": lambda t, x: weighted(t, t.linalg.eigvals(x[..., :3, :3]).abs()),
    "matrix_exp": lambda t, x: weighted(t, t.matrix_exp(x[..., :3, :3]).abs()),
}


@pytest.mark.parametrize("name", LOSSES)
def test_gradients_that_see_no_sign_are_pytorchs(name):
    """Of the first order, and of the second along a direction."""
    found, expected = [], []
    for dtype in (np.float64, np.complex128):
        for shape in ((2, 4, 3), (3, 4)):
            a, along = matrices(shape, dtype, 3), matrices(shape, dtype, 4)
            for t, make, results in ((tn, tn.tensor, found), (torch, torch.tensor, expected)):
                x = make(a).requires_grad_()
                loss = LOSSES[name](t, x)
                (first,) = t.autograd.grad(loss, x, create_graph=True)
                slope = (first.real * make(along.real)).sum()
                if dtype is np.complex128:
                    slope = slope + (first.imag * make(along.imag)).sum()
                results += [first.detach(), t.autograd.grad(slope, x)[0]]
    tn.eval(*found)
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_allclose(ours.numpy(), theirs.resolve_conj().numpy(), rtol=1e-7, atol=1e-7)


def test_forward_mode_agrees_with_reverse_mode():
    a, along = tn.tensor(matrices((3, 3))), tn.tensor(matrices((3, 3), seed=1))
    functions = [tn.linalg.inv, tn.linalg.det, tn.linalg.svdvals, tn.matrix_exp, lambda x: tn.linalg.qr(x)[1]]
    for function in functions:
        _, ahead = tn.func.jvp(function, (a,), (along,))
        back = (tn.func.jacrev(function)(a) * along).sum((-2, -1))
        near(ahead.numpy(), back.detach().numpy(), 1e-10)


def test_what_qr_leaves_out_has_no_gradient():
    x = tn.tensor(matrices((4, 3))).requires_grad_()
    for mode in ("r", "complete"):
        with pytest.raises(UnsupportedError, match=mode):
            tn.autograd.grad(tn.linalg.qr(x, mode)[1].sum(), x)[0].numpy()


# Matrices that have no such factors


SINGULAR = np.array([[1.0, 2.0], [2.0, 4.0]])


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda x: tn.linalg.cholesky(x - 5), "positive-definite"),
        (lambda x: tn.linalg.cholesky_ex(x - 5, check_errors=True).L, "positive-definite"),
        (tn.linalg.inv, "singular"),
        (lambda x: tn.linalg.solve(x, x), "singular"),
        (lambda x: tn.linalg.lu_factor(x)[0], "singular"),
        (lambda x: tn.linalg.tensorinv(x, 1), "singular"),
    ],
)
def test_a_matrix_without_such_factors_is_an_error(call, says):
    with pytest.raises(tn.linalg.LinAlgError, match=says):
        call(tn.tensor(SINGULAR)).numpy()


def test_info_tells_where_it_failed_as_in_pytorch():
    stack = np.stack([SINGULAR, np.eye(2), -np.eye(2)])
    for name in ("cholesky_ex", "inv_ex", "lu_factor_ex"):
        ours, theirs = (
            getattr(tn.linalg, name)(tn.tensor(stack)),
            getattr(torch.linalg, name)(torch.tensor(stack)),
        )
        assert ours.info.tolist() == theirs.info.tolist()
    assert tn.linalg.solve_ex(tn.tensor(SINGULAR), tn.ones(2, dtype=tn.float64)).info.item() == 2


def test_condition_of_a_singular_matrix_is_infinite():
    stack = tn.tensor(np.stack([SINGULAR, np.eye(2)]))
    assert tn.linalg.cond(stack, 1).tolist() == [float("inf"), 1.0]
    assert tn.linalg.matrix_rank(stack).tolist() == [1, 2]


def test_pivots_that_are_no_rows_are_an_error():
    pivots = tn.tensor([1, 9], dtype=tn.int32)
    with pytest.raises(IndexError, match="pivots"):
        tn.linalg.lu_solve(tn.eye(2), pivots, tn.ones(2, 1)).numpy()
    with pytest.raises(TypeError, match="int32"):
        tn.lu_unpack(tn.eye(2), tn.tensor([1, 2]))


@pytest.mark.parametrize("bad", [tn.ones(3), tn.ones(2, 3), tn.ones(2, 2, dtype=tn.int64)])
def test_what_is_no_square_matrix_of_floats_is_refused(bad):
    for function in (tn.linalg.inv, tn.linalg.det, tn.linalg.eigh, tn.linalg.cholesky):
        with pytest.raises((ValueError, TypeError)):
            function(bad)


# Larger matrices, batches, and the engine


def test_larger_systems_are_solved_to_the_last_digits():
    a, b = matrices((200, 200)), matrices((200, 7))
    found = tn.linalg.solve(tn.tensor(a), tn.tensor(b))
    inverse, (q, r) = tn.linalg.inv(tn.tensor(a)), tn.linalg.qr(tn.tensor(a))
    tn.eval(found, inverse, q, r)
    near(a @ found.numpy(), b, 1e-9)
    near(a @ inverse.numpy(), np.eye(200), 1e-9)
    near(q.numpy() @ r.numpy(), a, 1e-11)
    spectral = tn.linalg.matrix_norm(tn.tensor(a), 2)
    near(spectral.numpy(), np.linalg.norm(a, 2), 1e-10)


def test_vmap_runs_lapack_on_the_whole_stack():
    stack = matrices((5, 3, 3))
    positive = stack @ stack.swapaxes(-1, -2) + np.eye(3)
    for function in (tn.linalg.inv, tn.linalg.cholesky, tn.linalg.svdvals, tn.linalg.det, tn.linalg.eigvalsh):
        ours = tn.func.vmap(function)(tn.tensor(positive))
        near(ours.numpy(), function(tn.tensor(positive)).numpy(), 1e-12)


def lapack_module():
    x = Value(TensorType(tn.float32, (2, 3, 3)))
    return stablehlo.emit(Function([x], lapack.getrf(x), "main"))


def test_matrices_lie_by_columns_in_the_call():
    text = lapack_module().text()
    assert "@lapack_sgetrf_ffi" in text
    assert "operand_layouts = [dense<[1, 2, 0]> : tensor<3xindex>]" in text


def test_lapack_is_refused_on_cuda():
    with pytest.raises(TenfoldError, match="sgetrf runs on the CPU alone|needs XLA's CUDA plugin"):
        xla.provide(lapack_module(), Device("cuda"))


def test_a_stored_program_finds_lapack_again(tmp_path):
    """The second process loads what the first compiled, and must make the same routines known."""
    program = (
        "import tenfold as tn\n"
        "from tenfold.runtime.executables import counting_compiles\n"
        "with counting_compiles() as compiles:\n"
        "    value = tn.linalg.inv(tn.eye(3) * 2).sum().item()\n"
        "print(value, compiles)\n"
    )
    environment = {**os.environ, "TENFOLD_CACHE_DIR": str(tmp_path)}
    run = lambda: subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
    ).stdout.strip()
    assert [run(), run()] == ["1.5 1 compiles", "1.5 0 compiles"]


@pytest.mark.parametrize("hermitian", [False, True])
def test_symmetric_factors_take_two_rows_where_none_is_large_enough(hermitian):
    rng = np.random.default_rng(0)
    a = rng.normal(size=(2, 7, 7)) + 1j * rng.normal(size=(2, 7, 7))
    a = a + (a.conj() if hermitian else a).swapaxes(1, 2)
    a[:, range(7), range(7)] = 0
    b = rng.normal(size=(2, 7, 3)) + 0j
    expected, pivots = torch.linalg.ldl_factor(torch.tensor(a), hermitian=hermitian)
    factors, found = tn.linalg.ldl_factor(tn.tensor(a), hermitian=hermitian)
    assert found.tolist() == pivots.tolist() and found.min().item() < 0
    np.testing.assert_allclose(factors.numpy(), expected.numpy(), atol=1e-12)
    solved = tn.linalg.ldl_solve(factors, found, tn.tensor(b), hermitian=hermitian)
    np.testing.assert_allclose(a @ solved.numpy(), b, atol=1e-10)


def test_symmetric_factors_of_nothing_and_of_zeros():
    assert tn.linalg.ldl_factor(tn.zeros(0, 0))[0].shape == (0, 0)
    assert tn.linalg.ldl_factor_ex(tn.zeros(2, 2)).info.item() == 1
    with pytest.raises(tn.linalg.LinAlgError, match="D has a zero on its diagonal"):
        tn.linalg.ldl_factor(tn.zeros(2, 2))[0].tolist()
    x = tn.eye(2, requires_grad=True)
    with pytest.raises(tn.UnsupportedError, match="no derivative by the matrix of ldl_factor"):
        tn.autograd.grad(tn.linalg.ldl_factor(x)[0].sum(), x)[0].tolist()


@pytest.mark.parametrize("driver", ["gels", "gelsd", "gelss"])
@pytest.mark.parametrize("rcond", [None, 0.4, 0.9, 1.0, 0.0, -1.0])
def test_least_squares_count_small_singular_values_as_lapacks_drivers_do(driver, rcond):
    a, b = [[1.0, 0.0], [0.0, 0.2], [0.0, 0.0]], [[1.0], [2.0], [3.0]]
    ours = tn.linalg.lstsq(tn.tensor(a), tn.tensor(b), rcond=rcond, driver=driver)
    golden = torch.linalg.lstsq(torch.tensor(a), torch.tensor(b), rcond=rcond, driver=driver)
    for name in ("solution", "rank", "singular_values"):
        mine, theirs = torch.tensor(getattr(ours, name).tolist()), getattr(golden, name)
        torch.testing.assert_close(mine, theirs, check_dtype=False, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("order", [-1, -2, -np.inf])
def test_the_smallest_of_no_values_is_no_norm(order):
    for package in (tn, torch):
        with pytest.raises(IndexError):
            package.linalg.norm(package.zeros(0, 0), order)


@pytest.mark.parametrize("matrix", [[[0.0]], [[3.0]], [[1, 2], [2, 4]], [[0, 0], [0, 0]], [[0, 1], [0, 1]]])
@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_the_gradient_of_a_determinant_that_is_zero_is_pytorchs(matrix, dtype):
    grads = []
    for package in (tn, torch):
        x = package.tensor([matrix, matrix], dtype=getattr(package, dtype), requires_grad=True)
        package.linalg.det(x).real.sum().backward()
        grads.append(x.grad.tolist())
    assert grads[0] == grads[1]


@pytest.mark.parametrize("power", [0, 1, 2, -1])
def test_powers_that_are_copies_are_written_into_a_wider_out(power):
    def program(library):
        out = library.empty(2, 2, dtype=library.float64)
        return library.linalg.matrix_power(library.eye(2) * 3, power, out=out).tolist()

    if power in (0, 1):
        assert program(tn) == program(torch)
        return
    for library in (tn, torch):
        with pytest.raises(RuntimeError):
            program(library)


def test_lu_factors_a_singular_matrix_and_lu_factor_refuses_it():
    for t in (tn, torch):
        matrix = t.tensor([[1.0, 2.0], [2.0, 4.0]])
        factors, pivots = t.lu(matrix)
        assert factors.tolist() == [[2, 4], [0.5, 0]] and pivots.tolist() == [2, 2]
        with pytest.raises(RuntimeError):
            t.linalg.lu_factor(matrix)[0].tolist()


def test_the_logarithm_of_a_determinant_is_nan_where_that_is_negative():
    x = np.array([[[2.0, 1], [1, 3]], [[1, 2], [3, 4]], [[1, 2], [2, 4]]], np.float64)
    np.testing.assert_allclose(tn.logdet(tn.tensor(x)).numpy(), torch.logdet(torch.tensor(x)).numpy())
    turned = x * 1j
    found = tn.logdet(tn.tensor(turned)).numpy()[:2]
    np.testing.assert_allclose(found, torch.logdet(torch.tensor(turned)).numpy()[:2])


def of_both(function, *arrays):
    """The gradients of a sum of what a function gives, by us and by PyTorch."""
    found = []
    for library in (tn, torch):
        tensors = [library.tensor(each, requires_grad=True) for each in arrays]
        results = function(library, *tensors)
        sum((each.sin() * 2).sum() for each in results).backward()
        found.append([each.grad.numpy() for each in tensors])
    return zip(*found, strict=True)


def test_gradients_of_factors_and_distances_are_pytorchs():
    random = np.random.default_rng(0)
    wide, rows, others = (random.normal(size=shape) for shape in ((3, 5), (2, 30, 4), (2, 27, 4)))
    for ours, theirs in (
        *of_both(lambda library, x: library.linalg.qr(x), wide),
        *of_both(lambda library, x, y: [library.cdist(x, y)], rows, others),  # by a product of matrices
        *of_both(lambda library, x, y: [library.cdist(x, y)], rows[:, :5], others[:, :6]),
        *of_both(lambda library, x, y: [library.copysign(x, y) ** 3], rows[0], -rows[0][::-1].copy()),
    ):
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-11)
