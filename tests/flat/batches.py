"""How batching is put to the test: functions of FlatIR, batched in many ways, against a loop over elements.

The functions of a group share two programs: one runs them on single elements, again and again; the other has
all that batching makes of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from tenfold import flat
from tenfold.base import dtypes
from tenfold.base.dtypes import DType
from tenfold.engines import xla
from tenfold.flat.ir import Function, TensorType
from tenfold.flat.vmap import batched
from tenfold.mlir import stablehlo
from tests.flat.machine import CPU, same

INNER, OUTER = 3, 2
Maker = Callable[[np.random.Generator], np.ndarray]
Dims = tuple[int | None, ...]


class Case(NamedTuple):
    """A function, as a builder on values, and how single elements of its parameters are drawn.

    Where another case has the same rule, a `brief` one, batched in one way, is enough.
    """

    name: str
    build: Callable[..., Any]
    makers: Sequence[Maker]
    brief: bool = False


def floats(*shape: int, low: float = -2, high: float = 2, dtype: DType = dtypes.float32) -> Maker:
    return lambda rng: np.asarray(rng.uniform(low, high, shape)).astype(dtype.numpy)


def complexes(*shape: int) -> Maker:
    return lambda rng: np.asarray(rng.normal(0, 1, shape) + 1j * rng.normal(0, 1, shape)).astype(np.complex64)


def ints(*shape: int, low: int = -9, high: int = 10, dtype: DType = dtypes.int64) -> Maker:
    return lambda rng: np.asarray(rng.integers(low, high, shape)).astype(dtype.numpy)


def bools(*shape: int) -> Maker:
    return lambda rng: np.asarray(rng.integers(0, 2, shape)).astype(bool)


class Way(NamedTuple):
    """A way to batch a function once, or twice: the size of each batch and where each parameter has it."""

    sizes: tuple[int, ...]
    dims: tuple[Dims, ...]

    def places(self) -> list[tuple[int, ...]]:
        """The elements of the batches, outermost first."""
        return list(np.ndindex(*reversed(self.sizes)))

    def element(self, param: int, place: tuple[int, ...]) -> int:
        """Which of its drawn elements a parameter has at this place."""
        chosen = 0
        for i, dims in zip(place, reversed(self.dims), strict=True):
            chosen = chosen * INNER + (i if dims[param] is not None else 0)
        return chosen


def ways(count: int, brief: bool) -> list[Way]:
    """Every way worth trying with a function of so many parameters."""
    front: Dims = (0,) * count
    back: Dims = (-1,) * count
    if brief:
        return [Way((INNER, OUTER), (back, front))]
    alone: list[Dims] = [tuple([0 if i == p else None for i in range(count)]) for p in range(count)]
    others: Dims = tuple([None if i == 0 else -1 for i in range(count)]) if count > 1 else back
    return [
        *[Way((INNER,), (dims,)) for dims in (front, back, *(alone if count > 1 else ()))],
        Way((0,), (front,)),
        *[Way((0,), (dims,)) for dims in (alone if count > 1 else ())],
        Way((1,), (front,)),
        Way((INNER, OUTER), (front, back)),
        Way((INNER, OUTER), (alone[0], others)),
        *([Way((INNER, OUTER), (others, alone[0])), Way((0, OUTER), (front, back))] if count > 1 else []),
    ]


def plain(case: Case) -> Function:
    drawn = [maker(np.random.default_rng(0)) for maker in case.makers]
    return flat.function(
        case.build, [TensorType(dtypes.from_numpy(each.dtype), each.shape) for each in drawn]
    )


class Loop:
    """Functions on single elements: one program for all of them."""

    def __init__(self, functions: Sequence[Function]):
        self.counts = [len(each.results) for each in functions]
        joined = Function(
            [param for each in functions for param in each.params],
            [result for each in functions for result in each.results],
        )
        self.run = compiled(joined)

    def __call__(self, arrays: Sequence[Sequence[np.ndarray]]) -> list[list[np.ndarray]]:
        found = iter(self.run([each for several in arrays for each in several]))
        return [[next(found) for _ in range(count)] for count in self.counts]


def compiled(function: Function) -> Callable[[Sequence[np.ndarray]], list[np.ndarray]]:
    program = xla.compile(stablehlo.emit(function.expanded()), CPU)
    count = len(function.results)

    def run(arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
        return [np.asarray(xla.fetch(each)) for each in program([xla.put(a, CPU) for a in arrays])[:count]]

    return run


def stacked(elements: Sequence[np.ndarray], way: Way, param: int, place: tuple[int, ...] = ()) -> np.ndarray:
    """A parameter's elements as the batched function takes them; `place` is where in the outer batches."""
    if len(place) == len(way.sizes):
        return elements[way.element(param, place)]
    level = len(way.sizes) - len(place) - 1
    dim = way.dims[level][param]
    if dim is None:
        return stacked(elements, way, param, (*place, 0))
    size = way.sizes[level]
    parts = [stacked(elements, way, param, (*place, i)) for i in range(max(size, 1))]
    return np.take(np.stack(parts, dim), range(size), dim)


def compare(cases: Sequence[Case], tolerance: float = 2e-6) -> None:
    """Batch each function in every way, and compare with its results on single elements."""
    rng = np.random.default_rng(len(cases))
    drawn = [[[maker(rng) for _ in range(INNER * OUTER)] for maker in case.makers] for case in cases]
    functions = [plain(case) for case in cases]
    tried: list[tuple[int, Way, list[list[bool]], Function]] = []
    for number, function in enumerate(functions):
        for way in ways(len(function.params), cases[number].brief):
            made, flags = function, []
            for size, dims in zip(way.sizes, way.dims, strict=True):
                made, stacks = batched(made, size, dims)
                flags.append(stacks)
            tried.append((number, way, flags, made))
    loop = Loop(functions)
    arrays = [
        [stacked(drawn[number][p], way, p) for p in range(len(cases[number].makers))]
        for number, way, _, _ in tried
    ]
    results = Loop([made for _, _, _, made in tried])(arrays)
    known: dict[tuple[tuple[int, ...], ...], list[list[np.ndarray]]] = {}

    def reference(number: int, elements: tuple[int, ...]) -> list[np.ndarray]:
        """The loop runs all functions, each on some elements: what it gave for one of them is kept."""
        longest = max(len(case.makers) for case in cases)
        key = tuple(elements) + (0,) * (longest - len(elements))
        if key not in known:
            known[key] = loop([[several[e] for several, e in zip(each, key)] for each in drawn])
        return known[key][number]

    wrong = []
    for (number, way, flags, made), found in zip(tried, results, strict=True):
        for r, array in enumerate(found):
            where = f"{cases[number].name}, result {r} ({made.results[r].type}), {way}"
            having = [each[r] for each in flags][::-1]
            sizes = [size for size, has in zip(way.sizes[::-1], having, strict=True) if has]
            assert array.shape == (*sizes, *functions[number].results[r].shape), where
            for place in way.places():
                elements = tuple([way.element(p, place) for p in range(len(cases[number].makers))])
                expected = reference(number, elements)[r]
                mine = array[tuple([i for i, has in zip(place, having, strict=True) if has])]
                if not close(mine, expected, tolerance):
                    wrong.append(f"{where} at {place}: {mine.tolist()}, one by one {expected.tolist()}")
                    break
    assert tried and not wrong, "\n".join(wrong)


def close(found: np.ndarray, expected: np.ndarray, tolerance: float) -> bool:
    if expected.dtype.kind == "c":
        return same(found.real, expected.real, tolerance) and same(found.imag, expected.imag, tolerance)
    return same(np.asarray(found), expected, tolerance)
