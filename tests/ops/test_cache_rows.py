"""Which writes are of one row of each matrix of a cache, and which values are runs of others in memory."""

from __future__ import annotations

import pytest

import tenfold as tn
from tenfold.flat.indexed import Scatter
from tenfold.flat.structured import CustomCall
from tenfold.nn import functional
from tenfold.ops.cache_rows import rows_written, run_of
from tenfold.ops.tile_absorbing import absorbed
from tenfold.runtime.calls import record_call
from tenfold.trace.lower import lower

CACHE = (2, 2, 8, 4)  # as many batches as heads: nothing but the order tells them apart


def lowered(function, *arguments):
    return lower(record_call(function, arguments, {}, tn.Tensor).recording.trace, kind="triton")


def written(function, *arguments):
    (scatter,) = [op for op in lowered(function, *arguments).ops if isinstance(op, Scatter)]
    return rows_written(scatter)


def by_pairs(rows):
    def write(cache, new, positions):
        cache = cache.clone()
        cache[rows(), :, positions] = new.transpose(1, 2)
        return cache

    return write


def test_a_row_that_all_matrices_have_in_common():
    found = written(
        lambda c, new, at: c.index_copy(2, at, new), tn.zeros(CACHE), tn.ones(2, 2, 1, 4), tn.tensor([3])
    )
    assert found is not None and found.heads == 4 and found.numbers.numel == 1


def test_a_row_of_its_own_for_every_batch():
    count = lambda: tn.arange(2)[:, None]
    found = written(by_pairs(count), tn.zeros(CACHE), tn.ones(2, 2, 1, 4), tn.tensor([[3], [5]]))
    assert found is not None and found.heads == 2 and found.numbers.numel == 2


@pytest.mark.parametrize(
    "rows",
    [
        lambda: tn.tensor([[1], [0]]),
        lambda: tn.arange(2)[:, None] - 1,
        lambda: tn.where(tn.tensor([[-1], [0]]) < 0, tn.tensor([[1], [0]]), tn.arange(2)[:, None]),
    ],
    ids=["turned", "shifted", "chosen"],
)
def test_batches_in_another_order_are_not_rows(rows):
    assert written(by_pairs(rows), tn.zeros(CACHE), tn.ones(2, 2, 1, 4), tn.tensor([[3], [5]])) is None


@pytest.mark.parametrize("dim", [0, 1, 3])
def test_writes_along_another_dimension_are_not_rows(dim):
    shape = [1 if d == dim else size for d, size in enumerate(CACHE)]
    write = lambda c, new, at: c.index_copy(dim, at, new)
    assert written(write, tn.zeros(CACHE), tn.ones(shape), tn.tensor([1])) is None


def test_two_rows_and_sums_are_not_rows():
    write = lambda c, new, at: c.index_copy(2, at, new)
    assert written(write, tn.zeros(CACHE), tn.ones(2, 2, 2, 4), tn.tensor([1, 2])) is None
    add = lambda c, new, at: c.index_add(2, at, new)
    assert written(add, tn.zeros(CACHE), tn.ones(2, 2, 1, 4), tn.tensor([1])) is None


@pytest.mark.parametrize(
    ("view", "start"),
    [
        (lambda x: x[:, :, 4:8].reshape(1, 2, 2).transpose(0, 1), 4),
        (lambda x: x[:, :, 4:8].reshape(2, 2)[1:], 6),
        (lambda x: x[:, :, ::2], None),
        (lambda x: x.reshape(4, 3)[:, 1:], None),
        (lambda x: x.reshape(4, 3).T, None),
    ],
)
def test_runs_in_memory(view, start):
    function = lowered(lambda x: view(x).contiguous(), tn.arange(12.0).reshape(1, 1, 12))
    source, found = run_of(function.results[0])
    assert (found if source is function.params[0] else None) == start


def test_attention_writes_a_cache_that_nothing_before_it_reads():
    def attend(query, new, keys, at):
        keys = keys.index_copy(2, at, new)
        return functional.scaled_dot_product_attention(query, keys, keys * 2), keys

    one = tn.ones(2, 2, 1, 4)
    program = absorbed(lowered(attend, one, one, tn.zeros(CACHE), tn.tensor([3])))
    (call, *_) = [op for op in program.ops if isinstance(op, CustomCall)]
    # The values are computed from the keys: to write those is not left to attention, which comes after.
    assert not call.aliases and any(isinstance(op, Scatter) for op in program.ops)


def test_keys_that_are_the_values_too_are_written_before():
    def attend(query, new, cache, at):
        cache = cache.index_copy(2, at, new)
        return functional.scaled_dot_product_attention(query, cache, cache), cache

    one = tn.ones(2, 2, 1, 4)
    program = absorbed(lowered(attend, one, one, tn.zeros(CACHE), tn.tensor([3])))
    assert any(isinstance(op, Scatter) for op in program.ops)
