"""Methods that are no ATen op: functions on elements, storage that is resized or taken over, and files."""

import numpy as np
import pytest
import torch

import tenfold as tn
from tenfold.base.errors import GradientError, ShapeError, SizeOutOfRange

BOTH = pytest.mark.parametrize("L", [tn, torch], ids=["tenfold", "torch"])


@BOTH
def test_python_functions_replace_elements(L):
    x, y = L.tensor([[1, 2], [3, 4]]), L.tensor([10, 20])
    assert x.apply_(lambda e: e * 2) is x and x.tolist() == [[2, 4], [6, 8]]
    assert x.map_(y, lambda e, other: e + other).tolist() == [[12, 24], [16, 28]]
    assert x.map2_(y, x.clone(), lambda e, a, b: e - a + b).tolist() == [[14, 28], [22, 36]]


def test_functions_on_elements_refuse_gradients_and_larger_tensors():
    with pytest.raises(GradientError, match="has no gradient"):
        tn.ones(2, requires_grad=True).apply_(abs)
    with pytest.raises(ShapeError, match=r"\(2,\) cannot hold elements for \(3, 2\)"):
        tn.ones(2).map_(tn.ones(3, 2), max)


@BOTH
def test_resize_looks_at_the_same_memory_while_that_is_enough(L):
    x = L.arange(6)
    part = x[2:]
    part.resize_(2, 2)
    part[0, 0] = 9
    assert part.tolist() == [[9, 3], [4, 5]] and x.tolist() == [0, 1, 9, 3, 4, 5]
    x.resize_((2, 2))
    assert x.tolist() == [[0, 1], [9, 3]] and x.stride() == (2, 1)
    x.resize_(6)
    assert x.tolist() == [0, 1, 9, 3, 4, 5]
    x.resize_as_(L.ones(2, 3))
    assert x.tolist() == [[0, 1, 9], [3, 4, 5]]
    x.resize_(7)
    assert x.tolist()[:6] == [0, 1, 9, 3, 4, 5]


def test_sizes_that_cannot_be_are_refused():
    for sizes in ((-1,), (1.5,), ((2, "a"),)):
        with pytest.raises(ShapeError, match="sizes are ints from 0 on"):
            tn.ones(2).resize_(*sizes)
    with pytest.raises(SizeOutOfRange, match="more bytes than 64 bits count"):
        tn.ones(2).resize_(2**61)
    with pytest.raises(GradientError, match="cannot be resized"):
        tn.ones(2, requires_grad=True).resize_(1)
    with pytest.raises(ShapeError, match="has not as many elements"):
        tn.ones(2, 3).resize(5)
    assert tn.arange(6).resize(2, 3).tolist() == tn.arange(6).resize_as(tn.ones(2, 3)).tolist()


@BOTH
def test_set_shares_memory_from_then_on(L):
    x, y = L.ones(2), L.arange(6.0)
    assert x.set_(y[2:4]) is x and x.is_set_to(y[2:4]) and not x.is_set_to(y[2:5]) and not x.is_set_to(y)
    x.zero_()
    assert y.tolist() == [0, 1, 0, 0, 4, 5]
    assert x.set_().numel() == 0 and y.numel() == 6


def test_set_refuses_other_dtypes_and_parts_by_numbers():
    with pytest.raises(tn.ArgumentError, match="cannot share memory of i64"):
        tn.ones(2).set_(tn.arange(2))
    for args in ((3,), (tn.ones(2), 0)):
        with pytest.raises(tn.ArgumentError, match="takes a Tensor"):
            tn.ones(2).set_(*args)


@BOTH
def test_new_tensors_are_of_this_ones_dtype(L):
    x = L.ones(2, dtype=L.float64)
    assert x.new([1, 2]).dtype is L.float64 and x.new([1, 2]).tolist() == [1, 2]
    assert tuple(x.new(2, 3).shape) == (2, 3) == tuple(x.new(L.Size([2, 3])).shape) and x.new().numel() == 0
    strided = x.new_empty_strided((2, 3), (1, 2))
    assert strided.stride() == (1, 2) and strided.dtype is L.float64


@BOTH
def test_tensors_lie_in_memory_as_asked(L):
    strided = L.empty_strided((2, 3), (4, 1), requires_grad=True)
    assert strided.stride() == (4, 1) and strided.requires_grad and strided.untyped_storage().nbytes() == 28
    assert L.empty_strided((0, 3), (4, 1)).untyped_storage().nbytes() == 0
    permuted = L.empty_permuted((2, 3, 4), (1, 2, 0))
    assert tuple(permuted.shape) == (2, 3, 4) and permuted.stride() == (1, 8, 2)
    assert permuted.dim_order() == (1, 2, 0)


def test_layouts_that_are_none_are_refused():
    with pytest.raises(ShapeError, match="2 sizes and 1 strides"):
        tn.empty_strided((2, 3), (1,))
    with pytest.raises(tn.ArgumentError, match=r"\(0, 0\) is no order of 2 dimensions"):
        tn.empty_permuted((2, 3), (0, 0))


@BOTH
def test_files_of_raw_numbers_are_read(L, tmp_path):
    path = str(tmp_path / "numbers")
    np.arange(4, dtype=np.int16).tofile(path)
    assert L.from_file(path, size=3, dtype=L.int16).tolist() == [0, 1, 2]
    storage = L.UntypedStorage.from_file(path, False, 8)
    assert storage.nbytes() == len(storage) == 8


def test_files_that_are_short_or_missing_are_refused(tmp_path):
    path = tmp_path / "numbers"
    path.write_bytes(bytes(4))
    with pytest.raises(tn.ArgumentError, match="has 1 elements, not 2"):
        tn.from_file(str(path), size=2)
    with pytest.raises(tn.ArgumentError, match="cannot read .*: No such file"):
        tn.from_file(str(tmp_path / "none"), size=2)
    with pytest.raises(tn.ArgumentError, match="cannot write to a file"):
        tn.from_file(str(path), shared=True, size=1)


@BOTH
def test_views_share_one_storage(L):
    x = L.arange(6.0)
    storage, part = x.untyped_storage(), x[2:].untyped_storage()
    assert storage.data_ptr() == part.data_ptr() == x.data_ptr() and storage.nbytes() == part.size() == 24
    assert x[2:].data_ptr() == x.data_ptr() + 8 and storage.untyped() is storage


@BOTH
def test_hooks_after_accumulation_belong_to_leaves(L):
    x, seen = L.ones(2, requires_grad=True), []
    handle = x.register_post_accumulate_grad_hook(lambda leaf: seen.append(leaf.grad.tolist()))
    (x * 3).sum().backward()
    handle.remove()
    x.sum().backward()
    assert seen == [[3, 3]]
    with pytest.raises(RuntimeError):
        (x * 2).register_post_accumulate_grad_hook(print)


@BOTH
def test_the_same_data_as_another_class(L):
    class Mine(L.Tensor):
        pass

    x = L.ones(2)
    mine = x.as_subclass(Mine)
    mine.zero_()
    assert type(mine) is Mine and x.tolist() == [0, 0]
    with pytest.raises(TypeError):
        x.as_subclass(int)


@pytest.mark.parametrize("library", [tn, torch])
def test_a_hook_after_accumulation_returns_nothing(library):
    x = library.ones(2, requires_grad=True)
    x.register_post_accumulate_grad_hook(lambda leaf: leaf.grad)
    with pytest.raises(RuntimeError):
        x.sum().backward()
