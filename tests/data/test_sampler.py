"""Samplers: what they visit, how often, and that a seed decides the order."""

from typing import Any

import numpy as np
import pytest
import torch

import tenfold as tn
from tenfold import data


def seeded(number=0):
    return tn.Generator().manual_seed(number)


def test_in_order():
    sampler = data.SequentialSampler("abc")
    assert list(sampler) == [0, 1, 2]
    assert len(sampler) == 3


def test_shuffled_without_replacement():
    sampler = data.RandomSampler(range(100), generator=seeded())
    first, second = list(sampler), list(sampler)
    assert sorted(first) == sorted(second) == list(range(100))
    assert first != second
    assert list(data.RandomSampler(range(100), generator=seeded())) == first
    assert all(type(each) is int for each in first)
    assert list(data.RandomSampler([])) == []


def test_orders_do_not_change():
    """The order of a seed: whoever changes it changes every user's experiments."""
    assert list(data.RandomSampler(range(8), generator=seeded())) == [7, 1, 5, 0, 3, 6, 4, 2]


def test_the_default_generator_decides_where_none_is_given():
    tn.manual_seed(5)
    first = list(data.RandomSampler(range(50)))
    tn.manual_seed(5)
    assert list(data.RandomSampler(range(50))) == first


def test_all_orders_are_equally_likely():
    generator = seeded(1)
    drawn = [list(data.RandomSampler(range(3), generator=generator)) for _ in range(1200)]
    _, counts = np.unique(drawn, axis=0, return_counts=True)
    assert len(counts) == 6
    assert (abs(counts - 200) < 5 * np.sqrt(200)).all()


def test_more_samples_than_there_are_go_round_again():
    sampler = data.RandomSampler(range(4), num_samples=10, generator=seeded())
    drawn = list(sampler)
    assert len(sampler) == len(drawn) == 10
    assert sorted(drawn[:4]) == sorted(drawn[4:8]) == [0, 1, 2, 3]
    assert len(list(data.RandomSampler(range(4), num_samples=2))) == 2


def test_with_replacement_every_index_is_equally_likely():
    drawn = list(data.RandomSampler(range(10), replacement=True, num_samples=20_000, generator=seeded()))
    counts = np.bincount(drawn, minlength=10)
    assert len(counts) == 10
    assert (abs(counts - 2000) < 5 * np.sqrt(2000)).all()


def test_a_subset_in_random_order():
    sampler = data.SubsetRandomSampler([3, 9, 27, 81], generator=seeded())
    assert sorted(sampler) == [3, 9, 27, 81]
    assert len(sampler) == 4


@pytest.mark.parametrize("weights", [[1, 0, 3, 4], tn.tensor([1.0, 0.0, 3.0, 4.0])])
def test_weights_decide_how_often(weights):
    drawn = list(data.WeightedRandomSampler(weights, 8000, generator=seeded()))
    counts = np.bincount(drawn, minlength=4)
    assert counts[1] == 0
    assert (abs(counts - [1000, 0, 3000, 4000]) < 5 * np.sqrt(2000)).all()


def test_weights_without_replacement():
    generator = seeded(2)
    sampler = data.WeightedRandomSampler([1, 0, 1, 6], 2, replacement=False, generator=generator)
    drawn = [list(sampler) for _ in range(2000)]
    assert all(len(set(pair)) == 2 and 1 not in pair for pair in drawn)
    first = np.bincount([pair[0] for pair in drawn], minlength=4)
    assert (abs(first - [250, 0, 250, 1500]) < 5 * np.sqrt([250, 1, 250, 375])).all()


@pytest.mark.parametrize("drop_last", [False, True])
def test_replicas_share_an_order_between_them(drop_last):
    def parts(m: Any, shuffle: bool, epoch: int = 0) -> list[list[int]]:
        samplers = [
            m.utils.data.DistributedSampler(range(10), 4, rank, shuffle=shuffle, drop_last=drop_last)
            for rank in range(4)
        ]
        for each in samplers:
            each.set_epoch(epoch)
        assert {len(each) for each in samplers} == {len(list(each)) for each in samplers}
        return [list(each) for each in samplers]

    assert parts(tn, False) == parts(torch, False)
    first, second = parts(tn, True), parts(tn, True, epoch=1)
    assert first == parts(tn, True) != second
    seen = [each for part in first for each in part]
    assert len(seen) == (8 if drop_last else 12) and len(set(seen)) == (8 if drop_last else 10)


def test_batches():
    assert list(data.BatchSampler(range(5), 2, False)) == [[0, 1], [2, 3], [4]]
    assert list(data.BatchSampler(range(5), 2, True)) == [[0, 1], [2, 3]]
    assert len(data.BatchSampler(range(5), 2, False)) == 3
    assert len(data.BatchSampler(range(5), 2, True)) == 2


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: data.RandomSampler(range(3), replacement=1), "replacement is True or False, not 1"),
        (lambda: data.RandomSampler(range(3), num_samples=0), "num_samples is a positive int, not 0"),
        (lambda: list(data.RandomSampler([], num_samples=2)), "2 samples of a data set that is empty"),
        (lambda: data.DistributedSampler(range(3)), "num_replicas and rank are not known"),
        (lambda: data.DistributedSampler(range(3), 2, 2), "rank lies between 0 and 1, and is 2"),
        (lambda: data.WeightedRandomSampler([1, -1], 2), "none negative"),
        (lambda: data.WeightedRandomSampler([0, 0], 2), "not all zero"),
        (lambda: data.WeightedRandomSampler([[1.0]], 2), "not 2-dimensional"),
        (
            lambda: data.WeightedRandomSampler([1, 0, 1], 3, replacement=False),
            "where 2 have a weight above zero",
        ),
        (lambda: data.BatchSampler(range(3), 0, False), "BatchSampler: batch_size is a positive int, not 0"),
        (lambda: data.BatchSampler(range(3), True, False), "batch_size is a positive int, not True"),
        (lambda: data.BatchSampler(range(3), 2, None), "drop_last is True or False, not None"),
    ],
)
def test_wrong_arguments_are_explained(make, message):
    with pytest.raises(tn.ArgumentError, match=message):
        make()
