"""Einstein's notation: the equation is read, each operand reduced to the dimensions that are needed, and the
operands contracted in pairs, the cheapest first."""

from __future__ import annotations

import re
from typing import NamedTuple

from tenfold import flat
from tenfold.base import dtypes
from tenfold.base.errors import ArgumentError, ShapeError
from tenfold.flat import Value
from tenfold.ops.contraction import contract
from tenfold.ops.samples import S, T
from tenfold.ops.table import op

_P = lambda *shape: T(*shape, low=0.5, high=2)


class Term(NamedTuple):
    """An operand and the labels of its dimensions: letters by their code, those under `...` below zero."""

    value: Value
    labels: tuple[int, ...]


@op(
    "einsum(str equation, Tensor[] tensors, *, int[]? path=None) -> Tensor",
    method=False,
    samples=lambda: [
        S("ij,jk->ik", [T(3, 4), T(4, 5)]), S("bij,bjk", [T(2, 3, 4), T(2, 4, 5)]), S("ii->i", [T(3, 3)]),
        S("...ij,jk->...ik", [T(2, 2, 3, 4), T(4, 5)]), S("i,j,k->ijk", [T(2), T(3), T(4)]),
        S("ba", [T(2, 3)]),
        S("ij,jk,kl->il", [_P(3, 4), _P(4, 5), _P(5, 2)]), S("ij->", [T(3, 4)]), S("iij->j", [T(3, 3, 2)]),
        S("i j, i j -> j", [T(3, 4), T(1, 4)]), S("...,...", [T(2, 3), T(3)]),
        S("bhqd,bhkd->bhqk", [T(2, 3, 4, 5), T(2, 3, 6, 5)]),
    ], autocast="lower", flops="bmm",)  # fmt: skip
def einsum(equation, tensors, path):
    """Sums of products, as the equation names the dimensions: "ij,jk->ik" is a matrix product."""
    inputs, output = read(equation, tensors)
    extents = _extents(inputs)
    if output is None:
        output = _implied(inputs)
    _check_output(output, extents)
    terms = [_stretched(_distinct(each), extents) for each in inputs]
    while len(terms) > 1:
        i, j = _next_pair(terms, output, path, len(tensors) - len(terms))
        x, y = terms[i], terms[j]
        rest = [term for place, term in enumerate(terms) if place not in (i, j)]
        terms = [*rest, _joined(x, y, {*output, *[label for each in rest for label in each.labels]})]
    (last,) = terms
    value, labels = _summed(last, set(output))
    present = [each for each in output if each in labels]
    value = flat.transpose(value, [labels.index(each) for each in present])
    shape = [extents[each] if each in present else 1 for each in output]
    return flat.reshape(value, shape)


# Reading the equation


def read(equation: str, tensors: tuple[Value, ...]) -> tuple[list[Term], tuple[int, ...] | None]:
    """The operands with their labels, and the labels of the result (None where the equation does not say)."""
    text = equation.replace(" ", "")
    left, arrow, right = text.partition("->")
    operands = left.split(",")
    if len(operands) != len(tensors):
        raise ArgumentError(f'"{equation}" is for {len(operands)} operands, not {len(tensors)}')
    for part in (*operands, right):
        wrong = re.search(r"[^a-zA-Z]", part.replace("...", "", 1))
        if wrong:
            raise ArgumentError(
                f'"{equation}": unexpected {wrong.group()!r}', help="use letters, ',', '->' and '...'"
            )
    terms = []
    for part, value in zip(operands, tensors, strict=True):
        letters = part.replace("...", "")
        covered = value.rank - len(letters)
        if covered < 0 or (covered and "..." not in part):
            raise ShapeError(
                f'"{part}" in "{equation}" does not name the {value.rank} dimensions of {value.type}'
            )
        terms.append(Term(value, _labels(part, covered)))
    covered = max((-min((0, *term.labels)) for term in terms), default=0)
    return terms, _labels(right, covered) if arrow else None


def _labels(part: str, covered: int) -> tuple[int, ...]:
    """`covered` is how many dimensions `...` stands for; these align at the last."""
    before, dots, after = part.partition("...")
    return (*map(ord, before), *(range(-covered, 0) if dots else ()), *map(ord, after))


def _implied(terms: list[Term]) -> tuple[int, ...]:
    """Dimensions under `...`, then the letters that appear once, in order."""
    every = [label for term in terms for label in term.labels]
    covered = sorted({label for label in every if label < 0})
    return (*covered, *sorted(label for label in set(every) if label > 0 and every.count(label) == 1))


def _extents(terms: list[Term]) -> dict[int, int]:
    extents: dict[int, int] = {}
    for term in terms:
        for label, extent in zip(term.labels, term.value.shape, strict=True):
            known = extents.setdefault(label, extent)
            if known == 1:
                extents[label] = extent
            elif extent not in (1, known):
                name = f"'{chr(label)}'" if label > 0 else "'...'"
                raise ShapeError(f"the dimension {name} is {known} and {extent}")
    return extents


