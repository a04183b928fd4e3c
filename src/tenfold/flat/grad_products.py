"""Gradient rules of products and factorizations: dots, Fourier transforms, triangles."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tenfold.flat import build as b, contracting as c, data_builders as mv, structured as s
from tenfold.flat.build import convert, full_like, where
from tenfold.flat.grad_folds import wide
from tenfold.flat.ir import Value
from tenfold.flat.partials import conj

# Products of matrices


def dot_general(ct: Value, op: s.DotGeneral) -> tuple[Any, Any]:
    x_batch, y_batch, x_summed, y_summed = op.dot_dimension_numbers
    x_free = _free(op.x, x_batch, x_summed)
    y_free = _free(op.y, y_batch, y_summed)
    batch = list(range(len(x_batch)))
    ct_x = [len(batch) + i for i in range(len(x_free))]
    ct_y = [len(batch) + len(x_free) + i for i in range(len(y_free))]
    return (
        lambda: _factor(op.x, x_batch, x_summed, ct, ct_y, op.y, y_batch, y_free, y_summed),
        lambda: _factor(op.y, y_batch, y_summed, ct, ct_x, op.x, x_batch, x_free, x_summed),
    )


def _free(x: Value, batch: Sequence[int], summed: Sequence[int]) -> list[int]:
    return [d for d in range(x.rank) if d not in batch and d not in summed]


def _factor(
    x: Value,
    x_batch: Sequence[int],
    x_summed: Sequence[int],
    ct: Value,
    ct_other: list[int],
    y: Value,
    y_batch: Sequence[int],
    y_free: list[int],
    y_summed: Sequence[int],
) -> Value:
    """The cotangent of x: that of the product times the other factor y, summed over y's free dimensions."""
    ct, y = _one_dtype(ct, y)
    batch = list(range(len(x_batch)))
    x_free = _free(x, x_batch, x_summed)
    # y's dimensions that were summed come out in y's own order.
    remaining = sorted(range(len(y_summed)), key=y_summed.__getitem__)
    summed_out = [x_summed[i] for i in remaining]
    if not batch and x_free and x_summed and max(x_summed) < min(x_free):
        gradient = product(conj(y), ct, y_free, ct_other)
        order = [*summed_out, *x_free]
    elif not batch:
        gradient = product(ct, conj(y), ct_other, y_free)
        order = [*x_free, *summed_out]
    else:
        gradient = c.dot_general(ct, conj(y), (ct_other, y_free), (batch, y_batch), wide(ct.dtype))
        order = [*x_batch, *x_free, *summed_out]
    return convert(mv.transpose(gradient, [order.index(d) for d in range(x.rank)]), x.dtype)


def _one_dtype(ct: Value, y: Value) -> tuple[Value, Value]:
    """Products of half-precision factors may come in a wider dtype. Their cotangent is rounded to that of the
    factors, as PyTorch has it: products of wide matrices take many times as long."""
    return (ct, y) if ct.dtype is y.dtype else (convert(ct, y.dtype), y)


def product(x: Value, y: Value, x_summed: Sequence[int], y_summed: Sequence[int]) -> Value:
    """Sum of products without batches, as one product of two matrices: the form that XLA runs best."""
    pairs = sorted(zip(x_summed, y_summed))
    x_summed, y_summed = [i for i, _ in pairs], [j for _, j in pairs]
    x_free, y_free = _free(x, (), x_summed), _free(y, (), y_summed)
    shape = [x.shape[d] for d in x_free] + [y.shape[d] for d in y_free]
    x, x_dim = _matrix(x, x_free, x_summed)
    y, y_dim = _matrix(y, y_free, y_summed)
    return mv.reshape(c.dot_general(x, y, ((x_dim,), (y_dim,)), dtype=wide(x.dtype)), shape)


def _matrix(x: Value, free: list[int], summed: Sequence[int]) -> tuple[Value, int]:
    """x as a matrix of free by summed elements, or summed by free where it lies so; where the summed are."""
    rows, columns = _count(x, free), _count(x, summed)
    if free and summed and [*summed, *free] == list(range(x.rank)):
        return mv.reshape(x, (columns, rows)), 0
    return mv.reshape(mv.transpose(x, [*free, *summed]), (rows, columns)), 1


