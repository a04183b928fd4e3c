"""Results whose size depends on data stay inside a compiled function, whatever lies in their padding."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import tenfold as tn
from tenfold.base.errors import IndexOutOfRange, ShapeError, UnsupportedError
from tenfold.runtime import executables, opened
from tenfold.runtime.executables import counting_compiles
from tests.test_open_programs import hostile, interpreted

RNG = np.random.default_rng(0)


@pytest.fixture(autouse=True)
def hostile_padding(monkeypatch):
    monkeypatch.setattr(opened, "blank", hostile)
    monkeypatch.setenv("TENFOLD_CACHE_DIR", "")


@pytest.fixture
def on_tier_0(monkeypatch):
    """Open programs are interpreted: that is another oracle, and compiles nothing."""
    monkeypatch.setattr(executables, "build_function", interpreted)


def signs(*rows):
    """Arrays of which various numbers of elements are positive: some, all, none, one."""
    found = [RNG.normal(size=(n, 4)).astype(np.float32) for n in rows]
    found += [np.ones((rows[0], 4), np.float32), -np.ones((rows[0], 4), np.float32)]
    found.append(found[-1].copy())
    found[-1][1, 2] = 3
    return [(each,) for each in found]


def repeats(*calls):
    """Rows and how often to repeat them, for each number of rows and most repeats."""
    return [
        (RNG.normal(size=(rows, 4)).astype(np.float32), RNG.integers(0, most, rows)) for rows, most in calls
    ]


def require_equal(function, calls):
    compiled = tn.compile(lambda *args: function(tn, *args))
    for arrays in calls:
        expected = function(torch, *[torch.from_numpy(each.copy()) for each in arrays])
        found = compiled(*[tn.tensor(each) for each in arrays])
        several = isinstance(expected, (tuple, list))
        for ours, theirs in zip(found, expected) if several else [(found, expected)]:
            assert tuple(ours.shape) == tuple(theirs.shape)
            np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=1e-5, atol=1e-6)
    assert compiled.programs.count == 0  # none of them is for one size alone


def gradient(loss):
    def run(lib, x, *rest):
        x = x.clone().requires_grad_(True)
        loss(lib, x, *rest).backward()
        return x.grad

    return run


MASKED = {
    "nonzero": lambda lib, x: (x > 0).nonzero(),
    "where": lambda lib, x: lib.where(x > 0),
    "its sum": lambda lib, x: x.nonzero().sum(0),
    "histc": lambda lib, x: lib.histc(x[x > 0], 4),
    "histogram": lambda lib, x: lib.histogram(x[x > 0], 4),
    "mask": lambda lib, x: x[x > 0],
    "mean": lambda lib, x: x[x > 0].mean(),
    "rows": lambda lib, x: (x[x[:, 0] > 0] @ x.T).tanh(),
    "product": lambda lib, x: x[x[:, 0] > 0].T @ x[x[:, 0] > 0],
    "two masks": lambda lib, x: (lib.cat([x[x > 0], x[x <= 0]]), x[x <= 0].sum()),
    "masked_select": lambda lib, x: lib.masked_select(x, x[:, :1] > 0).log(),
    "indices": lambda lib, x: x.flatten()[(x > 0).flatten().nonzero()[:, 0]],
    "size": lambda lib, x: x / (x[x > 0].shape[0] + 1),
    "ones": lambda lib, x: lib.ones(x[x > 0].shape[0]).sum(),
    "order": lambda lib, x: (x[x > 0].sort().values, x[x > 0].cumsum(0), x[x > 0].softmax(0)),
    "unique": lambda lib, x: lib.unique((x * 2).round()),
    "unique, all of it": lambda lib, x: lib.unique(x.sign(), return_inverse=True, return_counts=True),
    "unique slices": lambda lib, x: lib.unique(x.sign(), return_inverse=True, return_counts=True, dim=0),
    "unique in a row": lambda lib, x: lib.unique_consecutive(x.sign(), True, True),
    "unique slices in a row": lambda lib, x: lib.unique_consecutive(x.sign(), True, True, dim=1),
    "gradient of a mask": gradient(lambda lib, x: (x[0, 0].abs() * x[x > 0].log()).sum()),
    "gradient of masked_select": gradient(lambda lib, x: lib.masked_select(x, x > 0).square().sum()),
    "gradient of rows": gradient(lambda lib, x: (x[x[:, 0] > 0] @ x.T).softmax(1).square().sum()),
}


@pytest.mark.parametrize("case", MASKED)
def test_at_one_size(on_tier_0, case):
    require_equal(MASKED[case], signs(5, 5))


@pytest.mark.parametrize("case", ["mask", "rows", "unique, all of it", "gradient of a mask"])
def test_where_sizes_of_arguments_are_open_as_well(on_tier_0, case):
    require_equal(MASKED[case], signs(5, 7, 20, 31, 3))


COUNTED = {
    "repeat_interleave": lambda lib, x, r: lib.repeat_interleave(x, r, dim=0) * 2,
    "its sum": lambda lib, x, r: lib.repeat_interleave(x, r, dim=0).sum(0),
    "places": lambda lib, x, r: lib.repeat_interleave(r),
    "bincount": lambda lib, x, r: lib.bincount(r, minlength=3),
    "weights": lambda lib, x, r: lib.bincount(r, x[:, 0]),
    "one_hot": lambda lib, x, r: lib.nn.functional.one_hot(r).sum(0),
    "gradient": gradient(lambda lib, x, r: lib.repeat_interleave(x, r, dim=0).square().sum()),
}


@pytest.mark.parametrize("case", COUNTED)
def test_sizes_that_only_the_data_bound(on_tier_0, case):
    require_equal(COUNTED[case], repeats((5, 3), (5, 4), (5, 90), (5, 2)))
    require_equal(COUNTED[case], repeats((5, 3), (6, 4), (9, 30), (20, 2)))


def test_a_step_writes_its_state_once_though_there_was_too_little_room():
    total = tn.zeros(3)

    @tn.compile
    def add(counts):
        total.add_(tn.repeat_interleave(tn.ones(3), counts).sum())

    with counting_compiles() as compiles:
        for counts in ([1, 1, 1], [100, 0, 5], [2, 3, 4], [900, 1, 1]):
            add(tn.tensor(counts))
    assert total.tolist() == [1019.0] * 3
    assert compiles == 3  # room for 64, 128 and 1024


def test_training_on_chosen_rows_compiles_by_powers_of_two():
    def train(lib):
        weights = lib.tensor([[0.1], [0.2], [0.3], [0.4]], requires_grad=True)
        optimizer = lib.optim.SGD([weights], lr=0.1, momentum=0.9)

        def step(x):
            optimizer.zero_grad()
            chosen = x[x[:, 0] > 0]
            loss = (chosen @ weights - chosen.sum(1, keepdim=True)).square().sum() / x.shape[0]
            loss.backward()
            optimizer.step()
            return loss

        step = tn.compile(step) if lib is tn else step
        rng = np.random.default_rng(1)
        return [
            step(lib.tensor(rng.normal(size=(n, 4)).astype(np.float32))).detach().item()
            for n in (5, 7, 9, 6, 3, 12)
        ]

    with counting_compiles() as compiles:
        found = train(tn)
    np.testing.assert_allclose(found, train(torch), rtol=1e-5, atol=1e-6)
    assert compiles <= 3


def test_one_program_serves_any_number_of_elements():
    chosen = tn.compile(lambda x: x[x > 0] * 2)
    with counting_compiles() as compiles:
        for numbers in ([1.0, -1, 2], [1.0, 2, 3], [-1.0, -2, -3]):
            assert chosen(tn.tensor(numbers)).tolist() == [2 * each for each in numbers if each > 0]
    assert compiles == 1
    assert "nonzero_numpy: as many elements as there are, up to 3" in chosen.guards()


# What is refused


def test_too_few_elements_are_the_error_that_they_would_be_outside():
    with pytest.raises(IndexOutOfRange, match="max of nothing is undefined"):
        tn.compile(lambda x: x[x > 0].max())(tn.tensor([-1.0, -2]))
    with pytest.raises(IndexOutOfRange, match="k=3 is out of range"):
        tn.compile(lambda x: x[x > 0].topk(3).values)(tn.tensor([1.0, 2, -1, -2]))


def test_one_element_where_that_is_another_program():
    with pytest.raises(ShapeError, match="another program for so few elements of nonzero"):
        tn.compile(lambda x: x[x > 0].squeeze() * 2)(tn.tensor([1.0, -1]))


def test_a_decision_by_a_size_that_only_the_data_tell():
    with pytest.raises(UnsupportedError, match="decides in Python by a size that depends on data"):
        tn.compile(lambda x: x * 2 if x[x > 0].shape[0] > 3 else x)(tn.ones(5))


def test_sizes_that_are_counted_apart_are_not_taken_for_equal():
    with pytest.raises(ShapeError, match="stand for sizes that depend on data"):
        tn.compile(lambda x: x[x > 0] + x[x <= 1])(tn.ones(5))
