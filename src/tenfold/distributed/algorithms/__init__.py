"""`distributed.algorithms`: ways in which processes bring gradients together."""

from tenfold.distributed.algorithms import ddp_comm_hooks

__all__ = ["ddp_comm_hooks"]
