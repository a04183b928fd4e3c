"""A former name of `distributed.tensor.placements`."""

from tenfold.distributed.tensor.placements import Partial, Placement, Replicate, Shard

__all__ = ["Partial", "Placement", "Replicate", "Shard"]
