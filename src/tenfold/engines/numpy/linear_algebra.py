"""Kernels of linear algebra: Cholesky factors and triangular systems by NumPy, LAPACK's routines by SciPy.

All take stacks of matrices. A matrix that cannot be factored gives NaN, or LAPACK's `info`, and no exception.
"""

from __future__ import annotations

import functools
import importlib.machinery
import importlib.util
import os
import sys
from typing import Any

import numpy as np

from tenfold.base.errors import MissingEngine
from tenfold.engines.numpy.kernels import Array, Kernel, widened


def cholesky(op: Any) -> Kernel:
    """One column after the other, of all matrices at once; NaN throughout where one is not positive."""
    lower = op.lower

    def kernel(x: Array) -> Array:
        if not lower:
            return _adjoint(factor(_adjoint(x)))
        return factor(x)

    def factor(x: Array) -> Array:
        result = np.zeros_like(x)
        for j in range(x.shape[-1]):
            row = result[..., j, :j]
            rest = x[..., j:, j] - np.matmul(result[..., j:, :j], row.conj()[..., None])[..., 0]
            pivot = rest[..., :1].real
            result[..., j:, j] = rest / np.where(pivot > 0, np.sqrt(np.abs(pivot)), np.nan)
        failed = np.isnan(np.diagonal(result, axis1=-2, axis2=-1)).any(-1)
        lower_part = np.tril(np.ones(x.shape[-2:], bool))
        return np.where(failed[..., None, None] & lower_part, x.dtype.type(np.nan), result)

    return widened(kernel, op.x.dtype)


def _adjoint(x: Array) -> Array:
    return np.swapaxes(x, -1, -2).conj()


def triangular_solve(op: Any) -> Kernel:
    """By substitution, one row after the other, of all systems at once."""
    lower, unit, transposed = op.lower, op.unit_diagonal, op.transpose_a

    def kernel(a: Array, b: Array) -> Array:
        below = lower
        if transposed != "NO_TRANSPOSE":
            a, below = np.swapaxes(a, -1, -2), not below
            a = a.conj() if transposed == "ADJOINT" else a
        if op.left_side:
            return substituted(a, b, below, unit)
        return np.swapaxes(
            substituted(np.swapaxes(a, -1, -2), np.swapaxes(b, -1, -2), not below, unit), -1, -2
        )

    return widened(kernel, op.a.dtype)


def substituted(a: Array, b: Array, lower: bool, unit: bool) -> Array:
    """X of a X = b."""
    result = b.copy()
    extent = a.shape[-1]
    for i in range(extent) if lower else reversed(range(extent)):
        known = slice(0, i) if lower else slice(i + 1, extent)
        rest = b[..., i, :] - np.matmul(a[..., None, i, known], result[..., known, :])[..., 0, :]
        result[..., i, :] = rest if unit else rest / a[..., i, i, None]
    return result


@functools.cache
def lapack() -> Any:
    """SciPy's LAPACK and BLAS."""
    try:
        return tuple([_extension(each) for each in ("_flapack", "_fblas")])
    except ImportError as error:
        raise MissingEngine(
            f"linear algebra needs SciPy's LAPACK, which cannot be imported ({error})",
            help="pip install scipy",
        ) from None


def _extension(name: str) -> Any:
    """A module in C of scipy.linalg's, without the package around it, which takes long to import; by its own
    name, so that an import of the package finds the same."""
    whole = f"scipy.linalg.{name}"
    scipy = None if whole in sys.modules else importlib.util.find_spec("scipy")
    for folder in (scipy.submodule_search_locations or ()) if scipy else ():
        for suffix in importlib.machinery.EXTENSION_SUFFIXES:
            path = os.path.join(folder, "linalg", name + suffix)
            spec = importlib.util.spec_from_file_location(whole, path) if os.path.exists(path) else None
            if spec is not None and spec.loader is not None:
                module = sys.modules[whole] = importlib.util.module_from_spec(spec)
                spec.loader.exec_module(module)
                return module
    from scipy.linalg import _fblas, _flapack

    return _flapack if name == "_flapack" else _fblas


