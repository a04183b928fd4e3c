"""`tenfold.backends`: the switches that scripts set, by PyTorch's names. Each of these is a module of its own
for `import`. XLA chooses its algorithms itself, so a switch that would choose one is kept and has no
effect, but for the wishes that results be the same bits whenever a program runs on a GPU, and that products
of float32 keep all bits there."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from enum import Enum
from types import ModuleType
from typing import Any, NamedTuple

from tenfold.base.errors import ArgumentError, unknown_name
from tenfold.base.source import capture
from tenfold.compat.names import determinism
from tenfold.compat.names.settings import get_float32_matmul_precision, set_float32_matmul_precision
from tenfold.cuda import is_available as _cuda_is_available
from tenfold.mlir import stablehlo
from tenfold.runtime.compile import set_exact

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

    def __init__(self, owner: _Switches, switches: dict[str, Any]):
        self.owner, self.switches = owner, switches

    def __enter__(self) -> None:
        self.before = {name: getattr(self.owner, name) for name in self.switches}
        self._set(self.switches)

    def __exit__(self, *error: object) -> None:
        self._set(self.before)

    def _set(self, switches: dict[str, Any]) -> None:
        for name, value in switches.items():
            self.owner._put(name, value)


_frozen: list[bool] = []  # see disable_global_flags


class _Switches(ModuleType):
    """A module of switches. Those that ask for the same bits at every run, and for all bits of float32, are
    heard."""

    def __setattr__(self, name: str, value: Any) -> None:
        if _frozen and isinstance(vars(self).get(name), (bool, int, str)):
            raise ArgumentError(
                f"{self.__name__}.{name} cannot be set after disable_global_flags",
                help="set it for a block: `with torch.backends.cudnn.flags(...)`",
            ).located("", capture())
        self._put(name, value)

    def _put(self, name: str, value: Any) -> None:
        """Set a switch, even where `disable_global_flags` forbids it to users."""
        super().__setattr__(name, value)
        if name == "deterministic":
            determinism.ask("cudnn", bool(value))
        elif name == "allow_tf32":
            set_exact(stablehlo.CONVOLUTIONS, not value)


def _module(name: str, **contents: Any) -> _Switches:
    """A module with switches and functions, which `import tenfold.backends.NAME` finds."""
    made = _Switches(f"{__name__}.{name}", f"`tenfold.backends.{name}`: switches that scripts set.")
    vars(made).update(contents)
    vars(made)["flags"] = lambda **switches: _flags(made, switches)
    vars(made)["set_flags"] = lambda **switches: _set_flags(made, switches)
    vars(made)["__getattr__"] = lambda asked: _unknown(made, asked)
    sys.modules[made.__name__] = made
    return made


def _set_flags(module: _Switches, switches: dict[str, Any]) -> dict[str, Any]:
    """Set switches for good; what they were before."""
    flags = _flags(module, switches)
    flags.__enter__()
    return flags.before


def _unknown(module: ModuleType, name: str) -> Any:
    raise unknown_name(module.__name__, name, vars(module))


class _Matmul:
    """Switches about products of matrices. Whether float32 factors may be rounded to TF32 is heard, the
    others are kept."""

    allow_fp16_reduced_precision_reduction = True
    allow_bf16_reduced_precision_reduction = True

    @property
    def allow_tf32(self) -> bool:
        return get_float32_matmul_precision() != "highest"

    @allow_tf32.setter
    def allow_tf32(self, wanted: bool) -> None:
        set_float32_matmul_precision("high" if wanted else "highest")

    @property
    def fp32_precision(self) -> str:
        return "tf32" if self.allow_tf32 else "ieee"

    @fp32_precision.setter
    def fp32_precision(self, precision: str) -> None:
        if precision not in ("none", "ieee", "tf32"):
            raise ArgumentError(f"{precision!r} is not one of 'ieee', 'tf32', 'none'")
        self.allow_tf32 = precision == "tf32"


class _AttentionArguments(NamedTuple):
    """What PyTorch asks a kernel of attention about."""

    query: Any
    key: Any
    value: Any
    attn_mask: Any
    dropout: float
    is_causal: bool
    enable_gqa: bool


class _Preference:
    """Asks for the library that users prefer, or says which one it is to be: "default", another name or one
    of `choices`. It is kept, and has no effect."""

    def __init__(self, title: str, *names: str):
        self.choices = Enum(title, ["Default", *names])  # type: ignore[misc]
        self._present = self.choices["Default"]

    def __call__(self, backend: Any = None) -> Any:
        if isinstance(backend, str):
            by_name = {choice.name.lower(): choice for choice in self.choices}
            if backend not in by_name:
                raise ArgumentError(
                    f"there is no library {backend!r}", help=f"choose from: {', '.join(by_name)}"
                )
            backend = by_name[backend]
        if backend is not None:
            if not isinstance(backend, self.choices):
                raise ArgumentError(f"a library is chosen by its name, not by a {type(backend).__name__}")
            self._present = backend
        return self._present


def _unused_kernel(params: _AttentionArguments, debug: bool = False) -> bool:
    """False: XLA compiles attention, and PyTorch's kernels are not there."""
    return False


