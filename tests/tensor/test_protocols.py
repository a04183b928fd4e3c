"""A Tensor under Python's protocols, as PyTorch's: containers, numbers, text, copies, pickles."""

from __future__ import annotations

import copy
import math
import pickle

import numpy as np
import pytest
import torch

import tenfold as tn
from tenfold.base.dtypes import ALL
from tenfold.base.errors import TenfoldError
from tenfold.runtime.executables import counting_compiles
from tests.tensor.both import agree, cases


@cases(
    "len(L.zeros(3, 2))",
    "len(L.tensor(3))",
    "list(L.arange(6).reshape(3, 2))",
    "list(L.tensor(3))",
    "list(L.zeros(0, 2))",
    "list(reversed(L.tensor([1, 2, 3])))",
    "(lambda a, b: a - b)(*L.tensor([1, 2]))",
    "2 in L.tensor([1, 2])",
    "2.5 in L.tensor([1, 2])",
    "L.tensor(2) in L.tensor([1, 2])",
    "L.tensor([1, 9]) in L.tensor([[1, 2], [3, 4]])",
    "'a' in L.tensor([1])",
    "None in L.tensor([1])",
    "operator.delitem(L.zeros(2), 0)",
)
def test_containers(call):
    agree(call)


@cases(
    "bool(L.tensor([[2.0]]))",
    "bool(L.tensor(0))",
    "bool(L.tensor(float('nan')))",
    "bool(L.zeros(2))",
    "bool(L.zeros(0))",
    "int(L.tensor([2.7]))",
    "int(L.tensor(-2.7))",
    "int(L.tensor(True))",
    "int(L.zeros(2))",
    "int(L.tensor(1 + 0j))",
    "float(L.tensor(2))",
    "float(L.tensor([[1.5]]))",
    "float(L.tensor(1 + 0j))",
    "float(L.tensor(1 + 2j))",
    "float(L.zeros(3))",
    "complex(L.tensor(2))",
    "complex(L.tensor(1 + 2j))",
    "[1, 2, 3][L.tensor(1)]",
    "operator.index(L.tensor([1]))",
    "operator.index(L.tensor(True))",
    "operator.index(L.tensor(1.0))",
    "operator.index(L.tensor([1, 2]))",
    "range(5)[L.tensor(1) : L.tensor(3)]",
    "math.floor(L.tensor(1.5))",
    "math.ceil(L.tensor(1.5))",
    "math.trunc(L.tensor(-1.5))",
    "round(L.tensor([1.5, 2.5]))",
    "math.sqrt(L.tensor(4.0))",
    "L.zeros(2).item()",
    "L.zeros(0).item()",
    "L.tensor([[1.5]]).item()",
)
def test_numbers(call):
    agree(call)


@cases(
    "f'{L.tensor(3.14159):.2f}'",
    "f'{L.tensor(3):05d}'",
    "f'{L.tensor(1.5)}'",
    "f'{L.tensor([1.5])}'",
    "f'{L.tensor([1.5]):.2f}'",
    "str(L.tensor([[1, 2], [3, 4]]))",
    "repr(L.zeros(2, 0))",
    "repr(L.ones(2) + 1)",
    "repr(L.tensor([True, False]))",
    "repr(L.zeros(2, 3).shape)",
    "repr(L.zeros(2, 3).shape[1:])",
    "repr(L.zeros(2, 3).shape + (4,))",
    "repr(L.zeros(2, 3).shape * 2)",
    "L.zeros(2, 3).shape[-1]",
    "L.zeros(2, 3).shape == (2, 3)",
    "L.zeros(2, 3).shape.numel()",
)
def test_text(call):
    agree(call)


def test_a_lazy_tensor_is_computed_to_be_written():
    lazy = tn.ones(2) * 3
    assert lazy.current().buffer is None
    assert repr(lazy) == "tensor([3., 3.])"
    assert lazy.current().buffer is not None
    seen = []
    tn.compile(lambda x: seen.append(repr(x + 1)) or x)(tn.ones(2))
    assert seen == ["Tensor(f32[2], recorded)"]


@pytest.mark.parametrize("dtype", ALL, ids=lambda dtype: dtype.name)
def test_data_leaves_in_every_dtype(dtype):
    theirs = torch.tensor([[0, 1], [1, 1]]).to(getattr(torch, dtype.name))
    ours = tn.tensor([[0, 1], [1, 1]]).to(dtype)
    assert ours.tolist() == theirs.tolist()
    assert type(ours[0, 1].item()) is type(theirs[0, 1].item())
    array = ours.numpy()
    assert array.dtype == dtype.numpy and np.asarray(ours).dtype == dtype.numpy
    assert np.asarray(ours, np.complex128).tolist() == [[0, 1], [1, 1]]
    assert np.array(ours).flags.writeable and not array.flags.writeable
    for convert in (bool, int, float, complex):
        assert convert(ours[0, 1]) == convert(theirs[0, 1])
    again = pickle.loads(pickle.dumps(ours))
    assert again.dtype is dtype and again.tolist() == ours.tolist()
    assert copy.deepcopy(ours).tolist() == copy.copy(ours).tolist() == ours.tolist()


