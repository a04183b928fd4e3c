"""LAPACK's routines on CUDA: each call becomes one of cuSOLVER's, which XLA's CUDA plugin brings.

The table has one translation for each routine of `lapack.py`: from the call's operands and its letters to the
same results.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tenfold import flat
from tenfold.flat import TensorType, Value
from tenfold.flat.ir import Function
from tenfold.flat.structured import CustomCall

PREFIX = "cusolver_"
JACOBI = 1024  # the largest matrix whose singular values Jacobi's method finds sooner


def on_cuda(function: Function) -> Function:
    """The same program with cuSOLVER's calls in the place of LAPACK's."""
    if not any(_routine(op) for op in function.ops):
        return function
    values: dict[Value, Value] = {}
    for op in function.ops:
        copy = op.replace(values) if any(operand in values for operand in op.operands) else op
        routine = _routine(copy)
        if routine is not None:
            assert isinstance(copy, CustomCall)
            found: Sequence[Value] = TRANSLATIONS[routine](copy.inputs, _letters(copy), copy.result_types)
            for each in found:
                if each.op is not None and each.op.source is None:
                    each.op.__dict__["source"] = op.source
        else:
            found = copy.results
        if copy is not op or routine is not None:
            values.update(zip(op.results, found, strict=True))
    return Function(
        function.params, [values.get(result, result) for result in function.results], function.name
    )


def _routine(op: Any) -> str | None:
    """LAPACK's name of what an op calls, without its letter for the dtype."""
    if not isinstance(op, CustomCall) or not op.call_target_name.startswith("lapack_"):
        return None
    name = op.call_target_name.removeprefix("lapack_").removesuffix("_ffi")[1:]
    return name if name in TRANSLATIONS else None


def _letters(op: CustomCall) -> dict[str, str]:
    assert not isinstance(op.backend_config, str)
    return {name: chr(int(str(text).split(" ")[0])) for name, text in op.backend_config}


def _call(
    routine: str, inputs: Sequence[Value], results: Sequence[TensorType], columns: bool = True, **options: str
) -> tuple[Value, ...]:
    """A call whose first result takes the place of the first input; matrices lie by columns, or by rows."""
    rank = inputs[0].rank
    layouts = [columns and each.rank == rank for each in (*[x.type for x in inputs], *results)]
    aliases = [(0, 0)] if results[0] is inputs[0].type else ()
    return flat.custom_call(
        f"{PREFIX}{routine}_ffi", inputs, results, list(options.items()), aliases, layouts
    )


def _bool(value: bool) -> str:
    return "true" if value else "false"


def _potrf(inputs: Sequence[Value], letters: dict[str, str], results: Sequence[TensorType]) -> Any:
    return _call("potrf", inputs, results, lower=_bool(letters["uplo"] == "L"))


def _same(routine: str) -> Callable[..., Any]:
    return lambda inputs, letters, results: _call(routine, inputs, results)


def _syevd(inputs: Sequence[Value], letters: dict[str, str], results: Sequence[TensorType]) -> Any:
    return _call("syevd", inputs, results, algorithm="0 : ui8", lower=_bool(letters["uplo"] == "L"))


def _gesdd(inputs: Sequence[Value], letters: dict[str, str], results: Sequence[TensorType]) -> Any:
    """Singular values by Jacobi's method, which gives V, or for large matrices by QR iterations, which give
    its adjoint, of tall matrices alone: a wide one is, by rows, the transpose of a tall one by columns."""
    (x,) = inputs
    packed, values, left, right, info = results
    m, n = x.shape[-2:]
    full, vectors = letters["mode"] == "A", letters["mode"] != "N"
    if max(m, n) > JACOBI:
        wide = m < n
        order = (packed, values, right, left, info) if wide else results
        options = {"compute_uv": _bool(vectors), "full_matrices": _bool(full), "transposed": _bool(wide)}
        rest, s, first, second, done = _call("gesvd", inputs, order, columns=not wide, **options)
        return (rest, s, second, first, done) if wide else (rest, s, first, second, done)
    short = not full and min(m, n) > 32  # below that the routine for stacks runs, which knows whole ones only
    k = min(m, n) if short else 0
    stack = x.shape[:-2]
    u_type = TensorType(x.dtype, (*stack, m, k or m))
    v_type = TensorType(x.dtype, (*stack, n, k or n))
    options = {"compute_uv": _bool(vectors), "full_matrices": _bool(not short)}
    rest, s, u, v, done = _call("gesvdj", inputs, (packed, values, u_type, v_type, info), True, **options)
    dims = (*range(len(stack)), len(stack) + 1, len(stack))
    vh = flat.transpose(v, dims)
    if x.dtype.is_complex:
        vh = flat.complex(flat.real(vh), -flat.imag(vh))
    return rest, s, _cut(u, left), _cut(vh, right), done


def _cut(x: Value, type: TensorType) -> Value:
    """The first rows and columns, as many as the type has."""
    return x if x.type is type else flat.slice(x, [0] * x.rank, type.shape)


def _geev(inputs: Sequence[Value], letters: dict[str, str], results: Sequence[TensorType]) -> Any:
    """Eigenvalues, the left vectors, which nobody asks for, and the right ones."""
    (x,) = inputs
    *parts, square, _, info = results
    values = TensorType(square.dtype, parts[0].shape)
    vectors = letters["compute_right"] == "V"
    own = (x.type, values, x.type, x.type, info)
    _, w, _, v, done = _call("geev", inputs, own, left="false", right=_bool(vectors))
    if x.dtype.is_complex:
        return w, v, v, done
    found = _unpacked(w, v)
    return flat.real(w), flat.imag(w), found, found, done


def _unpacked(values: Value, packed: Value) -> Value:
    """Complex vectors from real columns: of two conjugates, the first column is the real part of both, and
    the second the imaginary part of the first."""
    sign = flat.unsqueeze(flat.imag(values), -2)
    last = packed.rank - 1
    n = packed.shape[-1]
    before = flat.concatenate(
        [flat.slice_dim(packed, -1, n - 1, n), flat.slice_dim(packed, -1, 0, n - 1)], last
    )
    after = flat.concatenate([flat.slice_dim(packed, -1, 1, n), flat.slice_dim(packed, -1, 0, 1)], last)
    is_first, is_second = flat.gt(sign, 0), flat.lt(sign, 0)
    real = flat.where(is_second, before, packed)
    return flat.complex(real, flat.where(is_first, after, flat.where(is_second, -packed, 0.0)))


def _trsm(inputs: Sequence[Value], letters: dict[str, str], results: Sequence[TensorType]) -> Any:
    transposed = {"N": "NO_TRANSPOSE", "T": "TRANSPOSE", "C": "ADJOINT"}[letters["trans_x"]]
    left, lower, unit = letters["side"] == "L", letters["uplo"] == "L", letters["diag"] == "U"
    a, b = inputs
    return (flat.triangular_solve(a, b, left=left, lower=lower, unit=unit, transpose_a=transposed),)


TRANSLATIONS: dict[str, Callable[..., Any]] = {
    "potrf": _potrf,
    "getrf": _same("getrf"),
    "geqrf": _same("geqrf"),
    "orgqr": _same("orgqr"),
    "ungqr": _same("orgqr"),
    "gesdd": _gesdd,
    "syevd": _syevd,
    "heevd": _syevd,
    "geev": _geev,
    "trsm": _trsm,
}
