"""`tenfold.backends`: the switches that scripts set, by PyTorch's names. Each of these is a module of its own
for `import`. XLA chooses its algorithms itself, so a switch that would choose one is kept and has no
effect."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

from tenfold.cuda import is_available as _cuda_is_available
from tenfold.errors import unknown_name

__path__: list[str] = []  # `import torch.backends.cudnn` asks for it; what it finds is made below


def _no() -> bool:
    return False


def _yes() -> bool:
    return True


class _flags:
    """Switches for the time of a `with` block."""

    def __init__(self, owner: ModuleType, switches: dict[str, Any]):
        self.owner, self.switches = owner, switches

    def __enter__(self) -> None:
        self.before = {name: getattr(self.owner, name) for name in self.switches}
        vars(self.owner).update(self.switches)

    def __exit__(self, *error: object) -> None:
        vars(self.owner).update(self.before)


def _module(name: str, **contents: Any) -> ModuleType:
    """A module with switches and functions, which `import tenfold.backends.NAME` finds."""
    made = ModuleType(f"{__name__}.{name}", f"`tenfold.backends.{name}`: switches that scripts set.")
    vars(made).update(contents)
    vars(made)["flags"] = lambda **switches: _flags(made, switches)
    vars(made)["__getattr__"] = lambda asked: _unknown(made, asked)
    sys.modules[made.__name__] = made
    return made


def _unknown(module: ModuleType, name: str) -> Any:
    raise unknown_name(module.__name__, name, vars(module))


class _Matmul:
    """Switches about products of matrices; their values are kept."""

    allow_tf32 = False
    allow_fp16_reduced_precision_reduction = True
    allow_bf16_reduced_precision_reduction = True
    fp32_precision = "none"


cuda = _module(
    "cuda",
    matmul=_Matmul(),
    is_built=_cuda_is_available,
    flash_sdp_enabled=_yes,
    mem_efficient_sdp_enabled=_yes,
    math_sdp_enabled=_yes,
    enable_flash_sdp=lambda enabled: None,
    enable_mem_efficient_sdp=lambda enabled: None,
    enable_math_sdp=lambda enabled: None,
)
cudnn = _module(
    "cudnn",
    enabled=True,
    benchmark=False,
    deterministic=False,
    allow_tf32=True,
    benchmark_limit=10,
    is_available=_cuda_is_available,
    version=lambda: None,
    is_acceptable=lambda tensor: tensor.device.type == "cuda",
)
mps = _module("mps", is_available=_no, is_built=_no)
mkl = _module("mkl", is_available=_no)
mkldnn = _module("mkldnn", is_available=_no, enabled=False)
openmp = _module("openmp", is_available=_no)
opt_einsum = _module("opt_einsum", is_available=_yes, enabled=True, strategy="auto")
cpu = _module("cpu", get_cpu_capability=lambda: "DEFAULT")

__all__ = ["cpu", "cuda", "cudnn", "mkl", "mkldnn", "mps", "openmp", "opt_einsum"]


def __getattr__(name: str) -> Any:
    raise unknown_name("tenfold.backends", name, __all__)