@pytest.mark.parametrize("dtype", ("float32", "float64", "bfloat16", "int64", "bool", "complex64"))
@pytest.mark.parametrize(
    "view",
    (
        lambda x: x[1, 2],
        lambda x: x[-1, :][0:1],
        lambda x: x.t()[2][1],
        lambda x: x[0, 1].expand(3)[2],
        lambda x: x[0].unfold(0, 2, 1)[1, 1],
        lambda x: x.diagonal()[1].unsqueeze(0),
        lambda x: x[1].conj()[2],
    ),
)
def test_a_number_is_read_through_any_view_before_and_after_a_write(view, dtype):
    def numbers(lib):
        x = (lib.arange(6).reshape(2, 3) % 4).to(getattr(lib, dtype))
        if dtype == "complex64":
            x = x * (1 - 2j)
        seen = view(x)
        first = seen.item()
        x.copy_(x.flip(1))
        return [first, seen.item(), view(x.flip(0)).item()]

    assert [(type(each), each) for each in numbers(tn)] == [(type(each), each) for each in numbers(torch)]


def test_numbers_come_out_exactly():
    for dtype in ("float16", "bfloat16", "float32", "float64"):
        numbers = [0.1, -0.0, float("inf"), 1e-3, 65504.0]
        ours = tn.tensor(numbers, dtype=getattr(tn, dtype))
        theirs = torch.tensor(numbers, dtype=getattr(torch, dtype))
        assert repr(ours.tolist()) == repr(theirs.tolist())
    assert tn.tensor(2**64 - 1, dtype=tn.uint64).item() == 2**64 - 1


def test_complex_numbers_that_differ_in_the_sign_of_a_zero_are_told_apart():
    numbers = [complex(-1.0, -0.0), complex(-1.0, 0.0), complex(-0.0, 0.0), complex(0.0, -0.0)]
    for L in (tn, torch):
        angles = [L.full((1,), each).angle() for each in numbers]
        signs = [L.full((1,), complex(math.nan, each)).imag.signbit() for each in (0.0, -0.0)]
        np.testing.assert_allclose([a.item() for a in angles], [-math.pi, math.pi, math.pi, 0], rtol=1e-6)
        assert [each.item() for each in signs] == [False, True]


@pytest.mark.parametrize("L", [tn, torch], ids=["tenfold", "torch"])
def test_a_copy_shares_memory_and_a_deep_copy_does_not(L):
    x = L.tensor([1.0, 2.0, 3.0])
    shallow, deep = copy.copy(x), copy.deepcopy(x)
    x.add_(1)
    shallow[0] = 9.0
    assert x.tolist() == shallow.tolist() == [9.0, 3.0, 4.0]
    assert deep.tolist() == [1.0, 2.0, 3.0]
    deep.mul_(0)
    assert x.tolist() == [9.0, 3.0, 4.0]


@pytest.mark.parametrize("L", [tn, torch], ids=["tenfold", "torch"])
def test_tensors_copied_together_stay_together(L):
    x = L.tensor([1.0, 2.0])
    x.label = "weights"
    view = x[:1]
    first, again, part = copy.deepcopy([x, x, view])
    assert first is again and first is not x
    first.add_(5)
    assert part.tolist() == [6.0] and x.tolist() == [1.0, 2.0]
    part.zero_()
    assert first.tolist() == [0.0, 7.0]
    assert first.label == copy.copy(x).label == pickle.loads(pickle.dumps(x)).label == "weights"
    transposed = L.tensor([[1.0, 2.0], [3.0, 4.0]]).t()
    assert copy.copy(transposed).stride() == copy.deepcopy(transposed).stride() == (1, 2)


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_pickles_hold_the_values_and_share_nothing(protocol):
    x = tn.arange(6.0).reshape(2, 3)
    lazy, view = x + 1, x.t()
    first, second, third = pickle.loads(pickle.dumps([lazy, view, lazy], protocol))
    assert first is third and first.tolist() == lazy.tolist() and second.tolist() == view.tolist()
    second.add_(1)
    assert view.tolist() == x.t().tolist()
    for shape in ((), (0, 3)):
        empty = pickle.loads(pickle.dumps(tn.zeros(shape), protocol))
        assert empty.shape == shape


def test_copies_compile_nothing():
    x = tn.ones(3).eval()
    with counting_compiles() as compiles:
        copy.deepcopy(copy.copy(x)).tolist()
    assert compiles == 0


def test_errors_of_the_protocols_say_where():
    for call in (lambda: len(tn.tensor(1)), lambda: bool(tn.ones(2)), lambda: tn.ones(2).item()):
        with pytest.raises(TenfoldError) as raised:
            call()
        assert "test_protocols.py" in str(raised.value) and "help: " in str(raised.value)


def test_iterating_rows_compiles_a_few_times_only():
    x = tn.arange(40.0).reshape(20, 2).eval()
    with counting_compiles() as compiles:
        assert [row.sum().item() for row in x] == [4.0 * i + 1 for i in range(20)]
    assert compiles <= 4