@contextlib.contextmanager
def _sdp_kernel(**enabled: bool) -> Iterator[None]:
    """Accepted and without effect: which kernel computes attention is XLA's choice."""
    yield


_half_sums = _Switch()
_half_sums.set(False)
cuda = _module(
    "cuda",
    matmul=_Matmul(),
    is_built=_cuda_is_available,
    preferred_blas_library=_Preference("_BlasBackend", "Cublas", "Cublaslt", "Hipblas", "Hipblaslt", "Ck"),
    preferred_linalg_library=_Preference("_LinalgBackend", "Cusolver", "Magma"),
    preferred_rocm_fa_library=_Preference("_ROCmFABackend", "AOTriton", "Ck"),
    sdp_kernel=_sdp_kernel,
    can_use_flash_attention=_unused_kernel,
    can_use_efficient_attention=_unused_kernel,
    can_use_cudnn_attention=_unused_kernel,
    SDPAParams=_AttentionArguments,
    is_ck_sdpa_available=_no,
    is_flash_attention_available=_no,
    allow_fp16_bf16_reduction_math_sdp=_half_sums.set,
    fp16_bf16_reduction_math_sdp_allowed=_half_sums.get,
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
mps = _module(
    "mps",
    is_available=_no,
    is_built=_no,
    is_macos_or_newer=lambda major, minor: False,
    is_macos13_or_newer=lambda minor=0: False,
    get_core_count=lambda: 0,
    get_name=lambda: "",
)
mkl = _module("mkl", is_available=_no, VERBOSE_OFF=0, VERBOSE_ON=1)
mkldnn = _module(
    "mkldnn",
    is_available=_no,
    is_acl_available=_no,
    enabled=False,
    VERBOSE_OFF=0,
    VERBOSE_ON=1,
    VERBOSE_ON_CREATION=2,
)
mha = _module("mha", get_fastpath_enabled=_no, set_fastpath_enabled=lambda value: None)
cusparselt, kleidiai, miopen, nnpack, xnnpack = [
    _module(name, is_available=_no, version=lambda: None, enabled=False, immediate=False)
    for name in ("cusparselt", "kleidiai", "miopen", "nnpack", "xnnpack")
]
python_native = _module("python_native")
openmp = _module("openmp", is_available=_no)
quantized = _module("quantized", engine="none", supported_engines=["none"])
opt_einsum = _module(
    "opt_einsum", is_available=_yes, get_opt_einsum=lambda: None, enabled=True, strategy="auto"
)
cpu = _module("cpu", get_cpu_capability=lambda: "DEFAULT")

__all__ = [
    "cpu", "cuda", "cudnn", "cusparselt", "kleidiai", "mha", "miopen", "mkl", "mkldnn", "mps", "nnpack",
    "openmp", "opt_einsum", "python_native", "quantized", "xnnpack",
]  # fmt: skip


def disable_global_flags() -> None:
    """Keep the switches as they are; `flags_frozen` tells. Only their own `flags` blocks change them then."""
    _frozen.append(True)


def flags_frozen() -> bool:
    return bool(_frozen)


def __getattr__(name: str) -> Any:
    raise unknown_name("tenfold.backends", name, __all__)
