"""What vmap does with random numbers and with state."""

from __future__ import annotations

import numpy as np
import pytest

import tenfold as tn


def noise(x):
    return x + tn.rand(3)


def test_random_numbers_under_vmap_are_an_error_unless_said():
    with pytest.raises(tn.TraceError, match="draws random numbers"):
        tn.func.vmap(noise)(tn.zeros(4))


def test_random_numbers_may_be_the_same_or_different():
    tn.manual_seed(0)
    same_drawn = tn.func.vmap(noise, randomness="same")(tn.zeros(4))
    different = tn.func.vmap(noise, randomness="different")(tn.zeros(4))
    again = tn.func.vmap(noise, randomness="different")(tn.zeros(4))
    plain = tn.rand(3)
    tn.eval(same_drawn, different, again, plain)
    assert (same_drawn == same_drawn[0]).all()
    drawn = np.concatenate([each.numpy().reshape(-1, 3) for each in (same_drawn[0], different, again, plain)])
    assert len(np.unique(drawn)) == drawn.size
    assert drawn.min() >= 0 and drawn.max() < 1


def test_different_random_numbers_are_spread_evenly():
    tn.manual_seed(1)
    drawn = tn.func.vmap(lambda x: tn.randn(50), randomness="different")(tn.zeros(200)).numpy()
    assert abs(drawn.mean()) < 0.05 and abs(drawn.std() - 1) < 0.05
    assert np.abs(np.corrcoef(drawn[:8]) - np.eye(8)).max() < 0.6


def test_nested_vmaps_draw_different_numbers():
    tn.manual_seed(2)
    inner = tn.func.vmap(lambda x: x + tn.rand(()), randomness="different")
    drawn = tn.func.vmap(inner, randomness="different")(tn.zeros(3, 4)).numpy()
    assert len(np.unique(drawn)) == 12
    with pytest.raises(tn.TraceError, match="draws random numbers"):
        tn.func.vmap(inner)(tn.zeros(3, 4))


def test_the_seed_decides():
    drawn = []
    for _ in range(2):
        tn.manual_seed(7)
        drawn.append(tn.func.vmap(noise, randomness="different")(tn.zeros(4)).numpy())
    np.testing.assert_array_equal(*drawn)


def test_state_that_all_share_may_be_written():
    count, seen = tn.zeros(()), tn.zeros(())

    def counted(x):
        count.add_(1)
        return x * count

    assert tn.func.vmap(counted)(tn.ones(3)).tolist() == [1.0] * 3
    assert count.item() == 1.0
    with pytest.raises(tn.TraceError, match="a tensor from outside the function is written"):
        tn.func.vmap(lambda x: seen.add_(x))(tn.ones(3))
    assert seen.item() == 0.0


def test_an_argument_that_is_written_is_written_outside():
    x = tn.zeros(3, 2)
    tn.func.vmap(lambda a: a.add_(1).sum(), in_dims=1)(x).eval()
    assert x.tolist() == [[1.0, 1.0]] * 3
