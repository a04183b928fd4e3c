"""Functions whose sizes are open, as they run: padded inputs, cut results, state, checks, random numbers."""

import numpy as np
import pytest

import tenfold as tn
from tenfold import nn
from tenfold.base.errors import IndexOutOfRange
from tenfold.runtime.executables import counting_compiles


def test_a_failed_check_tells_the_size_of_the_call():
    pick = tn.compile(lambda x, i: x[i], dynamic=True)
    pick(tn.ones(5), tn.tensor([1, 2, 3]))
    with pytest.raises(IndexOutOfRange, match="out of range for dimension 0 of size 7"):
        pick(tn.ones(7), tn.tensor([1, 7, 3])).tolist()
    assert pick(tn.ones(8), tn.tensor([1, 7, 3])).tolist() == [1, 1, 1]


def test_written_state_and_written_arguments_are_right():
    count = tn.tensor([0.0, 0.0, 0.0])

    def step(x):
        count.add_(x.sum(0))
        x.mul_(2)
        return x + 1

    run = tn.compile(step, dynamic=True)
    for size in (4, 6, 3):
        x = tn.tensor(np.ones((size, 3), np.float32))
        assert run(x).tolist() == [[3.0] * 3] * size
        assert x.tolist() == [[2.0] * 3] * size
    assert count.tolist() == [13.0] * 3


def test_random_numbers_are_those_of_the_true_size():
    def noisy(x):
        return x + tn.rand(*x.shape), tn.rand(3)

    for shape in ((5, 3), (4, 6)):
        results = []
        for dynamic in (False, True):
            tn.manual_seed(3)
            results.append([each.numpy() for each in tn.compile(noisy, dynamic=dynamic)(tn.zeros(*shape))])
        for closed, open in zip(*results, strict=True):
            np.testing.assert_array_equal(closed, open)


@pytest.mark.parametrize("dtype", ["bfloat16", "bool", "complex64"])
def test_open_sizes_know_every_dtype(dtype):
    def parts(x):
        return x.sum(0), x[1:], tn.cat([x, x]), x.reshape(-1)

    compiled = tn.compile(parts, dynamic=True)
    with counting_compiles() as compiles:
        for size in (5, 16, 9):
            numbers = np.random.default_rng(size).integers(0, 3, (size, 3))
            given = numbers.astype(tn.dtypes.BY_NAME[dtype].numpy)
            for result, wanted in zip(compiled(tn.tensor(given)), parts_of(given), strict=True):
                np.testing.assert_array_equal(result.numpy(), wanted.astype(result.numpy().dtype))
    assert compiles <= 1


def parts_of(x):
    """In NumPy; numbers this small are exact."""
    total = x.astype(complex if x.dtype.kind == "c" else float).sum(0)
    return total, x[1:], np.concatenate([x, x]), x.ravel()


def test_a_slice_that_ends_early_where_all_sizes_are_small_is_right():
    first = tn.compile(lambda x, y: (x @ y.T).view(1, -1)[0, :5], dynamic=True)
    for rows, columns in ((5, 9), (4, 4), (2, 2), (2, 3)):
        assert first(tn.ones(rows, 4), tn.ones(columns, 4)).shape == (min(rows * columns, 5),)


def test_state_is_what_a_call_left_and_no_other_size():
    state = nn.Module()
    state.rows = 0

    @tn.compile(dynamic=True)
    def count(x):
        state.rows = x.shape[0]
        return x.sum()

    count(tn.ones(5, 7))
    assert type(state.rows) is int and state.rows == 5


def test_steps_by_a_size_are_right_at_each_size():
    base = tn.arange(20.0)
    take = tn.compile(lambda x: base[:: x.shape[0]] * 2)
    for size in (5, 18, *range(17, 33)):
        found = take(tn.ones(size)).numpy()
        np.testing.assert_array_equal(found, (base[::size] * 2).numpy())
