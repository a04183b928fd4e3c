"""How derivatives of FlatIR are put to the test: many functions in one program, each differentiated in both
modes and held against central differences, or against what is expected of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tenfold import flat
from tenfold.base import dtypes
from tenfold.base.devices import Device
from tenfold.engines import xla
from tenfold.flat.grad import gradients
from tenfold.flat.ir import Function, TensorType, Value, in_order
from tenfold.flat.jvp import tangents
from tenfold.flat.partials import carries
from tenfold.mlir import stablehlo

Build = Callable[..., Any]
STEP = 1e-6


def compiled(
    params: Sequence[Value], values: Sequence[Value]
) -> Callable[[Sequence[np.ndarray]], list[np.ndarray]]:
    """The values as XLA computes them from arrays for the parameters."""
    cpu = Device("cpu")
    program = xla.compile(stablehlo.emit(Function(params, values).expanded()), cpu)
    put = lambda arrays: [xla.put(np.asarray(each), cpu) for each in arrays]
    return lambda arrays: [np.asarray(xla.fetch(each)) for each in program(put(arrays))]


def evaluate(
    params: Sequence[Value], values: Sequence[Value], arrays: Sequence[np.ndarray]
) -> list[np.ndarray]:
    return compiled(params, values)(arrays)


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

    def __init__(self, name: str, build: Build, arrays: Sequence[Any], order: int = 1):
        random = np.random.default_rng(len(name))
        self.name = name
        self.arrays = [np.asarray(each) for each in arrays]
        self.params = inputs(self.arrays)
        self.smooth = [i for i, each in enumerate(self.params) if carries(each)]
        for _ in range(order - 1):
            build = self._differentiated(build, random)
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

    def program(self) -> tuple[list[Value], list[Value]]:
        """Parameters: arguments, cotangents, directions. Values: gradients, tangents, and the function."""
        cts, moved = inputs(self.cotangents), inputs(self.directions)
        wrt = [self.params[i] for i in self.smooth]
        ops = in_order(self.results)
        found = gradients(ops, self.results, cts, wrt)
        missing = [i for i, each in zip(self.smooth, found, strict=True) if each is None]
        assert not missing, f"{self.name}: no gradient by arguments {missing}"
        pushed = tangents(ops, wrt, moved, self.results)
        still = [i for i, each in enumerate(pushed) if each is None]
        assert not still, f"{self.name}: no tangent of results {still}"
        values = [each for each in (*found, *pushed, *self.results) if each is not None]
        return [*self.params, *cts, *moved], values

    def given(self, by: float) -> list[np.ndarray]:
        return [*self.moved(by), *self.cotangents, *self.directions]

    def wrong(
        self, found: Sequence[np.ndarray], ahead: Sequence[np.ndarray], back: Sequence[np.ndarray]
    ) -> str | None:
        """What is wrong with the values at the point, judged by those a step ahead and a step back."""
        wrt, count = len(self.smooth), len(self.results)
        pulled, pushed = found[:wrt], found[wrt : wrt + count]
        rises = [(x - y) / (2 * STEP) for x, y in zip(ahead[wrt + count :], back[wrt + count :], strict=True)]
        by_gradient = inner(pulled, self.directions)
        by_tangent, by_differences = inner(self.cotangents, pushed), inner(self.cotangents, rises)
        scale = max(1.0, abs(by_differences), *[float(np.abs(each).max(initial=0)) for each in pulled])
        if not abs(by_gradient - by_tangent) <= 1e-11 * scale:
            return f"{self.name}: the gradient says {by_gradient}, the tangent {by_tangent}"
        if not abs(by_gradient - by_differences) <= 2e-6 * scale:
            return f"{self.name}: the gradient says {by_gradient}, differences {by_differences}"
        return None


def check(cases: Sequence[Case]) -> None:
    """Run all cases as one program: at the point, a step ahead, a step back."""
    programs = [each.program() for each in cases]
    run = compiled(
        [x for params, _ in programs for x in params], [x for _, values in programs for x in values]
    )
    found = [iter(run([array for case in cases for array in case.given(by)])) for by in (0, STEP, -STEP)]
    wrong = []
    for case, (_, values) in zip(cases, programs, strict=True):
        wrong.append(case.wrong(*[[next(each) for _ in values] for each in found]))
    assert not any(wrong), "\n".join(each for each in wrong if each)
