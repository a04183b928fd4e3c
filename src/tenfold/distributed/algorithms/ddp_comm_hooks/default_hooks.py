"""Communication hooks that average gradients over processes, in their own dtype or in a narrower one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tenfold.base import dtypes
from tenfold.base.dtypes import DType
from tenfold.distributed.collectives import all_reduce
from tenfold.distributed.gradients import GradBucket
from tenfold.distributed.group import ProcessGroup, world_of
from tenfold.futures import Future
from tenfold.tensor import Tensor

__all__ = [
    "allreduce_hook",
    "bf16_compress_hook",
    "bf16_compress_wrapper",
    "fp16_compress_hook",
    "fp16_compress_wrapper",
]
Hook = Callable[[Any, GradBucket], Future[Tensor]]


def allreduce_hook(process_group: ProcessGroup | None, bucket: GradBucket) -> Future[Tensor]:
    """Average over all processes, as without a hook."""
    return _averaged(process_group, bucket.buffer(), bucket.buffer().dtype)


def fp16_compress_hook(process_group: ProcessGroup | None, bucket: GradBucket) -> Future[Tensor]:
    """Average over all processes in float16."""
    return _averaged(process_group, bucket.buffer(), dtypes.float16)


def bf16_compress_hook(process_group: ProcessGroup | None, bucket: GradBucket) -> Future[Tensor]:
    """Average over all processes in bfloat16."""
    return _averaged(process_group, bucket.buffer(), dtypes.bfloat16)


def _averaged(process_group: ProcessGroup | None, buffer: Tensor, dtype: DType) -> Future[Tensor]:
    group = world_of(process_group)
    share = buffer.to(dtype) / group.size()  # divided first, so that the sum does not overflow
    work = all_reduce(share, group=group, async_op=True)
    assert work is not None
    return work.get_future().then(lambda done: done.value()[0].to(buffer.dtype))


def fp16_compress_wrapper(hook: Hook) -> Hook:
    """Wrap a hook so that gradients are cast to float16 before it and back after it."""
    return _in_dtype(hook, dtypes.float16)


def bf16_compress_wrapper(hook: Hook) -> Hook:
    """Wrap a hook so that gradients are cast to bfloat16 before it and back after it."""
    return _in_dtype(hook, dtypes.bfloat16)


def _in_dtype(hook: Hook, dtype: DType) -> Hook:
    def call(hook_state: Any, bucket: GradBucket) -> Future[Tensor]:
        before = bucket.buffer().dtype
        bucket.set_buffer(bucket.buffer().to(dtype))
        return hook(hook_state, bucket).then(lambda done: done.value().to(before))

    return call
