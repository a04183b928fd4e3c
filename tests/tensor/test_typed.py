"""PyTorch's older types of tensors, `FloatTensor` and its like."""

import pytest
import torch

import tenfold as tn
from tenfold.tensor.typed import CUDA_TYPES, TYPES


@pytest.mark.parametrize("name", [name for name in TYPES if hasattr(torch, name)])
def test_a_type_makes_tensors_of_its_dtype_and_knows_them(name):
    ours, theirs = TYPES[name], getattr(torch, name)
    for args in ((2, 3), ([1, 0],), (tn.Size([2]),), ()):
        expected = theirs(*[torch.Size(arg) if isinstance(arg, tn.Size) else arg for arg in args])
        made = ours(*args)
        assert made.shape == tuple(expected.shape) and str(made.dtype)[8:] == str(expected.dtype)[6:]
        assert isinstance(made, ours) and not isinstance(made, CUDA_TYPES[name])
    assert ours([1, 0]).tolist() == theirs([1, 0]).tolist()
    assert not any(isinstance(ours(1), other) for other in TYPES.values() if other is not ours)
    assert repr(ours) == f"<class 'tenfold.{name}'>"
    assert repr(CUDA_TYPES[name]) == f"<class 'tenfold.cuda.{name}'>"


def test_complex_dtypes_have_types_too():
    x = TYPES["ComplexFloatTensor"](2)
    assert x.dtype is tn.complex64 and not isinstance(x, TYPES["ComplexDoubleTensor"])


def test_a_tensor_of_the_dtype_is_taken_as_it_is_and_others_are_refused():
    x = tn.ones(2)
    assert tn.FloatTensor(x) is x
    with pytest.raises(tn.ArgumentError, match="FloatTensor takes float32, not a int64 tensor"):
        tn.FloatTensor(tn.arange(2))


@pytest.mark.parametrize("args", [([1], 2), ("a",), (2, [1]), (True, 2), (tn.Size([1]), 2)], ids=str)
def test_what_is_neither_sizes_nor_numbers_is_refused(args):
    with pytest.raises(tn.ArgumentError, match="takes sizes or numbers"):
        tn.FloatTensor(*args)
