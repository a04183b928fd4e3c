"""The rows of PyTorch's namespace `_c10d_functional`: what the devices of a mesh exchange in code that is
written for one of them, by `func.shard_map`.

A group is named after the axes of the mesh along which its devices lie, and all axes of the mesh with their
sizes: "model of data=2,model=4".
"""

from __future__ import annotations

from collections.abc import Sequence

from tenfold import flat
from tenfold.base import dtypes
from tenfold.base.errors import ArgumentError, ShapeError
from tenfold.flat import collectives as c
from tenfold.ops.table import op

MONOIDS = {"sum": "add", "avg": "add", "max": "max", "min": "min", "band": "and", "bor": "or", "bxor": "xor"}


def group_name(axes: Sequence[tuple[str, int]], names: Sequence[str]) -> str:
    return f"{'+'.join(names)} of {','.join(f'{name}={size}' for name, size in axes)}"


def _axes(group: str) -> tuple[list[str], list[tuple[str, int]]]:
    names, _, mesh = group.partition(" of ")
    sizes = [each.partition("=") for each in mesh.split(",") if each]
    if not sizes or not all(size.isdecimal() for _, _, size in sizes):
        raise ArgumentError(
            f"there is no group {group!r} of devices", help="give a dimension of shard_map's mesh"
        )
    return names.split("+"), [(name, int(size)) for name, _, size in sizes]


def _groups(group: str) -> c.Groups:
    names, axes = _axes(group)
    return c.groups_along(axes, names)


@op("_c10d_functional::all_reduce(Tensor input, str reduce_op, str group_name) -> Tensor")
def all_reduce(x, reduce_op, group):
    """On each device the sum of what the group's devices have, or what else `reduce_op` makes of it."""
    groups, kind = _groups(group), reduce_op.lower()
    if kind == "product":
        return flat.reduce(_stacked(x, groups), "mul", (0,))
    if kind not in MONOIDS:
        raise ArgumentError(f"there is no reduction {reduce_op!r}", help="use sum, avg, product, max or min")
    found = c.all_reduce(x, MONOIDS[kind], groups)
    return found / len(groups[0]) if kind == "avg" else found


def _stacked(x, groups):
    return c.AllGather(flat.reshape(x, (1, *x.shape)), 0, groups).result


@op("_c10d_functional::all_gather_into_tensor(Tensor input, int group_size, str group_name) -> Tensor")
def all_gather_into_tensor(x, size, group):
    """What the group's devices have, one after the other along the first dimension."""
    return c.AllGather(x, 0, _sized(group, size)).result


@op(
    "_c10d_functional::reduce_scatter_tensor(Tensor input, str reduce_op, int group_size, str group_name) "
    "-> Tensor"
)
def reduce_scatter_tensor(x, reduce_op, size, group):
    """To each of the group's devices its part, along the first dimension, of the sum of what they have."""
    groups, kind = _sized(group, size), reduce_op.lower()
    if kind not in ("sum", "avg"):
        raise ArgumentError(f"reduce_scatter adds up, by sum or avg, not {reduce_op!r}")
    found = c.ReduceScatter(x, 0, groups).result
    return found / size if kind == "avg" else found


@op(
    "_c10d_functional::all_to_all_single(Tensor input, SymInt[] output_split_sizes, "
    "SymInt[] input_split_sizes, str group_name) -> Tensor"
)
def all_to_all_single(x, output_sizes, input_sizes, group):
    """To device i of the group part i of what each has, along the first dimension."""
    groups = _groups(group)
    size = len(groups[0])
    if any(len(each) != size or len(set(each)) > 1 for each in (output_sizes, input_sizes) if each):
        raise ShapeError("all_to_all splits into parts of one size", help="leave the split sizes empty")
    return c.AllToAll(x, 0, 0, groups).result


@op("_c10d_functional::broadcast(Tensor input, int src, str group_name) -> Tensor")
def broadcast(x, src, group):
    """On each of the group's devices what device `src` of it has."""
    groups = _groups(group)
    if not 0 <= src < len(groups[0]):
        raise ArgumentError(f"device {src} is not one of the {len(groups[0])} of the group")
    here = flat.eq(_place(group), src)
    narrow = x.dtype.kind == "bool"
    given = flat.convert(x, dtypes.uint8) if narrow else x
    found = c.all_reduce(flat.where(here, given, 0), "add", groups)
    return flat.convert(found, x.dtype) if narrow else found


@op("_c10d_functional::wait_tensor(Tensor tensor) -> Tensor")
def wait_tensor(x):
    """x: XLA waits where it must."""
    return x


@op("tenfold::permute_tensor(Tensor input, int[] src_dst, str group_name) -> Tensor")
def permute_tensor(x, src_dst, group):
    """To device src_dst[i] of the group what device i has; zeros to those that are named by none. -1 sends
    nothing."""
    groups = _groups(group)
    if len(src_dst) != len(groups[0]) or any(not -1 <= each < len(src_dst) for each in src_dst):
        raise ArgumentError(f"permute takes a target for each of the {len(groups[0])} devices of the group")
    pairs = [(row[i], row[to]) for row in groups for i, to in enumerate(src_dst) if to >= 0]
    return c.CollectivePermute(x, tuple(pairs)).result if pairs else flat.full_like(x, 0)


@op("tenfold::axis_index(Tensor like, str group_name) -> Tensor", differentiable=False)
def axis_index(like, group):
    """The device's place in its group."""
    return _place(group)


def _place(group):
    names, axes = _axes(group)
    position = flat.convert(c.PartitionId().result, dtypes.int64)
    place, stride, block = flat.constant(0, dtypes.int64), 1, 1
    for name, size in reversed(axes):
        if name in names:
            place = place + flat.rem(flat.div(position, stride), size) * block
            block *= size
        stride *= size
    return place


def _sized(group: str, size: int) -> c.Groups:
    groups = _groups(group)
    if len(groups[0]) != size:
        raise ArgumentError(f"the group has {len(groups[0])} devices, not {size}")
    return groups
