"""Elementwise ops on tier 0, in every dtype, against XLA: integers and comparisons to the bit, float32 within
2 units in the last place, and all of them at the edges of their dtype."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from tenfold.base import dtypes
from tenfold.base.dtypes import ALL, DType
from tenfold.flat import elementwise as e
from tenfold.flat.ir import Op
from tests.engines.tiers import Both, close

OPS = [op for op in vars(e).values() if isinstance(op, type) and issubclass(op, e.Elementwise) and op.name]
# More than 2 units in the last place may lie between XLA and tier 0 where XLA's formula, which is tier 0's as
# well, multiplies a logarithm or a reciprocal square root that neither rounds correctly.
ULPS = {"chlo.bessel_i1e": 3, "chlo.lgamma": 4}
# These sum terms of up to 8 that cancel: no more than that is left of their precision, here and there.
LARGEST_TERM = {"chlo.lgamma": 8.0, "chlo.digamma": 8.0}
COUNT = 1 << 14


def operands(op: type[Op]) -> int:
    return 2 if issubclass(op, e.Binary) else 1


def domain(name: str, random: np.random.Generator) -> list[np.ndarray]:
    """Floats of all sizes, most of them where the function does something."""
    if name == "chlo.polygamma":
        return [random.integers(0, 6, COUNT), random.uniform(0.1, 30, COUNT)]
    if name == "chlo.zeta":
        return [random.uniform(1.1, 10, COUNT), random.uniform(0.1, 30, COUNT)]
    if name in ("chlo.lgamma", "chlo.digamma"):
        return [random.uniform(0.01, 100, COUNT)]
    quarter = COUNT // 4
    bits = random.integers(0, 1 << 32, quarter).astype(np.uint32).view(np.float32)
    parts = [
        random.uniform(-2, 2, quarter),
        random.uniform(-20, 20, quarter),
        random.uniform(-100, 100, quarter),
    ]
    x = np.concatenate([bits, *(part.astype(np.float32) for part in parts)])
    return [x, random.permutation(x)]


def distance(name: str, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """In units in the last place; 0 for NaN and NaN."""
    with np.errstate(all="ignore"):
        scale = np.maximum(np.abs(x), np.float32(LARGEST_TERM.get(name, np.finfo(np.float32).tiny)))
        apart = np.abs(x.astype(np.float64) - y) / np.spacing(scale)
        return np.where((x == y) | (np.isnan(x) & np.isnan(y)), 0, np.where(np.isnan(apart), np.inf, apart))


def test_float32_is_within_two_units_in_the_last_place_of_xla():
    random, both = np.random.default_rng(0), Both()
    given: dict[Op, list[np.ndarray]] = {}
    for op in OPS:
        if dtypes.float32 not in op.accepted:
            continue
        arrays = [each.astype(np.float32) for each in domain(op.name, random)[: operands(op)]]
        made = op(*[both.input(each) for each in arrays])
        both.add(made)
        given[made] = arrays
    wrong = []
    for op, theirs, mine in both.run():
        if theirs.dtype != np.float32:
            assert np.array_equal(theirs, mine), op.name
            continue
        tiny = np.finfo(np.float32).tiny * 4
        # XLA takes subnormal numbers for 0, on the way as well.
        normal = np.logical_and.reduce([np.abs(each) > tiny for each in (theirs, mine, *given[op])])
        normal |= ~np.isfinite(theirs) & np.logical_and.reduce([np.abs(each) > tiny for each in given[op]])
        far = np.where(normal, distance(op.name, theirs, mine), 0)
        if far.max() > ULPS.get(op.name, 2):
            place = int(far.argmax())
            at = [float(each[place]) for each in given[op]]
            wrong.append(f"{op.name}{at}: {far.max()} ulp: {theirs[place]} by XLA, {mine[place]} by tier 0")
    assert not wrong, "\n".join(wrong)


def edges(dtype: DType) -> np.ndarray:
    if dtype.kind == "bool":
        return np.array([False, True])
    if dtype.kind == "int":
        limits = np.iinfo(dtype.numpy)
        numbers = [0, 1, 2, 3, 7, 8, 63, 64, 100, limits.max, limits.max - 1, limits.min, limits.min + 1]
        return np.array([*numbers, *([-1, -2, -7, -8] if dtype.is_signed else [])], dtype.numpy)
    limits = dtypes.finfo(dtype.to_real())
    reals = [0.0, -0.0, 0.5, -0.5, 1.0, -1.0, 1.5, -2.5, 3.0, 7.0, limits.max, limits.min, np.nan]
    if dtype.name != "float8_e4m3fn":
        reals += [np.inf, -np.inf]
    if dtype.is_complex:
        return np.array([complex(a, b) for a, b in itertools.product([0.0, -0.5, 1.5, -3.0], [0.25, -2.0])])
    return np.array(reals).astype(dtype.numpy)


def open_in_xla(op: type[Op], dtype: DType, target: DType | None = None) -> bool:
    """Whether XLA has no answer here, or not the specification's, which tier 0 follows."""
    if dtype.is_complex:  # it compares the real parts alone
        return op in (e.Maximum, e.Minimum) or target is dtypes.bool_
    if op in (e.Zeta, e.Polygamma):  # for an order near the largest float, its sum overflows
        return True
    if op is e.Power:  # of an exponent it reads six bits: flat.power works off the others
        return dtype.kind == "int"
    return op.name.startswith("chlo.") and dtype.is_floating_point and dtype.itemsize == 1


