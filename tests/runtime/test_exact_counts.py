"""Functions that are compiled apart for each number of elements."""

from __future__ import annotations

import functools

import numpy as np
import pytest
import torch

import tenfold as tn
from tenfold.base.errors import ShapeError, UnsupportedError
from tenfold.runtime import exact_counts
from tenfold.runtime.executables import counting_compiles
from tenfold.runtime.recordings import Recorder
from tenfold.runtime.specialization import OTHER
from tests.runtime.data_dependent import require_equal, vectors

pytestmark = pytest.mark.usefixtures("hostile_padding")

APART = {
    "products": lambda lib, x: x[x > 0].cumprod(0),
    "mask of a mask": lambda lib, x: (lambda kept: kept[kept > 2])(x[x > 0]),
    "unique of a mask": lambda lib, x: lib.unique(x[x > 0].round()),
    "the size": lambda lib, x: (x[x > 0], x.new_tensor(len(x[x > 0])), x * x[x > 0].shape[0]),
    "a loop": lambda lib, x: sum([x * i for i in range(x[x > 0].shape[0])], x),
    "every other one": lambda lib, x: lib.cat([x[x > 2], x[x > 0]])[::2],
}


@pytest.mark.filterwarnings("ignore:compile")
@pytest.mark.parametrize("case", APART)
def test_compiled_apart_for_each_number_of_elements(on_tier_0, case):
    require_equal(APART[case], vectors(3, 0, 1, 2, 6, 3), apart=1)


def test_the_size_may_be_returned(on_tier_0):
    kept = tn.compile(lambda x: (x[x > 0], x[x > 0].shape[0]))
    with pytest.warns(UserWarning, match="compiled apart for each number of elements"):
        for numbers in ([1.0, -1, 2], [1.0, 2, 3], [-1.0, -2, -3]):
            assert kept(tn.tensor(numbers))[1] == sum([each > 0 for each in numbers])
    assert "x[x > 0]: compiled apart for each number of elements" in kept.guards()


def test_rows_for_which_a_module_refuses_fewer():
    x = np.array([[1, 2], [3, 4], [-1, 0], [7, 5]], np.float32)

    def normed(lib):
        norm = lib.nn.BatchNorm1d(2)
        found = (lambda x: norm(x[x[:, 0] > 0]).sum(1) * 1000)(lib.tensor(x))
        return found.detach().numpy(), norm.running_mean.numpy()

    found = tn.nn.BatchNorm1d(2)
    with tn.no_grad():
        sums = tn.compile(lambda x: found(x[x[:, 0] > 0]).sum(1) * 1000)(tn.tensor(x))
    np.testing.assert_allclose(sums.numpy(), normed(torch)[0], rtol=1e-4, atol=0.1)
    np.testing.assert_allclose(found.running_mean.numpy(), normed(torch)[1], rtol=1e-5)


def test_a_step_writes_its_state_once_for_few_elements():
    total = tn.zeros(())

    @tn.compile
    def add(x):
        total.add_(x[x > 0][:2].sum())

    for (x,) in vectors(3, 1, 0, 2, 1):
        add(tn.tensor(x))
    assert total.item() == 4 + 1 + 0 + 3 + 1


@pytest.mark.filterwarnings("ignore:compile")
def test_a_size_that_must_be_a_certain_number_is_compiled_for_that():
    kept = tn.compile(lambda x: x[x > 0] + tn.ones(2), fullgraph=True)
    with pytest.warns(UserWarning, match=r"x\[x > 0\] depends.* compiled apart .* add has to know it"):
        assert kept(tn.tensor([1.0, -2, 3])).tolist() == [2, 4]
    with counting_compiles() as compiles:
        assert kept(tn.tensor([-1.0, 2, 3])).tolist() == [3, 4]
        with pytest.raises(ShapeError, match=r"f32\[3\] with f32\[2\]"):
            kept(tn.ones(3))
    assert compiles == 0
    assert kept(tn.tensor([-1.0, -2, 3])).tolist() == [4, 4]


