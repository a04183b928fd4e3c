"""Loaders: batches and their order, workers, errors, and that threads end."""

import gc
import itertools
import math
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from torch.utils import data as torch_data

import tenfold as tn
from tenfold import data

WORKERS = [0, 1, 3]


class Squares(data.Dataset):
    def __init__(self, size, wait=0.0):
        self.size = size
        self.wait = wait

    def __len__(self):
        return self.size

    def __getitem__(self, index):
        # The first batches take the longest, so that workers finish out of order.
        time.sleep(self.wait / (1 + index))
        return np.float32(index * index), index


class Stream(data.IterableDataset):
    """Its numbers, dealt out among the workers."""

    def __init__(self, size):
        self.size = size

    def __len__(self):
        return self.size

    def __iter__(self):
        info = data.get_worker_info()
        first, step = (info.id, info.num_workers) if info else (0, 1)
        return iter(range(first, self.size, step))


def workers_alive():
    return [each for each in threading.enumerate() if each.name.startswith("tenfold-data")]


@pytest.fixture(autouse=True)
def no_thread_is_left(collects_quickly):
    yield
    gc.collect()
    deadline = time.monotonic() + 5
    while workers_alive() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not workers_alive()


@pytest.mark.parametrize("workers", WORKERS)
@pytest.mark.parametrize("drop_last", [False, True])
def test_batches_come_in_order(workers, drop_last):
    loader = data.DataLoader(Squares(11, wait=0.02), batch_size=3, drop_last=drop_last, num_workers=workers)
    expected = list(torch_data.DataLoader(Squares(11), batch_size=3, drop_last=drop_last))
    for _ in range(2):
        found = list(loader)
        assert len(found) == len(loader) == len(expected)
        for (value, index), (their_value, their_index) in zip(found, expected):
            assert value.dtype is tn.float32
            assert index.dtype is tn.int64
            assert value.tolist() == their_value.tolist()
            assert index.tolist() == their_index.tolist()


@pytest.mark.parametrize("workers", WORKERS)
def test_a_shuffled_epoch_has_every_sample_once(workers):
    rows = data.TensorDataset(tn.arange(50).reshape(50, 1), tn.arange(50))

    def epochs():
        generator = tn.Generator().manual_seed(1)
        loader = data.DataLoader(rows, 8, shuffle=True, num_workers=workers, generator=generator)
        return [[y.tolist() for _, y in loader] for _ in range(2)]

    first, second = epochs()
    assert sorted(itertools.chain(*first)) == sorted(itertools.chain(*second)) == list(range(50))
    assert first != second
    assert epochs() == [first, second]
    assert [len(batch) for batch in first] == [8] * 6 + [2]


def test_the_order_does_not_depend_on_the_number_of_workers():
    def epochs(workers):
        tn.manual_seed(4)
        loader = data.DataLoader(Squares(20), 4, shuffle=True, num_workers=workers)
        return [[index.tolist() for _, index in loader] for _ in range(2)], tn.rand(1).item()

    assert epochs(0) == epochs(1) == epochs(3)


@pytest.mark.parametrize("workers", WORKERS)
def test_without_batches_samples_come_one_by_one(workers):
    loader = data.DataLoader(Squares(4), batch_size=None, num_workers=workers)
    assert len(loader) == 4
    found = list(loader)
    assert [int(value) for value, _ in found] == [0, 1, 4, 9]
    assert all(isinstance(value, tn.Tensor) and type(index) is int for value, index in found)
    numbers = data.DataLoader(Stream(4), batch_size=None, num_workers=workers)
    assert sorted(numbers) == [0, 1, 2, 3]


def test_samplers_decide():
    loader = data.DataLoader(Squares(9), batch_size=2, sampler=[5, 3, 8])
    assert [index.tolist() for _, index in loader] == [[5, 3], [8]]
    loader = data.DataLoader(Squares(9), batch_sampler=[[1, 2, 3], [8]])
    assert [index.tolist() for _, index in loader] == [[1, 2, 3], [8]]
    assert len(loader) == 2
    assert loader.batch_size is None


@pytest.mark.parametrize("workers", WORKERS)
def test_collate_fn_gets_the_samples(workers):
    rows = data.TensorDataset(tn.arange(4))
    loader = data.DataLoader(rows, 2, collate_fn=lambda samples: len(samples), num_workers=workers)
    assert list(loader) == [2, 2]


def test_many_samples_are_fetched_at_once_by_a_data_set_that_can():
    class Many(Squares):
        def __getitems__(self, indices):
            return [("many", each) for each in indices]

    assert [kind for kind, _ in data.DataLoader(Many(4), 2)] == [("many", "many")] * 2


