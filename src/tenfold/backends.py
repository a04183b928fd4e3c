"""`tenfold.backends`: the switches that scripts set, by PyTorch's names. Each of these is a module of its own
for `import`. XLA chooses its algorithms itself, so a switch that would choose one is kept and has no
effect, but for the wish that results be the same bits whenever a program runs on a GPU."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

from tenfold.base.errors import unknown_name
from tenfold.compat.names import determinism
from tenfold.cuda import is_available as _cuda_is_available

__path__: list[str] = []  # `import torch.backends.cudnn` asks for it; what it finds is made below


def _no() -> bool:
    return False


def _yes() -> bool:
    return True


class _Switch:
    """What `enable_…` sets is kept for `…_enabled` to tell."""

    on = True

    def set(self, enabled: bool) -> None:
        self.on = bool(enabled)

    def get(self) -> bool:
        return self.on


def _switches(*names: str) -> dict[str, Any]:
    made = {name: _Switch() for name in names}
    asked = {f"{name}_enabled": each.get for name, each in made.items()}
    return {**asked, **{f"enable_{name}": each.set for name, each in made.items()}}


class _flags:
    """Switches for the time of a `with` block."""

    def __init__(self, owner: ModuleType, switches: dict[str, Any]):
        self.owner, self.switches = owner, switches

    def __enter__(self) -> None:
        self.before = {name: getattr(self.owner, name) for name in self.switches}
        self._set(self.switches)

    def __exit__(self, *error: object) -> None:
        self._set(self.before)

    def _set(self, switches: dict[str, Any]) -> None:
        for name, value in switches.items():
            setattr(self.owner, name, value)


class _Switches(ModuleType):
    """A module of switches. The one that asks for the same bits at every run is heard."""

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, value)
        if name == "deterministic":
            determinism.ask("cudnn", bool(value))


def _module(name: str, **contents: Any) -> ModuleType:
    """A module with switches and functions, which `import tenfold.backends.NAME` finds."""
    made = _Switches(f"{__name__}.{name}", f"`tenfold.backends.{name}`: switches that scripts set.")
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
    **_switches("cudnn_sdp", "flash_sdp", "math_sdp", "mem_efficient_sdp"),
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
