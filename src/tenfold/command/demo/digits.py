"""The 8×8 digits that the demonstration and the examples learn from; README.md says whose they are."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np

from tenfold.tensor import Tensor
from tenfold.tensor.interchange import tensor

TRAINING = 1437  # of 1,797 in all; the file is shuffled, so the rest is a fair test


class Split(NamedTuple):
    """Images of shape (n, 1, 8, 8) with values from 0 to 1, and their labels, int64 of shape (n,)."""

    images: Tensor
    labels: Tensor


def load() -> tuple[Split, Split]:
    """What to train on and what to test on; the same split every time."""
    with np.load(Path(__file__).with_name("digits.npz")) as file:
        images = file["images"].astype(np.float32)[:, None] / 16
        labels = file["labels"].astype(np.int64)
    return (
        Split(tensor(images[:TRAINING]), tensor(labels[:TRAINING])),
        Split(tensor(images[TRAINING:]), tensor(labels[TRAINING:])),
    )
