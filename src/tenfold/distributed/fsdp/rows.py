"""Parameters of layers that are split over some dimensions of a mesh and fully sharded over others: what the
devices at one place along the latter, a row, compute with, and how the rows' gradients come together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tenfold.autograd.grad_mode import no_grad
from tenfold.base.devices import Device
from tenfold.base.meshes import Axis, Sharding
from tenfold.distributed.device_mesh import DeviceMesh
from tenfold.distributed.tensor.edges import assembled, from_parts, part_here
from tenfold.distributed.tensor.placements import Partial, placements_of
from tenfold.runtime import evaluate
from tenfold.tensor import Tensor, leaf, sharding
from tenfold.tensor.dispatch import aten


def without(placed: Sharding, axes: Sequence[Axis]) -> Sharding:
    """The sharding without these axes: whole along them."""
    names = {axis.name for axis in axes}
    dims = [tuple([axis for axis in dim or () if axis.name not in names]) for dim in placed.dims]
    return Sharding(placed.mesh, dims)


def on_row(parameter: Tensor, mesh: DeviceMesh) -> Tensor:
    """A parameter, whole along the mesh, on the devices of this process's row."""
    whole = without(_placed(parameter), mesh.axes)
    local = part_here(sharding.constrain(parameter.detach(), whole), whole, None, None)
    return assembled(local._host(), Sharding(mesh.row().root, whole.dims), tuple(parameter.shape))


def scatter_from_rows(pairs: Sequence[tuple[Tensor, Tensor]], mesh: DeviceMesh, dtype: Any) -> None:
    """Add the mean over the rows of each gradient, sharded, to that of its parameter. A row that has none
    counts as zero; where no row has one, the parameter's stays what it is."""
    with no_grad():
        reached = np.array([whole.grad is not None for _, whole in pairs], np.float32)
        shares = _mean_over_rows(leaf(reached, Device("cpu")), mesh, Sharding.replicated(mesh.root, 1))
        means = [_mean_gradient(parameter, whole, mesh, dtype) for parameter, whole in pairs]
        evaluate.evaluate([each.current() for each in (shares, *means)])
        for (parameter, whole), mean, share in zip(pairs, means, shares.to_local().tolist(), strict=True):
            if share:
                parameter.grad = mean if parameter.grad is None else parameter.grad + mean
            whole.grad = None


def _mean_gradient(parameter: Tensor, whole: Tensor, mesh: DeviceMesh, dtype: Any) -> Tensor:
    placed = _placed(parameter)
    along = without(placed, mesh.axes)
    held = Sharding(mesh.row().root, along.dims)
    gradient = aten("zeros_like")(whole) if whole.grad is None else whole.grad
    gradient = gradient if dtype is None else gradient.to(dtype)
    local = part_here(sharding.constrain(gradient, held), held, None, None)
    mean = _mean_over_rows(local, mesh, along, tuple(whole.shape))
    return sharding.constrain(mean, placed).to(parameter.dtype)


def _mean_over_rows(
    local: Tensor, mesh: DeviceMesh, along: Sharding, shape: tuple[int, ...] | None = None
) -> Tensor:
    """The mean over the rows of a tensor that lies along each as the sharding says."""
    names = {axis.name for axis in mesh.axes}
    chosen = [
        Partial("avg") if axis.name in names else placement
        for axis, placement in zip(mesh.whole.axes, placements_of(along, mesh.whole), strict=True)
    ]
    return from_parts(local, mesh.whole, chosen, shape)


def _placed(parameter: Tensor) -> Sharding:
    placed = sharding.placed_as(parameter)
    assert placed is not None
    return placed
