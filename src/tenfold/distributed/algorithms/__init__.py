"""`distributed.algorithms`: how processes combine gradients."""

from tenfold.distributed.algorithms import ddp_comm_hooks

__all__ = ["ddp_comm_hooks"]
