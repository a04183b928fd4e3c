"""Collation gives PyTorch's containers and dtypes."""

import collections

import numpy as np
import pytest
import torch
from torch.utils import data as torch_data

import tenfold as tn
from tenfold import data

Point = collections.namedtuple("Point", "x y")


class Bag(collections.UserDict):
    pass


def shown(batch):
    """A batch in terms that do not depend on the library: containers, dtypes, values."""
    if isinstance(batch, (tn.Tensor, torch.Tensor)):
        return str(batch.dtype).split(".")[1], tuple(batch.shape), batch.tolist()
    if isinstance(batch, collections.abc.Mapping):
        return type(batch).__name__, {key: shown(each) for key, each in batch.items()}
    if isinstance(batch, (list, tuple)):
        return type(batch).__name__, [shown(each) for each in batch]
    return batch


BATCHES = {
    "ints": [1, 2, 3],
    "floats": [1.5, 2.0],
    "bools": [True, False],
    "strings": ["a", "b"],
    "bytes": [b"a", b"b"],
    "arrays": [np.ones((2, 3), np.float32), np.zeros((2, 3), np.float32)],
    "empty arrays": [np.ones((0, 3)), np.zeros((0, 3))],
    "float64 arrays": [np.ones(2), np.zeros(2)],
    "uint8 arrays": [np.ones(2, np.uint8), np.zeros(2, np.uint8)],
    "0-dimensional arrays": [np.array(1.0), np.array(2.0)],
    "float32 scalars": [np.float32(1), np.float32(2)],
    "float64 scalars": [np.float64(1), np.float64(2)],
    "bool scalars": [np.bool_(True), np.bool_(False)],
    "int16 scalars": [np.int16(1), np.int16(2)],
    "dicts": [{"x": 1, "y": [1.0, 2.0]}, {"x": 2, "y": [3.0, 4.0]}],
    "ordered dicts": [collections.OrderedDict(b=1, a=2), collections.OrderedDict(b=3, a=4)],
    "other mappings": [Bag(a=1), Bag(a=2)],
    "tuples": [(1, "a", 2.0), (3, "b", 4.0)],
    "lists": [[1, 2], [3, 4]],
    "named tuples": [Point(1, 2.0), Point(3, 4.0)],
    "nested": [
        {"p": Point((1, "s"), np.ones(2)), "q": [True]},
        {"p": Point((2, "t"), np.ones(2)), "q": [False]},
    ],
    "ranges": [range(2), range(2)],
    "one sample": [(np.ones(3), 7)],
}


@pytest.mark.parametrize("name", BATCHES)
def test_a_batch_is_as_in_pytorch(name):
    samples = BATCHES[name]
    assert shown(data.default_collate(samples)) == shown(torch_data.default_collate(samples))


@pytest.mark.parametrize("name", BATCHES)
def test_a_converted_sample_is_as_in_pytorch(name):
    for sample in BATCHES[name]:
        assert shown(data.default_convert(sample)) == shown(torch_data.default_convert(sample))


def test_tensors_are_stacked_whether_computed_or_not():
    ready = [tn.tensor([1.0, 2.0]), tn.tensor([3.0, 4.0])]
    later = [each * 2 for each in ready]
    narrow = [each.to(tn.bfloat16) for each in ready]
    assert data.default_collate(ready).tolist() == [[1, 2], [3, 4]]
    assert data.default_collate(later).tolist() == [[2, 4], [6, 8]]
    assert data.default_collate(narrow).dtype is tn.bfloat16
    assert data.default_collate([tn.tensor(1), tn.tensor(2)]).tolist() == [1, 2]


def test_a_stacked_batch_is_a_copy():
    sample = tn.tensor([1.0, 2.0])
    batch = data.default_collate([sample, sample])
    batch[0] = 9.0
    assert sample.tolist() == [1, 2]
    assert batch.tolist() == [[9, 9], [1, 2]]


def test_what_does_not_go_together_is_explained():
    with pytest.raises(tn.ShapeError, match=r"\[2\] first, and \[3\] at place 1") as raised:
        data.default_collate([{"x": tn.ones(2)}, {"x": tn.ones(3)}])
    assert raised.value.__notes__ == ["in field 'x' of the samples"]
    with pytest.raises(tn.ShapeError, match=r"different numbers of fields: \[1, 2\]"):
        data.default_collate([[1], [1, 2]])
    with pytest.raises(TypeError, match="samples of type object cannot be put together"):
        data.default_collate([object()])
    with pytest.raises(tn.DTypeError, match="a tensor cannot hold NumPy's str"):
        data.default_collate([np.array(["a"])])
    with pytest.raises(tn.ShapeError, match="no samples"):
        data.default_collate([])
