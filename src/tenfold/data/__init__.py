"""`tenfold.data`: datasets, the order in which they are read, and batches made of them ahead of use.

The names are those of `torch.utils.data`, and `tenfold.utils.data` is this module. Workers are threads.
"""

from typing import Any

from tenfold.base.errors import unknown_name
from tenfold.data import dataloader, distributed
from tenfold.data.collate import default_collate, default_convert
from tenfold.data.dataset import (
    ChainDataset,
    ConcatDataset,
    Dataset,
    IterableDataset,
    StackDataset,
    Subset,
    TensorDataset,
    random_split,
)
from tenfold.data.distributed import DistributedSampler
from tenfold.data.loader import DataLoader
from tenfold.data.pipes import IterDataPipe, MapDataPipe, functional_datapipe
from tenfold.data.sampler import (
    BatchSampler,
    RandomSampler,
    Sampler,
    SequentialSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
)
from tenfold.data.workers import WorkerInfo, get_worker_info

__all__ = [
    "BatchSampler",
    "ChainDataset",
    "ConcatDataset",
    "DataLoader",
    "Dataset",
    "DistributedSampler",
    "IterDataPipe",
    "IterableDataset",
    "MapDataPipe",
    "RandomSampler",
    "Sampler",
    "SequentialSampler",
    "StackDataset",
    "Subset",
    "SubsetRandomSampler",
    "TensorDataset",
    "WeightedRandomSampler",
    "WorkerInfo",
    "dataloader",
    "default_collate",
    "default_convert",
    "distributed",
    "functional_datapipe",
    "get_worker_info",
    "random_split",
]


def __getattr__(name: str) -> Any:
    raise unknown_name("tenfold.data", name, globals())