@pytest.mark.parametrize("dtype", ALL, ids=lambda dtype: dtype.name)
def test_every_op_agrees_with_xla_at_the_edges_of_a_dtype(dtype):
    both = Both()
    values = edges(dtype)
    given = [values.astype(dtype.numpy)]
    pairs = np.array(list(itertools.product(range(len(values)), repeat=2)))
    pair = [values[pairs[:, 0]].astype(dtype.numpy), values[pairs[:, 1]].astype(dtype.numpy)]
    for op in OPS:
        if dtype in op.accepted and not open_in_xla(op, dtype):
            both.add(op(*[both.input(each) for each in (given if operands(op) == 1 else pair)]))
    for direction in e.DIRECTIONS if not dtype.is_complex else ("EQ", "NE"):
        both.add(e.Compare(*[both.input(each) for each in pair], direction, False))
        if dtype.is_floating_point:
            both.add(e.Compare(*[both.input(each) for each in pair], direction, True))
    for target in ALL:
        if not open_in_xla(e.Convert, dtype, target):
            both.add(e.Convert(both.input(given[0]), target))
    if dtype.is_floating_point:
        both.add(e.ReducePrecision(both.input(given[0]), 5, 2))
    wrong = []
    for op, theirs, mine in both.run():
        bad = ~close(theirs, mine)
        arrays = [both.arrays[both.params.index(each)] for each in op.operands]
        for place in np.flatnonzero(bad)[:3]:
            at = [each[place] for each in arrays]
            wrong.append(f"{op.name} {op.attributes} {at}: {theirs[place]} by XLA, {mine[place]} by tier 0")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("dtype", [dtypes.complex64, dtypes.complex128], ids=lambda dtype: dtype.name)
def test_complex_quotients_and_products_agree_with_xla_at_zeros_infinities_and_nan(dtype):
    parts = [0.0, -0.0, 1.0, -2.0, np.inf, -np.inf, np.nan]
    numbers = np.array([complex(a, b) for a, b in itertools.product(parts, parts)], dtype.numpy)
    first, second = (each.ravel() for each in np.meshgrid(numbers, numbers))
    both = Both()
    for op in (e.Divide, e.Multiply, e.Add, e.Subtract):
        both.add(op(both.input(first), both.input(second)))
    for op, theirs, mine in both.run():
        for one, other in ((theirs.real, mine.real), (theirs.imag, mine.imag)):
            near = np.isclose(one, other, rtol=1e-6, equal_nan=True)
            places = np.flatnonzero(~near)[:3]
            assert near.all(), (
                f"{op.name}: {first[places]}, {second[places]}: {theirs[places]}, {mine[places]}"
            )
