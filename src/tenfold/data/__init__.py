"""`tenfold.data`: datasets, the order in which they are read, and batches made of them ahead of use.

The names are those of `torch.utils.data`, and `tenfold.utils.data` is this module. Workers are threads.
"""

from typing import Any

from tenfold.base.errors import unknown_name
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
from tenfold.data.loader import CallersIterator as _SingleProcessDataLoaderIter  # noqa: F401
from tenfold.data.loader import DataLoader
from tenfold.data.loader import LoaderIterator as _BaseDataLoaderIter  # noqa: F401
from tenfold.data.loader import WorkersIterator as _MultiProcessingDataLoaderIter  # noqa: F401
from tenfold.data.sampler import (
    BatchSampler,
    DistributedSampler,
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
    "IterableDataset",
    "RandomSampler",
    "Sampler",
    "SequentialSampler",
    "StackDataset",
    "Subset",
    "SubsetRandomSampler",
    "TensorDataset",
    "WeightedRandomSampler",
    "WorkerInfo",
    "default_collate",
    "default_convert",
    "get_worker_info",
    "random_split",
]


class _DatasetKind:
    """How a data set is read: by index, or as it comes."""

    Map, Iterable = 0, 1


def __getattr__(name: str) -> Any:
    raise unknown_name("tenfold.data", name, globals())