def lapack_call(op: Any, prefix: str, routine: Any) -> Kernel:
    """A call of one of the routines below, on each matrix of a stack."""
    lapack()
    letters = {name: chr(int(str(value).split()[0])) for name, value in op.backend_config}
    types = op.result_types
    stack = op.inputs[0].shape[:-2]

    def kernel(*arrays: Array) -> Any:
        results = [np.zeros(each.shape, each.dtype.numpy) for each in types]
        for place in np.ndindex(*stack):
            found = routine(prefix, letters, *[array[place] for array in arrays])
            for result, value in zip(results, found, strict=True):
                if value is not None:
                    result[place] = value
        return results if len(results) > 1 else results[0]

    return kernel


Matrices = tuple[Any, ...]


def _routine(prefix: str, name: str) -> Any:
    return getattr(lapack()[0], prefix + name)


def _potrf(prefix: str, letters: dict[str, str], x: Array) -> Matrices:
    factor, info = _routine(prefix, "potrf")(x, lower=letters["uplo"] == "L", clean=0)
    return factor, info


def _getrf(prefix: str, letters: dict[str, str], x: Array) -> Matrices:
    packed, pivots, info = _routine(prefix, "getrf")(x)
    return packed, pivots + 1, info  # LAPACK counts from 1, SciPy from 0


def _geqrf(prefix: str, letters: dict[str, str], x: Array) -> Matrices:
    packed, scales, _, _ = _routine(prefix, "geqrf")(x)
    return packed, scales


def _orgqr(prefix: str, letters: dict[str, str], vectors: Array, scales: Array) -> Matrices:
    name = "ungqr" if prefix in "cz" else "orgqr"
    return (_routine(prefix, name)(vectors, scales)[0],)


def _gesdd(prefix: str, letters: dict[str, str], x: Array) -> Matrices:
    mode = letters["mode"]
    u, s, vh, info = _routine(prefix, "gesdd")(x, compute_uv=int(mode != "N"), full_matrices=int(mode == "A"))
    return (x, s, None, None, info) if mode == "N" else (x, s, u, vh, info)


def _syevd(prefix: str, letters: dict[str, str], x: Array) -> Matrices:
    name = "heevd" if prefix in "cz" else "syevd"
    vectors = letters["mode"] == "V"
    w, v, info = _routine(prefix, name)(x, compute_v=int(vectors), lower=int(letters["uplo"] == "L"))
    return v if vectors else x, w, info


def _geev(prefix: str, letters: dict[str, str], x: Array) -> Matrices:
    right = letters["compute_right"] == "V"
    if prefix in "cz":
        w, _, vectors, info = _routine(prefix, "geev")(x, compute_vl=0, compute_vr=int(right))
        return w, None, vectors if right else None, info
    real, imag, _, vectors, info = _routine(prefix, "geev")(x, compute_vl=0, compute_vr=int(right))
    return real, imag, None, _paired(imag, vectors) if right else None, info


def _paired(imag: Array, vectors: Array) -> Array:
    """Complex vectors: LAPACK puts a conjugate pair in two columns, real parts and imaginary ones."""
    result = vectors.astype(np.complex64 if vectors.dtype == np.float32 else np.complex128)
    j = 0
    while j < len(imag):
        if imag[j]:
            result[:, j] = vectors[:, j] + 1j * vectors[:, j + 1]
            result[:, j + 1] = vectors[:, j] - 1j * vectors[:, j + 1]
            j += 1
        j += 1
    return result


def _trsm(prefix: str, letters: dict[str, str], a: Array, b: Array) -> Matrices:
    solve = getattr(lapack()[1], prefix + "trsm")
    transposed = "NTC".index(letters["trans_x"])
    side, lower, unit = letters["side"] == "R", letters["uplo"] == "L", letters["diag"] == "U"
    return (solve(1.0, a, b, side=int(side), lower=int(lower), trans_a=transposed, diag=int(unit)),)


ROUTINES: dict[str, Any] = {
    "potrf": _potrf,
    "getrf": _getrf,
    "geqrf": _geqrf,
    "orgqr": _orgqr,
    "ungqr": _orgqr,
    "gesdd": _gesdd,
    "syevd": _syevd,
    "heevd": _syevd,
    "geev": _geev,
    "trsm": _trsm,
}
