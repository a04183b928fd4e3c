"""`tenfold.quasirandom`: Sobol's sequence is PyTorch's."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import tenfold as tn


@pytest.mark.parametrize("dimension", [1, 7])
def test_unscrambled_points_are_pytorchs(dimension):
    ours, theirs = tn.quasirandom.SobolEngine(dimension), torch.quasirandom.SobolEngine(dimension)
    for step in (
        lambda engine: engine.draw(3),
        lambda engine: engine.fast_forward(5).draw(4),
        lambda engine: engine.reset().draw_base2(3),
    ):
        np.testing.assert_array_equal(step(ours).numpy(), step(theirs).numpy())
    assert ours.num_generated == theirs.num_generated
    assert repr(ours) == repr(theirs)


def test_a_seed_gives_the_same_scrambled_points_inside_the_cube():
    first, second = [tn.quasirandom.SobolEngine(3, scramble=True, seed=5).draw(8) for _ in range(2)]
    assert (first == second).all() and (first >= 0).all() and (first < 1).all()


def test_unbalanced_draws_and_wrong_dimensions_are_refused():
    engine = tn.quasirandom.SobolEngine(2)
    engine.draw(3)
    with pytest.raises(ValueError, match="no power of 2"):
        engine.draw_base2(2)
    with pytest.raises(ValueError, match="1 to 21201 dimensions"):
        tn.quasirandom.SobolEngine(0)
