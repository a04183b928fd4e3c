"""One call of a row and its derivatives: ours, recorded for an evaluation of many, and PyTorch's.

Every tensor of floats or complex numbers among the arguments is a leaf. The results that have gradients are
weighted by random cotangents; of the gradients so found, weighted in turn, come the second derivatives. Where
PyTorch has no derivative, differences of the results themselves tell whether ours is right.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

import tenfold as tn
from tenfold.base import dtypes
from tenfold.base.dtypes import DType
from tenfold.ops.samples import S, T
from tenfold.ops.schema import Argument
from tenfold.ops.table import Row
from tests.ops import generate, golden
from tests.ops.generate import Edges
from tests.ops.golden import Call

Gradients = list[list[Any]]  # for each order, for each leaf (and cotangent): a tensor, or None
STEP = 1e-5  # of differences, in float64


class NotDifferentiable(Exception):
    """PyTorch refuses the call, or to differentiate it."""


class Case(Call):
    """A call whose tensors of numbers are leaves. `tied` elements are few whole numbers: they meet zeros,
    equals and bounds, where conventions decide."""

    def __init__(self, row: Row, number: int, sample: S, dtype: DType, tied: bool = False):
        self.tied = tied
        super().__init__(row, number, sample, dtype)
        self.rng = generate.seed(row, number + 1000, dtype)
        self.leaves: list[Any] = []
        self.tracked: list[bool] = []  # for each result, whether PyTorch has its gradient
        self.weights: list[list[np.ndarray]] = []  # for each order, the cotangents

    def _drawn(self, value: Any, rng: np.random.Generator) -> Any:
        drawn = super()._drawn(value, rng)
        if not isinstance(value, T) or drawn.dtype.kind not in "fc":
            return drawn
        if isinstance(value, Edges) and drawn.dtype.kind == "f":
            # Where numbers end there is no convention to keep, and no digit to compare.
            drawn = np.where(np.abs(drawn) < 1e3, drawn, 3.0).astype(drawn.dtype)
            drawn[np.abs(drawn) < 1e-30] = 0
        return self._whole(drawn, value.low, value.high) if self.tied else drawn

    @staticmethod
    def _whole(drawn: np.ndarray, low: float | None, high: float | None) -> np.ndarray:
        low, high = -2 if low is None else np.ceil(low), 2 if high is None else np.floor(high)
        whole = np.clip(np.round(drawn.real), low, high)
        turned = 1j * np.clip(np.round(drawn.imag), -1, 1) if drawn.dtype.kind == "c" else 0
        return np.asarray(whole + turned).astype(drawn.dtype)

    def __str__(self) -> str:
        return f"{super().__str__()}{' tied' if self.tied else ''}"

    def weight(self, shape: Any, dtype: np.dtype[Any]) -> np.ndarray:
        """A random cotangent, without values near zero that would hide a mistake."""
        real = lambda: self.rng.uniform(0.5, 2, tuple(shape)) * self.rng.choice([-1, 1], tuple(shape))
        return np.asarray(real() + (1j * real() if dtype.kind == "c" else 0)).astype(dtype)

    def called(
        self,
        call: Callable[..., Any],
        converted: Callable[[Argument, Any], Any],
        moved: Callable[[np.ndarray], np.ndarray] | None = None,
    ) -> list[Any]:
        """The results. Tensors of numbers are `self.leaves`; or, if they are to be moved, constants."""
        self.leaves = []

        def argument(argument: Argument, value: Any) -> Any:
            if isinstance(value, tuple):
                return (
                    [leaf(argument, each) for each in value]
                    if _tensors(value)
                    else converted(argument, value)
                )
            return leaf(argument, value)

        def leaf(argument: Argument, value: Any) -> Any:
            if not _is_number(value):
                return converted(argument, value)
            if moved is not None:
                return converted(argument, moved(value))
            made = converted(argument, value).requires_grad_()
            self.leaves.append(made)
            return made

        args, kwargs = self.arguments(argument)
        return golden.flattened(call(*args, **kwargs))

    # PyTorch's derivatives, and ours of the same weighted sums

    def theirs_to(self, order: int) -> Gradients:
        """PyTorch's derivatives of the first order, and further ones up to this as far as it has them."""
        try:
            results = self.called(
                lambda *a, **k: golden.quietly(golden.overload(self.row), *a, **k), golden.as_torch
            )
        except Exception as error:
            raise NotDifferentiable(str(error)) from None
        self.tracked = [isinstance(each, torch.Tensor) and each.requires_grad for each in results]
        outputs = [each for each, has in zip(results, self.tracked) if has]
        inputs, found = self.leaves, []
        while outputs and len(found) < order:
            weights = [self.weight(each.shape, golden.to_numpy(each).dtype) for each in outputs]
            further = len(found) + 1 < order
            given = [golden.to_torch(each.copy()).requires_grad_(further) for each in weights]
            try:
                gradients = golden.quietly(
                    torch.autograd.grad, outputs, inputs, given, create_graph=further, allow_unused=True
                )
            except (RuntimeError, IndexError) as error:
                if not found:
                    raise NotDifferentiable(str(error)) from None
                break
            self.weights.append(weights)
            found.append(list(gradients))
            inputs = [*inputs, *given]
            outputs = [each for each in gradients if each is not None and each.requires_grad]
        return found

    def ours_to(self, theirs: Gradients) -> Gradients:
        """Our derivatives of the same, not computed yet. What has a gradient must be what has one there."""
        results = self.called(golden.function(self.row), golden.to_tenfold)
        tracked = [isinstance(each, tn.Tensor) and each.requires_grad for each in results]
        assert tracked == self.tracked, (
            f"{self}: results require gradients: {tracked}, PyTorch {self.tracked}"
        )
        outputs = [each for each, has in zip(results, tracked) if has]
        inputs, found = self.leaves, []
        for weights, reference in zip(self.weights, theirs, strict=True):
            further = len(found) + 1 < len(theirs)
            given = [tn.tensor(each).requires_grad_(further) for each in weights]
            pairs = [
                (each, w)
                for each, w in zip(outputs, given, strict=True)
                if each is not None and each.requires_grad
            ]
            if pairs:
                gradients = tn.autograd.grad(
                    [each for each, _ in pairs],
                    inputs,
                    [w for _, w in pairs],
                    create_graph=further,
                    allow_unused=True,
                )
            else:
                gradients = (None,) * len(inputs)
            found.append(list(gradients))
            inputs = [*inputs, *given]
            outputs = [
                mine
                for mine, each in zip(gradients, reference, strict=True)
                if each is not None and each.requires_grad
            ]
        return found

    def differences(self, ours: Gradients, theirs: Gradients) -> list[str]:
        """How our derivatives, computed, differ from PyTorch's. None stands for zeros, there and here."""
        found = []
        for order, (mine, reference) in enumerate(zip(ours, theirs, strict=True), 1):
            for i, (a, b) in enumerate(zip(mine, reference, strict=True)):
                if text := self._difference(a, b, 10.0 ** (order - (self.dtype is not dtypes.float32))):
                    found.append(f"{self}: derivative {order} by tensor {i}: {text}")
        return found

    def _difference(self, ours: tn.Tensor | None, theirs: torch.Tensor | None, slack: float) -> str | None:
        if theirs is None:
            none = ours is None or not np.nan_to_num(ours.detach().numpy()).any()
            return None if none else "PyTorch has none"
        reference = golden.to_numpy(torch.zeros_like(theirs) if theirs._is_zerotensor() else theirs)
        found = np.zeros_like(reference) if ours is None else ours.detach().numpy()
        if found.shape != reference.shape or found.dtype != reference.dtype:
            return f"{found.dtype}{list(found.shape)}, PyTorch {reference.dtype}{list(reference.shape)}"
        # What was converted on the way has the digits of what it was converted to.
        narrow = next(
            (each for each in ("bfloat16", "float16", "float32", "complex64") if each in str(self)), None
        )
        dtype = dtypes.from_numpy(found.dtype) if narrow is None else dtypes.BY_NAME[narrow]
        rtol, atol = golden.tolerance(self.row, dtype)
        wrong = ~golden.close(found, reference, rtol * slack, atol * slack)
        # Where PyTorch says NaN, any number is as good; infinite complex numbers have no certain direction.
        wrong &= np.isfinite(reference) if found.dtype.kind == "c" else ~np.isnan(reference)
        if not wrong.any():
            return None
        place = tuple(int(i) for i in np.argwhere(wrong)[0])
        values = f"{found[place]!r}, PyTorch {reference[place]!r}"
        return f"{int(wrong.sum())} of {wrong.size} differ, at {list(place)} {values}"


