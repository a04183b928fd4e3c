"""How derivatives of FlatIR are put to the test: many functions in one program, each differentiated in both
modes and held against central differences, or against what is expected of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tenfold import dtypes, flat
from tenfold.devices import Device
from tenfold.engines import xla
from tenfold.flat.grad import gradients
from tenfold.flat.graph import Function, TensorType, Value, in_order
from tenfold.flat.jvp import tangents
from tenfold.flat.partials import carries
from tenfold.mlir import stablehlo

Build = Callable[..., Any]
STEP = 1e-6


def evaluate(
    params: Sequence[Value], values: Sequence[Value], arrays: Sequence[np.ndarray]
) -> list[np.ndarray]:
    """The values, computed by XLA."""
    cpu = Device("cpu")
    program = xla.compile(stablehlo.emit(Function(params, values).expanded()), cpu)
    return [
        np.asarray(xla.fetch(each)) for each in program([xla.put(np.asarray(each), cpu) for each in arrays])
    ]


def inputs(arrays: Sequence[np.ndarray]) -> list[Value]:
    return [Value(TensorType(dtypes.from_numpy(each.dtype), each.shape)) for each in arrays]


def listed(found: Any) -> list[Value]:
    return list(found) if isinstance(found, (tuple, list)) else [found]


def like(random: np.random.Generator, value: Value) -> np.ndarray:
    """Random numbers of a value's type."""
    array = random.standard_normal(value.shape)
    if value.dtype.is_complex:
        array = array + 1j * random.standard_normal(value.shape)
    return array.astype(value.dtype.numpy)


def inner(xs: Sequence[np.ndarray], ys: Sequence[np.ndarray]) -> float:
    """The inner product by which cotangents pair with tangents: the real part of conj(x) y."""
    return sum(float(np.sum(np.real(np.conj(x) * y))) for x, y in zip(xs, ys, strict=True))


class Case:
    """A function of float64 or complex128 arrays (integers are not differentiated), at a point, along a
    direction: its gradient for a random cotangent must be what central differences say."""

    def __init__(self, name: str, build: Build, arrays: Sequence[Any], order: int = 1, step: float = STEP):
        random = np.random.default_rng(len(name))
        self.name, self.step = name, step
        self.arrays = [np.asarray(each) for each in arrays]
        self.params = inputs(self.arrays)
        self.smooth = [i for i, each in enumerate(self.params) if carries(each)]
        for _ in range(order - 1):
            build = self._differentiated(build, random)
        self.build = build
        self.results = [each for each in listed(build(*self.params)) if carries(each)]
        assert self.results, f"{name}: nothing to differentiate"
        self.cotangents = [like(random, each) for each in self.results]
        self.directions = [like(random, self.params[i]) for i in self.smooth]

    def _differentiated(self, build: Build, random: np.random.Generator) -> Build:
        """The function's gradient by all its arguments, along a fixed cotangent."""
        shapes = [like(random, each) for each in listed(build(*self.params)) if carries(each)]

        def gradient(*params: Value) -> list[Value]:
            results = [each for each in listed(build(*params)) if carries(each)]
            cts = [flat.constant(ct, each.dtype) for ct, each in zip(shapes, results, strict=True)]
            wrt = [params[i] for i in self.smooth]
            found = gradients(in_order(results), results, cts, wrt)
            return [each for each in found if each is not None]

        return gradient

    def moved(self, by: float) -> list[np.ndarray]:
        arrays = list(self.arrays)
        for i, direction in zip(self.smooth, self.directions, strict=True):
            arrays[i] = arrays[i] + by * direction
        return arrays

    def program(self) -> tuple[list[Value], list[np.ndarray], list[Value]]:
        """Parameters, what they are given, and: the gradients; the function a step ahead and a step back."""
        cts = inputs(self.cotangents)
        ahead, back = inputs(self.arrays), inputs(self.arrays)
        wrt = [self.params[i] for i in self.smooth]
        found = gradients(in_order(self.results), self.results, cts, wrt)
        missing = [i for i, each in zip(self.smooth, found, strict=True) if each is None]
        assert not missing, f"{self.name}: no gradient by arguments {missing}"
        sides = [[each for each in listed(self.build(*side)) if carries(each)] for side in (ahead, back)]
        arrays = [*self.arrays, *self.cotangents, *self.moved(self.step), *self.moved(-self.step)]
        arrays += self.directions
        moved = inputs(self.directions)
        pushed = tangents(in_order(self.results), wrt, moved, self.results)
        still = [i for i, each in enumerate(pushed) if each is None]
        assert not still, f"{self.name}: no tangent of results {still}"
        return [*self.params, *cts, *ahead, *back, *moved], arrays, [*found, *pushed, *sides[0], *sides[1]]

    def wrong(self, found: Sequence[np.ndarray], tolerance: float = 2e-6) -> str | None:
        wrt, count = len(self.smooth), len(self.results)
        pulled, pushed = found[:wrt], found[wrt : wrt + count]
        ahead, back = found[wrt + count : wrt + 2 * count], found[wrt + 2 * count :]
        by_gradient = inner(pulled, self.directions)
        by_differences = inner(
            self.cotangents, [(x - y) / (2 * self.step) for x, y in zip(ahead, back, strict=True)]
        )
        scale = max(1.0, abs(by_differences), *[float(np.abs(each).max(initial=0)) for each in pulled])
        by_tangent = inner(self.cotangents, pushed)
        if not abs(by_gradient - by_tangent) <= 1e-11 * scale:
            return f"{self.name}: the gradient says {by_gradient}, the tangent {by_tangent}"
        if abs(by_gradient - by_differences) <= tolerance * scale:
            return None
        return f"{self.name}: the gradient says {by_gradient}, differences {by_differences}"


def check(cases: Sequence[Case]) -> None:
    """Run all cases as one program."""
    programs = [each.program() for each in cases]
    params = [param for taken, _, _ in programs for param in taken]
    arrays = [array for _, given, _ in programs for array in given]
    found = iter(evaluate(params, [value for _, _, values in programs for value in values], arrays))
    wrong = []
    for case, (_, _, values) in zip(cases, programs, strict=True):
        wrong.append(case.wrong([next(found) for _ in values]))
    assert not any(wrong), "\n".join(each for each in wrong if each)
