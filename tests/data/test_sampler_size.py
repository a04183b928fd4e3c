"""A sampler draws as it goes."""

import itertools

import tenfold as tn


def test_ten_billion_draws_are_not_made_at_once():
    sampler = tn.data.RandomSampler(range(10), replacement=True, num_samples=10**10)
    drawn = list(itertools.islice(sampler, 100_000))
    assert len(sampler) == 10**10 and set(drawn) == set(range(10))
