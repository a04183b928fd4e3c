"""How precisely lowerings compute: half types in float32, rounded once, as PyTorch's kernels do."""

from __future__ import annotations

import functools
from typing import Any

from tenfold import dtypes, flat
from tenfold.dtypes import DType
from tenfold.ops.table import Lowering


def is_narrow(dtype: DType) -> bool:
    """Whether it is a float of fewer bits than float32."""
    return dtype.is_floating_point and dtype.itemsize < 4


def widened(lowering: Lowering) -> Lowering:
    """The lowering, but narrow floats are computed in float32 and the results rounded back."""

    @functools.wraps(lowering)
    def wide(*arguments: Any) -> Any:
        narrow = next((a.dtype for a in arguments if isinstance(a, flat.Value) and is_narrow(a.dtype)), None)
        if narrow is None:
            return lowering(*arguments)
        results = lowering(*[_converted(each, narrow, dtypes.float32) for each in arguments])
        return _converted(results, dtypes.float32, narrow)

    return wide


def _converted(argument: Any, source: DType, target: DType) -> Any:
    if isinstance(argument, tuple):
        return tuple([_converted(each, source, target) for each in argument])
    if isinstance(argument, flat.Value) and argument.dtype is source:
        return flat.convert(argument, target)
    return argument
