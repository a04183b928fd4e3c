"""`tenfold.utils.data.distributed`: how processes share the rows of a data set."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tenfold.base.errors import ArgumentError, constructor
from tenfold.data import draws
from tenfold.data.sampler import Sampler, batches, checked_count
from tenfold.distributed.group import get_rank, get_world_size, is_initialized

__all__ = ["DistributedSampler"]


class DistributedSampler(Sampler[int]):
    """A process's share of a dataset: every `num_replicas`-th index, from `rank` on, of an order that all
    processes share.

    The order is drawn from `seed` and the epoch set by `set_epoch`. So that all shares have the same length,
    the order continues from its start, or with `drop_last` ends early.
    """

    @constructor
    def __init__(
        self,
        dataset: Any,
        num_replicas: int | None = None,
        rank: int | None = None,
        shuffle: bool = True,
        seed: int = 0,
        drop_last: bool = False,
    ):
        if (num_replicas is None or rank is None) and not is_initialized():
            raise ArgumentError(
                "num_replicas and rank are not known to a program of one process",
                help="give both, or call distributed.init_process_group() first",
            )
        num_replicas = get_world_size() if num_replicas is None else num_replicas
        rank = get_rank() if rank is None else rank
        self.dataset = dataset
        self.num_replicas = checked_count(num_replicas, "num_replicas")
        if not 0 <= rank < num_replicas:
            raise ArgumentError(f"rank lies between 0 and {num_replicas - 1}, and is {rank}")
        self.rank = rank
        self.shuffle = shuffle
        self.seed = seed
        self.drop_last = drop_last
        self.epoch = 0
        self.num_samples = batches(len(dataset), num_replicas, drop_last)
        self.total_size = self.num_samples * num_replicas

    def set_epoch(self, epoch: int) -> None:
        """Set the epoch, so that each epoch has its own order."""
        self.epoch = epoch

    def __iter__(self) -> Iterator[int]:
        length = len(self.dataset)
        if self.shuffle:
            order = draws.permutation(length, (self.seed + self.epoch) % 2**64).tolist()
        else:
            order = list(range(length))
        for place in range(self.rank, self.total_size, self.num_replicas):
            yield order[place % length]

    def __len__(self) -> int:
        return self.num_samples
