"""`distributed.tensor.parallel`: modules whose layers are split over the devices of a mesh."""

from tenfold.distributed.tensor.parallel.loss import loss_parallel
from tenfold.distributed.tensor.parallel.parallelize import parallelize_module
from tenfold.distributed.tensor.parallel.styles import (
    ColwiseParallel,
    ParallelStyle,
    PrepareModuleInput,
    PrepareModuleOutput,
    RowwiseParallel,
    SequenceParallel,
)

__all__ = [
    "ColwiseParallel", "ParallelStyle", "PrepareModuleInput", "PrepareModuleOutput", "RowwiseParallel",
    "SequenceParallel", "loss_parallel", "parallelize_module",
]  # fmt: skip
