"""Generators: seeds, states that are taken and put back, and blocks that leave no trace in them."""

import numpy as np
import pytest

import tenfold as tn
from tenfold.base.errors import FormatError


def test_the_same_seed_gives_the_same_numbers_and_another_gives_others():
    first, second = tn.Generator().manual_seed(7), tn.Generator().manual_seed(7)
    drawn = tn.rand(4, generator=first).tolist()
    assert drawn == tn.rand(4, generator=second).tolist()
    assert drawn != tn.rand(4, generator=first).tolist()
    assert drawn != tn.rand(4, generator=tn.Generator().manual_seed(8)).tolist()
    assert first.initial_seed() == 7


def test_a_seed_is_any_number_of_64_bits():
    for seed in (-1, -(2**63), 2**64 - 1, np.int32(5), True):
        assert tn.Generator().manual_seed(seed).initial_seed() == int(seed) % 2**64
    for seed in (2**64, -(2**63) - 1):
        with pytest.raises(tn.ArgumentError, match="does not fit 64 bits"):
            tn.Generator().manual_seed(seed)
    with pytest.raises(tn.ArgumentError, match="the seed is an int, not float"):
        tn.Generator().manual_seed(1.5)
    assert tn.manual_seed(2.0).initial_seed() == 2  # what `int` makes of it, as in PyTorch
    with pytest.raises(tn.ArgumentError, match="the seed is an int"):
        tn.manual_seed("a")


def test_a_state_is_sixteen_bytes_that_can_be_put_back():
    generator = tn.Generator().manual_seed(3)
    tn.rand(5, generator=generator)
    state = generator.get_state()
    assert state.dtype is tn.uint8 and state.shape == (16,)
    twin, expected = generator.clone_state(), tn.rand(5, generator=generator).tolist()
    assert tn.rand(5, generator=twin).tolist() == expected and twin.initial_seed() == 3
    assert tn.rand(5, generator=generator.set_state(state)).tolist() == expected
    assert tn.rand(5, generator=generator.set_state(state.view(tn.uint64))).tolist() == expected
    for wrong in (tn.zeros(16), tn.zeros(5056, dtype=tn.uint8), tn.zeros(3, dtype=tn.uint64)):
        with pytest.raises(FormatError, match=r"a generator's state is u8\[16\]"):
            generator.set_state(wrong)


def test_a_seed_from_the_system_is_told():
    generator = tn.Generator()
    seeds = {generator.seed() for _ in range(3)}
    assert len(seeds) == 3 and generator.initial_seed() in seeds
    assert f"seed {generator.initial_seed()}" in repr(generator)


def test_a_fork_leaves_the_default_generator_as_it_was():
    tn.manual_seed(1)
    expected = tn.rand(3).tolist()
    tn.manual_seed(1)
    with tn.random.fork_rng():
        tn.rand(7).eval()
    assert tn.rand(3).tolist() == expected
    tn.manual_seed(1)
    with tn.random.fork_rng(enabled=False):
        tn.rand(7).eval()
    assert tn.rand(3).tolist() != expected
