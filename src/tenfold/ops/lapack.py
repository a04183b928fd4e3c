"""LAPACK's routines as FlatIR calls, one helper for each: what the rows of linear algebra are made of.

They take stacks of matrices, check nothing and have no gradients. Of an empty matrix there is nothing to
compute, and LAPACK does not take it: those cases are answered here. `info` is LAPACK's own number, int32.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from tenfold import flat
from tenfold.base import dtypes
from tenfold.flat import TensorType, Value
from tenfold.flat.structured import CustomCall

PREFIXES = {dtypes.float32: "s", dtypes.float64: "d", dtypes.complex64: "c", dtypes.complex128: "z"}


def _call(
    routine: str,
    inputs: Sequence[Value],
    results: Sequence[TensorType],
    letters: dict[str, str] | None = None,
    overwritten: int = 0,
) -> tuple[Value, ...]:
    """A call whose first result takes the place of one input; the letters are what LAPACK's manual says.

    What has as many dimensions as the matrices is a matrix, and lies by columns.
    """
    rank = inputs[0].rank
    columns = [each.rank == rank for each in (*[x.type for x in inputs], *results)]
    config = [(name, f"{ord(letter)} : ui8") for name, letter in (letters or {}).items()]
    replaced = results[0] is inputs[overwritten].type
    target = f"lapack_{PREFIXES[inputs[0].dtype]}{routine}_ffi"
    return flat.custom_call(target, inputs, results, config, [(0, overwritten)] if replaced else (), columns)


def _type(x: Value, *extents: int) -> TensorType:
    """The type of a stack like x's, of tensors with these extents."""
    return TensorType(x.dtype, (*x.shape[:-2], *extents))


def _real(x: Value, *extents: int) -> TensorType:
    return TensorType(x.dtype.to_real(), (*x.shape[:-2], *extents))


def _info(x: Value) -> TensorType:
    return TensorType(dtypes.int32, x.shape[:-2])


def _zeros(type: TensorType) -> Value:
    return flat.full(type.shape, 0, type.dtype)


def identity(x: Value, extent: int) -> Value:
    """A stack like x's, of identity matrices."""
    shape = (extent, extent)
    ones = flat.eq(flat.iota(shape, 0), flat.iota(shape, 1))
    return flat.broadcast_to(flat.convert(ones, x.dtype), (*x.shape[:-2], *shape))


def potrf(x: Value, lower: bool) -> tuple[Value, Value]:
    """The Cholesky factor in one triangle, whatever x has in the other, and info."""
    if not x.numel:
        return x, _zeros(_info(x))
    factor, info = _call("potrf", [x], [x.type, _info(x)], {"uplo": "L" if lower else "U"})
    return factor, info


def getrf(x: Value) -> tuple[Value, Value, Value]:
    """L and U in one matrix; the row, counted from 1, that each was exchanged with; info."""
    pivots = TensorType(dtypes.int32, (*x.shape[:-2], min(x.shape[-2:])))
    if not x.numel:
        return x, _zeros(pivots), _zeros(_info(x))
    packed, swapped, info = _call("getrf", [x], [x.type, pivots, _info(x)])
    return packed, swapped, info


def geqrf(x: Value) -> tuple[Value, Value]:
    """R above the Householder vectors of Q, and their scales."""
    scales = _type(x, min(x.shape[-2:]))
    if not x.numel:
        return x, _zeros(scales)
    packed, tau = _call("geqrf", [x], [x.type, scales])
    return packed, tau


def orgqr(vectors: Value, tau: Value) -> Value:
    """The first columns, as many as `vectors` has, of the product of Householder reflections."""
    if not vectors.numel:
        return vectors
    if not tau.numel:
        rows, columns = vectors.shape[-2:]
        return flat.slice_dim(identity(vectors, rows), -1, 0, columns)
    (q,) = _call("ungqr" if vectors.dtype.is_complex else "orgqr", [vectors, tau], [vectors.type])
    return q


def gesdd(x: Value, full: bool, vectors: bool) -> tuple[Value, Value, Value, Value]:
    """U, the singular values, V^H and info; without vectors, U and V^H mean nothing."""
    m, n = x.shape[-2:]
    k = min(m, n)
    left, right = (_type(x, m, m), _type(x, n, n)) if full else (_type(x, m, k), _type(x, k, n))
    if not x.numel:
        u, vh = identity(x, m), identity(x, n)
        if not full:
            u, vh = flat.slice_dim(u, -1, 0, k), flat.slice_dim(vh, -2, 0, k)
        return u, _zeros(_real(x, k)), vh, _zeros(_info(x))
    mode = ("A" if full else "S") if vectors else "N"
    _, s, u, vh, info = _call("gesdd", [x], [x.type, _real(x, k), left, right, _info(x)], {"mode": mode})
    return u, s, vh, info


