"""XLA's exceptions as ones of ours."""

from __future__ import annotations

from tenfold.base.errors import EngineError, OutOfMemory, TenfoldError
from tenfold.mlir.interrupts import is_from_handler
from tenfold.ops import kernels


def translate(error: Exception) -> Exception:
    """An engine's exception as one of ours; what a signal's handler raised is the user's, and stays."""
    if isinstance(error, TenfoldError) or is_from_handler(error):
        return error
    text = str(error)
    failed = kernels.take_failure() if "xla_ffi_python" in text or "Traceback" in text else None
    if failed is not None:
        return failed
    if "RESOURCE_EXHAUSTED" in text or "out of memory" in text.lower() or isinstance(error, MemoryError):
        return OutOfMemory(
            f"out of memory: {first_line(error)}", help="use smaller tensors or batches, or free some"
        )
    return EngineError(f"XLA: {first_line(error)}")


def first_line(error: Exception) -> str:
    """What an exception says; a heading that ends in a colon says nothing without the line after it."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()] or [type(error).__name__]
    return f"{lines[0]} {lines[1]}" if lines[0].endswith(":") and len(lines) > 1 else lines[0]