def _count(x: Value, dims: Sequence[int]) -> int:
    count = 1
    for d in dims:
        count *= x.shape[d]
    return count


# Fourier transforms


def fft(ct: Value, op: s.Fft) -> tuple[Value]:
    lengths, count, last = op.fft_length, 1, op.x.rank - 1
    for length in lengths:
        count *= length
    if not ct.numel or not op.x.numel:
        return (full_like(op.x, 0),)
    if op.fft_type == "FFT":
        return (c.fft(ct, "IFFT", lengths) * count,)
    if op.fft_type == "IFFT":
        return (c.fft(ct, "FFT", lengths) / count,)
    if op.fft_type == "RFFT":
        # The half of the spectrum that is not computed has no cotangent.
        none = [0] * last
        whole = mv.pad(ct, [0, *none], [*none, lengths[-1] - ct.shape[last]])
        return (b.real(c.fft(whole, "IFFT", lengths)) * count,)
    spectrum = c.fft(ct, "RFFT", lengths)
    # All frequencies but 0 and, of an even length, the highest stand for two.
    place = b.iota(spectrum.shape, last)
    single = b.eq(place, 0) | b.eq(place * 2, lengths[-1])
    return (where(single, spectrum, spectrum * 2) / count,)


# Triangular matrices


def triangle(x: Value, lower: bool, strict: bool = False) -> Value:
    """The lower or upper triangle of matrices, without the diagonal where `strict`."""
    row, column = b.iota(x.shape, x.rank - 2), b.iota(x.shape, x.rank - 1)
    near, far = (column, row) if lower else (row, column)
    return where(near < far if strict else near <= far, x, 0)


def adjoint(x: Value) -> Value:
    return conj(mv.swap(x, -1, -2))


def matmul(x: Value, y: Value) -> Value:
    batch = tuple(range(x.rank - 2))
    return c.dot_general(x, y, ((x.rank - 1,), (x.rank - 2,)), (batch, batch))


def cholesky(ct: Value, op: s.Cholesky) -> tuple[Value]:
    """Hermitian, as the argument is: (S + S^H) / 2 of S = L^-H F(L^H ct) L^-1, where F takes the lower
    triangle and half the diagonal."""
    factor = triangle(op.result, op.lower)
    factor, ct = (factor, ct) if op.lower else (adjoint(factor), adjoint(ct))
    inner = lower_half(matmul(adjoint(factor), triangle(ct, True)))
    right = c.triangular_solve(factor, inner + adjoint(inner), left=False, lower=True)
    return (c.triangular_solve(factor, right, lower=True, transpose_a="ADJOINT") * 0.5,)


def lower_half(x: Value) -> Value:
    """The lower triangle with half the diagonal."""
    row, column = b.iota(x.shape, x.rank - 2), b.iota(x.shape, x.rank - 1)
    return where(column < row, x, where(b.eq(column, row), x * 0.5, 0))


def triangular_solve(ct: Value, op: s.TriangularSolve) -> tuple[Any, Any]:
    """X = A^-1 b, A being a, its transpose or its adjoint: b's cotangent is A^-H ct, and A's -A^-H ct X^H."""
    a, adjoined = op.a, {"NO_TRANSPOSE": "ADJOINT", "ADJOINT": "NO_TRANSPOSE"}.get(op.transpose_a)
    if adjoined is None:
        a, adjoined = conj(a), "NO_TRANSPOSE"
    by_b = s.TriangularSolve(a, ct, op.left_side, op.lower, op.unit_diagonal, adjoined).result

    def by_a() -> Value:
        left, right = (by_b, adjoint(op.result)) if op.left_side else (adjoint(op.result), by_b)
        gradient = -matmul(left, right)
        if op.transpose_a != "NO_TRANSPOSE":
            gradient = mv.swap(gradient, -1, -2) if op.transpose_a == "TRANSPOSE" else adjoint(gradient)
        return triangle(gradient, op.lower, op.unit_diagonal)

    return by_a, lambda: by_b
