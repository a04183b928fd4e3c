"""`nn.parallel`: a module on several devices. Programs run on one, so `DataParallel` is the module itself
with another one around it, as it is in PyTorch without a GPU."""

from __future__ import annotations

from typing import Any

from tenfold.base.absent import AbsentModule
from tenfold.base.errors import UnsupportedError, located
from tenfold.nn.module import Module

__all__ = ["DataParallel", "DistributedDataParallel"]

_absent = AbsentModule.of("torch.nn.parallel")


class DataParallel(Module):
    """A module, in another whose weights' names start with `module.`; calls go to it as they are."""

    @located
    def __init__(self, module: Module, device_ids: Any = None, output_device: Any = None, dim: int = 0):
        super().__init__()
        if device_ids is not None and len(device_ids) > 1:
            raise UnsupportedError(
                f"a batch is not spread over {len(device_ids)} devices",
                help="leave device_ids out, or give one",
            )
        self.module, self.dim = module, dim
        self.device_ids = list(device_ids or [])

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        return self.module(*inputs, **kwargs)


DistributedDataParallel = _absent.DistributedDataParallel


def __getattr__(name: str) -> Any:
    return getattr(_absent, name)
