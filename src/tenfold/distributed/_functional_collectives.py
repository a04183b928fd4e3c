"""Functional collectives. In a function of `func.shard_map`, which is written for one device, the devices of
the mesh take part; elsewhere, processes do, with their plain tensors. Names and arguments are those of
`torch.distributed._functional_collectives`."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator, Sequence
from typing import Any

from tenfold.base.errors import ArgumentError, ShapeError, located
from tenfold.base.source import capture
from tenfold.base.threads import handed_on
from tenfold.distributed.collectives import ReduceOp
from tenfold.distributed.device_mesh import DeviceMesh
from tenfold.distributed.group import ProcessGroup, is_initialized, world_of
from tenfold.distributed.nn import functional
from tenfold.ops.collectives import group_name
from tenfold.ops.table import OTHERS
from tenfold.tensor import Tensor
from tenfold.tensor.dispatch import aten, invoke

__all__ = [
    "all_gather_tensor", "all_reduce", "all_to_all_single", "axis_index", "broadcast", "permute_tensor",
    "reduce_scatter_tensor", "wait_tensor",
]  # fmt: skip

_current = handed_on(threading.local())


@contextlib.contextmanager
def written_for(mesh: DeviceMesh) -> Iterator[None]:
    """A block of code for one device of this mesh."""
    before = getattr(_current, "mesh", None)
    _current.mesh = mesh
    try:
        yield
    finally:
        _current.mesh = before


def _group(group: Any) -> tuple[str, int]:
    """The name of a group of devices, and how many they are: those along a dimension of the mesh that is
    given by its name or number, as `mesh["data"]`, or as `(mesh, "data")`; or along several, or all."""
    mesh: DeviceMesh | None = getattr(_current, "mesh", None)
    if mesh is None:
        raise ArgumentError(
            "this collective is for code that is written for one device",
            help="call it in a function that func.shard_map runs; distributed.all_reduce and the others work "
            "on plain tensors between processes",
        )
    root, names = mesh.root, [axis.name for axis in mesh.axes]
    if isinstance(group, tuple) and len(group) == 2 and isinstance(group[0], DeviceMesh):
        group = group[1]
    if group is None:
        chosen = names
    elif isinstance(group, DeviceMesh):
        chosen = [axis.name for axis in group.axes] if group.root == root else ["?"]
    else:
        several = group if isinstance(group, (tuple, list)) else [group]
        chosen = [_axis(names, each) for each in several]
    sizes = {axis.name: axis.size for axis in mesh.axes}
    size = 1
    for name in chosen:
        if name not in sizes:
            raise ArgumentError(
                f"{mesh} has no dimension for the group {group!r}",
                help=f"give a name or a number of its dimensions: {', '.join(names)}",
            )
        size *= sizes[name]
    return group_name(root.axes, chosen), size


def _processes(group: Any) -> ProcessGroup | None:
    """The processes that a collective is for; None in code for one device, and where there are none."""
    if getattr(_current, "mesh", None) is not None or not is_initialized():
        return None
    if isinstance(group, tuple) and len(group) == 2 and isinstance(group[0], DeviceMesh):
        return group[0].get_group(group[1])  # type: ignore[attr-defined]
    if isinstance(group, DeviceMesh):
        return group.get_group()  # type: ignore[attr-defined]
    return world_of(group) if group is None or isinstance(group, ProcessGroup) else None


def _axis(names: Sequence[str], wanted: Any) -> Any:
    """The name of a dimension that is given by its number; anything else as it is."""
    in_range = isinstance(wanted, int) and -len(names) <= wanted < len(names)
    return names[wanted] if in_range else wanted


def _call(namespace: str, name: str, *arguments: Any) -> Tensor:
    return invoke(OTHERS[namespace][name][0], arguments, capture())


@located
def all_reduce(self: Tensor, reduceOp: str, group: Any = None, tag: str = "") -> Tensor:
    """Reduce a tensor over the group's devices, by "sum", "avg", "product", "max" or "min"."""
    if (world := _processes(group)) is not None:
        return functional.all_reduce(self, ReduceOp(reduceOp.lower()), world)
    return _call("_c10d_functional", "all_reduce", self, reduceOp, _group(group)[0])


@located
def all_gather_tensor(self: Tensor, gather_dim: int, group: Any = None, tag: str = "") -> Tensor:
    """Gather the group's tensors, concatenated along a dimension."""
    if (world := _processes(group)) is not None:
        return aten("cat")(list(functional.all_gather(self, world)), gather_dim)
    name, size = _group(group)
    moved = self.movedim(gather_dim, 0)
    return _call("_c10d_functional", "all_gather_into_tensor", moved, size, name).movedim(0, gather_dim)


@located
def reduce_scatter_tensor(
    self: Tensor, reduceOp: str, scatter_dim: int, group: Any = None, tag: str = ""
) -> Tensor:
    """Reduce over the group's devices to a sum or mean, and return the device's part along a dimension."""
    if (world := _processes(group)) is not None:
        if self.shape[scatter_dim] % world.size():
            raise ShapeError(
                f"{tuple(self.shape)} does not split into {world.size()} equal parts along {scatter_dim}",
                help="pad it first",
            )
        parts = [part.contiguous() for part in self.chunk(world.size(), scatter_dim)]
        output = aten("empty_like")(parts[world.rank()])
        op = ReduceOp(reduceOp.lower())
        added = ReduceOp.SUM if op is ReduceOp.AVG else op
        result = functional.reduce_scatter(output, parts, added, world)
        return result / world.size() if op is ReduceOp.AVG else result
    name, size = _group(group)
    moved = self.movedim(scatter_dim, 0)
    found = _call("_c10d_functional", "reduce_scatter_tensor", moved, reduceOp, size, name)
    return found.movedim(0, scatter_dim)


@located
def all_to_all_single(
    self: Tensor,
    output_split_sizes: Sequence[int] | None = None,
    input_split_sizes: Sequence[int] | None = None,
    group: Any = None,
    tag: str = "",
) -> Tensor:
    """Split each device's tensor along the first dimension and send part i to device i of the group."""
    if (world := _processes(group)) is not None:
        rows = sum(output_split_sizes) if output_split_sizes else self.shape[0]
        output = aten("empty")((rows, *self.shape[1:]), dtype=self.dtype, device=self.device)
        return functional.all_to_all_single(output, self, output_split_sizes, input_split_sizes, world)
    sizes = tuple(output_split_sizes or ()), tuple(input_split_sizes or ())
    return _call("_c10d_functional", "all_to_all_single", self, *sizes, _group(group)[0])


@located
def broadcast(self: Tensor, src: int, group: Any = None, tag: str = "") -> Tensor:
    """Send the tensor of device `src` of the group to all of them."""
    if (world := _processes(group)) is not None:
        return functional.broadcast(self, src, world)
    return _call("_c10d_functional", "broadcast", self, src, _group(group)[0])


@located
def permute_tensor(self: Tensor, src_dst: Sequence[int], group: Any = None, tag: str = "") -> Tensor:
    """Send the tensor of device i to device `src_dst[i]`, or to none if that is -1. Devices that receive
    nothing get zeros."""
    return _call("tenfold", "permute_tensor", self, tuple(src_dst), _group(group)[0])


@located
def axis_index(like: Tensor, group: Any = None) -> Tensor:
    """The device's index in its group, on the device of another tensor."""
    return _call("tenfold", "axis_index", like, _group(group)[0])


@located
def wait_tensor(tensor: Tensor) -> Tensor:
    """Return the tensor: XLA waits when necessary."""
    return tensor
