"""`loss_parallel`: losses of logits that are split over classes."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator


@contextlib.contextmanager
def loss_parallel() -> Iterator[None]:
    """A block in which losses are computed on logits that are split over classes, without gathering these.
    XLA always does this; the block exists for programs that use it."""
    yield
