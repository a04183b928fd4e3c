"""State that a compiled function writes is updated where it lies: no copy of it is made, and a check that
fails leaves it as it was."""

import gc
import re

import numpy as np
import pytest

import tenfold as tn
from tenfold import nn
from tenfold.engines import xla

SHAPE = (2, 4, 256, 16)
ROW = tn.ones(2, 4, 1, 16).eval()


def copies(compiled, shape=SHAPE):
    """The instructions of the compiled program that copy, or choose between, arrays of a cache's size. A
    branch computes in the memory of its argument, unless a copy in it says otherwise."""
    (variants,) = compiled.programs._recorded.values()
    text = variants[0].loaded.executable.hlo()
    whole = re.escape("[" + ",".join(map(str, shape)) + "]")
    anywhere = re.findall(rf"= \w+{whole}\S* copy\(.*", text)
    entry = text[text.index("ENTRY") :]
    made = [line.strip() for line in entry.splitlines() if re.search(rf"= \w+{whole}", line)]
    same = ("parameter(", "dynamic-update-slice", "get-tuple-element(")
    return anywhere + [line for line in made if not any(each in line for each in same)]


def aliases(compiled):
    (variants,) = compiled.programs._recorded.values()
    return variants[0].loaded.executable.hlo().splitlines()[0].count("may-alias")


def pointer(tensor):
    return tensor.eval().data_ptr()


class Cache(nn.Module):
    def __init__(self, count=1):
        super().__init__()
        self.count = count
        for i in range(count):
            self.register_buffer(f"k{i}", tn.zeros(SHAPE))

    def forward(self, position, row):
        total = 0
        for i in range(self.count):
            cache = getattr(self, f"k{i}")
            cache.index_copy_(2, position, row * (i + 1))
            total = total + cache.sum()
        return total


def index_copy(cache, position, row):
    cache.index_copy_(2, position, row)


def set_item(cache, position, row):
    cache[:, :, position] = row


def set_transposed(cache, position, row):
    cache.transpose(1, 2)[:, position] = row.transpose(1, 2)


def set_one(cache, position, row):
    cache[:, :, position[0]] = row[:, :, 0]


@pytest.mark.parametrize("count", [1, 24])
def test_caches_in_buffers_are_written_in_place(count):
    model = Cache(count)
    step = tn.compile(model.forward)
    step(tn.tensor([0]), ROW)
    before = [pointer(getattr(model, f"k{i}")) for i in range(count)]
    total = step(tn.tensor([7]), ROW)
    assert total.item() == 2 * ROW.numel() * sum(range(1, count + 1))
    assert [pointer(getattr(model, f"k{i}")) for i in range(count)] == before
    assert aliases(step) == count
    assert copies(step) == []


@pytest.mark.parametrize("write", [index_copy, set_item, set_transposed, set_one])
def test_caches_that_are_passed_in_lists_of_tuples_are_written_in_place(write):
    caches = [(tn.zeros(SHAPE), tn.zeros(SHAPE)) for _ in range(3)]

    @tn.compile
    def step(caches, position, row):
        total = 0
        for k, v in caches:
            write(k, position, row)
            write(v, position, row * 2)
            total = total + k.sum() + v.sum()
        return total

    step(caches, tn.tensor([0]), ROW)
    before = [pointer(each) for pair in caches for each in pair]
    step(caches, tn.tensor([1]), ROW)
    assert [pointer(each) for pair in caches for each in pair] == before
    assert aliases(step) == 6
    if write is not set_transposed:  # through a transposed view all of the memory is written anew
        assert copies(step) == []
    assert caches[2][1][0, 0, :3, 0].tolist() == [2, 2, 0]


def test_caches_that_products_read_are_written_in_place():
    keys, values = tn.zeros(SHAPE), tn.zeros(SHAPE)

    @tn.compile
    def attend(query, position, row):
        keys.index_copy_(2, position, row)
        values.index_copy_(2, position, row * 2)
        return tn.softmax(query @ keys.mT, -1) @ values

    for place in range(3):
        mixed = attend(ROW, tn.tensor([place]), ROW)
    assert copies(attend) == []
    weights = np.exp([16.0] * 3 + [0.0] * 253)
    np.testing.assert_allclose(mixed[0, 0, 0].numpy(), 2 * weights[:3].sum() / weights.sum(), rtol=1e-5)
    with pytest.raises(IndexError):
        attend(ROW, tn.tensor([256]), ROW)
    assert keys.sum().item() == 3 * ROW.numel()


