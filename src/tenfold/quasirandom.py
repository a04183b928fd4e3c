"""`tenfold.quasirandom`: points that fill a cube more evenly than random ones."""

from __future__ import annotations

import importlib
import warnings
from typing import Any

import numpy as np

from tenfold.base import dtypes
from tenfold.base.devices import Device
from tenfold.base.dtypes import DType
from tenfold.base.errors import ArgumentError, MissingEngine, constructor, located
from tenfold.tensor import Tensor, leaf
from tenfold.tensor.dispatch import aten

__all__ = ["SobolEngine"]


class SobolEngine:
    """Sobol's sequence in `dimension` dimensions, scrambled at random if asked for: successive draws continue
    it. The direction numbers are Joe and Kuo's, as PyTorch's are, so unscrambled points are the same.

    engine = tn.quasirandom.SobolEngine(2)
    engine.draw(3)  # [[0., 0.], [.5, .5], [.75, .25]]
    """

    MAXBIT = 30
    MAXDIM = 21201

    @constructor
    def __init__(self, dimension: int, scramble: bool = False, seed: int | None = None):
        if not 1 <= dimension <= self.MAXDIM:
            raise ArgumentError(f"a Sobol sequence has 1 to {self.MAXDIM} dimensions, not {dimension}")
        self.dimension, self.scramble, self.seed = dimension, scramble, seed
        self.num_generated = 0
        self._sequence = self._begin()

    def _begin(self) -> Any:
        try:
            qmc = importlib.import_module("scipy.stats.qmc")
        except ModuleNotFoundError:
            raise MissingEngine("Sobol sequences need SciPy", help="pip install scipy") from None
        if self.scramble and self.seed is None:
            self.seed = int(aten("randint")(0, 2**31 - 1, ()).item())
        return qmc.Sobol(self.dimension, scramble=self.scramble, bits=self.MAXBIT, rng=self.seed)

    @located
    def draw(self, n: int = 1, out: Tensor | None = None, dtype: DType | None = None) -> Tensor:
        """The next n points, one in each row, with coordinates in [0, 1)."""
        wanted = dtype or dtypes.get_default_dtype()
        points = self._points(n)
        drawn = leaf(points.astype(wanted.numpy), Device("cpu"), wanted)
        self.num_generated += n
        return drawn if out is None else out.resize_(drawn.shape).copy_(drawn)

    def _points(self, n: int) -> np.ndarray:
        if n == 0:
            return np.zeros((0, self.dimension))
        with warnings.catch_warnings():  # SciPy warns of a first draw that is no power of 2
            warnings.simplefilter("ignore", UserWarning)
            return self._sequence.random(n)

    @located
    def draw_base2(self, m: int, out: Tensor | None = None, dtype: DType | None = None) -> Tensor:
        """The next 2**m points. The number drawn in all must be a power of 2: only then are they balanced."""
        n = 2**m
        total = self.num_generated + n
        if total & (total - 1):
            raise ArgumentError(
                f"{n} points after {self.num_generated} are no power of 2 in all, so they are not balanced",
                help="call reset(), or use draw",
            )
        return self.draw(n, out, dtype)

    def reset(self) -> SobolEngine:
        """Go back to the first point."""
        self._sequence.reset()
        self.num_generated = 0
        return self

    def fast_forward(self, n: int) -> SobolEngine:
        """Leave out the next n points."""
        if n:
            self._sequence.fast_forward(n)
            self.num_generated += n
        return self

    def __repr__(self) -> str:
        words = [f"dimension={self.dimension}"]
        words += ["scramble=True"] if self.scramble else []
        words += [f"seed={self.seed}"] if self.seed is not None else []
        return f"{type(self).__name__}({', '.join(words)})"
