"""One call of a row and its derivatives: ours, recorded for an evaluation of many, and PyTorch's.

Every tensor of floats or complex numbers among the arguments is a leaf. The results that have gradients are
weighted by random cotangents; of the gradients so found, weighted in turn, come the second derivatives.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

import tenfold as tn
from tenfold import dtypes
from tenfold.dtypes import DType
from tenfold.errors import TenfoldError
from tenfold.ops.samples import S, T
from tenfold.ops.schema import Argument
from tenfold.ops.table import Row
from tests.ops import generate, golden
from tests.ops.generate import Edges
from tests.ops.golden import Call

STEP = 1e-5  # of central differences, in float64


class NotDifferentiable(Exception):
    """PyTorch refuses the call, or to differentiate it."""


class Case(Call):
    """A call whose tensors of numbers are leaves. `tied` elements are few whole numbers: they meet zeros,
    equals and bounds, where conventions decide."""

    def __init__(self, row: Row, number: int, sample: S, dtype: DType, tied: bool = False):
        self.tied = tied
        super().__init__(row, number, sample, dtype)
        self.rng = generate.seed(row, number + 500, dtype)
        self.cotangents: list[np.ndarray | None] = []
        self.leaves: list[Any] = []
        self.active: set[int] | None = None  # of the leaves, those that PyTorch takes as such; None: all
        self.order = 1

    def _drawn(self, value: Any, rng: np.random.Generator) -> Any:
        drawn = super()._drawn(value, rng)
        if isinstance(value, Edges) and drawn.dtype.kind == "f":
            # Where numbers end there is no convention to keep, and no digit to compare.
            drawn = np.where(np.abs(drawn) < 1e3, drawn, 3.0).astype(drawn.dtype)
            drawn[np.abs(drawn) < 1e-30] *= 0
        if not self.tied or not isinstance(value, T) or drawn.dtype.kind not in "fc":
            return drawn
        low = -2 if value.low is None else value.low
        high = 2 if value.high is None else min(value.high, 1e6)
        whole = np.clip(np.round(drawn.real), np.ceil(low), np.floor(high))
        return np.asarray(whole + (1j * np.clip(np.round(drawn.imag), -1, 1) if drawn.dtype.kind == "c" else 0)).astype(
            drawn.dtype
        )

    def __str__(self) -> str:
        return f"{super().__str__()}{' tied' if self.tied else ''}"

    def weight(self, shape: Sequence[int], dtype: DType) -> np.ndarray:
        """A random cotangent, without values near zero that would hide a mistake."""
        real = lambda: self.rng.uniform(0.5, 2, tuple(shape)) * self.rng.choice([-1, 1], tuple(shape))
        return np.asarray(real() + (1j * real() if dtype.is_complex else 0)).astype(dtype.numpy)

    def _called(self, call: Any, converted: Any, marked: Any) -> list[Any]:
        """The results, with `self.leaves` marked as such."""
        self.leaves = []
        count = 0

        def leaf(argument: Argument, value: Any) -> Any:
            nonlocal count
            if isinstance(value, tuple) and any(isinstance(each, np.ndarray) for each in value):
                return [leaf(argument, each) for each in value]
            made = converted(argument, value)
            if isinstance(value, np.ndarray) and dtypes.from_numpy(value.dtype).kind in ("float", "complex"):
                if self.active is None or count in self.active:
                    marked(made)
                    self.leaves.append(made)
                count += 1
            return made

        args, kwargs = self.arguments(leaf)
        return golden.flattened(call(*args, **kwargs))

    # PyTorch

    def golden(self, order: int) -> list[list[torch.Tensor | None]]:
        """PyTorch's derivatives, of the first order and up to this one. It finds out which leaves it takes."""
        self.order = order
        while True:
            try:
                return self._golden(order)
            except (RuntimeError, NotImplementedError, ValueError, IndexError, TypeError) as error:
                raise NotDifferentiable(str(error).splitlines()[0]) from None

    def _golden(self, order: int) -> list[list[torch.Tensor | None]]:
        results = self._called(
            lambda *a, **k: golden.quietly(golden.overload(self.row), *a, **k),
            golden.as_torch,
            lambda t: t.requires_grad_(),
        )
        self.tracked = [isinstance(r, torch.Tensor) and r.requires_grad for r in results]
        self.numbers = [isinstance(r, torch.Tensor) and r.dtype.is_floating_point or isinstance(r, torch.Tensor) and r.dtype.is_complex for r in results]
        outputs = [r for r, has in zip(results, self.tracked) if has]
        inputs = self.leaves
        found: list[list[torch.Tensor | None]] = []
        self.cotangents = []
        for level in range(order):
            weights = [
                self.weight(r.shape, dtypes.BY_NAME[str(r.dtype).removeprefix("torch.")]) for r in outputs
            ]
            given = [torch.from_numpy(each.copy()) for each in weights]
            further = level + 1 < order
            if further:
                given = [each.requires_grad_() for each in given]
            if not outputs or not inputs:
                break
            try:
                grads = golden.quietly(
                    torch.autograd.grad, outputs, inputs, given, create_graph=further, allow_unused=True
                )
            except (RuntimeError, NotImplementedError):
                if level == 0:
                    raise
                break
            self.cotangents.append(weights)  # type: ignore[arg-type]
            found.append(list(grads))
            inputs = [*inputs, *given]
            outputs = [each for each in grads if each is not None and each.requires_grad]
        return found

    # Ours

    def ours_at(self, theirs: list[list[torch.Tensor | None]]) -> list[list[tn.Tensor | None]]:
        """Our derivatives of the same weighted sums, not computed yet."""
        results = self._called(
            golden.function(self.row), golden.to_tenfold, lambda t: t.requires_grad_()
        )
        mine = [isinstance(r, tn.Tensor) and r.requires_grad for r in results]
        self.wrongly = [i for i, (a, b) in enumerate(zip(mine, self.tracked)) if a and not b]
        self.lacking = [i for i, (a, b) in enumerate(zip(mine, self.tracked)) if b and not a]
        outputs = [r for r, has in zip(results, self.tracked) if has]
        inputs = self.leaves
        found = []
        for level, (weights, golden_grads) in enumerate(zip(self.cotangents, theirs)):
            further = level + 1 < len(theirs)
            pairs = [(r, tn.tensor(w)) for r, w in zip(outputs, weights) if r is not None and r.requires_grad]
            given = [w.requires_grad_() if further else w for _, w in pairs]
            if not pairs:
                found.append([None] * len(inputs))
                break
            grads = tn.autograd.grad([r for r, _ in pairs], inputs, given, create_graph=further, allow_unused=True)
            found.append(list(grads))
            inputs = [*inputs, *given]
            outputs = [
                mine for mine, each in zip(grads, golden_grads) if each is not None and each.requires_grad
            ]
        return found

    # Comparing

    def differences(self, ours: list[list[tn.Tensor | None]], theirs: list[list[torch.Tensor | None]]) -> list[str]:
        """How our derivatives, computed, differ from PyTorch's. None stands for zeros, as PyTorch has it."""
        found = []
        for order, (mine, reference) in enumerate(zip(ours, theirs, strict=True), 1):
            for i, (a, b) in enumerate(zip(mine, reference, strict=True)):
                if text := self._difference(a, b, 10.0 ** (order - 1)):
                    found.append(f"{self}: derivative {order} by tensor {i}: {text}")
        return found

    def _difference(self, ours: tn.Tensor | None, theirs: torch.Tensor | None, slack: float) -> str | None:
        if theirs is None:
            return None if ours is None or not ours.detach().numpy().any() else "PyTorch has none"
        golden_array = golden.to_numpy(torch.zeros_like(theirs) if theirs._is_zerotensor() else theirs)
        array = np.zeros_like(golden_array) if ours is None else ours.detach().numpy()
        if array.shape != golden_array.shape or array.dtype != golden_array.dtype:
            return f"{array.dtype}{array.shape}, PyTorch {golden_array.dtype}{golden_array.shape}"
        rtol, atol = golden.tolerance(self.row, dtypes.from_numpy(array.dtype))
        wrong = ~golden.close(array, golden_array, rtol * slack, atol * slack)
        # Where PyTorch says NaN, any number is as good; infinite complex numbers have no certain direction.
        wrong &= np.isfinite(golden_array) if array.dtype.kind == "c" else ~np.isnan(golden_array)
        if not wrong.any():
            return None
        place = tuple(int(i) for i in np.argwhere(wrong)[0])
        values = f"{array[place]!r}, PyTorch {golden_array[place]!r}"
        return f"{int(wrong.sum())} of {wrong.size} differ, at {list(place)} {values}"
