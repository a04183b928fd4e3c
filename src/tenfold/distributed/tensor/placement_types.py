"""PyTorch's name of `placements`."""

from tenfold.distributed.tensor.placements import Partial, Placement, Replicate, Shard

__all__ = ["Partial", "Placement", "Replicate", "Shard"]