def test_a_cache_that_is_the_argument_itself_is_written_in_place():
    cache = tn.zeros(SHAPE)
    step = tn.compile(lambda cache, position, row: set_item(cache, position, row) or cache.sum())
    step(cache, tn.tensor([0]), ROW)
    before = pointer(cache)
    for i in range(1, 4):
        step(cache, tn.tensor([i]), ROW)
    assert pointer(cache) == before
    assert cache.sum().item() == 4 * ROW.numel()


def test_a_cache_is_written_in_place_beside_tensors_from_outside():
    weight = tn.ones(16, 16).eval()
    cache = tn.zeros(SHAPE)

    @tn.compile
    def step(row, cache, position):
        cache.index_copy_(2, position, row @ weight)
        return cache.sum()

    step(ROW, cache, tn.tensor([0]))
    before = pointer(cache)
    assert step(ROW, cache, tn.tensor([1])).item() == 2 * 16 * ROW.numel()
    assert pointer(cache) == before


def test_a_cache_is_copied_when_somebody_else_holds_what_it_was():
    cache = tn.zeros(SHAPE)
    step = tn.compile(lambda cache, position, row: set_item(cache, position, row) or cache.sum())
    step(cache, tn.tensor([0]), ROW)
    held = cache.clone().eval()
    earlier = cache.detach()
    step(cache, tn.tensor([1]), ROW)
    assert held.sum().item() == ROW.numel()
    assert earlier.sum().item() == 2 * ROW.numel()  # it shares the cache's memory
    array = cache.numpy()
    step(cache, tn.tensor([2]), ROW)
    assert array.sum() in (2 * ROW.numel(), 3 * ROW.numel())
    assert cache.sum().item() == 3 * ROW.numel()


@pytest.mark.parametrize("owner", ["buffer", "argument"])
def test_a_position_outside_leaves_every_cache_as_it_was(owner):
    caches = [tn.zeros(SHAPE) for _ in range(2)]

    def write(caches, position, row):
        for cache in caches:
            cache.index_copy_(2, position, row)
        return caches[0].sum() + caches[1].sum()

    if owner == "buffer":
        compiled = tn.compile(lambda position, row: write(caches, position, row))
        step = lambda position: compiled(position, ROW)
    else:
        compiled = tn.compile(write)
        step = lambda position: compiled(caches, position, ROW)
    step(tn.tensor([3]))
    with pytest.raises(IndexError):
        step(tn.tensor([256])).item()
    assert [each.sum().item() for each in caches] == [ROW.numel()] * 2
    assert step(tn.tensor([4])).item() == 4 * ROW.numel()


def test_a_check_of_another_op_keeps_a_cache_from_being_written():
    cache, table = tn.zeros(SHAPE), tn.ones(5, 16)

    @tn.compile
    def step(cache, token, position):
        row = nn.functional.embedding(token, table)
        cache.index_copy_(2, position, row.expand(2, 4, 1, 16))
        return cache.sum()

    step(cache, tn.tensor([1]), tn.tensor([0]))
    with pytest.raises(IndexError):
        step(cache, tn.tensor([5]), tn.tensor([1])).item()
    assert cache.sum().item() == ROW.numel()
    assert copies(step) == []


def test_a_check_that_depends_on_the_written_cache_still_restores_it():
    cache = tn.zeros(SHAPE)

    @tn.compile
    def step(cache, position, row):
        cache.index_copy_(2, position, row)
        token = cache[0, 0, 0, :1].long()
        return nn.functional.embedding(token, tn.ones(3, 2)).sum()

    step(cache, tn.tensor([0]), ROW)
    with pytest.raises(IndexError):
        step(cache, tn.tensor([0]), ROW * 9).item()
    np.testing.assert_array_equal(cache.numpy()[0, 0, 0], np.ones(16))


def test_a_compiled_function_does_not_hold_state_as_it_was_when_it_was_recorded():
    model = nn.Linear(64, 64)
    optimizer = tn.optim.Adam(model.parameters())

    @tn.compile
    def step(x):
        optimizer.zero_grad()
        model(x).square().sum().backward()
        optimizer.step()

    for _ in range(3):
        step(tn.ones(2, 64))
    gc.collect()
    arrays = xla.client("cpu").client.live_arrays()
    assert sum(each.on_device_size_in_bytes() == 64 * 64 * 4 for each in arrays) == 4  # with its gradient