@pytest.mark.parametrize("drop_last", [False, True])
@pytest.mark.parametrize("workers", WORKERS)
def test_a_stream_is_dealt_out_among_workers(workers, drop_last):
    loader = data.DataLoader(Stream(20), batch_size=3, num_workers=workers, drop_last=drop_last)
    found = [batch.tolist() for batch in loader]
    shares = [range(i, 20, workers) for i in range(workers)] or [range(20)]
    for i, share in enumerate(shares):
        own = [batch for batch in found if batch[0] in share]
        kept = len(share) // 3 * 3 if drop_last else len(share)
        assert list(itertools.chain(*own)) == list(share)[:kept], i
    assert [batch.tolist() for batch in loader] == found
    assert len(loader) == (20 // 3 if drop_last else math.ceil(20 / 3))


def test_workers_know_who_they_are():
    seen = []
    assert data.get_worker_info() is None

    class Who(data.Dataset):
        def __len__(self):
            return 4

        def __getitem__(self, index):
            return data.get_worker_info().id

    who = Who()
    init = lambda number: seen.append(data.get_worker_info())
    assert [ids.tolist() for ids in data.DataLoader(who, num_workers=2, worker_init_fn=init)] == [
        [0],
        [1],
    ] * 2
    assert sorted(info.id for info in seen) == [0, 1]
    assert {info.num_workers for info in seen} == {2}
    list(data.DataLoader(who, num_workers=2, worker_init_fn=init))
    assert sorted(info.seed for info in seen[2:]) == sorted(info.seed for info in seen[:2])
    assert len({info.seed for info in seen}) == 2
    assert all(type(info.dataset) is type(who) and info.dataset is not who for info in seen)
    assert data.get_worker_info() is None


@pytest.mark.parametrize("workers", WORKERS)
def test_an_error_names_the_index_and_comes_in_its_turn(workers):
    class Broken(Squares):
        def __getitem__(self, index):
            if index == 5:
                raise KeyError("no such picture")
            return super().__getitem__(index)

    loader = iter(data.DataLoader(Broken(8), batch_size=2, num_workers=workers))
    assert [next(loader)[1].tolist(), next(loader)[1].tolist()] == [[0, 1], [2, 3]]
    with pytest.raises(KeyError, match="no such picture") as raised:
        next(loader)
    assert "fetching the sample at index 5" in raised.value.__notes__
    assert any("in worker" in note for note in raised.value.__notes__) == bool(workers)


@pytest.mark.parametrize("workers", WORKERS)
def test_a_data_set_that_stops_early_does_not_end_the_epoch_silently(workers):
    class Short(Squares):
        def __getitem__(self, index):
            raise StopIteration

    with pytest.raises(RuntimeError):
        list(data.DataLoader(Short(4), num_workers=workers))


@pytest.mark.parametrize(
    "option", [{"multiprocessing_context": "spawn"}, {"prefetch_factor": 2}, {"persistent_workers": True}]
)
def test_what_is_for_workers_needs_workers(option):
    with pytest.raises(ValueError, match="there are none"):
        data.DataLoader(Squares(4), num_workers=0, **option)


def test_an_error_of_worker_init_fn_is_raised():
    def init(number):
        raise OSError("no camera")

    with pytest.raises(OSError, match="no camera"):
        list(data.DataLoader(Squares(4), num_workers=2, worker_init_fn=init))


@pytest.mark.parametrize("workers", WORKERS)
def test_an_index_outside_the_rows_is_an_error(workers):
    rows = data.TensorDataset(tn.arange(4))
    with pytest.raises(IndexError, match="index 4 is out of range for 4 samples"):
        list(data.DataLoader(rows, sampler=[0, 4], num_workers=workers))


def test_a_worker_that_takes_too_long_is_reported():
    loader = data.DataLoader(Squares(4, wait=0.4), num_workers=1, timeout=0.05)
    with pytest.raises(tn.TenfoldError, match=r"worker 0 has not made its batch within 0.05 seconds"):
        list(loader)


def test_leaving_the_loop_stops_the_workers():
    fetched = []

    class Noted(Squares):
        def __getitem__(self, index):
            fetched.append(index)
            return super().__getitem__(index)

    loader = data.DataLoader(Noted(100_000), num_workers=2, prefetch_factor=3)
    for _ in loader:
        break
    deadline = time.monotonic() + 5
    while workers_alive() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not workers_alive()
    assert len(fetched) <= 8, "no more than was asked for ahead"


def test_a_thousand_epochs_leave_nothing_behind():
    rows = data.TensorDataset(tn.arange(4))
    loader = data.DataLoader(rows, batch_size=2, num_workers=2, shuffle=True)
    for _ in range(10):
        list(loader)
    gc.collect()
    before = len(gc.get_objects())
    for _ in range(1000):
        for _ in loader:
            break
        list(loader)
    gc.collect()
    assert len(gc.get_objects()) - before < 500
    assert threading.active_count() < 20


def test_two_passes_at_once_do_not_disturb_each_other():
    loader = data.DataLoader(Squares(6), num_workers=2)
    pairs = [(a.tolist(), b.tolist()) for (_, a), (_, b) in zip(loader, loader)]
    assert pairs == [([i], [i]) for i in range(6)]


def test_a_program_ends_with_a_loader_in_mid_air():
    code = (
        "import tenfold as tn\n"
        "rows = tn.utils.data.TensorDataset(tn.arange(1000))\n"
        "batches = iter(tn.utils.data.DataLoader(rows, num_workers=2))\n"
        "print(next(batches)[0].item())\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, "0\n", "")


@pytest.mark.parametrize("workers", [0, 2])
def test_a_compiled_consumer_takes_batches_of_workers(workers):
    rows = np.random.default_rng(0).normal(size=(32, 4)).astype(np.float32)
    total = tn.zeros(4)

    @tn.compile
    def consume(x, y):
        total.add_((x * y.unsqueeze(1)).sum(0))
        return x.sum()

    labels = np.arange(32, dtype=np.float32)
    dataset = data.TensorDataset(tn.tensor(rows), tn.tensor(labels))
    sums = [consume(x, y) for x, y in data.DataLoader(dataset, 8, num_workers=workers)]
    tn.eval(*sums)
    np.testing.assert_allclose(
        [each.item() for each in sums], rows.reshape(4, -1).sum(1), rtol=1e-4, atol=1e-5
    )
    np.testing.assert_allclose(total.numpy(), (rows * labels[:, None]).sum(0), rtol=1e-4)


def test_workers_make_samples_while_a_function_is_recorded():
    """What a worker records is its own, even while the main thread records a function."""

    class Computed(data.Dataset):
        def __len__(self):
            return 6

        def __getitem__(self, index):
            return tn.full((2,), float(index)) * 2

    batches = iter(data.DataLoader(Computed(), 2, num_workers=2, prefetch_factor=1))
    first = next(batches)

    @tn.compile
    def double(x):
        time.sleep(0.05)
        return x * 2

    found = [first.tolist(), double(next(batches)).tolist(), next(batches).tolist()]
    assert found == [[[0, 0], [2, 2]], [[8, 8], [12, 12]], [[8, 8], [10, 10]]]


def test_a_device_may_be_named():
    rows = data.TensorDataset(tn.arange(4))
    (batch,) = next(iter(data.DataLoader(rows, 4, device="cpu")))
    assert batch.device is tn.device("cpu")
    assert batch.tolist() == [0, 1, 2, 3]
    nested = data.DataLoader(
        Squares(2), 2, device="cpu", collate_fn=lambda s: {"a": (tn.ones(2), "text", None)}
    )
    (found,) = nested
    assert found["a"][0].tolist() == [1, 1]
    assert found["a"][1:] == ("text", None)


def test_batches_read_one_ahead_keep_their_order_and_their_errors():
    def numbers():
        yield from range(3)
        raise KeyError("three")

    from tenfold.data.loader import _one_ahead

    made = _one_ahead(numbers())
    assert [next(made), next(made), next(made)] == [0, 1, 2]
    with pytest.raises(KeyError, match="three"):
        next(made)
    assert list(_one_ahead(iter([]))) == []
    assert list(_one_ahead(iter([7]))) == [7]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"num_workers": -1}, "DataLoader: num_workers is the number of workers"),
        ({"timeout": -1}, "timeout is not negative"),
        ({"prefetch_factor": 2}, "are for workers, and there are none"),
        ({"sampler": [0], "shuffle": True}, "it goes with no shuffle"),
        ({"batch_sampler": [[0]], "batch_size": 2}, "a batch_sampler decides alone"),
        ({"batch_size": None, "drop_last": True}, "no last one to drop"),
        ({"batch_size": 0}, "batch_size is a positive int or None, not 0"),
        ({"batch_size": 2.5}, "batch_size is a positive int or None, not 2.5"),
    ],
)
def test_wrong_arguments_are_explained(arguments, message):
    with pytest.raises(tn.ArgumentError, match=message):
        data.DataLoader(Squares(3), **arguments)


def test_a_stream_takes_no_order_from_outside():
    with pytest.raises(tn.ArgumentError, match="decides on its own order"):
        data.DataLoader(Stream(3), shuffle=True)


def test_what_samplers_were_made_for_cannot_be_changed():
    loader = tn.data.DataLoader(range(4), batch_size=2)
    with pytest.raises(ValueError, match="batch_size of a DataLoader cannot be changed"):
        loader.batch_size = 3
    loader.num_workers = 1
    assert [each.tolist() for each in loader] == [[0, 1], [2, 3]]


def test_an_unknown_device_is_refused_at_once():
    with pytest.raises(tn.DeviceError, match="DataLoader: unknown device 'gpu'"):
        data.DataLoader(Squares(3), device="gpu")


def test_empty_data_sets_have_no_batches():
    empty = data.TensorDataset(tn.zeros(0, 3))
    for workers in (0, 2):
        assert list(data.DataLoader(empty, 4, shuffle=True, num_workers=workers)) == []
        assert list(data.DataLoader(Stream(0), 4, num_workers=workers)) == []