def syevd(x: Value, lower: bool, vectors: bool) -> tuple[Value, Value, Value]:
    """Eigenvalues of a Hermitian matrix in ascending order, the vectors in columns, and info."""
    values = _real(x, x.shape[-1])
    if not x.numel:
        return _zeros(values), x, _zeros(_info(x))
    routine = "heevd" if x.dtype.is_complex else "syevd"
    letters = {"mode": "V" if vectors else "N", "uplo": "L" if lower else "U"}
    v, w, info = _call(routine, [x], [x.type, values, _info(x)], letters)
    return w, v, info


def geev(x: Value, vectors: bool) -> tuple[Value, Value, Value]:
    """Eigenvalues of a square matrix, the right vectors in columns, both complex, and info."""
    values, square = _type(x, x.shape[-1]), TensorType(x.dtype.to_complex(), x.shape)
    if not x.numel:
        complex_values = TensorType(square.dtype, values.shape)
        return _zeros(complex_values), _zeros(square), _zeros(_info(x))
    parts = [values] if x.dtype.is_complex else [values, values]
    letters = {"compute_left": "N", "compute_right": "V" if vectors else "N"}
    *w, _, v, info = _call("geev", [x], [*parts, square, square, _info(x)], letters)
    return w[0] if x.dtype.is_complex else flat.complex(*w), v, info


def trsm(a: Value, b: Value, left: bool, lower: bool, transposed: str, unit: bool) -> Value:
    """X of op(a) X = b, or of X op(a) = b, for triangular a; `transposed`: N, T or C for the adjoint."""
    if not b.numel:
        return b
    letters = {
        "side": "L" if left else "R",
        "uplo": "L" if lower else "U",
        "trans_x": transposed,
        "diag": "U" if unit else "N",
    }
    (x,) = _call("trsm", [a, b], [b.type], letters, 1)
    return x


class Routine(NamedTuple):
    """What a routine is called with: matrices of which shapes, and the values of each option."""

    build: Callable[..., Any]
    fits: Callable[..., bool]
    options: tuple[tuple[Any, ...], ...] = ()


def _square(x: TensorType) -> bool:
    return x.shape[-2] == x.shape[-1]


def _any(x: TensorType) -> bool:
    return True


def _reflections(vectors: TensorType, tau: TensorType) -> bool:
    rows, columns = vectors.shape[-2:]
    expected = vectors.shape[:-2], vectors.dtype
    return rows >= columns and (tau.shape[:-1], tau.dtype) == expected and tau.shape[-1] <= columns


def _triangular(a: TensorType, b: TensorType) -> bool:
    alike = a.dtype is b.dtype and a.rank == b.rank and a.shape[:-2] == b.shape[:-2]
    return alike and _square(a)


def _solved(a: Value, b: Value, left: bool, *options: Any) -> Sequence[Value]:
    return [trsm(a, b, left, *options)] if b.shape[-2 if left else -1] == a.shape[-1] else []


_BOTH = (True, False)
ROUTINES = {
    "potrf": Routine(potrf, _square, (_BOTH,)),
    "getrf": Routine(getrf, _any),
    "geqrf": Routine(geqrf, _any),
    **dict.fromkeys(("orgqr", "ungqr"), Routine(lambda *given: [orgqr(*given)], _reflections)),
    "gesdd": Routine(gesdd, _any, (_BOTH, _BOTH)),
    **dict.fromkeys(("syevd", "heevd"), Routine(syevd, _square, (_BOTH, _BOTH))),
    "geev": Routine(geev, _square, (_BOTH,)),
    "trsm": Routine(_solved, _triangular, (_BOTH, _BOTH, ("N", "T", "C"), _BOTH)),
}


def built_calls(target: str, types: Sequence[TensorType]) -> Iterator[CustomCall]:
    """Every call by this name, on tensors of these types, that the functions above make: a call that a file
    holds is one of them, or it is none that LAPACK should be given."""
    routine = ROUTINES.get(target.removeprefix("lapack_").removesuffix("_ffi")[1:])
    takes = 2 if routine in (ROUTINES["orgqr"], ROUTINES["trsm"]) else 1
    if routine is None or len(types) != takes or types[0].rank < 2 or types[0].dtype not in PREFIXES:
        return
    if (takes == 2 and types[1].rank < types[0].rank - 1) or not routine.fits(*types):
        return
    for options in itertools.product(*routine.options):
        results = routine.build(*map(Value, types), *options)
        for op in {result.op for result in results}:
            if isinstance(op, CustomCall) and op.call_target_name == target:
                yield op