class Slope:
    """The derivative of a call along a random direction: by our gradients, and by differences."""

    def __init__(self, case: Case):
        self.case = case
        results = self._results()
        self.outputs = [each for each in results if isinstance(each, tn.Tensor) and each.requires_grad]
        leaves = case.leaves
        self.exact = bool(self.outputs) and all(
            each.dtype in (dtypes.float64, dtypes.complex128) for each in (*leaves, *self.outputs)
        )
        if not self.exact:
            return
        self.weights = [case.weight(each.shape, each.dtype.numpy) for each in self.outputs]
        given = [tn.tensor(each) for each in self.weights]
        self.gradients = tn.autograd.grad(self.outputs, leaves, given, allow_unused=True)
        self.directions = [case.weight(each.shape, each.dtype.numpy) for each in leaves]
        places = [i for i, each in enumerate(results) if isinstance(each, tn.Tensor) and each.requires_grad]
        self.ahead, self.behind = ([self._results(step)[i] for i in places] for step in (STEP, -STEP))

    def _results(self, step: float | None = None) -> list[Any]:
        tn.manual_seed(0)
        if step is None:
            return self.case.called(golden.function(self.case.row), golden.to_tenfold)
        directions = iter(self.directions)
        moved = lambda array: np.asarray(array + step * next(directions))
        return self.case.called(golden.function(self.case.row), golden.to_tenfold, moved)

    @property
    def tensors(self) -> list[tn.Tensor]:
        return [*self.ahead, *self.behind, *[each for each in self.gradients if each is not None]]

    def difference(self) -> str | None:
        inner = lambda x, y: float(np.sum(np.conj(x) * y).real)
        pairs = zip(self.gradients, self.directions, strict=True)
        slope = sum(inner(each.numpy(), d) for each, d in pairs if each is not None)
        after, before = (
            [inner(w, each.detach().numpy()) for w, each in zip(self.weights, side, strict=True)]
            for side in (self.ahead, self.behind)
        )
        measured = (sum(after) - sum(before)) / (2 * STEP)
        size = sum(abs(each) for each in (*after, *before))
        if not np.isfinite(measured) or abs(slope - measured) <= 1e-4 * max(1, abs(measured)) + 1e-9 * size:
            return None
        return f"{self.case}: slope {slope}, by differences {measured}"


def _is_number(value: Any) -> bool:
    return isinstance(value, np.ndarray) and dtypes.from_numpy(value.dtype).kind in ("float", "complex")


def _tensors(values: tuple[Any, ...]) -> bool:
    return any(isinstance(each, np.ndarray) for each in values)
