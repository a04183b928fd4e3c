"""Workers that are processes, and worker threads with data sets of their own."""

import os
import select
import signal

import numpy as np
import pytest

import tenfold as tn
from tenfold import data


class Numbers(data.Dataset):
    def __init__(self, count=8):
        self.count, self.opened = count, 0

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        if index == 6 and self.count == 7:
            raise KeyError("a broken sample")
        self.opened += 1
        return tn.tensor([float(index)]) * 2, os.getpid(), np.random.rand()


class Range(data.IterableDataset):
    def __init__(self, start, end):
        self.start, self.end = start, end

    def __iter__(self):
        return iter(range(self.start, self.end))


class Ends(data.Dataset):
    def __len__(self):
        return 2

    def __getitem__(self, index):
        os._exit(3)


class Unsendable(data.Dataset):
    def __len__(self):
        return 2

    def __getitem__(self, index):
        return lambda: index


class Kills(Numbers):
    """Ends its main process in the middle of a pass, when all workers are at work."""

    def __getitem__(self, index):
        if index == 4:
            os.kill(os.getppid(), signal.SIGKILL)
        return super().__getitem__(index)


def take_share(number):
    """What PyTorch's documentation does in `worker_init_fn`: a worker's data set is its own."""
    info = data.get_worker_info()
    share = (info.dataset.end - info.dataset.start) // info.num_workers
    info.dataset.start += number * share
    info.dataset.end = info.dataset.start + share


@pytest.mark.parametrize("context", [None, "fork"])
def test_a_worker_changes_its_own_data_set(context):
    dataset = Range(0, 12)
    loader = data.DataLoader(
        dataset, 3, num_workers=2, worker_init_fn=take_share, multiprocessing_context=context
    )
    assert sorted(np.concatenate([each.numpy() for each in loader]).tolist()) == list(range(12))
    assert (dataset.start, dataset.end) == (0, 12)


def test_data_sets_inside_a_data_set_are_copied_too():
    inner = Numbers()
    for _ in data.DataLoader(data.ConcatDataset([data.Subset(inner, [1, 2])]), 2, num_workers=1):
        pass
    assert inner.opened == 0


@pytest.mark.parametrize("context", ["fork", pytest.param("spawn", marks=pytest.mark.slow)])
def test_processes_make_batches_in_order(context):
    loader = data.DataLoader(
        Numbers(), 2, num_workers=2, multiprocessing_context=context, persistent_workers=True
    )
    passes = [list(loader) for _ in range(2)]
    for batches in passes:
        assert np.concatenate([each[0].numpy().ravel() for each in batches]).tolist() == [
            0,
            2,
            4,
            6,
            8,
            10,
            12,
            14,
        ]
    made_by = [{int(each) for batch in batches for each in batch[1]} for batches in passes]
    assert made_by[0] == made_by[1]  # the same processes for both passes
    assert os.getpid() not in made_by[0]
    drawn = {float(each) for batches in passes for batch in batches for each in batch[2]}
    assert len(drawn) == 16  # each worker has its own seed in each pass


def test_an_error_in_a_process_is_raised_here():
    loader = data.DataLoader(Numbers(7), 1, num_workers=2, multiprocessing_context="fork")
    with pytest.raises(KeyError, match="a broken sample") as caught:
        list(loader)
    assert any("in __getitem__" in note for note in caught.value.__notes__)


def test_a_process_that_ends_is_reported():
    loader = data.DataLoader(Ends(), num_workers=1, multiprocessing_context="fork")
    with pytest.raises(tn.TenfoldError, match="ended unexpectedly, with exit code 3"):
        list(loader)


def test_a_batch_that_cannot_be_sent_is_reported_with_its_cause():
    loader = data.DataLoader(
        Unsendable(), num_workers=1, multiprocessing_context="fork", collate_fn=lambda batch: batch[0]
    )
    with pytest.raises(tn.TenfoldError, match=r"cannot send its batch: \w+: .*lambda"):
        list(loader)


def test_workers_end_when_the_main_process_is_killed():
    read, write = os.pipe()  # which the workers inherit, and close by ending
    main = os.fork()
    if main == 0:
        try:
            for _ in data.DataLoader(Kills(), 1, num_workers=3, multiprocessing_context="fork"):
                pass
        finally:
            os._exit(0)
    os.close(write)
    assert os.waitstatus_to_exitcode(os.waitpid(main, 0)[1]) == -signal.SIGKILL
    ready, _, _ = select.select([read], [], [], 30)
    assert ready and os.read(read, 1) == b""
    os.close(read)


def test_a_killed_worker_is_noticed_though_its_pipe_is_held_open():
    loader = data.DataLoader(Ends(), num_workers=2, multiprocessing_context="fork")
    for _ in range(3):  # each time two are forked from two threads
        with pytest.raises(tn.TenfoldError, match="ended unexpectedly, with exit code 3"):
            list(loader)


def test_an_unknown_context_is_refused():
    with pytest.raises(tn.ArgumentError, match="no multiprocessing context 'threads'"):
        data.DataLoader(Numbers(), num_workers=1, multiprocessing_context="threads")
