"""PyTorch's name of `placements`."""

from tenfold.distributed.tensor.placements import Partial, Placement, Replicate, Shard, _StridedShard

__all__ = ["Partial", "Placement", "Replicate", "Shard", "_StridedShard"]
