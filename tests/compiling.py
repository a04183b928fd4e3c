"""The settings of XLA by which tests compile quickly: they change no result."""

from __future__ import annotations

import pytest

__all__ = ["QUICK", "compiles_quickly", "xla_flags"]

QUICK = [
    ("xla_backend_optimization_level", 0),  # LLVM's
    ("xla_cpu_use_fusion_emitters", False),  # kernels made by way of MLIR, at 15 ms each
    ("xla_cpu_parallel_codegen_split_count", 1),  # modules of LLVM's that the kernels are spread over
]


def compiles_quickly(config: pytest.Config) -> bool:
    """Whether this run does so: where it leaves out the slow tests."""
    return "not slow" in config.getoption("markexpr")


def xla_flags(config: pytest.Config) -> dict[str, str]:
    """The environment of a process that compiles as this one does."""
    options = QUICK if compiles_quickly(config) else []
    return {"XLA_FLAGS": " ".join(f"--{name}={str(value).lower()}" for name, value in options)}
