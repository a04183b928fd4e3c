"""`tenfold.utils.data.dataloader`: the data loader and what belongs to it under PyTorch's names, which
libraries import from here."""

from tenfold.data.collate import default_collate, default_convert
from tenfold.data.dataset import Dataset, IterableDataset
from tenfold.data.loader import (
    CallersIterator as _SingleProcessDataLoaderIter,
    DataLoader,
    LoaderIterator as _BaseDataLoaderIter,
    WorkersIterator as _MultiProcessingDataLoaderIter,
)
from tenfold.data.sampler import BatchSampler, RandomSampler, Sampler, SequentialSampler
from tenfold.data.workers import get_worker_info

__all__ = [
    "BatchSampler",
    "DataLoader",
    "Dataset",
    "IterableDataset",
    "RandomSampler",
    "Sampler",
    "SequentialSampler",
    "_BaseDataLoaderIter",
    "_DatasetKind",
    "_MultiProcessingDataLoaderIter",
    "_SingleProcessDataLoaderIter",
    "default_collate",
    "default_convert",
    "get_worker_info",
]


class _DatasetKind:
    """How a data set is read: by index, or as it comes."""

    Map, Iterable = 0, 1