def _check_output(output: tuple[int, ...], extents: dict[int, int]) -> None:
    for label in output:
        if output.count(label) > 1:
            raise ArgumentError(f"'{chr(label)}' appears twice in the result")
        if label not in extents:
            raise ArgumentError(f"'{chr(label)}' is in the result but in no operand")


# Operands


def _distinct(term: Term) -> Term:
    """A label that an operand has twice means its diagonal."""
    value, labels = term
    for label in dict.fromkeys(labels):
        while labels.count(label) > 1:
            i = labels.index(label)
            j = labels.index(label, i + 1)
            if value.shape[i] != value.shape[j]:
                raise ShapeError(
                    f"'{chr(label)}' stands for {value.shape[i]} and {value.shape[j]} in one operand"
                )
            value = _diagonal(value, i, j)
            labels = labels[:j] + labels[j + 1 :]
    return Term(value, labels)


def _diagonal(x: Value, i: int, j: int) -> Value:
    """x where the indices of dimensions i < j are the same, in the place of i."""
    n = x.shape[i]
    x = flat.move(flat.move(x, j, -1), i, -2)
    lead = x.shape[:-2]
    # Elements n + 1 apart: rows of n + 1 with the diagonal in front, the last one padded.
    flattened = flat.reshape(x, (*lead, n * n))
    padded = flat.pad(flattened, [0] * len(lead) + [0], [0] * len(lead) + [n])
    rows = flat.reshape(padded, (*lead, n, n + 1))
    diagonal = flat.reshape(flat.slice_dim(rows, -1, 0, 1 if n else 0), (*lead, n))
    return flat.move(diagonal, -1, i)


def _stretched(term: Term, extents: dict[int, int]) -> Term:
    """Dimensions of size 1 that others stretch are left out: multiplying stretches them."""
    kept = [i for i, label in enumerate(term.labels) if term.value.shape[i] == extents[label]]
    value = flat.reshape(term.value, [term.value.shape[i] for i in kept])
    return Term(value, tuple([term.labels[i] for i in kept]))


def _summed(term: Term, needed: set[int]) -> Term:
    """The operand summed over the labels that nothing else needs."""
    dims = [i for i, label in enumerate(term.labels) if label not in needed]
    if not dims:
        return term
    value, dtype = term.value, term.value.dtype
    # As PyTorch's sum does: integers add up in int64.
    dtype = dtypes.int64 if dtype.kind in ("bool", "int") else dtype
    wide = dtypes.float32 if dtype in (dtypes.float16, dtypes.bfloat16) else dtype
    value = flat.convert(flat.sum(flat.convert(value, wide), dims), dtype)
    return Term(value, tuple([label for label in term.labels if label in needed]))


def _joined(x: Term, y: Term, needed: set[int]) -> Term:
    x = _summed(x, needed | set(y.labels))
    y = _summed(y, needed | set(x.labels))
    out = tuple([label for label in dict.fromkeys((*x.labels, *y.labels)) if label in needed])
    # In the order in which a batched product gives them, so that nothing is transposed in between.
    both = [each for each in out if each in x.labels and each in y.labels]
    if len(both) == len({*x.labels} & {*y.labels}):  # nothing is summed: it is a product like any other
        dtype = dtypes.promote_types(x.value.dtype, y.value.dtype)
        x, y = (Term(flat.convert(each.value, dtype), each.labels) for each in (x, y))
    out = (*both, *[each for each in out if each not in both])
    return Term(contract(x.value, y.value, x.labels, y.labels, out), out)


def _next_pair(
    terms: list[Term], output: tuple[int, ...], path: tuple[int, ...] | None, step: int
) -> tuple[int, int]:
    """Which two operands to contract: those the path says, or whose product adds least to what is held."""
    if path is not None:
        if len(path) < 2 * step + 2:
            raise ArgumentError(f"the path {list(path)} ends before the operands do")
        i, j = sorted(path[2 * step : 2 * step + 2])
        if not 0 <= i < j < len(terms):
            raise ArgumentError(f"the path {list(path)} names operands {i} and {j} of {len(terms)}")
        return i, j
    best: tuple[float, int, int] | None = None
    for i in range(len(terms)):
        for j in range(i + 1, len(terms)):
            others = {label for k, term in enumerate(terms) if k not in (i, j) for label in term.labels}
            needed = {*output, *others}
            extents = dict(
                zip(
                    terms[i].labels + terms[j].labels,
                    terms[i].value.shape + terms[j].value.shape,
                    strict=True,
                )
            )
            size = 1
            for label, extent in extents.items():
                size *= extent if label in needed else 1
            growth = size - terms[i].value.numel - terms[j].value.numel
            if best is None or growth < best[0]:
                best = (growth, i, j)
    assert best is not None
    return best[1], best[2]
