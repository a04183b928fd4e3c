"""Datasets and their combinations, beside PyTorch's."""

import numpy as np
import pytest
import torch
from torch.utils import data as torch_data

import tenfold as tn
from tenfold import data
from tenfold.data.dataset import gatherer


class Squares(data.Dataset):
    def __init__(self, size):
        self.size = size

    def __len__(self):
        return self.size

    def __getitem__(self, index):
        return index * index


class Count(data.IterableDataset):
    def __init__(self, *numbers):
        self.numbers = numbers

    def __iter__(self):
        return iter(self.numbers)

    def __len__(self):
        return len(self.numbers)


def test_it_is_where_pytorch_has_it():
    import tenfold.utils.data as there
    from tenfold.utils.data import DataLoader

    assert there is data
    assert DataLoader is data.DataLoader
    from tenfold.utils.data.dataloader import DataLoader as loader
    from tenfold.utils.data.distributed import DistributedSampler

    assert loader is DataLoader and DistributedSampler is data.DistributedSampler
    assert not hasattr(there.distributed, "distributed") and not hasattr(there.dataloader, "distributed")
    missing = {
        "Dataset", "IterableDataset", "TensorDataset", "StackDataset", "ConcatDataset", "ChainDataset",
        "Subset", "random_split", "Sampler", "SequentialSampler", "RandomSampler", "SubsetRandomSampler",
        "WeightedRandomSampler", "BatchSampler", "DataLoader", "default_collate", "default_convert",
        "get_worker_info",
    } - set(data.__all__)  # fmt: skip
    assert not missing


def test_rows_of_tensors():
    x, y = tn.arange(6).reshape(3, 2), tn.tensor([1.0, 2.0, 3.0])
    pairs = data.TensorDataset(x, y)
    assert len(pairs) == 3
    first, last = pairs[0], pairs[-1]
    assert [each.tolist() for each in first] == [[0, 1], 1.0]
    assert [each.tolist() for each in last] == [[4, 5], 3.0]
    with pytest.raises(tn.ShapeError, match=r"TensorDataset: .* equally long; they have \[3, 2\] rows"):
        data.TensorDataset(x, tn.ones(2))
    with pytest.raises(tn.ArgumentError, match="tensors that have rows"):
        data.TensorDataset(tn.tensor(1.0))


def test_concatenation_counts_through():
    both = Squares(3) + Squares(2)
    assert isinstance(both, data.ConcatDataset)
    assert [both[i] for i in range(5)] == [0, 1, 4, 0, 1]
    assert both[-1] == 1
    assert both.cumulative_sizes == [3, 5]
    for index in (5, -6):
        with pytest.raises(IndexError, match="out of range for 5 samples"):
            both[index]
    with pytest.raises(tn.ArgumentError, match="at least one"):
        data.ConcatDataset([])
    with pytest.raises(tn.ArgumentError, match="use ChainDataset"):
        data.ConcatDataset([Count(1)])


def test_a_chain_iterates_one_after_the_other():
    chain = Count(1, 2) + Count(3)
    assert isinstance(chain, data.ChainDataset)
    assert list(chain) == [1, 2, 3]
    assert len(chain) == 3
    with pytest.raises(tn.ArgumentError, match="not Squares"):
        list(data.ChainDataset([Squares(2)]))


def test_a_stack_is_a_tuple_or_a_dict():
    assert data.StackDataset(Squares(3), Squares(3))[2] == (4, 4)
    named = data.StackDataset(a=Squares(3), b=Squares(3))
    assert named[1] == {"a": 1, "b": 1}
    assert len(named) == 3
    with pytest.raises(tn.ShapeError, match="equally long"):
        data.StackDataset(Squares(3), Squares(2))
    with pytest.raises(tn.ArgumentError, match="either all by position or all by name"):
        data.StackDataset(Squares(3), b=Squares(3))


def test_a_subset_maps_indices():
    some = data.Subset(Squares(10), [7, 3])
    assert [some[0], some[1], len(some)] == [49, 9, 2]
    assert some.__getitems__([1, 0]) == [9, 49]


@pytest.mark.parametrize("lengths", [[6, 4], [0.5, 0.5], [0.34, 0.33, 0.33], [1.0], [0.9, 0.1], [10, 0]])
def test_a_split_has_every_sample_once(lengths):
    ours = data.random_split(Squares(10), lengths, tn.Generator().manual_seed(3))
    assert sorted(index for part in ours for index in part.indices) == list(range(10))
    theirs = torch_data.random_split(range(10), lengths, torch.Generator())
    assert [len(part) for part in ours] == [len(part) for part in theirs]
    again = data.random_split(Squares(10), lengths, tn.Generator().manual_seed(3))
    assert [part.indices for part in ours] == [part.indices for part in again]