@pytest.mark.filterwarnings("ignore:compile")
def test_a_size_that_must_be_a_certain_number_may_follow_from_another():
    total = tn.zeros(4)

    @functools.partial(tn.compile, fullgraph=True)
    def step(x, y):
        kept = x[x > 0]
        total.add_(kept)
        return y[y > kept.sum()] @ tn.arange(2.0)

    assert step(tn.tensor([1.0, 2, 3, 4, -1]), tn.tensor([9.0, 20, 30])).item() == 30
    assert total.tolist() == [1, 2, 3, 4]
    with pytest.raises(ShapeError, match="cannot multiply"):
        step(tn.tensor([1.0, 2, 3, -4, 4]), tn.tensor([9.0, 20, 8]))
    assert total.tolist() == [1, 2, 3, 4]
    assert step(tn.tensor([1.0, 2, 3, -4, 4]), tn.tensor([11.0, 20, 8])).item() == 20
    assert total.tolist() == [2, 4, 6, 8]


@pytest.mark.filterwarnings("ignore:compile")
def test_gradients_flow_through_a_size_that_must_be_a_certain_number():
    weight = tn.ones(4, requires_grad=True)

    @functools.partial(tn.compile, fullgraph=True)
    def step(x):
        loss = ((weight * x)[x > 0] * tn.arange(2.0)).sum()
        loss.backward()
        return loss

    for numbers, gradient in (([1.0, -2, -3, 4], [0, 0, 0, 4]), ([-1.0, 2, 3, -4], [0, 0, 3, 0])):
        weight.grad = None
        step(tn.tensor(numbers))
        assert weight.grad.tolist() == gradient


@pytest.mark.filterwarnings("ignore:compile")
def test_a_program_for_each_number_is_kept_up_to_a_bound(on_tier_0, monkeypatch):
    monkeypatch.setattr(exact_counts, "KEPT", 2)
    function = APART["the size"]
    compiled = tn.compile(lambda x: function(tn, x))
    for (x,) in vectors(1, 2, 3, 1, 2, 3):
        found, expected = compiled(tn.tensor(x)), function(torch, torch.tensor(x))
        assert [each.tolist() for each in found] == [each.tolist() for each in expected]
    ((variant,),) = compiled.programs._recorded.values()
    assert isinstance(variant, exact_counts.EachSpecialization)
    assert len(variant.exact.programs) == 2


@pytest.mark.filterwarnings("ignore:compile")
def test_numbers_that_never_settle_are_recorded_anew(on_tier_0, monkeypatch):
    """The second number is counted from wrong data as long as the first is wrong."""
    function = APART["mask of a mask"]
    compiled = tn.compile(lambda x: function(tn, x))
    (first,), (second,) = vectors(6, 3)
    assert compiled(tn.tensor(first)).tolist() == function(torch, torch.tensor(first)).tolist()
    ((variant,),) = compiled.programs._recorded.values()
    monkeypatch.setattr(exact_counts, "ATTEMPTS", 0)
    assert variant.run([tn.tensor(second)], tn.Tensor) is OTHER
    monkeypatch.setattr(exact_counts, "ATTEMPTS", 16)
    assert variant.run([tn.tensor(second)], tn.Tensor).tolist() == [3.0]
    assert variant.last.counts == (3, 1)


@pytest.mark.filterwarnings("ignore:compile")
def test_a_number_that_no_program_has_room_for_is_refused():
    recorder = Recorder(lambda x: x[x > 0].cumprod(0), (tn.ones(3),), {}, tn.Tensor)
    with pytest.raises(UnsupportedError, match="is 2147483648, which is too large"):
        exact_counts._made(recorder, [(3,)], exact_counts.Elsewhere((1 << 31,)))
    # Later numbers may have been counted from wrong data.
    plan = exact_counts._made(recorder, [(3,)], exact_counts.Elsewhere((2, 1 << 31), 1)).plan
    assert [count.size for count in plan.counts] == [2]
