"""`return_types`: one class for each op with several named results, by its name."""

import pickle

import pytest
import torch

import tenfold as tn


@pytest.mark.parametrize("name", ["max", "sort", "linalg_qr", "linalg_slogdet", "median", "svd"])
def test_an_op_with_named_results_has_a_class_of_its_name_and_fields(name):
    ours, golden = getattr(tn.return_types, name), getattr(torch.return_types, name)
    assert ours.__name__ == golden.__name__
    assert set(ours._fields) <= set(dir(golden)) and len(ours._fields) == golden.n_fields


def test_results_are_instances_of_the_class_and_can_be_pickled():
    results = tn.tensor([[1.0, 3.0], [2.0, 0.0]]).max(0)
    assert type(results) is tn.return_types.max
    assert type(tn.linalg.qr(tn.eye(2))) is tn.return_types.linalg_qr
    again = pickle.loads(pickle.dumps(results))
    assert type(again) is tn.return_types.max and again.indices.tolist() == [1, 0]


def test_a_class_takes_its_results_as_a_sequence_as_in_pytorch():
    values, indices = tn.return_types.max([1, 2])
    assert (values, indices) == tuple(torch.return_types.max([1, 2])) == (1, 2)


def test_all_classes_can_be_listed():
    assert tn.return_types.max in tn.return_types.all_return_types
    assert "max" in dir(tn.return_types)


def test_a_name_without_named_results_is_unknown():
    with pytest.raises(AttributeError, match="return_types"):
        tn.return_types.add  # noqa: B018