def test_a_split_that_does_not_add_up_is_refused():
    with pytest.raises(tn.ArgumentError, match=r"\[6, 5\] do not add up to the 10 samples"):
        data.random_split(Squares(10), [6, 5])
    with pytest.raises(tn.ArgumentError, match="cannot be negative"):
        data.random_split(Squares(10), [11, -1])


def test_what_is_not_written_says_so():
    with pytest.raises(NotImplementedError, match="Dataset has no __getitem__"):
        data.Dataset()[0]
    with pytest.raises(NotImplementedError, match="IterableDataset has no __iter__"):
        list(data.IterableDataset())
    with pytest.raises(NotImplementedError, match="Sampler has no __iter__"):
        list(data.Sampler())


def test_rows_gathered_at_once_are_the_rows_one_by_one():
    x = tn.tensor(np.random.default_rng(0).normal(size=(20, 3)))
    narrow = x.to(tn.bfloat16)
    plain = data.TensorDataset(x, narrow)
    some = data.Subset(plain, [19, 4, 4, 0, 7])
    stacked = data.StackDataset(rows=some, again=data.Subset(plain, [1, 2, 3, 4, 5]))
    for dataset in (plain, some, stacked):
        batch = next(iter(data.DataLoader(dataset, batch_size=5)))
        slow = data.default_collate([dataset[i] for i in range(5)])
        if isinstance(batch, dict):
            assert list(batch) == list(slow) == ["rows", "again"]
            batch, slow = batch["rows"] + batch["again"], slow["rows"] + slow["again"]
        assert [each.dtype for each in batch] == [each.dtype for each in slow]
        tn.eval(*batch, *slow)
        assert all(np.array_equal(a.numpy(), b.numpy()) for a, b in zip(batch, slow))


def test_samples_of_other_kinds_are_fetched_one_by_one():
    numbers, rows = list(range(10)), data.TensorDataset(tn.arange(10))
    for dataset in (numbers, data.Subset(numbers, [1, 3, 5]), data.StackDataset(rows, numbers)):
        assert gatherer(dataset) is None
    for dataset in (rows, data.Subset(rows, [1, 3, 5]), data.Subset(data.Subset(rows, [5, 4]), [1, 0])):
        assert gatherer(dataset) is not None
    loader = data.DataLoader(data.Subset(numbers, [7, 2, 4]), batch_size=2)
    assert [batch.tolist() for batch in loader] == [[7, 2], [4]]


def test_rows_on_another_device_are_gathered_there(monkeypatch):
    x = tn.arange(12).reshape(6, 2)
    monkeypatch.setattr(tn.Tensor, "is_cpu", False)
    monkeypatch.setattr(tn.Tensor, "_host", None)
    rows = data.TensorDataset(x)
    batches = [batch for (batch,) in data.DataLoader(rows, sampler=[5, -1, 0], batch_size=2)]
    monkeypatch.undo()
    assert [each.tolist() for each in batches] == [[[10, 11], [10, 11]], [[0, 1]]]


def test_a_subclass_with_samples_of_its_own_is_asked_for_them():
    class Doubled(data.TensorDataset):
        def __getitem__(self, index):
            return (super().__getitem__(index)[0] * 2,)

    (batch,) = next(iter(data.DataLoader(Doubled(tn.arange(4)), batch_size=4)))
    assert batch.tolist() == [0, 2, 4, 6]


def test_a_batch_sees_the_data_set_as_it_is_now():
    x = tn.zeros(4)
    loader = data.DataLoader(data.TensorDataset(x), batch_size=4)
    x[1] = 5.0
    (batch,) = next(iter(loader))
    assert batch.tolist() == [0, 5, 0, 0]
    batch += 1
    assert x.tolist() == [0, 5, 0, 0]


def test_a_pipe_is_a_method_of_pipes_of_its_kind():
    class Numbers(tn.data.IterDataPipe):
        def __iter__(self):
            yield from range(4)

    @tn.data.functional_datapipe("doubled_for_this_test")
    class Doubled(tn.data.IterDataPipe[int]):
        def __init__(self, source, times=2):
            self.source, self.times = source, times

        def __iter__(self):
            for number in self.source:
                yield number * self.times

    pipe = Numbers().doubled_for_this_test(times=3)
    assert list(pipe) == [0, 3, 6, 9]
    assert [batch.tolist() for batch in tn.data.DataLoader(pipe, batch_size=2)] == [[0, 3], [6, 9]]
    with pytest.raises(AttributeError):
        Numbers().unknown()


def test_data_sets_and_loaders_take_the_type_of_their_samples():
    assert tn.data.Subset[int]([1, 2, 3], [0, 2])[1] == 3
    assert len(tn.data.ConcatDataset[int]([[1, 2], [3]])) == 3
    assert len(tn.data.DataLoader[int]([1, 2, 3], batch_size=2)) == 2
