"""Kernels of calls by name: LAPACK's routines, kernels over tiles, and the Python functions that packages
declare ops with."""

from __future__ import annotations

from typing import Any

from tenfold.base.errors import UnsupportedError
from tenfold.engines.numpy import linear_algebra
from tenfold.engines.numpy.kernels import Array, Kernel
from tenfold.engines.numpy.tiles import tile_call
from tenfold.flat.structured import PYTHON
from tenfold.ops import kernels
from tenfold.ops.tile_kernels import TARGET


def custom_call(op: Any) -> Kernel:
    target = op.call_target_name
    if target.startswith(PYTHON):
        return _python(len(op.results) == 1)
    if target.startswith(TARGET):
        return tile_call(op)
    if target.startswith("lapack_") and target.endswith("_ffi"):
        prefix, routine = target[len("lapack_")], target[len("lapack_") + 1 : -len("_ffi")]
        if routine in linear_algebra.ROUTINES:
            return linear_algebra.lapack_call(op, prefix, linear_algebra.ROUTINES[routine])
    compiled = ("cpu", target) in kernels.FOREIGN
    raise UnsupportedError(
        f"the NumPy engine {'cannot call the C function' if compiled else 'knows no function'} {target!r}",
        help="tn.set_engine('xla') runs it, where XLA knows it",
    )


def _python(single: bool) -> Kernel:
    """Calls a function on arrays, or raises what it raises as an error of the engine's."""

    def kernel(text: Array, *inputs: Array) -> Any:
        try:
            results = kernels.call_python(text, *inputs)
        except Exception as error:
            raise kernels.take_failure() or error from None
        return results[0] if single else results

    return kernel
