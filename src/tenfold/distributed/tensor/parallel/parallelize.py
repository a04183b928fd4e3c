"""`parallelize_module`: which layers of a model are split, and how."""

from __future__ import annotations

from fnmatch import fnmatch
from typing import Any

from tenfold.base.errors import ArgumentError, located
from tenfold.base.warning import warn
from tenfold.distributed.device_mesh import DeviceMesh
from tenfold.distributed.tensor.dtensor import move_to_mesh
from tenfold.distributed.tensor.parallel.styles import ParallelStyle
from tenfold.distributed.tensor.placements import Replicate


@located
def parallelize_module(
    module: Any,
    device_mesh: DeviceMesh | None = None,
    parallelize_plan: ParallelStyle | dict[str, ParallelStyle] | None = None,
    *,
    src_data_rank: int | None = 0,
) -> Any:
    """Split the layers of a module over a mesh of one dimension, by one style or by a style for each name.
    `*` in a name stands for any part of it. All other parameters and buffers are replicated."""
    if device_mesh is None:
        raise ArgumentError("a mesh is needed", help='mesh["model"] of init_device_mesh(...)')
    if device_mesh.ndim > 1:
        raise ArgumentError(
            f"layers are split over one dimension of a mesh, not {device_mesh.ndim}",
            help='take one with mesh["model"]',
        )
    if isinstance(parallelize_plan, ParallelStyle):
        parallelize_plan.apply(module, device_mesh)
    for pattern, style in (parallelize_plan or {}).items() if isinstance(parallelize_plan, dict) else ():
        found = [each for name, each in module.named_modules() if _matches(name, pattern)]
        if not found:
            warn(f"parallelize_module: no layer is called {pattern!r}")
        for each in found:
            style.apply(each, device_mesh)
    move_to_mesh(module, device_mesh, lambda name, tensor: [Replicate()] * device_mesh.ndim)
    return module


def _matches(name: str, pattern: str) -> bool:
    parts, wanted = name.split("."), pattern.split(".")
    return len(parts) == len(wanted) and all(map(fnmatch, parts, wanted))
