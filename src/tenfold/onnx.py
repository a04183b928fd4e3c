"""`tenfold.onnx`: the words by which packages tell PyTorch how to write their operators as ONNX. Nothing is
written as ONNX here, so they mark nothing."""

from __future__ import annotations

from typing import Any

from tenfold.base.absent import AbsentModule

__all__ = [
    "is_in_onnx_export", "is_onnxrt_backend_supported", "register_custom_op_symbolic",
    "unregister_custom_op_symbolic",
]  # fmt: skip

_absent = AbsentModule.of("torch.onnx")


def is_in_onnx_export() -> bool:
    """False: no program is being written as ONNX."""
    return False


is_onnxrt_backend_supported = is_in_onnx_export


def register_custom_op_symbolic(symbolic_name: str, symbolic_fn: Any, opset_version: int) -> None:
    """Does nothing: how an operator is written as ONNX is not asked."""


def unregister_custom_op_symbolic(symbolic_name: str, opset_version: int) -> None:
    """Does nothing."""


def parse_args(*descriptors: str) -> Any:
    """A decorator that does nothing."""
    return lambda function: function


quantized_args = parse_args


def __getattr__(name: str) -> Any:
    return getattr(_absent, name)
