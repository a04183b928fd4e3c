"""Results whose size depends on data stay inside a compiled function, whatever lies in their padding."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import tenfold as tn
from tenfold.base.errors import IndexOutOfRange, ShapeError
from tenfold.runtime.executables import counting_compiles
from tests.runtime.data_dependent import require_equal, vectors

RNG = np.random.default_rng(0)
pytestmark = pytest.mark.usefixtures("hostile_padding")


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
    assert compiles == 2  # nothing at all is a program of its own
    assert "x[x > 0]: as many elements as there are, up to 3" in chosen.guards()


# Few elements, for which the function may be another program


SEVERAL = {
    "mask": lambda lib, x: x[x > 0],
    "masked_select": lambda lib, x: lib.masked_select(x, x > 0),
    "unique": lambda lib, x: lib.unique(x.clamp(0)),
    "argwhere": lambda lib, x: lib.argwhere(x > 0),
    "repeat_interleave": lambda lib, x: lib.repeat_interleave(x, (x > 0).long()),
    "sort": lambda lib, x: x[x > 0].sort()[0],
    "two of them": lambda lib, x: lib.cat([x[x > 2], x[x > 0]]),
}
SLICES = [
    np.s_[:3],
    np.s_[:7],
    np.s_[-3:],
    np.s_[1:3],
    np.s_[1:-1],
    np.s_[:1],
    np.s_[2:],
    np.s_[::2],
    np.s_[:-2],
]


@pytest.mark.parametrize("case", SEVERAL)
def test_slices_end_where_the_elements_do(on_tier_0, case):
    def slices(lib, x):
        found = SEVERAL[case](lib, x)
        return [found[each] for each in SLICES if case != "two of them" or each.step is None]

    require_equal(slices, vectors(3, 0, 1, 2, 4, 5, 6, 3))
    require_equal(lambda lib, x: SEVERAL[case](lib, x)[:5], vectors(6, 3, 0, 5, 4))


def assigned(lib, x):
    y = x.clone()
    y[y > 0] = y[y > 0] * 2
    return y


def by_size(lib, x):
    return x * 2 if x[x > 0].shape[0] > 3 else x


FEW = {
    "median": lambda lib, x: (x[x > 0].median(), x[x > 0].nanmedian()),
    "deviation": lambda lib, x: (x[x > 0].std(), x[x > 0].var(), *lib.var_mean(x[x > 0], 0)),
    "deviation of rows": lambda lib, x: x.reshape(3, 2)[x.reshape(3, 2)[:, 0] > 0].std(0),
    "correlation": lambda lib, x: (lib.cov(x[x > 0]), x[x > 0].mean(), x[x > 0].prod()),
    "differences": lambda lib, x: x[x > 0].diff(),
    "assigned": assigned,
    "squeezed": lambda lib, x: x[x > 0].squeeze() * 2,
    "split": lambda lib, x: (x[x > 0].split(2)[0], x[x > 0].chunk(2)[0]),
    "decided by the size": by_size,
    "one after the other": lambda lib, x: (lambda kept: kept[kept > 2][:2])(x[x > 0][:4]),
}


@pytest.mark.filterwarnings("ignore:(std|var|cov).*degrees of freedom")
@pytest.mark.parametrize("case", FEW)
def test_few_elements(on_tier_0, case):
    require_equal(FEW[case], vectors(3, 0, 1, 2, 4, 5, 6, 3))


def test_numbers_of_elements_are_proved_in_ranges(on_tier_0):
    called = []

    @tn.compile
    def difference(x):
        called.append(1)
        return x[x > 0].sum() - x[x < 0].sum()

    for seed in range(20):
        x = np.random.default_rng(seed).normal(size=200).astype(np.float32)
        np.testing.assert_allclose(difference(tn.tensor(x)).item(), np.abs(x).sum(), rtol=1e-5)
        if seed == 0:
            first = len(called)
    assert len(called) == first


def test_slices_that_end_by_a_size_of_an_argument(on_tier_0):
    lengths = (5, 7, 30, 20, 31, 18)
    calls = [(np.where(np.arange(n) % 5, -1.0, n + np.arange(n)).astype(np.float32),) for n in lengths]
    require_equal(lambda lib, x: x[x > 0][: x.shape[0] // 4], calls)


@pytest.mark.parametrize("shape", [(0,), (0, 3), (3, 0)])
def test_empty_arguments(shape):
    x = np.zeros(shape, np.float32)
    require = lambda found, expected: np.testing.assert_array_equal(found.numpy(), expected.numpy())
    for function in (lambda lib, x: x[x > 0], lambda lib, x: lib.unique(x), lambda lib, x: x.nonzero()):
        compiled = tn.compile(lambda x, function=function: function(tn, x))
        require(compiled(tn.tensor(x)), function(torch, torch.tensor(x)))


@pytest.mark.parametrize("least", [0, 2])
def test_bins_of_nothing(least):
    compiled = tn.compile(lambda x: tn.bincount(x, minlength=least))
    assert compiled(tn.zeros(0, dtype=tn.int64)).tolist() == [0] * least


@pytest.mark.parametrize("case", ["bincount", "one_hot", "repeat_interleave"])
def test_room_that_a_failed_call_asked_for_is_not_kept(on_tier_0, case):
    def function(lib, x):
        if case == "repeat_interleave":
            return lib.repeat_interleave(x, x)
        return lib.bincount(x) if case == "bincount" else lib.nn.functional.one_hot(x)

    compiled = tn.compile(lambda x: function(tn, x))
    for numbers in ([1, 0], [2**60, 1], [1, 2], [2**60, 1], [2, 0]):
        if max(numbers) > 2:
            with pytest.raises(Exception, match=r"."):
                compiled(tn.tensor(numbers))
        else:
            assert compiled(tn.tensor(numbers)).tolist() == function(torch, torch.tensor(numbers)).tolist()


# What is refused


def test_too_few_elements_are_the_error_that_they_would_be_outside():
    with pytest.raises(IndexOutOfRange, match="max of nothing is undefined"):
        tn.compile(lambda x: x[x > 0].max())(tn.tensor([-1.0, -2]))
    with pytest.raises(IndexOutOfRange, match="k=3 is out of range"):
        tn.compile(lambda x: x[x > 0].topk(3).values)(tn.tensor([1.0, 2, -1, -2]))


@pytest.mark.filterwarnings("ignore:compile")
def test_sizes_that_are_counted_apart_may_be_equal():
    both = tn.compile(lambda x: x[x > 0] + x[x <= 1])
    assert both(tn.ones(5)).tolist() == [2] * 5
    with pytest.raises(ShapeError, match=r"f32\[4\] with f32\[2\]"):
        both(tn.tensor([1.0, 2, 3, 1, 7])[:4])
